package handover

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// Copy copies what an agent may have made at from, below in, to a name in another folder, where nothing is; of a folder
// all but one name in it, unless that is empty. That happens in a box that has nothing else, as the agent may still
// change it. The box has what is opened here: no link leads it to something else, also if the agent exchanges names
// meanwhile. It fails with [context.DeadlineExceeded] after 20 seconds.
func (t Tools) Copy(in *beneath.Folder, from string, to *beneath.Folder, name, but string) error {
	source, err := in.OpenFD(from, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(source)
	const cp = "cp -RT --preserve=mode,timestamps,links -- "
	at := "/to/" + diag.Quote(name)
	script := cp + "/from " + at
	if but != "" {
		script = "shopt -s dotglob; cd /from; mkdir " + at + "; for f in *; do " +
			"[ \"$f\" = " + diag.Quote(but) + " ] || " + cp + "\"$f\" " + at + "/\"$f\" || exit; done"
	}
	said, err := t.in(answerTime, script,
		bound{"--ro-bind-fd", source, "/from"}, bound{"--bind-fd", to.FD(), "/to"})
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// CopyPath is [Tools.Copy] by paths, on which no link may be.
func (t Tools) CopyPath(from, to string) error {
	in, err := beneath.Open(path.Dir(from))
	if err != nil {
		return err
	}
	defer in.Close()
	into, err := beneath.Open(path.Dir(to))
	if err != nil {
		return err
	}
	defer into.Close()
	return t.Copy(in, path.Base(from), into, path.Base(to), "")
}

// bound is what a box has of the host, by an open descriptor, and where.
type bound struct {
	how string // a word of bwrap's
	fd  int
	at  string
}

// in runs a script in a box that has what is bound, and nothing else.
func (t Tools) in(limit time.Duration, script string, all ...bound) (said []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	words, files := t.box()
	for _, b := range all {
		words = append(words, b.how, strconv.Itoa(3+len(files)), b.at)
		files = append(files, again(b.fd))
	}
	words = append(words, "--", t.Bash, "--noprofile", "--norc", "-c", script)
	box := begin(ctx, append([]string{t.Bwrap}, words...))
	defer closeFiles(box)
	box.ExtraFiles = files
	box.Env = []string{"PATH=" + strings.Join(t.Path, ":"), "LC_ALL=C"}
	said, err = box.CombinedOutput()
	return said, cmp.Or(ctx.Err(), err)
}
