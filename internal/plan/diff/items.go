package diff

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
)

// side is one of the two plans that are compared.
type side struct {
	plan.Plan
	// named replaces pinned store paths by the names of their pins, so that values
	// which differ only because a pin changed are equal on both sides.
	named *strings.Replacer
}

func newSide(p plan.Plan) side {
	var pairs []string
	name := func(path, name string) { pairs = append(pairs, path, "<"+name+">") }
	if p.Pins.Nixpkgs.Path != "" {
		name(p.Pins.Nixpkgs.Path, "nixpkgs")
	}
	for _, t := range p.Pins.Tools {
		name(t.Path, "tool "+t.Name)
	}
	for _, pkg := range p.Pins.Packages {
		for _, o := range pkg.Outputs {
			name(o.Path, pkg.Attr+"^"+o.Name)
		}
	}
	return side{p, strings.NewReplacer(pairs...)}
}

// packages compares the packages by attribute. Another order is a change, too: of two
// programs with one name the first on PATH runs.
func packages(a, b side) []Change {
	before, after := a.packages(), b.packages()
	changes := compare(before, after)
	if !slices.Equal(common(before, after), common(after, before)) {
		changes = append(changes, Change{Kind: Changed, Name: "order on PATH", Note: "another program may come first"})
	}
	return changes
}

// common returns the names in list that are also in other, in the order of list.
func common(list, other []item) []string {
	known := index(other)
	var names []string
	for _, i := range list {
		if _, ok := known[i.name]; ok {
			names = append(names, i.name)
		}
	}
	return names
}

// packages returns one item for each attribute, with all its outputs.
func (s side) packages() []item {
	var list []item
	for _, p := range s.Pins.Packages {
		var names, paths []string
		for _, o := range p.Outputs {
			names, paths = append(names, o.Name), append(paths, o.Path)
		}
		text := p.Version
		if !slices.Equal(names, []string{"out"}) {
			text += "^" + strings.Join(names, ",")
		}
		if i := slices.IndexFunc(list, func(i item) bool { return i.name == p.Attr }); i >= 0 {
			list[i].show, list[i].same = list[i].show+" "+text, list[i].same+fmt.Sprint(names, paths)
			continue
		}
		list = append(list, item{name: p.Attr, same: fmt.Sprint(p.Version, names, paths), show: text, note: rebuilt})
	}
	return list
}

const rebuilt = "another build of it"

func (s side) nixpkgs() []item {
	n := s.Pins.Nixpkgs
	if n == (plan.Nixpkgs{}) {
		return nil
	}
	return []item{{
		name: "nixpkgs", same: n.Rev + " " + n.NarHash + " " + n.Path, show: cmp.Or(n.Rev, n.Path),
		note: "another source of it",
	}}
}

func (s side) tools() []item {
	var list []item
	for _, t := range s.Pins.Tools {
		show := t.Path
		if path, err := storepath.Of(t.Path); err == nil {
			show = storepath.Name(path)
		}
		list = append(list, item{name: t.Name, same: t.Path, show: show, note: rebuilt})
	}
	return list
}

// variables returns the variables without PATH, which follows from the packages.
func (s side) variables() []item {
	var list []item
	for _, e := range s.Env {
		value := s.named.Replace(e.Value)
		if e.Name == "PATH" && e.From == plan.FromMade {
			continue
		}
		i := item{name: e.Name, same: fmt.Sprint(e.From, e.Secret, value), show: shownValue(e), note: "its value"}
		if e.From == plan.FromHost {
			i.rank = 1
		}
		if e.Secret {
			i.rank++
		}
		list = append(list, i)
	}
	return list
}

func shownValue(e plan.Env) string {
	text := "from the host"
	switch {
	case e.From != plan.FromHost && e.Secret:
		text = string(e.From)
	case e.From != plan.FromHost:
		text = readable(e.Value)
	}
	if e.Secret {
		text += ", secret"
	}
	return text
}

func (s side) mounts() []item {
	var list []item
	for _, m := range s.Mounts {
		source := s.named.Replace(m.Source)
		list = append(list, item{
			name: readable(m.Destination),
			same: fmt.Sprint(m.Kind, " ", source, " ", m.Mode, m.Size, m.Optional, m.Secret),
			show: shownMount(m), note: "its mode or size",
			rank: mountRank(m), of: m.Source,
		})
	}
	return list
}

// mountRank returns how much a mount grants: 2 for a writable bind, 1 for a read-only
// one, else 0, as only binds show something of the host. It is 0 for mounts of the
// base, which differ between plans only by pinned paths.
func mountRank(m plan.Mount) int {
	if m.Why == plan.Base {
		return 0
	}
	return map[plan.MountKind]int{plan.ROBind: 1, plan.Bind: 2}[m.Kind]
}

var access = map[plan.MountKind]string{plan.Bind: "rw", plan.ROBind: "ro"}

func shownMount(m plan.Mount) string {
	text := access[m.Kind]
	if text == "" {
		text = string(m.Kind)
	}
	if m.Source != "" && m.Source != m.Destination {
		text += " ← " + readable(m.Source)
	}
	if m.Optional {
		text += ", optional"
	}
	if m.Secret {
		text += ", secret"
	}
	return text
}

// closure returns one change that counts the store paths which were added to and
// removed from the plans' closures; nil if they are equal.
func closure(a, b side) []Change {
	before, after := a.Pins.Closure, b.Pins.Closure
	gone, come := without(before, after), without(after, before)
	if len(gone)+len(come) == 0 {
		return nil
	}
	count := func(list []string) string { return strconv.Itoa(len(list)) + " paths" }
	return []Change{{
		Kind: Changed, Name: "closure", Before: count(before), After: count(after),
		Note: fmt.Sprintf("%d new, %d gone", len(come), len(gone)),
	}}
}

func without(list, other []string) []string {
	known := make(map[string]bool, len(other))
	for _, s := range other {
		known[s] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return known[s] })
}

// readable replaces late values by what stands for them in a profile: "~" and ".".
func readable(text string) string { return late.Replace(text) }

var late = strings.NewReplacer("${home}", "~", "${project}", ".")

// told are the JSON keys of a plan that other subjects cover, so [rest] skips them.
var told = []string{"version", "profile", "sources", "pins", "path", "env", "mounts", "network"}

// rest returns the items of all parts of a plan that have no subject of their own. It
// uses reflection, so that fields which a later version adds are not forgotten here.
func rest(p plan.Plan) []item {
	var list []item
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		if name := key(v.Type().Field(i)); !slices.Contains(told, name) {
			list = append(list, settings(name, v.Field(i).Interface())...)
		}
	}
	return list
}

// key returns a field's name in JSON.
func key(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// settings returns the values of a part of a plan as items: "git.config" with its
// value, and "hide .env" for an element of a list.
func settings(name string, value any) []item {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Struct:
		var list []item
		for i := range v.NumField() {
			list = append(list, settings(name+"."+key(v.Type().Field(i)), v.Field(i).Interface())...)
		}
		return list
	case reflect.Slice:
		return members(name, v)
	}
	text := fmt.Sprint(value)
	grants := rank(name, text)
	switch limits := strings.HasPrefix(name, "limits."); {
	case text == "", limits && v.IsZero():
		return nil
	case limits: // a protection, which is weaker the larger the limit is
		grants = int(v.Int()) - math.MaxInt
	}
	return []item{{name: name, same: text, show: text, rank: grants}}
}

// members returns the elements of a list as items. The agent's lists are one item
// each, because in command lines the order matters.
func members(name string, v reflect.Value) []item {
	if strings.HasPrefix(name, "agent.") && v.Len() > 0 {
		text := strings.Join(v.Interface().([]string), " ")
		return []item{{
			name: name, same: fmt.Sprintf("%q", v.Interface()), show: text,
			note: "how it is split into words",
		}}
	}
	grants := 1 // one more makes the sandbox wider
	if slices.Contains(restrictions, name) {
		grants = -1
	}
	var list []item
	for i := range v.Len() {
		value := v.Index(i).Interface()
		if s, is := value.(plan.Secret); is {
			for _, host := range s.Hosts {
				list = append(list, item{
					name: name + " " + s.Variable + " for " + host, same: fmt.Sprint(s.File, s.As, s.Header, s.Write),
					note: "where it is, how it is sent, or where it writes", rank: grants,
				})
			}
			continue
		}
		list = append(list, item{name: name + " " + strings.Trim(fmt.Sprint(value), "{}"), rank: grants})
	}
	return list
}

// network removes the prefix "network." from the changes' names, as the subject has that name.
func network(changes []Change) []Change {
	for i := range changes {
		changes[i].Name = strings.TrimPrefix(changes[i].Name, "network.")
	}
	return changes
}

// rank returns how much the value word of a setting grants; 0 for settings without an order.
func rank(name, word string) int {
	switch name {
	case "network.tier":
		name = "network"
	case "protect.mode":
		name = "protect_mode"
	}
	return max(slices.Index(profile.ByGrant[name], word), 0)
}

// restrictions are the lists of which one less makes the sandbox wider. Of all others one more does.
var restrictions = []string{"hide", "protect.globs"}

// sources returns the name of the plan's profile and the profile files that it was made from as items.
func sources(p plan.Plan) []item {
	list := []item{{name: "name", same: p.Profile, show: p.Profile}}
	count := map[string]int{} // a profile may extend one of its own name
	for _, s := range p.Sources {
		name := s.Name
		if count[name]++; count[name] > 1 {
			name += fmt.Sprintf(" (%d)", count[name])
		}
		list = append(list, item{name: name, same: s.SHA256, note: "its file has changed"})
	}
	return list
}
