package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/network/dns"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
)

// remarksOf notes what a person should know before the start. overrides are for
// variables of the host that the sandbox cannot use as they are.
func remarksOf(in inputs) (made launch.Part, overrides map[string]launch.Override) {
	if len(in.Missing) > 0 {
		made.Note("not in the store yet, to be fetched or built: " + strings.Join(in.Missing, ", "))
	}
	changed, overrides := overridesOf(in.Plan, in.Facts.Env, in.inside)
	made.Add(changed)
	entering := slices.Concat(extraEnv(in.Facts.Env), in.secrets.Gateways())
	for _, e := range in.Plan.Env {
		entering = append(entering, e.Name)
	}
	made.LeaveAll("variable", "set here and not inside: ALL; `extra_env_passthrough: [FIRST]` lets one in",
		notPassed(in.Facts.Env, entering, in.Plan.Network.Tier))
	made.LeaveAll("variable", "of `env` in your settings.json these are not inside: ALL; `extra_env_passthrough: [FIRST]` "+
		"lets one in", in.settingsLeft)
	for _, folder := range []string{".venv", "venv"} {
		_, err := os.Stat(filepath.Join(in.project.Path, folder, "pyvenv.cfg"))
		python := filepath.Join(in.project.Path, folder, "bin/python")
		if reason := in.inside.Program(python); err == nil && reason != "" {
			made.Leave("virtual environment", reason+"; inside, `python3 -m venv` makes one for its own Python, elsewhere")
		}
	}
	noteProject(&made, "", in.project)
	if in.Plan.Network.Tier == profile.TierFull && !launch.ClosesAbstractSockets() {
		made.Warn("this kernel cannot close abstract sockets: X11 and D-Bus of this machine are within reach")
	}
	noteNetwork(&made, in)
	noteMoved(&made, in)
	made.Note(in.Remarks...)
	if in.Confirm() != in.Plan.Confirm {
		made.Note("`confirm: never` does not count: an agent could have written the plan, or what it was made of")
	}
	made.Warn(unseenWords(in.Options.Words, in.project.Path)...)
	return made, overrides
}

// noteNetwork says what of this machine's network set-up is missing, and so inside.
func noteNetwork(p *launch.Part, in inputs) {
	if in.Plan.Network.Tier == profile.TierNone {
		return
	}
	if len(dns.Named(in.etc.Resolv)) == 0 {
		why := "it names no nameserver"
		if in.etc.Resolv == nil {
			why = "it is not there, or leads nowhere"
		}
		p.Warn("no name can be looked up inside, unless a resolver listens on 127.0.0.1: " + dns.ResolvConf + ": " +
			why + "; start what writes it (`sudo systemctl start systemd-resolved`), or name a nameserver in it")
	}
	for _, name := range host.BundleVariables {
		switch file := in.Facts.Env.Value(name, ""); {
		case file == "":
			continue
		case beneath.Real(file) != in.etc.Certificates:
			p.Warn(name + " (" + file + ") names no certificate bundle that can be read, and does not count inside")
		}
		return
	}
	if in.etc.Certificates == in.Tools[resolve.ToolCacert] {
		p.Note("this machine has no certificate bundle: inside is that of claudebox's nixpkgs; SSL_CERT_FILE=FILE, " +
			"set outside, names one of your own")
	}
}

// notPassed lists the variables of families and proxies that are set outside and not
// inside; entering are the names of those inside.
func notPassed(env host.Environment, entering []string, tier string) []string {
	var list []string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" {
			continue
		}
		isProxy := slices.Contains(proxies, strings.ToUpper(name))
		missed := isNamedApart(name) || isProxy && tier != profile.TierAllow
		if missed && !slices.Contains(entering, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// overridesOf decides which host variables enter with another value or not at all,
// because what they name is not inside.
func overridesOf(p plan.Plan, env host.Environment, inside *view.View) (made launch.Part,
	overrides map[string]launch.Override,
) {
	// every description database has it, and terminals of today can serve it
	const commonTerminal = "xterm-256color"
	overrides = map[string]launch.Override{}
	if name := env.Value("TERM", ""); name != "" && !knowsTerminal(p, name) {
		overrides["TERM"] = launch.Override{Value: commonTerminal, Why: name + " is not known inside"}
		made.Note(fmt.Sprintf("TERM is %s inside: %s has no description there", commonTerminal, name))
	}
	for _, name := range []string{"EDITOR", "VISUAL"} {
		editor := env.Value(name, "")
		program, _, _ := strings.Cut(strings.TrimSpace(editor), " ")
		if reason := inside.Program(program); reason != "" {
			overrides[name] = launch.Override{Drop: true}
			made.Leave("variable", fmt.Sprintf("%s (%s) does not enter: %s", name, editor, reason))
		}
	}
	return made, overrides
}

// knowsTerminal looks a terminal type up where ncurses would: a folder per
// first character, or per its code (terminfo(5)).
func knowsTerminal(p plan.Plan, name string) bool {
	root := plan.ToolPath(p, resolve.ToolTerminfo)
	if root == "" {
		return true
	}
	if !filepath.IsLocal(name) || strings.Contains(name, "/") {
		return false
	}
	for _, dir := range []string{name[:1], fmt.Sprintf("%x", name[0])} {
		if _, err := os.Stat(filepath.Join(root, dir, name)); err == nil {
			return true
		}
	}
	return false
}

// pathFlags are flags of Claude Code that take a path. A path that is not inside gets a note.
var pathFlags = []string{"--add-dir", "--settings", "--mcp-config", "--plugin-dir"}

// unseenWords returns a note for each path among the agent's words that is not inside.
func unseenWords(words []string, project string) (notes []string) {
	for i, word := range words {
		flag, value, inline := strings.Cut(word, "=")
		if !slices.Contains(pathFlags, flag) {
			continue
		}
		if !inline && i+1 < len(words) {
			value = words[i+1]
		}
		path, err := filepath.Abs(value)
		if err == nil && value != "" && value[0] != '{' && !pathname.Below(path, project) {
			notes = append(notes, flag+" "+value+" is not visible inside; add --mount-ro or --mount-rw "+value)
		}
	}
	return notes
}

// extraEnv reads CLAUDEBOX_EXTRA_ENV, a list with commas.
func extraEnv(env host.Environment) []string {
	var names []string
	for name := range strings.SplitSeq(env.Value(extraVariable, ""), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// extraVariable is the host's variable that lists further ones to let in.
const extraVariable = "CLAUDEBOX_EXTRA_ENV"

// judgeExtraEnv returns an error if a word is not the name of a variable, and notes on those that are not set or that
// have an effect of their own: nothing that was asked for is left out in silence.
func judgeExtraEnv(env host.Environment) (made launch.Part, err error) {
	for _, name := range extraEnv(env) {
		if !launch.IsName(name) {
			return made, diag.Errorf("read "+extraVariable,
				"write names with commas between: "+extraVariable+"=GH_TOKEN,AWS_PROFILE",
				"%q is not the name of a variable", name)
		}
		if _, set := env.Get(name); !set {
			made.Note(name + " of " + extraVariable + " is not set here")
		}
		if what := profile.Effect(name); what != "" {
			made.Note(name + " of " + extraVariable + " " + what)
		}
	}
	return made, nil
}
