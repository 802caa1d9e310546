package handover

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/pattern"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/workspace/gitconfig"
)

// settings are the values of the user's configuration that the inner one has, by name.
func (p Place) settings() map[string][]string {
	content, err := smallfile.Read(p.Outer+"/config", configLimit)
	if err != nil {
		return nil
	}
	entries, _ := gitconfig.Parse(gitconfig.Sanitise(content, p.usersAlone()...))
	return byName(entries)
}

// usersAlone are the settings that an inner folder does not have: the program that watches the user's files is not
// inside, and the working tree of a branch is another one.
func (p Place) usersAlone() []string {
	if p.Branch == "" {
		return []string{"core.fsmonitor"}
	}
	return []string{"core.fsmonitor", "core.worktree", "core.bare"}
}

func byName(entries []gitconfig.Entry) map[string][]string {
	all := map[string][]string{}
	for _, e := range entries {
		name := strings.ToLower(e.Section) + "." + e.Subsection + "." + strings.ToLower(e.Name)
		if e.Subsection == "" {
			name = strings.ToLower(e.Section) + "." + strings.ToLower(e.Name)
		}
		value := e.Value
		if e.Bare {
			value = "true"
		}
		all[name] = append(all[name], value)
	}
	return all
}

// renewSettings brings what the user has changed in the configuration since the last session into the inner one. What
// the agent has set there stays.
func (l *live) renewSettings(m memory) error {
	p := l.place
	now := p.settings()
	var b strings.Builder
	for _, name := range unionKeys(m.Settings, now) {
		if slices.Equal(m.Settings[name], now[name]) {
			continue
		}
		setting := diag.Quote(name)
		fmt.Fprintf(&b, "g config --file \"$C/config\" --unset-all %s || :\n", setting)
		for _, value := range now[name] {
			fmt.Fprintf(&b, "g config --file \"$C/config\" --add %s %s || exit 1\n", setting, diag.Quote(value))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	if _, err := l.inner().run(prelude+b.String(), "", true); err != nil {
		return err
	}
	m.Settings = now
	return p.remember(m)
}

// listSettings prints the settings of a repository, each with a line feed before its value and NUL after it.
const listSettings = `g config --file "$C/config" --list -z --no-includes`

// takeSettings brings what may cross of the configuration that the agent changed to the user's: remotes that are new,
// and which branch of a remote a branch of the user's follows, where the user has set nothing. The place is locked.
func (l *live) takeSettings() error {
	answer, err := l.inner().run(prelude+listSettings, "", false)
	if err != nil {
		return err
	}
	return l.takeListed(string(answer))
}

// takeListed is [live.takeSettings] for what [listSettings] printed.
func (l *live) takeListed(settings string) error {
	inner := map[string][]string{}
	for setting := range strings.SplitSeq(settings, "\x00") {
		name, value, _ := strings.Cut(setting, "\n")
		inner[name] = append(inner[name], value)
	}
	m, err := l.place.recall()
	if err != nil {
		return err
	}
	for name, values := range inner { // what both had, and the user has taken away, does not come again
		if slices.Equal(values, m.Settings[name]) {
			delete(inner, name)
		}
	}
	take, left, remarks := crossing(inner, l.place.settings())
	l.settingsLeft = left > 0
	if err := l.tellOnce(remarks); err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(take)) {
		fmt.Fprintf(&b, "g config --file \"$C/config\" %s %s || exit 1\n", diag.Quote(name), diag.Quote(take[name]))
	}
	if b.Len() == 0 {
		return nil
	}
	if _, err = l.outer().run(prelude+b.String(), "", true); err != nil {
		return err
	}
	if m, err = l.place.recall(); err != nil {
		return err
	}
	if m.Settings == nil {
		m.Settings = map[string][]string{}
	}
	for name, value := range take {
		m.Settings[name] = []string{value}
	}
	return l.place.remember(m)
}

// tellOnce tells of settings that were not told yet: what stays inside does so in each session.
func (l *live) tellOnce(remarks []Remark) error {
	m, err := l.place.recall()
	if err != nil {
		return err
	}
	var now []string
	for _, r := range remarks {
		text := r.About + ": " + r.Text
		if now = append(now, text); !slices.Contains(m.Told, text) {
			l.remarks = append(l.remarks, r)
		}
	}
	slices.Sort(now)
	if slices.Equal(now, m.Told) {
		return nil
	}
	m.Told = now
	return l.place.remember(m)
}

// remoteName is a plain name of a remote.
const remoteName pattern.Expr = `^[A-Za-z0-9][A-Za-z0-9_.-]*$`

// mostSettings is how many settings one end brings: git writes each by itself, in some milliseconds.
const mostSettings = 100

// crossing chooses the settings that the user's configuration gets, and counts the remotes and the branches with one
// that are left for the next end.
func crossing(inner, outer map[string][]string) (take map[string]string, left int, remarks []Remark) {
	take = map[string]string{}
	remotes, added := map[string]bool{".": true}, map[string][]string{} // added: which branches follow it
	for name := range outer {
		if remote, is := part(name, "remote.", ".url"); is {
			remotes[remote] = true
		}
	}
	names := slices.Sorted(maps.Keys(inner))
	for _, name := range names {
		values := inner[name]
		remote, is := part(name, "remote.", ".url")
		if !is || remotes[remote] || len(values) != 1 {
			continue
		}
		if !remoteName.Matches(remote) || !plainAddress(values[0]) {
			remarks = append(remarks, Remark{
				About: "remote " + remote, Text: "it was added inside, and its address is none that git fetches from " +
					"without running a program: it stays inside",
			})
			continue
		}
		if len(take) >= mostSettings {
			left++
			continue
		}
		remotes[remote] = true
		take[name] = values[0]
		take["remote."+remote+".fetch"] = "+refs/heads/*:refs/remotes/" + remote + "/*"
		added[remote] = nil
	}
	for _, name := range names {
		values := inner[name]
		branch, is := part(name, "branch.", ".remote")
		merge := inner["branch."+branch+".merge"]
		if !is || len(values) != 1 || !remotes[values[0]] || len(merge) != 1 || !crosses(merge[0]) ||
			!crosses("refs/heads/"+branch) || outer[name] != nil || outer["branch."+branch+".merge"] != nil {
			continue
		}
		if len(take) >= mostSettings {
			left++
			continue
		}
		take[name], take["branch."+branch+".merge"] = values[0], merge[0]
		if _, isNew := added[values[0]]; isNew {
			added[values[0]] = append(added[values[0]], branch)
		}
	}
	return take, left, append(remarks, addedInside(take, added, left)...)
}

// addedInside says which remotes the user's configuration gets, with the branches that follow each.
func addedInside(take map[string]string, added map[string][]string, left int) (remarks []Remark) {
	for _, remote := range slices.Sorted(maps.Keys(added)) {
		text := "it was added inside: " + take["remote."+remote+".url"]
		if branches := added[remote]; len(branches) > 0 {
			text += "; `git pull` and `git push` use it on " + diag.Some(branches, 3)
		}
		remarks = append(remarks, Remark{About: "remote " + remote, Text: text})
	}
	if left > 0 {
		text := fmt.Sprintf("%d more of them, and of branches that follow one, were added inside: they wait, as one "+
			"session brings %d settings; the next one goes on", left, mostSettings)
		remarks = append(remarks, Remark{About: "remotes", Text: text})
	}
	return remarks
}

// part returns what stands between the beginning and the end of a setting's name.
func part(name, begin, end string) (string, bool) {
	rest, is := strings.CutPrefix(name, begin)
	rest, ends := strings.CutSuffix(rest, end)
	return rest, is && ends
}

// scpAddress is an address as ssh and scp have it.
const scpAddress pattern.Expr = `^[A-Za-z0-9_.-]+@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9~/_.][A-Za-z0-9~/_.-]*$`

// plainAddress reports whether git fetches from an address over the network, and runs no program that it names.
func plainAddress(text string) bool {
	if scpAddress.Matches(text) {
		return true
	}
	u, err := url.Parse(text)
	return err == nil && slices.Contains([]string{"https", "ssh"}, u.Scheme) && u.Hostname() != "" &&
		!strings.HasPrefix(u.Hostname(), "-") && !strings.ContainsAny(text, " \t\n'\"`$\\;|&<>") &&
		(u.User == nil || u.Scheme == "ssh" && u.User.String() == u.User.Username())
}

// lines are the lines of a text, without their ends.
func lines(text string) (list []string) {
	for line := range strings.Lines(text) {
		list = append(list, strings.TrimSuffix(line, "\n"))
	}
	return list
}
