package aftermath_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/aftermath"
)

// TestTheProjectsDiskIsNotThereAtTheNextLaunch: what the agent made would count
// as the user's when it is mounted again.
func TestTheProjectsDiskIsNotThereAtTheNextLaunch(t *testing.T) {
	t.Parallel()
	for name, unmount := range map[string]string{
		"no folder":       "mkdir $HOME/d; mv $HOME/p $HOME/d/disk",
		"an empty folder": "mkdir $HOME/d; mv $HOME/p $HOME/d/disk; mkdir $HOME/p",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.begin()
			w.sh(`git init -q; git config core.fsmonitor "$EVIL"; ` + unmount)
			s.Kill()
			for range 2 {
				if r := w.sweep(); len(r) > 0 {
					t.Errorf("%+v", r)
				}
			}
			os.Remove(w.path("p"))
			must.Do(t, os.Rename(w.path("d/disk"), w.path("p")))
			if r := w.sweep(); len(r) != 1 || r[0].Silent() {
				t.Errorf("%+v", r)
			}
			w.sh("git status")
			w.wantNotTaken()
			if got := w.records(); got != "" {
				t.Errorf("records of %s bytes", got)
			}
		})
	}
}

func TestRecordsOfProjectsThatAreGoneAreBounded(t *testing.T) {
	w := newWorld(t)
	day := 24 * time.Hour
	for n := range 20 {
		w.write(fmt.Sprintf(".claudebox/sessions/%d", n), aftermath.RecordOf("/nonexistent", time.Now().Add(-time.Duration(2*n)*day)))
	}
	waiting := func() (count int) {
		w.sweep()
		for size := range strings.FieldsSeq(w.records()) {
			if size != "0" {
				count++
			}
		}
		return count
	}
	if got := waiting(); got != 15 { // the sixteenth is 30 days old
		t.Errorf("%d wait", got)
	}
	for n := range 9 {
		w.write(fmt.Sprintf(".claudebox/sessions/%d", 30+n), aftermath.RecordOf("/nonexistent", time.Now()))
	}
	if got := waiting(); got != 16 {
		t.Errorf("%d wait", got)
	}
}

// TestThePowerIsCutDuringASession: without the record the agent's repositories
// would count as the user's.
func TestThePowerIsCutDuringASession(t *testing.T) {
	w := newWorld(t)
	s := w.begin()
	defer s.End()
	files, err := os.ReadDir(w.path(".claudebox/sessions"))
	must.Do(t, err)
	f, err := os.Open(w.path(".claudebox/sessions/" + files[0].Name()))
	must.Do(t, err)
	defer f.Close()
	var fs unix.Statfs_t
	must.Do(t, unix.Fstatfs(int(f.Fd()), &fs))
	if fs.Type == unix.TMPFS_MAGIC {
		t.Skip("NOT RUN: needs a temporary folder on a disk")
	}
	var pages unix.Cachestat_t
	for range 40 { // the kernel writes by itself after some seconds
		err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &pages, 0)
		if errors.Is(err, unix.ENOSYS) {
			t.Skip("NOT RUN: needs Linux 6.5")
		}
		must.Do(t, err)
		if pages.Cache > 0 && pages.Dirty+pages.Writeback == 0 {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Errorf("the record is not on the disk: %+v", pages)
}

// TestALookLeavesNoLock while programs are being started, which have for some
// milliseconds what was open when they were forked.
func TestALookLeavesNoLock(t *testing.T) {
	w := newWorld(t)
	w.write(".claudebox/sessions/dead", aftermath.RecordOf("/nonexistent", time.Now()))
	var starters sync.WaitGroup
	var end atomic.Bool
	for range 3 {
		starters.Go(func() {
			for !end.Load() {
				exec.Command("true").Run()
			}
		})
	}
	for n := range 10_000 {
		if dead := aftermath.Dead(w.path(".claudebox")); dead != 1 {
			t.Errorf("look %d: %d are dead", n, dead)
			break
		}
	}
	end.Store(true)
	starters.Wait()
}

// TestTheClockIsSetBackDuringASession: what the agent made would be older than
// the session.
func TestTheClockIsSetBackDuringASession(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %t", killed), func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; mkdir node_modules")
			s := w.begin()
			must.Do(t, s.SetBack(time.Hour))
			w.sh(`git init -q node_modules/s; git -C node_modules/s config core.fsmonitor "$EVIL"; git init -q node_modules/bare.git --bare
				mkfifo node_modules/pipe; ln -s /tmp out`)
			r := w.ended(s, killed)
			wantLines(t, r, "taken out node_modules/pipe", "taken out node_modules/s/.git/HEAD", "new out")
			w.sh("git -C node_modules/s status")
			w.wantNotTaken()
		})
	}
}
