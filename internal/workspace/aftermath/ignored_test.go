package aftermath_test

import (
	"strings"
	"testing"

	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/project"
)

// TestASecretThatGitIgnoredNoMoreIsTold: what was hidden would be in the user's next commit. What the
// real git would add is always told, and what agents do every day never.
func TestASecretThatGitIgnoredNoMoreIsTold(t *testing.T) {
	t.Parallel()
	const first = "git init -q; printf '# mine\\n.env\\n*.log\\n' >.gitignore; mkdir -p a/b; echo KEY=hunter2hunter2 >.env; cp .env a/b; git add .gitignore; git commit -qm x\n"
	for name, tc := range map[string]struct{ user, agent, want string }{
		"a line is taken out":              {"", "sed -i /env/d .gitignore", ".gitignore"},
		"a line is commented out":          {"", "sed -i 's/^.env/#.env/' .gitignore", ".gitignore"},
		"the file is gone":                 {"", "git rm -q .gitignore; git commit -qm y", ".gitignore"},
		"it is a link":                     {"", "mv .gitignore g; ln -s g .gitignore", ".gitignore"},
		"it is a folder":                   {"", "rm .gitignore; mkdir .gitignore", ".gitignore"},
		"a line takes it out again":        {"", "echo '!.env' >>.gitignore", ".gitignore"},
		"so in a folder below":             {"", "echo '!.env' >a/b/.gitignore", "a/b/.gitignore"},
		"so in one between":                {"", "echo '!b/.env' >a/.gitignore", "a/.gitignore"},
		"so behind a mark of order":        {"", "printf '\\357\\273\\277!.env\\n' >a/b/.gitignore", "a/b/.gitignore"},
		"so at the end of a DOS line":      {"", "printf 'x\\r\\n!.env\\r\\n' >a/b/.gitignore", "a/b/.gitignore"},
		"so without an end of the line":    {"", "printf '!.env' >a/b/.gitignore", "a/b/.gitignore"},
		"the file is too large to be read": {"", "{ echo '!.env'; head -c 1100000 /dev/zero | tr '\\0' '#'; } >a/b/.gitignore", "a/b/.gitignore"},
		"the order is another":             {"printf '!.env\\n.env\\n' >.gitignore", "printf '.env\\n!.env\\n' >.gitignore", ".gitignore"},
		"a blank is escaped":               {"printf '.env \\n' >.gitignore", "printf '.env\\\\ \\n' >.gitignore", ".gitignore"},
		"a repository's below":             {"git init -q s; echo .env >s/.gitignore; cp .env s", ": >s/.gitignore", "s/.gitignore"},

		"a line is added":                 {"", "echo dist >>.gitignore; sed -i 1iout .gitignore", ""},
		"harmless lines in a new file":    {"", "printf '#!x\\n\\n\\\\!x\\n !y\\n' >a/.gitignore", ""},
		"an empty one":                    {"", "touch a/b/.gitignore", ""},
		"comments":                        {"", "sed -i 's/mine/yours/; s/$/\\r/' .gitignore; printf '\\357\\273\\277' | cat - .gitignore >g; mv g .gitignore", ""},
		"the same once more":              {"", "cat .gitignore >g; cat g >>.gitignore", ""},
		"where nothing is hidden":         {"mkdir c; echo x >c/.gitignore", "rm c/.gitignore", ""},
		"where what is hidden is tracked": {"mkdir c; touch c/tls.key; git add c; git commit -qm y; echo A=hunter2hunter3 >c/tls.key; echo x >c/.gitignore", "rm c/.gitignore", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, killed := range []bool{false, true} {
				w := newWorldHere(t)
				w.sh(first + tc.user)
				adds := func() bool {
					return strings.Contains(w.sh("for d in . s m; do test ! -d $d || git -C $d add -n .; done 2>&1"), ".env'")
				}
				if adds() {
					t.Fatal("git does not ignore it before")
				}
				s := w.begin()
				w.sh(tc.agent)
				r := w.ended(s, killed)
				var told []string
				for _, c := range r.Changes {
					if strings.Contains(c.Means, git.Unignored) {
						told = append(told, c.Path)
					}
				}
				if got := strings.Join(told, " "); got != tc.want || adds() != (got != "") {
					t.Errorf("killed: %t; got %q, want %q; git adds it: %t\n%+v", killed, got, tc.want, adds(), r)
				}
			}
		})
	}
}

// TestWhatGitIgnoresByFilesElsewhere: a linked worktree's project, and rules that lie behind a link or a setting.
func TestWhatGitIgnoresByFilesElsewhere(t *testing.T) {
	t.Parallel()
	const linked = "git init -q ../m; git -C ../m commit -qm x --allow-empty; git -C ../m worktree add -q ../p; "
	for name, tc := range map[string]struct{ user, agent, want string }{
		"a linked worktree's own": {linked + "echo .env >.gitignore; touch .env", "rm .gitignore", ".gitignore"},
		"a link of git's":         {"git init -q; ln -sf ../../x .git/info/exclude; echo .env >x; git add x", ": >x", "x"},
		"a setting":               {"git init -q; git config core.excludesFile x; echo .env >x; git add x", ": >x", "x"},
		"a setting of the user's": {"git init -q; git config --global core.excludesFile ~/p/x; echo .env >x; git add x", ": >x", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(tc.user)
			if strings.Contains(tc.user, "--global") {
				w.userGit = []project.UserGit{{Dir: w.home, Entries: []gitconfig.Entry{{Section: "core", Name: "excludesfile", Value: "~/p/x"}}}}
			}
			want := strings.ReplaceAll("changed "+tc.want, "~", w.home)
			wantLines(t, w.session(tc.agent), want)
		})
	}
}
