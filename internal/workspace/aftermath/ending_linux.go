package aftermath

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
)

const (
	endsFolder = "ends"
	endForm    = "claudebox end 1\n" // before the folders; another form, another number
	wasOver    = ".over"             // behind the name of an end that has made something the user's
	endLasts   = 24 * time.Hour      // how long that is kept: longer than a launch may take
)

// Ending is the end of a session. What the agent made becomes the user's meanwhile, if no other session lives there. So
// none begins in the same folders before it is over: its agent could write in what is the user's, or lead claudebox to
// something else.
type Ending struct {
	file  *os.File // locked
	Yours bool     // something has become the user's: who has looked at the folders before is to look again
}

// BeginEnd begins the end of a session in some folders. It is called before it is asked who else lives there: a session
// that begins notes that first, and then asks for ends.
func BeginEnd(home string, folders []string) (*Ending, error) {
	ends := path.Join(home, endsFolder)
	entries, _ := os.ReadDir(ends)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > endLasts {
			_ = os.Remove(path.Join(ends, e.Name()))
		}
	}
	file, err := store(ends, endForm, folders)
	return &Ending{file: file}, err
}

// Over lets sessions begin again.
func (e *Ending) Over() {
	if e.Yours {
		_ = os.Rename(e.file.Name(), e.file.Name()+wasOver)
	} else {
		_ = os.Remove(e.file.Name())
	}
	release(e.file)
}

// Ends names the ends that there are. A launch asks for them before it looks at any folder, see [Agent.Ends].
func Ends(home string) (names []string) {
	entries, _ := os.ReadDir(path.Join(home, endsFolder))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// EndsError is the error for a session that begins where another one ends, or has ended since it looked at the folder.
type EndsError struct{ file, folder string }

func (e *EndsError) Error() string { return "a session in " + diag.Name(e.folder) + " ends just now" }

// refuseEnding returns such an error. known are the ends before the folder was looked at.
func refuseEnding(home, folder string, known []string) (found error) {
	list, _ := load[[]string](path.Join(home, endsFolder), endForm) // what cannot be opened is over
	for _, s := range list {
		isOver := strings.HasSuffix(s.file.Name(), wasOver) || !s.live
		for _, at := range s.value {
			if pathname.Overlap(at, folder) && !(isOver && slices.Contains(known, path.Base(s.file.Name()))) {
				found = &EndsError{s.file.Name(), at}
			}
		}
		release(s.file)
	}
	return found
}

// Await waits until the end is over that an error is about. told is called if that takes long.
func Await(err error, told func(why string)) {
	of := (*EndsError)(nil)
	if !errors.As(err, &of) {
		return
	}
	file, err := os.Open(of.file)
	if err != nil {
		return // it is
	}
	defer file.Close()
	const long = time.Second
	slow := time.AfterFunc(long, func() { told(of.Error() + ": this one waits until it is over") })
	defer slow.Stop()
	for err := error(unix.EINTR); err == unix.EINTR; {
		err = unix.Flock(int(file.Fd()), unix.LOCK_SH)
	}
}
