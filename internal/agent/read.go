package agent

import (
	"cmp"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
)

// headSize is how much of a file is read to tell what it is: enough for a
// script that does nothing but start another program. The kernel looks at
// 256 bytes.
const headSize = 4096

// maxScripts is how many interpreters may be scripts themselves before it is
// taken for a circle; the kernel allows five.
const maxScripts = 5

// words are those that run the program name inside, its interpreter's first.
// What they need of the host is mounted.
func (f *finder) words(name string) ([]string, error) {
	file, err := f.trusted(name)
	if err != nil {
		return nil, err
	}
	if inStore(file.name) {
		return []string{samePackage(file)}, nil
	}
	if !file.info.Mode().IsRegular() {
		return nil, notExecutable(file.name, "", "not a regular file")
	}
	if !f.mayExecute(file) {
		return nil, notExecutable(file.name, "chmod +x "+file.name, "its mode does not let user %d run it", f.UID)
	}
	return f.outsideStore(file.name)
}

// samePackage is the name to run a program of the store by: the first of its
// names that lies in the package of the last, because a program may act by
// its name, and a profile's link farm would bring its whole closure along.
func samePackage(file found) string {
	base, _, _ := strings.Cut(strings.TrimPrefix(file.name, store+"/"), "/")
	for _, name := range file.names {
		if pathname.Below(name, path.Join(store, base)) {
			return name
		}
	}
	return file.name
}

// outsideStore reads what kind of program a file is.
func (f *finder) outsideStore(name string) ([]string, error) {
	file, err := f.Files.Open(name)
	if err != nil {
		return nil, notExecutable(name, "", "it cannot be read to see what it needs inside: %v", err)
	}
	defer file.Close()
	head := make([]byte, headSize)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &diag.Error{Op: "read " + name, Err: err}
	}
	switch start := string(head[:n]); {
	case strings.HasPrefix(start, elf.ELFMAG):
		f.own(name, packageFolder)
		return []string{name}, f.elf(name, file)
	case strings.HasPrefix(start, "#!"):
		return f.script(name, start)
	}
	return nil, notExecutable(name, "", "neither an ELF program nor a script with an interpreter")
}

const hostsOwn = " is the host's"

// own mounts the program: its folder when it is one of many files, else the
// file alone. An interpreter is always alone: who wrote the script chose its
// path, and must not choose a folder.
func (f *finder) own(name string, folder func(name string) string) {
	where, what := name, "the agent's interpreter"
	if !f.alone {
		where, what = cmp.Or(folder(name), name), "the agent's program"
	}
	f.mounts = append(f.mounts, readOnly(where, where, what))
	f.notes = append(f.notes, what+" "+path.Base(name)+hostsOwn)
}

// shells are interpreters that every sandbox has of its own; the host's are
// not mounted for them.
var shells = []string{"sh", "bash"}

// wrapped is the program that a shell script becomes, with the script's own
// words, when it does nothing else, as the one that Claude Code's local installation leaves in
// ~/.claude/local; empty otherwise.
func wrapped(text string) string {
	program := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		rest, become := strings.CutPrefix(line, "exec ")
		rest, words := strings.CutSuffix(rest, ` "$@"`)
		if program != "" || !become || !words {
			return ""
		}
		program = strings.Trim(rest, `"`)
		if !path.IsAbs(program) || strings.ContainsAny(program, "\"'$`\\ \t*?[]{}~;&|<>()#") {
			return "" // it does not mean what it says
		}
	}
	return program
}

// script says how to run a script: by its interpreter, spelt out, since the
// interpreter need not be where the script's first line has it.
func (f *finder) script(name, text string) ([]string, error) {
	if f.scripts++; f.scripts > maxScripts {
		return nil, notExecutable(name, "", "interpreters that are scripts themselves, more than %d deep", maxScripts)
	}
	interpreter, words := shebang(text)
	if interpreter == "" {
		return nil, notExecutable(name, "", "its first line names no interpreter")
	}
	if slices.Contains(shells, path.Base(interpreter)) {
		if program := wrapped(text); program != "" {
			return f.words(program)
		}
		f.notes = append(f.notes, path.Base(name)+" is a shell script: what it starts must be inside as well")
	}
	f.own(name, f.packageOfScript)
	first, err := f.interpreter(name, interpreter)
	if err != nil {
		return nil, err
	}
	return slices.Concat(first, words, []string{name}), nil
}

// shebang takes the first line of a script apart as the kernel does, and
// behind env(1) as env does: one word for an interpreter, all that follows
// for its one argument, or for env -S as many as there are.
func shebang(text string) (interpreter string, words []string) {
	line, _, _ := strings.Cut(strings.TrimPrefix(text, "#!"), "\n")
	interpreter, rest, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(line, "\t", " ")), " ")
	rest = strings.TrimSpace(rest)
	if path.Base(interpreter) != "env" {
		if rest != "" {
			words = []string{rest}
		}
		return interpreter, words
	}
	split := strings.Fields(rest)
	if len(split) > 0 && (split[0] == "-S" || split[0] == "--split-string") {
		split = split[1:]
	}
	if len(split) == 0 {
		return "", nil
	}
	return split[0], split[1:]
}

// interpreter finds what runs a script: by a bare name (env's) inside, then
// the manifest's node, then on the caller's PATH; by a path the host's file,
// but for shells.
func (f *finder) interpreter(script, word string) ([]string, error) {
	base := path.Base(word)
	if !path.IsAbs(word) || slices.Contains(shells, base) {
		if name := f.search(f.Inside, base); name != "" {
			return []string{name}, nil
		}
	}
	if base == "node" && f.Node != "" {
		return []string{f.Node}, nil
	}
	f.alone = true
	name, err := word, error(nil)
	if !path.IsAbs(word) {
		name, err = f.onPath(word)
	}
	var words []string
	if err == nil {
		words, err = f.words(name)
	}
	if errors.Is(err, ErrNotFound) {
		return nil, notExecutable(script, "add the package that has "+base+" to the profile's packages",
			"its interpreter %s is not found", word)
	}
	return words, err
}

// Names of npm's and pnpm's folders of packages.
const (
	nodeModules = "node_modules"
	pnpmStore   = ".pnpm"
)

// packageFolder is the folder of the npm package that a file belongs to,
// with what is installed beneath it; empty when it belongs to none. Of nested
// packages it is the outermost, whose dependencies the others are. pnpm keeps
// packages side by side and links them, so there it is the folder of all.
func packageFolder(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts[:len(parts)-1] {
		switch {
		case part == pnpmStore:
			return strings.Join(parts[:i+1], "/")
		case part == nodeModules && parts[i+1] != pnpmStore:
			last := i + 1
			if strings.HasPrefix(parts[last], "@") {
				last++ // a package of a scope has two components
			}
			if last >= len(parts)-1 {
				return "" // a file that lies bare among packages
			}
			return strings.Join(parts[:last+1], "/")
		}
	}
	return ""
}

// packageOfScript is the folder that a script of npm needs: its package, or
// all of node_modules when it finds packages it depends on beside its own.
func (f *finder) packageOfScript(name string) string {
	folder := packageFolder(name)
	if folder == "" || path.Base(folder) == pnpmStore {
		return folder
	}
	modules := folder[:strings.LastIndex(folder, "/"+nodeModules+"/")+1] + nodeModules
	for _, dependency := range f.dependencies(folder) {
		if !f.exists(path.Join(folder, nodeModules, dependency)) && f.exists(path.Join(modules, dependency)) {
			return modules
		}
	}
	return folder
}

// maxPackageFile bounds, in bytes, how much of a package.json is read.
const maxPackageFile = 1 << 20

// dependencies are the packages that a package names; none when its
// package.json cannot be read, for then node could not either.
func (f *finder) dependencies(folder string) []string {
	file, err := f.Files.Open(path.Join(folder, "package.json"))
	if err != nil {
		return nil
	}
	defer file.Close()
	var named struct{ Dependencies, OptionalDependencies map[string]string }
	if json.NewDecoder(io.NewSectionReader(file, 0, maxPackageFile)).Decode(&named) != nil {
		return nil
	}
	return slices.Concat(slices.Sorted(maps.Keys(named.Dependencies)),
		slices.Sorted(maps.Keys(named.OptionalDependencies)))
}

func (f *finder) exists(name string) bool {
	_, err := f.Files.Lstat(name)
	return err == nil
}
