package state_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent/state"
)

// The user's own state: conversations of this project, and nothing else, can
// be written.
func TestHostStateGivesTheConversationsOfTheProject(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/projects/-other/x.jsonl", "other")
	w.write(".claude/skills/s/SKILL.md", "s")
	req := w.request()
	req.Kind, req.Trusted = state.Host, []string{"/src/p", "/src/p/a_b.é"}
	in := w.launch(req)
	for _, name := range []string{"-src-p", "-src-p-a-b--"} {
		want := state.Import{Source: w.path(".claude/projects/" + name), Destination: "/run/claudebox/import/projects/" + name, At: "projects/" + name, Writable: true}
		if !slices.Contains(in.Imports, want) {
			t.Errorf("%+v is not in %+v", want, in.Imports)
		}
		if info, err := os.Stat(want.Source); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", want.Source, info, err)
		}
		if text, err := os.Readlink(filepath.Join(in.Dir, ".claude/projects", name)); err != nil || text != want.Destination {
			t.Errorf("link %q, %v", text, err)
		}
	}
	for _, i := range in.Imports {
		if i.Writable && !strings.Contains(i.Source, "/projects/-src-p") {
			t.Errorf("%s can be written", i.Source)
		}
	}
	must.Do(t, in.Close())
	if kept := w.session(w.request()); kept.Dir == in.Dir {
		t.Error("the same folder serves both kinds of state")
	}
}

// Many keep ~/.claude among their dotfiles.
func TestTheLastConversationIsFoundBehindALink(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/settings.json", "{}")
	must.Do(t, os.Rename(w.path(".claude"), w.path("dotfiles")))
	must.Do(t, os.Symlink("dotfiles", w.path(".claude")))
	req := w.request()
	req.Kind, req.Trusted = state.Host, []string{"/src/p"}
	in := w.launch(req)
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	w.write("dotfiles/projects/-src-p/"+id+".jsonl", "{}")
	if got := in.LastConversation("/src/p", time.Time{}); got != id {
		t.Errorf("it is %q", got)
	}
	must.Do(t, in.Close())
}

// Claude Code keeps the conversations of /src/acme-api and /src/acme.api in one folder: a repository with such a name
// would be given those of the other.
func TestAProjectIsGivenNoOthersConversations(t *testing.T) {
	w := newWorld(t)
	conversation := func(name, cwd string) {
		w.write(".claude/projects/-src-acme-api/"+name+".jsonl",
			`{"type":"summary","summary":"\"cwd\":\"/src/acme_api\""}`+"\n"+
				`{"parentUuid":null,"cwd":"`+cwd+`","message":{"content":"`+strings.Repeat("long ", 50_000)+`"}}`+"\n")
	}
	req := w.request()
	req.Kind, req.Trusted = state.Host, []string{"/src/acme.api"}
	for i, cwd := range []string{"/src/acme.api", "/src/acme.api/web", "/srv/added"} {
		conversation(strings.Repeat(string(rune('0'+i)), 8), cwd)
	}
	in := w.launch(req)
	must.Do(t, in.Close())
	conversation("33333333", "/src/acme-api")
	_, err := state.Look(req)
	if err == nil || !strings.Contains(err.Error(), "those of /src/acme-api lie in the same folder") {
		t.Errorf("%v", err)
	}
}

func TestLinksAmongTheConversationsAreTakenAway(t *testing.T) {
	w := newWorld(t)
	w.write(".bashrc", "mine")
	req := w.request()
	req.Kind = state.Host
	in := w.launch(req)
	conversations := w.path(".claude/projects/-src-p")
	must.Do(t, os.MkdirAll(conversations+"/deep/er", 0o700))
	for _, name := range []string{"a.jsonl", "deep/memory", "deep/er/x"} {
		must.Do(t, os.Symlink(w.path(".bashrc"), filepath.Join(conversations, name)))
	}
	must.Do(t, os.Symlink(w.home, conversations+"/home"))
	must.Do(t, syscall.Mkfifo(conversations+"/pipe", 0o600))
	w.write(".claude/projects/-src-p/kept.jsonl", "kept")
	must.Do(t, in.Close())
	want := []string{"./", "deep/", "deep/er/", "kept.jsonl"}
	if got := w.tree(".claude/projects/-src-p"); !slices.Equal(got, want) {
		t.Errorf("left: %q", got)
	}
	if w.read(".bashrc") != "mine" || len(in.Ended) != 5 {
		t.Errorf("said %q", in.Ended)
	}
}

func TestADeepFolderDoesNotHideLinksAmongTheConversations(t *testing.T) {
	w := newWorld(t)
	req := w.request()
	req.Kind = state.Host
	in := w.launch(req)
	conversations := w.path(".claude/projects/-src-p")
	for _, name := range []string{"a", "m", "z"} {
		must.Do(t, os.MkdirAll(conversations+"/"+name+strings.Repeat("/d", 30), 0o700))
		must.Do(t, os.Symlink(w.home, conversations+"/"+name+"/link"))
		must.Do(t, os.Symlink(w.home, conversations+"/"+name+"-link"))
	}
	if err := in.Close(); err == nil {
		t.Error("nothing is said of what was not looked at")
	}
	if len(in.Ended) != 6 {
		t.Errorf("said %q", in.Ended)
	}
}

const (
	hostPrompts = `{"display":"mine","pastedContents":{"1":{"id":1}},"timestamp":1,"project":"/src/p","sessionId":"s"}
{"display":"of another project, a secret","pastedContents":{},"timestamp":2,"project":"/src/q"}
not JSON
`
	insidePrompts = `{"display":"typed inside","pastedContents":{},"timestamp":3,"project":"/src/p"}
{"display":"for another project","pastedContents":{},"timestamp":4,"project":"/src/q"}
{"display":"\u001b]52;c;bWluZQ==\u0007","pastedContents":{},"timestamp":5,"project":"/src/p"}
`
)

func TestHistoryOfTheProjectGoesInAndComesBack(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/history.jsonl", hostPrompts)
	req := w.request()
	req.Kind = state.Host
	in := w.launch(req)
	inside := rel(w, in.Dir) + "/.claude/history.jsonl"
	want := `{"display":"mine","pastedContents":{},"timestamp":1,"project":"/src/p","sessionId":"s"}` + "\n"
	if got := w.read(inside); got != want {
		t.Errorf("inside is %q", got)
	}
	w.write(inside, w.read(inside)+insidePrompts)
	must.Do(t, in.Close())
	w.session(req) // adds nothing twice
	want = hostPrompts + `{"display":"typed inside","pastedContents":{},"timestamp":3,"project":"/src/p"}` + "\n"
	if got := w.read(".claude/history.jsonl"); got != want {
		t.Errorf("the user's is\n%s\nwant\n%s", got, want)
	}
	if got := w.read(inside); strings.Count(got, "typed inside") != 1 || strings.Contains(got, "another project") {
		t.Errorf("inside is\n%s", got)
	}
}

// A link on the way to the conversations that an agent could have made leads
// nowhere.
func TestConversationsBehindAForeignLinkAreRefused(t *testing.T) {
	w := newWorld(t)
	w.write("dotfiles/projects/x", "")
	must.Do(t, os.MkdirAll(w.path(".ssh/-src-p"), 0o700))
	must.Do(t, os.MkdirAll(w.path(".claude"), 0o700))
	must.Do(t, os.Symlink("../dotfiles/projects", w.path(".claude/projects")))
	w.agentsLink("../../.ssh/-src-p", "dotfiles/projects/-src-p")
	req := w.request()
	req.Kind = state.Host
	_, err := state.Look(req)
	wantRefusal(t, err, "is a link that an agent could have made", "state: project")
}
