//go:build lab

package sandbox_test

import (
	"bufio"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
)

// Commits and held names are told when they happen, in whatever names the agent chooses.
func TestWatchTellsCommitsAndHeldNames(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	session := beside(t, w.session(`touch tried; for i in $(seq 600); do [ -e seen ] && break; sleep 0.05; done
		git commit -q --allow-empty -m x; git branch side; git branch $'b\xc3\xa4u'; touch .tool-versions; mkdir $'d\e[31m\nx'; touch $'d\e[31m\nx/.tool-versions'; mkdir $'e\xc2\x9b\xe2\x80\xae'; touch $'e\xc2\x9b\xe2\x80\xae'/.tool-versions
		for i in $(seq 600); do [ -e done ] && break; sleep 0.05; done`))
	must.Appear(t, w.path("project/tried"))
	watch := make(chan outcome)
	go func() { watch <- run(t, w.claudebox("watch")) }()
	asJSON := make(chan outcome)
	go func() { asJSON <- run(t, w.claudebox("watch", "--json")) }()
	w.write(t, "project/seen", "")
	must.Appear(t, w.path("project/d\x1b[31m\nx"))
	w.plain(t, `for i in $(seq 600); do git rev-parse -q --verify $'b\xc3\xa4u' >/dev/null && [ -L .tool-versions ] && [ -L d*/.tool-versions ] && [ -L e*/.tool-versions ] && exit; sleep 0.05; done; git branch; ls -la . d*; exit 1`)
	w.write(t, "project/done", "")
	<-session
	got := (<-watch).stdout
	expect.Contains(t, got,
		"commits    main ", "commits    side ", `commits    bäu `,
		"held back  .tool-versions: it comes out", `held back  'd\x1b[31m\x0ax/.tool-versions': it`, "  ended\n",
	)
	if strings.Contains(got, w.project) {
		t.Errorf("a line is longer by the path of the project:\n%s", got)
	}
	for name, text := range map[string]string{"text": got, "JSON": (<-asJSON).stdout} {
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r == 0x7f || r == 0x9b || r == 0x202e) }) {
			t.Errorf("a name controls the terminal, as %s: %q", name, text)
		}
		if strings.Count(text, "tool-versions") < 3 {
			t.Errorf("what is held back is not told, as %s: %q", name, text)
		}
	}
	if strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("a name controls the terminal: %q", got)
	}
}

func TestNothingIsWatchedWhereNothingRuns(t *testing.T) {
	w := newWorld(t)
	for _, words := range [][]string{{"watch", "abcdefgh"}, {"watch", "../x"}, {"allow-host", "--session", "a.test"}, {"allow-host", "--session=abcdefgh", "a.test"}} {
		got := run(t, w.claudebox(words...))
		if got.status != 125 || !strings.Contains(got.stderr, "remedy: ") || got.stdout != "" {
			t.Errorf("%q: %+v", words, got)
		}
	}
}

// Whoever begins to watch before there is a session sees the first from its beginning on.
func TestWatchWaitsForASession(t *testing.T) {
	for name, flags := range map[string][]string{"text": nil, "JSON": {"--json"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			watch := w.claudebox(append([]string{"watch"}, flags...)...)
			said, err := watch.StderrPipe()
			must.Do(t, err)
			var told strings.Builder
			watch.Stdout = &told
			must.Do(t, watch.Start())
			lines := bufio.NewScanner(said)
			if !lines.Scan() || !strings.Contains(lines.Text(), "waiting for one") {
				t.Fatalf("%q: it says %q", flags, lines.Text())
			}
			session := beside(t, w.session(`touch .tool-versions tried; until [ -e go ]; do sleep 0.05; done`))
			must.Appear(t, w.path("project/tried"))
			if !lines.Scan() || !strings.HasPrefix(lines.Text(), "session ") {
				t.Errorf("%q: it says %q", flags, lines.Text())
			}
			w.write(t, "project/go", "")
			<-session
			if err := watch.Wait(); err != nil || !strings.Contains(told.String(), ".tool-versions") || !strings.Contains(told.String(), "ended") {
				t.Errorf("%q: %v, %q", flags, err, told.String())
			}
		})
	}
}
