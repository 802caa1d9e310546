package lending

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/workspace/project"
)

// WhyClaude is the rule behind a mount of what is the user's own of Claude Code.
const WhyClaude = "your ~/.claude"

// mostLinked bounds how many links of the user's own folders are followed: each is a mount.
const mostLinked = 60

// Link is a link in a folder of the user's own Claude Code.
type Link struct {
	Kind   string
	At     string // on the host
	Inside string // the same place inside
	Ours   bool   // no agent can have made it: the folder is the user's own, and not reached by a link
	Why    string // as of a mount
}

// Linked mounts what the links in the folders of the user's own Claude Code lead to (dotfiles, stow), and the folders
// of marketplaces that plugins are from; what does not enter is named.
func (h Host) Linked(links []Link, inside *view.View) (made launch.Part) {
	for _, l := range links {
		real, err := beneath.Canonical(l.At)
		if err != nil || inside.Has(l.Inside) {
			continue // it leads nowhere outside, either, or is inside anyway
		}
		reason, red := "it is a link to "+real, false
		switch {
		case !l.Ours:
			reason += ", which an agent could have made, as its folder is reached by a link: --mount-ro " +
				diag.Name(real)
		case len(made.Mounts) >= mostLinked:
			reason += ", and there are too many: put it there itself"
		default:
			var why string
			if why, red = h.lend(&made, l, real); why == "" {
				continue
			}
			reason += ", and " + why
		}
		text := "your " + l.Kind + " " + path.Base(l.At) + " does not enter: " + reason
		made.Left = append(made.Left, diag.Left{Kind: l.Kind, Text: text, Red: red})
	}
	for _, folder := range marketplaces(h.Config) {
		if inside.Has(folder) {
			continue
		}
		real, err := beneath.Canonical(folder)
		if err != nil {
			continue
		}
		if why, _ := h.lend(&made, Link{Inside: folder, Kind: "marketplace", Why: WhyClaude}, real); why != "" {
			made.Leave("marketplace", "the marketplace of plugins "+folder+" does not enter: "+why)
		}
	}
	return made
}

// lend mounts a file or folder of the user's, read-only, so that a link leads to it. It returns why not; secret says
// that it looks so.
func (h Host) lend(p *launch.Part, l Link, real string) (why string, secret bool) {
	destination := l.Inside
	if text, err := os.Readlink(l.At); err == nil {
		if destination = text; !filepath.IsAbs(text) {
			destination = path.Join(path.Dir(l.Inside), text)
		}
	}
	m := launch.Mount{Kind: plan.ROBind, Source: real, Destination: destination, Open: true, Why: l.Why}
	if p.Has(destination) {
		return "", false
	}
	for _, taken := range []string{"/proc", "/sys", "/dev", "/nix", h.Facts.Home + "/.claude", h.Project} {
		if pathname.Below(destination, taken) {
			return "nothing can be mounted at " + destination, false
		}
	}
	if err := h.judgeSource(m); err != nil {
		return diag.Cause(err).Error(), false
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return diag.Cause(err).Error(), false
	case info.IsDir():
		lent, _, whole, err := h.Cover(real, destination, true)
		if err != nil || !whole {
			return "it has too many files", false
		}
		lent.Left = slices.DeleteFunc(lent.Left, func(l diag.Left) bool { return slices.Contains(p.Left, l) })
		p.Add(lent)
	default:
		if why, secret = h.Refuse(real); why != "" {
			return why, secret
		}
	}
	p.Mount(m)
	return "", false
}

// Refuse says why a file that the user has set up for agents does not enter; empty: it does. secret says that it looks
// so.
func (h Host) Refuse(file string) (why string, secret bool) {
	return refusal(h.look(file, file, true))
}

// refusal says why a file that was looked at does not enter, see [Host.Refuse].
func refusal(found project.LentFound, err error) (why string, secret bool) {
	switch {
	case err != nil:
		return diag.Cause(err).Error(), false
	case len(found.Secrets) > 0 && found.Secrets[0].What != "":
		return "it is, or holds, " + found.Secrets[0].What, true
	case len(found.Secrets) > 0:
		return "it looks secret", true
	case len(found.Large) > 0:
		return "it is too large to be searched for secrets", false
	}
	return "", false
}

// marketplaces are the folders of the marketplaces that the user's plugins are from, where these are folders of this
// machine.
func marketplaces(config string) (folders []string) {
	const limit = 1 << 20
	content, err := smallfile.Read(filepath.Join(config, "plugins/known_marketplaces.json"), limit)
	if err != nil {
		return nil
	}
	var known map[string]struct {
		Source struct {
			Source, Path string
		}
		InstallLocation string
	}
	if json.Unmarshal(content, &known) != nil {
		return nil
	}
	for _, m := range known {
		for _, folder := range []string{m.Source.Path, m.InstallLocation} {
			folder = strings.TrimSuffix(folder, "/.claude-plugin/marketplace.json")
			if m.Source.Source != "github" && filepath.IsAbs(folder) && filepath.Clean(folder) == folder &&
				!slices.Contains(folders, folder) && !pathname.Below(folder, config) {
				folders = append(folders, folder)
			}
		}
	}
	slices.Sort(folders)
	return folders
}
