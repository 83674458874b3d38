package scenarios

import (
	"fmt"
	"maps"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/script"
	"mcpbench/scenarios/internal/syntax"
)

func (c *compiler) servers() {
	names := c.root.Lookup("servers").Keys()
	for _, name := range names {
		if s := c.file.Servers[name]; s != nil {
			c.out.Servers = append(c.out.Servers, c.server(name, s))
		}
	}
	if len(c.out.Servers) == 0 && !c.loading {
		c.fault(c.root.Key("servers"), "servers", "the scenario names no server; add one under servers:, or give --url URL or -- COMMAND")
	}
}

// targets are the keys of which a server has exactly one, with the keys that
// only make sense beside them.
var targets = []struct {
	key, transport string
	with           []string
}{
	{"url", "http", []string{"transport", "headers", "auth", "tls", "http", "connections"}},
	{"command", "stdio", []string{"transport", "args", "env", "inherit_env", "cwd", "per"}},
	{"from", "", []string{"transport", "headers", "http", "connections", "per"}},
	{"embedded", "", []string{"transport", "http", "connections", "per"}},
}

func (c *compiler) server(name string, s *grammar.Server) Server {
	out := Server{Name: name, Protocol: s.Protocol}
	if s.Node == nil || s.Node.Kind != syntax.Map && s.Node.Kind != syntax.Null {
		return out
	}
	target := c.target(name, s)
	switch target {
	case "url":
		out.Transport, out.AnyHTTP = httpTransport(s.Transport)
		out.URL = c.endpoint(s)
		out.Headers = c.headers(s, &out)
	case "command":
		out.Transport = "stdio"
		if n := s.Node.Lookup("command"); n.Kind == syntax.String && strings.TrimSpace(n.Text) == "" {
			c.fault(n, s.Path+".command", "must not be empty")
		}
		out.Command, out.Args = s.Command, make([]string, 0, len(s.Args))
		for _, a := range s.Args {
			if a.Node != nil {
				out.Args = append(out.Args, a.Node.Text)
			}
		}
		out.Env = c.environment(s)
		if s.Cwd != "" {
			out.Dir = c.options.path(s.Cwd)
		}
	case "from":
		c.fromEditor(&out, s)
	case "embedded":
		out.Embedded, out.Transport = true, s.Embedded
		out.Env = c.environment(s)
	}
	if target != "" {
		c.sharing(&out, s, target)
	}
	return out
}

// target returns the key that says what the server is, "" after a fault.
func (c *compiler) target(name string, s *grammar.Server) string {
	found := -1
	for i, t := range targets {
		key := s.Node.Key(t.key)
		switch {
		case key == nil:
		case found >= 0:
			c.fault(key, s.Path, "%s and %s are two targets; keep one", targets[found].key, t.key)
			return ""
		default:
			found = i
		}
	}
	if found < 0 {
		c.fault(s.Node, s.Path, "server %q has no target: give it url, command, from or embedded", name)
		return ""
	}
	t := targets[found]
	for _, other := range targets {
		for _, key := range other.with {
			if n := s.Node.Key(key); n != nil && !slices.Contains(t.with, key) {
				c.fault(n, syntax.Join(s.Path, key), "%s does not go with %s", key, t.key)
			}
		}
	}
	want := t.transport
	if t.key == "embedded" {
		want = s.Embedded
	}
	switch {
	case s.Transport == "" || s.Transport == "auto" || s.Transport == want || t.key == "from":
	case s.Transport == "sse" && t.key == "url":
		if s.Protocol == modernVersion {
			c.fault(s.Node.Lookup("protocol"), s.Path+".protocol", "%s does not go with transport sse; use http", s.Protocol)
		}
	default:
		c.fault(s.Node.Lookup("transport"), s.Path+".transport", "transport %s does not go with %s, which is %s", s.Transport, t.key, want)
	}
	return t.key
}

// httpTransport returns the transport of a server with a url, given the one that
// the scenario names; open says that it names none.
func httpTransport(named string) (transport string, open bool) {
	if named == "sse" {
		return "sse", false
	}
	return "http", named != "http"
}

// modernVersion is the one without sessions, which HTTP+SSE does not carry.
const modernVersion = "2026-07-28"

func (c *compiler) endpoint(s *grammar.Server) string {
	node, path := s.Node.Lookup("url"), s.Path+".url"
	if node.Kind != syntax.String {
		return ""
	}
	if err := validURL(s.URL); err != nil {
		c.fault(node, path, "%s", err)
	}
	return s.URL
}

// validURL checks the endpoint of a server.
func validURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is no URL: %w", MaskURL(text), errorOf(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q wants a URL that starts with http:// or https://", MaskURL(text))
	case u.Host == "":
		return fmt.Errorf("%q has no host", MaskURL(text))
	}
	if port := u.Port(); port != "" {
		const most = 65535
		if n, err := strconv.Atoi(port); err != nil || n > most {
			return fmt.Errorf("%q: the port is beyond %d", MaskURL(text), most)
		}
	}
	return nil
}

// errorOf leaves out the URL that url.Error repeats.
func errorOf(err error) error {
	if e, ok := err.(*url.Error); ok { //nolint:errorlint // url.Parse returns it as it is
		return e.Err
	}
	return err
}

func (c *compiler) headers(s *grammar.Server, of *Server) []Header {
	at := s.Node.Lookup("headers")
	var out []Header
	for _, name := range at.Keys() {
		value := s.Headers[name].Node
		path := s.Path + ".headers." + name
		if value == nil {
			continue
		}
		if !validHeaderName(name) {
			c.fault(at.Key(name), path, "%q is no name of a header", name)
			continue
		}
		if ownHeader(name) {
			c.fault(at.Key(name), path, "%s is set by mcpbench itself, as each request needs it", name)
			continue
		}
		parts, faults := script.Parse(value.Text, c.exprs.Header)
		for _, f := range faults {
			c.scriptFault(value, path, f)
		}
		feeders := &scope{columns: c.columns, feeds: func(feeder string) { of.Feeders = append(of.Feeders, feeder) }}
		for _, p := range parts {
			if p.Expr != nil {
				c.known(p.Expr, value, max(strings.Index(value.Text, p.Source), 0), path, feeders)
			}
		}
		if i := strings.IndexAny(value.Text, "\r\n\x00"); i >= 0 {
			c.src.Fault(value, i, path, "a header has one line")
		}
		out = append(out, Header{Name: name, Value: Template{parts: parts, vars: c.vars}})
	}
	return out
}

// ownHeader tells whether the client sets a header itself, so that another value
// would not be sent.
func ownHeader(name string) bool {
	return slices.ContainsFunc([]string{"Content-Type", "Content-Length", "Transfer-Encoding", "Accept", "Connection"},
		func(own string) bool { return strings.EqualFold(own, name) })
}

// validHeaderName tells whether name is a token (RFC 9110 §5.6.2).
func validHeaderName(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}) < 0
}

// DefaultInheritEnv returns the names of the variables that a child process
// gets from our environment when the scenario says nothing: what programs need
// to start, and nothing that is likely to hold a secret.
func DefaultInheritEnv() []string {
	names := []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR", "TZ"}
	if runtime.GOOS == "windows" {
		names = append(names, "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA",
			"PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR")
	}
	return names
}

func (c *compiler) environment(s *grammar.Server) []string {
	inherit := DefaultInheritEnv()
	if s.Node.Lookup("inherit_env") != nil {
		inherit = s.InheritEnv
		for i, name := range inherit {
			if at := s.Node.Lookup("inherit_env"); (name == "" || strings.Contains(name, "=")) && i < len(at.Items) {
				c.fault(at.Items[i], s.Path+".inherit_env", "%q is no name of a variable", name)
			}
		}
	}
	set := make(map[string]string, len(s.Env))
	for name, v := range s.Env {
		if strings.ContainsAny(name, "=\x00") {
			c.fault(s.Node.Lookup("env").Key(name), s.Path+".env", "%q is no name of a variable", name)
		}
		if v.Node != nil {
			set[name] = v.Node.Text
		}
	}
	return childEnv(set, inherit, c.options.lookup)
}

// childEnv returns KEY=VALUE, sorted: the inherited variables that are set, and
// set, which wins.
func childEnv(set map[string]string, inherit []string, lookup func(string) (string, bool)) []string {
	all := make(map[string]string, len(set)+len(inherit))
	for _, name := range inherit {
		if v, ok := lookup(name); ok {
			all[name] = v
		}
	}
	maps.Copy(all, set)
	out := make([]string, 0, len(all))
	for name, v := range all {
		out = append(out, name+"="+v)
	}
	slices.Sort(out)
	return out
}

// fromEditor fills the server from an editor's file.
func (c *compiler) fromEditor(out *Server, s *grammar.Server) {
	if s.From == nil || s.From.File == "" || s.From.Server == "" {
		return
	}
	if c.loading {
		return
	}
	at := s.From
	data, err := c.options.read(at.File)
	if err != nil {
		c.fault(at.Node.Lookup("file"), at.Path+".file", "read %s: %s", at.File, reason(err))
		return
	}
	entry, err := ReadEditorConfig(at.File, data, at.Server, c.options)
	if err != nil {
		c.fault(at.Node.Lookup("server"), at.Path, "%s", err)
		return
	}
	for _, note := range entry.Notes {
		c.warn(at.Node.Lookup("file"), at.Path, "%s", note)
	}
	c.editorSecrets = append(c.editorSecrets, entry.Secrets...)
	name, protocol := out.Name, out.Protocol
	*out = entry.Server
	out.Name, out.Protocol = name, protocol
	switch chosen := s.Transport; {
	case chosen == "" || chosen == "auto" || chosen == out.Transport:
		out.AnyHTTP = out.AnyHTTP && chosen != "http"
	case chosen != "stdio" && out.Transport != "stdio":
		out.Transport, out.AnyHTTP = httpTransport(chosen)
	default:
		c.fault(s.Node.Lookup("transport"), s.Path+".transport", "transport %s does not go with %q of %s, which is %s",
			chosen, at.Server, at.File, out.Transport)
		return
	}
	if key := s.Node.Key("headers"); key != nil && out.Transport == "stdio" {
		c.fault(key, s.Path+".headers", "headers are for HTTP servers; %q of %s is none", at.Server, at.File)
		return
	}
	for _, h := range c.headers(s, out) {
		out.Headers = slices.DeleteFunc(out.Headers, func(old Header) bool { return strings.EqualFold(old.Name, h.Name) })
		out.Headers = append(out.Headers, h)
	}
}
