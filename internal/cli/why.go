package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session"
	"claudebox/internal/session/planning"
	"claudebox/internal/ui/why"
)

const whyLong = `Tell whether the sandbox of a launch here can see a path, a variable or a host,
by which rule, and what would change that. A URL is its host. What else holds a
slash, or is there, is a path; what is set, or in capitals, is a variable; what
holds a dot or a colon is a host, which is not looked up; any other word is a
program. The exit status is 0 when it is inside, 1 when it is not, 2 when that
cannot be said.`

const whyExample = `  claudebox why ~/.aws/credentials
  claudebox why -P work GH_TOKEN
  claudebox why 192.168.1.5:22`

func newWhyCommand(sys System) *cobra.Command {
	var o *options
	c := &cobra.Command{
		Use:     "why [flags] PATH|NAME|HOST[:PORT]",
		Short:   "Tell whether the sandbox can see something, by which rule",
		Long:    whyLong,
		Example: whyExample,
		RunE: func(c *cobra.Command, words []string) error {
			if len(words) == 0 || words[0] == "" {
				return misused(c, "%s takes a path, a variable, a program or a host, but got none", c.CommandPath())
			}
			if err := oneWord(c, words); err != nil {
				return err
			}
			return explain(sys, o.Options, words[0])
		},
	}
	o = addLaunchFlags(c.Flags(), planFlags...)
	return c
}

func explain(sys System, o planning.Options, word string) error {
	s, err := session.Prepare(sys.Caller(), o, planning.Purpose{Look: true})
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := answer(s, word)
	if err != nil {
		return err
	}
	_, err = io.WriteString(sys.Stdout, visibleLines(answer.Text(viewOn(sys.Stdout, s.Facts).Width)))
	switch {
	case err != nil:
		return err
	case answer.Open:
		return &launch.ExitError{Code: exitUnknown}
	case !answer.Inside:
		return &launch.ExitError{Code: exitOutside}
	}
	return nil
}

// What the exit status of `claudebox why` says when it is not 0.
const (
	exitOutside = 1
	exitUnknown = 2
)

// visibleLines is [diag.Visible] for each line of a text.
func visibleLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = diag.Visible(line)
	}
	return strings.Join(lines, "\n")
}

// linkAt returns where a link leads by its text; empty: there is none at the path.
func linkAt(name string) string {
	text, err := os.Readlink(name)
	if err == nil && !filepath.IsAbs(text) {
		text = filepath.Join(filepath.Dir(name), text)
	}
	return text
}

// answer finds out what a word means, and asks about it.
func answer(s *session.Session, word string) (_ why.Answer, err error) {
	host, isURL := why.HostOf(word)
	if path, isPath := s.NamedPath(word); isPath && !isURL {
		if real := beneath.LeadsOrClean(path); s.IsLogin(real) {
			l := s.Instance.Login
			return why.Login(profile.Tilde(beneath.LeadsOrClean(s.Facts.Home), real), l.Outside, l.Made, l.Why), nil
		}
		info, err := os.Stat(path)
		asked := why.Asked{
			Path: path, Real: beneath.LeadsOrClean(path), Home: beneath.LeadsOrClean(s.Facts.Home),
			Gone: errors.Is(err, fs.ErrNotExist), File: err == nil && !info.IsDir(), Link: linkAt(path),
			Places: profile.PlacesOf(s.Facts.Home, s.Facts.Env.Value, beneath.LeadsOrClean),
		}
		return why.Path(s.Launch, asked), nil
	}
	value, set := s.Facts.Env.Get(word)
	if isURL {
		word = host
	} else if set || why.IsVariable(word) {
		return why.Variable(s.Launch, word, value, set), nil
	}
	if !isURL && !strings.ContainsAny(word, ".:") && !strings.EqualFold(word, "localhost") {
		return why.Program(word, s.Program(word), s.Remedy(word)), nil
	}
	named, ok := why.ParseHost(word)
	if !ok {
		return why.Answer{}, diag.Errorf("answer for "+word, "write ./NAME for a path",
			"it is no path, no variable, and no host with a port")
	}
	if s.Launch.Tier == "inet" {
		if named.Here, err = session.Addresses(); err != nil {
			return why.Answer{}, &diag.Error{Op: "read this machine's networks", Err: err}
		}
	}
	named.Add = s.AllowHost(named.String())
	return why.Reach(s.Launch, named), nil
}
