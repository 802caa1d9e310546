package aftermath

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
)

// outsideLimit is how many links that lead outside are told of one by one.
const outsideLimit = 20

// leadsOutside is what is said of a link that does.
const leadsOutside = "outside the project"

// outside adds new links that lead out of the project, to what the user could
// read or write: an editor, or `cp`, goes through them. One that leads to where
// agents keep their own files goes: git would obey a repository there.
func (r *Report) outside(home string, tree *beneath.Folder, links []string) {
	home, _ = beneath.Canonical(home)
	told, m := 0, git.Mender{Root: tree}
	for _, rel := range links {
		to := leadsOut(tree, rel)
		if to == "" {
			continue
		}
		if home != "" && pathname.Below(to, home) {
			r.try(&m, git.Repair{
				Do: git.Rename, Rel: rel,
				Why: "it leads to " + to + ", where an agent keeps its own files",
			})
			continue
		}
		if told++; told <= outsideLimit {
			r.add(rel, New, "a link to "+to+", "+leadsOutside+": your tools read and write there")
		}
	}
	r.took("", m.Changes)
	if told > outsideLimit {
		r.add(".", New, fmt.Sprintf("%d more links that lead outside the project", told-outsideLimit))
	}
}

// leadsOut tells where a link leads; empty: it stays in the project, is gone,
// or leads to what the user has no more to do with than anybody.
func leadsOut(tree *beneath.Folder, rel string) string {
	dir, err := tree.OpenFD(path.Dir(rel), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return ""
	}
	defer unix.Close(dir)
	text := readlink(dir, path.Base(rel))
	if text == "" {
		return ""
	}
	fd, rest := nearest(dir, text)
	if fd < 0 {
		return ""
	}
	defer unix.Close(fd)
	target := path.Join(readlink(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd)), rest)
	if pathname.Below(target, tree.Path()) || pathname.Below(target, "/nix/store") || rest == "" && isOfOthers(fd) {
		return ""
	}
	return target
}

// nearest opens what a path leads to, as the kernel finds it, or the last
// folder on the way there that exists: a program that writes makes the rest.
// Where links lead in a circle it is -1.
func nearest(dir int, at string) (fd int, rest string) {
	for range unix.PathMax {
		fd, err := unix.Openat(dir, at, unix.O_PATH|unix.O_CLOEXEC, 0)
		switch {
		case err == nil:
			return fd, rest
		case errors.Is(err, unix.ELOOP):
			return -1, ""
		}
		folder, name := path.Split(strings.TrimRight(at, "/"))
		switch text := readlink(dir, at); {
		case path.IsAbs(text): // what is behind this link does not exist
			at = text
		case text != "":
			at = folder + text
		case folder == "":
			at, rest = ".", path.Join(name, rest)
		default:
			at, rest = folder, path.Join(name, rest)
		}
	}
	return -1, ""
}

func readlink(dir int, name string) string {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buffer)
	if err != nil {
		return ""
	}
	return string(buffer[:n])
}

// isOfOthers tells a file that is not the user's, and closed for writing: one
// of the system.
func isOfOthers(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) == os.Getuid() {
		return false
	}
	return unix.Access("/proc/self/fd/"+strconv.Itoa(fd), unix.W_OK) != nil
}
