package grant

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"claudebox/internal/profile"
	"claudebox/internal/profile/shape"
)

// unjudged are the keys that let nothing in.
var unjudged = []string{"name", "description", "extends"}

// A key that somebody adds to the schema must be judged, with each of its words.
func TestEveryKeyOfTheSchemaIsJudged(t *testing.T) {
	var walk func(path string, of *shape.Shape)
	walk = func(path string, of *shape.Shape) {
		at := slices.IndexFunc(settings, func(s setting) bool { return s.key == path })
		for _, word := range of.Words {
			known := func(chain []string) bool { return slices.Contains(chain, word) }
			if at >= 0 && !slices.ContainsFunc(settings[at].rule.chains, known) {
				t.Errorf("%s: %s has no rank", path, word)
			}
		}
		if of.Kind != shape.Record || of.Whole {
			if at < 0 && !slices.Contains(unjudged, path) {
				t.Errorf("%s has no rule", path)
			}
			return
		}
		for _, key := range of.Keys {
			switch {
			case key.Name == of.ScalarKey: // it is that of the record
				walk(path, key.Shape)
			case path == "":
				walk(key.Name, key.Shape)
			default:
				walk(path+"."+key.Name, key.Shape)
			}
		}
	}
	walk("", profile.Schema())
}

// A field that somebody adds to the profile must be judged.
func TestEveryFieldOfAProfileIsJudged(t *testing.T) {
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		judged := func(s setting) bool { return s.field == path }
		if slices.ContainsFunc(settings, judged) || slices.Contains([]string{"Name", "Description", "Sources"}, path) {
			return
		}
		if of.Kind() != reflect.Struct {
			t.Errorf("%s is judged by no setting", path)
			return
		}
		for i := range of.NumField() {
			walk(strings.TrimPrefix(path+"."+of.Field(i).Name, "."), of.Field(i).Type)
		}
	}
	walk("", reflect.TypeFor[profile.Profile]())
}

func never(string) bool { return false }

// A grant of which nothing is known is never less.
func TestWhatHasNoRuleIsNotWithin(t *testing.T) {
	old, other := Grant{Key: "new", Of: "a"}, Grant{Key: "new", Of: "b"}
	for name, s := range map[string]Sides{
		"comes":              {After: Set{old}},
		"goes":               {Before: Set{old}},
		"is another":         {Before: Set{old}, After: Set{other}},
		"has a level":        {After: Set{{Key: "new", Level: "high"}}},
		"unknown level":      {Before: Set{{Key: "network", Level: "none"}}, After: Set{{Key: "network", Level: "less"}}},
		"to the home of all": {Before: Set{{Key: "state", Level: "host"}}, After: Set{{Key: "state", Level: "shared"}}},
		"to the user's own":  {Before: Set{{Key: "state", Level: "shared"}}, After: Set{{Key: "state", Level: "host"}}},
		"tier is gone":       {Before: Set{{Key: "network", Level: "huge"}}},
	} {
		if s.Within(never) {
			t.Errorf("%s: it is within", name)
		}
	}
	if s := (Sides{Before: Set{old}, After: Set{old}}); !s.Within(never) {
		t.Error("the same is not within itself")
	}
}
