package mcp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// TransportClass sorts transport errors; its value is the error_code column, so
// values are only ever added at the end.
type TransportClass int32

// Transport classes. See ClientFault for those that are faults of this machine.
const (
	// ClassOther is a failure that fits no other class.
	ClassOther TransportClass = iota + 1
	// ClassRefused is a connection refused.
	ClassRefused
	// ClassReset is a connection reset or aborted by the peer.
	ClassReset
	// ClassEOF is a connection that ended before the whole answer.
	ClassEOF
	// ClassStale is a kept-alive connection that the server closed just as the request went out.
	ClassStale
	// ClassDNS is a name that did not resolve.
	ClassDNS
	// ClassTLS is a failed TLS handshake or a broken TLS record.
	ClassTLS
	// ClassUnreachable is a host or network without a route.
	ClassUnreachable
	// ClassPipe is a write to a peer that no longer reads.
	ClassPipe
	// ClassNetTimeout is a time limit of the network stack.
	ClassNetTimeout
	// ClassSpawn is a server process that could not be started.
	ClassSpawn
	// ClassClosed is a connection that we closed ourselves.
	ClassClosed
	// ClassDescriptors is a machine or process out of file descriptors.
	ClassDescriptors
	// ClassPorts is a machine out of local ports.
	ClassPorts
	// ClassMemory is a machine out of memory or buffers.
	ClassMemory
	// ClassEnded is a subscription that the server ended in order while something
	// was still expected of it. It has no TransportError: ErrSubscriptionEnded.
	ClassEnded

	classEnd
)

var classNames = [...]string{
	"", "other", "refused", "reset", "eof", "stale", "dns", "tls", "unreachable", "pipe",
	"net_timeout", "spawn", "closed", "descriptors", "ports", "memory",
	"ended",
}

// String returns the class's name.
func (c TransportClass) String() string { return name(classNames[:], int(c)) }

// ClientFault reports whether the failure is this machine's own (descriptors,
// ports, memory) and so says nothing about the server.
func (e *TransportError) ClientFault() bool {
	c := e.Class()
	return c == ClassDescriptors || c == ClassPorts || c == ClassMemory
}

// Class sorts the error by what lies at its root.
func (e *TransportError) Class() TransportClass {
	if errno, ok := errors.AsType[syscall.Errno](e.Err); ok {
		if c, ok := errnoClasses[errno]; ok {
			return c
		}
	}
	if c, ok := classByType(e.Err); ok {
		return c
	}
	switch {
	case e.Op == "tls":
		return ClassTLS
	case e.Op == "spawn":
		return ClassSpawn
	case errors.Is(e.Err, net.ErrClosed), errors.Is(e.Err, os.ErrClosed), errors.Is(e.Err, errClosed):
		return ClassClosed
	case errors.Is(e.Err, io.ErrClosedPipe):
		return ClassPipe
	case errors.Is(e.Err, io.EOF), errors.Is(e.Err, io.ErrUnexpectedEOF):
		return ClassEOF
	case strings.Contains(e.Err.Error(), "server closed idle connection"):
		// net/http has no exported value for this one.
		return ClassStale
	case errors.Is(e.Err, context.DeadlineExceeded), errors.Is(e.Err, os.ErrDeadlineExceeded):
		return ClassNetTimeout
	}
	return ClassOther
}

func classByType(err error) (TransportClass, bool) {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return ClassDNS, true
	}
	if _, ok := errors.AsType[*exec.Error](err); ok {
		return ClassSpawn, true
	}
	if isTLS(err) {
		return ClassTLS, true
	}
	return 0, false
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}
