package handover

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"strings"

	"claudebox/internal/diag"
)

// Copy copies what an agent has made, in a box that has nothing else: it may still change it meanwhile. No link is
// followed. to does not exist, but its folder does.
func (t Tools) Copy(from, to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	args, files := t.box()
	args = append(args, "--ro-bind", from, "/from", "--bind", path.Dir(to), "/to", "--",
		t.Bash, "--noprofile", "--norc", "-c",
		"cp -RT --preserve=mode,timestamps,links /from /to/"+diag.Quote(path.Base(to)))
	box := exec.CommandContext(ctx, t.Bwrap, args...)
	defer closeFiles(box)
	box.ExtraFiles = files
	box.Env = []string{"PATH=" + strings.Join(t.Path, ":"), "LC_ALL=C"}
	if said, err := box.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}
