package mcp

import "sync"

// processes are the stdio servers that live, of all transports of this
// program: when it must end at once there is nobody left to ask each session.
var processes = struct {
	mu   sync.Mutex
	live map[*process]struct{}
}{live: map[*process]struct{}{}}

func register(p *process) {
	processes.mu.Lock()
	defer processes.mu.Unlock()
	processes.live[p] = struct{}{}
}

func unregister(p *process) {
	processes.mu.Lock()
	defer processes.mu.Unlock()
	delete(processes.live, p)
}

// KillProcesses kills every stdio server that this program has started and that
// still runs, with its process group. It is for a program that is about to end
// without closing its sessions; they fail with *ExitError. Safe for concurrent use.
func KillProcesses() {
	processes.mu.Lock()
	defer processes.mu.Unlock()
	for p := range processes.live {
		kill(p.cmd.Process)
	}
}
