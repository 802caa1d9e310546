package session

import (
	"context"
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
	"claudebox/internal/session/usergit"
)

// keys are what an agent signs and logs in with by ssh, and never holds. The
// zero value has none.
type keys struct {
	call
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
	keyPatience = 10 * time.Second
	signRule    = "git.sign"
	sshRule     = "ssh.hosts"
)

// add finds the keys that a plan lets be used, and leads the sandbox to the
// agent that uses them. What cannot be had is said.
func (k *keys) add(h *launch.Host, p plan.Plan, id usergit.Identity, access *usergit.Access) {
	if p.Git.Sign == "" && len(p.Git.SSH) == 0 {
		return
	}
	found, file, err := k.look(p, id)
	if err != nil {
		h.Warnings = append(h.Warnings, "ssh keys cannot be used: "+err.Error())
		return
	}
	r := &k.request
	if p.Git.Sign != "" {
		key, file, why := chooseKey(id, found, file)
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
		k.addLogins(h, p, found, access)
	}
	if k.used = r.Rules.Git != nil || len(r.Rules.Hosts) > 0; !k.used {
		return
	}
	if len(found.Held) > 0 {
		r.Agent = k.Facts.Env.Value("SSH_AUTH_SOCK", "")
	}
	r.Dir, r.Socket = h.State, fmt.Sprint(socketName, os.Getpid())
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

// keyFiles are the files of user.signingkey; nil: one cannot be read, or it names
// none.
type keyFiles struct {
	public, private []byte
	fault           error // why private cannot be read
}

// look finds out what a plan needs to know of the user's ssh.
func (k *keys) look(p plan.Plan, id usergit.Identity) (found sshagent.Found, f keyFiles, err error) {
	known := []string{filepath.Join(k.Facts.Home, ".ssh/known_hosts"), knownHosts}
	known = slices.DeleteFunc(known, func(name string) bool {
		_, err := os.Stat(name)
		return err != nil
	})
	if p.Git.Sign != "" {
		f = k.read(id.SigningKey)
	}
	program, err := ownProgram(helperName)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), keyPatience)
		defer cancel()
		found, err = sshagent.Look(ctx, program, sshagent.Question{
			Agent: k.Facts.Env.Value("SSH_AUTH_SOCK", ""), Public: f.public, Private: f.private,
			Known: known, Hosts: p.Git.SSH,
		})
	}
	return found, f, err
}

// read reads what user.signingkey says, which is a public key, or names the
// file of one.
func (k *keys) read(said string) (f keyFiles) {
	if line, literal := literalKey(said); literal || said == "" {
		return keyFiles{public: []byte(line)}
	}
	name := strings.TrimSuffix(k.absolute(said), ".pub")
	f.public, _ = smallfile.Read(name+".pub", maxKeyFile) // the private one will do
	f.private, f.fault = smallfile.Read(name, maxKeyFile)
	return f
}

// literalKey is the public key that user.signingkey is, if it is none of a file.
func literalKey(said string) (line string, literal bool) {
	line, marked := strings.CutPrefix(said, "key::")
	return line, marked || slices.Contains([]string{"ssh", "ecdsa", "sk"}, strings.Split(line, "-")[0])
}

// addLogins adds the keys of the hosts that may be logged in to.
func (k *keys) addLogins(h *launch.Host, p plan.Plan, found sshagent.Found, access *usergit.Access) {
	if len(found.Held) == 0 {
		h.Warnings = append(h.Warnings, "ssh cannot log in: no agent with a key is at SSH_AUTH_SOCK (ssh-add)")
		return
	}
	if !isInside(p, "ssh") {
		h.Warnings = append(h.Warnings, "ssh cannot log in: there is no ssh inside; write `packages: [openssh]` in the profile")
	}
	var lines strings.Builder
	for i, name := range p.Git.SSH {
		known := found.Hosts[i]
		switch {
		case known.Why != "":
			h.Warnings = append(h.Warnings, "ssh cannot log in to "+name+": "+known.Why)
			continue
		case len(known.Keys) == 0:
			h.Warnings = append(h.Warnings,
				"ssh cannot log in to "+name+": it is not in your known_hosts; connect to it once outside")
			continue
		}
		k.request.Rules.Hosts = append(k.request.Rules.Hosts, known.Host)
		access.SSH = append(access.SSH, strings.Split(name, ":")[0])
		lines.WriteString(known.Lines)
		h.Notes = append(h.Notes, unreachable(p, name)...)
	}
	if len(k.request.Rules.Hosts) > 0 {
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

// chooseKey is the key of user.signingkey: held by the user's agent, else with its
// file, when that has no passphrase. why says why there is none.
func chooseKey(id usergit.Identity, found sshagent.Found, f keyFiles) (key sshagent.Key, file []byte, why string) {
	_, literal := literalKey(id.SigningKey)
	public := found.Public
	switch {
	case id.SigningKey == "" || id.SigningKey == "key::":
		return key, nil, "user.signingkey is not set in your git configuration"
	case public.Blob != nil && sshagent.Has(found.Held, public.Key):
		return public.Key, nil, ""
	case literal && public.Why != "":
		return key, nil, "user.signingkey: " + public.Why
	case literal:
		return key, nil, "your ssh agent does not have the key of user.signingkey (ssh-add)"
	}
	without := "your ssh agent does not have the key " + id.SigningKey + " (ssh-add), and its file: "
	switch {
	case f.fault != nil:
		return key, nil, without + diag.Cause(f.fault).Error()
	case found.Private.Why != "":
		return key, nil, without + found.Private.Why
	case sshagent.Has(found.Held, found.Private.Key):
		return found.Private.Key, nil, ""
	}
	return found.Private.Key, f.private, ""
}

// open starts the agent, and takes away the sockets of sessions that were
// killed.
func (k *keys) open() (err error) {
	if !k.used {
		return nil
	}
	r := k.request
	left, _ := filepath.Glob(filepath.Join(r.Dir, socketName+"*"))
	for _, name := range left {
		if conn, err := net.DialTimeout("unix", name, time.Second); err == nil {
			conn.Close()
		} else {
			_ = os.Remove(name)
		}
	}
	r.Tell = k.note
	r.Failed = func(err error) {
		diag.Note(k.caller.Stderr, "the ssh agent of the sandbox cannot be started: "+err.Error())
	}
	if r.Program, err = ownProgram(helperName); err == nil {
		k.process, err = sshagent.Start(r)
	}
	if err != nil {
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

// end ends the agent, and says what it signed.
func (k *keys) end() {
	k.close()
	if k.options.NoReport {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var lines []string
	for use, times := range k.uses {
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
		diag.Note(k.caller.Stderr, line)
	}
}
