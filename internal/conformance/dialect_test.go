package conformance

import (
	"encoding/json"
	"fmt"
	"strings"

	"mcpbench/mcp"
)

const (
	updated = "notifications/resources/updated"
	message = "notifications/message"
)

// canned is what the client answers; its marks are looked for in the results of tools.
var canned = mcp.Canned{
	Roots:       mcp.CannedRoots{List: []mcp.Root{{URI: "file:///conformance", Name: "root"}}},
	Sampling:    mcp.CannedSampling{Text: "four of course"},
	Elicitation: mcp.CannedElicitation{Content: json.RawMessage(`{"name":"Bo"}`), Fill: true},
}

// dialect says how a server wants to be asked for what the operations need, and what
// its answers hold. A tool that it does not have is nil.
type dialect struct {
	echo               string // format of the answer
	structured         asked
	fails              asked
	sampling           asked
	elicitation        asked
	link               asked
	roots              asked
	logs               asked    // sends log messages
	quiet              *asked   // ends that
	touch              []string // tools, in order, that make a change of the resource known
	grow               asked    // changes a list
	grows              mcp.Filter
	tools              []string // some that are always there
	pages              int      // at least, of tools and resources
	resource, another  string   // URIs of which one may be told
	read               asked    // of resource
	template           string
	missing            string
	prompt             asked // arguments of prompts/get
	completes          asked // params of completion/complete
	slow               func(steps, ms int, key string) (tool, arguments string)
	tellsFate, perItem bool // tool fate; touch takes the URI
}

// asked is a tool with its arguments, or a method's params, and what the answer must hold.
type asked struct{ tool, arguments, holds string }

// speech returns the dialect of a server.
func speech(s server) *dialect {
	if s.name == "server-everything" {
		return &everything
	}
	return &goDialect
}

// goDialect is that of gosdkserver and mcpgoserver.
var goDialect = dialect{
	echo:       "%s",
	structured: asked{"sum", `{"a":2,"b":3}`, `{"sum":5}`},
	fails:      asked{"fails", `{}`, "failed as asked"},
	sampling:   asked{"ask_sampling", `{}`, "sampled four of course"},
	// The name shows that the content arrived.
	elicitation: asked{"ask_elicitation", `{}`, "accept Bo"},
	link:        asked{"ask_url", `{}`, "accept"},
	roots:       asked{"ask_roots", `{}`, "roots file:///conformance"},
	logs:        asked{"log", `{}`, "logged"},
	touch:       []string{"touch"}, perItem: true,
	grow: asked{"grow", `{}`, "grown"}, grows: mcp.Filter{ToolsListChanged: true},
	tools: []string{"echo", "slow", "fails", "touch", "grow", "sum", "log", "ask_roots"}, pages: 3,
	resource: "toy://any/%d-a", another: "toy://any/%d-b",
	read:     asked{"resources/read", `{"uri":"toy://item/3"}`, `"text":"text of toy://item/3"`},
	template: "toy://any/{name}", missing: "toy://nothing",
	prompt:    asked{"prompts/get", `{"name":"greet","arguments":{"who":"Bo","mood":"well"}}`, `"text":"Hello Bo well"`},
	completes: asked{"completion/complete", `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"A"}}`, `["Ada","Alan"]`},
	slow: func(steps, ms int, key string) (string, string) {
		return "slow", fmt.Sprintf(`{"steps":%d,"ms":%d,"key":%q}`, steps, ms, key)
	},
	tellsFate: true,
}

var everything = dialect{
	echo:        "Echo: %s",
	structured:  asked{"get-structured-content", `{"location":"Chicago"}`, `"temperature":36`},
	fails:       asked{"get-sum", `{"a":"x"}`, "-32602"},
	sampling:    asked{"trigger-sampling-request", `{"prompt":"2+2"}`, "four of course"},
	elicitation: asked{"trigger-elicitation-request", `{}`, "Bo"},
	link:        asked{"trigger-url-elicitation", `{"url":"http://127.0.0.1/open"}`, "completed the URL elicitation"},
	roots:       asked{"get-roots-list", `{}`, "file:///conformance"},
	logs:        asked{"toggle-simulated-logging", `{}`, "Started"},
	quiet:       &asked{"toggle-simulated-logging", `{}`, "Stopped"},
	touch:       []string{"toggle-subscriber-updates", "toggle-subscriber-updates"},
	grow:        asked{"gzip-file-as-resource", `{"name":"%d.gz","data":"data:text/plain,hi"}`, "demo://resource/session"},
	grows:       mcp.Filter{ResourcesListChanged: true},
	tools:       []string{"echo", "get-sum", "trigger-long-running-operation"}, pages: 1,
	resource: "demo://resource/dynamic/text/1", another: "demo://resource/dynamic/text/2",
	read:     asked{"resources/read", `{"uri":"demo://resource/dynamic/text/7"}`, `Resource 7`},
	template: "demo://resource/dynamic/text/{resourceId}", missing: "demo://nothing",
	prompt:    asked{"prompts/get", `{"name":"args-prompt","arguments":{"city":"Bonn"}}`, `weather in Bonn?`},
	completes: asked{"completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"S"}}`, `["Sales","Support"]`},
	slow: func(steps, ms int, _ string) (string, string) {
		return "trigger-long-running-operation", fmt.Sprintf(`{"steps":%d,"duration":%v}`, steps, float64(steps*ms)/1000)
	},
}

// item fills a number into a text that has room for one.
func item(format string, n int) string {
	if strings.Contains(format, "%d") {
		return fmt.Sprintf(format, n)
	}
	return format
}
