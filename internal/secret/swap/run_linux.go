package swap

import (
	"os"
	"runtime/debug"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/confine"
	"claudebox/internal/linux/ondemand"
	"claudebox/internal/secret/broker"
)

// Run is the main function of the broker's process: it confines itself, then serves one sandbox until its parent is
// gone.
func Run() error {
	// Collect early: the process needs little memory, and there is one for each session.
	const percent, limit = 50, 24 << 20
	debug.SetGCPercent(percent)
	debug.SetMemoryLimit(limit)
	if err := confineSelf(); err != nil {
		return err
	}
	line, listener, err := ondemand.Open()
	if err != nil {
		return err
	}
	parent := broker.NewParent(line)
	hello, err := parent.Hello()
	if err != nil {
		return err
	}
	outward := NewOutward(hello.Proxies)
	b, err := New(hello.Config, parent, outward.Dial)
	if err != nil {
		return err
	}
	go NewProxy(b, hello.Password, outward).Serve(listener) //nolint:errcheck // it ends with this process
	return parent.Serve(b)
}

// readable are the paths that looking up a name reads (resolv.conf(5), hosts(5), and the targets of
// these links on the usual systems).
var readable = []string{"/etc", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/nix/store"}

// confineSelf confines this process to the network, and to the files that looking up a name reads ([readable]).
func confineSelf() error {
	read := slices.DeleteFunc(slices.Clone(readable), func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
	const files = 8192
	return confine.Self(confine.Options{
		Keep: []int{ondemand.Line, ondemand.Listener}, Read: read, Files: files, Network: true,
		Calls: slices.Concat(confine.Sockets(), confine.Always(
			unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_SPLICE, unix.SYS_SENDFILE, unix.SYS_PIPE2,
			unix.SYS_GETUID, unix.SYS_UNAME,
		), []confine.Call{{Number: unix.SYS_SOCKET, When: []confine.Match{{
			Arg: 0, OneOf: []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK},
		}}}}),
	})
}
