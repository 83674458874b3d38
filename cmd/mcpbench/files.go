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

// maxInput bounds what is read from standard input, or a file.
const maxInput = 16 << 20

func readAll(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("%s is longer than %d MiB", name, maxInput>>20)
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
