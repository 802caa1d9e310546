package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// OwnBwrap is the remedy for an unsuitable bwrap: claudebox's own one is pinned, so
// only a changed manifest or plan can name another.
const OwnBwrap = "use the claudebox that its flake builds, which pins a bwrap that suits"

// CheckBwrap returns an error if the bwrap at path cannot be started or is unsafe, as
// far as one stat(2) shows. It costs every launch a few microseconds.
func CheckBwrap(path string) error {
	op := "start bwrap " + path
	if path == "" {
		return diag.Errorf("start bwrap", OwnBwrap, "the plan names none")
	}
	var st unix.Stat_t
	switch err := unix.Stat(path, &st); {
	case errors.Is(err, unix.ENOENT):
		return &diag.Error{Op: op, Err: err, Remedy: fetchRemedy(path)}
	case err != nil:
		return &diag.Error{Op: op, Err: err, Remedy: OwnBwrap}
	case st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0:
		return diag.Errorf(op, OwnBwrap+"; or run `sudo chmod ug-s "+path+"`",
			"it is setuid: a fault in it would give away more than this user's rights (CVE-2026-41163)")
	case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0:
		return diag.Errorf(op, OwnBwrap, "it is not a program")
	}
	return nil
}

// fetchRemedy returns the remedy for a bwrap that does not exist: to fetch its store path, if it has one.
func fetchRemedy(path string) string {
	const store = "/nix/store/"
	rest, ok := strings.CutPrefix(path, store)
	if !ok {
		return OwnBwrap
	}
	name, _, _ := strings.Cut(rest, "/")
	return "fetch it with `nix-store --realise " + store + name + "`, or " + diag.Reinstall
}

// Bwrap has the version and missing options of a bwrap, see [AskBwrap].
type Bwrap struct {
	Version string   // "0.12.0"
	Lacks   []string // options that launches use but this bwrap does not have
}

// OldestBwrap is the oldest version that can be used: older ones cannot forbid nested
// user namespaces. SafeBwrap is the first version that does not create mount points
// through planted links (CVE-2026-87766); with older ones a launch protects itself.
const (
	OldestBwrap = "0.8"
	SafeBwrap   = "0.12"
)

// probeWait bounds a program that ought to answer at once.
const probeWait = 10 * time.Second

// AskBwrap runs a bwrap to get its version and options. The options are read from its
// help text, as distributions backport newer ones to older versions.
func AskBwrap(path string) (Bwrap, error) {
	version, err := output(path, "--version")
	if err != nil {
		return Bwrap{}, err
	}
	help, err := output(path, "--help")
	if err != nil {
		return Bwrap{}, err
	}
	var b Bwrap
	if _, number, ok := strings.Cut(strings.TrimSpace(version), " "); ok {
		b.Version = number
	}
	known := strings.Fields(help)
	for _, option := range options {
		if !slices.Contains(known, option) {
			b.Lacks = append(b.Lacks, option)
		}
	}
	return b, nil
}

func output(path, option string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, option)
	cmd.Env = []string{}
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", &diag.Error{Op: "run " + path + " " + option, Err: failure(err, text), Remedy: OwnBwrap}
	}
	return string(text), nil
}

// options are all options of bwrap that a launch may use.
var options = []string{
	"--args", "--bind", "--bind-fd", "--block-fd", "--cap-drop", "--chdir", "--clearenv", "--dev", "--die-with-parent",
	"--dir", "--disable-userns", "--file", "--hostname", "--json-status-fd", "--new-session", "--perms", "--proc",
	"--remount-ro", "--ro-bind", "--ro-bind-data", "--ro-bind-fd", "--seccomp", "--setenv", "--size", "--symlink",
	"--tmpfs", "--unshare-cgroup-try", "--unshare-ipc", "--unshare-net", "--unshare-pid", "--unshare-user",
	"--unshare-uts",
}

// Suits returns nil if launches can use this bwrap, or an error that says why not.
func (b Bwrap) Suits() error {
	switch {
	case b.Before(OldestBwrap):
		return diag.Errorf("use bwrap", OwnBwrap, "version %s is too old; %s is the oldest that can be used", b.Version,
			OldestBwrap)
	case len(b.Lacks) > 0:
		return diag.Errorf("use bwrap", OwnBwrap, "version %s has no %s", b.Version, strings.Join(b.Lacks, ", "))
	}
	return nil
}

// Before reports whether the version is lower than other. A text that is not a version
// counts as lower than all.
func (b Bwrap) Before(other string) bool {
	return slices.Compare(numbers(b.Version), numbers(other)) < 0
}

func numbers(version string) []int {
	var list []int
	for part := range strings.SplitSeq(version, ".") {
		n := 0
		if _, err := fmt.Sscanf(part, "%d", &n); err != nil {
			break
		}
		list = append(list, n)
	}
	return list
}

// failure returns the first line of a program's output as an error, or err if there is no output.
func failure(err error, text []byte) error {
	line, _, _ := strings.Cut(string(bytes.TrimSpace(text)), "\n")
	if line == "" {
		return err
	}
	return said(strings.TrimPrefix(line, "bwrap: "))
}

// said is an error message of a program, which often ends with the text of strerror(3).
type said string

func (s said) Error() string { return string(s) }

// Is reports whether target is the error number whose text the message ends with.
func (s said) Is(target error) bool {
	errno, ok := target.(unix.Errno)
	return ok && strings.HasSuffix(strings.ToLower(string(s)), errno.Error())
}
