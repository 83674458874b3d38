package output_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"

	"mcpbench/metrics"
	"mcpbench/output"
)

func TestMain(m *testing.M) {
	// The width of ambiguous characters must not depend on the locale of the test.
	text.OverrideRuneWidthEastAsianWidth(false)
	os.Exit(m.Run())
}

func TestRenderTextGolden(t *testing.T) {
	for _, c := range []struct {
		name    string
		summary *metrics.Summary
		options output.TextOptions
	}{
		{"failing", failingRun(), output.TextOptions{Notes: []string{"requests 0.9 MiB"}}},
		{"failing-120", failingRun(), output.TextOptions{Width: 120}},
		{"failing-color", failingRun(), output.TextOptions{Color: true}},
		{"ok", okRun(), output.TextOptions{Hints: []string{"next: your own server, over stdio or HTTP:", "  mcpbench run --url http://127.0.0.1:8080/mcp -t TOOL"}}},
		{"nothing-opened", nothingOpened(), output.TextOptions{}},
		{"queueing", queueingRun(), output.TextOptions{}},
		{"unsound", unsoundRun(), output.TextOptions{}},
		{"interrupted", interruptedRun(), output.TextOptions{}},
		{"no-folder", noFolder(), output.TextOptions{}},
		{"two-groups", twoGroupsRun(), output.TextOptions{}},
		{"hostile", hostileRun(), output.TextOptions{Width: 80}},
		{"listening", listeningRun(), output.TextOptions{}},
		{"aborted", abortedRun(), output.TextOptions{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := output.RenderText(&b, c.summary, c.options); err != nil {
				t.Fatal(err)
			}
			golden(t, "text/"+c.name+".txt", b.String())
			for line := range strings.SplitSeq(b.String(), "\n") {
				checkLine(t, line, c.options)
			}
		})
	}
}

// abortedRun was ended by two thresholds, of which one held in all.
func abortedRun() *metrics.Summary {
	s := failingRun()
	s.Thresholds = []metrics.ThresholdResult{
		{
			Expr: "p95(latency{step=search}) < 120ms", Value: new(98.0), Unit: "ms",
			Aborted: true, AbortedAtS: 80, WindowValue: new(131.4), WindowS: 10,
		},
		{Expr: "rate(errors) < 1%", Value: new(0.5), Unit: "%", Aborted: true, AbortedAtS: 80, WindowValue: new(12.5), WindowS: 1},
		{Expr: "rate(checks) > 99.5%", Value: new(99.8), Unit: "%", OK: true},
	}
	return s
}

// checkLine holds one line against what every line of a summary keeps to.
func checkLine(t *testing.T, line string, o output.TextOptions) {
	t.Helper()
	if n, width := text.StringWidthWithoutEscSequences(line), max(o.Width, 80); n > width {
		t.Errorf("a line of %d columns, want at most %d:\n%s", n, width, line)
	}
	for _, r := range line {
		if unicode.IsControl(r) && (r != '\x1b' || !o.Color) {
			t.Errorf("control character %q in %q", r, line)
		}
	}
	if strings.HasSuffix(line, " ") {
		t.Errorf("line ends with a space: %q", line)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestRenderersReturnWriteErrors(t *testing.T) {
	if err := output.RenderText(failingWriter{}, okRun(), output.TextOptions{}); err == nil {
		t.Error("RenderText: got no error")
	}
	if err := output.WriteJSON(failingWriter{}, okRun()); err == nil {
		t.Error("WriteJSON: got no error")
	}
}

func TestUseColor(t *testing.T) {
	for _, c := range []struct {
		name    string
		tty     bool
		noColor bool
		env     map[string]string
		want    bool
	}{
		{"terminal", true, false, nil, true},
		{"no terminal", false, false, nil, false},
		{"flag", true, true, map[string]string{"CLICOLOR_FORCE": "1"}, false},
		{"NO_COLOR", true, false, map[string]string{"NO_COLOR": "1"}, false},
		{"NO_COLOR empty", true, false, map[string]string{"NO_COLOR": ""}, true},
		{"forced", false, false, map[string]string{"CLICOLOR_FORCE": "1"}, true},
		{"not forced", false, false, map[string]string{"CLICOLOR_FORCE": "0"}, false},
		{"NO_COLOR beats force", true, false, map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, false},
		{"dumb terminal", true, false, map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := output.UseColor(c.tty, c.noColor, func(k string) string { return c.env[k] }); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
