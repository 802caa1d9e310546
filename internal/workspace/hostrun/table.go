package hostrun

// Rule says what a change in certain files means.
type Rule struct {
	// Pattern is a name, at any depth; "dir/name", where such a folder holds
	// such a file; or "dir/**", all below such a folder.
	Pattern string
	Means   string
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
	onNix   = "Nix evaluates it, and `nix develop` runs it"
	onTool  = "your tools run what it names"

	onCargo   = "cargo runs it when you build"
	onPackage = "npm runs its scripts when you install or build"
	onCompose = "docker runs what it names, with the mounts it names"
)

// Rules are the files that are told of when a session changed them.
var Rules = [...]Rule{
	{".envrc", "direnv runs it when you enter the folder, once you allow it"},
	{".envrc.local", "direnv runs it when you enter the folder"},
	{".tool-versions", onEnter},
	{"mise.toml", onEnter},
	{".mise/config.toml", onEnter},
	{"rust-toolchain", "cargo fetches and runs the toolchain that it names"},
	{"rust-toolchain.toml", "cargo fetches and runs the toolchain that it names"},
	{".mise.toml", onEnter},
	{"mise.local.toml", onEnter},
	{".mise.local.toml", onEnter},
	{".mise/config.local.toml", onEnter},
	{".config/mise.toml", onEnter},
	{".config/mise/config.toml", onEnter},
	{".bashrc", onEnter},
	{".profile", onEnter},
	{".zshrc", onEnter},

	{".vscode/**", onOpen},
	{".idea/**", onOpen},
	{".zed/**", onOpen},
	{".cursor/**", onOpen},
	{".run/**", onOpen},
	{".devcontainer/**", onOpen},
	{".devcontainer.json", onOpen},
	{".vimrc", onOpen},
	{".nvimrc", onOpen},
	{".nvim.lua", onOpen},
	{".exrc", onOpen},
	{".lvimrc", onOpen},
	{".dir-locals.el", onOpen},
	{".lazy.lua", onOpen},
	{".helix/**", onOpen},

	{".mcp.json", onAgent},
	{"CLAUDE.md", onAgent},
	{"AGENTS.md", onAgent},
	{"CLAUDE.local.md", onAgent},
	{"GEMINI.md", onAgent},
	{".claude/rules/**", onAgent},
	{".gemini/**", onAgent},
	{".codex/**", onAgent},
	{"opencode.json", onAgent},
	{".cursorrules", onAgent},
	{".claude/settings.json", onAgent},
	{".claude/settings.local.json", onAgent},
	{".claude/hooks/**", onAgent},
	{".claude/commands/**", onAgent},
	{".claude/agents/**", onAgent},
	{".claude/skills/**", onAgent},
	{".claudebox.yaml", "claudebox obeys it at the next launch, once you allow it"},

	{".gitmodules", "git fetches and checks out what it names"},
	{".gitattributes", "git runs the filters that it names"},
	{".lfsconfig", "git-lfs obeys it"},
	{".husky/**", onHooks},
	{".pre-commit-config.yaml", onHooks},
	{"lefthook.yml", onHooks},
	{".lefthook.yml", onHooks},
	{".git-blame-ignore-revs", "git blame obeys it"},
	{".hg/hgrc", "Mercurial runs the hooks in it"},
	{".hg/hgrc-not-shared", "Mercurial runs the hooks in it"},
	{".hg/sharedpath", "Mercurial takes its configuration from where it leads"},
	{".hg", "a Mercurial repository: hg runs the hooks that its configuration names"},
	{".jj", "a jj repository: jj runs what its configuration names"},
	{".jj/repo", "jj takes its configuration from where it leads"},
	{".jj/repo/config.toml", "jj runs what it names"},
	{".jj/repo/store/git_target", "jj has git run in the repository where it leads"},
	{".jj/workspace-config.toml", "jj runs what it names"},
	{".sl", "a Sapling repository: sl runs the hooks that its configuration names"},
	{".sl/config", "Sapling runs the hooks in it"},
	{".lazygit.yml", "lazygit runs what it names"},
	{".bzr", "a Bazaar or Breezy repository: bzr obeys its configuration"},
	{".pijul", "a Pijul repository: pijul runs the hooks that its configuration names"},
	{".fslckout", "a Fossil checkout: fossil obeys the repository that it names"},
	{"_FOSSIL_", "a Fossil checkout: fossil obeys the repository that it names"},
	{".sl/sharedpath", "Sapling takes its configuration from where it leads"},

	{".github/workflows/**", onPush},
	{".github/actions/**", onPush},
	{".gitlab-ci.yml", onPush},
	{".forgejo/workflows/**", onPush},
	{".gitea/workflows/**", onPush},
	{".woodpecker/**", onPush},
	{".woodpecker.yml", onPush},
	{".circleci/**", onPush},
	{".travis.yml", onPush},
	{"Jenkinsfile", onPush},
	{"azure-pipelines.yml", onPush},

	{"package.json", onPackage},
	{".npmrc", onInst},
	{".yarnrc", onInst},
	{".yarnrc.yml", onInst},
	{".yarn/releases/**", onInst},
	{".yarn/plugins/**", onInst},
	{".pnpmfile.cjs", onInst},
	{"bunfig.toml", onInst},
	{"Gemfile", onInst},
	{"setup.py", onInst},
	{"pyproject.toml", onInst},
	{"pip.conf", onInst},
	{"composer.json", onInst},
	{"mix.exs", onInst},

	{"Makefile", onBuild},
	{"makefile", onBuild},
	{"GNUmakefile", onBuild},
	{"justfile", onBuild},
	{".justfile", onBuild},
	{"Justfile", onBuild},
	{"Taskfile.yml", onBuild},
	{"Rakefile", onBuild},
	{"CMakeLists.txt", onBuild},
	{"meson.build", onBuild},
	{"build.rs", onCargo},
	{"Cargo.toml", onBuild},
	{".cargo/config.toml", "cargo runs what it names"},
	{".cargo/config", "cargo runs what it names"},
	{"build.zig", onBuild},
	{"build.gradle", onBuild},
	{"build.gradle.kts", onBuild},
	{"settings.gradle", onBuild},
	{"settings.gradle.kts", onBuild},
	{"gradlew", onBuild},
	{"gradle/wrapper/**", onBuild},
	{"mvnw", onBuild},
	{"pom.xml", onBuild},
	{".mvn/**", onBuild},
	{"build.sbt", onBuild},
	{"BUILD.bazel", onBuild},
	{".bazelrc", onBuild},
	{"Dockerfile", onBuild},
	{"compose.yaml", onCompose},
	{"docker-compose.yml", onCompose},
	{"docker-compose.yaml", onCompose},
	{"Procfile", onTool},

	{"flake.nix", onNix},
	{"flake.lock", "it says what your flake's inputs are"},
	{"shell.nix", onNix},
	{"default.nix", onNix},
	{"devenv.nix", onNix},
	{"devenv.yaml", onNix},
	{"devbox.json", "devbox runs what it names when you enter its shell"},
	{"Vagrantfile", "vagrant runs it"},
	{"Tiltfile", "tilt runs it"},
	{".nix/**", onNix},

	{"conftest.py", onTest},
	{"sitecustomize.py", "Python runs it when it starts in that folder"},
	{"usercustomize.py", "Python runs it when it starts in that folder"},
	{"tox.ini", onTest},
	{"ansible.cfg", onTool},
	{"eslint.config.js", onTool},
	{"noxfile.py", onTest},
	{"pytest.ini", onTest},
}

// Units are places that are told of as one, because nobody reads what is in
// them. They are relative to the project's root, and most lie in folders that
// no walk enters.
var Units = []Rule{
	{"node_modules/.bin", "npx and package scripts run what is in it"},
	{".venv/bin", "your shell runs what is in it when you activate the environment"},
	{".venv/pyvenv.cfg", "Python of that environment obeys it"},
	{".direnv", "direnv runs what is in it"},
}
