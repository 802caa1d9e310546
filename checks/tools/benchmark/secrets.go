package main

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"claudebox/checks/kit/authority"
)

// askings asks a host by the broker and past it, and prints what it took.
const askings = `
ask() { printf '%s ' "$1"; shift; curl -sS "$@"; echo; }
many=$(for i in {1..21}; do echo -o /dev/null https://HOST/1; done)
first() { ask first-$1 "${@:2}" -w '%{time_starttransfer} ' $many; }
events() { curl -sSN "${@:2}" https://HOST/events | while read -r sent; do
	[[ -z $sent ]] || echo "event-$1 $sent ${EPOCHREALTIME/./}"; done; }
whole() { ask whole-$1 "${@:2}" -o /dev/null -w '%{time_total} ' https://HOST/1024; }
for round in 1 2 3; do
	for way in first events whole; do
		$way with -H "Authorization: Bearer $BENCH_TOKEN"
		$way without --noproxy '*' --cacert $ROOTS
	done
done
echo idle
read -r _
`

// secrets compares requests whose placeholder is swapped with the same past the
// broker, and looks at the broker's memory and at what it does when nothing is
// asked.
func (w *world) secrets(out io.Writer, _ int) error {
	certificate, roots, err := authority.Certify([]string{"localhost"})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	server := &http.Server{
		Handler: http.HandlerFunc(zerosOrEvents), ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	go func() { _ = server.ServeTLS(l, "", "") }()
	file := filepath.Join(w.home, "roots.pem")
	if err := os.WriteFile(file, roots, 0o600); err != nil {
		return err
	}
	host := fmt.Sprint("localhost:", l.Addr().(*net.TCPAddr).Port)
	profile := w.profile("secrets", "secrets: [{env: BENCH_TOKEN, hosts: [\""+host+"\"]}]\nnix: {daemon: off}\n"+
		"mounts: [{host: "+file+", mode: ro}]\nenv: {ROOTS: "+file+"}\n")
	script := strings.ReplaceAll(askings, "HOST", host)
	cmd := exec.Command(w.home+"/bin/claudebox", "shell", "-P", profile, "--yes", "--no-report", "--", "bash", "-c", script)
	cmd.Env = append(os.Environ(), "BENCH_TOKEN=ghp_BenchBenchBenchBenchBenchBench012345", "SSL_CERT_FILE="+file, "NIX_SSL_CERT_FILE="+file)
	return w.measureSecrets(out, cmd)
}

func (w *world) measureSecrets(out io.Writer, cmd *exec.Cmd) error {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait() //nolint:errcheck // it is told by stdin
	defer stdin.Close()
	found := map[string][]float64{}
	for lines := bufio.NewScanner(stdout); lines.Scan() && lines.Text() != "idle"; {
		if len(strings.Fields(lines.Text())) < 2 {
			return fmt.Errorf("the script said %q", lines.Text())
		}
		words := strings.Fields(lines.Text())
		numbers := make([]float64, len(words))
		for i := range words {
			numbers[i], _ = strconv.ParseFloat(words[i], 64)
		}
		switch name, _, _ := strings.Cut(words[0], "-"); name {
		case "first": // but for the first, which connects
			found[words[0]] = append(found[words[0]], numbers[2:]...)
		case "event":
			found[words[0]] = append(found[words[0]], (numbers[2]-numbers[1])/1e6)
		case "whole":
			found[words[0]] = append(found[words[0]], numbers[1])
		}
	}
	for _, row := range []struct{ name, what string }{
		{"first", "first byte of an answer, its secret swapped"},
		{"event", "an event on its way, likewise"},
		{"whole", "1 GiB by TLS, likewise"},
	} {
		with, without := median(found[row.name+"-with"]), median(found[row.name+"-without"])
		fmt.Fprintf(out, "| %s | %.1f ms | past the broker %.1f ms | %.2f |\n", row.what, with*1e3, without*1e3, with/without)
	}
	return w.idle(out, cmd.Process.Pid)
}

// idle looks at the processes of claudebox's own that wait.
func (w *world) idle(out io.Writer, pid int) error {
	list, err := children(pid, "claudebox")
	if err != nil {
		return err
	}
	list = append(list, pid)
	const while = 10 * time.Second
	before, err := allTicks(list)
	if err != nil {
		return err
	}
	time.Sleep(while)
	after, err := allTicks(list)
	if err != nil {
		return err
	}
	var memory float64
	for _, pid := range list {
		one, err := resident(pid)
		if err != nil {
			return err
		}
		memory += one
	}
	_, err = fmt.Fprintf(out, "| %d processes of claudebox's own, after it | %.1f MiB resident; %d ticks in %s | | |\n",
		len(list), memory, after-before, while)
	return err
}

// allTicks is the CPU time of processes, in hundredths of a second.
func allTicks(pids []int) (sum int, err error) {
	for _, pid := range pids {
		one, failed := ticks(pid)
		sum, err = sum+one, errors.Join(err, failed)
	}
	return sum, err
}

func median[T cmp.Ordered](list []T) (middle T) {
	if len(list) == 0 {
		return middle
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// zerosOrEvents serves events, each with the time when it is sent, in
// microseconds, or as [zeros] does.
func zerosOrEvents(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/events" {
		zeros(out, r)
		return
	}
	for range 20 {
		time.Sleep(20 * time.Millisecond)
		fmt.Fprintf(out, "%d\n", time.Now().UnixMicro())
		_ = http.NewResponseController(out).Flush()
	}
}
