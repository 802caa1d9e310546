package devshell

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/linux/smallfile"
)

// target is one dev shell that can be evaluated.
type target struct {
	dir    string   // the folder in which Nix is run
	refs   []string // flake references, of which the first that there is counts
	file   string   // or a Nix file, in dir
	impure bool
	shown  string
	rule   string // what named it
}

// noShell is why there is no dev shell, where nobody asked for one.
type noShell string

// noneNamed is that of a project which names none.
const noneNamed = noShell("there is no flake.nix, and no `use flake` or `use nix` in .envrc")

// Error returns the reason.
func (n noShell) Error() string { return string(n) }

// choose finds the dev shell of a request. The error is a [noShell] if the project has none that is to be evaluated
// unasked.
func choose(r Request) (target, error) {
	switch {
	case r.File != "":
		return target{dir: r.Project, file: r.File, shown: r.File, rule: "the profile"}, nil
	case r.Flake != Auto:
		return target{dir: r.Dir, refs: []string{r.Flake}, shown: r.Flake, rule: "the profile"}, nil
	}
	for dir := r.Dir; ; dir = path.Dir(dir) {
		if text, err := smallfile.Read(filepath.Join(dir, ".envrc"), mostEnvrc); err == nil {
			if t, found, err := ofEnvrc(dir, string(text)); found {
				return t, err
			}
		}
		if exists(filepath.Join(dir, "flake.nix")) {
			t := target{dir: dir, shown: ".#default", rule: "flake.nix", refs: []string{
				".#devShells." + r.System + ".default", ".#devShell." + r.System,
			}}
			return t, locked(dir)
		}
		if dir == r.Project || dir == "/" {
			return target{}, noneNamed
		}
	}
}

// mostEnvrc bounds what is read of .envrc, in bytes.
const mostEnvrc = 64 << 10

// ofEnvrc looks for a line `use flake` or `use nix` in .envrc, which is read as data and never run. Options of Nix that
// it does not know make the line one that is not read: without them it would mean another shell.
func ofEnvrc(dir, text string) (t target, found bool, err error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "use" || words[1] != "flake" && words[1] != "nix" {
			continue
		}
		t = target{dir: dir, rule: ".envrc"}
		var named []string
		for _, word := range words[2:] {
			switch {
			case strings.HasPrefix(word, "#"):
			case word == "--impure" || word == "--no-pure-eval":
				t.impure = true
				continue
			case strings.ContainsAny(word, "$`\"'\\*?;&|<>()") || strings.HasPrefix(word, "-"):
				return t, true, noShell(".envrc has " + strings.TrimSpace(line) + ", which is more than a reference")
			default:
				named = append(named, word)
				continue
			}
			break
		}
		if words[1] == "nix" {
			t, err = ofFile(t, named)
			return t, true, err
		}
		ref := "."
		if len(named) > 0 {
			ref = named[0]
		}
		t.refs, t.shown = []string{ref}, ref
		return t, true, locked(localFlake(dir, ref))
	}
	return t, false, nil
}

// direnvWords are those of direnv's own language that give an environment, but for `use flake` and `use nix`.
var direnvWords = strings.Fields(`PATH_add dotenv dotenv_if_exists eval export layout load_prefix path_add source
	source_env source_env_if_exists source_up source_up_if_exists use`)

// NotRead lists, each once, what a .envrc gives outside by other lines than `use flake` and `use nix`: it is never run.
func NotRead(envrc string) (list []string) {
	for line := range strings.Lines(envrc) {
		words := append(strings.Fields(line), "", "")
		word := words[0]
		switch {
		case !slices.Contains(direnvWords, word), word == "use" && (words[1] == "flake" || words[1] == "nix"):
			continue
		case word == "use" || word == "layout":
			word += " " + words[1]
		case word == "export":
			name, _, _ := strings.Cut(words[1], "=")
			word += " " + name
		}
		if !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return list
}

// ofFile is the target of `use nix`: the file that is named, shell.nix or default.nix.
func ofFile(t target, named []string) (target, error) {
	for _, name := range append(named, "shell.nix", "default.nix") {
		if file := filepath.Join(t.dir, name); exists(file) && !filepath.IsAbs(name) {
			t.file, t.shown = name, name
			return t, nil
		}
	}
	return t, noShell("there is no shell.nix or default.nix")
}

// localFlake is the folder that a flake reference names; empty if it is elsewhere.
func localFlake(dir, ref string) string {
	place, _, _ := strings.Cut(ref, "#")
	place, _, _ = strings.Cut(strings.TrimPrefix(place, "path:"), "?")
	switch {
	case filepath.IsAbs(place):
		return place
	case place == "" || place[0] == '.':
		return filepath.Join(dir, place)
	}
	return ""
}

// locked returns a [noShell] unless a flake has a lock file: without one an evaluation would fetch whatever is new.
func locked(flake string) error {
	switch {
	case flake == "":
		return noShell("the flake is none of the project; name it in the profile: `devshell: REF`")
	case !exists(filepath.Join(flake, "flake.nix")):
		return noShell("there is no " + filepath.Join(flake, "flake.nix"))
	case !exists(filepath.Join(flake, "flake.lock")):
		return noShell("flake.nix has no flake.lock; make it (`nix flake lock`), or, where it has no inputs, write " +
			"`devshell: .` into the profile")
	}
	return nil
}
