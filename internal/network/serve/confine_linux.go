package serve

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/confine"
)

// confineSelf confines this process to the descriptors that are open and to [confine.Internet].
func confineSelf() error {
	calls, read := confine.Internet()
	calls = append(calls, confine.Always(unix.SYS_SENDMMSG, unix.SYS_RECVMMSG, unix.SYS_PPOLL)...)
	calls = append(calls,
		confine.Call{Number: unix.SYS_IOCTL, When: []confine.Match{{Arg: 1, OneOf: []uint32{unix.TIOCINQ}}}})
	keep, err := descriptors()
	if err != nil {
		return err
	}
	return confine.Self(confine.Options{Keep: keep, Calls: calls, Read: read, Network: true})
}

// descriptors returns the open descriptors of this process.
func descriptors() (list []int, err error) {
	entries, err := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil {
			list = append(list, fd)
		}
	}
	return list, err
}
