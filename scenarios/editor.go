package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"mcpbench/internal/nearest"
)

// EditorServer is one entry of an editor's MCP configuration.
type EditorServer struct {
	Server Server
	// Notes name keys of the entry that are ignored.
	Notes []string
	// Secrets are the texts in it that must not be shown: what variables and
	// inputs gave to env, headers and args, the file of variables, and what looks
	// secret by its name.
	Secrets []string
}

const maxEditorBytes = 1 << 20

// ReadEditorConfig takes the entry called server out of data, the text of an
// editor's configuration file: mcpServers of .mcp.json, Claude Desktop and
// Cursor, or servers of VS Code. Comments and trailing commas are allowed.
// ${VAR}, ${VAR:-default}, ${env:VAR}, ${workspaceFolder}, ${userHome} and
// ${input:ID} are replaced in every value; one that is not set is an error.
// name is the file's name, for messages and for the workspace folder. Only
// the named entry is looked at, and nothing in it is run.
func ReadEditorConfig(name string, data []byte, server string, o LoadOptions) (EditorServer, error) {
	entries, err := editorEntries(name, data)
	if err != nil {
		return EditorServer{}, err
	}
	raw, ok := entries[server]
	if !ok {
		known := slices.Sorted(maps.Keys(entries))
		if len(known) == 0 {
			return EditorServer{}, fmt.Errorf("%s lists no server", name)
		}
		return EditorServer{}, fmt.Errorf("%s has no server %q%s; it has: %s", name, server,
			nearest.DidYouMean(server, known), strings.Join(known, ", "))
	}
	r := editorReader{name: name, server: server, options: o, workspace: workspaceOf(o.path(name))}
	entry := r.entry(raw)
	if len(r.faults) > 0 {
		return EditorServer{}, fmt.Errorf("server %q of %s: %s", server, name, strings.Join(r.faults, "; "))
	}
	return entry, nil
}

// EditorServers returns the names of the entries in an editor's configuration.
func EditorServers(name string, data []byte) ([]string, error) {
	entries, err := editorEntries(name, data)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(entries)), nil
}

func editorEntries(name string, data []byte) (map[string]jsontext.Value, error) {
	if len(data) > maxEditorBytes {
		return nil, fmt.Errorf("%s has %d bytes; an editor's configuration has 1 MiB at most", name, len(data))
	}
	plain, err := hujson.Standardize(bytes.TrimPrefix(slices.Clone(data), []byte("\uFEFF")))
	if err != nil {
		return nil, fmt.Errorf("%s is not JSON: %s", name, strings.TrimPrefix(err.Error(), "hujson: "))
	}
	var file struct {
		MCPServers map[string]jsontext.Value `json:"mcpServers"`
		Servers    map[string]jsontext.Value `json:"servers"`
	}
	if err := json.Unmarshal(plain, &file); err != nil {
		return nil, fmt.Errorf("%s: %s", name, jsonReason(err))
	}
	if file.MCPServers == nil && file.Servers == nil {
		return nil, fmt.Errorf("%s has neither mcpServers nor servers; it is no MCP configuration of an editor", name)
	}
	all := make(map[string]jsontext.Value, len(file.MCPServers)+len(file.Servers))
	maps.Copy(all, file.Servers)
	maps.Copy(all, file.MCPServers)
	return all, nil
}

// workspaceOf returns the folder that an editor opens when it reads the file.
func workspaceOf(file string) string {
	if absolute, err := filepath.Abs(file); err == nil {
		file = absolute
	}
	dir := filepath.Dir(file)
	if base := filepath.Base(dir); base == ".vscode" || base == ".cursor" {
		return filepath.Dir(dir)
	}
	return dir
}

type editorReader struct {
	name, server, workspace string
	options                 LoadOptions
	faults                  []string
	secrets                 secretSet
}

func (r *editorReader) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *editorReader) entry(raw jsontext.Value) EditorServer {
	var keys map[string]jsontext.Value
	if err := json.Unmarshal(raw, &keys); err != nil || keys == nil {
		r.fault("an entry is an object")
		return EditorServer{}
	}
	var e struct {
		kind, command, url, cwd, envFile string
		args                             []string
		env, headers                     map[string]string
	}
	out := EditorServer{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value := keys[key]
		switch key {
		case "type", "transport":
			e.kind = r.text(key, value)
		case "command":
			e.command = r.text(key, value)
		case "url":
			e.url = r.text(key, value)
		case "cwd":
			e.cwd = r.text(key, value)
		case "envFile":
			e.envFile = r.text(key, value)
		case "args":
			e.args = r.list(key, value)
		case "env":
			e.env = r.table(key, value)
		case "headers":
			e.headers = r.table(key, value)
		default:
			out.Notes = append(out.Notes, fmt.Sprintf("%s: key %q of server %q is ignored", r.name, key, r.server))
		}
	}
	r.hide(e.args, e.env, e.headers)
	r.secrets.addURL(e.url)
	transport := r.transport(e.kind, e.command, e.url)
	out.Server = Server{Name: r.server, Transport: transport}
	switch transport {
	case "stdio":
		env := r.envFile(e.envFile)
		maps.Copy(env, e.env)
		out.Server.Command, out.Server.Args, out.Server.Dir = e.command, e.args, e.cwd
		if e.cwd != "" && !filepath.IsAbs(e.cwd) {
			out.Server.Dir = filepath.Join(r.workspace, e.cwd)
		}
		out.Server.Env = childEnv(env, DefaultInheritEnv(), r.options.lookup)
	case "http", "sse":
		if err := validURL(e.url); err != nil {
			r.fault("url: %s", err)
		}
		out.Server.AnyHTTP, out.Server.URL = e.kind == "", e.url
		for _, name := range slices.Sorted(maps.Keys(e.headers)) {
			if !validHeaderName(name) || strings.ContainsAny(e.headers[name], "\r\n\x00") {
				r.fault("headers: %q is no header", name)
			}
			out.Server.Headers = append(out.Server.Headers, Header{Name: name, Value: Text(e.headers[name])})
		}
	}
	out.Secrets = r.secrets.texts
	return out
}

// hide notes what looks secret by its name.
func (r *editorReader) hide(args []string, tables ...map[string]string) {
	for i, shown := range MaskArguments(args) {
		if shown != args[i] {
			r.secrets.add(args[i])
			r.secrets.addParts(args[i], true)
		}
		r.secrets.addURL(args[i])
	}
	for _, table := range tables {
		for name, value := range table {
			if SecretName(name) {
				r.secrets.add(value)
				r.secrets.addParts(value, false)
			}
			r.secrets.addURL(value)
		}
	}
}

// transport tells what kind of server an entry is.
func (r *editorReader) transport(kind, command, address string) string {
	switch kind {
	case "":
		switch {
		case command != "" && address != "":
			r.fault("it has both a command and a url, and no type")
		case command != "":
			return "stdio"
		case address != "":
			return "http"
		default:
			r.fault("it has neither a command nor a url")
		}
		return ""
	case "stdio":
		if command == "" {
			r.fault("type stdio wants a command")
		}
		return "stdio"
	case "http", "streamable-http", "streamableHttp", "sse":
		if address == "" {
			r.fault("type %s wants a url", kind)
		}
		if kind == "sse" {
			return "sse"
		}
		return "http"
	}
	known := []string{"stdio", "http", "sse"}
	r.fault("type %q is not one of stdio, http, sse%s", kind, nearest.DidYouMean(kind, known))
	return ""
}

func (r *editorReader) text(key string, raw jsontext.Value) string {
	var text string
	if raw.Kind() != '"' || json.Unmarshal(raw, &text) != nil {
		r.fault("%s wants text", key)
		return ""
	}
	return r.expand(key, text)
}

func (r *editorReader) list(key string, raw jsontext.Value) []string {
	var items []jsontext.Value
	if json.Unmarshal(raw, &items) != nil {
		r.fault("%s wants a list", key)
	}
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = r.text(fmt.Sprintf("%s[%d]", key, i), item)
	}
	return out
}

func (r *editorReader) table(key string, raw jsontext.Value) map[string]string {
	var items map[string]jsontext.Value
	if json.Unmarshal(raw, &items) != nil {
		r.fault("%s wants an object", key)
	}
	out := make(map[string]string, len(items))
	for _, name := range slices.Sorted(maps.Keys(items)) {
		out[name] = r.text(key+"."+name, items[name])
	}
	return out
}

var editorVariable = regexp.MustCompile(`\$\{([^}]*)\}`)

// expand replaces the ${…} forms of Claude Code, Cursor and VS Code.
func (r *editorReader) expand(key, text string) string {
	return editorVariable.ReplaceAllStringFunc(text, func(form string) string {
		name := form[2 : len(form)-1]
		switch name {
		case "workspaceFolder":
			return r.workspace
		case "workspaceFolderBasename":
			return filepath.Base(r.workspace)
		case "userHome":
			home := "HOME"
			if runtime.GOOS == "windows" {
				home = "USERPROFILE"
			}
			return r.variable(key, home, "", false)
		case "pathSeparator", "/":
			return string(filepath.Separator)
		}
		if id, ok := strings.CutPrefix(name, "input:"); ok {
			value := r.input(key, id)
			r.secrets.add(value)
			return value
		}
		name = strings.TrimPrefix(name, "env:")
		name, fallback, has := strings.Cut(name, ":-")
		value := r.variable(key, name, fallback, has)
		if place, _, _ := strings.Cut(key, "."); place == "env" || place == "headers" || strings.HasPrefix(key, "args[") {
			if !has || value != fallback {
				r.secrets.add(value)
			}
		}
		return value
	})
}

func (r *editorReader) variable(key, name, fallback string, has bool) string {
	value, ok := r.options.lookup(name)
	switch {
	case has && value == "":
		return fallback
	case !ok:
		r.fault("%s: variable %s is not set", key, name)
	}
	return value
}

func (r *editorReader) input(key, id string) string {
	upper := strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, strings.ToUpper(id))
	for _, name := range []string{"MCPBENCH_INPUT_" + id, "MCPBENCH_INPUT_" + upper} {
		if value, ok := r.options.lookup(name); ok {
			return value
		}
	}
	if r.options.Input == nil {
		r.fault("%s: input %q is not given; set MCPBENCH_INPUT_%s", key, id, upper)
		return ""
	}
	value, err := r.options.Input(id)
	if err != nil {
		r.fault("%s: ask for input %q: %s", key, id, err)
	}
	return value
}

// envFile reads KEY=VALUE lines; # starts a comment line, quotes around a value
// are taken off.
func (r *editorReader) envFile(name string) map[string]string {
	out := map[string]string{}
	if name == "" {
		return out
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.workspace, name)
	}
	data, err := r.options.read(name)
	if err != nil {
		r.fault("envFile: read %s: %s", name, reason(err))
		return out
	}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "export "))
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			r.fault("envFile: line %d of %s is not KEY=VALUE", i+1, name)
			continue
		}
		value = strings.TrimSpace(value)
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		r.secrets.add(value)
		out[key] = value
	}
	return out
}

// reason is the innermost error, without the operation and the name of the file.
func reason(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

// jsonReason leaves out the name of the package that an error begins with.
func jsonReason(err error) string {
	text := err.Error()
	for _, prefix := range []string{"json: ", "jsontext: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
