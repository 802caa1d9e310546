package profiledir

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/profile"
)

// MoreHosts is a change of the user's profile that was prepared and not made yet: hosts to add to its network.allow, in
// tier inet addresses to add to its network.except.
type MoreHosts struct {
	Tier  string   // the tier of its network
	File  string   // the profile's file, as messages name it
	Hosts []string // the hosts to add: those that the profile does not list yet
	path  string   // the profile's file, with every link resolved
	was   []byte   // the file's content
	text  []byte   // the content with the hosts added
}

const opAllowHost = "add hosts to the profile"

// AddHosts prepares to add hosts to the list of a profile. It writes nothing: [MoreHosts.Save] does, when the
// user has agreed.
func (f Files) AddHosts(ref string, hosts []string) (m MoreHosts, err error) {
	if file := f.Plan(ref); file != "" {
		return m, diag.Errorf(opAllowHost,
			"list them under programs.claudebox.profiles."+ref+" (network.allow), and switch",
			"profile %s was made by a module", ref)
	}
	before, _, err := profile.Load(ref, f)
	if err != nil {
		return m, err
	}
	m.Tier = before.Network.Tier
	list := before.Network.Listed()
	if list == nil {
		return m, diag.Errorf(opAllowHost,
			"a list of hosts is for tier allow: `network: {tier: allow, allow: [anthropic]}`",
			"profile %s has tier %s, which lists none", before.Name, before.Network.Tier)
	}
	for _, host := range hosts {
		host = strings.ToLower(host)
		if !slices.Contains(hostpattern.Expand(*list), host) && !slices.Contains(m.Hosts, host) {
			m.Hosts = append(m.Hosts, host)
		}
	}
	_, m.File, m.was, err = f.Open(ref, diag.Position{})
	if err != nil {
		return m, &diag.Error{Op: opAllowHost, Err: err}
	}
	if len(m.Hosts) == 0 {
		return m, nil
	}
	file := f.Absolute(m.File, diag.Position{})
	if m.path, err = filepath.EvalSymlinks(file); err != nil {
		return m, err
	}
	if strings.HasPrefix(m.path, "/nix/store/") {
		return m, diag.Errorf(opAllowHost, "add them where your configuration has it", "%s is made by Nix", file)
	}
	return m, m.edit(f, ref, before)
}

// edit sets m.text to the profile with the hosts. It loads the profile with that text to check it: compared with the
// profile before, its list must have these hosts more, and the rest of network must be the same.
func (m *MoreHosts) edit(files Files, ref string, before profile.Profile) error {
	key := "allow"
	if before.Network.Tier == profile.TierInet {
		key = "except"
	}
	text, found := profile.WithHosts(m.was, key, m.Hosts)
	byHand := fmt.Sprintf("add them by hand: `network: {tier: %s, %s: [%s]}`; --session needs no profile",
		before.Network.Tier, key, strings.Join(m.Hosts, ", "))
	if !found {
		return diag.Errorf(opAllowHost, byHand, "%s has no list of hosts of its own", m.File)
	}
	after, _, err := profile.Load(ref, replaced{files, m.File, text})
	if err != nil {
		return err
	}
	want, got := before.Network, after.Network
	*want.Listed() = slices.Sorted(slices.Values(append(slices.Clone(*want.Listed()), m.Hosts...)))
	if list := got.Listed(); list != nil {
		*list = slices.Sorted(slices.Values(*list))
	}
	if !reflect.DeepEqual(got, want) {
		return diag.Errorf(opAllowHost, byHand, "the list in %s is written in a way that only a person can add to",
			m.File)
	}
	m.text = text
	return nil
}

// replaced opens profiles like its Opener, but gives text as the content of file.
type replaced struct {
	profile.Opener
	file string
	text []byte
}

func (r replaced) Open(ref string, from diag.Position) (name, file string, src []byte, err error) {
	name, file, src, err = r.Opener.Open(ref, from)
	if err == nil && file == r.file {
		src = r.text
	}
	return name, file, src, err
}

// Save writes the changed profile to its file, in one step. It fails if the file has changed since it was read.
func (m MoreHosts) Save() error {
	op := "write " + m.File
	info, err := os.Stat(m.path)
	if err != nil {
		return diag.Wrap(op, err, "")
	}
	if now, err := os.ReadFile(m.path); err != nil || !bytes.Equal(now, m.was) {
		return diag.Errorf(op, "call it again", "it has changed meanwhile")
	}
	folder, err := beneath.Open(filepath.Dir(m.path))
	if err == nil {
		defer folder.Close()
		name, mode := filepath.Base(m.path), uint32(info.Mode().Perm())
		if err = folder.Replace(name, m.text, mode); err == nil {
			err = folder.Chmod(name, mode) // the umask may have taken bits away
		}
	}
	if err != nil {
		return diag.Wrap(op, err, "edit it by hand")
	}
	return nil
}
