package devshell

import (
	"maps"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
)

// refused are patterns of variables that a dev shell does not bring in: a strange repository may bring tools, and may
// not lead the agent, git or Nix elsewhere. Beside them stands whatever the launch itself has set, and the names of the
// agents, see [Request.Refused].
var refused = []string{
	// who and where the user is
	"HOME", "USER", "LOGNAME", "SHELL", "SHLVL", "PWD", "OLDPWD", "TERM*", "COLORTERM", "TMP*", "TEMP*", "XDG_*_HOME",
	"XDG_RUNTIME_DIR", "XDG_CONFIG_DIRS", "CLAUDEBOX*",
	// what Nix itself obeys, and leaves behind in a build
	"NIX_BUILD_*", "NIX_ENFORCE_*", "NIX_LOG_*", "NIX_STORE*", "NIX_STATE_DIR", "NIX_REMOTE*", "NIX_CONF*",
	"NIX_USER_CONF_FILES", "NIX_PATH", "NIX_SSL_CERT_FILE", "NIX_DAEMON*", "NIX_LD", "NIX_LD_*", "NIX_PROFILES",
	// where requests go, and whom they trust
	"*_PROXY", "*_proxy", "SSL_CERT_*", "*_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "NODE_TLS_*", "AWS_ENDPOINT_URL*",
	"RES_OPTIONS", "LOCALDOMAIN", "HOSTALIASES", "OTEL_*",
	// what makes programs run other code
	"LD_*", "GCONV_PATH", "GLIBC_TUNABLES", "NODE_OPTIONS", "NODE_REPL_*", "BUN_*", "BASH*", "ENV", "SHELLOPTS",
	"PROMPT_COMMAND", "PS4", "IFS", "CDPATH", "GLOBIGNORE", "ZDOTDIR",
	// git, ssh, and sockets
	"GIT_*", "SSH_*", "GPG_*", "DBUS_*", "DISPLAY", "WAYLAND_DISPLAY",
}

// ofBuild are names that are those of a build alone, and of bash: nothing is said of them.
var ofBuild = []string{
	"_", "BASH*", "CONFIG_SHELL", "DETERMINISTIC_BUILD", "EUID", "GROUPS", "HOME", "HOSTTYPE", "IFS", "LINENO",
	"MACHTYPE", "NIX_BUILD_CORES", "NIX_BUILD_TOP", "NIX_ENFORCE_PURITY", "NIX_LOG_FD", "NIX_STORE", "OLDPWD",
	"OPTERR", "OPTIND", "OSTYPE", "PPID", "PS1", "PS4", "PWD", "PYTHONHASHSEED", "PYTHONNOUSERSITE", "SHELL",
	"SHELLOPTS", "SHLVL", "SOURCE_DATE_EPOCH", "SSL_CERT_FILE", "TEMP", "TEMPDIR", "TERM", "TMP", "TMPDIR", "TZ",
	"UID", "XDG_DATA_DIRS", "__structuredAttrs", "args", "buildInputs", "buildPhase", "builder", "checkPhase",
	"cmakeFlags", "configureFlags", "configurePhase", "deps*Build*", "depsHost*", "depsTarget*", "doCheck",
	"doInstallCheck", "dontAdd*", "enableParallel*", "installPhase", "mesonFlags", "name", "nativeBuildInputs",
	"out", "outputs", "passAsFile", "patches", "phases", "preferLocalBuild", "propagated*", "shellHook", "stdenv",
	"strictDeps", "system", "unpackPhase",
}

// matches reports whether a name is one of the patterns.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		is, err := path.Match(pattern, name)
		return is && err == nil
	})
}

// environment is a set of variables: name → value.
type environment map[string]string

// environmentOf reads the form of os.Environ.
func environmentOf(list []string) environment {
	env := environment{}
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}

// list returns the form that execve takes, sorted.
func (e environment) list() []string {
	list := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		list = append(list, name+"="+e[name])
	}
	return list
}

// merge adds to an environment what a dev shell, or its hook, has in its own: tools and variables, and nothing that the
// launch has set or that is refused, unless a pattern of vars takes it in. It returns which variables came, and which
// did not.
func merge(r Request, launch, so, shell environment) (made environment, came, left []string) {
	made = maps.Clone(so)
	for _, name := range slices.Sorted(maps.Keys(shell)) {
		value := shell[name]
		was, set := so[name]
		_, ours := launch[name]
		switch {
		case !diag.IsVariable(name) || name == "PATH" || set && was == value:
		case matches(r.Vars, name):
			made[name] = value
			came = append(came, name)
		case name == "XDG_DATA_DIRS":
			made[name] = joined(value, was)
		case matches(ofBuild, name):
		case ours, matches(refused, name), matches(r.Refused, name):
			left = append(left, name)
		default:
			made[name] = value
			came = append(came, name)
		}
	}
	made["PATH"] = searchPath(so["PATH"], shell["PATH"], r.Packages)
	return made, came, left
}

// searchPath puts the folders of a dev shell behind the first of the launch's own, which are those of the profile's
// packages. None of the launch's is lost, whatever the shell has done to its own.
func searchPath(launch, shell string, packages int) string {
	ours := strings.Split(launch, ":")
	packages = min(packages, len(ours))
	var theirs []string
	for dir := range strings.SplitSeq(shell, ":") {
		if path.IsAbs(dir) && !slices.Contains(ours, dir) && !slices.Contains(theirs, dir) {
			theirs = append(theirs, dir)
		}
	}
	return strings.Join(slices.Concat(ours[:packages], theirs, ours[packages:]), ":")
}

func joined(lists ...string) string {
	return strings.Join(slices.DeleteFunc(lists, func(list string) bool { return list == "" }), ":")
}
