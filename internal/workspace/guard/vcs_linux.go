package guard

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/linux/pathname"
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
}

// bringsTo reports whether one may bring a file to a path in the project. An old one does not, but for those that copy,
// and for a pull, which waits for another machine first, unless what it has started since waits for a person.
func (v *vcs) bringsTo(at, project string) bool {
	running := v.running()
	waits := slices.ContainsFunc(running, func(p program) bool { return p.old && p.does("merge", "rebase") })
	return slices.ContainsFunc(running, func(p program) bool {
		isBusy := !p.old || p.does("pull") && !waits
		return p.copiesTo(at) || isBusy && (p.brings() || p.makes()) && p.comesTo(project)
	})
}

// makesAt reports whether one may make a repository at a path in the project: what names a folder makes it there, or
// below.
func (v *vcs) makesAt(at, project string) bool {
	return slices.ContainsFunc(v.running(), func(p program) bool {
		isThere := p.does("submodule", "submodule--helper") || p.names(func(folder string) bool {
			return pathname.Below(at, folder) && (folder != p.at || path.Dir(at) == folder)
		})
		return p.copiesTo(at) || p.makes() && p.comesTo(project) && isThere
	})
}

// makesIn reports whether one makes a repository in a folder by its command line.
func (v *vcs) makesIn(folder string) bool {
	return slices.ContainsFunc(v.running(), func(p program) bool {
		return p.does("clone", "init") && p.names(func(named string) bool { return named == folder })
	})
}

// changes returns the number of a process that may change a repository in a folder; empty: there is none. What makes
// repositories, or brings whole folders, counts anywhere in the project. All else counts there alone: an agent can have
// the `git status` of an editor wait elsewhere, by a pipe in the place of a file that it reads.
func (v *vcs) changes(folder, project string) (pid string) {
	for _, p := range v.running() {
		if (p.copies() || p.makes()) && p.comesTo(project) || p.mayWrite() && p.comesTo(folder) {
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
			return p
		}
	}
	return p
}

// does reports whether it is asked for one of some commands.
func (p program) does(some ...string) bool { return slices.Contains(some, p.command) }

// makes reports whether it makes a repository.
func (p program) makes() bool {
	i := slices.IndexFunc(p.rest, func(word string) bool { return !strings.HasPrefix(word, "-") })
	then := func(some ...string) bool { return i >= 0 && slices.Contains(some, p.rest[i]) }
	return p.does("clone", "init", "submodule--helper") || p.does("worktree") && then("add", "move", "repair") ||
		p.does("submodule") && then("add", "update", "init") || p.does("workspace") && then("add")
}

// names reports whether one of the folders that it may make a repository in is a certain one. Without a name for that,
// git takes the last part of an address (builtin/clone.c), and `git init` the folder that it is in.
func (p program) names(is func(folder string) bool) bool {
	return p.does("init") && is(p.at) || slices.ContainsFunc(p.rest, func(word string) bool {
		called := path.Join(p.at, strings.TrimSuffix(path.Base(strings.ReplaceAll(word, ":", "/")), ".git"))
		return is(from(p.at, word)) || is(called) || is(called+".git")
	})
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

// copiesTo reports whether it may bring a folder with what is at a path: the last word says where to, of an archive any
// word, or the folder that it is in.
func (p program) copiesTo(at string) bool {
	if (p.name == "cp" || p.name == "rsync") && !slices.Contains(p.words, "-t") {
		return pathname.Below(at, from(p.at, p.words[len(p.words)-1]))
	}
	to := func(word string) bool { return pathname.Below(at, from(p.at, word)) }
	return p.copies() && (to("") || slices.ContainsFunc(p.words, to))
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
