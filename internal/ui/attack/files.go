package attack

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/profile"
)

var fileTries = []try{
	{name: "secret places", gets: "keys and logins of your home: ~/.ssh, ~/.aws and the like", run: secretPlaces},
	{
		name: "system secrets", gets: "password hashes and keys of this machine",
		run: anyThere("/etc/shadow", "/etc/ssh", "/etc/nix/secret-key", "/run/secrets", "/var/lib/tailscale",
			"/root/.ssh"),
	},
	{name: "other homes", gets: "files of other users", run: otherHomes},
	{
		name: "the host's /tmp", gets: "files and sockets of other programs",
		run: func(t Targets) string { return holds(t.HostFile, t.Canary) },
	},
	{
		name: "sockets of the host", gets: "services that do as they are told: Docker, D-Bus, name services",
		run: sockets,
	},
	{name: "devices", gets: "disks, memory and input of this machine", run: devices},
	{
		name: "/sys", gets: "the machine's hardware and its settings",
		run: anyThere("/sys/class", "/sys/fs", "/sys/kernel"),
	},
	{
		name: "the host's system", gets: "its logs, kernel and packages",
		run: anyThere("/boot", "/lib/modules", "/var/log", "/var/lib", "/srv"),
	},
	{
		name: "settings of the kernel", gets: "a program of the agent's that the kernel runs as root",
		run: func(Targets) string {
			return writable("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
				"/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger")
		},
	},
	{name: "write to /", gets: "files where no folder was given", run: func(Targets) string { return creates("/") }},
	{
		name: "write to /etc", gets: "users and certificates of its own",
		run: func(Targets) string { return creates("/etc") },
	},
	{
		name: "write to the store", gets: "other programs behind the names of pinned ones",
		run: func(Targets) string { return creates(pinned()) },
	},
	{
		name: "write beside the project", gets: "files in your other projects",
		run: func(t Targets) string { return creates(filepath.Dir(t.Project)) },
	},
}

// pinned is a folder of a pinned program. New names in the store are the
// sandbox's own to make.
func pinned() string {
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		return "/nix/store"
	}
	return filepath.Dir(shell)
}

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

// secretPlaces are those that no sandbox may see (SAND-09), below the home.
func secretPlaces(t Targets) string {
	for _, s := range profile.SecretPaths {
		// what is there is claudebox's own
		if rest, below := strings.CutPrefix(s.Path, "~/"); below && rest != ".claude" {
			found, _ := filepath.Glob(filepath.Join(t.Home, rest))
			if len(found) > 0 {
				return found[0]
			}
		}
	}
	return ""
}

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

func holds(name, text string) string {
	content, err := os.ReadFile(name)
	if err == nil && strings.Contains(string(content), text) {
		return name
	}
	return ""
}

// sockets looks for one where programs of a system put theirs. claudebox's own
// lie in a folder of that name.
func sockets(Targets) string {
	found := ""
	for _, root := range []string{"/run", "/var/run", "/tmp"} {
		_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // what cannot be read cannot be connected to either
			}
			if d.IsDir() && d.Name() == "claudebox" {
				return fs.SkipDir
			}
			if kind(name)&fs.ModeSocket != 0 {
				found = name
				return fs.SkipAll
			}
			return nil
		})
	}
	return found
}

// kind is that of what is mounted at a path; its folder's list knows only what
// lies below the mount.
func kind(name string) fs.FileMode {
	info, err := os.Lstat(name)
	if err != nil {
		return 0
	}
	return info.Mode()
}

// harmless are the devices that every program needs.
var harmless = []string{"console", "full", "null", "ptmx", "random", "tty", "urandom", "zero"}

func devices(Targets) string {
	found := ""
	_ = filepath.WalkDir("/dev", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // likewise
		case name == "/dev/pts":
			return fs.SkipDir
		case kind(name)&fs.ModeDevice != 0 && !slices.Contains(harmless, d.Name()):
			found = name
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// writable names the first file that opens for writing. Nothing is written.
func writable(names ...string) string {
	for _, name := range names {
		if file, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil {
			file.Close()
			return name
		}
	}
	return ""
}

// creates makes a file in a folder, and takes it away again.
func creates(folder string) string {
	file, err := os.CreateTemp(folder, ".claudebox-attack-")
	if err != nil {
		return ""
	}
	file.Close()
	os.Remove(file.Name())
	return folder
}

var projectTries = []try{
	{
		name: "covered secrets", gets: "what stands in .env and other secret files of the project",
		run: func(t Targets) string { return holds(filepath.Join(t.Project, ".env"), t.Canary) },
	},
	{name: "git's configuration", gets: "a program of the agent's that your own git runs", run: func(t Targets) string {
		return writable(filepath.Join(t.Project, ".git/config"))
	}},
	{
		name: "git's hooks", gets: "the same, by a hook",
		run: func(t Targets) string { return creates(filepath.Join(t.Project, ".git/hooks")) },
	},
	{name: "another git folder", gets: "the same, by another folder in the place of .git", run: func(t Targets) string {
		git := filepath.Join(t.Project, ".git")
		if os.Rename(git, git+"-claudebox-attack") != nil {
			return ""
		}
		_ = os.Rename(git+"-claudebox-attack", git)
		return "the project without its .git"
	}},
	{
		name: "files the host runs",
		gets: "a program of the agent's that direnv, an editor or Claude Code runs outside",
		run: func(t Targets) string {
			return writable(filepath.Join(t.Project, ".envrc"), filepath.Join(t.Project, ".mcp.json"))
		},
	},
}
