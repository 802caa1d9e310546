package helper

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/internal/network/dns"
	"claudebox/internal/network/link"
)

// What is no report, or too long to be one, is not taken for an empty one.
func TestAReportThatDoesNotComeIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		answers func(wire)
		came    bool
	}{
		"an empty one":  {func(w wire) { w.send(Report{}) }, true},
		"a longer one":  {func(w wire) { w.Write([]byte{0xff, 0, 0, 0}) }, false},
		"its end alone": {func(w wire) { w.Close() }, false},
	} {
		ours, theirs := pair(t)
		h := &Helper{closed: true}
		p := process{conn: ours, reports: make(chan Report, 1)}
		go h.watch(p)
		go func() { theirs.receive(&request{}); tc.answers(theirs) }()
		if _, came := p.report(); came != tc.came {
			t.Errorf("%s: came %t; want %t", name, came, tc.came)
		}
	}
}

func pair(t *testing.T) (a, b wire) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]wire
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "end")
		conn, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		ends[i] = wire{conn.(*net.UnixConn)}
	}
	return ends[0], ends[1]
}

func TestEachHelperOfASessionHasNamesOfItsOwn(t *testing.T) {
	if dns.Generations < link.MostHelpers {
		t.Fatalf("%d helpers share the addresses of %d generations", link.MostHelpers, dns.Generations)
	}
}
