package seccomp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/sandbox/seccomp"
)

// sandboxed is a bwrap that runs words under the filter, with the host's
// files read-only and a folder of its own to work in.
func sandboxed(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	filter, err := os.CreateTemp(t.TempDir(), "filter")
	must.Do(t, err)
	t.Cleanup(func() { filter.Close() })
	if _, err := filter.Write(seccomp.Filter()); err != nil {
		t.Fatal(err)
	}
	if _, err := filter.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	cmd := exec.Command("bwrap", append([]string{
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", work, work, "--chdir", work,
		"--setenv", "HOME", work, "--setenv", "TMPDIR", work, "--unshare-user", "--unshare-pid", "--unshare-ipc",
		"--cap-drop", "ALL", "--die-with-parent", "--seccomp", "3", "--",
	}, words...)...)
	cmd.ExtraFiles = []*os.File{filter}
	return cmd
}

// What an agent runs all day must not notice the filter: each program does
// what its runtime asks of the kernel with threads, children, sockets,
// watches and memory maps.
func TestOrdinaryWorkRunsUnderTheFilter(t *testing.T) {
	if out, err := sandboxed(t, "true").CombinedOutput(); err != nil {
		t.Skipf("skipped: bwrap cannot make a sandbox here: %v: %s", err, out)
	}
	self, err := os.Executable()
	must.Do(t, err)
	source := filepath.Join(t.TempDir(), "a.c")
	must.Write(t, source, "int main(void){return 0;}\n")
	for name, words := range map[string][]string{
		"a Go program": {self, "-test.run=^$"},
		"node: threads, children, a server, a watch": {"node", "-e", nodeWork},
		"bun: threads, children, a server, a watch":  {"bun", "-e", nodeWork},
		"python: processes, threads, sockets":        {"python3", "-c", pythonWork},
		"git: a repository with commits and gc":      {"sh", "-ec", gitWork},
		"a C compiler":                               {"cc", source, "-o", "a"},
		"strace follows children":                    {"strace", "-f", "-o", "trace", "sh", "-c", "true | true"},
		"strace replaces a call's result":            {"strace", "-fo", "trace", "-e", "inject=getuid:retval=4242", "sh", "-c", `test "$(id -ru)" = 4242`},
		"gdb runs a program":                         {"gdb", "-batch", "-return-child-result", "-ex", "run", "true"},
		"nix evaluates":                              {"nix-instantiate", "--store", "dummy://", "--eval", "-E", "1 + 1"},
		"ip lists addresses by netlink":              {"ip", "address"},
		"ss lists sockets without netlink":           {"ss", "-tln"},
		"the agent tells its version":                {"claude", "--version"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(words[0]); err != nil {
				t.Skipf("skipped: no %s here", words[0])
			}
			if out, err := sandboxed(t, words...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

const nodeWork = `
const {Worker} = require("worker_threads"), {spawnSync} = require("child_process")
const fs = require("fs"), http = require("http"), os = require("os")
if (spawnSync("sh", ["-c", "exit 7"]).status !== 7) throw new Error("child")
os.networkInterfaces()
const watch = fs.watch(".", () => {
  watch.close()
  const server = http.createServer((q, s) => s.end("ok")).listen(0, "127.0.0.1", () =>
    http.get(server.address(), r => r.resume().on("end", () => {
      new Worker("process.exit(3)", {eval: true}).on("exit", n => process.exit(n - 3))
    })))
})
setTimeout(() => fs.promises.writeFile("f", "x"), 20)
setTimeout(() => { throw new Error("stuck") }, 20000).unref()
`

const pythonWork = `
import multiprocessing, threading, subprocess, socket, tempfile
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    threading.Thread(target=lambda: None).start()
    subprocess.run(["true"], check=True, start_new_session=True)
    socket.getaddrinfo("127.0.0.1", 80)
    a, b = socket.socketpair()
    socket.if_nameindex()
    tempfile.TemporaryFile().write(b"x")
`

const gitWork = `
git init -q r; cd r
git config user.name n; git config user.email n@localhost
for i in 1 2; do echo $i >f; git add f; git commit -qm $i; done
git gc -q; git worktree add -q ../w; git clone -q . ../c; git -C ../c log --oneline
`
