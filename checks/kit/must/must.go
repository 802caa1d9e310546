// Package must is for what a test sets up and waits for: each function does one thing, and ends the test at once where that
// fails. Only tests import it. It imports the standard library only.
package must

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Do ends the test where one of these went wrong.
func Do(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Read is what a file holds.
func Read(t testing.TB, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	Do(t, err)
	return string(content)
}

// Write writes a file that is the user's alone, with the folders that it lies in.
func Write(t testing.TB, file, content string) {
	t.Helper()
	Do(t, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600))
}

// Program writes a program that every user may start, with the folders that it lies in. Meanwhile no other test starts
// a child: that would have the file open for writing until it has become a program itself, and execve(2) would fail with
// ETXTBSY.
func Program(t testing.TB, file, content string) {
	t.Helper()
	Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
	syscall.ForkLock.RLock()
	err := os.WriteFile(file, []byte(content), 0o755)
	syscall.ForkLock.RUnlock()
	Do(t, err)
}

// Folder is a new folder, gone when the test ends, by its path without links: what it lies in may be one.
func Folder(t testing.TB) string {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	Do(t, err)
	return folder
}

// Socket is the path of a socket that is to be made, gone when the test ends. It is short, as the kernel wants it
// (sockaddr_un(7): 107 bytes), also where the test's name is long.
func Socket(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "")
	Do(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	return filepath.Join(folder, "socket")
}

// patience is how long [Await] waits. It only bounds a hang; no test measures time by it.
const patience = 4 * time.Minute

// Await waits until something is so.
func Await(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Appear waits until a file is there.
func Appear(t testing.TB, file string) {
	t.Helper()
	Await(t, file+" is there", func() bool {
		_, err := os.Lstat(file)
		return err == nil
	})
}
