package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"time"
)

// tiers compares starts in tiers whose network claudebox makes with one in
// tier none, whose network bwrap makes.
func (w *world) tiers(out io.Writer, rounds int) error {
	start := func(name, network string) way {
		return w.command("-P", w.profile(name, network+"\n"), "--yes", "--no-report")
	}
	none := start("none", "network: none")
	own := map[string]way{
		"tier allow":          start("allow", "network: {tier: allow, allow: [example.org]}"),
		"tier none, one port": start("port", "network: none\nports: {in: [43210]}"),
	}
	time.Sleep(settled)
	for name, other := range own {
		times, err := takeTurns(rounds, other, none)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| start in %s | %s | tier none %s | %.2f |\n", name, times[0], times[1], float64(times[0])/float64(times[1]))
	}
	return nil
}

// downloads compares what curl gets per second from a server on this host's
// loopback, by the way that every connection of tier allow goes, with the same
// in tier full. (The proxy itself would refuse the loopback.) The best of some
// rounds counts: what other programs do meanwhile only slows down.
func (w *world) downloads(out io.Writer, _ int) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go func() { _ = http.Serve(l, http.HandlerFunc(zeros)) }()
	port := l.Addr().(*net.TCPAddr).Port
	carried := w.profile("carried", fmt.Sprintf("network: {tier: allow, allow: [example.org]}\nports: {out: [%d]}\n", port))
	direct := w.profile("direct", "network: full\n")
	for _, mebibytes := range []int{8, 64, 1024} {
		const rounds = 5
		var best [2]float64
		for range rounds {
			for i, profile := range []string{carried, direct} {
				speed, err := w.download(profile, fmt.Sprintf("http://%s/%d", l.Addr(), mebibytes))
				if err != nil {
					return err
				}
				best[i] = max(best[i], speed)
			}
		}
		fmt.Fprintf(out, "| a download of %d MiB in tier allow | %.0f MB/s | loopback in tier full %.0f MB/s | %.2f |\n",
			mebibytes, best[0]/1e6, best[1]/1e6, best[0]/best[1])
	}
	return nil
}

// zeros serves as many mebibytes as the path says.
func zeros(out http.ResponseWriter, r *http.Request) {
	piece := make([]byte, 1<<20)
	n, _ := strconv.Atoi(r.URL.Path[1:])
	out.Header().Set("Content-Length", strconv.Itoa(n<<20))
	for range n {
		if _, err := out.Write(piece); err != nil {
			return
		}
	}
}

// download is what curl gets inside, in bytes per second.
func (w *world) download(profile, url string) (float64, error) {
	cmd := exec.Command(w.home+"/bin/claudebox", "shell", "-P", profile, "--yes", "--no-report", "--",
		"curl", "-sS", "-o", "/dev/null", "-w", "%{speed_download}", url)
	text, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%q: %w", cmd.Args, err)
	}
	return strconv.ParseFloat(string(text), 64)
}
