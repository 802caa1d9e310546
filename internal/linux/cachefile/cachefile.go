// Package cachefile reads and writes what is kept only to save time: what is
// lost of it is made again, and nothing fails for it.
package cachefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/smallfile"
)

// Absent is the state of a file that is not there.
const Absent = "absent"

// State changes whenever a file is written, replaced, made or removed, or gets
// other rights.
func State(path string) string {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	switch {
	case err == nil:
		return stateOf(uint64(st.Dev), st.Ino, uint64(st.Size), uint64(st.Ctim.Nano()))
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return Absent
	}
	return "unknown: " + err.Error()
}

// stateOf is done for each file that a kept plan was made of, at each start.
func stateOf(parts ...uint64) string {
	const digits = 20
	text := make([]byte, 0, len(parts)*(digits+1))
	for _, p := range parts {
		text = append(strconv.AppendUint(text, p, 10), ':')
	}
	return string(text)
}

// Known reports whether a state is that of a file that is there.
func Known(state string) bool { return state != "" && state[0] >= '0' && state[0] <= '9' }

// most is far more than any cache holds, in bytes.
const most = 1 << 28

// Read is the content of a file; nil where there is none that can be a cache.
func Read(file string) []byte {
	content, err := smallfile.Read(file, most)
	if err != nil {
		return nil
	}
	return content
}

// Write replaces a file, whole or not at all. A cache that cannot be written
// only costs time, so nothing is said of it.
func Write(file string, content []byte) {
	temporary := fmt.Sprintf("%s.%d", file, os.Getpid())
	if os.WriteFile(temporary, content, 0o600) != nil || os.Rename(temporary, file) != nil {
		os.Remove(temporary)
	}
}

// WriteBelow is Write with the file's folder made where it is absent.
func WriteBelow(file string, content []byte) {
	if os.MkdirAll(filepath.Dir(file), 0o700) == nil {
		Write(file, content)
	}
}

// Prune takes the older half of a folder with more than so many files, and with
// it what writers that were killed have left.
func Prune(folder string, most int) {
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) <= most {
		return
	}
	age := func(entry os.DirEntry) time.Time {
		info, err := entry.Info()
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return age(a).Compare(age(b)) })
	for _, entry := range entries[:len(entries)-most/2] {
		os.Remove(filepath.Join(folder, entry.Name()))
	}
}
