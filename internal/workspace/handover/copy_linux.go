package handover

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"claudebox/internal/diag"
)

// Copy copies what an agent has made, in a box that has nothing else: it may still change it meanwhile. No link is
// followed. to does not exist, but its folder does.
func (t Tools) Copy(from, to string) error {
	said, err := t.in(answerTime, "cp -RT --preserve=mode,timestamps,links /from /to/"+diag.Quote(path.Base(to)),
		"--ro-bind", from, "/from", "--bind", path.Dir(to), "/to")
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// in runs a script in a box that has the folders that words for bwrap name, and nothing else.
func (t Tools) in(limit time.Duration, script string, folders ...string) (said []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	words, files := t.box()
	words = append(append(words, folders...), "--", t.Bash, "--noprofile", "--norc", "-c", script)
	box := begin(ctx, append([]string{t.Bwrap}, words...))
	defer closeFiles(box)
	box.ExtraFiles = files
	box.Env = []string{"PATH=" + strings.Join(t.Path, ":"), "LC_ALL=C"}
	return box.CombinedOutput()
}
