package session

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
	"claudebox/internal/secret/leak"
)

// mostLinked bounds how many links of the user's own folders are followed: each is a mount.
const mostLinked = 60

// link is a link in a folder of the user's own Claude Code.
type link struct {
	kind   string
	at     string // on the host
	inside string // the same place inside
	ours   bool   // no agent can have made it: the folder is the user's own, and not reached by a link
	why    string // as of a mount
}

// linkedOf mounts what the links in the folders of the user's own Claude Code lead to (dotfiles, stow), and the folders
// of marketplaces that plugins are from; what does not enter is named.
func linkedOf(in inputs, links []link) (made part) {
	for _, l := range links {
		real, err := beneath.Canonical(l.at)
		if err != nil || in.inside.Has(l.inside) {
			continue // it leads nowhere outside, either, or is inside anyway
		}
		reason := "it is a link to " + real
		switch {
		case !l.ours:
			reason += ", which an agent could have made, as its folder is reached by a link: --mount-ro " + real
		case len(made.Mounts) >= mostLinked:
			reason += ", and there are too many: put it there itself"
		default:
			why := made.lend(in, l, real)
			if why == "" {
				continue
			}
			reason += ", and " + why
		}
		made.leave(l.kind, "your "+l.kind+" "+path.Base(l.at)+" does not enter: "+reason)
	}
	for _, folder := range marketplaces(in) {
		if in.inside.Has(folder) {
			continue
		}
		real, err := beneath.Canonical(folder)
		if err != nil {
			continue
		}
		if why := made.lend(in, link{inside: folder, kind: "marketplace", why: whyClaude}, real); why != "" {
			made.leave("marketplace", "the marketplace of plugins "+folder+" does not enter: "+why)
		}
	}
	return made
}

// lend mounts a file or folder of the user's, read-only, so that a link leads to it. It returns why not.
func (p *part) lend(in inputs, l link, real string) (why string) {
	destination := l.inside
	if text, err := os.Readlink(l.at); err == nil {
		if destination = text; !filepath.IsAbs(text) {
			destination = path.Join(path.Dir(l.inside), text)
		}
	}
	m := launch.Mount{Kind: plan.ROBind, Source: real, Destination: destination, Open: true, Why: l.why}
	if slices.ContainsFunc(p.Mounts, func(o launch.Mount) bool { return o.Destination == destination }) {
		return ""
	}
	for _, taken := range []string{"/proc", "/sys", "/dev", "/nix", in.Facts.Home + "/.claude", in.project.Path} {
		if pathname.Below(destination, taken) {
			return "nothing can be mounted at " + destination
		}
	}
	if err := judgeSource(in, m); err != nil {
		return diag.Cause(err).Error()
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return diag.Cause(err).Error()
	case info.IsDir():
		lent, _, whole, err := coverSecretsIn(in, real, destination)
		if err != nil || !whole {
			return "it has too many files"
		}
		p.add(lent)
	default:
		content, err := smallfile.Read(real, mostBytes)
		if what := leak.Text(string(content)); err != nil || what != "" {
			return "it is no small file without a secret"
		}
	}
	p.mount(m)
	return ""
}

// marketplaces are the folders of the marketplaces that the user's plugins are from, where these are folders of this
// machine.
func marketplaces(in inputs) (folders []string) {
	const limit = 1 << 20
	content, err := smallfile.Read(filepath.Join(in.configFolder(), "plugins/known_marketplaces.json"), limit)
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
				!slices.Contains(folders, folder) && !pathname.Below(folder, in.configFolder()) {
				folders = append(folders, folder)
			}
		}
	}
	slices.Sort(folders)
	return folders
}
