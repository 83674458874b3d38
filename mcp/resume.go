package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"mcpbench/mcp/sse"
)

const (
	// maxVainResumes is how often in a row a stream is taken up again that brings
	// nothing new. A clean end counts as nothing.
	maxVainResumes = 8
	// maxResumes bounds it for a server whose streams bring something each time, but
	// never the answer.
	maxResumes = 1000
)

// cursor notes how a stream can be taken up again after ev.
func (x *exchange) cursor(ev *sse.Event) {
	if id, ok := resumable(ev); ok {
		x.lastID = id
	}
	if ev.Retry >= 0 {
		x.retry = max(ev.Retry, 1) // 0 is no wish
	}
}

// resume takes up the stream of a request that ended before the answer, after an
// event with an id, and reads on; again and again, but within the limits of the
// request (specification 2025-11-25, basic/transports, resumability and
// redelivery). first is how the stream ended, and the outcome when nothing comes of it.
func (x *exchange) resume(ctx context.Context, first error) error {
	// The end of the stream of a request that was cancelled is the sign that the
	// server stopped.
	if x.lastID == "" || !x.rules.GetStream || ctx.Err() != nil || x.track.limits().cancelled() {
		return first
	}
	left := time.Duration(0)
	if x.req.Timeout > 0 {
		left = max(1, x.stamps.sent+x.req.Timeout-x.conn.o.now())
	}
	limited, limit := newLimit(ctx, left, x.track.limits(), x.conn.o.now)
	defer limit.stop(nil)
	vain := 0
	for n := 0; n < maxResumes && vain < maxVainResumes; n++ {
		if err := x.pause(limited, vain); err != nil {
			return err
		}
		id, size := x.lastID, x.reply.BytesIn
		refused, err := x.takeUp(limited)
		_, late := errors.AsType[*TimeoutError](err) // an engine that knows why the context ended
		switch {
		case refused:
			return fmt.Errorf("%w (resuming it failed: %s)", first, err.Error()) // one cause
		case !x.broken && !late:
			return err
		case limited.Err() != nil:
			return x.outOfTime(limited)
		}
		vain++
		if x.lastID != id || x.reply.BytesIn != size {
			vain = 0
		}
	}
	return fmt.Errorf("%w (resuming it brought no more)", first)
}

// pause waits before the stream is taken up again: as long as the server wished,
// or firstRetry, and twice as long after each time in vain.
func (x *exchange) pause(ctx context.Context, vain int) error {
	wait := cmp.Or(x.retry, firstRetry)
	wait = min(wait<<vain, max(wait, lastRetry))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return x.outOfTime(ctx)
	case <-x.conn.life.Done():
		return closedError()
	}
}

// outOfTime is the error of a request whose context, or limit, ended.
func (x *exchange) outOfTime(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return x.track.limits().fault()
	}
	return &TransportError{Op: "read", Err: ctx.Err()}
}

// takeUp opens the stream at the last event and reads it. refused tells that the
// server does not do that; x.broken, that the stream ended without the answer.
func (x *exchange) takeUp(ctx context.Context) (refused bool, err error) {
	x.broken = true
	resp, first, err := x.conn.get(ctx, wayUrgent, x.rules, x.lastID, nil)
	if err != nil {
		return false, err
	}
	defer closeBody(resp)
	kind, coding := mediaType(resp.header("Content-Type")), resp.header("Content-Encoding")
	if resp.status() != 200 || kind != "text/event-stream" || !isIdentity(coding) {
		said := x.conn.said(resp, true)
		x.conn.showAnswer(resp, first, ChannelGet, said, nil)
		err = &HTTPError{Status: resp.status(), Body: excerpt(said), Header: tellingHeader(resp)}
		return resp.status()/100 != 5, err
	}
	x.conn.o.OnAnomaly(AnomalyResumed, fmt.Sprintf("%s, after event %q", x.req.Method, x.lastID))
	x.broken = false
	x.conn.showAnswer(resp, first, ChannelGet, nil, nil)
	return false, x.readStream(resp, ChannelGet)
}
