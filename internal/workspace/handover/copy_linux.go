package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
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

// Remotes lists the remotes of a git folder and their addresses, without passwords: NAME = ADDRESS, origin first. git
// says that of the folder's own settings, in a box that has nothing else. A file that leads to one has none.
func (t Tools) Remotes(folder string) (list []string, err error) {
	in, err := beneath.Open(folder)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	const script = `git config -f /from/config -z --get-regexp '^remote\..*\.url$' 2>/dev/null | head -c 1M`
	said, err := t.in(answerTime, script, bound{"--ro-bind-fd", in.FD(), "/from"})
	var others []string
	for setting := range strings.SplitSeq(string(said), "\x00") {
		key, address, _ := strings.Cut(setting, "\n")
		name := strings.TrimSuffix(strings.TrimPrefix(key, "remote."), ".url")
		remote := diag.ASCII(name + " = " + gitconfig.StripUserinfo(address))
		switch name {
		case "": // after the last one
		case "origin":
			list = append(list, remote)
		default:
			others = append(others, remote)
		}
	}
	return append(list, others...), err
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
	words = append(words, devices...)
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
