package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// list prints everything below a folder but the store and processes: mode,
// owner, path, target.
func list(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		target := ""
		if info.Mode().Type() == fs.ModeSymlink {
			text, err := os.Readlink(path)
			if err != nil {
				return err
			}
			target = " -> " + text
		}
		fmt.Printf("%v %d %s%s\n", info.Mode(), info.Sys().(*syscall.Stat_t).Uid, path, target)
		if entry.IsDir() && skip(path) {
			return filepath.SkipDir
		}
		return nil
	})
}
