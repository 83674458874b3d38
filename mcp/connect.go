package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// abandonLimit bounds the orderly end of a connection whose handshake failed.
const abandonLimit = 8 * time.Second

// describer is a Conn that knows parts of Info.
type describer interface{ describe(i *Info) }

// streamer is a Conn that can open a standalone GET stream.
type streamer interface {
	openStream(ctx context.Context)
	awaitStream(ctx context.Context)
}

// Connect opens a session: it dials and makes the handshake that the version
// demands. ctx bounds both; the session outlives it.
//
// Without a pinned version, or with one up to 2025-11-25, that is initialize and
// notifications/initialized. A pinned version must be the one the server
// answers. 2026-07-28 has no handshake: server/discover tells whether the server
// speaks it. A peer that speaks no version we may use gives a *VersionError.
//
// When Connect fails the connection has been closed in order, including the
// server session if there was one.
func Connect(ctx context.Context, t Transport, o Options) (*Session, error) {
	if o.Version != "" && !o.Version.Known() {
		_, err := ParseVersion(string(o.Version))
		return nil, err
	}
	s, err := dialSession(ctx, t, o.withDefaults())
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		s.drop(ctx)
		return nil, err
	}
	s.opened(ctx)
	return s, nil
}

// dialSession returns a session whose handshake is still to be made. o has its defaults.
func dialSession(ctx context.Context, t Transport, o Options) (*Session, error) {
	s := &Session{}
	s.post.prepare(&o)
	o.post = &s.post
	start := o.now()
	conn, err := t.Dial(ctx, o)
	if err != nil {
		return nil, endedBy(ctx, err)
	}
	s.conn, s.o, s.dialled = conn, o, o.now()
	s.info = Info{Transport: t.Kind(), Requested: o.Version, Start: start}
	return s, nil
}

// opened fills in what is known when the handshake is over.
func (s *Session) opened(ctx context.Context) {
	s.info.Handshake = s.o.now() - s.dialled
	if d, ok := s.conn.(describer); ok {
		d.describe(&s.info)
	}
	// A connection opened for the handshake is a phase of its own.
	s.info.Handshake -= min(s.info.Handshake, s.info.TCP+s.info.TLS)
	s.info.End = s.o.now()
	if s.o.ParamHeaders != nil && s.info.Version.Features().MethodHeaders && s.info.Transport == "http" &&
		lookup(s.info.Capabilities, "tools") != nil {
		s.o.ParamHeaders.load(ctx, s)
	}
	s.post.opened()
	if s.Ended() {
		s.post.end(&TransportError{Op: "read", Err: errLost, lost: true})
	}
}

// drop closes a session that is of no use, in order and in bounded time.
func (s *Session) drop(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonLimit)
	defer cancel()
	if err := s.conn.Close(bounded); err != nil {
		s.o.OnAnomaly(AnomalyCloseFailed, err.Error())
	}
}

// endedBy prefers the cause of a context's end over the error it led to.
func endedBy(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("dial: %w", cause)
	}
	return err
}

func (s *Session) open(ctx context.Context) error {
	version := s.o.Version
	if version == "" {
		version = newestLegacy
	}
	if !version.Features().Handshake {
		return s.discover(ctx, version)
	}
	if err := s.initialize(ctx, version); err != nil {
		return err
	}
	s.startStream(ctx)
	return nil
}

// startStream opens the GET stream, if one is asked for and the version has it.
func (s *Session) startStream(ctx context.Context) {
	if st, ok := s.conn.(streamer); ok && s.o.GetStream {
		st.openStream(ctx)
	}
}

// initialize makes the legacy handshake (specification 2025-11-25,
// basic/lifecycle). What the server answers is the version; when we may not use
// it, notifications/initialized is not sent.
func (s *Session) initialize(ctx context.Context, asked Version) error {
	params, err := json.Marshal(struct {
		Version      Version         `json:"protocolVersion"`
		Capabilities json.RawMessage `json:"capabilities"`
		Client       Implementation  `json:"clientInfo"`
	}{asked, s.o.Capabilities, s.o.Client})
	if err != nil {
		return fmt.Errorf("initialize: client capabilities: %w", err)
	}
	reply, err := s.conn.RoundTrip(ctx, Request{Method: "initialize", Params: params})
	if err != nil {
		return versionRefused("initialize", asked, err)
	}
	var result struct {
		Version      *string         `json:"protocolVersion"`
		Capabilities json.RawMessage `json:"capabilities"`
		Server       Implementation  `json:"serverInfo"`
		Instructions string          `json:"instructions"`
	}
	if err := json.Unmarshal(reply.Result, &result); err != nil {
		return &ProtocolError{Kind: FaultBadResult, Detail: "initialize: " + excerpt(reply.Result), Err: err}
	}
	if result.Version == nil {
		return &ProtocolError{Kind: FaultBadResult, Detail: "initialize: no protocolVersion in " + excerpt(reply.Result)}
	}
	answered := Version(*result.Version)
	pinned := s.o.Version != ""
	if pinned && answered != asked || !answered.Features().Handshake {
		return &VersionError{Asked: asked, Answer: string(answered)}
	}
	s.speak(answered)
	s.info.Version, s.info.Server = answered, result.Server
	s.info.Capabilities, s.info.Instructions = result.Capabilities, result.Instructions
	return s.conn.Notify(ctx, "notifications/initialized", nil)
}

// discover asks a 2026-07-28 server what it is and whether it really serves that
// version: one SDK answers server/discover without serving it.
func (s *Session) discover(ctx context.Context, version Version) error {
	s.speak(version)
	reply, err := s.Call(ctx, Request{Method: "server/discover"})
	if err != nil {
		err = versionRefused("server/discover", version, err)
		if refusedMethod(err) {
			return fmt.Errorf("not a %s server: %w", version, err)
		}
		return err
	}
	var result struct {
		Supported    []string        `json:"supportedVersions"`
		Capabilities json.RawMessage `json:"capabilities"`
		Instructions string          `json:"instructions"`
		Meta         struct {
			Server Implementation `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(reply.Result, &result); err != nil {
		return &ProtocolError{Kind: FaultBadResult, Detail: "server/discover: " + excerpt(reply.Result), Err: err}
	}
	if result.Supported == nil {
		return &ProtocolError{Kind: FaultBadResult, Detail: "server/discover: no supportedVersions in " + excerpt(reply.Result)}
	}
	spoken := false
	for _, v := range result.Supported {
		s.info.Supported = append(s.info.Supported, Version(v))
		spoken = spoken || Version(v) == version
	}
	if !spoken {
		return &VersionError{Asked: version, Offered: result.Supported}
	}
	s.info.Version, s.info.Server = version, result.Meta.Server
	s.info.Capabilities, s.info.Instructions = result.Capabilities, result.Instructions
	return nil
}

// versionRefused turns a JSON-RPC error that lists the server's versions into a
// *VersionError: -32022 of 2026-07-28 servers, and the example of an
// initialization error in the older specifications.
func versionRefused(method string, asked Version, err error) error {
	if e, ok := errors.AsType[*RPCError](err); ok {
		var data struct {
			Supported []string `json:"supported"`
		}
		listed := json.Unmarshal(e.Data, &data) == nil && len(data.Supported) > 0
		if listed || e.Code == codeUnsupportedVersion {
			return &VersionError{Asked: asked, Offered: data.Supported}
		}
	}
	return fmt.Errorf("%s: %w", method, err)
}

// JSON-RPC error codes of 2026-07-28 (specification, basic/index, error codes).
const (
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// refusedMethod reports whether an answer to server/discover is what a server
// that does not know the method gives: any error but those that only 2026-07-28
// servers have, or a status with which HTTP servers refuse what they do not
// understand. 401, 429 and 5xx say nothing about it.
func refusedMethod(err error) bool {
	if e, ok := errors.AsType[*RPCError](err); ok {
		return e.Code != codeHeaderMismatch && e.Code != codeMissingCapability
	}
	if e, ok := errors.AsType[*HTTPError](err); ok {
		switch e.Status {
		case 400, 404, 405, 406, 415:
			return true
		}
	}
	return false
}
