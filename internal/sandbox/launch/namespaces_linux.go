package launch

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/spawn"
)

// CheckUserNamespaces makes a user namespace, with this user mapped, to test whether it
// is allowed. If not, the error has the reason as far as this machine's settings show
// it. No program runs in the namespace: the program's path is empty, and the kernel
// looks it up only after the namespace was made, so ENOENT means success.
func CheckUserNamespaces() error {
	_, err := spawn.Start(spawn.Program{Args: []string{""}, PIDs: true})
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return explainNamespaces("make a user namespace", err, readSwitches())
}

// switches are the kernel settings that can forbid namespaces, as text; empty if the
// kernel does not have the setting. They are used only to choose the advice: whether
// namespaces can be made is tested by making one.
type switches struct {
	sandboxed bool   // this process is in a user namespace already
	users     string // user.max_user_namespaces, of this namespace
	networks  string // user.max_net_namespaces
	debian    string // kernel.unprivileged_userns_clone
	apparmor  string // kernel.apparmor_restrict_unprivileged_userns
}

func readSwitches() switches {
	setting := func(name string) string {
		text, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	return switches{
		sandboxed: !holdsAllUsers(),
		users:     setting("user/max_user_namespaces"),
		networks:  setting("user/max_net_namespaces"),
		debian:    setting("kernel/unprivileged_userns_clone"),
		apparmor:  setting("kernel/apparmor_restrict_unprivileged_userns"),
	}
}

// holdsAllUsers reports whether this process is in the initial user namespace, which
// maps every id to itself (user_namespaces(7)).
func holdsAllUsers() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(text)), " ") == "0 0 4294967295"
}

// appArmorProfile is a shell command that installs an AppArmor profile for claudebox and
// bwrap, of any version in the store. Ubuntu allows namespaces only to programs with a
// profile.
const appArmorProfile = `printf 'abi <abi/4.0>,\nprofile claudebox /nix/store/*-{claudebox,bubblewrap}-*/bin/* flags=(unconfined) { userns, }\n'` +
	` | sudo tee /etc/apparmor.d/claudebox && sudo apparmor_parser -r /etc/apparmor.d/claudebox`

// namespaceCauses are the known reasons why namespaces cannot be made, the most certain
// ones first.
var namespaceCauses = []struct {
	suits  func(switches, error) bool
	cause  string
	remedy string
}{
	{
		// claudebox's own sandboxes among them: their filter answers EPERM
		func(s switches, err error) bool {
			return s.sandboxed && (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EPERM))
		},
		"this is a sandbox or a container already, and it forbids further ones",
		"run claudebox outside of it",
	},
	{
		func(s switches, _ error) bool { return s.users == "0" },
		"user namespaces are switched off (user.max_user_namespaces is 0)",
		"run `sudo sysctl user.max_user_namespaces=15000` and keep it in /etc/sysctl.d; on NixOS set " +
			"`security.allowUserNamespaces = true;`",
	},
	{
		func(s switches, _ error) bool { return s.networks == "0" },
		"network namespaces are switched off (user.max_net_namespaces is 0)",
		"run `sudo sysctl user.max_net_namespaces=15000` and keep it in /etc/sysctl.d",
	},
	{
		func(s switches, _ error) bool { return s.debian == "0" },
		"only root may make user namespaces (kernel.unprivileged_userns_clone is 0)",
		"run `sudo sysctl kernel.unprivileged_userns_clone=1` and keep it in /etc/sysctl.d; on NixOS set " +
			"`security.unprivilegedUsernsClone = true;`",
	},
	{
		func(s switches, _ error) bool { return s.apparmor == "1" },
		"AppArmor lets only programs that it knows use user namespaces " +
			"(kernel.apparmor_restrict_unprivileged_userns is 1)",
		"give claudebox a profile: `" + appArmorProfile + "`",
	},
	{
		func(_ switches, err error) bool { return errors.Is(err, unix.ENOSPC) },
		"a limit on namespaces is reached",
		"end programs that use namespaces, or raise the limits: `sysctl user` lists them",
	},
	{
		func(_ switches, err error) bool { return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) },
		"this kernel has no user namespaces",
		"use a kernel that is built with CONFIG_USER_NS",
	},
	{
		func(_ switches, err error) bool { return errors.Is(err, unix.EPERM) },
		"a container or a chroot forbids user namespaces",
		"run claudebox on the host, or start the container with a seccomp profile that allows them (docker: " +
			"`--security-opt seccomp=FILE`)",
	},
}

// explainNamespaces wraps err with the first cause in namespaceCauses that fits, and its remedy.
func explainNamespaces(op string, err error, s switches) error {
	for _, c := range namespaceCauses {
		if c.suits(s, err) {
			return &diag.Error{Op: op, Err: fmt.Errorf("%s (%w)", c.cause, err), Remedy: c.remedy}
		}
	}
	return &diag.Error{Op: op, Err: err, Remedy: "report this with the output of `claudebox check`"}
}
