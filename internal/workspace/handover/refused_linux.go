package handover

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
)

// refusal says why a repository did not become the user's.
type refusal struct {
	State string // of the repository, then
	Why   string
}

func (m Made) refusalFile() string { return m.Folder + "/refused.json" }

// Refusal says why a repository did not become the user's before; empty: it did not fail, or was changed since, or
// another git may take it.
func (m Made) Refusal(t Tools) string {
	var r refusal
	text, err := os.ReadFile(m.refusalFile())
	if err != nil || json.Unmarshal(text, &r) != nil || r.State == "" || r.State != m.state(t) {
		return ""
	}
	return r.Why
}

// note keeps why a repository did not become the user's, if that lies in what it is.
func (m Made) note(t Tools, why error) {
	if why == nil || !isUnfit(why) {
		_ = os.Remove(m.refusalFile()) // there may be none
		return
	}
	text, err := json.Marshal(refusal{m.state(t), why.Error()})
	if err == nil {
		_ = os.WriteFile(m.refusalFile(), text, 0o600) // else it is looked at again
	}
}

// unfit is an error that lies in what the agent has made, as a box says.
type unfit struct{ error }

func (u unfit) Unwrap() error { return u.error }

// isUnfit reports whether the same repository will not do another time either. What lies in the machine may.
func isUnfit(err error) bool {
	for _, of := range []error{unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EAGAIN, unix.EIO} {
		if strings.Contains(strings.ToLower(err.Error()), of.Error()) {
			return false
		}
	}
	return (errors.As(err, &unfit{}) || errors.Is(err, errOdd) || errors.Is(err, errSilent)) &&
		!strings.Contains(err.Error(), freeSpace)
}

// state is another one when a program has changed something in the git folder by which it may become the user's: each
// file that git writes has a new name, or is renamed, in one of these folders. No link is followed.
func (m Made) state(t Tools) string {
	root, err := beneath.Open(m.At)
	if err != nil {
		return ""
	}
	defer root.Close()
	sum := sha256.New()
	fmt.Fprintln(sum, t.Git, identity.Of(root.FD()))
	const most = 1000 // names in one folder
	for _, dir := range []string{
		".", "objects", "objects/pack", "objects/info", "refs", "refs/heads", "refs/tags", "reftable",
	} {
		names, _ := root.Names(dir, most) // or it is none
		slices.Sort(names)
		for _, name := range append(names, ".") {
			what, err := root.Look(dir + "/" + name)
			fmt.Fprintln(sum, dir, name, what, err)
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}
