package session

import (
	"bytes"
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/program"
)

// leads is what decides on what the project, the user's plugins and tools lead to that is not inside.
type leads struct {
	tree
	facts   host.Facts
	inside  *view.View
	sees    func(path string) (whyNot string)
	reaches func(address string) (whyNot string)
	lending lending.Host
	agent   string   // its name
	command []string // of the user's own, see [planning.Purpose]
	env     []string // names of variables of which is told elsewhere, or that enter
}

// out says what the project leads to that is not inside: by links, by imports of its memory, and what the agent
// would read outside of the folders that the project lies in. The agent is told none of it: who writes the project
// could ask so for any file of this machine whether it is there.
func (in leads) out() (made launch.Part) {
	top, sees := in.project.Path, in.sees
	leave := func(kind, what, path string) {
		reason := sees(profile.Tilde(in.facts.Home, path))
		if reason == "" || pathname.Below(path, top) {
			return
		}
		if kind == "import" && pathname.Below(path, program.ConfigFolder(in.facts)) {
			reason += "; imported by your own CLAUDE.md it enters"
		}
		made.Left = append(made.Left, diag.Left{Kind: kind, Text: what + reason, Quiet: true})
	}
	links := in.linksOut()
	for _, rel := range slices.Sorted(maps.Keys(links)) {
		text := links[rel]
		if !filepath.IsAbs(text) {
			text = filepath.Join(top, filepath.Dir(rel), text)
		}
		leave("project link", "the project's "+diag.Visible(rel)+" leads out of it: ", text)
	}
	for _, of := range [...]struct{ file, who string }{{".jj/repo", "jj"}, {".hg/sharedpath", "hg"}} { // of two
		if file, err := smallfile.Read(filepath.Join(top, of.file), fileLimit); err == nil {
			at := strings.TrimSpace(string(file))
			if !filepath.IsAbs(at) {
				at = filepath.Join(top, filepath.Dir(of.file), at)
			}
			leave("project link",
				"the project's "+of.file+" leads out of it, where "+of.who+" writes (--mount-rw): ", at)
		}
	}
	in.dependencies(leave)
	made.Add(in.versions())
	made.Add(in.otherTools())
	made.Add(in.variables())
	if in.agent != "claude" {
		return made
	}
	made.Add(in.cannotRun())
	for dir := filepath.Dir(top); len(dir) > 1; dir = filepath.Dir(dir) {
		for _, name := range memory {
			leave("memory file", "of a folder above the project: ", filepath.Join(dir, name))
		}
		leave("MCP server", "of a folder above the project: ", filepath.Join(dir, ".mcp.json"))
	}
	leave("memory file", "of your subagents: ", filepath.Join(program.ConfigFolder(in.facts), "agent-memory"))
	for _, of := range importsOut(top, in.facts.Home, memory, in.read) {
		leave("import", "the import @"+diag.Visible(of.name)+" of the project's "+of.in+": ", of.path)
	}
	return made
}

// memory are the files that the agent reads first, and configured those that name programs of the project's.
var (
	memory     = strings.Fields("CLAUDE.md CLAUDE.local.md AGENTS.md .claude/CLAUDE.md .claude/AGENTS.md")
	configured = []string{".claude/settings.json", ".claude/settings.local.json", ".mcp.json"}
)

// read returns what a file of the project holds: on a branch, what is committed there of [memory] and [configured].
func (in tree) read(rel string) []byte {
	if in.branch != nil && in.branch.Files[rel] != nil {
		return in.branch.Files[rel]
	}
	if in.branch != nil && !in.branch.Brings(rel) && slices.Contains(in.branch.Read, rel) {
		return nil
	}
	content, _ := smallfile.Read(filepath.Join(in.project.Path, rel), fileLimit) // most have none
	return content
}

// has reports whether the project has a file, one of [branch.Request.Read]: on a branch, whether it is committed there,
// or comes from the user's folder.
func (in tree) has(file string) bool {
	rel, _ := pathname.Cut(file, in.project.Path)
	if in.branch != nil && (in.branch.Files[rel] != nil || !in.branch.Brings(rel)) {
		return in.branch.Files[rel] != nil
	}
	_, err := os.Lstat(file)
	return err == nil
}

// linksOut returns the links of the project, on a branch those that are there, and what they say.
func (in tree) linksOut() map[string]string {
	links := map[string]string{}
	for _, link := range linksOut(in.project.Path) {
		rel, _ := pathname.Cut(link, in.project.Path)
		if text, err := os.Readlink(link); err == nil && (in.branch == nil || in.branch.Brings(rel)) {
			links[rel] = text
		}
	}
	if in.branch != nil {
		maps.Copy(links, in.branch.Links)
	}
	return links
}

// toolFiles are files of the home by which package managers know where packages come from, and tools how to build and
// to search.
var toolFiles = strings.Fields(`.npmrc .yarnrc .yarnrc.yml .config/pnpm/rc .bunfig.toml .pip/pip.conf .config/pip/pip.conf
	.config/uv/uv.toml .config/pypoetry/config.toml .config/pdm/config.toml
	.config/hatch/config.toml .condarc .conda/.condarc .conda/condarc .config/conda/.condarc .config/conda/condarc
	.cargo/config.toml .cargo/config .m2/settings.xml .m2/toolchains.xml .mavenrc .gradle/gradle.properties
	.gradle/init.gradle .gradle/init.gradle.kts .gradle/init.d .sbt/repositories .lein/profiles.clj .bazelrc
	.config/go/env .bundle/config .gemrc .cabal/config .stack/config.yaml .Rprofile .config/composer/config.json
	.nuget/NuGet/NuGet.Config .config/NuGet/NuGet.Config .config/fd/ignore .config/ruff/ruff.toml .config/black
	.config/rustfmt/rustfmt.toml .config/jj/config.toml .jjconfig.toml .hgrc .curlrc .wgetrc`)

// machineFiles are those of the machine by which all its users' package managers know where packages come from.
var machineFiles = strings.Fields(`etc/pip.conf etc/xdg/pip/pip.conf etc/uv/uv.toml etc/npmrc usr/etc/npmrc
	usr/local/etc/npmrc etc/conda/.condarc etc/conda/condarc etc/gemrc etc/bazel.bazelrc
	etc/opt/NuGet/Config/NuGet.Config`)

// above are files by which formatters, linters and build tools work in all folders below theirs.
var above = strings.Fields(`.editorconfig .clang-format .clang-tidy .prettierrc .prettierrc.json .prettierrc.yaml
	.prettierrc.yml .eslintrc .eslintrc.json .eslintrc.yml .rubocop.yml rustfmt.toml .rustfmt.toml .yarnrc.yml go.work
	.cargo/config.toml .envrc .tool-versions mise.toml .mise.toml .python-version .nvmrc`)

// inBraces are variables as files for tools have them.
var inBraces = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)[:?}-]`)

// variables says which variables that are set here, and not inside, files of the project use: as the token of a
// registry.
func (in leads) variables() (made launch.Part) {
	for _, file := range slices.Concat(configured, []string{".npmrc", ".yarnrc.yml", "bunfig.toml"}) {
		var names []string
		for _, found := range inBraces.FindAllSubmatch(in.read(file), -1) {
			name := string(found[1])
			if in.facts.Env.Value(name, "") != "" && !slices.Contains(in.env, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		made.LeaveAll("variable", "the project's "+file+" uses ALL, set here and not inside; "+
			"`secrets: [{env: FIRST, hosts: [HOST]}]` uses it from outside, `extra_env_passthrough: [FIRST]` lets it in", names)
	}
	return made
}

// shellFiles are those by which shells and their line editors are the user's.
var shellFiles = strings.Fields(".bashrc .bash_aliases .bash_profile .zshrc .zshenv .config/fish/config.fish .inputrc")

// otherTools says which of the user's [toolFiles] are not inside: without them packages come from public registries.
// For a shell it looks for [shellFiles], too.
func (in leads) otherTools() (made launch.Part) {
	var files, open, closed []string
	names := toolFiles
	if slices.Equal(in.command, launch.Shell) {
		names = slices.Concat(shellFiles, toolFiles)
	}
	for _, name := range names {
		files = append(files, filepath.Join(in.facts.Home, name))
	}
	for _, file := range slices.Concat(in.filesAbove(), filesOfMachine("/")) {
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	for _, file := range files {
		if in.inside.File(file) == "" {
			continue
		}
		if _, fault := in.lending.Mountable(file); fault != nil {
			closed = append(closed, profile.Tilde(in.facts.Home, file))
		} else {
			open = append(open, profile.Tilde(in.facts.Home, file))
		}
	}
	if in.agent == "claude" && len(in.command) == 0 {
		made.Add(in.ofShell())
	}
	made.LeaveAll("settings file", "your tools read outside, and not inside: ALL; --mount-ro FIRST, or the "+
		"profile's `mounts`, brings one", open)
	made.LeaveAll("settings file", "your tools read outside, and not inside, as logins lie there: ALL; variables "+
		"of the profile (`env: {NPM_CONFIG_REGISTRY: …}`) can say what else is in it", closed)
	return made
}

// filesAbove lists those of [above] that lie in the folders above the project.
func (in leads) filesAbove() (list []string) {
	for dir := filepath.Dir(in.project.Path); len(dir) > 1; dir = filepath.Dir(dir) {
		for _, name := range above {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				list = append(list, filepath.Join(dir, name))
			}
		}
	}
	return list
}

// filesOfMachine lists those of [machineFiles] that name a server: most others only say where certificates are.
func filesOfMachine(root string) (list []string) {
	for _, name := range machineFiles {
		file := filepath.Join(root, name)
		if content, _ := smallfile.Read(file, fileLimit); bytes.Contains(content, []byte("://")) { // most are not there
			list = append(list, file)
		}
	}
	return list
}

// ofShell names the file by which Claude Code's commands have the user's own aliases, functions and PATH outside. One
// that every user of this machine got is not the user's own.
func (in leads) ofShell() (made launch.Part) {
	shell, name := cmp.Or(in.facts.Env.Value("CLAUDE_CODE_SHELL", ""), in.facts.Env.Value("SHELL", "")), ".bashrc"
	if strings.Contains(filepath.Base(shell), "zsh") {
		name = ".zshrc"
	}
	content, _ := smallfile.Read(filepath.Join(in.facts.Home, name), fileLimit) // most other homes have none
	given, _ := smallfile.Read("/etc/skel/"+name, fileLimit)
	reason := in.inside.File("~/" + name)
	if len(content) == 0 || bytes.Equal(content, given) || reason == "" {
		return made
	}
	if name != ".bashrc" {
		reason = "~/" + name + " is not read inside: the shell is bash there, and reads ~/.bashrc if a mount gives it"
	}
	made.Leave("settings file", "of the aliases, functions and PATH that Claude Code's commands have outside, "+reason)
	return made
}

// linksOut lists links of the project: those at its top, and what lies below folders of agents.
func linksOut(top string) (links []string) {
	for _, folder := range []string{".", ".claude", ".agents"} {
		looked := 0
		_ = filepath.WalkDir(filepath.Join(top, folder), func(name string, d fs.DirEntry, err error) error {
			looked++
			switch {
			case looked == mostEntries:
				return fs.SkipAll
			case err != nil:
				return nil // what the user cannot read is not told
			case d.Type()&fs.ModeSymlink != 0:
				links = append(links, name)
			case d.IsDir() && name != top && (folder == "." || strings.HasSuffix(name, "/worktrees")):
				return fs.SkipDir
			}
			return nil
		})
	}
	return links
}

// imported is a file that a memory file of the project imports.
type imported struct{ in, name, path string }

// importsOut lists what the project's memory imports, and what that imports, as far as it lies out of the project.
func importsOut(top, home string, memory []string, read func(rel string) []byte) (list []imported) {
	queue, depth := slices.Clone(memory), len(memory)
	for i := 0; i < len(queue) && i < depth+agenthome.MostImports; i++ {
		for _, name := range agenthome.Imports(read(queue[i])) {
			at, rest, ofHome := name, "", false
			if rest, ofHome = strings.CutPrefix(name, "~/"); ofHome {
				at = filepath.Join(home, rest)
			} else if !filepath.IsAbs(name) {
				at = filepath.Join(top, filepath.Dir(queue[i]), name)
			}
			if rel, below := pathname.Cut(at, top); !below {
				list = append(list, imported{queue[i], name, at})
			} else if !slices.Contains(queue, rel) {
				queue = append(queue, rel)
			}
		}
	}
	return list
}

// fileLimit is the size of the largest memory file that is read, in bytes.
const fileLimit = 1 << 20

// mostEntries is how many entries of each folder are looked at for links: a start waits for it.
const mostEntries = 2000
