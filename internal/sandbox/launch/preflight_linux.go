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

// ownBwrap is the remedy for a bwrap that is no good: claudebox's own one is
// pinned, so that only somebody's manifest or plan can name another.
const ownBwrap = "use the claudebox that its flake builds, which pins a bwrap that suits"

// CheckBwrap sees by one stat(2) what makes a bwrap impossible to start, or
// unsafe: it costs every launch a few microseconds.
func CheckBwrap(path string) error {
	op := "start bwrap " + path
	if path == "" {
		return diag.Errorf("start bwrap", ownBwrap, "the plan names none")
	}
	var st unix.Stat_t
	switch err := unix.Stat(path, &st); {
	case errors.Is(err, unix.ENOENT):
		return &diag.Error{Op: op, Err: err, Remedy: fetchRemedy(path)}
	case err != nil:
		return &diag.Error{Op: op, Err: err, Remedy: ownBwrap}
	case st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0:
		return diag.Errorf(op, ownBwrap+"; or run `sudo chmod ug-s "+path+"`",
			"it is setuid: a fault in it would give away more than this user's rights (CVE-2026-41163)")
	case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0:
		return diag.Errorf(op, ownBwrap, "it is not a program")
	}
	return nil
}

// fetchRemedy brings back what the store has lost.
func fetchRemedy(path string) string {
	const store = "/nix/store/"
	rest, ok := strings.CutPrefix(path, store)
	if !ok {
		return ownBwrap
	}
	name, _, _ := strings.Cut(rest, "/")
	return "fetch it with `nix-store --realise " + store + name + "`, or install claudebox anew"
}

// Bwrap is what a bwrap says of itself.
type Bwrap struct {
	Version string   // "0.12.0"
	Lacks   []string // options that a launch uses and it does not know
}

// OldestBwrap is refused below (it cannot forbid nested user namespaces);
// SafeBwrap is the first that makes no mount points through planted links
// (CVE-2026-87766), from which a launch protects itself with older ones.
const (
	OldestBwrap = "0.8"
	SafeBwrap   = "0.12"
)

// probeWait bounds a program that ought to answer at once.
const probeWait = 10 * time.Second

// AskBwrap reads a bwrap's version and options. Options are told from its
// help, as distributions carry newer ones back into older versions.
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
		return "", &diag.Error{Op: "run " + path + " " + option, Err: failure(err, text), Remedy: ownBwrap}
	}
	return string(text), nil
}

// options are all that a launch may use of bwrap.
var options = []string{
	"--args", "--bind", "--bind-fd", "--block-fd", "--cap-drop", "--chdir", "--clearenv", "--dev", "--die-with-parent",
	"--dir",
	"--disable-userns", "--file", "--hostname", "--json-status-fd", "--perms", "--proc", "--remount-ro", "--ro-bind",
	"--ro-bind-data", "--ro-bind-fd", "--seccomp", "--setenv", "--size", "--symlink", "--tmpfs", "--unshare-cgroup-try",
	"--unshare-ipc", "--unshare-net", "--unshare-pid", "--unshare-user", "--unshare-uts",
}

// Suits reports whether launches can use this bwrap.
func (b Bwrap) Suits() error {
	switch {
	case b.Before(OldestBwrap):
		return diag.Errorf("use bwrap", ownBwrap, "version %s is too old; %s is the oldest that can be used", b.Version,
			OldestBwrap)
	case len(b.Lacks) > 0:
		return diag.Errorf("use bwrap", ownBwrap, "version %s has no %s", b.Version, strings.Join(b.Lacks, ", "))
	}
	return nil
}

// Before reports whether the version is lower than another. One that is no
// version is lower than all.
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

// failure is what a program said, or how it ended when it said nothing.
func failure(err error, text []byte) error {
	line, _, _ := strings.Cut(string(bytes.TrimSpace(text)), "\n")
	if line == "" {
		return err
	}
	return said(strings.TrimPrefix(line, "bwrap: "))
}

// said is the message of a program that ended with the words of strerror(3).
type said string

func (s said) Error() string { return string(s) }

// Is reports whether the words stand for an error number.
func (s said) Is(target error) bool {
	errno, ok := target.(unix.Errno)
	return ok && strings.HasSuffix(strings.ToLower(string(s)), errno.Error())
}
