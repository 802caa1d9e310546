package shellline_test

import (
	"slices"
	"strings"
	"testing"

	"claudebox/internal/agent/shellline"
)

func TestWhatALineRunsAndReads(t *testing.T) {
	for line, want := range map[string]struct{ programs, words string }{
		`jq -r '.a | .b' >>/tmp/log`:                                       {"jq", "jq -r .a | .b"},
		`A=1 B=/x bash -c "jq ." && cd /tmp; jq . </in`:                    {"bash jq", "1 /x bash -c jq . cd /tmp jq . /in"},
		`command -v p >/dev/null && p; which q; type r || r`:               {"which", "command -v p p which q type r r"},
		`env -u X A=1 timeout -k 1 5s uvx ruff`:                            {"env timeout uvx", "env -u X A=1 timeout -k 1 5s uvx ruff"},
		`xargs -r -n 1 -I{} prettier {}; timeout '' a`:                     {"xargs prettier timeout a", "xargs -r -n 1 -I{} prettier {} timeout  a"},
		`bash -lc 'cd x && say "done"'`:                                    {"bash say", `bash -lc cd x && say "done"`},
		`exec -a n "$HOME/bin/x" a\ b`:                                     {"$HOME/bin/x", "exec -a n $HOME/bin/x a b"},
		`if [ -e x ]; then echo "no | none"; fi # and that`:                {"", "[ -e x ] echo no | none"},
		"echo $(first); cat <<E\nsecond /x\nE\nfor i in a; do third; done": {"first cat third", "echo $(first) first cat a third"},
		`f() { inner; }; f`:                                                {"inner", "inner f"},
		`(a; b) | c & d`:                                                   {"a b c d", "a b c d"},
		`a; a b; a`:                                                        {"a", "a a b a"},
		`if`:                                                               {"", ""},
		``:                                                                 {"", ""},
	} {
		if got := shellline.Programs(line); !slices.Equal(got, strings.Fields(want.programs)) {
			t.Errorf("%q runs %q", line, got)
		}
		if got := strings.Join(shellline.Words(line), " "); got != want.words {
			t.Errorf("%q reads %q", line, got)
		}
	}
}

func FuzzProgramsAndWords(f *testing.F) {
	f.Add(`a "b $c" 'd' $(e) <f >g`)
	f.Fuzz(func(t *testing.T, line string) {
		shellline.Programs(line)
		shellline.Words(line)
	})
}
