package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mcpbench/scenarios"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// serverEntry is the server as the flags name it. Secrets become variables, which are
// returned with their values.
func (f *initFlags) serverEntry() (scenarios.StarterServer, map[string]string, error) {
	out := scenarios.StarterServer{Protocol: f.protocol}
	if f.transport != "auto" {
		out.Transport = f.transport
	}
	secrets := hidden{}
	switch {
	case len(f.urls) > 0:
		out.URL.Text = f.urls[0]
		if scenarios.MaskURL(f.urls[0]) != f.urls[0] {
			out.URL = secrets.hide("", "SERVER_URL", f.urls[0])
		}
	case f.mcpConfig != "":
		file, err := f.relative(f.mcpConfig)
		if err != nil {
			return out, nil, usage("--mcp-config %s: %w", f.mcpConfig, err)
		}
		out.File, out.FileEntry = file, f.server
	case len(f.command) > 0:
		out.Command, out.Args = f.command[0], secrets.arguments(f.command[1:])
	default:
		out.Embedded = "http"
	}
	for _, text := range f.headers {
		h, err := scenarios.ParseHeader(text)
		if err != nil {
			return out, nil, usage("-H: %w", err)
		}
		out.Headers = append(out.Headers, scenarios.StarterHeader{Name: h.Name, Value: secrets.header(h)})
	}
	if f.bearerEnv != "" {
		out.Headers = slices.DeleteFunc(out.Headers, func(h scenarios.StarterHeader) bool { return strings.EqualFold(h.Name, "Authorization") })
		out.Headers = append(out.Headers, scenarios.StarterHeader{
			Name: "Authorization", Value: scenarios.StarterText{Text: "Bearer ", Variable: f.bearerEnv},
		})
	}
	return out, secrets, nil
}

// relative is a file as the scenario has to name it: from its own folder.
func (f *initFlags) relative(file string) (string, error) {
	if f.out == "-" || filepath.IsAbs(file) {
		return file, nil
	}
	from, err := filepath.Abs(dirOf(f.out))
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	name, err := filepath.Rel(from, to)
	if err != nil { // on another volume
		return to, nil //nolint:nilerr // the whole name does as well
	}
	return filepath.ToSlash(name), nil
}

// hidden are the secrets of the flags, by the names of the variables that stand for
// them in the scenario.
type hidden map[string]string

var notInVariable = regexp.MustCompile(`[^A-Za-z0-9]+`)

// hide returns prefix and a variable for what comes after it.
func (h hidden) hide(prefix, name, secret string) scenarios.StarterText {
	name = strings.Trim(strings.ToUpper(notInVariable.ReplaceAllString(name, "_")), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "SECRET_" + name
	}
	variable := name
	for i := 2; ; i++ {
		if old, taken := h[variable]; !taken || old == secret {
			break
		}
		variable = fmt.Sprintf("%s_%d", name, i)
	}
	h[variable] = secret
	return scenarios.StarterText{Text: prefix, Variable: variable}
}

// scheme is how credentials begin (RFC 9110 §11.4).
var scheme = regexp.MustCompile(`(?i)^(bearer|basic|token|digest) +`)

// header returns the value of a header: the scheme and a variable when it is secret.
func (h hidden) header(v scenarios.HeaderValue) scenarios.StarterText {
	prefix := scheme.FindString(v.Value)
	if prefix == "" && !scenarios.SecretName(v.Name) {
		return scenarios.StarterText{Text: v.Value}
	}
	return h.hide(prefix, v.Name, v.Value[len(prefix):])
}

// arguments returns the arguments of a command, with variables for those that look secret.
func (h hidden) arguments(args []string) []scenarios.StarterText {
	masked := scenarios.MaskArguments(args)
	out := make([]scenarios.StarterText, len(args))
	for i, arg := range args {
		name, value, assigned := strings.Cut(arg, "=")
		header, rest, isHeader := strings.Cut(arg, ":")
		switch {
		case masked[i] == arg:
			out[i].Text = arg
		case assigned && scenarios.SecretName(strings.TrimLeft(name, "-")):
			out[i] = h.hide(name+"=", name, value)
		case isHeader && scenarios.SecretName(header):
			v := h.header(scenarios.HeaderValue{Name: header, Value: strings.TrimSpace(rest)})
			out[i] = scenarios.StarterText{Text: header + ": " + v.Text, Variable: v.Variable}
		case i > 0 && strings.HasPrefix(args[i-1], "-") && scenarios.SecretName(strings.TrimLeft(args[i-1], "-")):
			out[i] = h.hide("", args[i-1], arg)
		default:
			out[i] = h.hide("", fmt.Sprintf("SERVER_ARGUMENT_%d", i+1), arg)
		}
	}
	return out
}
