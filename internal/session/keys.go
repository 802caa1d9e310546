package session

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/sshagent"
	"claudebox/internal/workspace/gitconfig"
)

// keys are what an agent signs and logs in with by ssh, and never holds. The
// zero value has none.
type keys struct {
	used    bool
	request sshagent.Request
	process *sshagent.Process

	mu   sync.Mutex
	uses map[sshagent.Use]int
}

const (
	agentSocket = "/run/claudebox/ssh-agent" // inside
	knownHosts  = "/etc/ssh/ssh_known_hosts" // likewise
	socketName  = "ssh-agent."               // of those of an instance: the session's process follows
	maxKeyFile  = 64 << 10                   // bytes
	signRule    = "git.sign"
	sshRule     = "ssh.hosts"
)

// addKeys finds the keys that a plan lets be used, and leads the sandbox to the
// agent that uses them. What cannot be had is said.
func (s *Session) addKeys(h *launch.Host, p plan.Plan, id gitconfig.Identity, access *gitconfig.Access) {
	if p.Git.Sign == "" && len(p.Git.SSH) == 0 {
		return
	}
	socket := s.Facts.Env.Value("SSH_AUTH_SOCK", "")
	held, err := sshagent.Held(socket)
	if err != nil {
		socket = ""
	}
	r := &s.keys.request
	if p.Git.Sign != "" {
		key, file, why := s.signingKey(id, held)
		if why != "" {
			h.Warnings = append(h.Warnings, "git cannot sign: "+why)
		} else {
			r.Rules.Git, r.Key = key.Blob, file
			access.SigningKey, access.Signs = key.Line, id.Signs == "true"
			h.Outside = append(h.Outside, launch.Outside{
				Name: "your SSH key " + key.Fingerprint, Hosts: []string{"signatures of git"}, Why: signRule,
			})
			if !isInside(p, "ssh-keygen") {
				h.Warnings = append(h.Warnings, "git cannot sign: there is no ssh-keygen inside; write `packages: [openssh]` in the profile")
			}
		}
	}
	if len(p.Git.SSH) > 0 {
		s.addLogins(h, p, held, access)
	}
	if s.keys.used = r.Rules.Git != nil || len(r.Rules.Hosts) > 0; !s.keys.used {
		return
	}
	r.Agent, r.Dir, r.Socket = socket, s.Instance.Dir, fmt.Sprint(socketName, os.Getpid())
	if r.Key != nil && len(r.Rules.Hosts) == 0 {
		r.Agent = "" // nothing of it is needed
	}
	h.Mounts = append(h.Mounts, launch.Mount{
		Kind: plan.ROBind, Source: filepath.Join(r.Dir, r.Socket), Destination: agentSocket, Why: plan.Base,
	})
	entry := plan.Env{Name: "SSH_AUTH_SOCK", From: plan.FromMade, Why: signRule}
	if r.Rules.Git == nil {
		entry.Why = sshRule
	}
	h.Made = append(h.Made, launch.Variable{Env: entry, Value: agentSocket})
}

// addLogins finds the keys of the hosts that may be logged in to.
func (s *Session) addLogins(h *launch.Host, p plan.Plan, held []sshagent.Key, access *gitconfig.Access) {
	if len(held) == 0 {
		h.Warnings = append(h.Warnings, "ssh cannot log in: no agent with a key is at SSH_AUTH_SOCK (ssh-add)")
		return
	}
	if !isInside(p, "ssh") {
		h.Warnings = append(h.Warnings, "ssh cannot log in: there is no ssh inside; write `packages: [openssh]` in the profile")
	}
	files := []string{filepath.Join(s.Facts.Home, ".ssh/known_hosts"), knownHosts}
	files = slices.DeleteFunc(files, func(name string) bool {
		_, err := os.Stat(name)
		return err != nil
	})
	var lines strings.Builder
	for _, name := range p.Git.SSH {
		host, known, err := sshagent.KnownHost(files, name)
		switch {
		case err != nil:
			h.Warnings = append(h.Warnings, "ssh cannot log in to "+name+": "+err.Error())
			continue
		case len(host.Keys) == 0:
			h.Warnings = append(h.Warnings,
				"ssh cannot log in to "+name+": it is not in your known_hosts; connect to it once outside")
			continue
		}
		s.keys.request.Rules.Hosts = append(s.keys.request.Rules.Hosts, host)
		access.SSH = append(access.SSH, strings.Split(name, ":")[0])
		lines.WriteString(known)
		h.Notes = append(h.Notes, unreachable(p, name)...)
	}
	if hosts := s.keys.request.Rules.Hosts; len(hosts) > 0 {
		h.Outside = append(h.Outside, launch.Outside{
			Name: "the keys of your ssh agent", Hosts: access.SSH, Why: sshRule,
		})
		h.Mounts = append(h.Mounts, launch.Mount{
			Kind: plan.ROData, Source: "known hosts", Destination: knownHosts, Mode: "0444",
			Data: []byte(lines.String()), Why: sshRule,
		})
	}
}

// unreachable says so when the tier does not lead to a host.
func unreachable(p plan.Plan, name string) []string {
	host, port, ported := strings.Cut(name, ":")
	if !ported {
		port = "22"
	}
	switch p.Network.Tier {
	case "none":
		return []string{"ssh cannot log in to " + name + ": there is no network"}
	case launch.ListedTier:
		number, _ := net.LookupPort("tcp", port) // of the profile, which knows what a port is
		allowed, err := hostpattern.ParseList(p.Network.Allow)
		if _, found := allowed.Find(host, number); err == nil && !found {
			return []string{"ssh cannot log in to " + name + ": write " + host + ":" + port + " under `allow`"}
		}
	}
	return nil
}

// signingKey is the key of user.signingkey: held by the user's agent, else with
// its file, when that has no passphrase. why says why there is none.
func (s *Session) signingKey(id gitconfig.Identity, held []sshagent.Key) (key sshagent.Key, file []byte, why string) {
	said, literal := strings.CutPrefix(id.SigningKey, "key::")
	if said == "" {
		return key, nil, "user.signingkey is not set in your git configuration"
	}
	if literal || slices.Contains([]string{"ssh", "ecdsa", "sk"}, strings.Split(said, "-")[0]) {
		key, err := sshagent.ParseKey([]byte(said))
		switch {
		case err != nil:
			return key, nil, "user.signingkey: " + err.Error()
		case !sshagent.Has(held, key):
			return key, nil, "your ssh agent does not have the key of user.signingkey (ssh-add)"
		}
		return key, nil, ""
	}
	name := strings.TrimSuffix(s.absolute(said), ".pub")
	content, err := smallfile.Read(name+".pub", maxKeyFile)
	if err == nil {
		if key, err = sshagent.ParseKey(content); err == nil && sshagent.Has(held, key) {
			return key, nil, ""
		}
	}
	without := "your ssh agent does not have the key " + said + " (ssh-add), and its file: "
	if file, err = smallfile.Read(name, maxKeyFile); err != nil {
		return key, nil, without + diag.Cause(err).Error()
	}
	if key, err = sshagent.ParsePrivate(file); err != nil {
		return key, nil, without + err.Error()
	}
	if sshagent.Has(held, key) {
		file = nil
	}
	return key, file, ""
}

// openKeys starts the agent, and takes away the sockets of sessions that were
// killed.
func (s *Session) openKeys() (err error) {
	if !s.keys.used {
		return nil
	}
	r := s.keys.request
	left, _ := filepath.Glob(filepath.Join(r.Dir, socketName+"*"))
	for _, name := range left {
		if conn, err := net.DialTimeout("unix", name, time.Second); err == nil {
			conn.Close()
		} else {
			_ = os.Remove(name)
		}
	}
	r.Tell = s.keys.note
	r.Failed = func(err error) {
		diag.Note(s.caller.Stderr, "the ssh agent of the sandbox cannot be started: "+err.Error())
	}
	if s.keys.process, err = sshagent.Start(r); err != nil {
		return &diag.Error{Op: "keep your ssh keys outside", Err: diag.Cause(err), Remedy: "look at " + r.Dir}
	}
	return nil
}

func (k *keys) note(u sshagent.Use) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.uses == nil {
		k.uses = map[sshagent.Use]int{}
	}
	k.uses[u]++
}

func (k *keys) close() {
	if k.process != nil {
		k.process.Close()
		k.process = nil
	}
}

// endKeys ends the agent, and says what it signed.
func (s *Session) endKeys() {
	s.keys.close()
	if s.report.silent {
		return
	}
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	var lines []string
	for use, times := range s.keys.uses {
		what := "your SSH key was used to log in to " + use.Host
		switch {
		case use.Git:
			what = "git signed with your SSH key"
		case use.Refused != "":
			what = "your SSH key did not sign: " + use.Refused
		}
		lines = append(lines, fmt.Sprintf("%s (%d)", what, times))
	}
	slices.Sort(lines)
	for _, line := range lines {
		diag.Note(s.caller.Stderr, line)
	}
}
