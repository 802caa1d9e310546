package state

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"claudebox/internal/beneath"
	"claudebox/internal/diag"
)

// Summary is one kept instance.
type Summary struct {
	ID       string
	Dir      string
	Root     string // canonical root of its project; empty when unknown
	LastUsed time.Time
	Live     bool // a session runs
}

// List gives the kept instances below CLAUDEBOX_HOME, by id. None is no
// error.
func List(home string) ([]Summary, error) {
	parent := path.Join(home, instances)
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &diag.Error{Op: "list the instances", Err: err, Remedy: "make " + parent + " readable for you"}
	}
	var list []Summary
	for _, e := range entries {
		if s, ok := summary(path.Join(parent, e.Name())); ok && e.Name()[0] != '.' {
			list = append(list, s)
		}
	}
	return list, nil
}

func summary(at string) (Summary, bool) {
	dir, err := beneath.Open(at)
	if err != nil {
		return Summary{}, false
	}
	defer dir.Close()
	s := Summary{ID: path.Base(at), Dir: at, Root: readRecord(dir).Root, Live: alive(at)}
	if info, err := os.Lstat(dir.Join(liveName)); err == nil {
		s.LastUsed = info.ModTime()
	}
	return s, true
}
