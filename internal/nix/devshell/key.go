package devshell

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag/pattern"
	"claudebox/internal/linux/smallfile"
)

// watched are files that decide what a dev shell is, beside those that the evaluation is seen to read. Nix does not
// tell of files that are read as data.
var watched = []string{
	"flake.nix", "flake.lock", "shell.nix", "default.nix", ".envrc", "devshell.toml", "rust-toolchain",
	"rust-toolchain.toml", ".python-version", "npins/sources.json", "nix/sources.json",
}

// mostWatched bounds each of these files, in bytes; of a larger one the size and the time count.
const mostWatched = 4 << 20

// key is what an environment was made of: equal key, equal environment. files are those of t.dir that the evaluation
// read.
func key(r Request, t target, files []string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "1 %q %q %q %q %v\n", r.System, r.Nix, t.dir+" "+t.file, t.refs, t.impure)
	for _, name := range files {
		file := filepath.Join(t.dir, name)
		content, err := smallfile.Read(file, mostWatched)
		if info, e := os.Stat(file); err != nil && e == nil {
			content = fmt.Append(nil, info.Size(), info.ModTime().UnixNano())
		}
		fmt.Fprintf(sum, "%q %v %x\n", name, err == nil, sha256.Sum256(content))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// filesOf lists the files of a key: the watched ones, those that a profile names, and read.
func filesOf(r Request, t target, read []string) []string {
	files := slices.Concat(watched, read)
	for _, pattern := range r.Watch {
		names, _ := filepath.Glob(filepath.Join(t.dir, pattern))
		for _, name := range names {
			if rel, err := filepath.Rel(t.dir, name); err == nil {
				files = append(files, rel)
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// evaluated is Nix's line of a file that it reads: in the project, in the store's copy of the flake, or in a tree that
// is named by its address.
const evaluated pattern.Expr = `^evaluating file '(?:(/nix/store/[^/]+|«[^»]*»)/)?(.*)'`

// reading collects the files of a project that an evaluation reads.
type reading struct {
	t     target
	tree  string // the tree that is the project's: the first whose flake.nix is read
	base  string // its root, relative to t.dir
	files []string
}

// mostRead bounds how many files are watched.
const mostRead = 1000

// take reports whether a line of Nix's is about a file that it reads, and keeps the file if it is the project's.
func (r *reading) take(line string) bool {
	found := evaluated.Compiled().FindStringSubmatch(line)
	if found == nil {
		return false
	}
	tree, rel := found[1], found[2]
	switch {
	case tree == "" && filepath.IsAbs(rel):
		below, err := filepath.Rel(r.t.dir, rel)
		if err != nil || !strings.HasPrefix(rel, "/") || strings.HasPrefix(rel, "/nix/") {
			return true
		}
		rel = below
		r.tree = cmp.Or(r.tree, "the folder itself") // no tree of the store is the project's then
	case r.tree == "" && filepath.Base(rel) == "flake.nix":
		r.tree, r.base = tree, strings.Repeat("../", strings.Count(rel, "/"))
		rel = r.base + rel
	case tree == "" || tree != r.tree:
		return true
	default:
		rel = r.base + rel
	}
	if len(r.files) < mostRead {
		r.files = append(r.files, filepath.Clean(rel))
	}
	return true
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// readRecord returns what is kept in a folder; the zero Record if nothing is.
func readRecord(folder string) (r Record) {
	text, err := smallfile.Read(filepath.Join(folder, recordName), mostRecord)
	if err != nil || json.Unmarshal(text, &r) != nil {
		return Record{}
	}
	return r
}

// write keeps a record in a folder, whole or not at all.
func (r Record) write(folder string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	file := filepath.Join(folder, recordName)
	if err := write(file+".new", string(text)); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
