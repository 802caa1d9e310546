package doctor

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
)

func TestFaultsKeepPlaceAndRemedy(t *testing.T) {
	at := diag.Position{File: "p.yaml", Line: 2, Column: 1}
	for name, tc := range map[string]struct {
		err  error
		want []Finding
	}{
		"no error is no finding": {nil, nil},
		"each problem of a file is one": {
			diag.Problems{{Position: at, Message: "unknown key"}, {Position: at, Message: "no such tier", Remedy: "use none"}},
			[]Finding{{"profile", Failed, "p.yaml:2:1: unknown key", ""}, {"profile", Failed, "p.yaml:2:1: no such tier", "use none"}},
		},
		"an error says what was being done": {
			diag.Errorf("find claude", "install it", "not found"),
			[]Finding{{"profile", Failed, "find claude: not found", "install it"}},
		},
		"any other error is told as it is": {errors.New("no"), []Finding{{"profile", Failed, "no", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Faults("profile", tc.err); !slices.Equal(got, tc.want) {
				t.Errorf("got %v; want %v", got, tc.want)
			}
		})
	}
}

// Programs read the JSON form.
func TestTheJSONFormStays(t *testing.T) {
	got, err := json.Marshal([]Finding{{"bwrap", Warning, "0.8.0", "upgrade"}})
	want := `[{"name":"bwrap","level":"warning","detail":"0.8.0","remedy":"upgrade"}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

var shown = []Finding{
	{"kernel", OK, "Linux 6.1 has all of it", ""},
	{"bwrap", Failed, "start bwrap /nix/store/0123456789abcdfghijklmnpqrsvwxyz-bubblewrap-0.12.0/bin/bwrap: it is \x1b[2Jsetuid", "run `sudo chmod ug-s /nix/store/0123456789abcdfghijklmnpqrsvwxyz-bubblewrap-0.12.0/bin/bwrap` or use another one"},
	{"state folder", Warning, "only 12 MiB are left for /home/u/.claudebox, which is not much for a day's work of an agent", "free some space on the disk of /home/u/.claudebox, or set CLAUDEBOX_HOME to a folder on another"},
	{"terminal input", Info, "on in the kernel", ""},
}

func TestFindingsReadWellAt80Columns(t *testing.T) {
	want, err := os.ReadFile("testdata/text")
	must.Do(t, err)
	if got := Text(layout.View{Home: "/home/u", Width: 80}, shown); got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestColourIsOfLevelsOnly(t *testing.T) {
	v := layout.View{Width: 80}
	bare := Text(v, shown)
	v.Colour = true
	coloured := Text(v, shown)
	if strings.Contains(bare, "\x1b") {
		t.Errorf("a control character is in %q", bare)
	}
	for level, code := range colours {
		if want := code + string(level); strings.Count(coloured, want) != 1 {
			t.Errorf("%q is not once in %q", want, coloured)
		}
		coloured = strings.ReplaceAll(coloured, code, "")
	}
	if got := strings.ReplaceAll(coloured, layout.Plain, ""); got != bare {
		t.Errorf("without its colours it is %q; want %q", got, bare)
	}
}
