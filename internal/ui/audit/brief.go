package audit

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/profile/grant"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/broker"
)

// briefLines is how many lines a question and what it is about may take: two thirds of a small terminal, so that what
// is red is seldom cut.
const briefLines = 16

// Brief renders what a person is asked about: at most [briefLines] lines, the
// question included. What matters most stands last, next to the question.
// changes are those since the last launch that was approved here. A field
// takes more than one line as long as there is room for that.
func (v View) Brief(l launch.Launch, changes []grant.Change) string {
	const most = 8
	for each := most; ; each-- {
		text, fits := v.brief(l, changes, each, 0)
		for told := 1; fits; told++ { // what would be counted is told as long as lines are free
			more, whole := v.brief(l, changes, each, told)
			if !whole || more == text {
				return text
			}
			text = more
		}
		if each == 1 {
			return text
		}
	}
}

// brief gives each field that matters at most each lines, tells so many of what is left out and of the remarks in full,
// and reports whether all warnings found room.
func (v View) brief(l launch.Launch, changes []grant.Change, each, told int) (text string, fits bool) {
	p := page{View: v}
	all := each // of what is red or left out
	each = min(each, 3)
	p.line(p.Paint(layout.Bold, "claudebox: "+diag.Visible(starting(l))+" in a sandbox, by profile "+l.Plan.Profile))
	p.few("may edit", p.given(l, each), "", each)
	if list := p.shown(l); len(list) > 0 {
		p.few("may read", p.list(list, "", p.room()), "", 1)
	}
	own, base := l.Plan.Packages()
	tail := fmt.Sprintf("%d usual tools", len(base))
	if l.Plan.Nix.Store == "closure" {
		tail += fmt.Sprintf("; %d store paths", len(l.Closure))
	}
	p.few("programs", p.list(names(own), tail, p.room()), "", 1)
	if l.Devshell != nil && l.Devshell.Shown != "" {
		p.few("dev shell", l.Devshell.Shown, "", 1)
	}
	p.few("hidden", p.hidden(l), "", 1)
	p.leftAndRemarks(l, all, told)
	if len(changes) > 0 {
		p.few("changed", p.list(unbrokenLines(v.told(changes)), "", p.columns(each)), layout.Yellow, each)
	}
	colour := ""
	if ownReached(l) || l.Tier != "none" && len(l.Plan.Network.Out) > 0 { // services of this machine, too
		colour = layout.Red
	}
	p.few("may reach", p.reach(l, each), colour, each)
	p.secrets(l, each)
	fits = p.warnings(reds(l), all, briefLines-1-strings.Count(p.b.String(), "\n"))
	return p.b.String(), fits
}

// leftAndRemarks tells the first so many of what is left out, and then of the remarks, and counts the others. What is
// left out and red is told as a warning. Of git's settings those are red that a commit depends on, so the others come
// last.
func (p *page) leftAndRemarks(l launch.Launch, all, told int) {
	label, rest := "left out", []diag.Left{}
	isGits := func(left diag.Left) bool { return left.Kind == "git setting" }
	others := slices.DeleteFunc(slices.Clone(l.Left), isGits)
	gits := slices.DeleteFunc(slices.Clone(l.Left), func(left diag.Left) bool { return !isGits(left) })
	for _, left := range slices.Concat(others, gits) {
		switch {
		case left.Red && told > 0:
		case told > 0:
			p.few(label, diag.Visible(left.Text), "", all)
			label, told = "", told-1
		default:
			rest = append(rest, left)
		}
	}
	if len(rest) > 0 {
		kinds := unbrokenLines(strings.Split(diag.Kinds(rest), ", "))
		p.few(label, strings.Join(kinds, ", ")+"; d shows why", "", all)
	}
	told = min(told, len(l.Notes))
	label = "remarks"
	for _, note := range l.Notes[:told] {
		p.few(label, diag.Visible(note), "", all)
		label = ""
	}
	if n := len(l.Notes) - told; n > 0 {
		p.few(label, fmt.Sprintf("%d, which d shows", n), "", 1)
	}
}

// Line says in one line what starts, where nobody is asked about it.
func (v View) Line(l launch.Launch) string {
	p := page{View: v}
	head, tail := fmt.Sprintf("claudebox: profile %s, network %s, ", l.Plan.Profile, l.Tier), ""
	if l.Branch != "" {
		tail += ", branch " + l.Branch
	}
	if l.Undone > 0 {
		tail += fmt.Sprintf(", without your uncommitted work (%d)", l.Undone)
	}
	if n := len(p.readable(l)); n > 0 {
		tail += fmt.Sprintf(", secrets inside: %d", n)
	}
	name := layout.Shorten(p.name(l.Project), max(v.Width-layout.Width(head+tail), least))
	p.line(p.Paint(layout.Dim, layout.Shorten(head+name+tail, v.Width)))
	return p.b.String()
}

// Warnings renders what the question shows in red of a launch that nobody is asked about: the secrets that can be read
// inside, all red remarks, and what is left out that a commit or a secret depends on. The network is the tier that was
// asked for.
func (v View) Warnings(l launch.Launch) string {
	p := page{View: v}
	list := reds(l)
	if readable := p.readable(l); len(readable) > 0 {
		list = append([]string{"secrets that can be read inside: " + strings.Join(readable, ", ")}, list...)
	}
	for _, w := range list {
		p.line(p.Paint(layout.Red, "claudebox: "+diag.Visible(w)))
	}
	return p.b.String()
}

// reds are all red remarks: first on what is left out that a commit or a secret depends on.
func reds(l launch.Launch) (list []string) {
	for _, left := range l.Left {
		if left.Red {
			list = append(list, left.Text)
		}
	}
	return append(list, l.Warnings...)
}

// warnings writes red remarks into at most so many lines, and each of them into at most each. Those
// that do not fit are counted on the last line; whole reports whether there are none.
func (p *page) warnings(list []string, each, lines int) (whole bool) {
	label := "warning"
	for i, w := range list {
		need := min(len(layout.Wrap(diag.Visible(w), p.room())), each)
		if last := i == len(list)-1; need > lines || need == lines && !last {
			p.few(label, fmt.Sprintf("%d more in red, which d shows", len(list)-i), layout.Red, 1)
			return false
		}
		p.few(label, diag.Visible(w), layout.Red, each)
		lines, label = lines-need, ""
	}
	return lines >= 0
}

// starting is what happens inside, for people: the program that starts, an agent by its name, with its version where it
// is of the store.
func starting(l launch.Launch) string {
	if l.Devshell != nil && l.Devshell.Only {
		return "the project's dev shell is evaluated"
	}
	if len(l.Agent.Words) == 0 {
		return "a shell"
	}
	name := strings.TrimSuffix(path.Base(l.Agent.Words[0]), ".exe")
	if program, err := storepath.Of(l.Agent.Words[0]); err == nil {
		name = storepath.Name(program)
	}
	if of := l.Plan.Agent; l.Agent.OwnsTerminal {
		called := path.Base(slices.Concat(of.Command, []string{of.Name})[0])
		if !strings.HasPrefix(name, called) { // a version of it, or what runs its script
			return called
		}
	}
	return name
}

// project says what lies at the project's path.
func (v View) project(l launch.Launch) string {
	if l.Branch == "" {
		return v.name(l.Project) + ", read-write"
	}
	return v.name(l.Project) + checkout(l)
}

// checkout says of a session on a branch where it works, and what is not there.
func checkout(l launch.Launch) string {
	if l.Undone > 0 {
		return fmt.Sprintf(", a checkout of branch %s, without your uncommitted work (%d)", l.Branch, l.Undone)
	}
	return ", a checkout of its own on branch " + l.Branch
}

// isAgents reports whether a mount is a folder of the agent's own that every session has.
func isAgents(l launch.Launch, m launch.Mount) bool {
	return m.Why == launch.WhyOwnGit || m.Why == launch.WhyHeld || l.Branch != "" && m.Why == launch.WhyTalk
}

// given lists what may be written to: the project, and folders beside it.
func (v View) given(l launch.Launch, lines int) string {
	var also []string
	given := []launch.Mount{{Source: l.Project, Destination: l.Project}}
	for _, m := range beyondBase(l) { // sorted by destination
		if m.Kind == plan.Bind && !isAgents(l, m) && !slices.ContainsFunc(given, func(f launch.Mount) bool {
			rest, below := pathname.Cut(m.Destination, f.Destination)
			return below && path.Join(f.Source, rest) == m.Source
		}) {
			given, also = append(given, m), append(also, v.place(m))
		}
	}
	switch {
	case len(also) == 0 && l.Branch == "":
		const tail = ", and no other folder of yours"
		return layout.Shorten(v.name(l.Project), v.room()-layout.Width(tail)) + tail
	case len(also) == 0:
		tail := checkout(l)
		return layout.Shorten(v.name(l.Project), max(v.columns(lines)-layout.Width(tail), least)) + tail
	}
	name := v.name(l.Project)
	if l.Branch != "" {
		name += " on branch " + l.Branch
	}
	head := layout.Shorten(name, max(v.room()/2, least)) + "; also "
	return head + v.list(also, "", v.columns(lines)-layout.Width(head))
}

// shown lists what of the host a profile or the command line shows read-only, outside the project. What is told as a
// secret is not in it, nor what claudebox shows by itself.
func (v View) shown(l launch.Launch) (list []string) {
	for _, m := range beyondBase(l) {
		asked := m.Why == "--mount-ro" || strings.HasPrefix(m.Why, "profile ") || profile.IsProjectRule(m.Why)
		_, inProject := pathname.Cut(m.Destination, l.Project)
		if m.Kind == plan.ROBind && asked && !m.Secret && !inProject && access(m) != hidden {
			list = append(list, v.place(m))
		}
	}
	return list
}

// columns is how many columns a list in so many lines may have. Each line after the first counts
// for three quarters: where the list is broken, some columns stay empty.
func (v View) columns(lines int) int { return v.room() + (lines-1)*v.room()*3/4 }

func (v View) hidden(l launch.Launch) string {
	var covered []string
	for _, m := range l.Mounts {
		if access(m) != hidden {
			continue
		}
		name := v.name(m.Destination)
		if rel, err := filepath.Rel(l.Project, m.Destination); err == nil && filepath.IsLocal(rel) {
			name = diag.Name(rel)
		}
		covered = append(covered, name)
	}
	return v.list(covered, "the rest of your home", v.room())
}

// networksShort says what each tier leaves open, in few words.
var networksShort = map[string]string{
	"full":  "full: the internet, your LAN, services of this machine",
	"inet":  "inet: the internet; no LAN, no service of this machine",
	"allow": "allow: ",
	"none":  "none: no network",
}

// reach says what of the network can be reached, and what reaches inside.
func (v View) reach(l launch.Launch, lines int) string {
	n := l.Plan.Network
	text, ports := networksShort[l.Tier], ""
	if len(n.Out) > 0 && l.Tier != "full" {
		ports += "; port " + portList(n.Out) + " of this machine"
	}
	if len(n.In) > 0 && l.Tier != "full" {
		ports += "; you reach port " + portList(n.In) + " inside"
	}
	if l.Tier == "allow" {
		if n.Via != "" {
			ports = "; by the proxy " + diag.Visible(n.Via) + ports
		}
		text += v.list(visible(n.Hosts()), "", v.columns(lines)-layout.Width(text+ports))
	}
	if len(n.Except) > 0 {
		text += ", and of your own network " + v.list(visible(n.Except), "", v.columns(lines)-layout.Width(text+ports))
	}
	return text + ports
}

// secrets says which secrets can be read inside, and which are used from
// outside.
func (p *page) secrets(l launch.Launch, lines int) {
	list := p.readable(l)
	outside := p.outside(l)
	if len(list) == 0 && len(outside) == 0 {
		p.few("secrets", "none can be read inside", "", 1)
		return
	}
	label := "secrets"
	if len(outside) > 0 {
		const head = "stay outside, used by placeholders: "
		p.few(label, head+p.list(outside, "", p.columns(lines)-layout.Width(head)), "", lines)
		label = ""
	}
	if len(list) > 0 {
		const head = "can be read inside: "
		p.few(label, head+p.list(list, "", p.columns(lines)-layout.Width(head)), layout.Red, lines)
	}
}

// usualHosts are those that a secret may be sent to without a word of it at the question.
var usualHosts = slices.Concat(broker.ClaudeHosts, hostpattern.Expand([]string{"github"}))

// outside lists the secrets that are used from outside: first those that a profile takes from a file or sends to
// hosts of its own, with both.
func (v View) outside(l launch.Launch) []string {
	var own, usual []string
	for _, o := range l.Outside {
		text := o.Name
		if at := slices.IndexFunc(l.Plan.Secrets, func(s plan.Secret) bool {
			return s.Variable == o.Name && s.File != ""
		}); at >= 0 {
			text += " from " + layout.Path(v.Home, l.Plan.Secrets[at].File)
		}
		if slices.ContainsFunc(o.Hosts, func(host string) bool { return !slices.Contains(usualHosts, host) }) {
			text += " for " + strings.Join(o.Hosts, " and ")
		}
		if text = diag.Visible(text); text == diag.Visible(o.Name) {
			usual = append(usual, text)
		} else {
			own = append(own, text)
		}
	}
	return append(own, usual...)
}

// readable lists the secrets that can be read inside.
func (v View) readable(l launch.Launch) []string {
	var list []string
	for _, v := range l.Env {
		if v.Secret {
			list = append(list, v.Name)
		}
	}
	for _, m := range l.Mounts {
		if m.Secret {
			list = append(list, v.place(m))
		}
	}
	return list
}

// list joins as many items with commas as fit into width, and counts the
// others. tail stands last, whole.
func (v View) list(items []string, tail string, width int) string {
	for shown := len(items); shown >= 0; shown-- {
		words := slices.Clone(items[:shown])
		if more := len(items) - shown; more > 0 {
			words = append(words, fmt.Sprintf("%d more", more))
		}
		text := strings.Join(words, ", ")
		if tail != "" && text != "" {
			text += " and "
		}
		text += tail
		if layout.Width(text) <= width || shown == 0 {
			return text
		}
		if shown == 1 && layout.Width(text)-width < layout.Width(items[0])-least {
			return strings.Replace(text, items[0],
				layout.Shorten(items[0], layout.Width(items[0])-(layout.Width(text)-width)), 1)
		}
	}
	return tail
}

// Question is what is asked below a [View.Brief].
const Question = "Start?  y yes · n no · d details · p plan, and Enter [n]: "
