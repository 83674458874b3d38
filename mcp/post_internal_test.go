package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestWithin(t *testing.T) {
	tests := []struct {
		base, uri string
		want      bool
	}{
		{"toy://a", "toy://a", true},
		{"toy://a", "toy://a/b", true},
		{"toy://a", "toy://a?x=1", true},
		{"toy://a", "toy://a#x", true},
		{"toy://a/", "toy://a/b", true},
		{"toy://a", "toy://ab", false},
		{"toy://a/", "toy://a", false},
		{"toy://a", "toy://", false},
		{"toy://a", "", false},
		{"", "", true},
		{"", "toy://a", false},
		{"toy://", "toy://a", true},
	}
	for _, tt := range tests {
		if got := within(tt.base, tt.uri); got != tt.want {
			t.Errorf("%q within %q: %v", tt.uri, tt.base, got)
		}
	}
}

// sorting is a post with two subscriptions, each of a kind of its own.
type sorting struct {
	post      post
	subs      [2]*Subscription
	listens   [2]*listening
	anomalies int
}

const sortingID = 7 // of the first listen request; the second has the next one

func newSorting(modern, ownStream, acked bool) *sorting {
	s := new(sorting)
	o := Options{Base: time.Now(), OnAnomaly: func(Anomaly, string) { s.anomalies++ }, Watch: []string{methodUpdated}}
	s.post.prepare(&o)
	if modern {
		s.post.speak(V20260728.Features())
	} else {
		s.post.speak(V20251125.Features())
	}
	filters := []Filter{{Resources: []string{"toy://a"}, ToolsListChanged: true}, {Resources: []string{"toy://a/b", "toy://c"}, PromptsListChanged: true}}
	for i, f := range filters {
		u := &Subscription{filter: f, opened: make(chan opening, 1)}
		s.subs[i] = u
		_ = s.post.add(u) // nothing is over
		for _, uri := range f.Resources {
			s.post.hold(uri)
		}
		if !modern {
			continue
		}
		l := &listening{post: &s.post, u: u, cancel: func(error) {}}
		l.started(int64(sortingID+i), ownStream, func() (Reply, bool) { return Reply{}, true })
		l.acked = acked
		s.listens[i] = l
	}
	return s
}

// expected says by encoding/json which subscriptions a notification is for. It
// knows nothing of the code it judges.
func expected(data []byte, modern bool, only int) (want [2]bool) {
	var m map[string]json.RawMessage
	var method, uri string
	if json.Unmarshal(data, &m) != nil || json.Unmarshal(m["method"], &method) != nil {
		return want
	}
	var params, meta map[string]json.RawMessage
	_ = json.Unmarshal(m["params"], &params)
	_ = json.Unmarshal(params["_meta"], &meta)
	_ = json.Unmarshal(params["uri"], &uri)
	for i, prefix := range [2][]string{{"toy://a"}, {"toy://a/b", "toy://c"}} {
		switch method {
		case "notifications/tools/list_changed":
			want[i] = i == 0
		case "notifications/prompts/list_changed":
			want[i] = i == 1
		case "notifications/resources/updated":
			want[i] = slices.ContainsFunc(prefix, func(p string) bool {
				return uri == p || strings.HasPrefix(uri, p+"/") || strings.HasPrefix(uri, p+"?") || strings.HasPrefix(uri, p+"#")
			})
		}
		if modern {
			id, err := strconv.ParseFloat(string(meta[metaSubscription]), 64)
			want[i] = want[i] && err == nil && id == float64(sortingID+i) && (only < 0 || only == i)
		}
	}
	return want
}

// Whatever comes as a notification goes to the subscriptions it is for and to
// nobody else, in each version and on each stream, or is counted.
func FuzzPost(f *testing.F) {
	meta := func(id string) string { return `"_meta":{"` + metaSubscription + `":` + id + `}` }
	for _, method := range []string{methodUpdated, methodToolsChanged, methodPromptsChanged, methodAcknowledged, methodCancelled, methodProgress} {
		for _, params := range []string{
			`{` + meta("7") + `,"uri":"toy://a/b"}`, `{` + meta(`"7"`) + `,"uri":"toy://a"}`, `{` + meta("8") + `,"uri":"toy://c#1"}`,
			`{` + meta("7.0") + `,"uri":"toy://a"}`, `{` + meta("7e0") + `,"requestId":7}`, `{"uri":"toy://ab"}`, `null`, `[7]`, `{"_meta":[],"uri":7}`,
			`{` + meta("7") + `,"notifications":{"toolsListChanged":true,"resourceSubscriptions":[1]}}`, `{` + meta("7") + `,"notifications":0}`,
		} {
			f.Add([]byte(`{"jsonrpc":"2.0","method":"`+method+`","params":`+params+`}`), uint8(len(params)))
		}
	}
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications\/resources\/updated","params":{"uri":"toy:\/\/a","uri":"toy://c"}}`), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, mode uint8) {
		original := data
		data = bytes.Clone(data)
		m, err := decodeMessage(data)
		if err != nil || m.kind() != kindNotification {
			return
		}
		modern, ownStream, acked := mode&1 != 0, mode&2 != 0, mode&4 != 0
		s := newSorting(modern, ownStream, acked)
		only := -1
		var from *listening
		if modern && ownStream {
			only = int(mode >> 3 & 1)
			from = s.listens[only]
		}
		s.post.deliver(&m, data, from)
		want := expected(original, modern, only)
		for i := range want {
			want[i] = want[i] && (acked || !modern)
		}
		s.check(t, &m, want, modern)
		clear(data)
		for i, u := range s.subs {
			if want[i] && bytes.IndexByte(u.box.kept[0].Params, 0) >= 0 {
				t.Fatalf("what is kept lies in the reader's buffer: %q", u.box.kept[0].Params)
			}
		}
	})
}

// check fails unless m went to whom it should, and was counted when to nobody.
func (s *sorting) check(t *testing.T, m *message, want [2]bool, modern bool) {
	t.Helper()
	method := m.methodName()
	for i, u := range s.subs {
		n := len(u.box.kept)
		if n > 1 || (n == 1) != want[i] {
			t.Fatalf("subscription %d got %d of %s %s, want it: %v", i, n, method, m.params, want[i])
		}
		if n == 1 && (u.box.kept[0].Method != method || !bytes.Equal(u.box.kept[0].Params, m.params)) {
			t.Fatalf("subscription %d got %+v of %s %s", i, u.box.kept[0], method, m.params)
		}
	}
	update, somebody := method == methodUpdated, want[0] || want[1]
	watched := len(s.post.watched[methodUpdated].kept)
	if (watched == 1) != (update && (somebody || !modern)) {
		t.Fatalf("%d watched of %s %s", watched, method, m.params)
	}
	if modern && (update || method == methodToolsChanged) && (s.anomalies == 1) == somebody {
		t.Fatalf("%d anomalies for %s %s", s.anomalies, method, m.params)
	}
}

// An acknowledgement of a request that was not sent yet is a guess of the server's.
func TestAcknowledgedBeforeTheRequest(t *testing.T) {
	s := newSorting(true, false, false)
	s.listens[0].soFar = func() (Reply, bool) { return Reply{}, false }
	data := []byte(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"` + metaSubscription + `":7}}}`)
	m, err := decodeMessage(data)
	if err != nil {
		t.Fatal(err)
	}
	s.post.deliver(&m, data, nil)
	if s.listens[0].acked || s.anomalies != 1 || len(s.subs[0].opened) != 0 {
		t.Errorf("acknowledged %v, %d anomalies", s.listens[0].acked, s.anomalies)
	}
}
