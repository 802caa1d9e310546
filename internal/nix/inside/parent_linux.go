package inside

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/confine"
	"claudebox/internal/nix/nixdaemon"
)

// maxFiles bounds the descriptors of the filter: those of its clients and a few
// of its own.
const maxFiles = maxClients + 32

// confineSelf confines this process to the descriptors that it was given and to using sockets
// that others made.
func confineSelf(closure bool) error {
	keep := []int{parentDescriptor, listenerDescriptor, knownDescriptor}
	if closure {
		keep = append(keep, onlyDescriptor)
	}
	return confine.Self(confine.Options{Keep: keep, Calls: confine.Sockets(), Files: maxFiles})
}

// parent is the process that started the filter, as the filter sees it.
type parent struct {
	conn    *net.UnixConn
	answers chan answer
}

// answer is a connection to the daemon, or the reason why there is none.
type answer struct {
	file *os.File // nil: there is none
	why  string
}

func (p *parent) say(what byte) error {
	_, err := p.conn.Write([]byte{what})
	return err
}

var errNoDaemon = errors.New("the Nix daemon of the host cannot be reached")

// dial asks the parent for a connection. There is one such request at a time, see
// [Host.ask], and none of unlock meanwhile.
func (p *parent) dial() (*nixdaemon.Client, error) {
	if err := p.say(saysDial); err != nil {
		return nil, err
	}
	got := <-p.answers
	if got.file == nil {
		return nil, fmt.Errorf("%w: %s", errNoDaemon, got.why)
	}
	defer got.file.Close()
	conn, err := net.FileConn(got.file)
	if err != nil {
		return nil, err
	}
	return nixdaemon.Attach(context.Background(), conn.(*net.UnixConn), nixdaemon.Options{List: longestList})
}

// unlock has the parent take the host's locks of paths away from the sandbox, and waits for that.
func (p *parent) unlock(paths []string) {
	for some := range slices.Chunk(paths, (longestSaid-1)/longestPath) {
		if _, err := p.conn.Write([]byte(string(saysMissing) + strings.Join(some, "\n"))); err != nil {
			return // the parent is gone, and this process with it
		}
		<-p.answers
	}
}

// listen receives the parent's answers until the parent is gone.
func (p *parent) listen() error {
	for {
		var said [longestSaid]byte
		rights := make([]byte, unix.CmsgSpace(4))
		n, m, _, _, err := p.conn.ReadMsgUnix(said[:], rights)
		if err != nil || n == 0 {
			return err
		}
		p.answers <- answer{received(rights[:m]), string(said[1:n])}
	}
}

// received returns the descriptor that came with a message; nil if none did.
func received(rights []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil
	}
	return os.NewFile(uintptr(fds[0]), "daemon")
}
