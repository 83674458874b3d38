//go:build unix

package mcp

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes the process the leader of a new process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the process group to end. A group that is gone is what we want.
func terminate(p *os.Process) { signalGroup(p, syscall.SIGTERM) }

// kill ends the process group.
func kill(p *os.Process) { signalGroup(p, syscall.SIGKILL) }

func signalGroup(p *os.Process, s syscall.Signal) {
	if err := syscall.Kill(-p.Pid, s); err != nil {
		return // gone already
	}
}
