// Canary searches everything that a process can reach for some texts, again and
// again until a file is there: every file, and of every process its environment,
// words, descriptors and memory.
//
//	canary STOP REST HEX...
//
// Between two rounds it rests so many times as long as a round took. The texts
// come in hexadecimal digits, so that they are not found in the words of whoever
// starts it. It prints where each was found, by its number.
//
//	canary plant STOP HEX
//
// puts a text into each kind of place that is searched, says "there", and stays until a file is there:
// what is not found then is not searched.
//
//	canary print HEX
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	switch os.Args[1] {
	case "plant":
		if err := plant(os.Args[2], os.Args[3]); err != nil {
			panic(err)
		}
		return
	case "print":
		fmt.Print(plain(os.Args[2]))
		return
	}
	stop := os.Args[1]
	rest, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	s := search{found: map[string]bool{}}
	for _, digits := range os.Args[3:] {
		s.texts = append(s.texts, []byte(plain(digits)))
	}
	for rounds := 1; ; rounds++ {
		begun := time.Now()
		s.processes()
		s.files()
		if stopped(stop, time.Since(begun)*time.Duration(rest)) {
			fmt.Printf("searched %d times, %d files, %d processes, %d MiB of memory\n", rounds, s.read, s.pids, s.memory>>20)
			return
		}
	}
}

// stopped waits, and reports whether it is to end.
func stopped(stop string, rest time.Duration) bool {
	for end := time.Now().Add(rest); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(stop); err == nil || time.Now().After(end) {
			return err == nil
		}
	}
}

type search struct {
	texts  [][]byte
	found  map[string]bool
	read   int // files
	pids   int
	memory int64 // bytes
}

func (s *search) look(where string, content []byte) {
	for i, text := range s.texts {
		if found := fmt.Sprintf("FOUND %d in %s", i, where); bytes.Contains(content, text) && !s.found[found] {
			s.found[found] = true
			fmt.Println(found)
		}
	}
}

// apart are folders with nothing of the sandbox's own: systems of the kernel,
// and programs of the host.
var apart = []string{"/proc", "/sys", "/nix/store", "/opt", "/usr", "/lib", "/lib64"}

// files looks into each regular file, and at the name of each.
func (s *search) files() {
	_ = filepath.WalkDir("/", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is not there
		}
		if entry.IsDir() && slices.Contains(apart, name) {
			return fs.SkipDir
		}
		leads, _ := os.Readlink(name) // of a link alone
		s.look("the name "+name, []byte(name+"\x00"+leads))
		if entry.Type().IsRegular() {
			s.file(name)
		}
		return nil
	})
}

// file looks at a file in overlapping pieces. A hole in it is passed over.
func (s *search) file(name string) {
	file, err := os.Open(name)
	if err != nil {
		return
	}
	defer file.Close()
	const most = 64 << 20 // what is larger is a program
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return // or a device that is mounted over one
	}
	s.read++
	buffer := make([]byte, piece)
	for at := int64(0); ; at += piece - overlap {
		if at, err = unix.Seek(int(file.Fd()), at, unix.SEEK_DATA); err != nil {
			return // its end
		}
		n, _ := file.ReadAt(buffer, at)
		s.look(name, buffer[:n])
		if n < piece {
			return
		}
	}
}

// Memory and files are read in overlapping pieces, of so many bytes.
const piece, overlap = 1 << 20, 256

// processes looks at each but this one, which knows the texts.
func (s *search) processes() {
	names, _ := filepath.Glob("/proc/[0-9]*")
	s.pids = 0
	for _, process := range names {
		if process == "/proc/"+strconv.Itoa(os.Getpid()) {
			continue
		}
		s.pids++
		for _, name := range []string{"environ", "cmdline", "maps"} {
			content, _ := os.ReadFile(process + "/" + name)
			s.look(process+"/"+name, content)
		}
		descriptors, _ := filepath.Glob(process + "/fd/*")
		for _, descriptor := range descriptors {
			leads, _ := os.Readlink(descriptor)
			s.look(descriptor, []byte(leads))
			if info, err := os.Stat(descriptor); err == nil && info.Mode().IsRegular() && !strings.HasPrefix(leads, "/nix/store/") {
				s.file(descriptor)
			}
		}
		s.memoryOf(process)
	}
}

func (s *search) memoryOf(process string) {
	maps, err := os.Open(process + "/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	memory, err := os.Open(process + "/mem")
	if err != nil {
		return
	}
	defer memory.Close()
	pages, err := os.Open(process + "/pagemap")
	if err != nil {
		return
	}
	defer pages.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var begin, end int64
		var rights string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &begin, &end, &rights); n == 3 && rights[0] == 'r' {
			s.region(process, memory, pages, begin, end)
		}
	}
}

// region looks at the memory of a range that was ever touched, which may be a
// small part of it (proc_pid_pagemap(5)).
func (s *search) region(process string, memory, pages *os.File, begin, end int64) {
	const page, entry, top, there = 4096, 8, 7, 0xc0 // there: in memory, or swapped out
	found := make([]byte, (end-begin)/page*entry)
	n, _ := pages.ReadAt(found, begin/page*entry)
	from := begin
	for at := begin; at < end; at += page {
		if index := int(at-begin)/page*entry + top; index < n && found[index]&there == 0 {
			s.run(process, memory, from, at)
			from = at + page
		}
	}
	s.run(process, memory, from, end)
}

// run looks at memory in overlapping pieces.
func (s *search) run(process string, memory *os.File, begin, end int64) {
	buffer := make([]byte, min(piece, max(0, end-begin)))
	for at := begin; at < end; at += piece - overlap {
		n, _ := memory.ReadAt(buffer[:min(piece, end-at)], at)
		if n == 0 {
			return // not there, as [vvar]
		}
		s.memory += int64(n)
		s.look(fmt.Sprintf("%s/mem %x", process, at), buffer[:n])
	}
}
