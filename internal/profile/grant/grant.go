package grant

import (
	"cmp"
	"path"
	"slices"

	"claudebox/internal/linux/pathname"
	"claudebox/internal/profile"
)

// Grant is one thing that is let in, or kept back.
type Grant struct {
	Key   string `json:"key"`             // of a profile, or a word of its own for what no profile has
	Name  string `json:"name,omitempty"`  // which of its kind, as a host or a path inside; empty: there is one of it
	Level string `json:"level,omitempty"` // how much of it: a word that the key's rule orders, or rights
	Of    string `json:"of,omitempty"`    // what it is: of two that differ in it neither is less
	Why   string `json:"-"`               // the rule that it comes from; compared with nothing
}

// Set is what a sandbox lets in, and keeps back. No two grants of a key have one name. The order counts for packages
// alone, which are in that of PATH.
type Set []Grant

// Level returns the level of a key of which there is one; empty: it is not there.
func (s Set) Level(key string) string {
	if i := slices.IndexFunc(s, func(g Grant) bool { return g.Key == key }); i >= 0 {
		return s[i].Level
	}
	return ""
}

// Sorted returns the set by keys and names. Of grants of one name the last stays.
func (s Set) Sorted() Set {
	slices.SortStableFunc(s, func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Name, b.Name))
	})
	var made Set
	for i, g := range s {
		if i == len(s)-1 || g.id() != s[i+1].id() {
			made = append(made, g)
		}
	}
	return made
}

// Verdict is whether a change lets in more.
type Verdict int

// The verdicts. Who must not widen a sandbox takes [Unsure] for [More].
const (
	Unsure Verdict = iota
	Less           // certainly no more than before
	More
)

// Change is a difference between two sets: a grant that came, went (After is zero), or is another.
type Change struct {
	Before  Grant   `json:"before,omitzero"`
	After   Grant   `json:"after,omitzero"`
	Verdict Verdict `json:"-"`
	// Shows is what of the host lies at the mount's place afterwards; empty: nothing, or it is no mount.
	Shows string `json:"-"`
}

// Same reports whether two changes are between the same grants.
func (c Change) Same(other Change) bool {
	return c.Before.same(other.Before) && c.After.same(other.After)
}

// Came reports that the grant was not there before.
func (c Change) Came() bool { return c.Before.Key == "" }

// Went reports that the grant is not there afterwards.
func (c Change) Went() bool { return c.After.Key == "" }

// Key returns the key of the change's grants.
func (c Change) Key() string {
	if c.Came() {
		return c.After.Key
	}
	return c.Before.Key
}

// Sides are two sets that are compared.
type Sides struct {
	Before, After Set
	Shared        Set                      // mounts that both have besides: they show what is not covered
	Absolute      func(path string) string // makes paths of mounts comparable; nil: they are
}

// Within reports whether the set after certainly lets in no more than that before. What lay over a path of the host
// that is gone hid nothing.
func (s Sides) Within(gone func(path string) bool) bool {
	return !slices.ContainsFunc(s.Changes(), func(c Change) bool {
		return c.Verdict != Less && (c.Shows == "" || !gone(c.Shows))
	})
}

// Order is the name of the change that means another order of packages that both sides have.
const Order = "another order on PATH"

// Changes returns all differences: what came or is another, in the order of After, then what went, in that of Before.
func (s Sides) Changes() (list []Change) {
	before, after := s.Before.byName(), s.After.byName()
	for _, is := range s.After {
		if was := before[is.id()]; !was.same(is) {
			list = append(list, s.judged(Change{Before: was, After: is}))
		}
	}
	for _, was := range s.Before {
		if _, stays := after[was.id()]; !stays {
			list = append(list, s.judged(Change{Before: was}))
		}
	}
	if !slices.Equal(s.Before.order(after), s.After.order(before)) {
		list = append(list, Change{After: Grant{Key: "packages", Name: Order}})
	}
	return list
}

// id is what two grants have in common that are two values of one thing.
func (g Grant) id() [2]string { return [2]string{g.Key, g.Name} }

// same reports whether two grants let in the same, by whatever rule.
func (g Grant) same(other Grant) bool {
	g.Why, other.Why = "", ""
	return g == other
}

func (s Set) byName() map[[2]string]Grant {
	all := make(map[[2]string]Grant, len(s))
	for _, g := range s {
		all[g.id()] = g
	}
	return all
}

// order returns the names of the packages that another set has as well.
func (s Set) order(other map[[2]string]Grant) (names []string) {
	for _, g := range s {
		if _, both := other[g.id()]; both && g.Key == "packages" {
			names = append(names, g.Name)
		}
	}
	return names
}

// judged returns the change with its verdict.
func (s Sides) judged(c Change) Change {
	r := rules[c.Key()]
	switch was, is := c.Before, c.After; {
	case s.implied(c):
		c.Verdict = Less
	case was.Key == Mount, is.Key == Mount, was.Key == "mounts" && c.Went():
		c.Verdict, c.Shows = s.seen(cmp.Or(was.Name, is.Name))
	case was.Level == is.Level && c.Came():
		c.Verdict = r.comes
	case was.Level == is.Level && c.Went():
		c.Verdict = r.goes
	default:
		c.Verdict = r.level(was.Level, is.Level)
		if c.Verdict == Less && was.Of != is.Of && !c.Went() && !c.Came() {
			c.Verdict = r.other
			if r.rights && r.level("", is.Level) == Less { // none
				c.Verdict = Unsure
			}
		}
	}
	return c
}

// implied reports whether the network's tiers decide about a change: the tier before reached it already, or it counts
// no more. Tier inet reaches the public hosts that any list can name, full also ports and the user's own network.
func (s Sides) implied(c Change) bool {
	before, after := s.Before.Level("network"), s.After.Level("network")
	switch c.Key() {
	case "network.allow":
		return before == profile.TierFull || before == profile.TierInet
	case "network.private", "network.except", "ports.in", "ports.out":
		return before == profile.TierFull
	case "network.via":
		return after != profile.TierAllow
	}
	return false
}

// seen judges what lies at a place inside: no more than before, if it is the same of the host with no more rights.
func (s Sides) seen(at string) (v Verdict, shows string) {
	had, could := s.nearest(s.Before, at)
	has, can := s.nearest(s.After, at)
	if r := rules[Mount]; r.level("", can) == Less || has == had && r.level(could, can) == Less {
		return Less, has
	}
	return More, has
}

// nearest returns which path of the host is seen at a place inside, and with which rights. The mount at that place
// decides, or else the one at the nearest folder above it.
func (s Sides) nearest(set Set, at string) (source, rights string) {
	longest := 0
	at = s.absolute(at)
	for _, g := range slices.Concat(s.Shared, set) {
		if g.Key != Mount && g.Key != "mounts" {
			continue
		}
		place := s.absolute(g.Name)
		if rest, below := pathname.Cut(at, place); below && len(place) >= longest {
			longest, source, rights = len(place), path.Join(s.absolute(g.Of), rest), g.Level
		}
	}
	return source, rights
}

func (s Sides) absolute(name string) string {
	if s.Absolute == nil {
		return name
	}
	return s.Absolute(name)
}
