package target

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStdio serves one client over in and out until in ends, which is how a
// client ends a stdio server, or until ctx ends; both are a nil error. Either
// cuts the requests that are still open. Only protocol messages are written to
// out. At the end the counters are written (see Config.StatsDir). Neither side
// is closed; after the end of ctx a read of in may still be waiting.
func (t *Target) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := t.cfg.Validate(); err != nil {
		return err
	}
	s := t.newSurface()
	session, err := s.server.Connect(context.WithoutCancel(ctx), // Close ends it, not a broken read
		&mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}}, nil)
	if err != nil {
		return fmt.Errorf("serve stdio: %w", err)
	}
	var broken error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		broken = session.Wait()
	}()
	select {
	case <-ended:
		err = broken
	case <-ctx.Done():
		close(s.stop)
		_ = session.Close() // waits for the open requests; that they were cut is no news
		<-ended
	}
	if s.initialized.Load() {
		t.count.session(closed)
	}
	if err != nil {
		err = fmt.Errorf("serve stdio: %w", err)
	}
	return errors.Join(err, t.writeStats())
}

// nopCloser keeps the SDK from closing a stream that is not ours.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
