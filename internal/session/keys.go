package session

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/secret/sshagent"
	"claudebox/internal/session/live"
	"claudebox/internal/session/usergit"
)

const (
	agentSocket = "/run/claudebox/ssh-agent" // inside
	knownHosts  = "/etc/ssh/ssh_known_hosts" // inside, and on the host
	socketName  = "ssh-agent."               // prefix of an instance's sockets; the id of the session's process follows
	maxKeyFile  = 64 << 10                   // bytes
	keyPatience = 10 * time.Second
	signRule    = "git.sign"
	sshRule     = "ssh.hosts"
)

// letKeys finds the keys that the plan lets git sign with and ssh log in with, and mounts the socket of the agent that
// uses them. The keys themselves never enter. What cannot be used is a warning.
func (made *gitPart) letKeys(in inputs, id usergit.Identity) {
	wanted := in.plan.Git
	if wanted.Sign == "" && len(wanted.SSH) == 0 {
		return
	}
	found, file, err := lookForKeys(in, id)
	if err != nil {
		made.warn("ssh keys cannot be used: " + err.Error())
		return
	}
	if wanted.Sign != "" {
		made.sign(in.inside, id, found, file)
	}
	if len(wanted.SSH) > 0 {
		made.logIn(in, found)
	}
	r := &made.keys
	if r.Rules.Git == nil && len(r.Rules.Hosts) == 0 {
		return
	}
	if len(found.Held) > 0 && (r.Key == nil || len(r.Rules.Hosts) > 0) {
		r.Agent = in.Facts.Env.Value("SSH_AUTH_SOCK", "")
	}
	r.Dir, r.Socket = in.Instance.Dir, fmt.Sprint(socketName, os.Getpid())
	made.mount(launch.Mount{
		Kind: plan.ROBind, Source: filepath.Join(r.Dir, r.Socket), Destination: agentSocket, Why: plan.Base,
	})
	why := signRule
	if r.Rules.Git == nil {
		why = sshRule
	}
	made.set("SSH_AUTH_SOCK", agentSocket, why)
}

// keyFiles are the contents of the files of user.signingkey; nil: a file cannot be read, or none is named.
type keyFiles struct {
	public, private []byte
	fault           error // why private cannot be read
}

// lookForKeys has claudebox's helper look at the keys in the user's ssh agent, at the key for signing, and at the
// known hosts among those of the plan.
func lookForKeys(in inputs, id usergit.Identity) (found sshagent.Found, f keyFiles, err error) {
	known := slices.DeleteFunc([]string{filepath.Join(in.Facts.Home, ".ssh/known_hosts"), knownHosts},
		func(name string) bool {
			_, err := os.Stat(name)
			return err != nil
		})
	if in.plan.Git.Sign != "" {
		f = readKey(in.call, id.SigningKey)
	}
	program, err := ownProgram(helperProgram)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), keyPatience)
		defer cancel()
		found, err = sshagent.AskKeys(ctx, program, sshagent.Question{
			Agent: in.Facts.Env.Value("SSH_AUTH_SOCK", ""), Public: f.public, Private: f.private,
			Known: known, Hosts: in.plan.Git.SSH,
		})
	}
	return found, f, err
}

// readKey reads the key in user.signingkey, which is a public key or the name of a file with one.
func readKey(c call, signingKey string) (f keyFiles) {
	if line, literal := literalKey(signingKey); literal || signingKey == "" {
		return keyFiles{public: []byte(line)}
	}
	name := strings.TrimSuffix(c.absolute(signingKey), ".pub")
	f.public, _ = smallfile.Read(name+".pub", maxKeyFile) // may be missing: the private key will do
	f.private, f.fault = smallfile.Read(name, maxKeyFile)
	return f
}

// literalKey returns user.signingkey without "key::", and reports whether it is a public key, not the name of a file.
func literalKey(signingKey string) (line string, literal bool) {
	line, marked := strings.CutPrefix(signingKey, "key::")
	return line, marked || slices.Contains([]string{"ssh", "ecdsa", "sk"}, strings.Split(line, "-")[0])
}

// sign adds the key that git signs with.
func (made *gitPart) sign(inside *view.View, id usergit.Identity, found sshagent.Found, file keyFiles) {
	key, private, why := chooseKey(id, found, file)
	if why != "" {
		made.warn("git cannot sign: " + why)
		return
	}
	made.keys.Rules.Git, made.keys.Key = key.Blob, private
	made.access.SigningKey, made.access.Signs = key.Line, id.Signs == "true"
	made.listOutside("your SSH key "+key.Fingerprint, []string{"signatures of git"}, signRule)
	if inside.Find("ssh-keygen") == "" {
		made.warn("git cannot sign: there is no ssh-keygen inside; write `packages: [openssh]` in the profile")
	}
}

// logIn adds the hosts that ssh may log in to, with their public keys.
func (made *gitPart) logIn(in inputs, found sshagent.Found) {
	p := in.plan
	if len(found.Held) == 0 {
		made.warn("ssh cannot log in: no agent with a key is at SSH_AUTH_SOCK (ssh-add)")
		return
	}
	if in.inside.Find("ssh") == "" {
		made.warn("ssh cannot log in: there is no ssh inside; write `packages: [openssh]` in the profile")
	}
	var lines strings.Builder
	for i, name := range p.Git.SSH {
		known := found.Hosts[i]
		switch {
		case known.Why != "":
			made.warn("ssh cannot log in to " + name + ": " + known.Why)
			continue
		case len(known.Keys) == 0:
			made.warn("ssh cannot log in to " + name + ": it is not in your known_hosts; connect to it once outside")
			continue
		}
		made.keys.Rules.Hosts = append(made.keys.Rules.Hosts, known.Host)
		made.access.SSH = append(made.access.SSH, strings.Split(name, ":")[0])
		lines.WriteString(known.Lines)
		made.note(unreachable(p, name)...)
	}
	if len(made.access.SSH) > 0 {
		made.listOutside("the keys of your ssh agent", made.access.SSH, sshRule)
		made.mount(launch.Mount{
			Kind: plan.ROData, Source: "known hosts", Destination: knownHosts, Mode: "0444",
			Data: []byte(lines.String()), Why: sshRule,
		})
	}
}

// unreachable returns a note if the tier does not let ssh reach the host, else nil.
func unreachable(p plan.Plan, name string) []string {
	host, port, ported := strings.Cut(name, ":")
	if !ported {
		port = "22"
	}
	number, _ := net.LookupPort("tcp", port) // the profile was checked: this is a port
	switch {
	case reaches(p.Network, host, number):
		return nil
	case p.Network.Tier == profile.TierNone:
		return []string{"ssh cannot log in to " + name + ": there is no network"}
	}
	return []string{"ssh cannot log in to " + name + ": write " + host + ":" + port + " under `allow`"}
}

// chooseKey returns the key of user.signingkey. file is nil if the user's agent holds the key, else it is the content
// of the private key's file, which has no passphrase. why says why there is no key; empty: there is one.
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

// keyAgent is the agent that signs for the sandbox. The zero value is none.
type keyAgent struct {
	process *sshagent.Process
	mu      sync.Mutex
	uses    map[sshagent.Use]int
	events  *live.Events
}

// start starts the agent, if r has a socket, and removes the sockets of sessions that were killed. An agent that
// cannot be started later, when it is needed, is reported on tell.
func (k *keyAgent) start(r sshagent.Request, tell io.Writer) (err error) {
	if r.Socket == "" {
		return nil
	}
	if dir, err := os.Open(r.Dir); err == nil { // else it cannot be listened there, which is told
		removeLeft(dir, socketName)
		dir.Close()
	}
	k.uses, r.Tell = map[sshagent.Use]int{}, k.note
	r.Failed = func(err error) {
		diag.Note(tell, "the ssh agent of the sandbox cannot be started: "+err.Error())
	}
	if r.Program, err = ownProgram(helperProgram); err == nil {
		k.process, err = sshagent.Start(r)
	}
	if err != nil {
		return diag.Wrap("keep your ssh keys outside", err, "look at "+r.Dir)
	}
	return nil
}

// note counts a use of a key.
func (k *keyAgent) note(u sshagent.Use) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.uses[u]++
	k.events.Add(live.Event{Kind: live.Used, What: signedText(u)})
}

// close ends the agent, if there is one.
func (k *keyAgent) close() {
	if k.process != nil {
		k.process.Close()
	}
}

// told returns the lines for a person about what the agent signed and refused.
func (k *keyAgent) told() (lines []string) {
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
