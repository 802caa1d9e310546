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
	"claudebox/internal/diag/pattern"
	"claudebox/internal/linux/pathname"
)

const (
	// headSize is how much of a file is read, in bytes, to tell what it is: enough for a script that does nothing but
	// start another program. The kernel looks at 256 bytes.
	headSize = 16 << 10
	// shortScript is how much of a script is searched for what it starts, in bytes, where that is not all that it does.
	shortScript = 4096
)

// maxScripts bounds a chain of interpreters that are scripts themselves, as the chain may be a circle; the kernel
// allows five.
const maxScripts = 5

// words returns the command line that runs the program name inside, beginning with its interpreter if it is a script.
// It mounts the files of the host that this needs.
func (f *finder) words(name string) ([]string, error) {
	file, err := f.trusted(name)
	if err != nil {
		return nil, err
	}
	if err := f.isShim(name, file.name); err != nil {
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
	return f.outsideStore(name, file.name)
}

// samePackage returns the path by which to run a program of the store: the first link on the way to it that lies in
// the same package as the file itself, else the file. A program may act by the name of the link; but a link of
// another package, such as a profile's link farm, would bring that package's whole closure along.
func samePackage(file found) string {
	base, _, _ := strings.Cut(strings.TrimPrefix(file.name, store+"/"), "/")
	for _, name := range file.names {
		if pathname.Below(name, path.Join(store, base)) {
			return name
		}
	}
	return file.name
}

// outsideStore is [finder.words] for a program outside the store, once it is known to be a file that the user may
// execute. asked is the path by which it was found: a script may ask for that.
func (f *finder) outsideStore(asked, name string) ([]string, error) {
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
		return []string{name}, f.needsOfELF(name, start, file)
	case strings.HasPrefix(start, "#!"):
		return f.script(asked, name, start)
	}
	remedy := ""
	if packageFolder(name) != "" {
		remedy = "start it outside, where it says what its installation lacks; pnpm leaves scripts of packages out " +
			"until `pnpm approve-builds -g`"
	}
	return nil, notExecutable(name, remedy, "neither an ELF program nor a script with an interpreter")
}

// own mounts a program: the folder that folder returns for it, or the file alone if that is empty. If something is
// mounted already, name is the interpreter of a script and is mounted alone: whoever wrote the script chose the
// interpreter's path, and must not choose a folder.
func (f *finder) own(name string, folder func(name string) string) {
	where := name
	if len(f.made.Mounts) == 0 {
		where = cmp.Or(folder(name), name)
	}
	f.mount(Mount{Source: where, Destination: where})
}

// shells are interpreters that every sandbox has of its own; the host's are
// not mounted for them.
var shells = []string{"sh", "bash"}

// script returns the command line that runs a script. It names the interpreter explicitly, which need not lie inside
// where the script's first line has it.
func (f *finder) script(asked, name, text string) ([]string, error) {
	if f.scripts++; f.scripts > maxScripts {
		return nil, notExecutable(name, "", "interpreters that are scripts themselves, more than %d deep", maxScripts)
	}
	interpreter, words := shebang(text)
	if interpreter == "" {
		return nil, notExecutable(name, "", "its first line names no interpreter")
	}
	if slices.Contains(shells, path.Base(interpreter)) {
		if found, ok := startedBy(asked, name, text, f.Home); ok {
			f.more = slices.Concat(f.more, found.words)
			f.made.Env = append(f.made.Env, found.env...)
			return f.words(found.program)
		}
		if err := f.starts(name, text[:min(len(text), shortScript)], inPlace); err != nil {
			return nil, err
		}
		f.note(path.Base(name) + " is a shell script: what it starts must be inside as well")
	} else if len(text) < shortScript && len(f.made.Mounts) == 0 { // it is read as a whole, and nobody's interpreter
		_, body, _ := strings.Cut(text, "\n")
		if err := f.starts(name, body, inCall); err != nil {
			return nil, err
		}
	}
	f.own(name, f.packageOfScript)
	first, err := f.interpreter(name, interpreter)
	if err != nil {
		return nil, err
	}
	return slices.Concat(first, words, []string{name}), nil
}

// shebang parses the first line of a script. As for the kernel, the first word is the interpreter and the rest one
// argument. After env(1), with or without -S, the next word is the interpreter, and each further word an argument.
// interpreter is empty if the line names none.
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

// interpreter returns the command line of a script's interpreter. A bare name (after env) is looked up inside, then
// as the manifest's node, then on the caller's PATH. A path is the host's file, but the shell inside and the
// manifest's node come before those of the host.
func (f *finder) interpreter(script, word string) ([]string, error) {
	base := path.Base(word)
	if !path.IsAbs(word) || slices.Contains(shells, base) {
		if name, ok := f.search(f.Inside, base); ok {
			return []string{name}, nil
		}
	}
	if base == "node" && f.Node != "" {
		return []string{f.Node}, nil
	}
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
	pnpmLinks   = "links"

	storeVersion pattern.Expr = `^v\d+$`
)

// packageFolder returns the folder of the npm package that a file belongs to, which holds all that is installed
// beneath it; empty if it belongs to none. Of nested packages it is the outermost, which depends on the others. pnpm
// keeps packages side by side and links them to one another, so there it is the folder of all packages.
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
				return "" // a file that lies directly in node_modules
			}
			return strings.Join(parts[:last+1], "/")
		}
	}
	return ""
}

// packageOfScript returns the folder that a script of npm needs: its package, or all of node_modules if a package
// that it depends on lies beside its own.
func (r Request) packageOfScript(name string) string {
	folder := packageFolder(name)
	if folder == "" || path.Base(folder) == pnpmStore {
		return folder
	}
	modules := folder[:strings.LastIndex(folder, "/"+nodeModules+"/")+1] + nodeModules
	for _, dependency := range r.dependencies(folder) {
		if !r.exists(path.Join(folder, nodeModules, dependency)) && r.exists(path.Join(modules, dependency)) {
			return cmp.Or(linksFolder(modules), modules)
		}
	}
	return folder
}

// linksFolder is the folder of all packages in a store of pnpm's, in which those lie far apart that link to one
// another: STORE/v11/links/NAME/VERSION/HASH/node_modules. It is empty for a node_modules elsewhere.
func linksFolder(modules string) string {
	parts := strings.Split(modules, "/")
	for i := 1; i < len(parts); i++ {
		if parts[i] == pnpmLinks && storeVersion.Matches(parts[i-1]) {
			return strings.Join(parts[:i+1], "/")
		}
	}
	return ""
}

// maxPackageFile bounds, in bytes, how much of a package.json is read.
const maxPackageFile = 1 << 20

// dependencies returns the names of the packages that the package in folder depends on; nil if its package.json
// cannot be read, because then node could not read it either.
func (r Request) dependencies(folder string) []string {
	file, err := r.Files.Open(path.Join(folder, "package.json"))
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

func (r Request) exists(name string) bool {
	_, err := r.Files.Lstat(name)
	return err == nil
}
