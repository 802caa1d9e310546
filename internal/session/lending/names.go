package lending

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"claudebox/internal/agent/login"
	"claudebox/internal/profile"
	"claudebox/internal/workspace/homelink"
)

// largeSecrets are places of secrets whose files are not compared with lent ones: there are many, or they change all
// the time.
var largeSecrets = []string{"~/.claude", "~/.claudebox", "~/.var/app", "~/snap"}

// mostNames is how many files of one place of secrets are looked at.
const mostNames = 2000

// secretOf returns a function that says of which secret file of the user's an inode is. What it needs for that is
// looked for at its first call: few lent files have other names.
func (h Host) secretOf() func(homelink.Inode) string {
	all := sync.OnceValue(func() map[homelink.Inode]string {
		places := append([]string{filepath.Join(h.Config, login.FileName)}, h.Kept...)
		for _, secret := range h.Places {
			system := strings.HasPrefix(secret.Path, "/") && slices.Contains(profile.SecretPaths, secret)
			if system || slices.Contains(largeSecrets, secret.Path) {
				continue
			}
			found, _ := filepath.Glob(h.Facts.Absolute(secret.Path)) // what is no pattern is found as it is
			places = append(places, found...)
		}
		return inodes(places)
	})
	return func(inode homelink.Inode) string {
		if of := all()[inode]; of != "" {
			return "another name of " + profile.Tilde(h.Facts.Home, of)
		}
		return ""
	}
}

// inodes returns the files at and below some places that have another name.
func inodes(places []string) map[homelink.Inode]string {
	found := map[homelink.Inode]string{}
	for _, place := range places {
		left := mostNames
		_ = filepath.WalkDir(place, func(name string, entry fs.DirEntry, err error) error {
			if left--; left < 0 {
				return fs.SkipAll
			}
			if err != nil || !entry.Type().IsRegular() {
				return nil // what the user cannot read the agent cannot
			}
			info, err := entry.Info()
			if err != nil {
				return nil
			}
			if st, is := info.Sys().(*syscall.Stat_t); is && st.Nlink > 1 {
				found[homelink.Inode{Dev: st.Dev, Ino: st.Ino}] = name
			}
			return nil
		})
	}
	return found
}
