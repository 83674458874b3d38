package mcp

import (
	"context"
	"encoding/json"
	"iter"
)

// maxPages bounds the pages of one list.
const maxPages = 1000

// Caller makes requests. *Session is one; a wrapper may record each request.
type Caller interface {
	Call(ctx context.Context, req Request) (Reply, error)
	Info() Info
}

// Pages makes the list request req and follows its cursors, one request a page.
// It yields exactly once for each request made, with what came of it. The cursor
// of each further page takes the place of one in req.Params.
//
// The sequence ends after a page without nextCursor (null counts as none, and
// before 2026-07-28 so does the empty string), after an error, and after a page
// that breaks the rules, which is yielded with its reply and an error: a cursor
// that is no string or was there before is a *ProtocolError, a thousandth page
// that is not the last a *LimitError.
func Pages(ctx context.Context, c Caller, req Request) iter.Seq2[Reply, error] {
	return func(yield func(Reply, error) bool) {
		rules := c.Info().Version.Features()
		seen := make(map[string]bool)
		params := req.Params
		for page := 1; ; page++ {
			r := req
			r.Params = params
			reply, err := c.Call(ctx, r)
			if err != nil {
				yield(reply, err)
				return
			}
			cursor, err := nextCursor(reply.Result, rules.EmptyCursor)
			switch {
			case err != nil || cursor == nil:
			case seen[string(cursor)]:
				err = &ProtocolError{Kind: FaultCursor, Detail: "the cursor was there before: " + excerpt(cursor)}
			case page == maxPages:
				err = &LimitError{Limit: LimitPages, Max: maxPages}
			default:
				seen[string(cursor)] = true
				params, err = setMember(nil, req.Params, "cursor", cursor)
			}
			if !yield(reply, err) || err != nil || cursor == nil {
				return
			}
		}
	}
}

// nextCursor returns the raw JSON string that names the next page, nil at the end.
func nextCursor(result json.RawMessage, emptyCounts bool) (json.RawMessage, error) {
	raw := lookup(result, "nextCursor")
	switch {
	case raw == nil || string(raw) == "null":
		return nil, nil
	case raw[0] != '"':
		return nil, &ProtocolError{Kind: FaultCursor, Detail: "nextCursor is not a string: " + excerpt(raw)}
	case string(raw) == `""` && !emptyCounts:
		return nil, nil
	}
	return raw, nil
}
