package handover

import (
	"context"
	"fmt"
	"path"
	"strings"

	"claudebox/internal/diag"
)

// Copy copies what an agent has made, in a box that has nothing else: it may still change it meanwhile. No link is
// followed. to does not exist, but its folder does.
func (t Tools) Copy(from, to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	words, files := t.box()
	words = append(words, "--ro-bind", from, "/from", "--bind", path.Dir(to), "/to", "--",
		t.Bash, "--noprofile", "--norc", "-c",
		"cp -RT --preserve=mode,timestamps,links /from /to/"+diag.Quote(path.Base(to)))
	box := begin(ctx, append([]string{t.Bwrap}, words...))
	defer closeFiles(box)
	box.ExtraFiles = files
	box.Env = []string{"PATH=" + strings.Join(t.Path, ":"), "LC_ALL=C"}
	if said, err := box.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}
