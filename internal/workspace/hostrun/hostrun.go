// Package hostrun knows the files of a project that tools of the host execute,
// or obey, and what that means to a person.
//
// Git's own files are not among them: those are protected, or made harmless. The package has no effects and imports
// nothing of claudebox.
package hostrun

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"
)

// Rule says what a change of certain files means.
type Rule struct {
	// Pattern is a name at any depth; "dir/name", a file in such a folder; or "dir/**", all below such a folder. A name
	// may have stars as in [path.Match], behind a dot that is not its first character: "mise.*.toml".
	Pattern string
	Means   string
}

// Rules are the rules for all files of which a change is reported.
func Rules(yield func(Rule) bool) {
	for _, line := range table {
		for _, patterns := range []string{line.held, line.told} {
			for pattern := range strings.FieldsSeq(patterns) {
				if !yield(Rule{pattern, line.means}) {
					return
				}
			}
		}
	}
}

// Held returns the files and folders at a project's root that tools of the host execute, or obey, without
// being asked.
func Held() []string {
	names := []string{".direnv"}
	for _, line := range table {
		for _, pattern := range strings.Fields(line.held) {
			names = append(names, strings.TrimSuffix(pattern, "/**"))
		}
	}
	return names
}

// rule is one pattern, taken apart.
type rule struct {
	above string // the folders that it names: "dir/"; empty: it is the same in any
	name  string // what the last name matches
	about kind
	means string
}

// kind is what a rule is about: the name itself, all below it, or the name if it is a link in the place of a folder
// that another rule expects.
type kind int

const (
	itself kind = iota
	below
	asLink
)

// rules are the rules of the table: by the last name in their patterns, or, for one with stars, by its stem. So a name
// is compared with few of them.
var rules = sync.OnceValues(func() (byName, byStem map[string][]rule) {
	byName, byStem = make(map[string][]rule, 200), map[string][]rule{}
	add := func(pattern string, about kind, means string) {
		_, name := split(pattern)
		r := rule{strings.TrimSuffix(pattern, name), name, about, means}
		if strings.Contains(name, "*") {
			byStem[stem(name)] = append(byStem[stem(name)], r)
		} else {
			byName[name] = append(byName[name], r)
		}
	}
	for r := range Rules {
		pattern, all := strings.CutSuffix(r.Pattern, "/**")
		if all {
			add(pattern, below, r.Means)
			add(pattern, asLink, r.Means)
		} else {
			add(pattern, itself, r.Means)
		}
	}
	throughLinks := func(r Rule) bool {
		for outer, _ := split(strings.TrimSuffix(r.Pattern, "/**")); outer != "."; outer, _ = split(outer) {
			add(outer, asLink, r.Means)
		}
		return true
	}
	Rules(throughLinks)
	for _, r := range Units {
		throughLinks(r)
	}
	return byName, byStem
})

// stem returns the part of a name before its first dot, not counting one that the name begins with; empty: there is no
// such dot, or more before it than in any name of the table.
func stem(name string) string {
	const longest = 20
	if name == "" {
		return ""
	}
	return name[:strings.IndexByte(name[1:min(len(name), longest)], '.')+1]
}

// In returns a function that reports whether the table has a rule for a name in folder. dir says that the name is a
// folder's. Any other counts also where the table expects a folder: it may be a link to one.
func In(folder string) func(name string, dir bool) bool {
	if above(folder) != "" {
		return func(string, bool) bool { return true }
	}
	return func(name string, dir bool) bool {
		return find(folder, name, itself, !dir) != ""
	}
}

// settings are patterns of names that say by their form that some tool obeys the file, in small letters.
var settings = strings.Fields(".* config config.* *.config *.config.* *config.json conf.* *.conf *.conf.* *.cfg " +
	"*.ini *.toml *.properties settings.* *.settings *.settings.* override.* *.override *.override.* *.local " +
	"*.local.* *rc *rc.js *rc.cjs *rc.mjs *rc.ts *rc.json *rc.yaml *rc.yml *rc.toml")

// IsSetting reports whether a name at a project's root is, by its form alone, that of a file that some tool obeys. The
// table has those of which it is known which tool that is.
func IsSetting(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(settings, func(pattern string) bool {
		matched, _ := path.Match(pattern, name)
		return matched
	})
}

// MeansLink says what a link means at a path where tools look for a folder; it is empty if they look for none.
func MeansLink(rel string) string {
	folder, name := split(rel)
	return find(folder, name, asLink, false)
}

// Means says what a change of the file at a path means; it is empty if the path is not in the table.
func Means(rel string) string {
	folder, name := split(rel)
	return cmp.Or(above(folder), find(folder, name, itself, false))
}

// Ordinary reports whether a change that means this is part of a usual day's work: it is one of a file that is run only
// when somebody builds, installs, tests or evaluates. What means has after a semicolon does not count.
func Ordinary(means string) bool {
	means, _, _ = strings.Cut(means, ";")
	return slices.Contains([]string{onInst, onBuild, onTest, onNix, onTool, onCargo, onPackage, onCompose}, means)
}

// above returns what the table says of all files below a folder, by the name of the folder or of one above it.
func above(folder string) string {
	for folder != "." {
		outer, name := split(folder)
		if means := find(outer, name, below, false); means != "" {
			return means
		}
		folder = outer
	}
	return ""
}

// split returns the folder and the name of a clean path. The functions of package path clean a path each time, which
// takes seconds in a deep tree.
func split(rel string) (folder, name string) {
	if at := strings.LastIndexByte(rel, '/'); at >= 0 {
		return rel[:at], rel[at+1:]
	}
	return ".", rel
}

// find returns what the table says of a name in a folder; if links is true, also what it says of the name as a link.
func find(folder, name string, about kind, links bool) string {
	byName, byStem := rules()
	for _, r := range byName[name] {
		if (r.about == about || links && r.about == asLink) && r.in(folder) {
			return r.means
		}
	}
	for _, r := range byStem[stem(name)] {
		if matched, _ := path.Match(r.name, name); matched && r.about == about && r.in(folder) {
			return r.means
		}
	}
	return ""
}

// in reports whether a rule holds in a folder.
func (r rule) in(folder string) bool {
	rest, ends := strings.CutSuffix(folder+"/", r.above)
	return r.above == "" || ends && (rest == "" || rest[len(rest)-1] == '/')
}

const (
	onPush  = "your forge runs it when you push"
	onInst  = "your package manager runs what it names when you install"
	onBuild = "your build runs it"
	onTest  = "your test run executes it"
	onOpen  = "your editor may run it when you open the folder"
	onEnter = "your shell runs it when you enter the folder"
	onHooks = "git runs it when you commit, once the hooks are installed"
	onAgent = "your own agent obeys it outside the sandbox"
	onNix   = "Nix evaluates it, and `nix develop` and direnv's `use flake` run it"
	onTool  = "your tools run what it names"

	onCargo   = "cargo runs it when you build"
	onPackage = "npm runs its scripts when you install or build"
	onCompose = "docker runs what it names, with the mounts it names"

	onToolchain = "cargo and rustc are those of the toolchain that it names, by its path, too"
	onVersion   = "your version manager runs what it names; asdf by its path, too"
	onPython    = "Python runs it when it starts in that folder"
	onStart     = "its interpreter runs it when it starts in that folder"
	onDotenv    = "direnv, Compose, and your programs load the variables in it"
	onFlox      = "flox runs it when you activate its environment"
	onDevbox    = "devbox runs what is in it when you enter its shell, by direnv, too"
	onFossil    = "a Fossil checkout: fossil obeys the repository that it names"
)

// table has the patterns by what they mean. Those in held are read-only, too, if they lie at a project's root, because
// tools run them without asking. What a person must name or start first, as a *.code-workspace, is not in it.
var table = []struct{ means, held, told string }{
	{"direnv runs it when you enter the folder, once you allow it", ".envrc", ""},
	{"direnv runs it when you enter the folder", ".envrc.local", ""},
	{onDotenv, "", ".env .env.*"},
	{
		onEnter, ".tool-versions mise.toml .mise.toml .mise/config.toml .config/mise.toml mise/config.toml " +
			".config/mise/config.toml .mise/conf.d/** mise/conf.d/** .config/mise/conf.d/** .bashrc .profile .zshrc",
		"mise.*.toml .mise.*.toml .mise/config.*.toml .config/mise.*.toml mise/config.*.toml " +
			".rvmrc .autoenv .autoenv.zsh .zshenv .zprofile .bash_profile .bash_login",
	},
	{onToolchain, "rust-toolchain rust-toolchain.toml", ""},
	{"shadowenv runs it when you enter the folder, once you trust that", ".shadowenv.d/**", ""},
	{
		onVersion, ".sdkmanrc .prototools",
		".ruby-version .node-version .nvmrc .python-version .java-version .go-version .terraform-version",
	},
	{"dotnet runs the SDK that it names", "", "global.json"},
	{onFlox, "", ".flox/env/manifest.toml .flox/env/manifest.lock"},
	{
		onOpen, ".vscode/** .idea/** .zed/** .cursor/** .devcontainer/** .vimrc _vimrc .nvimrc .nvim.lua .exrc " +
			".lvimrc .dir-locals.el .helix/** .vim/coc-settings.json",
		".run/** .devcontainer.json .lazy.lua .dir-locals-2.el .luarc.json .luarc.jsonc hie.yaml .yarn/sdks/**",
	},
	{
		onAgent, ".mcp.json CLAUDE.md AGENTS.md .claude/settings.json .claude/settings.local.json .claude/hooks/** " +
			".claude/commands/** .claude/agents/** .claude/skills/** .claude/workflows/** .claude/routines/** " +
			".claude/scheduled_tasks.json",
		"CLAUDE.local.md GEMINI.md .claude/rules/** .claude/output-styles/** .claude/loop.md .claude/launch.json " +
			".claude/RESUME.md .claude/agent-memory/** .claude/agent-memory-local/** .gemini/** .codex/** " +
			"opencode.json opencode.jsonc .opencode/opencode.json .opencode/opencode.jsonc .opencode/plugin/** " +
			".opencode/plugins/** .opencode/tool/** .opencode/tools/** .opencode/agent/** .opencode/agents/** " +
			".opencode/command/** .opencode/commands/** .opencode/skill/** .opencode/skills/** " +
			".agents/skills/** .aider.conf.yml .cursorrules .qwen/** .crush.json crush.json .roo/** .kilocode/** " +
			".kiro/** .amazonq/** .factory/** .continue/** .junie/** .windsurf/** .windsurfrules .clinerules " +
			".clinerules/** .goosehints",
	},
	{"claudebox obeys it at the next launch, once you allow it", ".claudebox.yaml .claudebox.yml", ""},
	{
		"claudebox obeys tools.txt in it once you allow it, and does not start beside what looks like a profile",
		".claudebox/**", "",
	},
	{"claudebox does not start beside it, as it looks like a profile", "", ".claudebox.* claudebox.yaml claudebox.yml"},

	{"git fetches and checks out what it names", ".gitmodules", ""},
	{"git runs the filters that it names", "", ".gitattributes"},
	{"git-lfs obeys it", "", ".lfsconfig"},
	{
		onHooks, ".husky/** .pre-commit-config.yaml lefthook.yml",
		"lefthook.* .lefthook.* lefthook-local.* .lefthook-local.* prek.toml .lintstagedrc .lintstagedrc.* " +
			"lint-staged.config.*",
	},
	{"git blame obeys it", ".git-blame-ignore-revs", ""},
	{"what you encrypt is for those whom it names", "", ".sops.yaml .gpg-id secrets.nix"},
	{"lazygit runs what it names", "", ".lazygit.yml"},
	{"Mercurial runs the hooks in it", ".hg/hgrc", ".hg/hgrc-not-shared"},
	{"Mercurial takes its configuration from where it leads", "", ".hg/sharedpath"},
	{"a Mercurial repository: hg runs the hooks that its configuration names", "", ".hg"},
	{"jj runs what it names", ".jj/repo/config.toml", ".jj/workspace-config.toml"},
	{"jj takes its configuration from where it leads", "", ".jj/repo"},
	{"jj has git run in the repository where it leads", "", ".jj/repo/store/git_target"},
	{"a jj repository: jj runs what its configuration names", "", ".jj"},
	{"Sapling runs the hooks in it", ".sl/config", ""},
	{"Sapling takes its configuration from where it leads", "", ".sl/sharedpath"},
	{"a Sapling repository: sl runs the hooks that its configuration names", "", ".sl"},
	{"a Bazaar or Breezy repository: bzr obeys its configuration", "", ".bzr"},
	{"a Pijul repository: pijul runs the hooks that its configuration names", "", ".pijul"},
	{onFossil, "", ".fslckout _FOSSIL_"},
	{"darcs runs the hooks in it", "", "_darcs/prefs/defaults"},
	{"repo runs it, or checks out what it names", "", ".repo/repo/** .repo/manifest.xml"},

	{
		onPush, "", ".github/workflows/** .github/actions/** .gitlab-ci.yml .forgejo/workflows/** " +
			".gitea/workflows/** .woodpecker/** .woodpecker.yml .circleci/** .travis.yml Jenkinsfile " +
			"azure-pipelines.yml",
	},
	{onAgent, "", ".github/copilot-instructions.md"},
	{onPackage, "", "package.json"},
	{
		onInst, "", ".npmrc .yarnrc .yarnrc.yml .yarn/releases/** .yarn/plugins/** .pnpmfile.cjs bunfig.toml Gemfile " +
			"setup.py setup.cfg pyproject.toml .bundle/config .pnp.cjs .pnp.loader.mjs pip.conf composer.json mix.exs",
	},
	{
		onBuild, "", "Makefile makefile GNUmakefile justfile .justfile Justfile Taskfile.yml Rakefile CMakeLists.txt " +
			"meson.build Cargo.toml build.zig build.gradle build.gradle.kts settings.gradle settings.gradle.kts " +
			"gradlew gradle/wrapper/** mvnw pom.xml .mvn/** build.sbt BUILD.bazel .bazelrc tools/bazel " +
			"Dockerfile SConstruct wscript build.xml configure Directory.Build.props Directory.Build.targets",
	},
	{onCargo, "", "build.rs"},
	{"cargo runs what it names", "", ".cargo/config.toml .cargo/config"},
	{onCompose, "", "compose.yaml docker-compose.yml docker-compose.yaml"},
	{
		onTool, "", "Procfile ansible.cfg eslint.config.* .eslintrc.* .prettierrc.* prettier.config.* .pylintrc " +
			"pylintrc mypy.ini .mypy.ini .flake8",
	},
	{
		onNix, "devenv.nix .nix/**",
		"flake.nix shell.nix default.nix devshell.toml devenv.yaml devenv.local.nix devenv.local.yaml",
	},
	{"it says what Nix fetches and runs", "", "flake.lock devenv.lock npins/sources.json nix/sources.json lon.lock"},
	{"devbox runs what it names when you enter its shell", "", "devbox.json"},
	{"vagrant runs it", "", "Vagrantfile"},
	{"tilt runs it", "", "Tiltfile"},
	{onTest, "", "conftest.py tox.ini noxfile.py pytest.ini"},
	{onPython, "", "sitecustomize.py usercustomize.py"},
	{onStart, "", ".Rprofile .Renviron .ghci .irbrc .pryrc .ocamlinit"},
	{"your shell runs it when you activate the environment", "", "venv/bin/activate"},
}

// Units are places whose changes are reported as one, because nobody reads what is in them. Their patterns are paths
// from the project's root; most lie in folders that no walk enters.
var Units = []Rule{
	{"node_modules/.bin", "npx and package scripts run what is in it"},
	{".venv/bin", "your shell runs what is in it when you activate the environment"},
	{".venv/pyvenv.cfg", "Python of that environment obeys it"},
	{"venv/bin", "your shell runs what is in it when you activate the environment"},
	{"venv/pyvenv.cfg", "Python of that environment obeys it"},
	{".direnv", "direnv runs what is in it"},
	{".devenv/nix-eval-cache.db", "devenv takes the environment from it when you enter its shell, by direnv, too"},
	{".devenv/state/venv/bin", "devenv's shell runs what is in it"},
	{".devbox", onDevbox},
	{".devbox/nix/profile", onDevbox},
	{".devbox/gen/scripts", onDevbox},
	{".flox/run", onFlox},
	{".pixi/envs/default/bin", "pixi's shell runs what is in it"},
}

// filling are folders that tools fill: what is in them is not the user's work, unless git has some of it.
var filling = []string{"node_modules", "target", ".direnv", ".venv"}

// Filling returns the names of folders that tools fill.
func Filling() []string { return slices.Clone(filling) }

// IsFilled reports whether a path is that of such a folder, or lies in one.
func IsFilled(rel string) bool {
	is := func(name string) bool { return slices.Contains(filling, name) }
	return slices.ContainsFunc(strings.Split(rel, "/"), is)
}

// unasked are patterns, as in [Rule] and in small letters, of names at any depth that tools obey as soon as somebody
// stands in the folder, or has it open in an editor, without asking. What asks first, or waits for a person who builds,
// installs or starts something, is not in it.
var unasked = append(strings.Fields(".git .hg .sl .jj .bzr .pijul .fslckout _fossil_ "+
	".vscode .cursor .idea .zed .helix .vim/coc-settings.json .lazy.lua .lvimrc .vimrc _vimrc .exrc "+
	".dir-locals.el .dir-locals-2.el "+
	".claude/settings.json .claude/settings.local.json .claude/hooks .claude/scheduled_tasks.json "+
	"rust-toolchain rust-toolchain.toml .envrc.local .direnv .autoenv .autoenv.zsh .rvmrc .shadowenv.d "+
	".tool-versions mise.toml mise.*.toml .mise.toml .mise.*.toml .mise/config.toml .mise/config.*.toml "+
	".config/mise.toml .config/mise.*.toml mise/config.toml mise/config.*.toml "+
	".sdkmanrc .prototools .node-version .nvmrc .python-version .ruby-version .java-version .go-version"),
	ofRepositories...)

// unaskedAll are such patterns of all names in a folder.
var unaskedAll = strings.Fields("mise/conf.d/* .mise/conf.d/* .shadowenv.d/*")

// ofRepositories are files by which version control programs other than git run something, in any repository.
var ofRepositories = strings.Fields(
	".hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .hg/requires .sl/config .sl/sharedpath .sl/requires " +
		".jj/repo/config.toml .jj/workspace-config.toml")

// OfRepository reports whether a version control program other than git obeys what lies at a path.
func OfRepository(rel string) bool { return isAny(ofRepositories, rel) }

// Unasked reports whether tools of the host obey what lies at a path without asking.
func Unasked(rel string) bool {
	_, name := split(rel)
	mayBe := name != "" && strings.ContainsAny(name[:1], "._cmhrswCMHRSW") // asked of all names in git
	return mayBe && isAny(unasked, rel) || isAny(unaskedAll, rel)
}

// UnaskedLink reports whether a link at a path leads tools to what they obey without asking: it is in the place of a
// folder that has such files.
func UnaskedLink(rel string) bool { return isAny(parents(), rel) }

// parents are the folders in the patterns of [unasked] and [unaskedAll].
var parents = sync.OnceValue(func() (list []string) {
	for _, pattern := range slices.Concat(unasked, unaskedAll) {
		for outer, _ := split(pattern); outer != "."; outer, _ = split(outer) {
			list = append(list, outer)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
})

// isAny reports whether one of some patterns in small letters matches a path, in any folder. Some file systems take
// capitals for the same letters.
func isAny(patterns []string, rel string) bool {
	lower := strings.ToLower(rel)
	folder, name := split(lower)
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		above, last := split(pattern)
		if above != "." && folder != above && !strings.HasSuffix(folder, "/"+above) {
			return false
		}
		matched, _ := path.Match(last, name)
		return matched
	})
}
