package serve

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/confine"
	"claudebox/internal/network/dns"
)

// places are the folders with the files that looking up a name reads. They are folders because Landlock permits an
// inode: a file that is replaced by renaming would not be readable any more.
var places = []string{"/etc", "/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/nix/store"}

// confineSelf confines this process to the descriptors that are open, to internet sockets, to netlink, by which package
// hostnet watches addresses and routes, and to reading [places] and the folder of the real resolv.conf.
func confineSelf() error {
	read := []string{}
	for _, place := range append(places, realFolder(dns.ResolvConf)) {
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

// realFolder returns the folder of a file, after following links.
func realFolder(file string) string {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return filepath.Dir(file)
	}
	return filepath.Dir(real)
}
