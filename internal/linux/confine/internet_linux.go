package confine

import (
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Internet returns what a process needs that connects to hosts of the internet by their names: calls, which [Sockets]
// are among, and what it reads to look a name up. A socket may also be one of netlink, by which Go, and package
// hostnet, learn of addresses and routes.
func Internet() (calls []Call, read []string) {
	families := []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	calls = append(slices.Concat(Sockets(), Always(
		unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_SPLICE, unix.SYS_PIPE2, unix.SYS_UNAME,
	)), Call{Number: unix.SYS_SOCKET, When: []Match{{Arg: 0, OneOf: families}}})
	return calls, resolving("/etc/resolv.conf")
}

// resolving lists the folders with the files that looking up a name reads (resolv.conf(5), hosts(5), and what these
// lead to on the usual systems), and the folder that conf leads to, as far as they are there. They are folders because
// Landlock permits an inode: a file that is replaced by renaming would not be readable any more.
func resolving(conf string) []string {
	places := []string{"/etc", "/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/nix/store"}
	if real, err := filepath.EvalSymlinks(conf); err == nil {
		places = append(places, filepath.Dir(real))
	}
	return slices.DeleteFunc(places, func(place string) bool {
		_, err := os.Stat(place)
		return err != nil
	})
}
