package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpbench/mcp"
	"mcpbench/scenarios"
)

// toolSteps writes the tools: those that may be used and answer, and the others
// commented out with the reason.
func (v *survey) toolSteps(ctx context.Context) ([]scenarios.StarterStep, error) {
	var out []scenarios.StarterStep
	written, left := 0, 0
	all := slices.Concat(v.offer.Tools, v.more)
	v.tools.all = len(all)
	for _, raw := range all {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if written == initTools {
			left++
			continue
		}
		written++
		var t tool
		if err := json.Unmarshal(raw, &t); err != nil {
			v.tools.skip("not understood")
			out = append(out, note("An entry of tools/list is not understood: "+clean(err.Error())))
			continue
		}
		out = append(out, v.toolStep(ctx, &t))
	}
	if left > 0 {
		text := fmt.Sprintf("beyond the first %d", initTools)
		for range left {
			v.tools.skip(text)
		}
		out = append(out, note(fmt.Sprintf("%s more not written; mcpbench discover lists them.", count(left, "tool"))))
	}
	return out, nil
}

// note is a comment among steps.
func note(text string) scenarios.StarterStep {
	return scenarios.StarterStep{Comments: []string{text}, Off: true}
}

func (v *survey) toolStep(ctx context.Context, t *tool) scenarios.StarterStep {
	step := scenarios.StarterStep{Method: "tools/call", Off: true}
	if text := firstSentence(t.Description); text != "" {
		step.Comments = []string{t.Name + ": " + text}
	}
	off := func(counted, reason string) scenarios.StarterStep {
		v.tools.skip(counted)
		step.Comments = append(step.Comments, "Skipped: "+reason)
		return step
	}
	if t.Name == "" || len(t.Name) > initName {
		step.Method = ""
		return off("with a name of no use", fmt.Sprintf("a tool whose name has %d bytes.", len(t.Name)))
	}
	arguments, err := scenarios.SampleArguments(t.InputSchema)
	if err != nil {
		arguments = []byte("{}")
	}
	step.Params = fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, asJSON(t.Name), arguments)
	if full := v.room(step.Params); full != nil {
		step.Method = ""
		return off("too large", clean(t.Name)+": "+full.Error()+".")
	}
	switch {
	case !t.readOnly() && !v.flags.allowWrites:
		return off("not marked read-only", "not marked read-only; init --allow-writes uses it.")
	case err != nil:
		return off("without arguments made", "no arguments could be made from its input schema: "+clean(firstLineOf(err))+".")
	case t.Execution.TaskSupport == "required":
		return off("only to be run as tasks", "it is to be run as a task.")
	}
	v.tools.tried++
	a := v.try(ctx, "tools/call", step.Params)
	if a.failed != "" {
		return off("failed when tried", a.failed)
	}
	if a.took >= time.Second {
		step.Comments = append(step.Comments, fmt.Sprintf("It took %.1f s when it was tried.", a.took.Seconds()))
	}
	step.Off = false
	v.tools.live++
	return step
}

func firstLineOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, ": give the arguments with -a")
}

// firstSentence is the first sentence of a description, or its first line.
func firstSentence(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if at := strings.Index(line, ". "); at > 0 {
		line = line[:at+1]
	}
	return strings.TrimSpace(line)
}

// asJSON is for texts and maps of texts, which always are.
func asJSON(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// resourceSteps reads the first resources.
func (v *survey) resourceSteps(ctx context.Context) ([]scenarios.StarterStep, error) {
	var out []scenarios.StarterStep
	v.resources.all = len(v.offer.Resources)
	for i, raw := range v.offer.Resources {
		var r struct{ URI, Name string }
		if i >= initResources {
			v.resources.skip(fmt.Sprintf("beyond the first %d", initResources))
			continue
		}
		if err := json.Unmarshal(raw, &r); err != nil || r.URI == "" || len(r.URI) > initName {
			v.resources.skip("without a URI of use")
			continue
		}
		step := scenarios.StarterStep{Method: "resources/read", Params: fmt.Appendf(nil, `{"uri":%s}`, asJSON(r.URI))}
		if r.Name != "" {
			step.Comments = []string{"Resource " + r.Name}
		}
		if a := v.try(ctx, step.Method, step.Params); a.failed != "" {
			v.resources.skip("failed when tried")
			step.Off, step.Comments = true, append(step.Comments, "Skipped: "+a.failed)
		} else {
			v.resources.live++
		}
		out = append(out, step)
	}
	for i, raw := range v.offer.ResourceTemplates {
		var r struct{ URITemplate, Name string }
		if i >= initResources || json.Unmarshal(raw, &r) != nil || r.URITemplate == "" || len(r.URITemplate) > initName {
			continue
		}
		out = append(out, scenarios.StarterStep{
			Comments: []string{"A template: put in what stands in braces, or an expression."}, Off: true,
			Method: "resources/read", Params: fmt.Appendf(nil, `{"uri":%s}`, asJSON(r.URITemplate)),
		})
	}
	return out, nil
}

type promptEntry struct {
	Name        string
	Description string
	Arguments   []struct {
		Name     string
		Required bool
	}
}

// promptSteps gets the first prompts and completes their arguments.
func (v *survey) promptSteps(ctx context.Context) ([]scenarios.StarterStep, error) {
	var out []scenarios.StarterStep
	v.prompts.all = len(v.offer.Prompts)
	for i, raw := range v.offer.Prompts {
		if i >= initPrompts {
			v.prompts.skip(fmt.Sprintf("beyond the first %d", initPrompts))
			continue
		}
		var p promptEntry
		if err := json.Unmarshal(raw, &p); err != nil || p.Name == "" || len(p.Name) > initName {
			v.prompts.skip("with a name of no use")
			continue
		}
		out = append(out, v.promptStep(ctx, &p)...)
	}
	return out, nil
}

func (v *survey) promptStep(ctx context.Context, p *promptEntry) []scenarios.StarterStep {
	step := scenarios.StarterStep{Method: "prompts/get"}
	if text := firstSentence(p.Description); text != "" {
		step.Comments = []string{p.Name + ": " + text}
	}
	arguments := map[string]string{}
	var completions []scenarios.StarterStep
	for _, a := range p.Arguments {
		if !a.Required || a.Name == "" || len(a.Name) > initName { // the scenario has no such names
			continue
		}
		value, params := v.complete(ctx, p.Name, a.Name, arguments)
		arguments[a.Name] = value
		if params != nil && v.room(params) == nil {
			completions = append(completions, scenarios.StarterStep{Method: "completion/complete", Params: params})
		}
	}
	step.Params = fmt.Appendf(nil, `{"name":%s}`, asJSON(p.Name))
	if len(arguments) > 0 {
		step.Params = fmt.Appendf(step.Params[:len(step.Params)-1], `,"arguments":%s}`, asJSON(arguments))
	}
	var reason string
	if err := v.room(step.Params); err != nil {
		reason, step.Method = err.Error(), ""
	} else {
		reason = v.try(ctx, step.Method, step.Params).failed
	}
	if reason != "" {
		v.prompts.skip("failed when tried")
		step.Off, step.Comments = true, append(step.Comments, "Skipped: "+reason)
	} else {
		v.prompts.live++
	}
	return append([]scenarios.StarterStep{step}, completions...)
}

// complete asks for what an argument of a prompt may be. The value is the first
// proposal, else a made-up one; params, of the request, are nil when there was none.
func (v *survey) complete(ctx context.Context, prompt, argument string, known map[string]string) (value string, params []byte) {
	const made = "test"
	if !v.info.Declares("completion/complete") || v.info.Version == mcp.V20241105 {
		return made, nil
	}
	params = fmt.Appendf(nil, `{"ref":{"type":"ref/prompt","name":%s},"argument":{"name":%s,"value":""}}`, asJSON(prompt), asJSON(argument))
	if len(known) > 0 && v.info.Version >= mcp.V20250618 { // which brought the context
		params = fmt.Appendf(params[:len(params)-1], `,"context":{"arguments":%s}}`, asJSON(known))
	}
	a := v.try(ctx, "completion/complete", params)
	var result struct {
		Completion struct{ Values []string }
	}
	if a.failed != "" {
		return made, nil
	}
	if json.Unmarshal(a.result, &result) == nil && len(result.Completion.Values) > 0 && len(result.Completion.Values[0]) <= initName {
		return result.Completion.Values[0], params
	}
	return made, params
}
