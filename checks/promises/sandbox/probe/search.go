package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// skipped are folders whose contents are public (the store) or looked at in
// another way (processes).
var skipped = []string{"/nix/store", "/proc"}

// search prints every place that holds the canary: names and contents of files,
// targets of links, and what the kernel tells of each process. It ends with a
// line that says how much it looked at, so that a blind search does not pass.
func search(canary string) error {
	s := seeker{canary: []byte(canary)}
	if err := s.files("/"); err != nil {
		return err
	}
	if err := s.processes(); err != nil {
		return err
	}
	fmt.Printf("searched %d files, %d processes\n", s.seenFiles, s.seenProcesses)
	return nil
}

type seeker struct {
	canary                   []byte
	seenFiles, seenProcesses int
}

func (s *seeker) found(where string) {
	fmt.Println("found:", strings.ReplaceAll(where, string(s.canary), "CANARY"))
}

func (s *seeker) text(where, text string) {
	if strings.Contains(text, string(s.canary)) {
		s.found(where)
	}
}

// files walks a folder. The kind of an entry is asked of the entry itself: a
// folder's listing tells of what lies below a mount, and a device for a file
// would never end.
func (s *seeker) files(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		s.text("name "+path, filepath.Base(path))
		if err != nil {
			return nil // what cannot be read tells nothing
		}
		if entry.IsDir() && skip(path) {
			return filepath.SkipDir
		}
		s.file(path)
		return nil
	})
}

func (s *seeker) file(path string) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
	case info.Mode().Type() == fs.ModeSymlink:
		target, _ := os.Readlink(path)
		s.text("link "+path, target)
	case info.Mode().IsRegular():
		s.seenFiles++
		s.content(path)
	}
}

func skip(path string) bool {
	for _, folder := range skipped {
		if path == folder {
			return true
		}
	}
	return false
}

// content looks into a file, in parts that overlap by the canary's length.
func (s *seeker) content(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	s.stream("content of "+path, f)
}

func (s *seeker) stream(where string, r io.Reader) {
	buffer := make([]byte, 0, 1<<20)
	for {
		n, err := r.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if bytes.Contains(buffer, s.canary) {
			s.found(where)
			return
		}
		if err != nil || n == 0 {
			return
		}
		if keep := len(s.canary); len(buffer) > keep {
			buffer = append(buffer[:0], buffer[len(buffer)-keep:]...)
		}
	}
}

// told are files of proc(5) that tell of a process.
var told = []string{"environ", "cmdline", "comm", "maps", "mountinfo", "mountstats", "cgroup", "status", "stat", "auxv"}

func (s *seeker) processes() error {
	pids, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, dir := range pids {
		s.seenProcesses++
		for _, name := range told {
			s.content(filepath.Join(dir, name))
		}
		for _, name := range []string{"cwd", "root", "exe"} {
			target, _ := os.Readlink(filepath.Join(dir, name))
			s.text("link "+dir+"/"+name, target)
		}
		s.descriptors(dir)
		if dir != "/proc/"+strconv.Itoa(os.Getpid()) {
			s.memory(dir)
		}
	}
	return nil
}

// descriptors looks through what a process has open. A folder is a finding by
// itself: everything below it can be reached.
func (s *seeker) descriptors(dir string) {
	own := dir == "/proc/"+strconv.Itoa(os.Getpid())
	fds, _ := filepath.Glob(dir + "/fd/*")
	for _, fd := range fds {
		target, _ := os.Readlink(fd)
		s.text("target of "+fd, target)
		info, err := os.Stat(fd)
		switch {
		case err != nil:
		case info.IsDir() && !own:
			fmt.Println("found: a folder at", fd)
		case info.Mode().IsRegular():
			s.content(fd)
		}
	}
}

// memory looks through what may be read of another process by ptrace's rules.
func (s *seeker) memory(dir string) {
	maps, _ := os.ReadFile(dir + "/maps")
	mem, err := os.Open(dir + "/mem")
	if err != nil {
		return
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n == 3 && mode[0] == 'r' {
			s.stream("memory of "+dir, io.NewSectionReader(mem, from, to-from))
		}
	}
}
