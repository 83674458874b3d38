package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestDocumentedFlags compares the table of docs/cli.md with the flags of run:
// names, defaults and which have an environment variable.
func TestDocumentedFlags(t *testing.T) {
	data, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ env, value string }
	documented := map[string]row{}
	line := regexp.MustCompile("(?m)^\\| `--([a-z-]+)`(?:, `-[^|]*`)? \\|([^|]*)\\|([^|]*)\\|")
	for _, m := range line.FindAllStringSubmatch(string(data), -1) {
		documented[m[1]] = row{strings.TrimSpace(m[2]), strings.TrimSpace(m[3])}
	}
	notYet := regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(section(t, string(data), "Known but not supported yet", "\n\n"), -1)
	var refused []string
	for _, m := range notYet {
		refused = append(refused, m[1])
	}
	newRunCommand(streams{}).Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		if f.Annotations[notYetAnnotation] != nil {
			if !slices.Contains(refused, f.Name) {
				t.Errorf("--%s is refused, but docs/cli.md does not list it", f.Name)
			}
			return
		}
		if slices.Contains([]string{"memprofile", "trace"}, f.Name) {
			return // in the line of --cpuprofile
		}
		doc, ok := documented[f.Name]
		if !ok {
			t.Errorf("--%s is not in the table of docs/cli.md", f.Name)
			return
		}
		delete(documented, f.Name)
		if hasEnv := f.Annotations[envAnnotation] != nil; hasEnv != (doc.env == "yes") {
			t.Errorf("--%s: docs/cli.md says environment %q, the flag has one: %v", f.Name, doc.env, hasEnv)
		}
		if regexp.MustCompile(`^[0-9a-z]+$`).MatchString(doc.value) && !slices.Contains([]string{"off", "all"}, doc.value) &&
			strings.TrimSuffix(f.DefValue, "s") != strings.TrimSuffix(doc.value, "s") {
			t.Errorf("--%s: docs/cli.md says default %q, the flag's is %q", f.Name, doc.value, f.DefValue)
		}
	})
	for name := range documented {
		t.Errorf("docs/cli.md has --%s, run has not", name)
	}
}

// TestDocumentedFlagsOfOtherCommands looks for each flag of these commands in its
// section of docs/cli.md.
func TestDocumentedFlagsOfOtherCommands(t *testing.T) {
	data, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*cobra.Command{newInitCommand(streams{}), newCheckCommand(streams{})} {
		text := section(t, string(data), "\n## `"+cmd.Name()+"`\n", "\n## ")
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !strings.Contains(text, "--"+f.Name) && !strings.Contains(text, "`-"+f.Shorthand+"`") {
				t.Errorf("--%s is not in the section on %s", f.Name, cmd.Name())
			}
		})
	}
}

func section(t *testing.T, text, from, to string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, from)
	if !ok {
		t.Fatalf("no %q", from)
	}
	out, _, _ := strings.Cut(after, to)
	return out
}
