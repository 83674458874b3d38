package mcp

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup keeps console signals meant for us away from the process.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminate does nothing: Windows has no signal that asks a process to end.
func terminate(*os.Process) {}

// kill ends the process.
func kill(p *os.Process) {
	if err := p.Kill(); err != nil {
		return // gone already
	}
}
