package swap

import (
	"runtime/debug"

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
	outward := NewOutward(hello.Proxies, judgedBy(parent))
	b, err := New(hello.Config, parent, outward.Dial)
	if err != nil {
		return err
	}
	go NewProxy(b, hello.Password, outward).Serve(listener) //nolint:errcheck // it ends with this process
	return parent.Serve(b)
}

// confineSelf confines this process to the network, and to the files that looking up a name reads.
func confineSelf() error {
	calls, read := confine.Internet()
	calls = append(calls, confine.Always(unix.SYS_LISTEN, unix.SYS_SENDFILE, unix.SYS_GETUID)...)
	const files = 8192
	return confine.Self(confine.Options{
		Keep: []int{ondemand.Line, ondemand.Listener}, Calls: calls, Read: read, Files: files, Network: true,
	})
}
