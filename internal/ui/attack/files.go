package attack

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"claudebox/internal/profile"
)

var fileTries = []try{
	{"secret places", "keys and logins of your home: ~/.ssh, ~/.aws and the like", secretPlaces},
	{"system secrets", "password hashes and keys of this machine", anyThere(systemSecrets...)},
	{"other homes", "files of other users", otherHomes},
	{"the host's /tmp", "files and sockets of other programs", func(t Targets) string {
		return t.ifStolen(t.HostFile)
	}},
	{"sockets of the host", "services that do as they are told: Docker, D-Bus, name services", sockets},
	{"devices", "disks, memory and input of this machine", devices},
	{"/sys", "the machine's hardware and its settings", anyThere("/sys/class", "/sys/fs", "/sys/kernel")},
	{"the host's system", "its logs, kernel and packages", anyThere(systemFolders...)},
	{"settings of the kernel", "a program of the agent's that the kernel runs as root", writable(kernelSettings...)},
	{"write to /", "files where no folder was given", creates("/")},
	{"write to /etc", "users and certificates that the agent adds", creates("/etc")},
	{"write to the store", "programs of the agent's in place of pinned ones", createsInPackage},
	{"write beside the project", "files in your other projects", creates("..")},
}

var projectTries = []try{
	{"covered secrets", "what stands in .env and other secret files of the project", func(t Targets) string {
		return t.ifStolen(t.at(".env"))
	}},
	{"your git folder", "a program of the agent's that your own git runs", sameGit},
	{"another git folder", "a program that your own git runs, from a folder in the place of .git", anotherGit},
	{
		"files the host runs", "a program of the agent's that direnv, an editor or Claude Code runs outside",
		writable(".envrc", ".mcp.json"),
	},
}

var (
	systemSecrets = []string{
		"/etc/shadow", "/etc/ssh", "/etc/nix/secret-key", "/run/secrets", "/var/lib/tailscale", "/root/.ssh",
	}
	systemFolders  = []string{"/boot", "/lib/modules", "/var/log", "/var/lib", "/srv"}
	kernelSettings = []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/fs/binfmt_misc/register",
		"/proc/sysrq-trigger",
	}
)

// at returns an absolute name as it is, and any other below the project.
func (t Targets) at(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(t.Project, name)
}

// createsInPackage tries to make a file in a package of the store, that of /bin/sh. The store itself is tried only if
// there is no /bin/sh: elsewhere new names there do not count, as the sandbox's own store may take them.
func createsInPackage(t Targets) string {
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		return creates("/nix/store")(t)
	}
	return creates(filepath.Dir(shell))(t)
}

// anyThere returns an attack that gets the first of the names that exists.
func anyThere(names ...string) func(Targets) string {
	return func(Targets) string {
		for _, name := range names {
			if _, err := os.Stat(name); err == nil {
				return name
			}
		}
		return ""
	}
}

// secretPlaces looks for what [profile.SecretPaths] lists below the home, but for ~/.claude and logins of other agents:
// inside, these are the instance's own.
func secretPlaces(t Targets) string {
	for _, s := range profile.SecretPaths {
		if rest, below := strings.CutPrefix(s.Path, "~/"); below && rest != ".claude" && s.What != profile.OfAgent {
			found, _ := filepath.Glob(filepath.Join(t.Home, rest))
			if len(found) > 0 {
				return found[0]
			}
		}
	}
	return ""
}

// otherHomes returns a home folder with something in it. The user's own does not count, nor a folder around it or
// around the project, which the mounts bring along.
func otherHomes(t Targets) string {
	found, _ := filepath.Glob("/home/*")
	for _, name := range append(found, "/root") {
		if entries, err := os.ReadDir(name); err == nil && len(entries) > 0 && name != t.Home &&
			!strings.HasPrefix(t.Home, name+"/") &&
			!strings.HasPrefix(t.Project, name+"/") {
			return name
		}
	}
	return ""
}

// ifStolen returns name if that file can be read and holds the canary, else "".
func (t Targets) ifStolen(name string) string {
	content, err := os.ReadFile(name)
	if err == nil && strings.Contains(string(content), t.Canary) {
		return name
	}
	return ""
}

// sockets looks for a socket where programs of the system put theirs. It skips folders called claudebox, which hold
// the sandbox's own sockets.
func sockets(Targets) string {
	isSocket := func(kind fs.FileMode, _ string) bool { return kind&fs.ModeSocket != 0 }
	return cmp.Or(find("/run", "claudebox", isSocket), find("/var/run", "claudebox", isSocket),
		find("/tmp", "claudebox", isSocket))
}

// harmless are the devices that every program needs.
var harmless = []string{"console", "full", "null", "ptmx", "random", "tty", "urandom", "zero"}

func devices(Targets) string {
	return find("/dev", "pts", func(kind fs.FileMode, name string) bool {
		return kind&fs.ModeDevice != 0 && !slices.Contains(harmless, name)
	})
}

// find returns the first file below root whose kind and name are wanted; empty: there is none.
// It passes over folders called passed, and what cannot be read: that cannot be used either.
func find(root, passed string, wanted func(kind fs.FileMode, name string) bool) (found string) {
	_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		if d.IsDir() && d.Name() == passed {
			return fs.SkipDir
		}
		// Not d.Type(): for a mount point readdir(3) returns the type of the file that the mount covers.
		if info, err := os.Lstat(name); err == nil && wanted(info.Mode(), d.Name()) {
			found = name
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// writable returns an attack that gets the first file that can be opened for writing. Nothing is written.
func writable(names ...string) func(Targets) string {
	return func(t Targets) string {
		for _, name := range names {
			if file, err := os.OpenFile(t.at(name), os.O_WRONLY, 0); err == nil {
				file.Close()
				return t.at(name)
			}
		}
		return ""
	}
}

// creates returns an attack that gets the folder if a file can be made in it. The file is removed again.
func creates(folder string) func(Targets) string {
	return func(t Targets) string {
		file, err := os.CreateTemp(t.at(folder), ".claudebox-attack-")
		if err != nil {
			return ""
		}
		file.Close()
		os.Remove(file.Name())
		return t.at(folder)
	}
}

// sameGit looks whether the project's git folder is the user's.
func sameGit(t Targets) string {
	if at := t.at(".git"); FileID(at) == t.GitFolder {
		return at
	}
	return ""
}

// FileID tells a file from others on this machine; empty: there is none.
func FileID(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	return fmt.Sprint(st.Dev, ":", st.Ino)
}

// anotherGit tries to move .git away, so that another folder could take its place.
func anotherGit(t Targets) string {
	git := t.at(".git")
	if os.Rename(git, git+"-claudebox-attack") != nil {
		return ""
	}
	_ = os.Rename(git+"-claudebox-attack", git)
	return git + ", renamed"
}
