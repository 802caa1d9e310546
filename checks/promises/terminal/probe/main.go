// Probe is an agent that tells a test what reaches it, and does what the test
// says. It connects to the socket ./probe, which lies in the project; both
// sides speak lines. It is built without cgo, so that nothing of the host has
// to be mounted for it.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

var caught = []os.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGWINCH, syscall.SIGCONT,
}

func main() {
	conn, err := net.Dial("unix", "../meet/probe")
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(99)
	}
	received := make(chan os.Signal, 64)
	signal.Notify(received, caught...)
	go func() {
		for s := range received {
			fmt.Fprintln(conn, "signal", unix.SignalName(s.(syscall.Signal)))
		}
	}()
	fmt.Fprintln(conn, "ready")
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		answer, known := "unknown", false
		if do, found := commands[name]; found {
			answer, known = do(rest), true
		}
		fmt.Fprintf(conn, "%s: %s\n", name, answer)
		if !known {
			os.Exit(98)
		}
	}
	time.Sleep(time.Hour) // the test is gone; whoever has to end us is tested
}

var commands = map[string]func(string) string{
	"ping":     func(string) string { return "pong" },
	"size":     size,
	"modes":    modes,
	"raw":      raw,
	"hold":     hold,
	"print":    func(text string) string { fmt.Print(text); return "done" },
	"read":     func(string) string { line, _ := bufio.NewReader(os.Stdin).ReadString('\n'); return strconv.Quote(line) },
	"default":  func(string) string { signal.Reset(caught...); return "done" },
	"exit":     func(code string) string { n, _ := strconv.Atoi(code); os.Exit(n); return "" },
	"kill":     func(name string) string { return send(os.Getpid(), name) },
	"killall":  func(name string) string { return send(0, name) },
	"keys":     keys,
	"nonblock": func(string) string { return fmt.Sprint(unix.SetNonblock(0, true)) },
}

// send signals this process, or with 0 its whole group. The answer comes once
// it goes on.
func send(target int, name string) string {
	if err := syscall.Kill(target, unix.SignalNum("SIG"+name)); err != nil {
		return err.Error()
	}
	return "went on"
}

// keys asks the kernel to send a signal to the terminal's foreground group at each key: to claudebox's.
func keys(way string) string {
	way, name, _ := strings.Cut(way, " ")
	ask := func() error { _, err := unix.FcntlInt(0, unix.F_SETFL, unix.O_RDWR|unix.O_ASYNC); return err }
	if way == "FIOASYNC" {
		const fioasync = 0x5452
		ask = func() error { return unix.IoctlSetPointerInt(0, fioasync, 1) }
	}
	_, err := unix.FcntlInt(0, unix.F_SETSIG, int(unix.SignalNum("SIG"+name)))
	return fmt.Sprint(errors.Join(ask(), err))
}

// hold stops the terminal's output, and keeps others from opening it.
func hold(string) string {
	const tcooff = 0
	return fmt.Sprint(errors.Join(unix.IoctlSetInt(0, unix.TCXONC, tcooff), unix.IoctlSetInt(0, unix.TIOCEXCL, 0)))
}

func size(string) string {
	ws, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%dx%d", ws.Col, ws.Row)
}

func modes(string) string {
	t, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x %x %x", t.Iflag, t.Oflag, t.Lflag)
}

// raw leaves the terminal as a full-screen program has it.
func raw(string) string {
	if _, err := term.MakeRaw(0); err != nil {
		return err.Error()
	}
	fmt.Print("\x1b[?1049h\x1b[?2004h\x1b[?1000h\x1b[?25l")
	return "done"
}
