package attack

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var processTries = []try{
	{"environment", "your variables, in the environment of any process", inProc("environ")},
	{"command lines", "what stands on the command line of any process", inProc("cmdline")},
	{"loader variables", "code in every program that starts, by LD_PRELOAD and its like", anySet(loaderVariables...)},
	{"agents of the user", "your keys, by a socket of ssh-agent, gpg-agent or D-Bus", anySet(agentVariables...)},
	{"descriptors", "files that claudebox's caller had open", descriptors},
	{"standard streams", "a folder or device of the host behind standard input, output or error", standardStreams},
	{"processes", "a look at other processes, and signals to them", processes},
	{"capabilities", "rights over the kernel", capabilities},
	{"crashes", "a program that runs as root outside, the host's handler of core files", crashes},
	{"new rights", "root's rights by a setuid program", newRights},
}

var (
	loaderVariables = []string{
		"LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "PERL5OPT",
	}
	agentVariables = []string{
		"SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY", "XAUTHORITY", "DOCKER_HOST",
	}
)

// inProc looks through a file of /proc for each process. It returns the first that has the canary
// outside of the words by which the attacker was told what to look for.
func inProc(file string) func(Targets) string {
	return func(t Targets) string {
		entries, _ := filepath.Glob("/proc/[0-9]*/" + file)
		for _, name := range entries {
			content, err := os.ReadFile(name)
			content = bytes.ReplaceAll(content, []byte(os.Args[1]), nil)
			if err == nil && bytes.Contains(content, []byte(t.Canary)) {
				return name
			}
		}
		return ""
	}
}

func anySet(names ...string) func(Targets) string {
	return func(Targets) string {
		for _, name := range names {
			if os.Getenv(name) != "" {
				return name
			}
		}
		return ""
	}
}

// descriptors looks for an inherited descriptor beside the standard ones. One of Go's
// own is not inherited: it is marked close-on-exec.
func descriptors(Targets) string {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			what, _ := os.Readlink("/proc/self/fd/" + entry.Name())
			return "descriptor " + entry.Name() + " (" + what + ")"
		}
	}
	return ""
}

func standardStreams(Targets) string {
	for fd := range 3 {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			continue
		}
		if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFDIR || kind == unix.S_IFBLK {
			return "descriptor " + strconv.Itoa(fd)
		}
	}
	return ""
}

// processes looks for a process that is not of the sandbox. Of the sandbox are bwrap's two,
// env(1), which they start, and this one.
func processes(Targets) string {
	known := []string{"bwrap", "env", "claudebox", "claudebox-attac", filepath.Base(os.Args[0])}
	entries, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range entries {
		content, err := os.ReadFile(name)
		if comm := strings.TrimSpace(string(content)); err == nil && !slices.Contains(known, comm) {
			return filepath.Dir(name) + " (" + comm + ")"
		}
	}
	return ""
}

func capabilities(Targets) string {
	content, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if strings.HasPrefix(name, "Cap") && strings.Trim(value, "0") != "" {
			return name + " " + value
		}
	}
	return ""
}

// crashes tries to lift the limit by which the kernel starts no handler for a crash: 1 byte, see core(5) and
// fs/coredump.c. Where the user's own hard limit is 0 that limit cannot be had.
func crashes(Targets) string {
	_, most := coreLimits()
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	now, _ := coreLimits()
	handler, _ := os.ReadFile("/proc/sys/kernel/core_pattern")
	isProgram := len(handler) > 0 && (handler[0] == '|' || handler[0] == '@')
	if now == "1" || most == "0" && !isProgram {
		return ""
	}
	return "a limit of " + now + " bytes for core files"
}

// coreLimits are the soft and the hard limit on core files.
func coreLimits() (soft, hard string) {
	content, _ := os.ReadFile("/proc/self/limits")
	_, line, _ := strings.Cut(string(content), "Max core file size")
	if words := strings.Fields(line); len(words) > 1 {
		return words[0], words[1]
	}
	return "unknown", "unknown"
}

func newRights(Targets) string {
	if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && set == 1 {
		return ""
	}
	return "a process that may gain rights"
}
