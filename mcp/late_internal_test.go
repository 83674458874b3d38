package mcp

import (
	"testing"
	"time"
)

// An answer that came after the limit counted as in time when its caller was held
// up until both were there, and chance took the answer.
func TestAnswerBeyondTheLimitIsLate(t *testing.T) {
	for _, tt := range []struct {
		call  call
		limit time.Duration
		late  bool
	}{
		{call{sent: 10, end: 20, answered: true}, 10, false},
		{call{sent: 10, end: 21, answered: true}, 10, true},
		{call{sent: 10, end: 21, answered: true}, 0, false},
		{call{sent: 10, end: 21}, 10, false},
	} {
		if got := tt.call.late(tt.limit); got != tt.late {
			t.Errorf("sent %v, end %v, limit %v: late %t", tt.call.sent, tt.call.end, tt.limit, got)
		}
	}
}
