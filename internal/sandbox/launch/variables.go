package launch

import (
	"cmp"
	"slices"
	"strings"

	"claudebox/internal/plan"
	"claudebox/internal/secret/leak"
)

// variables are the whole environment inside, sorted by name.
func variables(p plan.Plan, h Host, late late) []Variable {
	list := slices.Clone(h.Made)
	made := len(list)
	list = slices.Grow(list, len(p.Env)+len(h.ExtraEnv)+3)
	for _, e := range p.Env {
		if slices.ContainsFunc(list[:made], func(v Variable) bool { return v.Name == e.Name }) {
			continue
		}
		if v, ok := variable(e, h, late); ok {
			list = append(list, v)
		}
	}
	for _, e := range slices.Concat(hostMade(p, h), extra(h)) {
		if !slices.ContainsFunc(list, func(v Variable) bool { return v.Name == e.Name }) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func variable(e plan.Env, h Host, late late) (Variable, bool) {
	switch e.From {
	case plan.FromConst:
		return Variable{Env: e, Value: e.Value}, true
	case plan.FromMade:
		return Variable{Env: e, Value: late.Replace(e.Value)}, e.Name != "NIX_REMOTE" || h.Daemon
	}
	if o, ok := h.Overrides[e.Name]; ok {
		e.From, e.Why, e.Secret = plan.FromMade, o.Why, e.Secret && !o.Public
		return Variable{Env: e, Value: o.Value}, !o.Drop
	}
	value, ok := h.Facts.Env.Get(e.Name)
	return Variable{Env: e, Value: value}, ok
}

// judge marks what is probably a secret, said or not (SEC-01). It warns of
// those that nobody asked to pass, in a variable that usually holds none or in
// a profile's own text, and notes what is known of the others besides a name
// that says it all.
func judge(list []Variable) (warnings, notes []string) {
	for i := range list {
		v := &list[i]
		if v.From == plan.FromMade {
			continue
		}
		reason := leak.Variable(v.Name, v.Value)
		switch {
		case reason == "":
			continue
		case !v.Secret || v.From == plan.FromConst:
			warnings = append(warnings, v.Name+" enters ("+v.Why+"), and is probably a secret: "+reason)
		case leak.Name(v.Name) == "":
			notes = append(notes, v.Name+" is probably "+reason)
		}
		v.Secret = true
	}
	return warnings, notes
}

// hostMade are variables that are made only where the host has not said
// something better.
func hostMade(p plan.Plan, h Host) []Variable {
	made := func(name, value, why string) Variable {
		return Variable{Env: plan.Env{Name: name, From: plan.FromMade, Why: why}, Value: value}
	}
	list := []Variable{made("LANG", "C.UTF-8", plan.Base), made("USER", h.Facts.User, plan.Base)}
	if h.NixStore != "" && p.Network.Tier == "none" {
		// Set and empty it names no proxy, and ends a warning of Nix that there is no network.
		list = append(list, made("http_proxy", "", "nix"))
	}
	if h.Overrides["EDITOR"].Drop {
		list = append(list, made("GIT_EDITOR", "true", "EDITOR is not inside"))
	}
	return list
}

// IsName reports whether text is the name of a variable: a script that names it would run anything else.
func IsName(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

// extra are the variables that the caller added for this launch.
func extra(h Host) []Variable {
	var list []Variable
	for _, name := range h.ExtraEnv {
		entry := plan.Env{Name: name, From: plan.FromHost, Secret: true, Why: "CLAUDEBOX_EXTRA_ENV"}
		if v, ok := variable(entry, h, nil); ok && IsName(name) {
			list = append(list, v)
		}
	}
	return list
}
