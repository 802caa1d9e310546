package project

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// Matches reports whether one of a profile's patterns for `hide`, `show` or `protect` matches a path, or a folder above
// it. A pattern with a slash in it begins at the project; one without matches files and folders of that name at any
// depth. A slash at its end is for folders; may says that the path is one, or may be.
func Matches(patterns []string, rel string, may bool) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		for at := rel; at != "."; at = path.Dir(at) {
			if at == rel && !may && strings.HasSuffix(pattern, "/") {
				continue
			}
			anywhere, matches := matchesAnywhere(pattern, path.Base(at))
			if matches || !anywhere && beneath.Matches(pattern, at) {
				return true
			}
		}
		return false
	})
}

// matchesAnywhere reports whether a pattern is for names at any depth, and whether it matches this one.
func matchesAnywhere(pattern, name string) (anywhere, matches bool) {
	pattern = strings.TrimSuffix(pattern, "/")
	anywhere = !strings.Contains(pattern, "/")
	return anywhere, anywhere && beneath.MatchesName(pattern, name)
}

// matching lists what exists of what the patterns under a key of the profile match. Names at any depth are known by the
// walk. It says which patterns match nothing.
func (v *view) matching(globber *beneath.Globber, key string, patterns []string) (all []string, err error) {
	for _, pattern := range patterns {
		var names []string
		if anywhere, _ := matchesAnywhere(pattern, ""); !anywhere {
			if names, err = globber.Glob(pattern); err != nil {
				return nil, &diag.Error{
					Op: "look for " + pattern, Err: err, Remedy: "make the pattern in " + key + " narrower",
				}
			}
		} else {
			for _, f := range v.seen.Files {
				if _, matches := matchesAnywhere(pattern, path.Base(f.Rel)); matches {
					names = append(names, f.Rel)
				}
			}
		}
		names = slices.DeleteFunc(names, func(rel string) bool {
			what, err := v.tree.Look(rel)
			file := err == nil && what.Kind != beneath.Dir && what.Kind != beneath.Link
			return err == nil && what.Kind == beneath.Absent || file && strings.HasSuffix(pattern, "/")
		})
		if len(names) == 0 && !v.Beside {
			v.note(false, "%s in `%s` matches nothing here", said(strconv.Quote(pattern)), said(key))
		}
		all = append(all, names...)
	}
	return all, nil
}
