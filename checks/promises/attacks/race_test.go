//go:build lab

package attacks_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

// A live session exchanges a folder of the project and a link out of it, as
// fast as it can, while the next one is launched.
func TestAMountedFolderOfTheProjectIsExchangedDuringTheLaunch(t *testing.T) {
	w := newWorld(t)
	flags := w.profile("mounts: [{host: ./data, sandbox: /data, mode: rw}]")
	w.folder("project/data")
	w.link("../documents", "project/other")
	end := make(chan struct{})
	var agent sync.WaitGroup
	agent.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, w.path("project/data"), unix.AT_FDCWD, w.path("project/other"), unix.RENAME_EXCHANGE)
				time.Sleep(10 * time.Microsecond) // without it all look-ups of the machine begin again and again
			}
		}
	})
	defer agent.Wait()
	defer close(end)
	for range 60 {
		w.wantNoCanary(w.attack("cat /data/letter", flags...))
	}
}

// The user's git configuration includes a file of the project.
func TestAnIncludedFileBecomesAPipeOrEndless(t *testing.T) {
	for name, plant := range map[string]func(file string) error{
		"pipe":    func(file string) error { return unix.Mkfifo(file, 0o600) },
		"endless": func(file string) error { return os.WriteFile(file, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			file := w.path("project/team.gitconfig")
			w.write(".gitconfig", "[include]\n\tpath = "+file+"\n")
			must.Do(t, plant(file))
			if name == "endless" {
				must.Do(t, os.Truncate(file, 1<<40))
			}
			w.wantRefused(w.attack("true"), map[string]string{"pipe": "read git", "endless": "file too large"}[name])
		})
	}
}

// claudebox's own folders are named by variables, which may lead into the
// project before anything is there.
func TestClaudeboxsOwnFoldersInTheProjectThroughALink(t *testing.T) {
	for _, variable := range []string{"CLAUDEBOX_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"} {
		for _, tail := range []string{"", "/deeper"} {
			t.Run(variable+tail, func(t *testing.T) {
				w := newWorld(t)
				w.folder("project/inner")
				w.link("project/inner", "outer")
				w.wantRefused(w.with(variable+"="+w.path("outer")+tail).attack("true"), "claudebox's own")
			})
		}
	}
}
