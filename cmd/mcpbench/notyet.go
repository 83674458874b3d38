package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const notYetAnnotation = "mcpbench_not_supported_yet"

// notYetCommands are the commands whose names are taken but that do nothing
// yet. They are hidden, and say so when called.
func notYetCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, name := range []string{
		"report", "compare", "query", "merge", "record", "agent", "annotate",
	} {
		out = append(out, &cobra.Command{
			Use: name, Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error { return usage("not supported yet: mcpbench %s", name) },
		})
	}
	return out
}

// notYetFlag adds a flag whose name is taken but that does nothing yet. Its use
// is an error, never ignored.
func notYetFlag(fs *pflag.FlagSet, name string, isBool bool) {
	if isBool {
		fs.Bool(name, false, "not supported yet")
	} else {
		fs.String(name, "", "not supported yet")
	}
	f := fs.Lookup(name)
	f.Hidden = true
	f.Annotations = map[string][]string{notYetAnnotation: {"true"}}
}

// refuseNotYet returns an error that names the flags in use that do nothing yet.
func refuseNotYet(fs *pflag.FlagSet) error {
	var used []string
	fs.Visit(func(f *pflag.Flag) {
		if f.Annotations[notYetAnnotation] != nil {
			used = append(used, "--"+f.Name)
		}
	})
	if len(used) > 0 {
		return usage("not supported yet: %s", strings.Join(used, ", "))
	}
	return nil
}

// fromEnvironment sets each flag that was not given from MCPBENCH_<FLAG>, with
// dashes as underscores, when that variable is set and not empty. Lists take
// one value. command says that a server's command was given.
func fromEnvironment(fs *pflag.FlagSet, command bool, env func(string) (string, bool)) error {
	targetGiven := command || fs.Changed("url") || fs.Changed("mcp-config")
	var err error
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed || err != nil || f.Annotations[envAnnotation] == nil {
			return
		}
		if targetGiven && slices.Contains([]string{"url", "mcp-config", "server"}, f.Name) {
			return // the command line names another server, in whatever way
		}
		name := "MCPBENCH_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := env(name); ok && v != "" { // an empty variable counts as none
			if e := fs.Set(f.Name, v); e != nil {
				err = usage("environment variable %s: %w", name, e)
				return
			}
			f.Annotations[envAnnotation] = []string{name}
		}
	})
	return err
}

const envAnnotation = "mcpbench_environment"

// withEnv marks flags that may also come from the environment.
func withEnv(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f := fs.Lookup(name)
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[envAnnotation] = []string{""}
	}
}

// source says where a flag's value came from: a flag, a variable, or "".
func source(f *pflag.Flag) string {
	switch {
	case !f.Changed:
		return ""
	case len(f.Annotations[envAnnotation]) == 1 && f.Annotations[envAnnotation][0] != "":
		return f.Annotations[envAnnotation][0]
	}
	return "--" + f.Name
}
