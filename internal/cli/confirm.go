package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"claudebox/internal/diag"
)

// errDeclined is the user's "no": said, not a fault.
var errDeclined = errors.New("not started: you did not say yes")

// confirm asks on the terminal itself, whatever the standard streams are.
// Without a terminal it refuses: silence is not consent (UX-02). remedy is what
// to do then.
func confirm(question, remedy string) error {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return diag.Errorf("ask for confirmation", remedy,
			"there is no terminal to ask on")
	}
	defer tty.Close()
	fmt.Fprintf(tty, "%s [y/N] ", question)
	answer, err := bufio.NewReader(tty).ReadString('\n')
	if err != nil {
		fmt.Fprintln(tty)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}
