package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func plain(digits string) string {
	text, err := hex.DecodeString(digits)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// plant becomes a program that has a text among its words and its variables, and
// then puts it into files, memory, and descriptors of both.
func plant(stop, digits string) error {
	text := plain(digits)
	if os.Getenv("PLANTED") == "" {
		return unix.Exec("/proc/self/exe", []string{"canary", "plant", stop, digits, text}, append(os.Environ(), "PLANTED="+text))
	}
	kept, err := os.CreateTemp("", "planted-")
	if err != nil {
		return err
	}
	gone, err := os.CreateTemp("", "gone-")
	if err != nil {
		return err
	}
	mapped, err := os.CreateTemp("", "planted-"+text)
	if err != nil {
		return err
	}
	for _, file := range []*os.File{kept, gone, mapped} {
		if _, err := file.WriteString(text); err != nil {
			return err
		}
	}
	if err := os.Remove(gone.Name()); err != nil {
		return err
	}
	if _, err := unix.Mmap(int(mapped.Fd()), 0, len(text), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return err
	}
	fmt.Println("there")
	for {
		if _, err := os.Stat(stop); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}
