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

// confirm asks a question, and fails unless the answer is yes.
func confirm(question, remedy string) error {
	answer, err := ask(question+" [y/N] ", remedy)
	if err == nil && answer != "y" && answer != "yes" {
		err = errDeclined
	}
	return err
}

// ask asks on the terminal itself, whatever the standard streams are, and
// returns the answer in small letters. Without a terminal it refuses: silence
// is not consent (UX-02). remedy is what to do then.
func ask(question, remedy string) (answer string, err error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", diag.Errorf("ask for confirmation", remedy,
			"there is no terminal to ask on")
	}
	defer tty.Close()
	fmt.Fprint(tty, question)
	answer, err = bufio.NewReader(tty).ReadString('\n')
	if err != nil {
		fmt.Fprintln(tty)
	}
	return strings.ToLower(strings.TrimSpace(answer)), nil
}
