package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
	"claudebox/internal/host"
	"claudebox/internal/session/planning"
	"claudebox/internal/ui/audit"
)

// Caller returns what a session must know of this process: its error stream, manifest and version.
func (sys System) Caller() planning.Caller {
	return planning.Caller{
		Stderr: sys.Stderr, Terminal: isTerminal(sys.Stderr), Columns: func() int { return columns(sys.Stderr) },
		Manifest: sys.Manifest, Version: Version,
	}
}

// viewOn is how a launch is shown on a stream.
func viewOn(w io.Writer, facts host.Facts) audit.View {
	v := audit.View{View: layout.View{Home: facts.Home, Width: 80}}
	if isTerminal(w) {
		v.Colour = facts.Env.Value("NO_COLOR", "") == "" && isCapable()
		v.Width = cmp.Or(columns(w), v.Width)
	}
	return v
}

// isCapable reports whether the terminal can do more than print.
func isCapable() bool { return !slices.Contains([]string{"", "dumb"}, os.Getenv("TERM")) }

// narrowest is the least width that is believed, in columns: an agent can have the kernel say any other one of the
// window (TIOCSWINSZ), for the next question to name less. What is wider than the window goes on in the next line.
const narrowest = 60

// columns returns the present width of a terminal; 0 if w is no terminal, or one that does not report its width.
func columns(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil || width == 0 {
		return 0
	}
	return max(width, narrowest)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// errDeclined is returned when the user does not say yes to a launch. It is an answer, not a fault.
var errDeclined = errors.New("not started: you did not say yes")

// confirm asks a question, and fails unless the answer is yes. remedy is for an error of [ask].
func confirm(question, remedy string) error {
	answer, err := ask(question+" [y/N] ", remedy)
	if err == nil && answer != "y" && answer != "yes" {
		err = errors.New("nothing was changed: you did not say yes")
	}
	return err
}

// ask asks on the terminal itself, and returns the answer in small letters. Without a terminal, and where none of the
// standard streams is one (an editor that was started in a terminal has pipes for all of them), it returns an error
// with remedy: silence is not consent. What was typed before the question is no answer to it. After Ctrl-D the answer
// is empty.
func ask(question, remedy string) (string, error) {
	var tty *os.File
	err := errors.ErrUnsupported
	if isTerminal(os.Stdin) || isTerminal(os.Stdout) || isTerminal(os.Stderr) {
		tty, err = os.OpenFile("/dev/tty", os.O_RDWR, 0)
	}
	if err != nil {
		return "", diag.Errorf("ask for confirmation", remedy, "there is no terminal to ask on")
	}
	defer tty.Close()
	if err := unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH); err != nil {
		return "", &diag.Error{Op: "ask for confirmation: put aside what was typed before", Err: err}
	}
	fmt.Fprint(tty, question)
	answer, readErr := bufio.NewReader(tty).ReadString('\n')
	if readErr != nil {
		fmt.Fprintln(tty) // the line was not ended
	}
	return strings.ToLower(strings.TrimSpace(answer)), nil
}

// page shows a text on the terminal, in less; LESSSECURE keeps less from running other programs. Without less, an empty
// path, on a terminal that can do nothing, or with the pager cat the text is printed.
func page(less, text string) error {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return &diag.Error{Op: "show the details", Err: err, Remedy: "`claudebox plan` prints them"}
	}
	defer tty.Close()
	if less == "" || !isCapable() || os.Getenv("PAGER") == "cat" {
		_, err := io.WriteString(tty, text)
		return err
	}
	interrupts := make(chan os.Signal, 1) // never read: Ctrl-C is for the pager, and must not end claudebox
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	cmd := exec.Command(less, "-RFX")
	cmd.Env = []string{"TERM=" + os.Getenv("TERM"), "LESSSECURE=1", "LESSCHARSET=utf-8", "LESSHISTFILE=-"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), tty, tty
	if cmd.Run() != nil { // less may not know the terminal
		_, err = io.WriteString(tty, text)
	}
	return err
}

// table sets rows in columns.
func table(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
	return b.String()
}
