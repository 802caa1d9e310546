package handover

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

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
	const most = 500 // an agent can make any number
	if of == nil {
		return
	}
	of.turn.Lock()
	defer of.turn.Unlock()
	if slices.Contains(of.excluded, pattern) || len(of.excluded) >= most {
		return
	}
	of.excluded = append(of.excluded, pattern)
	if !of.excluding {
		of.excluding = true
		s.ended.Go(of.exclude)
	}
}

// exclude writes what is not written yet, until there is no more. What fails shows as a link.
func (l *live) exclude() {
	for {
		l.turn.Lock()
		var text []string
		for _, pattern := range l.excluded[l.written:] {
			text = append(text, heldMark, pattern)
		}
		l.written = len(l.excluded)
		l.excluding = len(text) > 0
		l.turn.Unlock()
		if len(text) == 0 {
			return
		}
		script := prelude + "mkdir -p \"$C/info\" && head -c 10000000 >>\"$C/" + excludeFile + "\"\n"
		_, _ = l.inner().run(script, ended(text), true)
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
