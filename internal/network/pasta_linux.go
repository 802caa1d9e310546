package network

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/network/hostnet"
	"claudebox/internal/network/netfilter"
)

// The network inside is the same on every machine, so that it tells nothing
// of the host's. Its addresses are forbidden ones: nobody outside is called so.
const (
	device   = "cb0"
	address4 = "192.0.2.2"
	gateway4 = "192.0.2.1"
	address6 = "2001:db8:cb::2"
	gateway6 = "fe80::1"
	mac      = "9a:55:9a:55:9a:55" // of the gateway
)

// families are pasta's words for each address family, and without it: by
// itself it would copy the host's addresses.
var families = []struct {
	ipv4    bool
	words   []string
	without string
}{
	{true, []string{"--dns-forward", netfilter.Resolver4, "--address", address4, "--netmask", "24", "--gateway", gateway4}, "--ipv6-only"},
	{false, []string{"--dns-forward", netfilter.Resolver6, "--address", address6, "--gateway", gateway6}, "--ipv4-only"},
}

// words are pasta's command line. All that it forwards by default, in either
// direction, is switched off, and so is what it would tell of the host's
// resolvers and domains by DHCP and router advertisements.
func words(sandbox int, host hostnet.Network) []string {
	list := []string{
		"pasta", "--config-net", "--quiet", "--foreground", "--pid", "/proc/self/fd/1",
		"--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none", "--no-map-gw",
		"--no-dhcp", "--no-dhcpv6", "--no-ra",
		"--ns-ifname", device, "--mac-addr", mac,
	}
	for _, f := range families {
		if host.IPv4 != host.IPv6 && f.ipv4 != host.IPv4 {
			list = append(list, f.without)
			continue
		}
		list = append(list, f.words...)
	}
	return append(list, strconv.Itoa(sandbox))
}

// pasta is the running program.
type pasta struct {
	pid   int
	pidfd *os.File // readable when it has ended
	ready *os.File // readable when the network is there
	said  *os.File // its standard error, in memory
}

// mostSaid bounds what is kept of its messages, in bytes.
const mostSaid = 4096

// startPasta connects the namespace of a process. It dies with the calling
// thread, and gets no signal of the terminal. It tells that it is ready by its
// pid, which goes to its standard output, a pipe: a file would be left behind
// by whoever kills claudebox.
func startPasta(program string, words []string) (p *pasta, err error) {
	p = &pasta{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.said, err = messages(); err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	var told *os.File
	if p.ready, told, err = os.Pipe(); err != nil {
		return nil, err
	}
	defer told.Close()
	pidfd := -1
	p.pid, err = syscall.ForkExec(program, words, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{null.Fd(), told.Fd(), p.said.Fd()},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, PidFD: &pidfd},
	})
	if err != nil {
		return nil, err
	}
	p.pidfd = os.NewFile(uintptr(pidfd), "pasta")
	return p, nil
}

// messages is a file in memory that takes so much and no more: a pipe would
// stop pasta when it is full.
func messages() (*os.File, error) {
	fd, err := unix.MemfdCreate("claudebox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "pasta's messages")
	if err := file.Truncate(mostSaid); err != nil {
		file.Close()
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// words is what pasta has said, on one line.
func (p *pasta) words() string {
	text := make([]byte, mostSaid)
	n, _ := p.said.ReadAt(text, 0)
	text, _, _ = bytes.Cut(text[:n], []byte{0})
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "to syslog\n") { // there is none where it looks for it
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "; ")
}

// kill ends pasta. Its interface vanishes with it, and every connection.
func (p *pasta) kill() error { return unix.PidfdSendSignal(int(p.pidfd.Fd()), unix.SIGKILL, nil, 0) }

// end ends pasta and waits until it is gone, and its interface with it.
func (p *pasta) end() error {
	if err := p.kill(); err != nil && !errors.Is(err, unix.ESRCH) {
		return &diag.Error{Op: "end pasta", Err: err}
	}
	for {
		_, err := syscall.Wait4(p.pid, nil, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			return nil // it is gone, whoever was told
		}
	}
}

func (p *pasta) close() {
	for _, f := range []*os.File{p.pidfd, p.ready, p.said} {
		if f != nil {
			f.Close()
		}
	}
}

// CheckTool reports whether there is a pasta to be started.
func CheckTool(program string) error {
	const op = "start the network of tier inet"
	if program == "" {
		return diag.Errorf(op, ownPasta, "the plan names no pasta")
	}
	if err := unix.Access(program, unix.X_OK); err != nil {
		return &diag.Error{Op: op, Err: &os.PathError{Op: "run", Path: program, Err: err}, Remedy: ownPasta}
	}
	return nil
}
