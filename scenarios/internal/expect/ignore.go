package expect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ignored is a tree of JSON pointers (RFC 6901) to what a comparison leaves
// out, by token; the token * stands for any.
type ignored struct {
	whole bool
	next  map[string]*ignored
}

// compileIgnore reads pointers such as /_meta and /content/*/id.
func compileIgnore(pointers []string) (*ignored, error) {
	root := &ignored{}
	for i, p := range pointers {
		if !strings.HasPrefix(p, "/") {
			return nil, &PartError{"ignore", i, fmt.Sprintf("%s is no JSON pointer: it must begin with /", quote(p))}
		}
		at := root
		for token := range strings.SplitSeq(p[1:], "/") {
			token, ok := unescape(token)
			if !ok {
				return nil, &PartError{"ignore", i, fmt.Sprintf("%s is no JSON pointer: ~ is written ~0", quote(p))}
			}
			if at.next == nil {
				at.next = map[string]*ignored{}
			}
			if at.next[token] == nil {
				at.next[token] = &ignored{}
			}
			at = at.next[token]
		}
		at.whole = true
	}
	return root, nil
}

// unescape reads one token of a pointer (RFC 6901 §4).
func unescape(token string) (string, bool) {
	if rest := strings.NewReplacer("~0", "", "~1", "").Replace(token); strings.Contains(rest, "~") {
		return "", false
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"), true
}

// step returns where the pointers of at go on below token; whole tells that
// one ends there.
func step(at []*ignored, token string) (next []*ignored, whole bool) {
	for _, n := range at {
		for _, key := range [...]string{token, "*"} {
			if n := n.next[key]; n != nil {
				if n.whole {
					return nil, true
				}
				next = append(next, n)
			}
		}
	}
	return next, false
}

// place is where a comparison is, as a list from the value outwards.
type place struct {
	up    *place
	token string
	index int // when token is ""
	item  bool
}

// String returns the JSON pointer; of the whole value it is "result".
func (p *place) String() string {
	if p == nil {
		return "result"
	}
	var tokens []string
	for ; p != nil; p = p.up {
		if p.item {
			tokens = append(tokens, strconv.Itoa(p.index))
		} else {
			tokens = append(tokens, strings.NewReplacer("~", "~0", "/", "~1").Replace(p.token))
		}
	}
	var b strings.Builder
	for _, token := range slices.Backward(tokens) {
		b.WriteByte('/')
		b.WriteString(token)
	}
	return b.String()
}
