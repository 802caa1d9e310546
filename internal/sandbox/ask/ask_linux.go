// Package ask is the program claudebox-why inside a sandbox. It asks claudebox, outside, why a host is refused, a path
// hidden or read-only, a program absent, and prints the answer. It trusts nothing, and knows nothing by itself.
package ask

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// Where things are inside.
const (
	Folder  = "/run/claudebox/bin" // at the end of PATH
	Program = Folder + "/" + Name
	Name    = "claudebox-why"
	Box     = "claudebox" // the name by which it says that claudebox is outside
	Socket  = "/run/claudebox/why"
)

// The kinds of questions. A question is one line: its kind, a blank and a word.
const (
	Host     = "host"
	Path     = "path" // at which nothing is inside
	Here     = "here" // a path at which something is
	Prog     = "program"
	Set      = "set"      // a variable that is set where it was asked
	Refusals = "refusals" // how many there were, for the status line; without a word
)

// Longest is the longest question, in bytes.
const Longest = 4 << 10

const usage = `usage: claudebox-why HOST[:PORT] | PATH | PROGRAM | VARIABLE
Says why a host is refused, a path hidden or read-only, a program or variable
absent in this sandbox, and what the user can run outside.
`

// Main asks about the word. It returns an exit status: 0 when it is inside, 1 when it is not, 2 when that is not known.
func Main(words []string) int {
	if len(words) == 1 && words[0] == "--"+Refusals {
		return say(Refusals)
	}
	if len(words) != 1 || words[0] == "" || strings.HasPrefix(words[0], "-") {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	kind, word := kindOf(words[0])
	switch kind {
	case Prog:
		if at := program(word); at != "" && at != Folder+"/"+Box {
			fmt.Println("yes:     " + word + " is a program here, " + at)
			return 0
		}
		if _, set := os.LookupEnv(word); set {
			kind = Set
		}
	case Path:
		real, here := resolve(word)
		if here {
			kind = Here
		}
		status := say(kind + " " + real)
		if real != word {
			fmt.Println("link:    " + diag.Name(word) + " leads to " + diag.Name(real))
		}
		return status
	}
	return say(kind + " " + word)
}

// program is the file of a program on PATH; empty: there is none.
func program(word string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		at := filepath.Join(dir, word)
		if info, err := os.Stat(at); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return at
		}
	}
	return ""
}

// mostLinks is how many links one path can lead through.
const mostLinks = 40

// resolve follows the links of a path, as far as it exists inside. here: something is at its end.
func resolve(at string) (real string, here bool) {
	for range mostLinks {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return real, true
		}
		target, err := os.Readlink(at)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(at), target)
		}
		at = filepath.Clean(target)
	}
	dir := filepath.Dir(at)
	if dir == at {
		return at, false
	}
	real, _ = resolve(dir)
	return filepath.Join(real, filepath.Base(at)), false
}

// schemes are those of URLs whose port is not that of https.
var schemes = map[string]string{"http": ":80", "ws": ":80", "ssh": ":22", "git+ssh": ":22", "git": ":9418"}

// HostOf returns the HOST or HOST:PORT of a URL; false for what is none.
func HostOf(word string) (host string, is bool) {
	scheme, rest, is := strings.Cut(word, "://")
	if !is || scheme == "" || strings.Contains(scheme, "/") {
		return "", false
	}
	host = rest[:strings.IndexAny(rest+"/", "/?#")]
	host = host[strings.LastIndexByte(host, '@')+1:]
	if host != "" && (!strings.Contains(host, ":") || strings.HasSuffix(host, "]")) {
		host += schemes[scheme]
	}
	return host, host != ""
}

// RemoteOf returns the HOST:PORT of a place as git and scp take it, USER@HOST:PATH; false for what is none.
func RemoteOf(word string) (host string, is bool) {
	user, rest, named := strings.Cut(word, "@")
	host, _, is = strings.Cut(rest, ":")
	if !named || !is || user == "" || host == "" || strings.Contains(user+host, "/") {
		return "", false
	}
	return host + schemes["ssh"], true
}

// Outside answers whoever calls claudebox inside. It returns claudebox's exit status for what it refuses.
func Outside(words []string) int {
	if len(words) == 2 && words[0] == "why" {
		return Main(words[1:])
	}
	diag.Print(os.Stderr, diag.Errorf("start claudebox", "ask the user to run it; `claudebox why WORD` answers here",
		"this is inside its sandbox, and it works outside alone"))
	const refused = 125
	return refused
}

// kindOf says what a word means. A path becomes absolute: outside nobody knows the current folder.
func kindOf(word string) (kind, meant string) {
	if host, is := HostOf(word); is {
		return Host, host
	}
	if host, is := RemoteOf(word); is {
		return Host, host
	}
	if rest, home := strings.CutPrefix(word, "~"); home && (rest == "" || rest[0] == '/') {
		return Path, filepath.Join(os.Getenv("HOME"), rest)
	}
	_, err := os.Lstat(word)
	if strings.Contains(word, "/") || word == "." || word == ".." || err == nil {
		at, err := filepath.Abs(word)
		if err != nil {
			at = word
		}
		return Path, at
	}
	if strings.ContainsAny(word, ".:") || word == "localhost" {
		return Host, word
	}
	return Prog, word
}

// say asks a question, and prints the answer.
func say(question string) int {
	text, err := answer(question)
	if err != nil {
		fmt.Fprintln(os.Stderr, Name+":", err)
		return 2
	}
	fmt.Print(text)
	switch {
	case strings.HasPrefix(text, "no:"):
		return 1
	case strings.HasPrefix(text, "unknown:"):
		return 2
	}
	return 0
}

// patience is how long an answer may take.
const patience = 10 * time.Second

func answer(question string) (string, error) {
	if len(question) >= Longest || strings.ContainsAny(question, "\n\x00") {
		return "", errors.New("the question is too long, or has more than one line")
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	wait := unix.NsecToTimeval(int64(patience))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: Socket}); err != nil {
		return "", fmt.Errorf("claudebox cannot be asked: %w", err)
	}
	if _, err := unix.Write(fd, []byte(question+"\n")); err != nil {
		return "", fmt.Errorf("claudebox cannot be asked: %w", err)
	}
	var text []byte
	for part := make([]byte, Longest); ; {
		n, err := unix.Read(fd, part)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return "", fmt.Errorf("claudebox does not answer: %w", err)
		case n == 0 && len(text) == 0 && question != Refusals:
			return "", errors.New("claudebox does not answer: ask again, more slowly")
		case n == 0:
			return string(text), nil
		default:
			text = append(text, part[:n]...)
		}
	}
}
