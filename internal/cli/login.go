package cli

import (
	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/session"
	"claudebox/internal/session/planning"
)

const loginLong = `Log in outside, with claude auth login: the agent has no part in that, and every
project uses that login.

A login that was made inside, with /login, is kept outside of what the agent
sees, for this project alone: it may be to somebody else's account. But the code
that you paste then passes through the agent's hands, and is worth a login: one
that has turned bad can exchange it itself.

login keep makes it yours: your own Claude Code outside and your other projects
use it from then on, in the place of the login that they had.`

func newLoginCommand(sys System) *cobra.Command {
	var o planning.Options
	keep := sys.prints("keep", "Use this project's login outside, too", loginLong, noWords,
		func([]string) (string, error) {
			// Only the session's instance is needed, so nothing is made for a launch.
			s, err := session.Prepare(sys.Caller(), o, planning.Purpose{Look: true})
			if err != nil {
				return "", err
			}
			defer s.Close()
			if err := s.Instance.TakeLogin(); err != nil {
				return "", err
			}
			return "the login that was made inside is yours now\n", nil
		})
	keep.Flags().StringVarP(&o.Profile, "profile", "P", "", "profile of the project, a `NAME|FILE`")
	return newGroup("login", "Use a login outside that was made inside", loginLong, keep)
}

// askAboutLogin asks whether the login that was made in the ended session is to become the user's own.
func (sys System) askAboutLogin(s *session.Session, o options) {
	if !s.Instance.MadeLogin || o.Yes || o.NoReport || !isTerminal(sys.Stderr) {
		return
	}
	const question = "claudebox: that login may be to somebody else's account. Use it outside and in all projects?"
	if confirm(question, "") != nil {
		return
	}
	if err := s.Instance.TakeLogin(); err != nil {
		diag.Print(sys.Stderr, err)
	}
}
