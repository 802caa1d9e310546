package project_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/homelink"
	"claudebox/internal/workspace/project"
)

// What the user's home leads to is read-only, and what cannot be held is refused.
func TestWhatTheHomeLeadsToIsHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		link homelink.Link // paths are below the home
		held []string
		note string
		err  string
	}{
		"a file":                    {link: homelink.Link{Path: ".rc", Leads: "p/file"}, held: []string{"file"}, note: "file ("},
		"a folder":                  {link: homelink.Link{Path: ".rc", Leads: "p/folder"}, held: []string{"folder"}, note: "folder ("},
		"what lies elsewhere":       {link: homelink.Link{Path: ".rc", Leads: "other"}},
		"what is not there":         {link: homelink.Link{Path: ".rc", Leads: "p/no"}, err: "which is not there"},
		"by a link in the project":  {link: homelink.Link{Path: ".rc", Leads: "p/file", Way: []string{".rc", "p/hop"}}, err: "p/hop, a link in the project"},
		"through it and out":        {link: homelink.Link{Path: ".rc", Leads: "other", Way: []string{".rc", "p/hop"}}, err: "p/hop, a link in the project"},
		"the project":               {link: homelink.Link{Path: ".rc", Leads: "p"}, note: "obey what is written there"},
		"a folder around it":        {link: homelink.Link{Path: ".rc", Leads: "around"}},
		"a folder of PATH":          {link: homelink.Link{Path: "p/folder", Leads: "p/folder", Of: "PATH"}, held: []string{"folder"}, note: "PATH ("},
		"one that is absent":        {link: homelink.Link{Path: "p/no", Leads: "p/no", Of: "PATH"}, err: "PATH ("},
		"what a variable names":     {link: homelink.Link{Path: "p/file", Leads: "p/file", Of: "BASH_ENV"}, held: []string{"file"}, note: "BASH_ENV ("},
		"a program in one":          {link: homelink.Link{Path: "p/folder/x", Leads: "p/file", Way: []string{"p/folder/x"}}, held: []string{"file"}, note: "file"},
		"one that is missing there": {link: homelink.Link{Path: "p/folder/x", Leads: "p/no", Way: []string{"p/folder/x", "p/hop"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("p/file", "")
			w.write("p/folder/x", "")
			w.write("other", "")
			req := w.request("p")
			tc.link.Path, tc.link.Leads = w.path(tc.link.Path), w.path(tc.link.Leads)
			for i, hop := range tc.link.Way {
				tc.link.Way[i] = w.path(hop)
			}
			req.HomeLinks = []homelink.Link{tc.link}
			wantHeld(t, req, tc.held, tc.note, tc.err)
		})
	}
}

func wantHeld(t *testing.T, req project.Request, held []string, note, fault string) {
	t.Helper()
	p, err := project.Open(req)
	if fault != "" {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("got %v, want %q", err, fault)
		}
		return
	}
	if err != nil || !slices.Equal(p.ReadOnly, held) {
		t.Errorf("read-only are %q, %v; want %q", p.ReadOnly, err, held)
	}
	if note != "" && !slices.ContainsFunc(p.Notes, func(n project.Note) bool {
		return strings.Contains(n.Text, note)
	}) {
		t.Errorf("%q is not in %v", note, p.Notes)
	}
}

// The user's own file has another name in the project, perhaps deep.
func TestAFileOfTheHomeWithANameHereIsHeld(t *testing.T) {
	w := newWorld(t)
	w.write(".zshenv", "")
	w.mkdir("p/deep/er")
	must.Do(t, unix.Link(w.path(".zshenv"), w.path("p/deep/er/x")))
	var st unix.Stat_t
	must.Do(t, unix.Lstat(w.path(".zshenv"), &st))
	req := w.request("p")
	req.HomeFiles = map[homelink.Inode]string{{Dev: st.Dev, Ino: st.Ino}: w.path(".zshenv")}
	wantHeld(t, req, []string{"deep/er/x"}, "a hard link", "")
}
