package launch

import (
	"cmp"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/plan"
	"claudebox/internal/secret/leak"
)

// variables returns the whole environment inside, sorted by name. late replaces what a plan leaves open, such as
// "${home}", see [lateValues]. A variable that every sandbox has does not enter where its value is probably a secret:
// left says so, and copies which had a secret of [Host.Kept].
func variables(p plan.Plan, h Host, late *strings.Replacer) (list []Variable, left []diag.Left, copies []string) {
	var planned []Variable
	for _, e := range p.Env {
		v, ok := variable(e, h, late)
		if !ok {
			continue
		}
		unasked := v.From == plan.FromHost && v.Why == plan.Base && !v.Secret
		if why := leak.Variable(v.Name, v.Value); unasked && why != "" {
			left = append(left, diag.Left{Kind: "variable", Red: true, Text: v.Name + " does not enter: it is " +
				"probably a secret (" + why + "); `extra_env_passthrough: [" + v.Name + "]` lets it in as it is"})
			continue
		}
		planned = append(planned, v)
	}
	list = slices.Concat(h.Made, planned, extra(h), fallbacks(p, h)) // of several with one name the first counts
	slices.SortStableFunc(list, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
	list = slices.CompactFunc(list, func(a, b Variable) bool { return a.Name == b.Name })
	list, copies = withoutSecrets(list, h.Kept)
	return list, left, copies
}

// withoutSecrets puts placeholders into variables that have a secret which stays outside, wherever they come from: as
// GITHUB_TOKEN beside GH_TOKEN, or an address with a key. One for which there is no placeholder does not enter.
func withoutSecrets(list []Variable, kept []Kept) (without []Variable, notes []string) {
	for _, v := range list {
		value, held := withoutSecret(v.Value, kept)
		v.Value = value
		enters := true
		for _, secret := range held {
			if secret.Placeholder == "" {
				enters = false
				notes = append(notes, v.Name+" does not enter: it holds the same secret as "+secret.Name)
			} else {
				v.From, v.Why, v.Secret = plan.FromMade, secret.Why, false
				notes = append(notes, v.Name+" holds the same secret as "+secret.Name+
					", and enters with its placeholder")
			}
		}
		if enters {
			without = append(without, v)
		}
	}
	return without, notes
}

// withoutSecret returns a text with placeholders in the place of secrets that stay outside, and those that it held.
func withoutSecret(text string, kept []Kept) (without string, held []Kept) {
	for _, secret := range kept {
		if strings.Contains(text, secret.Value) {
			text, held = strings.ReplaceAll(text, secret.Value, secret.Placeholder), append(held, secret)
		}
	}
	return text, held
}

// variable returns a variable of the plan with the value that it has inside. It reports whether the variable is set
// there at all.
func variable(e plan.Env, h Host, late *strings.Replacer) (Variable, bool) {
	switch e.From {
	case plan.FromConst:
		return Variable{Env: e, Value: e.Value}, true
	case plan.FromMade:
		return Variable{Env: e, Value: late.Replace(e.Value)}, e.Name != "NIX_REMOTE" || h.Nix.Daemon
	}
	if o, ok := h.Overrides[e.Name]; ok {
		e.From, e.Why, e.Secret = plan.FromMade, o.Why, e.Secret && !o.Public
		return Variable{Env: e, Value: o.Value}, !o.Drop
	}
	value, ok := h.Facts.Env.Get(e.Name)
	return Variable{Env: e, Value: value}, ok
}

// judge sets Secret for each variable that is probably a secret, declared or not; those
// that claudebox made are left out. It returns a warning for one whose value stands in a profile.
// For the others it returns a note with the reason, unless the name alone shows that it
// is a secret.
func judge(list []Variable) (warnings, notes []string) {
	for i := range list {
		v := &list[i]
		if v.From == plan.FromMade {
			continue
		}
		v.Secret = v.Secret && v.Value != ""
		reason := leak.Variable(v.Name, v.Value)
		switch {
		case reason == "":
			continue
		case v.From == plan.FromConst:
			warnings = append(warnings, v.Name+" enters ("+v.Why+"), and is probably a secret: "+reason)
		case leak.Name(v.Name) == "":
			notes = append(notes, v.Name+" is probably "+reason)
		}
		v.Secret = true
	}
	return warnings, notes
}

// fallbacks returns variables that are used only if nothing else sets others of the same
// name: the parts of the launch, the plan, CLAUDEBOX_EXTRA_ENV.
func fallbacks(p plan.Plan, h Host) []Variable {
	made := func(name, value, why string) Variable {
		return Variable{Env: plan.Env{Name: name, From: plan.FromMade, Why: why}, Value: value}
	}
	list := []Variable{made("LANG", "C.UTF-8", plan.Base), made("USER", h.Facts.User, plan.Base)}
	if h.Nix.Store != "" && p.Network.Tier == "none" {
		// An empty value names no proxy, but stops Nix from warning that there is no network.
		list = append(list, made("http_proxy", "", "nix"))
	}
	if h.Overrides["EDITOR"].Drop {
		list = append(list, made("GIT_EDITOR", "true", "EDITOR is not inside"))
	}
	if slices.Equal(h.Agent.Words, Shell) {
		list = append(list, made("PS1", `[claudebox] \w \$ `, "shell"))
	}
	return list
}

// Shell is the command of a launch that runs a shell for a person.
var Shell = []string{"bash", "--rcfile", ShellFile}

// ShellFile is the file that this shell reads first, with [ShellText].
const ShellFile = "/run/claudebox/bashrc"

// ShellText makes the shell a place to be in. What a program of the profile does, no function does in its place.
const ShellText = `# made by claudebox
[ ! -r ~/.bashrc ] || . ~/.bashrc
case $TERM in dumb | "") ;; *) alias ls='ls --color=auto' grep='grep --color=auto' ;; esac
command -v clear >/dev/null || clear() { printf '\033[H\033[2J\033[3J'; }
command -v ssh >/dev/null || ssh() {
  echo 'claudebox: there is no ssh inside; packages: [openssh] with ssh: {hosts: [HOST]} in the profile logs in' >&2
  return 127
}
if [ -z "$EDITOR$VISUAL" ]; then
  for editor in nano vim nvim vi micro hx emacs; do
    command -v "$editor" >/dev/null && export EDITOR=$editor && break
  done
  unset editor
fi
command_not_found_handle() {
  case $(command -v claudebox-why >/dev/null && claudebox-why "$1") in
    *' of no use '*) echo "claudebox: $1 is of no use inside; it has to be run outside" >&2 ;;
    *) echo "claudebox: $1 is not inside; \", $1\" runs it once, and the profile's packages keep it" >&2 ;;
  esac
  return 127
}
`

// extra returns the variables that the caller added for this launch by CLAUDEBOX_EXTRA_ENV.
func extra(h Host) []Variable {
	var list []Variable
	for _, name := range h.ExtraEnv {
		entry := plan.Env{Name: name, From: plan.FromHost, Why: "CLAUDEBOX_EXTRA_ENV"}
		if v, ok := variable(entry, h, nil); ok && diag.IsVariable(name) {
			list = append(list, v)
		}
	}
	return list
}
