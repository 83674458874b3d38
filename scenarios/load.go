package scenarios

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// LoadOptions say what a scenario may read beside its own text. The zero value
// gives it no variables and the files of the current folder.
type LoadOptions struct {
	// Env looks up environment variables, for ${NAME} and for what child
	// processes inherit; nil: none is set.
	Env func(name string) (string, bool)
	// Vars replace entries of vars:, as --var does. A value is read as if it
	// stood in the file without quotes.
	Vars map[string]string
	// Dir is the folder that relative names of files are relative to; "" is
	// the current one.
	Dir string
	// ReadFile reads the files that the scenario names; nil: os.ReadFile.
	ReadFile func(name string) ([]byte, error)
	// OpenFile opens the files of rows that the scenario names; nil: os.Open.
	OpenFile func(name string) (fs.File, error)
	// Input answers ${input:ID} of an editor's configuration when the
	// environment has no MCPBENCH_INPUT_ID; nil: such an input is an error.
	Input func(id string) (string, error)
	// Thorough makes Load look also for the faults that Compile would find, when it
	// has found some: in other files, and in what nothing can be added to any more.
	Thorough bool
}

func (o *LoadOptions) lookup(name string) (string, bool) {
	if o.Env == nil {
		return "", false
	}
	return o.Env(name)
}

func (o *LoadOptions) path(name string) string {
	if filepath.IsAbs(name) || o.Dir == "" {
		return name
	}
	return filepath.Join(o.Dir, name)
}

func (o *LoadOptions) read(name string) ([]byte, error) {
	if o.ReadFile != nil {
		return o.ReadFile(o.path(name))
	}
	return readFile(o.path(name))
}

// maxFile bounds a file that is read whole.
const maxFile = 64 << 20

// readFile reads a file that a scenario names. A device or a pipe may have no end, or
// no beginning.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // it says what and where
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder", name)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", name)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has more than %d MiB", name, maxFile>>20)
	}
	f, err := os.Open(name) //nolint:gosec // the files that the user names
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what and where
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxFile { // some files of the kernel have no size
		return nil, fmt.Errorf("%s has more than %d MiB", name, maxFile>>20)
	}
	return data, nil
}

// Scenario is a scenario as written, with variables replaced and flags applied.
// It is not safe for concurrent use.
type Scenario struct {
	source  string // file name, as in messages
	options LoadOptions
	src     *syntax.Source
	root    *syntax.Node
	file    *grammar.File
	later   Problems
	// ownProtocols are versions that servers pin themselves against a flag.
	ownProtocols []*syntax.Node
	// partly tells that groups were left out, so that what they use is used by none.
	partly bool
	// editorSecrets are what compiling found in the files of editors, and by env()
	// in variables whose names say so.
	editorSecrets []string
}

// Load reads a scenario from data; name stands for it in messages. Every fault
// of the file is found at once: the error is then of type Problems.
func Load(name string, data []byte, o LoadOptions) (sc *Scenario, err error) {
	src, root := syntax.Parse(name, data)
	if root == nil {
		return nil, src.Problems()
	}
	s := &Scenario{source: name, options: o, src: src, root: root}
	if root.Kind == syntax.Map {
		s.include()
		if faults := src.Problems(); len(faults) > 0 {
			return nil, faults // what is missing would be told of everything that needs it
		}
	}
	src.Expand(root, "", o.lookup)
	s.applyVars(o.Vars)
	if faults := s.examine(); len(faults) > 0 {
		defer func() { err = s.quiet(err) }()
		if o.Thorough {
			if _, err := s.Compile(); err != nil {
				return nil, err // the same, and those that only a whole look finds
			}
		}
		return nil, faults
	}
	return s, nil
}

// quiet hides secrets in the texts of faults: what they are about may have come from
// the environment.
func (s *Scenario) quiet(err error) error {
	faults, ok := errors.AsType[Problems](err)
	if !ok {
		return err
	}
	m := s.Masker()
	for i := range faults {
		faults[i].Message = m.Text(faults[i].Message)
	}
	return faults
}

// examine decodes the tree again and returns all its faults. A missing server
// is none yet: a flag may give one.
func (s *Scenario) examine() Problems {
	s.file, s.later = grammar.Decode(s.src, s.root)
	c := newCompiler(s)
	c.loading = true
	c.program()
	faults := s.src.Problems()
	s.src.Reset()
	return faults
}

func (s *Scenario) applyVars(vars map[string]string) {
	names := make([]string, 0, len(vars))
	for name := range vars {
		names = append(names, name)
	}
	slices.Sort(names)
	known := s.root.Lookup("vars")
	for _, name := range names {
		node := syntax.NewPlain(vars[name], "--var")
		if known.Lookup(name) == nil {
			s.src.Fault(node, -1, "vars", "the scenario has no variable %q%s", name, nearest.DidYouMean(name, known.Keys()))
			continue
		}
		known.Set(name, node)
	}
}

// Name returns the scenario's name: that in the file, or the file's own without
// its ending.
func (s *Scenario) Name() string {
	if s.file.Name != "" {
		return s.file.Name
	}
	name := filepath.Base(s.source)
	for _, end := range []string{".yaml", ".yml", ".mcpbench"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// Compile checks the scenario as a whole, reads the editor files it names and
// returns the program. The error is of type Problems.
func (s *Scenario) Compile() (*Program, error) {
	s.file, s.later = grammar.Decode(s.src, s.root)
	c := newCompiler(s)
	p := c.program()
	faults := s.src.Problems()
	s.src.Reset()
	if len(faults) > 0 {
		return nil, faults
	}
	return p, nil
}
