package cli

import (
	"io"
	"os"

	"golang.org/x/term"

	"claudebox/internal/audit"
	"claudebox/internal/host"
	"claudebox/internal/session"
)

// caller is this command line to the session it calls for.
func (sys System) caller() session.Caller {
	return session.Caller{Stderr: sys.Stderr, Terminal: isTerminal(sys.Stderr), Manifest: sys.Manifest, Version: version}
}

// view is how a launch is shown on a stream.
func view(w io.Writer, facts host.Facts) audit.View {
	v := audit.View{Home: facts.Home, Width: 80}
	if isTerminal(w) {
		v.Colour = facts.Env.Value("NO_COLOR", "") == ""
		if width, _, err := term.GetSize(int(w.(*os.File).Fd())); err == nil && width > 0 {
			v.Width = width
		}
	}
	return v
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
