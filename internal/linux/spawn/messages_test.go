package spawn

import (
	"os/exec"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// What a process says before it ends is kept, and cannot fill the memory.
func TestTheMessagesOfAProcessAreKeptAndBounded(t *testing.T) {
	for script, want := range map[string][2]string{
		"exit 1": {`""`, ""},
		"printf 'a warning\\nerror: the \\033reason\\n' >&2":       {`"a warning"`, `"error: the \x1breason"`},
		"echo reason >&2; head -c 9000 /dev/zero | tr '\\0' x >&2": {`"reason"`, `"` + strings.Repeat("x", mostMessages-7) + `"`},
	} {
		said, err := Messages()
		must.Do(t, err)
		cmd := exec.Command("sh", "-c", script)
		cmd.Stderr = said
		_ = cmd.Run()
		if got := [2]string{FirstLine(said), LastLine(said)}; got != want {
			t.Errorf("%s: %.100q; want %.100q", script, got, want)
		}
		if info, err := said.Stat(); err != nil || info.Size() != mostMessages {
			t.Errorf("%s: %d bytes, %v", script, info.Size(), err)
		}
		said.Close()
	}
}
