package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Stdio starts a server process for each Conn and speaks over its stdin and
// stdout. The process leads a process group of its own, so that what a launcher
// starts is ended with it.
type Stdio struct {
	Command string
	Args    []string
	Env     []string // KEY=VALUE of the process, whole; nil inherits ours
	Dir     string   // working directory; "" is ours
	// Grace is how long the process has to exit after its stdin was closed, and
	// again after SIGTERM. 0: 2 s.
	Grace time.Duration
	// StderrBytes is how much of the end of stderr is kept for error messages. 0: 64 KiB.
	StderrBytes int
}

// Kind returns stdio.
func (*Stdio) Kind() string { return "stdio" }

// Dial starts the process. ctx bounds nothing but the start.
func (s *Stdio) Dial(ctx context.Context, o Options) (Conn, error) {
	if ctx.Err() != nil {
		return nil, gaveUp(ctx)
	}
	o = o.withDefaults()
	if s.Command == "" {
		return nil, errors.New("start the server: no command given")
	}
	p, stdin, stdout, err := s.start(&o)
	if err != nil {
		return nil, &TransportError{Op: "spawn", Err: fmt.Errorf("start the server: %w", err)}
	}
	c := startPipe(stdout, stdin, p, o)
	p.tasks.Go(func() { p.watch(c) })
	return c, nil
}

// start starts the process and returns it with our ends of its stdin and stdout.
func (s *Stdio) start(o *Options) (p *process, stdin io.WriteCloser, stdout io.ReadCloser, err error) {
	var in, out, errs filePipe
	for _, pipe := range []*filePipe{&in, &out, &errs} {
		if err := pipe.open(); err != nil {
			return nil, nil, nil, errors.Join(err, closeFiles(in.r, in.w, out.r, out.w, errs.r, errs.w))
		}
	}
	// Not CommandContext: the context of the dial must not end a session's server.
	cmd := exec.Command(s.Command, s.Args...) //nolint:noctx // ended by Close, in steps
	cmd.Env, cmd.Dir = s.Env, s.Dir
	// Plain files: with them Wait waits for the process alone, not for whoever
	// else holds the pipes.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in.r, out.w, errs.w
	ownGroup(cmd)
	began := o.now()
	err = cmd.Start()
	spawn := o.now() - began
	if closeErr := closeFiles(in.r, out.w, errs.w); err == nil && closeErr != nil {
		o.OnAnomaly(AnomalyCloseFailed, closeErr.Error())
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, closeFiles(in.w, out.r, errs.r))
	}
	p = &process{
		cmd: cmd, spawn: spawn, grace: cmp.Or(s.Grace, defaultGrace), stderr: errs.r,
		tail: tail{limit: cmp.Or(s.StderrBytes, 64<<10)}, tell: o.OnAnomaly,
		exited: make(chan struct{}), drained: make(chan struct{}), copy: o.Stderr,
	}
	register(p)
	p.tasks.Go(p.drain)
	return p, in.w, out.r, nil
}

// filePipe is a pipe of the operating system.
type filePipe struct{ r, w *os.File }

func (p *filePipe) open() (err error) {
	p.r, p.w, err = os.Pipe()
	return err
}

func closeFiles(files ...*os.File) error {
	var err error
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// process is a running stdio server.
type process struct {
	cmd    *exec.Cmd
	spawn  time.Duration
	grace  time.Duration
	stderr *os.File
	tail   tail
	copy   io.Writer // Options.Stderr
	tell   func(Anomaly, string)

	exited  chan struct{} // closed when the process was reaped; then state is set
	state   *os.ProcessState
	drained chan struct{} // closed at the end of stderr
	tasks   sync.WaitGroup
}

// drain keeps stderr empty for as long as anybody writes to it: a full pipe
// would stop the server.
func (p *process) drain() {
	defer close(p.drained)
	var to io.Writer = &p.tail
	if p.copy != nil {
		to = io.MultiWriter(&p.tail, p.copy)
	}
	_, _ = io.Copy(to, p.stderr) // the error says that stop has closed it
	if f, ok := p.copy.(interface{ Flush() }); ok {
		f.Flush()
	}
}

// watch waits for the exit and makes it known to the requests in flight, also
// when a child of the server still holds its output open.
func (p *process) watch(c *pipeConn) {
	p.reap()
	if c.waitEnded(context.Background(), lastWords/4) {
		return // the reader reports it
	}
	c.fail(p.exitError(0))
}

func (p *process) reap() {
	defer unregister(p)
	// The error repeats the exit state; without a state there is nothing to tell.
	if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState == nil {
		p.tell(AnomalyCloseFailed, err.Error())
	}
	p.state = p.cmd.ProcessState
	close(p.exited)
}

// exitError tells how the process ended, nil if it does not within the time given.
func (p *process) exitError(within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.exited:
	default:
		select {
		case <-p.exited:
		case <-timer.C:
			return nil
		}
	}
	timer.Reset(lastWords / 4)
	select {
	case <-p.drained:
	case <-timer.C:
	}
	e := &ExitError{Code: -1, Stderr: p.tail.String()}
	if p.state != nil {
		e.Code = p.state.ExitCode()
		if ws, ok := p.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			e.Signal = int(ws.Signal())
		}
	}
	return e
}

// stop ends the process after its stdin was closed: it may exit by itself, then
// SIGTERM goes to its group, then SIGKILL. The end is there when the process was
// reaped and nobody holds its output open any more. The end of ctx means SIGKILL
// at once (specification, basic/lifecycle, shutdown).
func (p *process) stop(ctx context.Context, c *pipeConn) error {
	gone := p.waitGone(ctx, c, p.grace)
	if !gone && ctx.Err() == nil {
		p.tell(AnomalyKilled, "SIGTERM: the server did not exit when its stdin was closed")
		terminate(p.cmd.Process)
		gone = p.waitGone(ctx, c, p.grace)
	}
	if !gone {
		p.tell(AnomalyKilled, "SIGKILL: the server did not exit in time")
		kill(p.cmd.Process)
		gone = p.waitGone(context.WithoutCancel(ctx), c, p.grace)
	}
	err := p.stderr.Close()
	select {
	case <-p.exited:
		p.tasks.Wait()
	default:
		return errors.Join(err, fmt.Errorf("server process %d does not end", p.cmd.Process.Pid))
	}
	if !gone {
		p.tell(AnomalyKilled, "a child of the server still holds its output")
	}
	return err
}

// waitGone waits until the process and everyone who holds its output are gone.
func (p *process) waitGone(ctx context.Context, c *pipeConn, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for _, end := range []<-chan struct{}{p.exited, c.ended, p.drained} {
		select {
		case <-end:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// tail keeps the last bytes written to it. Safe for concurrent use.
type tail struct {
	limit int
	mu    sync.Mutex
	buf   []byte
}

// Write keeps the end of b.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	b = b[max(0, n-t.limit):]
	if over := len(t.buf) + len(b) - t.limit; over > 0 {
		t.buf = t.buf[:copy(t.buf, t.buf[over:])]
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
