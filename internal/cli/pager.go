package cli

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/sandbox/launch"
)

// page shows a text on the terminal, by the pager that the launch pins: it
// cannot be made to run other programs. Without one the text is printed.
func page(l launch.Launch, text string) error {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return &diag.Error{Op: "show the details", Err: err, Remedy: "`claudebox plan` prints them"}
	}
	defer tty.Close()
	less := pager(l.Plan.Path)
	if less == "" {
		_, err := io.WriteString(tty, text)
		return err
	}
	interrupts := make(chan os.Signal, 1) // are the pager's while it runs
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	cmd := exec.Command(less, "-RFX")
	cmd.Env = []string{"TERM=" + os.Getenv("TERM"), "LESSSECURE=1", "LESSCHARSET=utf-8", "LESSHISTFILE=-"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), tty, tty
	if cmd.Run() != nil { // as of a terminal that it does not know
		_, err = io.WriteString(tty, text)
	}
	return err
}

// pager is less in one of the store folders that are PATH inside.
func pager(path []string) string {
	for _, folder := range path {
		if name := filepath.Join(folder, "less"); strings.HasPrefix(name, "/nix/store/") {
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				return name
			}
		}
	}
	return ""
}
