package handover

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
)

// Exclude has git inside pass over a path at which something is held back: a link of claudebox's stands there, which is
// not to be committed. It does not wait for git. It is undone at the session's end, or when the next one begins.
func (s *Session) Exclude(at string) {
	if s == nil {
		return
	}
	var of *live
	pattern, longest := "", -1
	for _, l := range s.places {
		for _, t := range l.place.Trees {
			if rel, in := pathname.Cut(at, t.Path); in && rel != "" && len(t.Path) > longest && !l.closed {
				of, pattern, longest = l, "/"+escape(rel), len(t.Path)
			}
		}
	}
	if of != nil && of.excluded.add(pattern) {
		s.ended.Go(func() { of.excluded.write(of.inner()) })
	}
}

// exclusions are the patterns of what is held back below a place.
type exclusions struct {
	turn     sync.Mutex
	patterns []string
	written  int  // how many of them git inside has
	writing  bool // the others are being written
}

// add adds a pattern, and reports whether the caller is to write it: else one is at it.
func (x *exclusions) add(pattern string) (write bool) {
	const most = 500 // an agent can make any number
	x.turn.Lock()
	defer x.turn.Unlock()
	if slices.Contains(x.patterns, pattern) || len(x.patterns) >= most {
		return false
	}
	x.patterns = append(x.patterns, pattern)
	write = !x.writing
	x.writing = true
	return write
}

// any reports whether there are any. It is asked when nothing is written any more.
func (x *exclusions) any() bool { return len(x.patterns) > 0 }

// write writes what is not written yet, until there is no more. What fails shows as a link.
func (x *exclusions) write(inner side) {
	for {
		x.turn.Lock()
		var text []string
		for _, pattern := range x.patterns[x.written:] {
			text = append(text, heldMark, pattern)
		}
		x.written = len(x.patterns)
		x.writing = len(text) > 0
		x.turn.Unlock()
		if len(text) == 0 {
			return
		}
		script := prelude + "mkdir -p \"$C/info\" && head -c 10000000 >>\"$C/" + excludeFile + "\"\n"
		_, _ = inner.run(script, ended(text), true)
	}
}

const excludeFile = "info/exclude"

// heldMark is the line before each line of [Session.Exclude].
const heldMark = "# claudebox: held back until the session ends"

// unexclude is the part of a script for the inner folder that takes such lines out.
var unexclude = fmt.Sprintf(`f=$C/%s mark=%s
if [ -f "$f" ]; then
  text=$(head -c %d "$f")
  case $text in *"$mark"*)
    kept= drop=
    while IFS= read -r line; do
      if [ "$drop" ]; then drop=; elif [ "$line" = "$mark" ]; then drop=1; else kept+=$line$'\n'; fi
    done <<<"$text"
    printf %%s "$kept" >"$f.claudebox" && mv -fT "$f.claudebox" "$f" || exit 1;;
  esac
fi
`, excludeFile, diag.Quote(heldMark), configLimit)

// escape returns a path as a pattern of gitignore(5) that matches just it.
func escape(rel string) string {
	var b strings.Builder
	for _, c := range []byte(filepath.Clean(rel)) {
		if strings.IndexByte(`*?[\# !`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}
