package git

import "testing"

func TestAPathMeansWhatItSays(t *testing.T) {
	for text, want := range map[string]bool{
		"../known/.git": true, "/p/known/.git/": true, "": false, "../known/l/../.git": false, "./x": false, "x\x00/../y": false,
	} {
		if to, ok := leadsTo("/p/s", text); ok != want {
			t.Errorf("%q leads to %s: %t", text, to, ok)
		}
	}
}
