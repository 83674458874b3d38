package scenarios

import (
	"time"

	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

const (
	defaultRequestTimeout = 30 * time.Second
	defaultConnectTimeout = 10 * time.Second
	defaultResponseBytes  = 16 << 20
	defaultHeaderBytes    = 1 << 20
	defaultStderrBytes    = 2 << 20 // of each end

	// Below leastBytes no real answer fits; messages are counted in 32 bits and held
	// in memory, as both ends of a stderr are.
	leastBytes        = 1 << 10
	mostResponseBytes = 1 << 30
	mostHeaderBytes   = 64 << 20
	mostStderrBytes   = 256 << 20
)

func (c *compiler) limits(f *grammar.Limits) Limits {
	out := Limits{
		RequestTimeout:   c.limit(f.Place, "request_timeout", f.RequestTimeout, defaultRequestTimeout),
		ConnectTimeout:   c.limit(f.Place, "connect_timeout", f.ConnectTimeout, defaultConnectTimeout),
		StepTimeout:      c.limit(f.Place, "step_timeout", f.StepTimeout, 0),
		IterationTimeout: c.limit(f.Place, "iteration_timeout", f.IterationTimeout, 0),
		ResponseBytes:    c.bytes(f.Place, "response_bytes", f.ResponseBytes, defaultResponseBytes, mostResponseBytes),
		HeaderBytes:      c.bytes(f.Place, "header_bytes", f.HeaderBytes, defaultHeaderBytes, mostHeaderBytes),
		StderrHead:       defaultStderrBytes,
		StderrTail:       defaultStderrBytes,
	}
	if f.Stderr.Set {
		out.StderrHead, out.StderrTail = f.Stderr.Head, f.Stderr.Tail
		if max(out.StderrHead, out.StderrTail) > mostStderrBytes {
			c.fault(f.Node.Lookup("stderr"), syntax.Join(f.Path, "stderr"), "keeps at most 256MiB of each end")
		}
	}
	return out
}

func orDefault(d grammar.Duration, fallback time.Duration) time.Duration {
	if d.Set {
		return d.D
	}
	return fallback
}

// limit is a duration that must not be 0.
func (c *compiler) limit(at grammar.Place, key string, d grammar.Duration, fallback time.Duration) time.Duration {
	if d.Set && d.D == 0 {
		c.fault(at.Node.Lookup(key), syntax.Join(at.Path, key), "must be more than 0")
	}
	return orDefault(d, fallback)
}

// bytes is a number of bytes from leastBytes to most, both included.
func (c *compiler) bytes(at grammar.Place, key string, s grammar.Size, fallback, most int64) int64 {
	switch {
	case !s.Set:
		return fallback
	case s.Bytes < leastBytes:
		c.fault(at.Node.Lookup(key), syntax.Join(at.Path, key), "must be at least 1KiB")
	case s.Bytes > most:
		c.fault(at.Node.Lookup(key), syntax.Join(at.Path, key), "must be at most %dMiB", most>>20)
	}
	return s.Bytes
}

// sharing fills in what sessions of the server have in common.
func (c *compiler) sharing(out *Server, s *grammar.Server, target string) {
	out.SharedProcess = s.Per == "shared"
	switch s.OnSessionLoss {
	case "end_session":
		out.OnLoss = LossEnds
	case "abort":
		out.OnLoss = LossAborts
	}
	chosen, within := s.Connections, s.HTTP.Connections
	if s.Node.Key("connections") != nil && within.Set {
		c.fault(s.HTTP.Node.Key("connections"), syntax.Join(s.HTTP.Path, "connections"),
			"connections is there twice: beside http and in it; keep one")
	}
	if within.Set {
		chosen = within
	}
	out.Connections = chosen.Shared
	if target != "from" && target != "embedded" || out.Transport == "" {
		return // for others the table of targets says which keys they have
	}
	for _, key := range []string{"per", "http", "connections"} {
		n := s.Node.Key(key)
		switch stdio := out.Transport == "stdio"; {
		case n == nil:
		case key == "per" && !stdio:
			c.fault(n, syntax.Join(s.Path, key), "per is about the processes of stdio servers; this one is reached over %s", out.Transport)
		case key != "per" && stdio:
			c.fault(n, syntax.Join(s.Path, key), "%s is about HTTP; this is a stdio server", key)
		}
	}
}
