package atwork

import (
	"cmp"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
)

// program is a program of the user's for version control, or one that copies whole folders.
type program struct {
	pid   int
	name  string
	words []string // of its command line
	of    []string // what names its repository otherwise
	at    string   // the folder that it is in
	old   bool     // it may wait for a person, as for a commit message

	command string   // what it is asked for, as clone; of one that copies: empty
	rest    []string // the words after that
	makes   []string // the folders in which it makes a repository
}

// BringTo reports whether one may bring a file to a path in the project. An old one does not, but for those that copy,
// and for a pull, which waits for another machine first, unless what it has started since waits for a person.
func (all *Programs) BringTo(at, project string) bool {
	running := all.running()
	waits := slices.ContainsFunc(running, func(p program) bool { return p.old && p.does("merge", "rebase") })
	return slices.ContainsFunc(running, func(p program) bool {
		isBusy := !p.old || p.does("pull") && !waits
		brings := p.brings() && p.comesTo(project) || p.makesAbove(at)
		return p.copiesTo(at) || isBusy && brings
	})
}

// MakeAt reports whether one makes a repository at a path: that of its git folder, or of the folder with that. One of
// an archive, or of another machine, could as well be an agent's.
func (all *Programs) MakeAt(at string) bool {
	folder := folderOf(at)
	return slices.ContainsFunc(all.running(), func(p program) bool {
		return p.copiesHere(at) || slices.Contains(p.makes, folder)
	})
}

// OrderAt is [Programs.MakeAt] of what may have hooks and settings from its first moment.
func (all *Programs) OrderAt(at string) bool {
	folder := folderOf(at)
	return slices.ContainsFunc(all.running(), func(p program) bool {
		return p.does("clone", "init") && slices.Contains(p.makes, folder)
	})
}

// folderOf is the folder that a command names to make the repository at a path.
func folderOf(at string) string {
	at, _, _ = strings.Cut(at, "/.jj/") // where jj has a repository of git's
	if git.IsDotGit(path.Base(at)) {
		return path.Dir(at)
	}
	return at
}

// WriterIn returns the number of a process that may change a repository in a folder; empty: there is none. What is at
// work elsewhere does not count: an agent can have the `git status` of an editor wait there, by a pipe in the place of a
// file that it reads, and writes in the repository meanwhile.
func (all *Programs) WriterIn(folder string) (pid string) {
	for _, p := range all.running() {
		mayWrite := p.mayWrite() || p.copies()
		if p.copiesTo(folder) || p.makesAbove(folder) || mayWrite && p.comesTo(folder) {
			return strconv.Itoa(p.pid)
		}
	}
	return ""
}

// valued are options of version control programs before the command, that have the next word for their value.
var valued = strings.Fields("-C -c -R --git-dir --work-tree --namespace --config-env --attr-source --repository " +
	"--cwd --config --at-op --at-operation")

// asked returns the program with what it is asked for.
func (p program) asked() program {
	if slices.Contains(copiers, p.name) {
		return p
	}
	words := p.words[1+max(0, slices.IndexFunc(p.words, func(word string) bool { return path.Base(word) == p.name })):]
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case slices.Contains(valued, word):
			i++
		case strings.HasPrefix(word, "-"):
		case word == "git" && p.name == "jj": // jj git clone
		default:
			p.command, p.rest = word, words[i+1:]
			p.makes = p.folders()
			return p
		}
	}
	return p
}

// does reports whether it is asked for one of some commands.
func (p program) does(some ...string) bool { return slices.Contains(some, p.command) }

// folders is [program.makes]: see git-clone(1), git-init(1), git-worktree(1), git-submodule(1).
// Without a name, `git clone` takes the last part of the address (dir.c, git_url_basename).
func (p program) folders() (list []string) {
	words, values := parse(p.rest, withValue)
	verb := ""
	if len(words) > 0 && !p.does("clone", "init") {
		verb, words = words[0], words[1:]
	}
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch {
	case p.does("init"):
		return []string{from(p.at, word(0))}
	case p.does("clone"), p.does("submodule", "submodule--helper") && verb == "add":
		if len(words) > 1 {
			return []string{from(p.at, words[1])}
		}
		address := strings.TrimSuffix(strings.TrimRight(word(0), "/"), "/.git")
		called := path.Join(p.at, strings.TrimSuffix(path.Base(strings.ReplaceAll(address, ":", "/")), ".git"))
		return []string{called, called + ".git"}
	case p.does("submodule--helper") && verb == "clone":
		if words = nil; values["--path"] != "" {
			words = []string{values["--path"]}
		}
	case p.does("worktree", "workspace") && verb == "add":
		words = words[:min(1, len(words))]
	case p.does("worktree") && verb == "move":
		words = words[min(1, len(words)):]
	case p.does("worktree") && verb == "repair":
	default:
		return nil
	}
	for _, word := range words {
		list = append(list, from(p.at, word))
	}
	return list
}

// makesAbove reports whether it makes a repository in one of the folders above a path.
func (p program) makesAbove(at string) bool {
	return slices.ContainsFunc(p.makes, func(folder string) bool { return pathname.Below(at, folder) })
}

var (
	// withValue are options of those commands that have the next word for their value.
	withValue = strings.Fields("-b -B -o -u -j -c -r -e --branch --origin --upload-pack --reference " +
		"--reference-if-able --separate-git-dir --depth --shallow-since --shallow-exclude --jobs --filter --template " +
		"--config --server-option --bundle-uri --revision --ref-format --object-format --initial-branch --reason " +
		"--name --path --url --remote --rev --ssh --remotecmd --sparse-patterns")
	// ofCopy are those of cp(1).
	ofCopy = strings.Fields("-t -S --target-directory --suffix")
)

// parse returns the words that are no options, nor values of some, and the values of those that have one.
func parse(words, withValue []string) (list []string, values map[string]string) {
	values = map[string]string{}
	for i := 0; i < len(words); i++ {
		if words[i] == "--" {
			return append(list, words[i+1:]...), values
		}
		if !strings.HasPrefix(words[i], "-") {
			list = append(list, words[i])
			continue
		}
		word, value, isWhole := strings.Cut(words[i], "=")
		option := optionOf(word, withValue)
		if option != "" && !isWhole && i+1 < len(words) {
			i++
			value = words[i]
		}
		values[option] = value
	}
	return list, values
}

// optionOf returns the option whose value is the next word; empty: it is a part of this one, or there is none. Short
// options may be one word, and long ones cut short.
func optionOf(word string, withValue []string) string {
	if strings.HasPrefix(word, "--") {
		i := slices.IndexFunc(withValue, func(long string) bool { return strings.HasPrefix(long, word) })
		if i < 0 {
			return ""
		}
		return withValue[i]
	}
	for i := 1; i < len(word); i++ {
		if short := "-" + word[i:i+1]; slices.Contains(withValue, short) {
			if i < len(word)-1 {
				return ""
			}
			return short
		}
	}
	return ""
}

// brings reports whether it makes files.
func (p program) brings() bool {
	if p.does("stash") && len(p.rest) > 0 && (p.rest[0] == "list" || p.rest[0] == "show") {
		return false // a prompt asks that all the time
	}
	return p.does("checkout", "switch", "restore", "pull", "merge", "rebase", "reset", "stash", "cherry-pick", "revert",
		"am", "apply", "update", "up", "goto", "new", "edit", "read-tree", "checkout-index")
}

// mayWrite reports whether it may write in a repository: all but some commands do. Those may go on for long.
func (p program) mayWrite() bool {
	return !slices.Contains(copiers, p.name) && !p.does("log", "diff", "show", "blame", "grep", "cat-file",
		"fsmonitor--daemon", "credential-cache--daemon")
}

// copies reports whether it brings whole folders.
func (p program) copies() bool {
	first := ""
	if len(p.words) > 1 {
		first = p.words[1]
	}
	switch p.name {
	case "cp", "rsync":
		return true
	case "tar", "bsdtar":
		return slices.ContainsFunc(p.words, func(word string) bool {
			isLetters := strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--")
			return word == "--extract" || word == "--get" || isLetters && strings.Contains(word, "x")
		}) || !strings.HasPrefix(first, "-") && strings.Contains(first, "x")
	case "unzip":
		return !slices.ContainsFunc(p.words, func(word string) bool { return slices.Contains(lists, word) })
	case "7z":
		return strings.ContainsAny(first, "xe")
	}
	return false
}

// lists are the options by which unzip only reads.
var lists = strings.Fields("-l -t -v -Z -p -z")

// copiesTo reports whether it may bring what is at a path. Of an archive any word may say where to, or the folder that
// it is in; of what comes from another machine the last one.
func (p program) copiesTo(at string) bool {
	to := func(word string) bool { return pathname.Below(at, from(p.at, word)) }
	switch p.name {
	case "cp":
		return p.copiesHere(at)
	case "rsync":
		isRemote := slices.ContainsFunc(p.words, func(word string) bool { return strings.Contains(word, ":") })
		return p.copiesHere(at) || isRemote && to(p.words[len(p.words)-1])
	}
	return p.copies() && (to("") || slices.ContainsFunc(p.words, to))
}

// copiesHere reports whether it copies from this machine what is at a path: that is where it comes from, too.
func (p program) copiesHere(at string) bool {
	if p.name != "cp" && p.name != "rsync" {
		return false
	}
	var options []string
	if p.name == "cp" {
		options = ofCopy
	}
	sources, values := parse(p.words[1:], options)
	to := cmp.Or(values["-t"], values["--target-directory"])
	isInto := to != ""
	if !isInto && len(sources) > 1 {
		sources, to = sources[:len(sources)-1], sources[len(sources)-1]
	}
	return to != "" && slices.ContainsFunc(sources, func(source string) bool {
		to := from(p.at, to)
		has := func(folder string) bool {
			rest, below := pathname.Cut(at, folder)
			return below && isThere(path.Join(from(p.at, source), rest))
		}
		return has(path.Join(to, path.Base(source))) || !isInto && has(to)
	})
}

func isThere(at string) bool {
	_, err := os.Lstat(at)
	return err == nil
}

// comesTo reports whether it is in a folder, or names a path there.
func (p program) comesTo(folder string) bool {
	there := func(word string) bool { return pathname.Below(from(p.at, word), folder) }
	return there("") || slices.ContainsFunc(slices.Concat(p.words, p.of), func(word string) bool {
		_, value, _ := strings.Cut(word, "=")
		return there(word) || there(value)
	})
}

// from is a path that a process in a folder names by a word.
func from(folder, word string) string {
	if path.IsAbs(word) {
		return path.Clean(word)
	}
	return path.Join(folder, word)
}
