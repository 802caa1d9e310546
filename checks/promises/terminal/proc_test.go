//go:build lab

package terminal_test

import (
	"strings"
	"testing"
)

// inContainer is a script that is process 1 of a pid namespace, where there is no process 2, as in most containers. It
// launches the words that follow it once, with a shell that ends with 3; then again and again, and kills each launch
// while it is being made. It is left alone if nothing of them survives.
const inContainer = `
	(:); (:)
	[[ ! -e /proc/2 ]] || echo "there is a process 2"
	"$@" shell -- sh -c 'exit 3'
	echo "status $?"
	for n in {1..40}; do
		"$@" shell -- sleep inf &
		sleep "0.0$((RANDOM % 100))"
		kill -9 $!
		wait $!
	done 2>/dev/null
	for n in {1..100}; do
		left=(/proc/[0-9]*)
		[[ ${#left[@]} != 1 ]] || break
		sleep 0.1
	done
	echo "left: ${left[*]}"`

func TestNothingSurvivesClaudeboxWhereProcHasNoProcess2(t *testing.T) {
	w := newWorld(t)
	w.sleeper(t)
	launch := w.claudebox("-y").Args
	words := append(strings.Fields("unshare --user --map-current-user --pid --fork --mount --mount-proc bash -c"), inContainer, "bash")
	got := run(t, w.command(append(words, launch...)...))
	if want := "status 3\nleft: /proc/1\n"; got.stdout != want {
		t.Errorf("got %q, want %q\n%s", got.stdout, want, got.stderr)
	}
}
