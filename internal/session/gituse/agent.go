package gituse

import (
	"fmt"
	"io"
	"slices"
	"sync"

	"claudebox/internal/diag"
	"claudebox/internal/linux/aside"
	"claudebox/internal/secret/sshagent"
	"claudebox/internal/session/live"
)

// Agent is the agent that signs for the sandbox. The zero value is none.
type Agent struct {
	process *sshagent.Process
	mu      sync.Mutex
	uses    map[sshagent.Use]int
	Events  *live.Events // gets each use
}

// Start starts the agent, if r has a socket. An agent that cannot be started later, when it is needed, is reported on
// tell.
func (k *Agent) Start(r sshagent.Request, tell io.Writer) (err error) {
	if r.Socket == "" {
		return nil
	}
	k.uses, r.Tell = map[sshagent.Use]int{}, k.note
	r.Failed = func(err error) {
		diag.Note(tell, "the ssh agent of the sandbox cannot be started: "+err.Error())
	}
	if r.Program, err = aside.Program(aside.HelperProgram); err == nil {
		k.process, err = sshagent.Start(r)
	}
	if err != nil {
		return diag.Wrap("keep your ssh keys outside", err, "make "+r.Dir+" writable for you")
	}
	return nil
}

// note counts a use of a key.
func (k *Agent) note(u sshagent.Use) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.uses[u]++
	k.Events.Add(live.Event{Kind: live.Used, What: signedText(u)})
}

// Close ends the agent, if there is one.
func (k *Agent) Close() {
	if k.process != nil {
		k.process.Close()
	}
}

// Told returns the lines for a person about what the agent signed and refused.
func (k *Agent) Told() (lines []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for use, times := range k.uses {
		lines = append(lines, fmt.Sprintf("%s (%d)", signedText(use), times))
	}
	slices.Sort(lines)
	return lines
}

// signedText says what a key was used for, or not.
func signedText(use sshagent.Use) string {
	switch {
	case use.Git:
		return "git signed with your SSH key"
	case use.Refused != "":
		return "your SSH key did not sign: " + use.Refused
	}
	return "your SSH key was used to log in to " + use.Host
}
