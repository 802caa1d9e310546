package cli

import (
	"cmp"
	"io"
	"os"

	"golang.org/x/term"

	"claudebox/internal/diag/layout"
	"claudebox/internal/host"
	"claudebox/internal/session"
	"claudebox/internal/ui/audit"
)

// Caller is this command line to the session it calls for.
func (sys System) Caller() session.Caller {
	return session.Caller{
		Stderr: sys.Stderr, Terminal: isTerminal(sys.Stderr), Columns: func() int { return columns(sys.Stderr) },
		Manifest: sys.Manifest, Version: Version,
	}
}

// viewOn is how a launch is shown on a stream.
func viewOn(w io.Writer, facts host.Facts) audit.View {
	v := audit.View{View: layout.View{Home: facts.Home, Width: 80}}
	if isTerminal(w) {
		v.Colour = facts.Env.Value("NO_COLOR", "") == ""
		v.Width = cmp.Or(columns(w), v.Width)
	}
	return v
}

// columns is how wide a terminal is now; 0: it does not say, or is none.
func columns(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return width
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
