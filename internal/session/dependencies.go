package session

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
)

// manifests are the files by which builds find what they are made of. Some name folders beside the project.
var manifests = strings.Fields(`go.work go.mod Cargo.toml package.json pnpm-workspace.yaml tsconfig.json pyproject.toml
	requirements.txt Gemfile .bundle/config composer.json mix.exs pubspec.yaml settings.gradle settings.gradle.kts
	.pdm-python`)

// named lists what a manifest names above its own folder, or in the home, as it is written there: "../lib", also behind
// "file:".
func named(manifest []byte, home string) (list []string) {
	between := func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`=,;()[]{}", r) }
	for _, word := range strings.FieldsFunc(string(manifest), between) {
		if kind, rest, is := strings.Cut(word, ":"); is && !strings.Contains(kind, "/") {
			word = rest
		}
		isNamed := word == ".." || strings.HasPrefix(word, "../") || pathname.Below(word, home) && word != home
		if isNamed && !strings.ContainsAny(word, "*$") && !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return list
}

// mostManifests is how many manifests are read: a start waits for it.
const mostManifests = 100

// manifests lists the manifests of the project: at its top, and those deeper that the look at the project saw.
func (in leads) manifests() []string {
	list := slices.Clone(manifests)
	for _, file := range in.project.Seen.Files {
		folder, name := filepath.Split(file.Rel)
		if folder != "" && len(list) < mostManifests && slices.Contains(manifests, name) {
			list = append(list, file.Rel)
		}
	}
	return list
}

// dependencies says what the project is built of that is not inside: what its manifests name beside it, and what links
// of node_modules lead to, as `npm link` and pnpm's global store make them.
func (in leads) dependencies(leave func(kind, what, path string)) {
	const kind = "dependency"
	top := in.project.Path
	told := map[string]bool{}
	for _, name := range in.manifests() {
		folder := strings.TrimSuffix(filepath.Dir(name), ".bundle")
		for _, word := range named(in.read(name), in.facts.Home) {
			at := word
			if !filepath.IsAbs(at) {
				at = filepath.Join(top, folder, at)
			}
			if !told[at] {
				leave(kind, "the project's "+name+" names "+diag.Visible(word)+": ", at)
				told[at] = true
			}
		}
	}
	if has := func(rel string) bool { return in.has(filepath.Join(top, rel)) }; has(".pnp.cjs") && !has(".yarn/cache") {
		leave(kind, "the project's .pnp.cjs names what lies in yarn's cache: ",
			filepath.Join(in.facts.Home, ".yarn/berry/cache"))
	}
	if in.branch != nil && !in.branch.Brings("node_modules") {
		return
	}
	var links, targets []string
	for _, link := range modules(filepath.Join(top, "node_modules")) {
		text, _ := os.Readlink(link)
		if !filepath.IsAbs(text) {
			text = filepath.Join(filepath.Dir(link), text)
		}
		if text = filepath.Clean(text); !pathname.Below(text, top) && in.inside.File(text) != "" {
			rel, _ := pathname.Cut(link, top)
			links, targets = append(links, rel), append(targets, text)
		}
	}
	if links == nil {
		return
	}
	what := "the project's " + diag.Visible(links[0]) + " leads out of it"
	if more := len(links) - 1; more > 0 {
		what = "the project's " + diag.Visible(links[0]) + " and " + strconv.Itoa(more) + " more lead out of it"
	}
	leave(kind, what+": ", cmp.Or(in.around(targets), targets[0]))
}

// around is the folder that holds all of some paths, if it can be given: it holds neither the home nor the project.
func (in leads) around(paths []string) string {
	folder := paths[0]
	for _, path := range paths[1:] {
		for !pathname.Below(path, folder) {
			folder = filepath.Dir(folder)
		}
	}
	if pathname.Below(in.facts.Home, folder) || pathname.Below(in.project.Path, folder) {
		return ""
	}
	return folder
}

// modules lists the links of a folder node_modules: packages, also those of a scope.
func modules(folder string) (links []string) {
	entries, _ := os.ReadDir(folder) // most have none
	for _, e := range entries[:min(len(entries), mostEntries)] {
		at := filepath.Join(folder, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			links = append(links, at)
		case e.IsDir() && strings.HasPrefix(e.Name(), "@"):
			links = append(links, modules(at)...)
		}
	}
	return links
}
