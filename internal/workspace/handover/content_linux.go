package handover

import (
	"errors"
	"fmt"
	"os"
	"time"

	"claudebox/internal/linux/beneath"
)

// contents is where git-lfs keeps the content of its files in a git folder, each named by its SHA-256 sum; git knows
// nothing of it. git-lfs also looks there in a repository that is borrowed from.
const contents = "lfs/objects"

// Contents is the mount of the user's content of Git LFS; ok is false if there is none.
func (p Place) Contents() (m Mount, ok bool) {
	m = Mount{p.Outer + "/" + contents, p.Shared() + "/" + contents}
	info, err := os.Lstat(m.Source)
	return m, err == nil && info.IsDir()
}

const (
	// contentTime is how long content may take to cross in one hand-over. What is there then is not copied again.
	contentTime = time.Minute
	// mostContent is how many bytes are read for that.
	mostContent = int64(mostPack)
)

// carrying copies what is not there yet, and has the sum by which it is named. In its box a link of the agent's leads
// to nothing of the user's.
const carrying = `[ -d /from/lfs/objects ] || exit 0
cd /from/lfs/objects && shopt -s nullglob || exit 1
left=%d over= new=/to/.claudebox-%s
trap 'rm -f "$new"' EXIT
for f in [0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/????????????????????????????????????????????????????????????????; do
  name=${f:6}
  [ -f "$f" ] && [ -r "$f" ] && [ ! -L "$f" ] && [ ! -e "/to/$f" ] &&
    [ "${name:0:4}" = "${f:0:2}${f:3:2}" ] || continue
  size=$(stat -c %%s "$f") && [ "$size" -le $left ] || { over=1; continue; }
  left=$((left - size))
  head -c "$size" "$f" >"$new" || exit 1
  sum=$(sha256sum <"$new")
  [ "${sum:0:64}" != "$name" ] || { mkdir -p "/to/${f%%/*}" && mv "$new" "/to/$f"; } || exit 1
done
[ -z "$over" ] || { echo "there are more than %d GiB of it" >&2; exit 1; }
`

// carryContents brings what the agent's folder has of Git LFS's content, and the user's has not.
func (l *live) carryContents() error {
	p := l.place
	if _, err := os.Lstat(p.Inner() + "/" + contents); err != nil {
		return nil //nolint:nilerr // the agent has none
	}
	inner, err := beneath.Open(p.Inner())
	if err != nil {
		return err
	}
	defer inner.Close()
	users, err := folderOf(p.Outer, contents+"/.")
	if err != nil {
		return err
	}
	defer users.Close()
	script := fmt.Sprintf(carrying, mostContent, Name(p.Folder), mostContent>>30)
	said, err := l.Tools.in(contentTime, script,
		bound{"--ro-bind-fd", inner.FD(), "/from"}, bound{"--bind-fd", users.FD(), "/to"})
	if err != nil {
		return errors.New("the content of files of Git LFS is inside only: " + l.inner().fault(err, said).Error())
	}
	return nil
}
