package program

import (
	"slices"
	"strings"

	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/secret/broker"
)

// WithEntries is an environment with those of entries, NAME=VALUE, that enter from elsewhere than the environment.
func WithEntries(env host.Environment, p plan.Plan, entries []string) host.Environment {
	env = slices.Clone(env)
	for _, entry := range entries {
		name, _, _ := strings.Cut(entry, "=")
		if Enters(p, name) {
			env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
			env = append(env, entry)
		}
	}
	return env
}

// Enters reports whether a variable enters where the user's settings of Claude Code, or a wrapper, set it:
// as it would from the environment.
func Enters(p plan.Plan, name string) bool {
	for _, secret := range broker.Usual {
		if secret.Base == name {
			return true
		}
	}
	_, known := broker.Usual[name]
	return known || slices.ContainsFunc(p.Env, func(e plan.Env) bool {
		return e.Name == name && e.From == plan.FromHost && name != "USER"
	})
}
