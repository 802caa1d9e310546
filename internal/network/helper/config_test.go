package helper

import (
	"slices"
	"strconv"
	"testing"
)

// What is opened while a session runs is no more than its tier could have.
func TestAnOpeningIsOfItsTier(t *testing.T) {
	var many []string
	for n := range mostRules {
		many = append(many, "h"+strconv.Itoa(n)+".test")
	}
	for name, tc := range map[string]struct {
		tier string
		open Opening
		ok   bool
	}{
		"a host of a list":            {"allow", Opening{Allow: []string{"a.test", "*.b.test:22"}}, true},
		"a listed host again":         {"allow", Opening{Allow: []string{"listed.test"}}, true},
		"what is no host":             {"allow", Opening{Allow: []string{"*"}}, false},
		"an address in tier allow":    {"allow", Opening{Except: []string{"192.168.1.2:22"}}, false},
		"an address":                  {"inet", Opening{Except: []string{"192.168.1.2:22"}}, true},
		"this machine":                {"inet", Opening{Except: []string{"127.0.0.1:22"}}, false},
		"a cloud's metadata":          {"inet", Opening{Except: []string{"169.254.169.254"}}, false},
		"everything":                  {"inet", Opening{Except: []string{"0.0.0.0/0"}}, false},
		"a host of a list, tier inet": {"inet", Opening{Allow: []string{"a.test"}}, false},
		"a host, tier none":           {"none", Opening{Allow: []string{"a.test"}}, false},
		"an address, tier none":       {"none", Opening{Except: []string{"192.168.1.2:22"}}, false},
		"too many":                    {"allow", Opening{Allow: many}, false},
	} {
		before := Config{Tier: tc.tier}
		if tc.tier == "allow" {
			before.Allow = []Entry{{Pattern: "listed.test"}}
		}
		after, err := before.With(tc.open)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if len(before.Allow) > 1 || len(before.Except) > 0 {
			t.Errorf("%s: the configuration before has changed", name)
		}
		if twice, err := after.With(tc.open); tc.ok && (err != nil || !slices.Equal(twice.Allow, after.Allow) || !slices.Equal(twice.Except, after.Except)) {
			t.Errorf("%s: opened twice it is %v, %v", name, twice, err)
		}
	}
}
