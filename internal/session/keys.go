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
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/sshagent"
	"claudebox/internal/session/usergit"
)

const (
	agentSocket = "/run/claudebox/ssh-agent" // inside
	knownHosts  = "/etc/ssh/ssh_known_hosts" // likewise
	socketName  = "ssh-agent."               // of those of an instance: the session's process follows
	maxKeyFile  = 64 << 10                   // bytes
	keyPatience = 10 * time.Second
	signRule    = "git.sign"
	sshRule     = "ssh.hosts"
)

// keysPart is what an agent signs and logs in with by ssh, and never holds.
type keysPart struct {
	part
	request sshagent.Request // without a socket: no key is used
	logins  []string         // hosts that are logged in to
	signs   string           // the public key that git signs with; empty: none
	always  bool             // unasked
}

// keysOf finds the keys that a plan lets be used, and leads the sandbox to the
// agent that uses them. What cannot be had is said.
func keysOf(g ground, id usergit.Identity) (made keysPart) {
	wanted := g.plan.Git
	if wanted.Sign == "" && len(wanted.SSH) == 0 {
		return made
	}
	found, file, err := lookForKeys(g, id)
	if err != nil {
		made.warn("ssh keys cannot be used: " + err.Error())
		return made
	}
	r := &made.request
	if wanted.Sign != "" {
		key, file, why := chooseKey(id, found, file)
		if why != "" {
			made.warn("git cannot sign: " + why)
		} else {
			r.Rules.Git, r.Key = key.Blob, file
			made.signs, made.always = key.Line, id.Signs == "true"
			made.outside = []launch.Outside{
				{Name: "your SSH key " + key.Fingerprint, Hosts: []string{"signatures of git"}, Why: signRule},
			}
			if !isInside(g.plan, "ssh-keygen") {
				made.warn("git cannot sign: there is no ssh-keygen inside; write `packages: [openssh]` in the profile")
			}
		}
	}
	if len(wanted.SSH) > 0 {
		made.logIn(g.plan, found)
	}
	if r.Rules.Git == nil && len(r.Rules.Hosts) == 0 {
		return made
	}
	if len(found.Held) > 0 && (r.Key == nil || len(r.Rules.Hosts) > 0) {
		r.Agent = g.Facts.Env.Value("SSH_AUTH_SOCK", "")
	}
	r.Dir, r.Socket = g.Instance.Dir, fmt.Sprint(socketName, os.Getpid())
	made.mount(launch.Mount{
		Kind: plan.ROBind, Source: filepath.Join(r.Dir, r.Socket), Destination: agentSocket, Why: plan.Base,
	})
	entry := plan.Env{Name: "SSH_AUTH_SOCK", From: plan.FromMade, Why: signRule}
	if r.Rules.Git == nil {
		entry.Why = sshRule
	}
	made.made = []launch.Variable{{Env: entry, Value: agentSocket}}
	return made
}

// keyFiles are the files of user.signingkey; nil: one cannot be read, or it names none.
type keyFiles struct {
	public, private []byte
	fault           error // why private cannot be read
}

// lookForKeys finds out what a plan needs to know of the user's ssh.
func lookForKeys(g ground, id usergit.Identity) (found sshagent.Found, f keyFiles, err error) {
	known := slices.DeleteFunc([]string{filepath.Join(g.Facts.Home, ".ssh/known_hosts"), knownHosts},
		func(name string) bool {
			_, err := os.Stat(name)
			return err != nil
		})
	if g.plan.Git.Sign != "" {
		f = readKey(g.call, id.SigningKey)
	}
	program, err := ownProgram(helperName)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), keyPatience)
		defer cancel()
		found, err = sshagent.Look(ctx, program, sshagent.Question{
			Agent: g.Facts.Env.Value("SSH_AUTH_SOCK", ""), Public: f.public, Private: f.private,
			Known: known, Hosts: g.plan.Git.SSH,
		})
	}
	return found, f, err
}

// readKey reads what user.signingkey says, which is a public key, or names the file of one.
func readKey(c call, said string) (f keyFiles) {
	if line, literal := literalKey(said); literal || said == "" {
		return keyFiles{public: []byte(line)}
	}
	name := strings.TrimSuffix(c.absolute(said), ".pub")
	f.public, _ = smallfile.Read(name+".pub", maxKeyFile) // the private one will do
	f.private, f.fault = smallfile.Read(name, maxKeyFile)
	return f
}

// literalKey is the public key that user.signingkey is, if it is none of a file.
func literalKey(said string) (line string, literal bool) {
	line, marked := strings.CutPrefix(said, "key::")
	return line, marked || slices.Contains([]string{"ssh", "ecdsa", "sk"}, strings.Split(line, "-")[0])
}

// logIn adds the keys of the hosts that may be logged in to.
func (k *keysPart) logIn(p plan.Plan, found sshagent.Found) {
	if len(found.Held) == 0 {
		k.warn("ssh cannot log in: no agent with a key is at SSH_AUTH_SOCK (ssh-add)")
		return
	}
	if !isInside(p, "ssh") {
		k.warn("ssh cannot log in: there is no ssh inside; write `packages: [openssh]` in the profile")
	}
	var lines strings.Builder
	for i, name := range p.Git.SSH {
		known := found.Hosts[i]
		switch {
		case known.Why != "":
			k.warn("ssh cannot log in to " + name + ": " + known.Why)
			continue
		case len(known.Keys) == 0:
			k.warn("ssh cannot log in to " + name + ": it is not in your known_hosts; connect to it once outside")
			continue
		}
		k.request.Rules.Hosts = append(k.request.Rules.Hosts, known.Host)
		k.logins = append(k.logins, strings.Split(name, ":")[0])
		lines.WriteString(known.Lines)
		k.note(unreachable(p, name)...)
	}
	if len(k.logins) > 0 {
		k.outside = append(k.outside,
			launch.Outside{Name: "the keys of your ssh agent", Hosts: k.logins, Why: sshRule})
		k.mount(launch.Mount{
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

// keyAgent is the agent that signs for the sandbox. The zero value is none.
type keyAgent struct {
	process *sshagent.Process
	mu      sync.Mutex
	uses    map[sshagent.Use]int
}

// start starts the agent, and takes away the sockets of sessions that were
// killed. What could not be started when it was needed is told.
func (k *keyAgent) start(r sshagent.Request, tell io.Writer) (err error) {
	if r.Socket == "" {
		return nil
	}
	left, _ := filepath.Glob(filepath.Join(r.Dir, socketName+"*"))
	for _, name := range left {
		if conn, err := net.DialTimeout("unix", name, time.Second); err == nil {
			conn.Close()
		} else {
			_ = os.Remove(name)
		}
	}
	k.uses, r.Tell = map[sshagent.Use]int{}, k.note
	r.Failed = func(err error) {
		diag.Note(tell, "the ssh agent of the sandbox cannot be started: "+err.Error())
	}
	if r.Program, err = ownProgram(helperName); err == nil {
		k.process, err = sshagent.Start(r)
	}
	if err != nil {
		return diag.Wrap("keep your ssh keys outside", err, "look at "+r.Dir)
	}
	return nil
}

func (k *keyAgent) note(u sshagent.Use) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.uses[u]++
}

func (k *keyAgent) close() {
	if k.process != nil {
		k.process.Close()
		k.process = nil
	}
}

// told are the lines for a person about what it signed.
func (k *keyAgent) told() (lines []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
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
	return lines
}
