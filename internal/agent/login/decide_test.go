package login

import "testing"

// as makes a reading of a login by its name; "" is none, "ended" one that
// could not be renewed, "lent" one without what renews it, "broken" a fault.
func as(name string) reading {
	switch name {
	case "":
		return reading{}
	case "broken":
		return reading{fault: errNotJSON}
	case "ended":
		return reading{there: true}
	case "lent":
		return reading{there: true, login: login{access: "lent"}}
	}
	return reading{there: true, login: login{access: name, refresh: name}}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		host, inside, base string
		when               moment
		other              bool // the one inside is another account's
		want               step
	}{
		"a new instance gets it":                        {host: "1", want: give},
		"both have the same":                            {host: "1", inside: "1", base: "1", want: agree},
		"both have the same after a crash":              {host: "2", inside: "2", base: "1", want: agree},
		"renewed inside":                                {host: "1", inside: "2", base: "1", want: take},
		"renewed inside before a crash":                 {host: "1", inside: "2", base: "1", when: atLaunch, want: take},
		"renewed outside":                               {host: "2", inside: "1", base: "1", want: give},
		"both new: the user's counts":                   {host: "3", inside: "2", base: "1", want: give},
		"another account inside":                        {host: "1", inside: "2", base: "1", other: true, want: refuse},
		"made inside: stays":                            {host: "1", inside: "9", want: rest},
		"made inside: stays at launch":                  {host: "1", inside: "9", when: atLaunch, want: rest},
		"lent by an older claudebox":                    {host: "1", inside: "lent", when: atLaunch, want: give},
		"nobody is logged in outside":                   {inside: "1", base: "1", want: rest},
		"logged out outside: not undone":                {inside: "2", base: "1", want: rest},
		"a broken file outside":                         {host: "broken", inside: "2", base: "1", want: rest},
		"a broken file inside, while it is written":     {host: "1", inside: "broken", base: "1", want: rest},
		"a broken file inside at launch":                {host: "1", inside: "broken", base: "1", when: atLaunch, want: give},
		"none inside at launch":                         {host: "1", base: "1", when: atLaunch, want: give},
		"logged out inside: not undone in the session":  {host: "1", base: "1", want: rest},
		"revoked: ended inside":                         {host: "1", inside: "ended", base: "1", want: rest},
		"ended inside, renewed outside":                 {host: "2", inside: "ended", base: "1", want: give},
		"ended outside, for it was renewed inside":      {host: "ended", inside: "2", base: "1", want: take},
		"ended outside, another account inside":         {host: "ended", inside: "2", base: "1", other: true, want: rest},
		"ended outside and the same inside":             {host: "ended", inside: "1", base: "1", want: rest},
		"ended outside, one of its own inside":          {host: "ended", inside: "9", want: rest},
		"ended at both":                                 {host: "ended", inside: "ended", base: "1", want: rest},
		"renewed inside without what renews it is none": {host: "1", inside: "lent", base: "1", want: rest},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(as(tc.host), as(tc.inside), as(tc.base).sum(), tc.when, func() bool { return !tc.other })
			if got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
