package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"claudebox/internal/nix/inside"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/plan/resolve"
)

// nix measures what Nix inside costs: a launch with it and without, a package
// that is there already inside and outside, a connection of the filter, and what
// the filter takes while nobody asks.
func (w *world) nix(out io.Writer, rounds int) error {
	return errors.Join(w.nixLaunch(out, rounds), w.nixShell(out, rounds), w.nixFilter(out, rounds), w.nixDevshell(out, rounds))
}

func (w *world) nixLaunch(out io.Writer, rounds int) error {
	start := func(name, daemon string) way {
		return w.command("-P", w.profile(name, "nix: {daemon: "+daemon+"}\n"), "--yes", "--no-report")
	}
	own, off := start("nix-own", "own"), start("nix-off", "off")
	time.Sleep(settled)
	times, err := takeTurns(rounds, own, off)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| Nix inside | %s more than without | a start with it %s, without %s | |\n", times[0]-times[1], times[0], times[1])
	return nil
}

// nixDevshell measures a launch in a project with a dev shell: kept, with its hook, and evaluated first; beside it the
// same launch without, and `nix develop` inside.
func (w *world) nixDevshell(out io.Writer, rounds int) error {
	const flake = `{ outputs = { self, nixpkgs }: let p = nixpkgs.legacyPackages.x86_64-linux; in {
		devShells.x86_64-linux.default = p.runCommand "nix-shell" { outputs = [ "out" ]; nativeBuildInputs = [ p.hello p.go ]; } ":";
		devShells.x86_64-linux.hook = p.runCommand "nix-shell" { outputs = [ "out" ]; shellHook = "export A=b"; } ":"; }; }`
	if err := os.WriteFile("flake.nix", []byte(flake), 0o600); err != nil {
		return err
	}
	defer os.Remove("flake.nix")
	profile := func(name, rest string) []string {
		return []string{"--yes", "--no-report", "--network", "none", "-P", w.profile(name, rest)}
	}
	kept := profile("devshell", "devshell: .\n")
	ways := []way{
		w.command(kept...), w.command(profile("devshell-hook", "devshell: .#hook\n")...), w.command(append(kept, "--no-devshell")...),
	}
	time.Sleep(settled)
	times, err := takeTurns(rounds, ways...)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| a dev shell that is kept | %s more than without | a start with it %s, without %s | |\n", times[0]-times[2], times[0], times[2])
	fmt.Fprintf(out, "| the same, with a hook | %s more than without | a start with it %s | |\n", times[1]-times[2], times[1])
	develop := w.profileOf("develop", "nix, develop, --no-write-lock-file, --option, eval-cache, \"false\", -c, \"true\"", "devshell: off\n")
	first, err := takeTurns(rounds/4+1,
		w.command("devshell", "--refresh", "--yes", "--network", "none", "-P", w.profile("devshell", "devshell: .\n")),
		w.command("--yes", "--no-report", "--network", "none", "-P", develop))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| a dev shell that is evaluated | %s | `nix develop -c true` inside %s | %.2f |\n", first[0], first[1], float64(first[0])/float64(first[1]))
	return nil
}

// inNix is a script that says how long a program of nixpkgs took that is in the store.
const inNix = `nix shell nixpkgs#hello -c true; begin=$EPOCHREALTIME; nix shell nixpkgs#hello -c true; end=$EPOCHREALTIME
	us=$((${end/./} - ${begin/./})); printf '%d.%06d\n' $((us / 1000000)) $((us % 1000000))`

// nixShell compares the same commands, with the same registry.
func (w *world) nixShell(out io.Writer, rounds int) error {
	registry := filepath.Join(w.home, "registry.json")
	pin := w.manifest.Nixpkgs
	text := inside.Source{Path: pin.Path, Rev: pin.Rev, NarHash: pin.NarHash, LastModified: pin.LastModified}.Registry()
	if err := os.WriteFile(registry, text, 0o600); err != nil {
		return err
	}
	within := w.command("shell", "-P", w.profile("nix-shell", ""), "--yes", "--no-report", "--", "bash", "-euc", inNix)
	outside := func() (*exec.Cmd, error) {
		cmd := exec.Command(w.manifest.Tools[resolve.ToolBash], "-euc", inNix)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(w.manifest.Tools[resolve.ToolNix])+":/usr/bin:/bin",
			"NIX_CONFIG=extra-experimental-features = nix-command flakes\nwarn-dirty = false\nflake-registry = "+registry)
		return cmd, nil
	}
	time.Sleep(settled)
	times, err := takeTurnsBy(asSaid, rounds, within, outside)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| `nix shell` of a package that is there, warm | %s | outside %s | %.2f |\n", times[0], times[1], float64(times[0])/float64(times[1]))
	return nil
}

// nixFilter looks at the filter of a session whose agent waits.
func (w *world) nixFilter(out io.Writer, rounds int) error {
	words := []string{"-P", w.profileOf("nix-waits", "sleep, inf", ""), "--yes"}
	cmd := exec.Command(w.home+"/bin/claudebox", words...)
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	time.Sleep(time.Second)
	sockets, err := filepath.Glob(w.home + "/.claudebox/instances/*/nix/main/" + inside.Socket)
	if err != nil || len(sockets) != 1 {
		return fmt.Errorf("sockets of filters: %q, %w", sockets, err)
	}
	folder, err := os.Open(filepath.Dir(sockets[0])) // the path may be longer than an address can be
	if err != nil {
		return err
	}
	defer folder.Close()
	filter, err := asking(fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), inside.Socket), w.manifest.Tools[resolve.ToolNix], rounds)
	if err != nil {
		return err
	}
	daemon, err := asking(nixdaemon.DefaultSocket, w.manifest.Tools[resolve.ToolNix], rounds)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| a connection of the filter, with a question | %.2f ms | the daemon itself %.2f ms | %.2f |\n",
		ms(filter), ms(daemon), float64(filter)/float64(daemon))
	filters, err := children(cmd.Process.Pid, inside.Name+"\x00")
	if err != nil || len(filters) != 1 {
		return fmt.Errorf("processes of filters: %v, %w", filters, err)
	}
	pid := filters[0]
	memory, err := resident(pid)
	if err != nil {
		return err
	}
	before, err := ticks(pid)
	if err != nil {
		return err
	}
	time.Sleep(3 * time.Second)
	after, err := ticks(pid)
	fmt.Fprintf(out, "| the filter that nobody asks, for 3 s | %.1f MiB; %d ticks of CPU | | |\n", memory, after-before)
	return err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// asking is the median of what it takes to connect, ask for a path and leave.
func asking(socket, program string, rounds int) (time.Duration, error) {
	path := filepath.Dir(filepath.Dir(program))
	var times []time.Duration
	for range warmUp + rounds {
		time.Sleep(time.Millisecond)
		begin := time.Now()
		c, err := nixdaemon.Dial(context.Background(), socket, nixdaemon.Options{})
		if err != nil {
			return 0, err
		}
		_, err = c.IsValidPath(context.Background(), path)
		c.Close()
		if err != nil {
			return 0, err
		}
		times = append(times, time.Since(begin))
	}
	return median(times[warmUp:]), nil
}

// children are the processes that another one started whose words begin so.
func children(parent int, words string) (pids []int, err error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for word := range strings.FieldsSeq(string(text)) {
			if found, _ := os.ReadFile("/proc/" + word + "/cmdline"); strings.HasPrefix(string(found), words) {
				pid, failed := strconv.Atoi(word)
				pids, err = append(pids, pid), errors.Join(err, failed)
			}
		}
	}
	return pids, err
}

// resident is the memory of a process that lets nobody look closer, in MiB.
func resident(pid int) (mib float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "\nVmRSS:")
	fmt.Sscan(rest, &mib)
	return mib / 1024, err
}

// ticks is the CPU time of a process, in hundredths of a second.
func ticks(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, err := strconv.Atoi(fields[12])
	return user + system, err
}
