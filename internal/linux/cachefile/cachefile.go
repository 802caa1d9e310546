// Package cachefile reads and writes caches: files that are kept only to save time. A cache that is missing, or cannot
// be read or written, is not an error: the caller makes its content again.
package cachefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/smallfile"
)

// Absent is the state of a file that is not there.
const Absent = "absent"

// State returns a text that changes whenever the file at path is written, replaced, made or removed, or gets other
// rights. Links are followed. It is [Absent] if there is no file, and "unknown: " with an error if the file cannot be
// examined.
func State(path string) string {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	switch {
	case err == nil:
		return textOf(&st)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return Absent
	}
	return "unknown: " + err.Error()
}

// SettledState is [State] for what is read afterwards and kept. Of a file that was changed a moment ago another change
// may not be seen in its state (see [beneath.IsSettled]): what it returns of that file is no other state.
func SettledState(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return State(path)
	}
	return settled(&st, time.Now())
}

func settled(st *unix.Stat_t, now time.Time) string {
	text := textOf(st)
	if !beneath.IsSettled(st.Ctim.Nano(), now.UnixNano()) {
		text = fmt.Sprint(text, " at ", now.UnixNano())
	}
	return text
}

func textOf(st *unix.Stat_t) string {
	return fmt.Sprintf("%d:%d:%d:%d", st.Dev, st.Ino, st.Size, st.Ctim.Nano())
}

// Exists reports whether a result of [State] is that of a file that exists: only such a text begins with a digit.
func Exists(state string) bool { return state != "" && state[0] >= '0' && state[0] <= '9' }

// sizeLimit is far more than any cache holds, in bytes.
const sizeLimit = 1 << 28

// Read returns the content of a file; nil if it does not exist, cannot be read or is too large for a cache.
func Read(file string) []byte {
	content, _ := smallfile.Read(file, sizeLimit)
	return content
}

// Write replaces a file, whole or not at all, and makes its folder if there is none. It reports no errors: a cache
// that cannot be written only costs time. What writers left that were killed goes.
func Write(file string, content []byte) {
	left, _ := filepath.Glob(file + ".[0-9]*")
	for _, name := range left {
		pid, err := strconv.Atoi(name[len(file)+1:])
		if state, _ := proctree.State(pid); err == nil && state == proctree.Gone {
			os.Remove(name)
		}
	}
	temporary := fmt.Sprintf("%s.%d", file, os.Getpid())
	if os.MkdirAll(filepath.Dir(file), 0o700) != nil || os.WriteFile(temporary, content, 0o600) != nil ||
		os.Rename(temporary, file) != nil {
		os.Remove(temporary)
	}
}

// Keep writes a value to a file, for [Find].
func Keep(file string, value any) {
	content := Encode(value)
	Write(file, binary.LittleEndian.AppendUint32(content, sumOf(content)))
}

// Find sets *pointer to the value that [Keep] wrote to a file. It reports false if there is none, if the file is
// damaged, or if another user may have written it: then *pointer must not be used. What decides on what an agent sees
// is kept by it.
func Find(file string, pointer any) bool {
	const sum = 4 // bytes
	fd, err := unix.Open(file, smallfile.Flags, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || int(st.Uid) != unix.Getuid() || st.Mode&0o022 != 0 {
		return false
	}
	content, err := smallfile.ReadFD(fd, sizeLimit)
	if err != nil || len(content) < sum {
		return false
	}
	content, end := content[:len(content)-sum], content[len(content)-sum:]
	return binary.LittleEndian.Uint32(end) == sumOf(content) && Decode(content, pointer)
}

// sumOf is no protection from a person: it finds what a disk or a crash has damaged.
func sumOf(content []byte) uint32 { return crc32.ChecksumIEEE(content) }

// Prune removes the oldest files of a folder that has more than the given number, so that half of that number stay.
// Files that killed writers left count as well.
func Prune(folder string, files int) {
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) <= files {
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
	for _, entry := range entries[:len(entries)-files/2] {
		os.Remove(filepath.Join(folder, entry.Name()))
	}
}
