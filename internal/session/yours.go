package session

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"claudebox/internal/agent"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/view"
)

// yours says how a program that the user has in a folder of the host's PATH, search, and of the home comes inside;
// empty: there is none of that name. Inside it is found by its path alone.
func yours(name, search string, inside *view.View) string {
	home := inside.Home
	for _, dir := range filepath.SplitList(search) {
		at := filepath.Join(dir, name)
		info, err := os.Stat(at)
		if err != nil || !filepath.IsAbs(dir) || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if !pathname.Below(at, home) || pathname.Below(at, inside.Project) {
			return ""
		}
		if manager := managerOf(at); manager != "" {
			return fmt.Sprintf("yours is a shim of %s: `%[1]s which %s` prints the program itself, and `--mount-ro` of "+
				"the folder of that version brings it, by its path", manager, name)
		}
		folder := folderOfProgram(at, home)
		if interpreter := inside.LacksInterpreter(at); interpreter != "" {
			at, folder = beneath.Real(at), view.PythonFolder(interpreter) // as conda's has its own
			if folder == "" || !pathname.Below(beneath.Real(interpreter), folder) || !pathname.Below(at, folder) {
				return "yours cannot start there without " + diag.Name(interpreter) + ": " + view.Remedy(name)
			}
		}
		flag, fault := inside.Mountable(folder)
		if fault != nil {
			return diag.Cause(fault).Error()
		}
		return flag + " brings yours, as " + profile.Tilde(home, at)
	}
	return ""
}

// managerOf is the version manager whose shim a program is; empty: it is none. Shims are links to the manager, or
// scripts in a folder of its own.
func managerOf(at string) string {
	if dir := filepath.Dir(at); filepath.Base(dir) == "shims" {
		return strings.TrimPrefix(filepath.Base(filepath.Dir(dir)), ".")
	}
	return agent.Manager(beneath.Real(at))
}

// folderOfProgram is what a program of the home needs beside itself: npm's are links to packages beside their folder,
// pnpm's scripts that start one there. It is the program alone where there is no such thing.
func folderOfProgram(at, home string) string {
	dir := filepath.Dir(at)
	around := dir
	if filepath.Base(dir) == "bin" {
		around = filepath.Dir(dir)
	}
	real := beneath.Real(at)
	isLink := real != at && pathname.Below(real, beneath.Real(around))
	if around == home || filepath.Base(around) == ".local" || !isLink && !startsBeside(real) {
		return at
	}
	return around
}

// startsBeside reports whether a script starts what lies beside its own folder, as the shims of npm and pnpm do.
func startsBeside(file string) bool {
	const most = 16 << 10
	text, err := smallfile.Read(file, most)
	return err == nil && bytes.HasPrefix(text, []byte("#!")) && bytes.Contains(text, []byte("$basedir"))
}
