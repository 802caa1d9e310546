package aftermath

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/state"
	"claudebox/internal/linux/beneath"
)

const inside = "inside"

// TrackedInside are the names that sessions added to the git index of a
// project. The index is the agent's to write, so that a file is in it does not
// say that the user wants it read or written inside: such a file stays
// protected, or hidden. What is in no index any more is forgotten.
func TrackedInside(home, dir string) []string { return rememberedAt(home, state.ID(dir)) }

// StillHidden are the files of a project that were hidden for a reason that an
// agent could take away. They stay hidden as long as they exist.
func StillHidden(home, dir string) []string { return rememberedAt(home, hiddenID(dir)) }

func hiddenID(dir string) string { return state.ID(dir) + "-hidden" }

func rememberedAt(home, id string) []string {
	at, err := beneath.Open(path.Join(home, inside))
	if err != nil {
		return nil
	}
	defer at.Close()
	return readInside(at, id)
}

func readInside(at *beneath.Folder, id string) (names []string) {
	content, err := at.Read(id, 16<<20)
	if err != nil || json.Unmarshal(content, &names) != nil {
		return nil
	}
	return names
}

// remember adds names to a list, and forgets those that do not count any more.
func remember(home, id string, added []string, counts func(name string) bool) error {
	folder := path.Join(home, inside)
	if len(added) == 0 {
		if _, err := os.Lstat(path.Join(folder, id)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err := os.Mkdir(folder, privateDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	at, err := beneath.Open(folder)
	if err != nil {
		return err
	}
	defer at.Close()
	lock, err := at.OpenDir(".")
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	names := append(readInside(at, id), added...)
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !counts(name) })
	if len(names) == 0 {
		err := at.Remove(id)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	content, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return at.Replace(id, append(content, '\n'), 0o600)
}
