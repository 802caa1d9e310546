package launch

import "testing"

func TestValuesArePutInOnce(t *testing.T) {
	byName := map[string]string{"home": "/h/${project}", "project": "/p"}
	for text, want := range map[string]string{
		"":                       "",
		"plain":                  "plain",
		"${home}":                "/h/${project}",
		"a${project}b${project}": "a/pb/p",
		"${other}${project}":     "${other}/p",
		"${home":                 "${home",
		"${${project}":           "${/p",
		"$project}":              "$project}",
	} {
		if got := values("${", byName).Replace(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
