package gitconfig_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"claudebox/checks/kit/realgit"
	"claudebox/internal/workspace/gitconfig"
)

func keysAndValues(entries []gitconfig.Entry) []string {
	var out []string
	for _, e := range entries {
		line := e.Key()
		if !e.Bare {
			line += "\n" + e.Value
		}
		out = append(out, line)
	}
	return out
}

// grammar is shared by the table that compares with git and by the fuzzers.
var grammar = map[string]string{
	"nothing at all":                        "",
	"a byte order mark":                     "\xef\xbb\xbf[a]\nb = c\n",
	"a plain variable":                      "[user]\n\tname = A U Thor\n",
	"no line end at the end":                "[user]\n\tname = x",
	"CR LF line ends":                       "[user]\r\n\tname = x\r\n\temail = y\r\n",
	"a carriage return inside":              "[user]\n\tname = \"x\ry\"\n",
	"names in upper case":                   "[USER]\nNAME = x\n[Remote \"Origin\"]\nURL = y\n",
	"the old dotted form":                   "[Branch.Main]\nremote = o\n",
	"an empty subsection":                   "[a \"\"]\nb = c\n",
	"escapes in a subsection":               "[a \"q\\\"b\\\\s\\x\"]\nb = c\n",
	"a bracket in a subsection":             "[a \"x]y\"]\nb = c\n",
	"a variable beside its header":          "[a] b = c\n",
	"two headers on a line":                 "[a] [b] c = d\n",
	"a bare variable":                       "[a]\nb\n",
	"a bare variable at the end":            "[a]\nb",
	"a bare variable with a comment":        "[a]\nb # c\n",
	"an empty value":                        "[a]\nb =\n",
	"comments":                              "# x\n; y\n[a] # z\nb = c ; d\ne = \"# f\" # g\n",
	"a comment without a line end":          "[a]\nb = c # d",
	"quotes in the middle":                  "[a]\nb = x\" y \"z\n",
	"every escape":                          "[a]\nb = \\t\\n\\b\\\\\\\"\n",
	"a continued line":                      "[a]\nb = c \\\n  d\ne = f\n",
	"a continued line with CR LF":           "[a]\r\nb = c \\\r\n  d\r\n",
	"a continuation at the end":             "[a]\nb = c\\",
	"blanks before a continuation":          "[a]\nb = c  \\\n\n",
	"blanks around":                         "[a]\n   b   =   c d   \n",
	"a dash and digits":                     "[a-1]\nb-2 = c\n",
	"a section of digits":                   "[1]\nb = c\n",
	"invalid UTF-8":                         "[a]\nb = \xff\xfe\n",
	"an unclosed header":                    "[a\nb = c\n",
	"an unclosed subsection":                "[a \"b\nc = d\n",
	"text after a subsection":               "[a \"b\" c]\nd = e\n",
	"a line end in a header":                "[a\n\"b\"]\nc = d\n",
	"an unclosed quote":                     "[a]\nb = \"c\n",
	"a quote open over a continued line":    "[a]\nb = \"c \\\n d\"\n",
	"an unknown escape":                     "[a]\nb = \\x\n",
	"a name that begins with a digit":       "[a]\n1b = c\n",
	"a name with an underscore":             "[a]\nb_c = d\n",
	"a name followed by a word":             "[a]\nb c\n",
	"a bad line after good ones":            "[a]\nb = c\n=\n",
	"a section without a name":              "[]\nb = c\n",
	"a stray bracket":                       "]\n",
	"a comment that ends in a backslash":    "[a]\nb = c # d \\\ne = f\n",
	"form feed, which is no blank for git":  "[a]\n\fb = c\n",
	"a subsection with a tab before it":     "[a\t\"b\"]\nc = d\n",
	"an escaped line end in a subsection":   "[a \"b\\\nc\"]\nd = e\n",
	"a semicolon right after a value":       "[a]\nb = c;d\n",
	"a value that is only a quoted nothing": "[a]\nb = \"\"\n",
}

func TestParseReadsWhatGitReads(t *testing.T) {
	for name, src := range grammar {
		t.Run(name, func(t *testing.T) {
			want, ok := realgit.List(t, []byte(src))
			entries, err := gitconfig.Parse([]byte(src))
			if (err == nil) != ok {
				t.Fatalf("Parse: %v; git accepts it: %v", err, ok)
			}
			got := keysAndValues(entries)
			if ok && strings.Join(got, "\x00") != strings.Join(want, "\x00") {
				t.Errorf("got %q, git reads %q", got, want)
			}
		})
	}
}

// pieces are what the configurations of TestGitReadsNothingElse are put together from.
var pieces = []string{
	"[", "]", "[core", "[core \"", "\"]\n", "\"", "\\", "\x00", "\n", "\r", "\r\n", "=", " = ", "#", ";", " ", "\t", "\f", "\v",
	"core", "Core.", "fsmonitor", "a", "1", "-", "_", ".", "\xff", "\xef\xbb\xbf", "\n\tbare = ", "\n\tx = y\n",
}

// An agent writes a configuration of any bytes: what git accepts, Parse reads as git does, or refuses.
func TestGitReadsNothingElse(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		some := func(most int) (s string) {
			for range random.IntN(most + 1) {
				s += pieces[random.IntN(len(pieces))]
			}
			return s
		}
		src := "[core \"fsmonitor" + some(2) + "\"]\n\tbare = " + some(3) + "\n" + some(6)
		want, ok := realgit.List(t, []byte(src))
		entries, err := gitconfig.Parse([]byte(src))
		// git before 2.45 made each blank between words a space
		blanks := strings.NewReplacer("\t", " ", "\r", " ")
		got, read := strings.Join(keysAndValues(entries), "\x00"), strings.Join(want, "\x00")
		if ok && err == nil && blanks.Replace(got) != blanks.Replace(read) {
			t.Errorf("%q: got %q, git reads %q", src, got, read)
		}
	}
}

func TestRenderIsReadBackByGit(t *testing.T) {
	for name, src := range grammar {
		t.Run(name, func(t *testing.T) {
			entries, _ := gitconfig.Parse([]byte(src))
			got, ok := realgit.List(t, gitconfig.Render(entries))
			want := keysAndValues(entries)
			if !ok || strings.Join(got, "\x00") != strings.Join(want, "\x00") {
				t.Errorf("git reads %q (%v), want %q", got, ok, want)
			}
		})
	}
}

func FuzzRenderParseIsIdentity(f *testing.F) {
	for _, src := range grammar {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		want, _ := gitconfig.Parse(src)
		got, err := gitconfig.Parse(gitconfig.Render(want))
		if err != nil {
			t.Fatalf("%v in %q", err, gitconfig.Render(want))
		}
		if a, b := keysAndValues(want), keysAndValues(got); strings.Join(a, "\x00") != strings.Join(b, "\x00") {
			t.Errorf("%q became %q", a, b)
		}
	})
}

func FuzzSanitise(f *testing.F) {
	for _, src := range grammar {
		f.Add([]byte(src))
	}
	for _, tc := range sanitised {
		f.Add([]byte(tc.src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		once := gitconfig.Sanitise(src)
		_, before := gitconfig.Parse(src)
		entries, after := gitconfig.Parse(once)
		if (before == nil) != (after == nil) {
			t.Errorf("accepted %v before, %v after", before, after)
		}
		if after == nil && !bytes.Equal(gitconfig.Sanitise(once), once) {
			t.Errorf("not idempotent: %q", once)
		}
		for _, e := range entries {
			if e.Section == "http" && e.Name == "extraheader" || gitconfig.StripUserinfo(e.Value) != e.Value {
				t.Errorf("kept %q", e.Key())
			}
		}
	})
}
