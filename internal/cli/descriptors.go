package cli

import (
	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// closeInherited marks every descriptor but the standard ones close-on-exec,
// and refuses standard ones that would open a part of the host to the agent:
// a folder gives all that is below it, through /proc/self/fd/0/.
func closeInherited() error {
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return &diag.Error{Op: "close inherited descriptors", Err: err, Remedy: "claudebox needs Linux 5.11 or newer"}
	}
	for fd, name := range []string{"standard input", "standard output", "standard error"} {
		if err := checkStandard(fd, name); err != nil {
			return err
		}
	}
	return nil
}

func checkStandard(fd int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil // closed: Go has put /dev/null there by now, or it stays closed
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	kind := st.Mode & unix.S_IFMT
	if kind == unix.S_IFDIR || kind == unix.S_IFBLK || err == nil && flags&unix.O_PATH != 0 {
		return diag.Errorf("check "+name, "redirect it to a file, a pipe or /dev/null",
			"it is a folder or a device, which the agent could look into")
	}
	return nil
}
