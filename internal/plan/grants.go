package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/profile/grant"
)

// Grants returns all that a plan says, as what it lets in. Pinned paths in values have the names of their pins, so that
// a value is equal where only a pin has changed.
func (p Plan) Grants() (set grant.Set) {
	add := func(key, name, of string) { set = append(set, grant.Grant{Key: key, Name: name, Of: of}) }
	packages := map[string]int{} // where each stands in the set
	for _, pkg := range p.Pins.Packages {
		at, again := packages[pkg.Attr]
		if !again {
			at, packages[pkg.Attr] = len(set), len(set)
			add("packages", pkg.Attr, "")
		}
		set[at].Of = strings.TrimSpace(set[at].Of + " " + pinned(pkg))
	}
	if n := p.Pins.Nixpkgs; n != (Nixpkgs{}) {
		add("nixpkgs", "", strings.TrimSpace(n.Rev+" "+n.Path+" "+n.NarHash))
	}
	for _, t := range p.Pins.Tools {
		add("tool", t.Name, t.Path)
	}
	for _, path := range p.Pins.Closure {
		add("closure", path, "")
	}
	named := p.pinNames()
	for _, e := range p.Env {
		if e.Name != "PATH" || e.From != FromMade { // which follows from the packages
			set = append(set, e.grant(named))
		}
	}
	for _, m := range p.Mounts {
		set = append(set, m.grant(named))
	}
	set = append(set, p.Settings()...)
	add("profile", "", p.Profile)
	count := map[string]int{} // a profile may extend one of its own name
	for _, s := range p.Sources {
		name := s.Name
		if count[name]++; count[name] > 1 {
			name += fmt.Sprintf(" (%d)", count[name])
		}
		add("source", name, s.SHA256)
	}
	return set
}

// pinned is a package's version, with its outputs if they are not the usual one, and their paths.
func pinned(p Package) string {
	names, paths := p.Version, ""
	for i, o := range p.Outputs {
		if paths += " " + o.Path; len(p.Outputs) > 1 || o.Name != "out" {
			names += map[bool]string{true: "^", false: ","}[i == 0] + o.Name
		}
	}
	return names + paths
}

// pinNames replaces pinned store paths by the names of their pins.
func (p Plan) pinNames() *strings.Replacer {
	var pairs []string
	name := func(path, name string) {
		if path != "" {
			pairs = append(pairs, path, "<"+name+">")
		}
	}
	name(p.Pins.Nixpkgs.Path, "nixpkgs")
	for _, t := range p.Pins.Tools {
		name(t.Path, "tool "+t.Name)
	}
	for _, pkg := range p.Pins.Packages {
		for _, o := range pkg.Outputs {
			name(o.Path, pkg.Attr+"^"+o.Name)
		}
	}
	return strings.NewReplacer(pairs...)
}

func (e Env) grant(named *strings.Replacer) grant.Grant {
	g := grant.Grant{Key: grant.Variable, Name: e.Name, Of: string(e.From)}
	if e.From == FromHost {
		g.Level = "host"
	} else {
		g.Of += " " + named.Replace(e.Value)
	}
	if e.Secret {
		g.Level = strings.TrimSpace(g.Level + " secret")
	}
	return g
}

// grant gives rights to a profile's mounts alone: those of the base differ between plans by pinned paths only.
func (m Mount) grant(named *strings.Replacer) grant.Grant {
	level := string(m.Kind)
	if rights := map[MountKind]string{ROBind: "ro", Bind: "rw"}[m.Kind]; rights != "" && m.Why != Base {
		level = rights
	}
	if m.Optional {
		level += " optional"
	}
	if m.Secret {
		level += " secret"
	}
	if m.Mode != "" {
		level += " mode=" + m.Mode
	}
	if m.Size != 0 {
		level += " size=" + strconv.FormatInt(m.Size, 10)
	}
	return grant.Grant{Key: "mounts", Name: m.Destination, Level: level, Of: named.Replace(m.Source)}
}

// pinsAndMounts are the fields of a plan that are not among its settings.
var pinsAndMounts = []string{"version", "profile", "sources", "pins", "path", "env", "mounts"}

// Settings returns what a plan says besides its pins, variables and mounts. It walks over the fields, so that none that
// a later version adds is forgotten here.
func (p Plan) Settings() (set grant.Set) {
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		if name := jsonName(v.Type().Field(i)); !slices.Contains(pinsAndMounts, name) {
			set = append(set, settings(name, v.Field(i))...)
		}
	}
	return set
}

// profileKeys are the keys of a profile that a plan has under other names.
var profileKeys = map[string]string{
	"network.tier": "network", "network.in": "ports.in", "network.out": "ports.out",
	"git.sshToHttps": "git.ssh_to_https", "git.ssh": "ssh.hosts",
	"protect.mode": "protect_mode", "protect.globs": "protect", "mcp": "mcp.import",
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func settings(name string, v reflect.Value) (set grant.Set) {
	key := cmp.Or(profileKeys[name], name)
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			set = append(set, settings(name+"."+jsonName(v.Type().Field(i)), v.Field(i))...)
		}
	case v.IsZero() && v.Kind() != reflect.Bool: // it is not said
	case strings.HasPrefix(name, "agent.") && v.Kind() == reflect.Slice: // in command lines the order matters
		set = grant.Set{grant.One(key, grant.Words(v.Interface().([]string)))}
	case v.Kind() != reflect.Slice:
		set = grant.Set{grant.One(key, fmt.Sprint(v.Interface()))}
	default:
		for i := range v.Len() {
			set = append(set, entries(key, v.Index(i).Interface())...)
		}
	}
	return set
}

// entries are the grants of an entry of a list: a secret has one for each host.
func entries(key string, of any) (set grant.Set) {
	switch v := of.(type) {
	case Secret:
		how := strings.Join(slices.Concat(v.As, []string{v.Header, v.File}, v.Write), " ")
		for _, host := range v.Hosts {
			set = append(set, grant.Grant{Key: key, Name: v.Variable + " for " + host, Of: how})
		}
		return set
	case GitHost:
		return grant.Set{{Key: key, Name: v.Host + " with " + v.Variable}}
	}
	return grant.Set{{Key: key, Name: fmt.Sprint(of)}}
}
