package serve

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/confine"
	"claudebox/internal/network/dns"
)

// places are what looking up names reads: folders, as their files are replaced
// when they change.
var places = []string{"/etc", "/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/nix/store"}

// confineSelf leaves this process sockets of the internet, what it has open, and
// those folders.
func confineSelf() error {
	read := []string{}
	for _, place := range append(places, where(dns.ResolvConf)) {
		if _, err := os.Stat(place); err == nil {
			read = append(read, place)
		}
	}
	families := []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	calls := append(confine.Sockets(), confine.Always(
		unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_SENDMMSG, unix.SYS_RECVMMSG, unix.SYS_PPOLL, unix.SYS_SPLICE,
		unix.SYS_PIPE2, unix.SYS_UNAME,
	)...)
	calls = append(calls,
		confine.Call{Number: unix.SYS_SOCKET, When: []confine.Match{{Arg: 0, OneOf: families}}},
		confine.Call{Number: unix.SYS_IOCTL, When: []confine.Match{{Arg: 1, OneOf: []uint32{unix.TIOCINQ}}}},
	)
	keep, err := descriptors()
	if err != nil {
		return err
	}
	return confine.Self(confine.Options{Keep: keep, Calls: calls, Read: read})
}

// descriptors are those that are open. This process was started with few, and
// made the others itself.
func descriptors() (list []int, err error) {
	entries, err := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil {
			list = append(list, fd)
		}
	}
	return list, err
}

// where is the folder in which a file really lies.
func where(file string) string {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return filepath.Dir(file)
	}
	return filepath.Dir(real)
}
