package homelink_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/homelink"
	"claudebox/internal/workspace/survey"
)

// home is a home beside a project, and what leads from one to the other.
type home struct {
	t         *testing.T
	home, top string
	question  homelink.Question
}

func newHome(t *testing.T) *home {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("NOT RUN: what root owns is no agent's")
	}
	top, err := beneath.Canonical(t.TempDir())
	h := &home{t: t, home: top + "/home", top: top}
	must.Do(h.t, err, os.MkdirAll(h.home, 0o755), os.Mkdir(top+"/p", 0o755))
	h.question = homelink.Question{Home: h.home, Cache: top + "/cache", Build: "1"}
	return h
}

// write makes a file; both paths are below the top.
func (h *home) write(name string) {
	h.t.Helper()
	must.Write(h.t, h.top+"/"+name, "")
}

func (h *home) link(name, to string) {
	h.t.Helper()
	must.Do(h.t, os.MkdirAll(filepath.Dir(h.top+"/"+name), 0o755), os.Symlink(h.top+"/"+to, h.top+"/"+name))
}

// found is what leads into the project, as "PATH > TARGET", by the links of another place in between.
func found(h *home, links []homelink.Link) (list []string) {
	for _, l := range links {
		text := strings.TrimPrefix(l.Path, h.top+"/") + " > " + strings.TrimPrefix(l.Leads, h.top+"/")
		for _, hop := range l.Way {
			if strings.HasPrefix(hop, h.top+"/p/") {
				text += " by " + strings.TrimPrefix(hop, h.top+"/")
			}
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

// look is what a launch has found when it starts: it begins again where something was missed.
func (h *home) look() homelink.Found {
	got := homelink.Look(h.question)
	if links, files := got.Missed(); len(links)+len(files) > 0 {
		got.Write()
		got = homelink.Look(h.question)
	}
	return got
}

func (h *home) want(lines ...string) {
	h.t.Helper()
	for _, cached := range []bool{false, true} {
		if list := found(h, h.look().Links); !slices.Equal(list, lines) {
			h.t.Errorf("cached %t:\ngot  %q\nwant %q", cached, list, lines)
		}
		time.Sleep(30 * time.Millisecond) // see stateOf
		homelink.Look(h.question).Write()
	}
}

func TestLinksOfTheHome(t *testing.T) {
	h := newHome(t)
	for _, name := range []string{"p/zshenv", "p/bin/x", "p/hooks/h", "p/unit", "p/f/config.fish", "p/nvim/lua/a/b.lua", "other/x", "p/skill/SKILL.md"} {
		h.write(name)
	}
	h.link("home/.zshenv", "p/zshenv")
	h.link("home/bin", "p/bin")
	h.link("home/.claude/hooks", "p/hooks")
	h.link("home/.claude/skills/one", "p/skill")
	h.link("home/.config/systemd/user/a.service", "p/unit")
	h.link("home/.config/fish", "dots/fish") // stow's folded tree
	h.link("dots/fish/config.fish", "p/f/config.fish")
	h.link("home/.config/nvim/lua/a/b.lua", "p/nvim/lua/a/b.lua")
	h.link("home/.one", "home/.two")
	h.link("home/.two", "p/zshenv")
	h.link("home/.through", "p/hop")
	h.link("p/hop", "other/x")
	h.link("home/.dangling", "p/nothing/there")
	h.link("home/.circle", "home/.circle")
	h.link("home/project", "p") // no tool obeys it
	h.link("home/.cache/x", "p/zshenv")
	must.Do(h.t, os.Symlink("/bin/sh", h.home+"/.sh")) // root's
	h.want(
		"home/.claude/hooks > p/hooks", "home/.claude/skills/one > p/skill",
		"home/.config/fish > dots/fish", "home/.config/fish/config.fish > p/f/config.fish",
		"home/.config/nvim/lua/a/b.lua > p/nvim/lua/a/b.lua",
		"home/.config/systemd/user/a.service > p/unit", "home/.dangling > p/nothing/there",
		"home/.one > p/zshenv", "home/.through > other/x by p/hop", "home/.two > p/zshenv", "home/.zshenv > p/zshenv",
		"home/bin > p/bin",
	)
}

func TestFoldersOfPath(t *testing.T) {
	h := newHome(t)
	h.write("p/bin/tool")
	h.link("tools/x", "p/bin/tool")
	h.link("link", "p/bin")
	h.question.Folders = []string{h.top + "/tools", h.top + "/link", h.top + "/p/node_modules/.bin", "/usr/bin"}
	h.want("link > p/bin", "p/node_modules/.bin > p/node_modules/.bin", "tools > tools", "tools/x > p/bin/tool")
}

func TestWhatVariablesName(t *testing.T) {
	h := newHome(t)
	h.write("p/zsh/.zshrc")
	h.write("p/env")
	h.link("dots/zsh/.zshenv", "p/env")
	h.question.Named = []homelink.Named{{"BASH_ENV", h.top + "/p/env"}, {"ZDOTDIR", h.top + "/dots/zsh"}}
	h.want("dots/zsh > dots/zsh", "dots/zsh/.zshenv > p/env", "p/env > p/env")
}

// A link is another one, or one further on is, while the folder that it lies in is as it was.
func TestWhatTheCacheHasIsNotOlder(t *testing.T) {
	h := newHome(t)
	h.write("p/a")
	h.write("p/b")
	h.write("home/.config/x/file")
	h.link("home/.rc", "dots/rc")
	h.link("dots/rc", "p/a")
	h.want("home/.rc > p/a")
	must.Do(h.t, os.Remove(h.top+"/dots/rc"))
	h.link("dots/rc", "p/b")
	h.want("home/.rc > p/b")
	must.Do(h.t, os.Remove(h.top+"/p/b"))
	h.want("home/.rc > p/b")
	h.link("home/.config/x/late", "p/a")
	time.Sleep(30 * time.Millisecond) // what changed a moment ago is read in any case
	h.want("home/.config/x/late > p/a", "home/.rc > p/b")
	must.Do(h.t, os.RemoveAll(h.home+"/.config"))
	h.want("home/.rc > p/b")
}

// A folder of dotfiles is moved into a project, and a link put in its old place: the home's own link is as it was, and
// leads to the same file, which the project's agent could change.
func TestALinkWhoseTargetWasMovedIntoTheProject(t *testing.T) {
	h := newHome(t)
	h.write("dots/fish/config.fish")
	h.link("home/.config/fish", "dots/fish")
	h.link("home/.rc", "hop")
	h.link("hop", "elsewhere")
	h.write("elsewhere")
	h.want("home/.config/fish > dots/fish", "home/.rc > elsewhere")
	must.Do(h.t, os.Rename(h.top+"/dots", h.top+"/p/dots"), os.Rename(h.top+"/elsewhere", h.top+"/p/rc"), os.Remove(h.top+"/hop"))
	h.link("dots", "p/dots")
	h.link("hop", "p/rc")
	h.want("home/.config/fish > p/dots/fish", "home/.rc > p/rc")
}

// A link of the home led to a file, or to nothing; a folder came there, with a link into the project in it.
func TestALinkThatCameToLeadToAFolderIsFollowed(t *testing.T) {
	h := newHome(t)
	h.write("p/a")
	h.write("dots/file")
	h.link("home/.config/file", "dots/file")
	h.link("home/.config/none", "dots/none")
	h.want("home/.config/file > dots/file", "home/.config/none > dots/none")
	must.Do(h.t, os.Remove(h.top+"/dots/file"))
	h.link("dots/file/x", "p/a")
	h.link("dots/none/y", "p/a")
	h.want("home/.config/file > dots/file", "home/.config/file/x > p/a", "home/.config/none > dots/none", "home/.config/none/y > p/a")
}

// Of two sessions at once the end of one looks deeper than the other's start: what it has found stays known.
func TestASessionBesideForgetsNoLink(t *testing.T) {
	h := newHome(t)
	h.write("p/a")
	homelink.Look(h.question).Write()
	started, ended := homelink.Look(h.question), homelink.Look(h.question)
	h.link("home/.config/a/b/c/d/far", "p/a")
	ended.Again()
	started.Write()
	if got := found(h, homelink.Look(h.question).Links); !slices.Equal(got, []string{"home/.config/a/b/c/d/far > p/a"}) {
		t.Errorf("known are %q", got)
	}
}

func TestALinkThatIsMadeMeanwhile(t *testing.T) {
	h := newHome(t)
	h.write("p/a")
	h.write("p/b")
	h.link("home/.old", "p/a")
	h.link("home/.led", "p/a")
	before := homelink.Look(h.question)
	h.link("home/.new", "p/a")
	must.Do(h.t, os.Remove(h.home+"/.led"))
	h.link("home/.led", "p/b")
	came, _ := before.Again()
	if got := found(h, came); !slices.Equal(got, []string{"home/.led > p/b", "home/.new > p/a"}) {
		t.Errorf("%q", got)
	}
}

// Tools obey what lies deep in their folders, too, and follow links on the way there.
func TestLinksDeepInTheHome(t *testing.T) {
	h := newHome(t)
	var want []string
	for _, name := range []string{
		".agents/skills/x", ".claude/skills/x/y/z", ".codex/skills/x", ".codex/skills/y/scripts/run.sh", ".config/Code/User/snippets/a.json",
		".config/a/b/c", ".config/a/b/c2/d/e", ".config/systemd/user/x.d/y.d/z.conf", ".emacs.d/a/b/c", ".local/bin/sub/x", ".local/share/nvim/site/pack/x",
		".vscode/extensions/ext", ".zsh/a/b/c", "bin/a/b",
	} {
		h.write("p/" + name)
		h.link("home/"+name, "p/"+name)
		want = append(want, "home/"+name+" > p/"+name)
	}
	h.write("p/x")
	for _, name := range []string{".cache/a", ".config/app/Cache/a", ".cargo/registry/src/a", ".node/node_modules/.bin/a", "Documents/a", ".a/1/2/3/4/5/6/7/8/9/a"} {
		h.link("home/"+name, "p/x")
	}
	h.link("home/.wine/z:", "")
	must.Do(h.t, os.Symlink(h.home, h.home+"/.config/again"))
	must.Do(h.t, os.Symlink("/usr", h.home+"/.config/usr"))
	want = append(want, "home/.config/again > home", "home/.wine/z: > "+h.top)
	slices.Sort(want)
	h.want(want...)

	// What is made later the next launch finds, or, far below, the end of its session.
	h.link("home/.codex/skills/later", "p/x")
	h.link("home/.config/a/b/later", "p/x")
	h.link("home/.config/a/b/c2/d/far", "p/x")
	far := "home/.config/a/b/c2/d/far > p/x"
	want = append(want, "home/.codex/skills/later > p/x", "home/.config/a/b/later > p/x")
	slices.Sort(want)
	got := h.look()
	if list := found(h, got.Links); !slices.Equal(list, want) {
		t.Errorf("later:\ngot  %q\nwant %q", list, want)
	}
	came, _ := got.Again()
	if list := found(h, came); !slices.Equal(list, []string{far}) {
		t.Errorf("at the end: %q", list)
	}
	if !slices.Contains(found(h, homelink.Look(h.question).Links), far) {
		t.Error("what the end found is not known")
	}
	must.Do(h.t, os.Remove(h.home+"/.config/a/b/c2/d/far"))
	if got := found(h, h.look().Links); !slices.Equal(got, want) {
		t.Errorf("it is gone:\ngot  %q\nwant %q", got, want)
	}
}

// Names of each other, as rustup's programs are, lead nowhere else.
func TestFilesWithOtherNames(t *testing.T) {
	h := newHome(t)
	deep := []string{".codex/rules/a", ".config/a/b", ".config/git/config", ".zshenv"}
	for _, name := range slices.Concat(deep, []string{"bin/one", ".vimrc"}) {
		h.write("home/" + name)
	}
	for i, name := range deep {
		must.Do(h.t, os.Link(h.home+"/"+name, fmt.Sprint(h.top, "/p/", i)))
	}
	must.Do(h.t, os.Link(h.home+"/bin/one", h.home+"/bin/two"))
	for range 2 {
		got := h.look()
		var names []string
		for _, name := range got.Named {
			names = append(names, strings.TrimPrefix(name, h.home+"/"))
		}
		slices.Sort(names)
		if !slices.Equal(names, deep) {
			t.Errorf("%q", names)
		}
		time.Sleep(30 * time.Millisecond)
		homelink.Look(h.question).Write()
	}
}

func BenchmarkLook(b *testing.B) {
	q := homelink.Question{Home: os.Getenv("HOME"), Folders: filepath.SplitList(os.Getenv("PATH")), Cache: b.TempDir() + "/c"}
	homelink.Look(q).Write()
	for b.Loop() {
		homelink.Look(q)
	}
}

// TestWhatAnotherWalkSawIsAsGoodAsALook: a file that has a name in the project is found by it, as a link is, and one
// that is given such a name while the session runs is found all the same.
func TestWhatAnotherWalkSawIsAsGoodAsALook(t *testing.T) {
	h := newHome(t)
	h.write("home/.claude/skills/s/deep/a")
	h.write("home/.claude/skills/s/b")
	h.write("home/.claude/skills/node_modules/c")
	h.walked()
	homelink.Look(h.question).Write()
	must.Do(h.t, os.Link(h.home+"/.claude/skills/s/deep/a", h.top+"/p/a"))
	h.link("home/.claude/skills/led/x", "p/a")
	time.Sleep(30 * time.Millisecond) // see survey.recent
	asked := h.walked()
	got := h.look()
	got.Missed() // waits until all is looked at
	if names := slices.Collect(maps.Values(got.Named)); !slices.Equal(names, []string{h.home + "/.claude/skills/s/deep/a"}) {
		t.Errorf("named %v", names)
	}
	if links := found(h, got.Links); !slices.Equal(links, []string{"home/.claude/skills/led/x > p/a"}) {
		t.Errorf("links %q", links)
	}
	for _, folder := range []string{".", "s", "s/deep"} {
		if !asked[folder] {
			t.Errorf("%s was looked at once more", folder)
		}
	}
	must.Do(h.t, os.Link(h.home+"/.claude/skills/s/b", h.top+"/p/b"))
	if _, files := got.Again(); len(files) != 1 {
		t.Errorf("at the end: %v", files)
	}
}

// walked has the home's skills walked before each look. It returns which folders were not looked at for that.
func (h *home) walked() map[string]bool {
	at, err := beneath.Open(h.home + "/.claude/skills")
	must.Do(h.t, err)
	defer at.Close()
	seen := survey.Walk(at, survey.Question{Limit: 100, Skipped: []string{"node_modules"}, Wanted: func(string) func(string, bool) bool {
		return func(_ string, dir bool) bool { return !dir }
	}}, nil)
	asked := map[string]bool{}
	h.question.Walked = func(folder string) *survey.Folder {
		rel, below := pathname.Cut(folder, h.home+"/.claude/skills")
		if !below {
			return nil
		}
		of := seen.Listed(cmp.Or(rel, "."))
		asked[cmp.Or(rel, ".")] = of != nil
		return of
	}
	return asked
}

// A walk of a folder with an entry of git's has not all files of it.
func TestAFileOfGitsIsLookedAtThoughTheFolderWasWalked(t *testing.T) {
	h := newHome(t)
	h.write("home/.claude/skills/s/.git")
	homelink.Look(h.question).Write()
	must.Do(h.t, os.Link(h.home+"/.claude/skills/s/.git", h.top+"/p/a"))
	time.Sleep(30 * time.Millisecond)
	h.walked()
	if found := h.look(); len(found.Named) != 1 {
		t.Errorf("named %v", found.Named)
	}
}

// TestAFileIsCountedOnceWhereTwoPathsLeadToItsFolder: else its name in the project is taken for one of the home's, and
// the file is not held. A folder of the home often is a link to another (~/bin).
func TestAFileIsCountedOnceWhereTwoPathsLeadToItsFolder(t *testing.T) {
	for name, links := range map[string][]string{"a place is a link": {".agents", "bin"}, "links in a place": {".config/s", ".config/t"}} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.write("home/.claude/skills/s/a")
			for _, link := range links {
				h.link("home/"+link, "home/.claude/skills/s")
			}
			homelink.Look(h.question).Write()
			must.Do(h.t, os.Link(h.home+"/.claude/skills/s/a", h.top+"/p/a"))
			time.Sleep(30 * time.Millisecond)
			for _, walked := range []bool{false, true} {
				if walked {
					h.walked()
				}
				if got := h.look(); len(got.Named) != 1 {
					t.Errorf("walked %t: named %v", walked, got.Named)
				}
			}
		})
	}
}

// TestAFolderOfPATHIsLookedAtAsOneWhereverItLies: a place of the home that it lies in is looked at less closely, as
// ~/.cargo/bin and ~/.local/share/pnpm are.
func TestAFolderOfPATHIsLookedAtAsOneWhereverItLies(t *testing.T) {
	for _, folder := range []string{"/.cargo/bin", "/.local/share/pnpm", "/.local/share/a/b/c", "/.codex/a/b/c/d", "/go/bin", ""} {
		t.Run(folder, func(t *testing.T) {
			h := newHome(t)
			h.question.Folders = []string{h.home + folder}
			h.write("home" + folder + "/tool")
			h.write("p/b")
			h.link("home"+folder+"/other", "p/b")
			must.Do(h.t, os.Link(h.home+folder+"/tool", h.top+"/p/a"))
			for n := range 3 { // the last with what was kept
				got := homelink.Look(h.question)
				links, files := got.Missed()
				if len(got.Named)+len(files) != 1 || len(got.Links)+len(links) != 2 { // of them one is the folder itself
					t.Errorf("look %d: named %v and %v, links %v and %v", n, got.Named, files, got.Links, links)
				}
				got.Write()
				time.Sleep(30 * time.Millisecond)
			}
		})
	}
}

// One place with more files than are looked at hides no command of the other places.
func TestManyFilesInOnePlaceHideNoCommand(t *testing.T) {
	const many = 20_001
	h := newHome(t)
	must.Do(h.t, os.MkdirAll(h.home+"/.claude/many", 0o755))
	for n := range many {
		must.Write(h.t, fmt.Sprintf("%s/.claude/many/%d", h.home, n), "")
	}
	h.write("p/tool")
	must.Do(h.t, os.MkdirAll(h.home+"/tools", 0o755))
	must.Do(h.t, os.Link(h.top+"/p/tool", h.home+"/tools/tool"))
	h.question.Folders = []string{h.home + "/tools"}
	if got := slices.Collect(maps.Values(h.look().Named)); !slices.Equal(got, []string{h.home + "/tools/tool"}) {
		t.Errorf("named %v", got)
	}
}
