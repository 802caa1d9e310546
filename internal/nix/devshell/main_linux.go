package devshell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// Exit statuses, as claudebox has them.
const (
	statusRefused  = 125
	statusNoRun    = 126
	statusNotFound = 127
)

// Main makes the environment of the dev shell of the request, and becomes the program of words, a path and its
// arguments. It returns an exit status if it cannot.
func Main(words []string) int {
	text, err := os.ReadFile(RequestInner)
	var r Request
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || len(words) == 0 {
		diag.Print(os.Stderr, diag.Wrap("begin in a sandbox", err, "report this with the output of `claudebox check`"))
		return statusRefused
	}
	launch := environmentOf(os.Environ())
	env, record, err := prepare(r, launch, os.Stderr)
	if err != nil {
		tell(os.Stderr, r, record, err)
		if r.Require {
			return statusRefused
		}
		env = launch
	}
	if r.Typed && err == nil {
		words = append(words, "--rcfile", filepath.Join(r.State, typedName))
	}
	env["PATH"] = joined(env["PATH"], Programs)
	env[Variable] = summary(record, err)
	// Without it the agent is only told less.
	_ = os.WriteFile(filepath.Join(Rules, "devshell.md"), []byte(notes(record, err)), 0o600)
	err = unix.Exec(words[0], words, env.list())
	diag.Print(os.Stderr, diag.Wrap("start "+words[0], err, ""))
	if errors.Is(err, unix.ENOENT) {
		return statusNotFound
	}
	return statusNoRun
}

// prepare returns the agent's environment with the dev shell in it, and what is known of that.
func prepare(r Request, launch environment, stderr *os.File) (environment, Record, error) {
	t, err := choose(r)
	if err != nil {
		return nil, keepNone(r, t, err), err
	}
	link := filepath.Join(r.State, linkName)
	record := readRecord(r.State)
	fresh := record.Key != keyFor(r, t, record) || r.Refresh || record.Failed == "" && !exists(link)
	if fresh {
		if record, err = build(r, t, stderr); err != nil {
			return nil, record, err
		}
	} else if record.Failed != "" {
		return nil, record, failure(record)
	}
	s, err := readShell(link)
	if err != nil {
		return nil, record, fmt.Errorf("what Nix made of it cannot be read: %w", err)
	}
	was := record
	env, err := enter(r, s, launch, &record)
	if fresh || !slices.Equal(was.Left, record.Left) || was.Hook != record.Hook {
		_ = record.write(r.State) // it is only shown
		if len(record.Left) > 0 {
			diag.Note(stderr, "the dev shell "+record.Shown+" does not bring in "+diag.Some(record.Left, 6)+
				"; `devshell: {vars: […]}` in the profile would")
		}
	}
	if record.Hook != "" {
		diag.Note(stderr, "the hook of the dev shell "+record.Shown+" "+record.Hook+
			", and what it set is left out; `claudebox devshell` shows what it said")
		if r.Require {
			return nil, record, errors.New("its hook " + record.Hook)
		}
	}
	return env, record, err
}

// keepNone keeps why there is no dev shell to evaluate, which is found out anew each time.
func keepNone(r Request, t target, why error) Record {
	record := Record{Shown: t.shown, Rule: t.rule, Failed: why.Error(), Quiet: true, Made: time.Now()}
	if was := readRecord(r.State); was.Failed != record.Failed && os.MkdirAll(r.State, 0o755) == nil {
		_ = record.write(r.State)
	}
	return record
}

// keyFor is the key of a target, by the files that a record has. Where an evaluation failed, the tier counts, too.
func keyFor(r Request, t target, record Record) string {
	k := key(r, t, filesOf(r, t, record.Files))
	if record.Failed != "" {
		k += " " + r.Network
	}
	return k
}

// build evaluates a target, and keeps what came of it: also that it failed, as the next launch would wait for the same.
func build(r Request, t target, stderr *os.File) (Record, error) {
	record := Record{Shown: t.shown, Rule: t.rule, Made: time.Now()}
	if err := anew(r.State); err != nil {
		return record, err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Duration(r.Wait)*time.Second,
		fmt.Errorf("it took longer than %d s", r.Wait))
	defer cancel()
	line := newProgress(stderr, t.shown)
	ctx, skipped := interruptible(ctx, line.terminal)
	defer skipped()
	files, err := evaluate(ctx, r, t, line.show)
	line.clear()
	record.Files = files
	switch {
	case errors.Is(err, errSkipped):
		return record, errors.New("you skipped it")
	case errors.Is(err, errNoSuch) && t.rule == "flake.nix":
		record.Quiet = true
		fallthrough
	case err != nil:
		record.Failed = err.Error()
		record.Key = keyFor(r, t, record)
		_ = record.write(r.State)
		return record, failure(record)
	}
	record.Key = keyFor(r, t, record)
	return record, record.write(r.State)
}

// failure is the error of a record.
func failure(record Record) error {
	if record.Quiet {
		return noShell(record.Failed)
	}
	return errors.New(record.Failed)
}

// enter merges a shell into the launch's environment, runs its hook, and says in the record what came.
func enter(r Request, s shell, launch environment, record *Record) (environment, error) {
	env, came, left := merge(r, launch, launch, s.exported())
	record.Hook = ""
	if s.hook() != "" && r.Hook {
		hooked, err := runHook(r, s, env)
		if err != nil {
			record.Hook = err.Error()
		} else {
			var more, others []string
			env, more, others = merge(r, launch, env, hooked)
			came, left = append(came, more...), append(left, others...)
		}
	}
	if r.Typed {
		if err := write(filepath.Join(r.State, typedName), s.forTyping(r, env)); err != nil {
			return nil, err
		}
	}
	for _, list := range []*[]string{&came, &left} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	record.Variables, record.Left = came, left
	if record.Programs == nil {
		record.Programs = programs(launch["PATH"], env["PATH"])
	}
	return env, nil
}

// mostPrograms bounds how many programs are counted.
const mostPrograms = 2000

// programs lists what the folders of PATH have that were not in it before.
func programs(before, after string) []string {
	list := []string{}
	known := strings.Split(before, ":")
	for dir := range strings.SplitSeq(after, ":") {
		if slices.Contains(known, dir) {
			continue
		}
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if len(list) < mostPrograms && entry.Name()[0] != '.' && !slices.Contains(list, entry.Name()) {
				list = append(list, entry.Name())
			}
		}
	}
	slices.Sort(list)
	return list
}

// anew makes an empty folder in the place of whatever an earlier session left there. The environments that its links
// kept can be collected.
func anew(folder string) error {
	_ = os.Chmod(folder, 0o700)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.MkdirAll(folder, 0o755)
}

// tell prints the one line of a dev shell that there is not, unless nobody would miss it.
func tell(stderr io.Writer, r Request, record Record, err error) {
	var none noShell
	switch is := errors.As(err, &none); {
	case is && !r.Require && (none == noneNamed || none.Error() == errNoSuch.Error()):
		return
	case is && !r.Require:
		diag.Note(stderr, "no dev shell: "+diag.Visible(none.Error()))
		return
	case is:
		err = errors.New(none.Error())
	}
	if r.Require {
		diag.Print(stderr, &diag.Error{
			Op: "enter the dev shell " + record.Shown, Err: err,
			Remedy: "see `claudebox devshell`, or leave it out with --no-devshell",
		})
		return
	}
	diag.Note(stderr, "the session starts without the dev shell "+record.Shown+": "+diag.Visible(err.Error())+
		"; `claudebox devshell` shows all")
}

// summary is the value of [Variable].
func summary(record Record, err error) string {
	if err != nil {
		return "none: " + diag.Visible(strings.TrimSpace(record.Shown+" "+err.Error()))
	}
	return record.Summary()
}

// mostNamed is how many programs and variables the agent is told of by name.
const mostNamed = 40

// notes is what the agent reads of the dev shell.
func notes(record Record, err error) string {
	var none noShell
	if errors.As(err, &none) {
		return "There is no dev shell of the project in this environment: " + none.Error() + ".\n"
	}
	if err != nil {
		return "The dev shell of the project, " + record.Shown + ", is not in this environment: " +
			diag.Visible(err.Error()) + ". The user sees all with `claudebox devshell`; `nix develop " + record.Shown +
			"` may say more. What you mend counts from the next session on.\n"
	}
	text := "The environment is the project's dev shell " + record.Shown + ", as by `nix develop`. Its programs: " +
		diag.Some(record.Programs, mostNamed) + ". Its variables: " + diag.Some(record.Variables, mostNamed) + ".\n"
	if len(record.Left) > 0 {
		text += "Not taken over from it: " + diag.Some(record.Left, mostNamed) + ".\n"
	}
	if record.Hook != "" {
		text += "Its hook " + record.Hook + ".\n"
	}
	return text + "For another shell of the flake: `nix develop .#other -c PROGRAM`. A change of it counts here from the " +
		"next session on, and in `nix develop -c PROGRAM` at once.\n"
}

// interruptible returns a context that ends with Ctrl-C where a person waits at a terminal. Elsewhere Ctrl-C ends all.
func interruptible(ctx context.Context, terminal bool) (context.Context, func()) {
	if !terminal {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	pressed := make(chan os.Signal, 1)
	signal.Notify(pressed, unix.SIGINT)
	go func() {
		if _, is := <-pressed; is {
			cancel(errSkipped)
		}
	}()
	return ctx, func() {
		signal.Stop(pressed)
		close(pressed)
		cancel(nil)
	}
}
