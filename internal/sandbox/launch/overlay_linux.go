package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/mountinfo"
	"claudebox/internal/linux/proctree"
)

// TryStore tests whether a sandbox can have a Nix store of its own on this machine,
// with the upper layer in folder. It runs such a sandbox and removes its files again.
// The error says what prevents it: the kernel, the file system of folder, or a mount
// in the host's store; or that nix, claudebox's own, has no such store. bwrap, env and nix are paths of these programs.
func TryStore(bwrap, env, nix, folder string) error {
	removeTrials(folder)
	dir := filepath.Join(folder, fmt.Sprint(trialPrefix, os.Getpid()))
	defer func() { _ = beneath.RemoveAll(dir) }() // overlayfs makes a closed folder in it
	upper, work := filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	for _, name := range []string{dir, upper, work} {
		if err := errors.Join(os.Mkdir(name, 0o700), os.Chmod(name, 0o700)); err != nil { // whatever the umask
			return &diag.Error{Op: "try a Nix store inside", Err: err}
		}
	}
	cmd := exec.Command(bwrap, "--unshare-user", "--unshare-pid", "--die-with-parent", "--ro-bind", "/", "/",
		"--overlay-src", storeDir, "--overlay", upper, work, storeDir, "--", env, "true")
	cmd.Env, cmd.SysProcAttr = []string{"PATH=" + filepath.Dir(env)}, &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return tryNix(bwrap, nix)
	}
	said := strings.TrimSpace(string(out))
	if strings.Contains(said, "overlay mount") { // whose options name descriptors
		said = said[strings.LastIndex(said, ": ")+2:]
	}
	mounts, _ := mountinfo.Read()
	return explainStore(folder, mounts, errors.New(said))
}

// tryNix returns an error if a Nix does not know stores that lie over others: Nix before 2.22, and forks of it. It asks
// for one that cannot be there: what the others say differs. One whose name says that it does is not run.
func tryNix(bwrap, nix string) error {
	var minor int
	const since = 24
	if _, err := fmt.Sscanf(nix, storeDir+"/%32s-nix-2.%d", new(string), &minor); err == nil && minor >= since {
		return nil
	}
	cmd := exec.Command(bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--",
		nix, "--extra-experimental-features", "nix-command local-overlay-store", "eval", "--expr", "1", "--store",
		"local-overlay://?root=/tmp/none&lower-store=dummy%3A%2F%2F&upper-layer=/tmp/none/upper&check-mount=false")
	cmd.Env, cmd.SysProcAttr = []string{"HOME=/tmp", "NIX_CONF_DIR=/tmp"}, &syscall.SysProcAttr{Setpgid: true}
	out, _ := cmd.CombinedOutput()
	if !strings.Contains(string(out), "don't know how to open Nix store") {
		return nil
	}
	return diag.Errorf("lay a Nix store over the host's",
		"use a claudebox that was built with Nix 2.24 or newer, or write `nix: {daemon: off}`",
		"%s, with which claudebox was built, has no store of that kind (local-overlay)", nix)
}

// trialPrefix begins the name of a folder in which a process tries a store; the
// process id follows.
const trialPrefix = ".nix-trial-"

// removeTrials removes the folders of processes that were killed during a trial.
func removeTrials(folder string) {
	left, err := filepath.Glob(filepath.Join(folder, trialPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		number := strings.TrimPrefix(filepath.Base(dir), trialPrefix)
		if _, err := os.Stat("/proc/" + number); err != nil || number == strconv.Itoa(os.Getpid()) {
			_ = beneath.RemoveAll(dir)
		}
	}
}

// explainStore returns an error with the reason why the overlay failed, and a remedy.
// mounts are those of this machine.
func explainStore(folder string, mounts []mountinfo.Mount, err error) error {
	const op = "lay a Nix store over the host's"
	for _, m := range mounts {
		if strings.HasPrefix(m.Point, storeDir+"/") {
			return &diag.Error{
				Op: op, Err: fmt.Errorf("%s is mounted in the host's store: %w", m.Point, err),
				Remedy: "unmount it (`sudo umount " + m.Point + "`), or write `nix: {daemon: off}`",
			}
		}
	}
	return &diag.Error{
		Op: op, Err: fmt.Errorf("the kernel cannot do it, or the file system of %s cannot hold it: %w", folder, err),
		Remedy: "put CLAUDEBOX_HOME on ext4, xfs, btrfs or tmpfs; or write `nix: {daemon: off}`",
	}
}

// holdOverlays opens the overlays of a sandbox, by bwrap's process. Who ends the last use of one waits until the kernel
// has all of the file system below on the disk, which other programs may have filled; with these open that is whoever
// closes them, see [letgo.Close]. A kernel that keeps an index of overlays refuses the next one over the same layer as
// long as the last one is there: on that the sandbox's end waits.
func (r Runner) holdOverlays(bwrap int) (held []*os.File) {
	isOverlay := func(m Mount) bool { return m.Upper != "" || m.Layer != "" }
	if !slices.ContainsFunc(r.Mounts, isOverlay) {
		return nil
	}
	if index, err := os.ReadFile("/sys/module/overlay/parameters/index"); err != nil || string(index) != "N\n" {
		return nil
	}
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", proctree.Init(bwrap)), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // it has ended
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH}
	for _, m := range r.Mounts {
		if !isOverlay(m) {
			continue
		}
		if fd, err := unix.Openat2(root, strings.TrimPrefix(m.Destination, "/"), &how); err == nil {
			held = append(held, os.NewFile(uintptr(fd), m.Destination))
		}
	}
	return held
}
