package diff

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"claudebox/internal/plan"
	"claudebox/internal/profile"
)

// told are the parts of a plan that have a subject of their own.
var told = []string{"version", "profile", "sources", "pins", "path", "env", "mounts", "network"}

// rest is everything of a plan that has no subject of its own. It is read off
// the type, so that what a later version adds is not forgotten here.
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

// key is a field's name in the file.
func key(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// settings lists the values of a part of a plan: "git.config" with its value,
// and "hide .env" for what stands in a list.
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
	if strings.HasPrefix(name, "limits.") {
		if v.IsZero() {
			return nil
		}
		// a protection, and less the larger it is
		return []item{{name: name, same: text, show: text, rank: int(v.Int()) - math.MaxInt}}
	}
	if text == "" {
		return nil
	}
	return []item{{name: name, same: text, show: text, rank: rank(name, text)}}
}

// members are the elements of a list. Of words that are run, the order counts.
func members(name string, v reflect.Value) []item {
	if strings.HasPrefix(name, "agent.") && v.Len() > 0 {
		text := strings.Join(v.Interface().([]string), " ")
		return []item{{
			name: name, same: fmt.Sprintf("%q", v.Interface()), show: text,
			note: "how it is split into words",
		}}
	}
	var list []item
	for i := range v.Len() {
		text := strings.Trim(fmt.Sprint(v.Index(i).Interface()), "{}")
		list = append(list, item{name: name + " " + text, rank: memberRanks[name]})
	}
	return list
}

// network leaves out what the subject's name says.
func network(changes []Change) []Change {
	for i := range changes {
		changes[i].Name = strings.TrimPrefix(changes[i].Name, "network.")
	}
	return changes
}

// rank is how much a word of a setting grants.
func rank(name, word string) int {
	switch name {
	case "network.tier":
		name = "network"
	case "protect.mode":
		name = "protect_mode"
	}
	return max(slices.Index(profile.ByGrant[name], word), 0)
}

// memberRanks say of lists whether one more member is wider, or one less.
var memberRanks = map[string]int{
	"network.allow": 1, "network.except": 1, "network.private": 1, "network.in": 1, "network.out": 1,
	"git.hosts": 1, "git.ssh": 1, "show": 1,
	"hide": -1, "protect.globs": -1,
}

// sources are the files that a plan was made of.
func sources(p plan.Plan) []item {
	list := []item{{name: "name", same: p.Profile, show: p.Profile}}
	for _, s := range p.Sources {
		list = append(list, item{name: s.Name, same: s.SHA256, note: "its file has changed"})
	}
	return list
}
