package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
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

// inet compares the way to an agent in tier inet with that in tier full.
func (w *world) inet(out io.Writer, rounds int) error {
	start := func(tier string) way {
		return w.command("-P", w.profileOf(tier, "date, +%s%N", "network: "+tier+"\n"), "--yes", "--no-report")
	}
	time.Sleep(settled)
	times, err := takeTurnsBy(toAgent, rounds, start("inet"), start("full"))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| the way to `date` in tier inet | %s | tier full %s | %.2f |\n", times[0], times[1], float64(times[0])/float64(times[1]))
	return nil
}

// downloads compares how long curl takes for a file of a server on this host's
// loopback, by a port that the profile carries, with the same in tier full.
func (w *world) downloads(out io.Writer, rounds int) error {
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
		url := fmt.Sprintf("http://%s/%d", l.Addr(), mebibytes)
		times, err := takeTurnsBy(asSaid, fewer(rounds, mebibytes), w.download(carried, url), w.download(direct, url))
		if err != nil {
			return err
		}
		speed := func(d duration) float64 { return float64(mebibytes<<20) / 1e6 / time.Duration(d).Seconds() }
		fmt.Fprintf(out, "| a download of %d MiB by a carried port | %.0f MB/s | loopback in tier full %.0f MB/s | %.2f |\n",
			mebibytes, speed(times[0]), speed(times[1]), speed(times[0])/speed(times[1]))
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

// download is curl, which says how long it took.
func (w *world) download(profile, url string) way {
	return w.command("shell", "-P", profile, "--yes", "--no-report", "--", "curl", "-sS", "-o", "/dev/null", "-w", "%{time_total}", url)
}
