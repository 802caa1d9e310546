package profile

import (
	"path"
	"strings"

	"claudebox/internal/profile/shape"
)

var (
	hostPath = shape.Rule{
		Name:     "a path",
		Pattern:  `^(/|~$|~/|\./)`,
		Examples: []string{"~/datasets", "/srv/models", "./fixtures"},
		Judge:    line(checkPath),
	}
	homeFolder = shape.Rule{
		Name:     "a folder below home",
		Pattern:  `^[^/~]`,
		Examples: []string{".codex"},
		Judge:    line(checkHomeFolder),
	}
	projectGlob = shape.Rule{
		Name:     "a pattern relative to the project",
		Pattern:  `^[^/]`,
		Examples: []string{".env", "secrets/**"},
		Judge:    line(checkGlob),
	}
	siblingGlob = shape.Rule{
		Name:     "a pattern beside the project",
		Pattern:  `^\.\./.`,
		Examples: []string{"../wt-*"},
		Judge:    line(checkSibling),
	}
)

// checkPath checks how a mount's path is written. It refuses patterns, ".."
// segments, and paths relative to the folder that claudebox is called in.
func checkPath(text string) *shape.Fault {
	switch {
	case climbs(text):
		return fault("write the path out", "%s holds a .. segment", shape.Quote(text))
	case strings.ContainsAny(text, "*?"):
		return fault("name each path", "%s is a pattern; mounts take none", shape.Quote(text))
	case path.Clean(text) == ".":
		return fault("remove the mount", "%s is the project, which is mounted anyway", shape.Quote(text))
	case text == "~", strings.HasPrefix(text, "/"), strings.HasPrefix(text, "~/"), strings.HasPrefix(text, "./"):
		return nil
	}
	return relativePath(text)
}

// relativePath returns the fault of a relative path; the remedy depends on what
// was probably meant. text must not be empty.
func relativePath(text string) *shape.Fault {
	for _, home := range []string{"$HOME", "${HOME}"} {
		if rest, found := strings.CutPrefix(text, home); found {
			return fault("write ~"+rest, "%s: variables are not expanded in paths", shape.Quote(text))
		}
	}
	switch text[0] {
	case '~':
		return fault("write the path out, or ~/ for your own home", "%s: only your own home can be written with ~",
			shape.Quote(text))
	case '$':
		return fault("write the path out", "%s: variables are not expanded in paths", shape.Quote(text))
	}
	return fault("write ~/"+text+" or ./"+text,
		"%s is relative; expected a path that begins with /, ~/ or ./ (the project)", shape.Quote(text))
}

// cleanPath normalises a path that checkPath accepted; a leading "./" stays.
func cleanPath(text string) string {
	if strings.HasPrefix(text, "./") {
		return "./" + path.Clean(text)
	}
	return path.Clean(text)
}

// MountFault returns why no profile can ask for a mount; empty if one can.
func MountFault(m Mount) (message string) {
	for _, at := range []string{m.Host, m.Sandbox} {
		if fault := checkPath(at); fault != nil {
			return fault.Message
		}
		if cleanPath(at) != at {
			return at + " is not a clean path"
		}
	}
	if message, _ = SourceFault(m.Host); message == "" {
		message, _ = DestinationFault(m.Sandbox)
	}
	return message
}

// WorktreeFault returns why no profile can name a folder beside the project so; empty if one can.
func WorktreeFault(pattern string) string {
	if fault := checkSibling(pattern); fault != nil {
		return fault.Message
	}
	return ""
}

// NameFault returns why no profile has a name; empty if one can.
func NameFault(name string) string {
	if fault := profileName.Check(name); fault != nil {
		return fault.Message
	}
	return ""
}

// checkGlob checks a pattern for paths below the project. Each segment is a
// pattern of path.Match; the segment ** matches any number of segments.
func checkGlob(text string) *shape.Fault {
	switch {
	case strings.HasPrefix(text, "/"):
		return fault("", "%s is absolute; expected a pattern relative to the project", shape.Quote(text))
	case strings.HasPrefix(text, "!"):
		return fault("use show: to take a pattern away", "%s: patterns are not negated by !", shape.Quote(text))
	case climbs(text):
		return fault("", "%s leaves the project", shape.Quote(text))
	}
	return checkSegments(text)
}

// ExactGlob returns the pattern for one path relative to the project, and what lies below it: a name alone would be one
// for names at any depth, and an agent may have chosen a name with wildcards.
func ExactGlob(rel string) string {
	rel = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "!", `\!`).Replace(rel)
	if strings.Contains(rel, "/") {
		return rel
	}
	return "./" + rel
}

func checkSegments(text string) *shape.Fault {
	for segment := range strings.SplitSeq(text, "/") {
		if _, err := path.Match(segment, ""); err != nil {
			return fault(`write \[ for the bracket itself`, "%s: the bracket is not closed", shape.Quote(text))
		}
	}
	return nil
}

// checkSibling checks a pattern for folders beside the project. The folder's name
// must not consist of wildcards and dots only: a bare * would mount every project.
func checkSibling(text string) *shape.Fault {
	rest, beside := strings.CutPrefix(text, "../")
	first, _, _ := strings.Cut(rest, "/")
	first, _, _ = strings.Cut(first, "[")
	switch {
	case !beside || climbs(rest):
		return fault("", "%s is not beside the project; expected ../NAME", shape.Quote(text))
	case strings.Trim(first, "*?.") == "":
		return fault("begin the pattern with a name: ../wt-*",
			"%s names every folder beside the project", shape.Quote(text))
	}
	return checkSegments(rest)
}
