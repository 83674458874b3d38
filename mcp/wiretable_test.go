package mcp_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

var update = flag.Bool("update", false, "write docs/protocol-tests.md anew")

const wireTests = 52

// elsewhere are the wire tests that no Go test has yet, and why.
var elsewhere = map[int]string{
	42: "not yet: tasks",
	43: "not yet: tasks",
	52: "not yet: authorization",
}

// wireComment matches what a test's comment says of the numbers it covers.
var (
	wireComment = regexp.MustCompile(`(?i)wire tests? ((?:\d+)(?:(?:, | and |, and )\d+)*)`)
	wireNumber  = regexp.MustCompile(`\d+`)
)

// The table of docs/protocol-tests.md is what the comments of the tests say, and
// every number is there.
func TestWireTestsAreListed(t *testing.T) {
	byNumber := testsByNumber(t)
	var b strings.Builder
	b.WriteString("# Tests of the protocol\n\nThe tests by number of the wire reference, and where each is, in package `mcp`.\n" +
		"Those over HTTP run with both engines. Made by `go test ./mcp -run WireTests -update`.\n\n| number | tests |\n| --- | --- |\n")
	for n := 1; n <= wireTests; n++ {
		tests := byNumber[n]
		slices.Sort(tests)
		where := strings.Join(slices.Compact(tests), ", ")
		switch {
		case where == "" && elsewhere[n] == "":
			t.Errorf("wire test %d is nowhere", n)
		case where == "":
			where = elsewhere[n]
		}
		fmt.Fprintf(&b, "| %d | %s |\n", n, where)
	}
	const name = "../docs/protocol-tests.md"
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != b.String() {
		t.Errorf("%s is not what the tests say (%v); run this test with -update", name, err)
	}
}

// Wire test 20: a cursor that the server refuses ends the listing with that error,
// told once, and nothing is asked again.
func TestRefusedCursor(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{}).On("tools/list", mcptest.Answer{Result: `{"resultType":"complete","tools":[],"nextCursor":"p2"}`},
			mcptest.Answer{Status: 400, Error: `{"code":-32602,"message":"bad cursor"}`})
		s := withParams(h.T, p, h.engine, nil)
		before := len(p.Received("tools/list"))
		p.On("tools/list", mcptest.Answer{Result: `{"resultType":"complete","tools":[],"nextCursor":"p2"}`},
			mcptest.Answer{Status: 400, Error: `{"code":-32602,"message":"bad cursor"}`})
		pages, failures := 0, 0
		for _, err := range mcp.Pages(h.Context(), s, mcp.Request{Method: "tools/list", Params: []byte("{}")}) {
			pages++
			if err != nil {
				failures++
				wantCode(h.T, err, -32602)
			}
		}
		if asked := len(p.Received("tools/list")) - before; pages != 2 || failures != 1 || asked != 2 {
			h.Errorf("%d pages, %d failures, %d requests", pages, failures, asked)
		}
	})
}

// Wire test 41: whatever a result says of caching, each request goes to the server.
func TestCacheHintsAreNotObeyed(t *testing.T) {
	for _, hints := range []string{`"ttlMs":60000,"cacheScope":"public",`, `"ttlMs":0,"cacheScope":"private",`, `"ttlMs":-1,`, ``} {
		synctest.Test(t, func(t *testing.T) {
			p := (&mcptest.Peer{}).On("resources/read", mcptest.Answer{Result: `{"resultType":"complete",` + hints + `"contents":[]}`})
			s := connect(t, p.HTTP(t), mcp.Options{Version: mcp.V20260728})
			for range 3 {
				if _, err := s.Call(t.Context(), mcp.Request{Method: "resources/read", Params: []byte(`{"uri":"toy://a"}`)}); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(p.Received("resources/read")); n != 3 {
				t.Errorf("%s: %d of 3 requests arrived", hints, n)
			}
		})
	}
}

// Wire test 50: our ids are small whole numbers, and the same number as a text is
// another id.
func TestIDsAreNumbers(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call",
			mcptest.Answer{JSON: `{"jsonrpc":"2.0","id":"$ID","result":{}}`}, mcptest.Answer{Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		var a mcptest.Anomalies
		s := connect(o.T, o.transport, mcp.Options{OnAnomaly: a.Tell})
		req := echo
		req.Timeout = time.Second
		if _, err := s.Call(o.Context(), req); err == nil {
			o.Error("an answer to a text was taken")
		}
		if _, err := s.Call(o.Context(), echo); err != nil {
			o.Error(err)
		}
		if n := a.Counts()[mcp.AnomalyUnknownID]; n != 1 {
			o.Errorf("%d answers to unknown ids", n)
		}
		for _, r := range o.peer.Received() {
			if n, err := strconv.ParseInt(r.ID, 10, 64); r.ID != "" && (err != nil || n < 1 || n > 1<<53) {
				o.Errorf("%s has the id %s", r.Method, r.ID)
			}
		}
	})
}

// testsByNumber reads the comments of the tests.
func testsByNumber(t *testing.T) map[int][]string {
	t.Helper()
	byNumber := map[int][]string{}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Doc == nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			for _, n := range numbersIn(t, f.Doc.Text()) {
				byNumber[n] = append(byNumber[n], fmt.Sprintf("`%s` (%s)", f.Name.Name, name))
			}
		}
	}
	return byNumber
}

// numbersIn returns the numbers of the wire tests that a comment names.
func numbersIn(t *testing.T, comment string) (all []int) {
	t.Helper()
	for _, m := range wireComment.FindAllStringSubmatch(strings.Join(strings.Fields(comment), " "), -1) {
		for _, digits := range wireNumber.FindAllString(m[1], -1) {
			n, err := strconv.Atoi(digits)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, n)
		}
	}
	return all
}
