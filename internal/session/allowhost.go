package session

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/network/helper"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/policy"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
)

// MoreHosts is the user's own profile with more hosts for tier allow, before the user has said yes.
type MoreHosts struct {
	File  string   // the profile's, for people
	Hosts []string // those that it does not list yet
	path  string   // of the file, with every link resolved
	was   []byte
	text  []byte
}

const opAllowHost = "add hosts to the profile"

// AllowHosts finds the profile that launches go by, and adds hosts to its list. Nothing is written yet.
func AllowHosts(c Caller, o Options, hosts []string) (m MoreHosts, err error) {
	asked, err := newCall(c, o, looking)
	if err != nil {
		return m, err
	}
	files, ref := asked.files(), asked.ref()
	if file := files.Plan(ref); file != "" {
		return m, diag.Errorf(opAllowHost,
			"list them under programs.claudebox.profiles."+ref+" (network.allow), and switch",
			"profile %s was made by a module", ref)
	}
	before, _, err := profile.Load(ref, files)
	if err != nil {
		return m, err
	}
	if before.Network.Tier != profile.TierAllow {
		return m, diag.Errorf(opAllowHost,
			"a list of hosts is for tier allow: `network: {tier: allow, allow: [anthropic]}`",
			"profile %s has tier %s, which lists none", before.Name, before.Network.Tier)
	}
	for _, host := range hosts {
		host = strings.ToLower(host)
		if !slices.Contains(hostpattern.Expand(before.Network.Allow), host) && !slices.Contains(m.Hosts, host) {
			m.Hosts = append(m.Hosts, host)
		}
	}
	_, m.File, m.was, err = files.Open(ref, diag.Position{})
	if err != nil {
		return m, &diag.Error{Op: opAllowHost, Err: err}
	}
	if len(m.Hosts) == 0 {
		return m, nil
	}
	file := files.Absolute(m.File, diag.Position{})
	if m.path, err = filepath.EvalSymlinks(file); err != nil {
		return m, err
	}
	if strings.HasPrefix(m.path, "/nix/store/") {
		return m, diag.Errorf(opAllowHost, "add them where your configuration has it", "%s is made by Nix", file)
	}
	return m, m.write(files, ref, before)
}

// write makes m.text, the profile with the hosts; it writes no file. The text is parsed again: its network
// must be the same with these hosts, and nothing else.
func (m *MoreHosts) write(files profiledir.Files, ref string, before profile.Profile) error {
	text, found := profile.WithHosts(m.was, m.Hosts)
	byHand := "add them by hand: `network: {tier: allow, allow: [" + strings.Join(m.Hosts, ", ") + "]}`"
	if !found {
		return diag.Errorf(opAllowHost, byHand, "%s has no list of hosts of its own", m.File)
	}
	after, _, err := profile.Load(ref, replaced{files, m.File, text})
	if err != nil {
		return err
	}
	want := before.Network
	want.Allow = slices.Sorted(slices.Values(append(slices.Clone(want.Allow), m.Hosts...)))
	got := after.Network
	got.Allow = slices.Sorted(slices.Values(got.Allow))
	if !reflect.DeepEqual(got, want) {
		return diag.Errorf(opAllowHost, byHand, "the list in %s is written in a way that only a person can add to",
			m.File)
	}
	m.text = text
	return nil
}

// replaced opens profiles, with another content for one file.
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

// Keep writes the profile, in one step. It fails if the file has changed since it was read.
func (m MoreHosts) Keep() error {
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
			err = folder.Chmod(name, mode) // whatever the umask
		}
	}
	if err != nil {
		return diag.Wrap(op, err, "edit it by hand")
	}
	return nil
}

// RefusedHosts lists the hosts that the last session here was refused because they
// are not on the list, the most frequent first.
func RefusedHosts(c Caller, o Options) ([]string, error) {
	dir, err := InstanceDir(c, o)
	if err != nil {
		return nil, err
	}
	return state.Refused(dir), nil
}

// mostKept bounds how many refused hosts are kept for [RefusedHosts].
const mostKept = 20

// unlisted returns the refused hosts of a report that could be put on the list, at most mostKept.
func unlisted(r helper.Report) (hosts []string) {
	for _, one := range r.Refused {
		if one.Why != policy.NotListed || len(hosts) == mostKept {
			continue
		}
		name, port, _ := strings.Cut(one.What, ":")
		canonical, err := hostpattern.Canonical(name)
		if err != nil || !strings.Contains(canonical, ".") {
			continue
		}
		host := canonical
		if port != "" && port != "443" && port != "80" {
			host += ":" + port
		}
		if _, err := hostpattern.Parse(host); err == nil && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
