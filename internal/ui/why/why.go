package why

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/ask"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/secret/leak"
)

// Answer is the answer to a question about a launch.
type Answer struct {
	Inside bool   // it can be seen, or reached
	Open   bool   // nobody can say: there is no such thing, or it could be many things
	Says   string // how, or why not, in one sentence
	Rule   string // what decides it: "profile work:12"; empty: nothing grants it
	Change string // what would change it; empty: nothing does
}

func yes(says, rule, change string) Answer {
	return Answer{Inside: true, Says: says, Rule: rule, Change: change}
}

func no(says, rule, change string) Answer { return Answer{Says: says, Rule: rule, Change: change} }

// Text is the answer, for people, in lines of at most width characters where
// that can be.
func (a Answer) Text(width int) string { return a.text(width, "change:") }

// text is [Answer.Text] with a word of eight letters at most for what would change it.
func (a Answer) text(width int, change string) string {
	head, column := "no:", len(change)+1 // where the words begin
	switch {
	case a.Open:
		head, column = "unknown:", len("unknown: ")
	case a.Inside:
		head = "yes:"
	}
	var b strings.Builder
	for _, part := range []struct{ name, text string }{{head, a.Says}, {"rule:", a.Rule}, {change, a.Change}} {
		if part.text == "" {
			continue
		}
		for _, line := range layout.Wrap(part.text, width-column) {
			fmt.Fprintf(&b, "%-*s%s\n", column, part.name, line)
			part.name = ""
		}
	}
	return b.String()
}

// Program answers for a word that is neither path nor variable, and need not be a
// host. file is the program of that name inside; empty: there is none. remedy says how it comes there.
func Program(word, file, remedy string) Answer {
	if file != "" {
		return yes(word+" is a program inside, "+file, "PATH inside", "")
	}
	if a, known := missing(word); known {
		return a
	}
	if remedy != view.Remedy(word) {
		return no(word+" is not inside: only the profile's packages are on PATH there", "packages", remedy)
	}
	return Answer{
		Open:   true,
		Says:   word + " is no program inside, no variable, and nothing of that name is here",
		Change: fmt.Sprintf("ask for ./%[1]s, a path, or %[1]s:443, a host; of a program %s", word, remedy),
	}
}

// rights are programs that would need rights which nothing inside has.
var rights = []string{"sudo", "su", "doas", "docker", "podman", "systemctl", "mount"}

// missing answers for a word of which it is known what it means, and that it is no program inside. It is the same
// outside and inside.
func missing(word string) (a Answer, known bool) {
	switch port, err := strconv.ParseUint(word, 10, 16); {
	case err == nil && port > 0:
		return Answer{
			Open: true, Says: word + " is no program inside, and nothing of that name is here",
			Change: fmt.Sprintf("ask for localhost:%[1]s, a port of this machine; `--publish %[1]s` lets you reach port "+
				"%[1]s inside", word),
		}, true
	case word == ask.Box:
		return no("claudebox is outside: a sandbox starts no other", "", ""), true
	case slices.Contains(rights, word):
		says := word + " is of no use inside: nothing in a sandbox has such rights. It has to be run outside"
		return no(says, "", ""), true
	case view.Package(word) != "":
		return no(word+" is not installed inside", "packages", view.Remedy(word)), true
	}
	return a, false
}

// Variable answers for a variable. value is what it is on the host, if it is set.
func Variable(l launch.Launch, name, value string, set bool) Answer {
	for _, left := range l.Left {
		for _, begins := range []string{" (", " does not enter, "} { // it cannot be used inside
			if strings.HasPrefix(left.Text, name+begins) {
				return no(left.Text, "", "")
			}
		}
	}
	for _, v := range l.Env {
		if v.Name == name {
			return entering(l, v)
		}
	}
	for _, note := range l.Notes {
		if strings.HasPrefix(note, name+" does not enter: ") {
			return no(note, "", "")
		}
	}
	for _, e := range l.Plan.Env {
		if e.Name == name && e.From == plan.FromHost {
			return no(name+" may enter, and is not set here", e.Why, "set it")
		}
	}
	for _, secret := range l.Plan.Secrets {
		if secret.Variable == name {
			return no(name+" is not set here, so there is no placeholder of it", secret.Why, "set it")
		}
	}
	a := no(name+" is set here, and nothing lets it in", "",
		fmt.Sprintf("`extra_env_passthrough: [%[1]s]` in the profile, or CLAUDEBOX_EXTRA_ENV=%[1]s for one launch", name))
	if !set {
		a.Says = name + " is not set here, and nothing would let it in"
		value = "unknown" // what is set later is judged by the name
	}
	switch reason := leak.Variable(name, value); {
	case name == "SSH_AUTH_SOCK":
		a.Says += "; it " + profile.Effect(name)
		a.Change = "`git: {sign: ssh}` or `ssh: {hosts: [HOST]}` in the profile: your agent signs, or logs in to that " +
			"host, and no more"
	case reason != "":
		a.Says += "; it is probably a secret: " + reason
		a.Change = fmt.Sprintf("`secrets: [{env: %s, hosts: [HOST]}]` in the profile: used on the way to that host, and stays outside; "+
			"`extra_env_passthrough: [%s]` lets it in", name, name)
	}
	return a
}

// origins say where a value comes from.
var origins = map[plan.EnvFrom]string{
	plan.FromHost: "with your value", plan.FromConst: "with the profile's value",
	plan.FromMade: "with a value that claudebox makes",
}

func entering(l launch.Launch, v launch.Variable) Answer {
	value := strconv.Quote(v.Masked())
	for _, out := range l.Outside {
		if out.Name == v.Name {
			return yes(v.Name+" enters as a placeholder, "+value+"; the true one stays outside, and goes to "+
				strings.Join(out.Hosts, ", ")+" alone", out.Why, "")
		}
	}
	folders := strings.Split(v.Masked(), ":/")
	if v.From == plan.FromMade && len(folders) > 1 && strings.HasPrefix(folders[0], "/") {
		for i := range folders { // a store path's hash says nothing to a person
			folders[i] = layout.Path("", "/"+strings.TrimPrefix(folders[i], "/"))
		}
		value = diag.Visible(strings.Join(folders, ", "))
	}
	a := yes(fmt.Sprintf("%s enters %s, %s", v.Name, origins[v.From], value), v.Why, "")
	if v.Secret {
		a.Says += ", a secret"
	}
	switch {
	case v.From == plan.FromMade:
	case v.Why == "CLAUDEBOX_EXTRA_ENV":
		a.Change = "leave it out of CLAUDEBOX_EXTRA_ENV"
	case v.Why == plan.Base:
		a.Change = "unset it"
	default:
		a.Change = "take it out of the profile"
	}
	return a
}
