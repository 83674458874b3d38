package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
)

// profiles are the files that --cpuprofile, --memprofile and --trace name, for
// `go tool pprof` and `go tool trace`.
type profiles struct {
	cpu, mem, trace string

	open []*os.File
}

// start begins what lasts for the run. The files are made at once, so that a
// name that cannot be written is known before anything is sent.
func (p *profiles) start() error {
	if p.cpu != "" {
		f, err := p.create("--cpuprofile", p.cpu)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("--cpuprofile: %w", err)
		}
	}
	if p.trace != "" {
		f, err := p.create("--trace", p.trace)
		if err != nil {
			return err
		}
		if err := trace.Start(f); err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
	}
	return nil
}

func (p *profiles) create(flag, name string) (*os.File, error) {
	f, err := os.Create(name) //nolint:gosec // the user names the file
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	p.open = append(p.open, f)
	return f, nil
}

// stop ends them, writes the heap profile and closes all files.
func (p *profiles) stop() error {
	if p.cpu != "" {
		pprof.StopCPUProfile()
	}
	if p.trace != "" {
		trace.Stop()
	}
	var errs []error
	if p.mem != "" {
		f, err := p.create("--memprofile", p.mem)
		if err == nil {
			runtime.GC() // so that it shows what is in use
			err = pprof.Lookup("heap").WriteTo(f, 0)
		}
		errs = append(errs, err)
	}
	for _, f := range p.open {
		errs = append(errs, f.Close())
	}
	p.open = nil
	return errors.Join(errs...)
}
