package login

import (
	"bytes"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
)

// settled is how long a session must last before its login is watched, unless
// the login is about to be renewed. Closing an inotify descriptor waits for
// the kernel's grace period, some 15 ms, which a short command would feel.
const settled = time.Second

// due is how long before its end Claude Code renews a login: five minutes
// (measured), and what a start may take.
const due = 6 * time.Minute

// Watch keeps both files equal until [Keeper.Close]. It is called when the
// sandbox has been started, so that it costs the start nothing.
func (k *Keeper) Watch() {
	k.mu.Lock()
	defer k.mu.Unlock()
	wait := settled
	if time.Until(time.UnixMilli(k.readRecord().Expires)) < due {
		wait = 0
	}
	k.first = time.AfterFunc(wait, k.begin)
}

// begin watches the folders, not the files: writers replace them.
func (k *Keeper) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done {
		return
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return // the end of the session still brings them together
	}
	watched := map[int32]func(name string, gone bool){}
	for dir, changed := range map[string]func(string, bool){
		k.host.Path():   k.hostChanged,
		k.inside.Path(): k.insideChanged,
	} {
		wd, err := unix.InotifyAddWatch(fd, dir,
			unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE|unix.IN_ONLYDIR)
		if err != nil {
			unix.Close(fd)
			return
		}
		watched[int32(wd)] = changed
	}
	k.watch = os.NewFile(uintptr(fd), "inotify")
	k.lookAround()
	go k.serve(k.watch, watched)
}

func (k *Keeper) stop() {
	k.done = true
	for _, timer := range []*time.Timer{k.first, k.later} {
		if timer != nil {
			timer.Stop()
		}
	}
	if k.watch != nil {
		k.watch.Close()
	}
}

// serve hands events on, in their order, until the watch is closed.
func (k *Keeper) serve(watch *os.File, watched map[int32]func(string, bool)) {
	events := make([]byte, 4096)
	for {
		n, err := watch.Read(events)
		if err != nil {
			return
		}
		for rest := events[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&rest[0]))
			end := unix.SizeofInotifyEvent + int(event.Len)
			name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:end], "\x00"))
			if event.Mask&unix.IN_Q_OVERFLOW != 0 {
				k.handle(func(string, bool) { k.lookAround() }, "", false)
			}
			k.handle(watched[event.Wd], name, event.Mask&unix.IN_DELETE != 0)
			rest = rest[end:]
		}
	}
}

func (k *Keeper) handle(changed func(string, bool), name string, gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.done && changed != nil {
		changed(name, gone)
	}
}

// lookAround does what events would have done that were missed.
func (k *Keeper) lookAround() {
	if now := renews(k.host); now || k.mirror != nil {
		k.hostChanged(refreshLock, !now)
	}
	if now := renews(k.inside); now || k.lent != nil {
		k.insideChanged(refreshLock, !now)
	}
	k.followLater()
}

// follow brings both files together. What fails is tried again at the next
// change, and told at the end.
func (k *Keeper) follow() { _ = k.sync(running) }

// followLater follows when a login that was made inside is whole: Claude Code
// writes the tokens, and then whose they are, to another file.
func (k *Keeper) followLater() {
	if k.later != nil {
		k.later.Stop()
	}
	k.later = time.AfterFunc(settled, func() { k.handle(func(string, bool) { k.follow() }, "", false) })
}

// insideChanged follows what the agent does. While it renews, the user's lock
// is held for it, so that neither Claude Code outside nor another sandbox does
// the same.
func (k *Keeper) insideChanged(name string, gone bool) {
	switch {
	case name == FileName && renews(k.inside):
		k.follow()
	case name == FileName:
		k.followLater()
	case name != refreshLock:
	case gone:
		k.follow()
		k.lent.release()
		k.lent = nil
	case k.lent == nil && renews(k.inside):
		k.lent, _ = claim(k.host, refreshLock, ofAgent) // nil: another renews at the same time
	}
}

// hostChanged follows the user's folder. While somebody else renews, the
// agent's lock is held, so that it waits and then has what is new.
func (k *Keeper) hostChanged(name string, gone bool) {
	switch {
	case name == k.name:
		k.follow()
	case name != refreshLock || k.lent != nil:
	case gone:
		k.follow()
		k.mirror.release()
		k.mirror = nil
	case k.mirror == nil && renews(k.host):
		k.mirror, _ = claim(k.inside, refreshLock, ofMirror) // nil: the agent renews at the same time
	}
}

// renews reports whether a login is being renewed in a folder, by somebody who
// works there.
func renews(dir *beneath.Folder) bool {
	h := holder(dir, refreshLock)
	return h.alive && !h.mirror
}
