package gituse

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/aside"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/linux/sockets"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/secret/sshagent"
	"claudebox/internal/session/networking"
	"claudebox/internal/session/usergit"
	"claudebox/internal/workspace/gitconfig"
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
func (made *Part) letKeys(q Request, id usergit.Identity) {
	wanted := q.Plan.Git
	if wanted.Sign == "" && len(wanted.SSH) == 0 {
		return
	}
	found, file, err := lookForKeys(q, id)
	if err != nil {
		made.Warn("ssh keys cannot be used: " + err.Error())
		return
	}
	if wanted.Sign != "" {
		made.sign(q.Inside, id, found, file)
	}
	if len(wanted.SSH) > 0 {
		made.logIn(q, found)
	}
	r := &made.Keys
	if r.Rules.Git == nil && len(r.Rules.Hosts) == 0 {
		return
	}
	if len(found.Held) > 0 && (r.Key == nil || len(r.Rules.Hosts) > 0) {
		r.Agent = q.Facts.Env.Value("SSH_AUTH_SOCK", "")
	}
	r.Dir, r.Socket, r.Left = q.Instance, fmt.Sprint(socketName, os.Getpid()), sockets.OfEnded(socketName)
	made.Mount(launch.Mount{
		Kind: plan.ROBind, Source: filepath.Join(r.Dir, r.Socket), Destination: agentSocket, Why: plan.Base,
	})
	why := signRule
	if r.Rules.Git == nil {
		why = sshRule
	}
	made.Set("SSH_AUTH_SOCK", agentSocket, why)
}

// keyFiles are the contents of the files of user.signingkey; nil: a file cannot be read, or none is named.
type keyFiles struct {
	public, private []byte
	fault           error // why private cannot be read
}

// lookForKeys has claudebox's helper look at the keys in the user's ssh agent, at the key for signing, and at the
// known hosts among those of the plan.
func lookForKeys(q Request, id usergit.Identity) (found sshagent.Found, f keyFiles, err error) {
	known := slices.DeleteFunc([]string{filepath.Join(q.Facts.Home, ".ssh/known_hosts"), knownHosts},
		func(name string) bool {
			_, err := os.Stat(name)
			return err != nil
		})
	if q.Plan.Git.Sign != "" {
		f = readKey(q.Facts, id.SigningKey)
	}
	program, err := aside.Program(aside.HelperProgram)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), keyPatience)
		defer cancel()
		found, err = sshagent.AskKeys(ctx, program, sshagent.Question{
			Agent: q.Facts.Env.Value("SSH_AUTH_SOCK", ""), Public: f.public, Private: f.private,
			Known: known, Hosts: q.Plan.Git.SSH,
		})
	}
	return found, f, err
}

// readKey reads the key in user.signingkey, which is a public key or the name of a file with one.
func readKey(facts host.Facts, signingKey string) (f keyFiles) {
	if line, literal := literalKey(signingKey); literal || signingKey == "" {
		return keyFiles{public: []byte(line)}
	}
	name := strings.TrimSuffix(facts.Absolute(signingKey), ".pub")
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
func (made *Part) sign(inside *view.View, id usergit.Identity, found sshagent.Found, file keyFiles) {
	key, private, why := chooseKey(id, found, file)
	if why != "" {
		made.Warn("git cannot sign: " + why)
		return
	}
	made.Keys.Rules.Git, made.Keys.Key = key.Blob, private
	made.access.SigningKey, made.access.Signs = key.Line, gitconfig.IsTrue(id.Signs)
	made.ListOutside("your SSH key "+key.Fingerprint, []string{"signatures of git"}, signRule)
	if inside.Find("ssh-keygen") == "" {
		made.Warn("git cannot sign: there is no ssh-keygen inside; write `packages: [openssh]` in the profile")
	}
}

// logIn adds the hosts that ssh may log in to, with their public keys.
func (made *Part) logIn(q Request, found sshagent.Found) {
	p := q.Plan
	if len(found.Held) == 0 {
		made.Warn("ssh cannot log in: no agent with a key is at SSH_AUTH_SOCK (ssh-add)")
		return
	}
	if q.Inside.Find("ssh") == "" {
		made.Warn("ssh cannot log in: there is no ssh inside; write `packages: [openssh]` in the profile")
	}
	var lines strings.Builder
	for i, name := range p.Git.SSH {
		known := found.Hosts[i]
		switch {
		case known.Why != "":
			made.Warn("ssh cannot log in to " + name + ": " + known.Why)
			continue
		case len(known.Keys) == 0:
			made.Warn("ssh cannot log in to " + name + ": it is not in your known_hosts; connect to it once outside")
			continue
		}
		made.Keys.Rules.Hosts = append(made.Keys.Rules.Hosts, known.Host)
		made.access.SSH = append(made.access.SSH, strings.Split(name, ":")[0])
		lines.WriteString(known.Lines)
		made.Note(unreachable(p, name)...)
	}
	if len(made.access.SSH) > 0 {
		made.ListOutside("the keys of your ssh agent", made.access.SSH, sshRule)
		made.Mount(launch.Mount{
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
	case networking.Reaches(p.Network, host, number):
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
