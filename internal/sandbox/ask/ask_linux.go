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
)

// Where things are inside.
const (
	Folder  = "/run/claudebox/bin" // at the end of PATH
	Program = Folder + "/" + Name
	Name    = "claudebox-why"
	Socket  = "/run/claudebox/why"
)

// The kinds of questions. A question is one line: its kind, a blank and a word.
const (
	Host     = "host"
	Path     = "path"
	Prog     = "program"
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
	if kind == Prog {
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			at := filepath.Join(dir, word)
			if info, err := os.Stat(at); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				fmt.Println("yes:     " + word + " is a program here, " + at)
				return 0
			}
		}
	}
	return say(kind + " " + word)
}

// kindOf says what a word means. A path becomes absolute: outside nobody knows the current folder.
func kindOf(word string) (kind, meant string) {
	if scheme, rest, isURL := strings.Cut(word, "://"); isURL && !strings.Contains(scheme, "/") {
		host, _, _ := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			host = host[at+1:]
		}
		if scheme == "http" && !strings.Contains(host, ":") {
			host += ":80"
		}
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
