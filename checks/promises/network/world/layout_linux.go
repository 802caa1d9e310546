package world

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Layout is what a host has in place of the machine's own files: path →
// content, or "-> " and the target of a link. What the machine has beside stays,
// but for what is below the same entry of the same folder of the root.
type Layout map[string]string

// Systemd is how systemd-resolved lays its files out: a stub on the loopback,
// behind a link.
var Systemd = Layout{
	"/etc/resolv.conf":                      "-> ../run/systemd/resolve/stub-resolv.conf",
	"/run/systemd/resolve/stub-resolv.conf": "nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch .\n",
	"/run/systemd/resolve/resolv.conf":      "nameserver 203.0.113.53\n",
}

// apply changes the mount namespace of this process, which is its own.
func (l Layout) apply() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	taken := map[string]map[string]bool{} // folder of the root → entries that are the layout's
	for path := range l {
		parts := strings.Split(path, "/")
		folder := "/" + parts[1]
		if taken[folder] == nil {
			taken[folder] = map[string]bool{}
		}
		taken[folder][parts[2]] = true
	}
	for folder, entries := range taken {
		if err := replaceFolder(folder, entries); err != nil {
			return err
		}
	}
	for path, content := range l {
		if err := place(path, content); err != nil {
			return err
		}
	}
	return nil
}

// replaceFolder makes a folder one that we can write to, with everything in it
// but the entries without. (An overlay would be shorter, but cannot be laid over
// a folder that has mounts of others in it.)
func replaceFolder(folder string, without map[string]bool) error {
	const old = "/tmp" // any folder that every machine has, for a moment
	if err := unix.Mount(folder, old, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("set %s aside: %w", folder, err)
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount over %s: %w", folder, err)
	}
	entries, err := os.ReadDir(old)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if without[e.Name()] {
			continue
		}
		if err := keep(e, filepath.Join(old, e.Name()), filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return os.NewSyscallError("umount", unix.Unmount(old, unix.MNT_DETACH))
}

// keep makes an entry of the machine's be there again.
func keep(e fs.DirEntry, from, to string) error {
	switch {
	case e.Type() == fs.ModeSymlink:
		link, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(link, to)
	case e.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(to, nil, 0o644); err != nil {
			return err
		}
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("keep %s: %w", to, err)
	}
	return nil
}

func place(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if link, ok := strings.CutPrefix(content, "-> "); ok {
		return os.Symlink(link, path)
	}
	return os.WriteFile(path, []byte(content), 0o644)
}
