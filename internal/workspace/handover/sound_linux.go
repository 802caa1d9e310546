package handover

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/survey"
)

// wholes are the files of a git folder that git reads to their end, and how large each may be, in bytes.
var wholes = map[string]int64{
	"HEAD": configLimit, "commondir": configLimit, "gitdir": configLimit, "ORIG_HEAD": configLimit,
	"MERGE_HEAD": configLimit, "CHERRY_PICK_HEAD": configLimit, "REVERT_HEAD": configLimit,
	"config.worktree": configLimit, "index": mostCopied, "config": configLimit, alternates: configLimit,
	"packed-refs": mostCopied, "shallow": mostCopied, "logs/HEAD": math.MaxInt64, "logs/refs/stash": math.MaxInt64,
}

// isSound returns an error that names the file if git would not come to the end of one of [wholes], or of a reference:
// a pipe, where it would wait, a link to elsewhere, or one that is too large. Pipes in the agent's own git folder are
// removed. An agent that still runs can make one after this; then a script has a time.
func (s side) isSound() error {
	if !s.boxed || s.folder == s.place.Outer {
		return s.place.isSound()
	}
	top, err := beneath.Open(cmp.Or(s.folder, s.place.Inner()))
	if err != nil {
		return nil // git says what is wrong
	}
	defer top.Close()
	const limit = 2_000_000
	for from := []string{"."}; len(from) > 0; {
		seen := survey.Walk(top, survey.Question{Wanted: readWhole, From: from, Limit: limit}, nil)
		from = seen.Git
		for _, f := range seen.Files {
			if f.Kind == beneath.Special && s.folder == "" && top.Remove(f.Rel) == nil {
				continue
			}
			if err := ends(top, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// readWhole is a [survey.Wanted] for what git reads to its end in an agent's git folder: the names of [wholes],
// and references.
func readWhole(folder string) func(name string, dir bool) bool {
	parts := strings.Split(folder, "/")
	isRefs := slices.Contains(parts, "refs") && !slices.ContainsFunc(parts, func(part string) bool {
		return part == "objects" || part == "logs"
	})
	return func(name string, dir bool) bool { return !dir && (isRefs || mostOf(path.Join(folder, name)) > 0) }
}

// mostOf is how large a file of a git folder, or of one below it, may be, in bytes; 0 if git does not read it whole.
func mostOf(rel string) int64 {
	for name, most := range wholes {
		if rel == name || strings.HasSuffix(rel, "/"+name) {
			return most
		}
	}
	return 0
}

// ends returns an error if git would not come to the end of a file in the agent's git folder.
func ends(top *beneath.Folder, f survey.File) error {
	if f.Kind == beneath.Link { // git once made HEAD so
		if to, err := top.Readlink(f.Rel); err == nil && !strings.HasPrefix(to, "refs/") {
			return fmt.Errorf("%s is a link, which git does not make there", diag.Name(f.Rel))
		}
		return nil
	}
	return endless(f.Rel, f.Kind == beneath.Special, f.Stamp.Size, cmp.Or(mostOf(f.Rel), configLimit))
}

// isSound returns an error that names the file if the user's git would not come to the end of one of [wholes].
func (p Place) isSound() error {
	for _, tree := range append([]Tree{{Rel: "."}}, p.treesOf(true)...) {
		for name, most := range wholes {
			at := path.Join(p.Outer, tree.Rel, name)
			info, err := os.Stat(at)
			if err != nil || info.IsDir() {
				continue // git says what is wrong
			}
			if err := endless(at, info.Mode()&fs.ModeNamedPipe != 0, info.Size(), most); err != nil {
				return fmt.Errorf("%w: move it away", err)
			}
		}
	}
	return nil
}

// endless returns an error for a file of a git folder that is a pipe, or has more than so many bytes.
func endless(at string, isPipe bool, size, most int64) error {
	switch {
	case isPipe:
		return fmt.Errorf("%s is a pipe, where git would wait", diag.Name(at))
	case size > most:
		return fmt.Errorf("%s has more than %d MiB, which git does not write there", diag.Name(at), most>>20)
	}
	return nil
}
