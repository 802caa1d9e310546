package view

import (
	"bytes"
	"cmp"
	"debug/elf"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
)

// Expand makes an absolute path of a word of a command line; ok is false if only the shell inside knows what the word
// stands for. A word without a slash is no path, and stays as it is.
func (v *View) Expand(word string) (name string, ok bool) {
	for _, folder := range [...]struct{ begin, path string }{
		{"~/", v.Home},
		{"$HOME/", v.Home},
		{"${HOME}/", v.Home},
		{"$CLAUDE_PROJECT_DIR/", v.Project},
		{"${CLAUDE_PROJECT_DIR}/", v.Project},
	} {
		if rest, is := strings.CutPrefix(word, folder.begin); is {
			word = path.Join(folder.path, rest)
			break
		}
	}
	switch {
	case strings.ContainsAny(word, "$`*?[{"):
		return word, false
	case !strings.Contains(word, "/") || path.IsAbs(word):
		return word, true
	}
	return path.Join(v.Dir, word), true
}

// mostScripts bounds a chain of interpreters that are scripts themselves; the kernel has the same bound.
const mostScripts = 5

// Program says why the program that a word of a command line names cannot be run inside; empty: it can, or that is not
// known here. Behind "PATH=FOLDERS" and a zero byte, it is started with that PATH.
func (v *View) Program(word string) (reason string) {
	if own, program, is := strings.Cut(word, "\x00"); is {
		with, known := v.withPath(strings.TrimPrefix(own, "PATH="))
		if !known {
			return ""
		}
		v, word = with, program
	}
	name, known := v.Expand(word)
	if !known || name == "" {
		return ""
	}
	return v.program(word, name, 0)
}

// withPath is the view of what is started with a PATH of its own, as the configuration of an MCP server writes it:
// Claude Code replaces variables in braces, and nothing else. ok is false if only it knows one of them.
func (v *View) withPath(own string) (with *View, ok bool) {
	changed := *v
	if changed.extends = strings.Contains(own, "${PATH}"); !changed.extends {
		changed.Brings = nil
	}
	own = strings.NewReplacer("${PATH}", strings.Join(v.Path, ":"), "${HOME}", v.Home).Replace(own)
	changed.Path, changed.own, changed.around = nil, own, v
	for _, dir := range filepath.SplitList(own) {
		if !path.IsAbs(dir) {
			dir = path.Join(v.Dir, dir)
		}
		changed.Path = append(changed.Path, dir)
	}
	return &changed, !strings.Contains(own, "${")
}

// lacks says that a program is not found by its name, and what helps; empty: it is.
func (v *View) lacks(name string) string {
	const remedy = "leave that PATH out, or end it with `:${PATH}`, which Claude Code replaces"
	switch {
	case v.Find(name) != "" || v.Brings != nil && v.Brings(name):
		return ""
	case v.around == nil:
		return " is not inside: " + v.Remedy(name)
	}
	text := " is in no folder that is inside of the PATH which its `env` sets: "
	if elsewhere := v.around.lacks(name); elsewhere == "" {
		return text + remedy
	}
	if v.Yours != nil {
		if yours := v.Yours(name, v.own); yours != "" {
			return text + yours
		}
	}
	if v.extends {
		return text + Remedy(name)
	}
	return text + Remedy(name) + "; and " + remedy
}

// Find returns the path of the program of that name on PATH; empty if there is none.
func (v *View) Find(name string) string {
	for _, dir := range v.Path {
		at := path.Join(dir, name)
		if _, info, err := v.Resolve(at); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return at
		}
	}
	return ""
}

func (v *View) program(word, name string, depth int) string {
	if !strings.Contains(name, "/") {
		if lacks := v.lacks(name); lacks != "" {
			return word + lacks
		}
		if v.around == nil || v.Find(name) == "" {
			return "" // what is on PATH is of the store
		}
		name = v.Find(name)
	}
	end, info, err := v.Resolve(name)
	switch {
	case err != nil:
		if text := v.dangling(name); text != "" {
			return word + " leads to " + text + ", which is not inside" + v.way(text)
		}
		return word + " is not inside" + v.way(name)
	case v.hides(end) != "":
		return word + v.hides(end)
	case info.IsDir():
		return word + " is a folder inside"
	case !info.Mode().IsRegular():
		return ""
	case info.Mode()&0o111 == 0:
		return word + " cannot be executed (chmod +x " + name + ")"
	case pathname.Below(end, "/nix/store") || depth == mostScripts:
		return ""
	}
	interpreter := interpreterOf(v.OnHost(end))
	if interpreter == "" {
		return ""
	}
	if reason := v.program(interpreter, interpreter, depth+1); reason != "" {
		return "of " + word + " " + reason
	}
	return ""
}

// LacksInterpreter returns the interpreter that a program of the host names by its path, and that cannot be run inside;
// empty: there is none, or it can.
func (v *View) LacksInterpreter(file string) string {
	interpreter := interpreterOf(beneath.Real(file))
	if !path.IsAbs(interpreter) || v.program(interpreter, interpreter, 1) == "" {
		return ""
	}
	return interpreter
}

// hides says that nothing of a file or folder of the host is at a path without links, as that is hidden; empty: it is
// not.
func (v *View) hides(end string) string {
	if m := v.mounts[end]; m != nil && m.Hides() && m.Data == nil {
		return " is hidden inside: " + m.Why
	}
	return ""
}

// dangling returns what the last link on the way to a path that is not there leads to; empty if there is none. The
// sandbox's own links are followed, and not named: they are not where the user looks.
func (v *View) dangling(name string) (text string) {
	_, _ = beneath.Follow(v, "/", name, func(at string, info fs.FileInfo, _ bool) error {
		if info.Mode()&fs.ModeSymlink != 0 && v.OnHost(at) != "" {
			if text, _ = v.Readlink(at); !path.IsAbs(text) {
				text = path.Join(path.Dir(at), text)
			}
		}
		return nil
	})
	return text
}

// way says how a file of the host comes inside; empty if nothing is there.
func (v *View) way(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	if pathname.Below(name, path.Join(v.Home, ".claude")) {
		return ": it is private to your own Claude Code"
	}
	python := PythonFolder(name)
	if at := v.Find(path.Base(name)); at != "" && python == "" {
		return ": `" + path.Base(name) + "` alone is found there"
	}
	if info.Mode().IsRegular() && info.Mode()&0o111 != 0 && isOfPackages(name) {
		return ": " + Remedy(path.Base(name))
	}
	flag, fault := v.Mountable(cmp.Or(python, name))
	if fault != nil {
		return ": " + diag.Cause(fault).Error()
	}
	return ": " + flag + ", or the profile's `mounts`, brings it"
}

// isOfPackages reports whether the system's packages bring a file, and not who looks after the machine.
func isOfPackages(name string) bool {
	return !pathname.Below(name, "/usr/local") && slices.ContainsFunc([]string{"/bin", "/sbin", "/usr", "/lib"},
		func(dir string) bool { return pathname.Below(name, dir) })
}

// PythonFolder returns the folder that brings a Python of the host with its library: that which it is installed in or
// that is its virtual environment, or, where that is reached by a link, as uv's and mise's by "3.13", the one that has
// both; empty if the path is no such Python's, or one of the system.
func PythonFolder(name string) string {
	bin, program := path.Split(name)
	folder := path.Dir(path.Clean(bin))
	if !strings.HasPrefix(program, "python") || path.Base(bin) != "bin" || pathname.Below(folder, "/usr") {
		return ""
	}
	library, _ := filepath.Glob(folder + "/lib/python3*/os.py")
	if _, err := os.Stat(folder + "/pyvenv.cfg"); err == nil { // a virtual environment
		return folder
	}
	if library == nil {
		return ""
	}
	if info, err := os.Lstat(folder); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return path.Dir(folder)
	}
	return folder
}

// interpreterOf returns what the kernel runs for a program: the interpreter of a script, the loader of an ELF program;
// empty if it needs none, or cannot be read. Behind env(1) it is the program that env looks for.
func interpreterOf(file string) string {
	const most = 256 // bytes that the kernel looks at
	fd, err := unix.Open(file, smallfile.Flags, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	head := make([]byte, most)
	n, err := unix.Pread(fd, head, 0)
	if err != nil {
		return ""
	}
	head = head[:n]
	if bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return loaderOf(file)
	}
	line, is := bytes.CutPrefix(head, []byte("#!"))
	if !is {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return ""
	}
	if path.Base(words[0]) == "env" {
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				return word
			}
		}
	}
	return words[0]
}

func loaderOf(file string) string {
	const longest = 4096
	program, err := elf.Open(file)
	if err != nil {
		return ""
	}
	defer program.Close()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP && segment.Filesz < longest {
			text, _ := io.ReadAll(segment.Open())
			return strings.TrimRight(string(text), "\x00")
		}
	}
	return ""
}

// File says why a file or folder of the host that a word of a command line names cannot be read inside; empty: it can,
// or the word names none.
func (v *View) File(word string) (reason string) {
	name, known := v.Expand(word)
	if !known || !path.IsAbs(name) {
		return ""
	}
	end, _, inside := v.Resolve(name)
	if hides := v.hides(end); hides != "" {
		return word + hides
	}
	if inside == nil && v.above[end] && v.mounts[end] == nil {
		return word + " is inside only with what is mounted in it" + v.way(name)
	}
	if inside == nil {
		return ""
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return ""
	}
	return word + " is not inside" + v.way(name)
}

// packages maps programs to the attribute of nixpkgs that has them, where the names differ.
var packages = map[string]string{
	"aplay": "alsa-utils", "awk": "gawk", "aws": "awscli2", "bundle": "bundler", "bunx": "bun", "cc": "gcc",
	"clang++": "clang", "clangd": "clang-tools", "clear": "ncurses", "code": "vscode", "column": "util-linux",
	"composer": "phpPackages.composer", "convert": "imagemagick", "corepack": "nodejs", "difft": "difftastic",
	"dig": "dnsutils", "docker": "docker-client", "dotnet": "dotnet-sdk", "emacsclient": "emacs",
	"espeak": "espeak-ng", "g++": "gcc", "gpg": "gnupg", "grep": "gnugrep", "gs": "ghostscript",
	"helm": "kubernetes-helm", "hexdump": "util-linux", "hg": "mercurial", "ip": "iproute2", "java": "jdk",
	"javac": "jdk", "jdtls": "jdt-language-server", "jj": "jujutsu",
	"magick": "imagemagick", "make": "gnumake", "mvn": "maven",
	"mysql": "mariadb", "nc": "netcat", "node": "nodejs", "notify-send": "libnotify", "npm": "nodejs",
	"npx": "nodejs", "nvim": "neovim", "paplay": "pulseaudio", "pgrep": "procps", "ping": "iputils",
	"pip": "python3Packages.pip", "pip3": "python3Packages.pip", "ps": "procps", "psql": "postgresql",
	"pyright-langserver": "pyright", "python": "python3",
	"redis-cli": "redis", "rg": "ripgrep", "scp": "openssh", "sed": "gnused",
	"sqlite3": "sqlite", "ssh": "openssh", "ssh-keygen": "openssh", "svn": "subversion", "tar": "gnutar",
	"tsc": "typescript", "uvx": "uv", "vi": "vim", "wl-copy": "wl-clipboard",
}

// sameName are programs whose packages are called as they are.
var sameName = strings.Fields(`bc bun cargo delta deno diff-so-fancy emacs exiftool fish gh git-crypt git-lfs
	glab go gopls jupyter kubectl lefthook less lua-language-server man meld mergiraf nano nbstripout pandoc
	perl php pnpm pre-commit python3 rsync ruby rust-analyzer rustc terraform tmux transcrypt
	typescript-language-server uv vim xclip xxd yarn zsh`)

// Package returns the attribute of nixpkgs that has a program; empty if that is not known here.
func Package(program string) string {
	if slices.Contains(sameName, program) {
		return program
	}
	return packages[program]
}

// Remedy says how a program comes inside that is on PATH outside, or is none.
func (v *View) Remedy(program string) string {
	if v.Yours != nil && Package(program) == "" {
		if remedy := v.Yours(program, ""); remedy != "" {
			return remedy
		}
	}
	return Remedy(program)
}

// Remedy says how a program comes inside that may be in a package.
func Remedy(program string) string {
	if attr := Package(program); attr != "" {
		return "add its package to the profile: `packages: [" + attr + "]`"
	}
	return "add the package that has it to the profile's `packages`; inside, `, " + program + "` looks for one"
}
