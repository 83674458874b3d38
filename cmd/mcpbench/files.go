package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios"
)

type flagType = pflag.Flag

// maxInput bounds what is read from standard input.
const maxInput = 16 << 20

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("standard input is longer than %d MiB", maxInput>>20)
	}
	return data, nil
}

// withNearFile adds, to the error of a file that does not exist, the nearest
// name in its folder.
func withNearFile(name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, rerr := os.ReadDir(dirOf(name))
	if rerr != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return fmt.Errorf("%w%s", err, nearest.DidYouMean(filepath.Base(name), names))
}

func dirOf(name string) string { return filepath.Dir(name) }

func mapKeys(m map[string]string) iter.Seq[string] { return maps.Keys(m) }

// maskArguments hides what looks secret in the arguments of a command: the
// value of an option with such a name, of a "Name: value" header, and what a
// URL holds of secrets.
func maskArguments(args []string) []string {
	out := make([]string, len(args))
	hide := false // the argument is the value of a secret option
	for i, a := range args {
		option := strings.HasPrefix(a, "-")
		name, _, assigned := strings.Cut(a, "=")
		header, _, isHeader := strings.Cut(a, ":")
		switch {
		case hide && !option:
			out[i] = "***"
		case assigned && scenarios.SecretName(strings.TrimLeft(name, "-")):
			out[i] = name + "=***"
		case isHeader && scenarios.SecretName(header):
			out[i] = header + ": ***"
		default:
			out[i] = scenarios.MaskURL(a)
		}
		hide = option && !assigned && scenarios.SecretName(strings.TrimLeft(a, "-"))
	}
	return out
}

// maskNamedURL is scenarios.MaskURL for URL and NAME=URL.
func maskNamedURL(text string) string {
	if name, target, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(name, ":/?") {
		return name + "=" + scenarios.MaskURL(target)
	}
	return scenarios.MaskURL(text)
}

// terminalWidth is the width of a terminal, 0 for anything else.
func terminalWidth(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
