package agent

import (
	"encoding/json"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

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
			return join(parts, i+1)
		}
	}
	return ""
}

// join is the path to the package that begins at parts[i]; one of a scope has
// two components. A file that lies bare among packages belongs to none.
func join(parts []string, i int) string {
	if strings.HasPrefix(parts[i], "@") {
		i++
	}
	if i >= len(parts)-1 {
		return ""
	}
	return path.Join("/", strings.Join(parts[:i+1], "/"))
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
