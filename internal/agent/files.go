package agent

import (
	"io"
	"io/fs"
	"os"
)

// Files is the part of a host's file system that the lookup needs. Names are
// absolute.
type Files interface {
	Lstat(name string) (fs.FileInfo, error) // Sys is a *syscall.Stat_t
	Readlink(name string) (string, error)
	Open(name string) (File, error)
}

// File is an open file, read at places.
type File interface {
	io.ReaderAt
	io.Closer
}

// hostFiles is the host's file system.
type hostFiles struct{}

func (hostFiles) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }
func (hostFiles) Readlink(name string) (string, error)   { return os.Readlink(name) }
func (hostFiles) Open(name string) (File, error)         { return os.Open(name) }

// seen looks at each name once: what was judged is what is used, and a system
// call is saved for every folder that two paths share.
type seen struct {
	Files
	looks map[string]look
}

type look struct {
	info fs.FileInfo
	err  error
}

func (s seen) Lstat(name string) (fs.FileInfo, error) {
	l, ok := s.looks[name]
	if !ok {
		l.info, l.err = s.Files.Lstat(name)
		s.looks[name] = l
	}
	return l.info, l.err
}
