package conformance

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// editor speaks to yaml-language-server over stdio as an editor does: messages of
// JSON-RPC 2.0 behind a Content-Length (LSP 3.17, base protocol). One goroutine
// uses it; another, which the test waits for, reads what the server sends.
type editor struct {
	t    *testing.T
	in   io.Writer
	mail chan editorMessage
	id   int
	// published are the diagnostics that came while something else was waited for.
	published map[string][]diagnostic
}

type editorMessage struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

type diagnostic struct {
	Range struct {
		Start struct {
			Line int `json:"line"` // from 0
		} `json:"start"`
	} `json:"range"`
	Message string `json:"message"`
}

// startEditor starts the language server, which is killed when the test ends.
func startEditor(t *testing.T) *editor {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("npm", "node_modules", "yaml-language-server", "bin", "yaml-language-server"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", path, "--stdio")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e := &editor{t: t, in: in, mail: make(chan editorMessage), published: map[string][]diagnostic{}}
	done := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() { e.read(out, done) })
	t.Cleanup(func() {
		close(done)
		_ = cmd.Process.Kill()
		reading.Wait()
		_ = cmd.Wait() // killed
	})
	e.request("initialize", map[string]any{
		"processId": nil, "rootUri": nil,
		"capabilities": map[string]any{"textDocument": map[string]any{"publishDiagnostics": map[string]any{}}},
	})
	e.notify("initialized", map[string]any{})
	// Nothing is fetched from the network: neither the catalogue of schemas nor others.
	off := map[string]any{"enable": false}
	e.notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{
		"yaml": map[string]any{"validate": true, "completion": true, "schemaStore": off, "kubernetesCRDStore": off},
	}})
	return e
}

// read passes on what the server sends, until it ends or done is closed.
func (e *editor) read(out io.Reader, done <-chan struct{}) {
	defer close(e.mail)
	r := textproto.NewReader(bufio.NewReader(out))
	for {
		header, err := r.ReadMIMEHeader()
		if err != nil {
			return
		}
		size, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			return
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(r.R, body); err != nil {
			return
		}
		var m editorMessage
		if err := json.Unmarshal(body, &m); err != nil {
			return
		}
		select {
		case e.mail <- m:
		case <-done:
			return
		}
	}
}

func (e *editor) send(m any) {
	e.t.Helper()
	body, err := json.Marshal(m)
	if err == nil {
		_, err = fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *editor) notify(method string, params any) {
	e.t.Helper()
	e.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// request returns the result of a request.
func (e *editor) request(method string, params any) json.RawMessage {
	e.t.Helper()
	e.id++
	id := strconv.Itoa(e.id)
	e.send(map[string]any{"jsonrpc": "2.0", "id": e.id, "method": method, "params": params})
	var result json.RawMessage
	e.until(method, func(m editorMessage) bool {
		if m.Method != "" || string(m.ID) != id {
			return false
		}
		if m.Error != nil {
			e.t.Fatalf("%s: %s", method, m.Error)
		}
		result = m.Result
		return true
	})
	return result
}

// until handles what comes until one message is what is waited for.
func (e *editor) until(what string, is func(editorMessage) bool) {
	e.t.Helper()
	late := time.After(editorPatience)
	for {
		select {
		case m, ok := <-e.mail:
			if !ok {
				e.t.Fatalf("the language server ended before %s", what)
			}
			if err := e.handle(m); err != nil {
				e.t.Fatal(err)
			}
			if is(m) {
				return
			}
		case <-late:
			e.t.Fatalf("%s: nothing within %v", what, editorPatience)
		}
	}
}

// handle keeps diagnostics and answers the server's own requests with null.
func (e *editor) handle(m editorMessage) error {
	switch {
	case m.Method == "textDocument/publishDiagnostics":
		var p struct {
			URI         string       `json:"uri"`
			Diagnostics []diagnostic `json:"diagnostics"`
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return errors.Join(errors.New("diagnostics of the language server"), err)
		}
		e.published[p.URI] = p.Diagnostics
	case m.Method != "" && m.ID != nil:
		e.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": nil})
	}
	return nil
}

func (e *editor) open(uri, text string) {
	e.t.Helper()
	e.notify("textDocument/didOpen", map[string]any{
		"textDocument": map[string]any{"uri": uri, "languageId": "yaml", "version": 1, "text": text},
	})
}

// diagnostics waits for those of an open document.
func (e *editor) diagnostics(uri string) []diagnostic {
	e.t.Helper()
	if _, ok := e.published[uri]; !ok {
		e.until("diagnostics of "+uri, func(editorMessage) bool { _, ok := e.published[uri]; return ok })
	}
	return e.published[uri]
}

// completions returns the labels of what is offered at a place of an open document.
func (e *editor) completions(uri string, line, character int) []string {
	e.t.Helper()
	result := e.request("textDocument/completion", map[string]any{
		"textDocument": map[string]any{"uri": uri}, "position": map[string]any{"line": line, "character": character},
	})
	var list struct {
		Items []struct {
			Label string `json:"label"`
		} `json:"items"`
	}
	if err := json.Unmarshal(result, &list); err != nil {
		e.t.Fatalf("completions: %v\n%s", err, result)
	}
	var labels []string
	for _, item := range list.Items {
		labels = append(labels, item.Label)
	}
	return labels
}
