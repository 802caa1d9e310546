package shape

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"claudebox/internal/diag"
)

// MaxSize is the size of the largest document that is accepted, in bytes. A profile
// with ten thousand packages has a quarter of it.
const MaxSize = 1 << 20

// parse returns the root node of a file that must contain one document at most; an
// empty file gives an empty mapping. Otherwise it returns the first problem.
func parse(doc *Document, src []byte) (*yaml.Node, diag.Problems) {
	if problems := checkBytes(doc, src); problems != nil {
		return nil, problems
	}
	nodes, err := documents(src)
	switch {
	case err == nil:
		return nil, diag.Problems{Place{doc, nodes[1].Line, nodes[1].Column}.Problem(
			"remove what follows, or put it into a file of its own", "a second document begins here; expected one")}
	case !errors.Is(err, io.EOF):
		return nil, syntaxProblem(doc, src, err)
	case nodes[0].IsZero():
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}, nil
	}
	return nodes[0].Content[0], nil
}

// documents reads the first two YAML documents of a file. The error is [io.EOF] if there are fewer.
func documents(src []byte) (nodes [2]yaml.Node, err error) {
	reader := yaml.NewDecoder(bytes.NewReader(src))
	for i := range nodes {
		if err := reader.Decode(&nodes[i]); err != nil {
			return nodes, err
		}
	}
	return nodes, nil
}

// checkBytes refuses files that are too large, not UTF-8, or contain control characters. It returns nil if all is well.
func checkBytes(doc *Document, src []byte) diag.Problems {
	if len(src) > MaxSize {
		return diag.Problems{Place{doc, 1, 1}.Problem("", "the file is larger than %d bytes", MaxSize)}
	}
	at := badByte(src)
	if at < 0 {
		return nil
	}
	line, start := bytes.Count(src[:at], []byte("\n"))+1, bytes.LastIndexByte(src[:at], '\n')+1
	return diag.Problems{Place{doc, line, utf8.RuneCount(src[start:at]) + 1}.Problem("save the file as UTF-8",
		"byte 0x%02x is not text; expected UTF-8 without control characters", src[at])}
}

// badByte returns the offset of the first byte that is not UTF-8 or that YAML does
// not allow in a file, or -1.
func badByte(src []byte) int {
	for at := 0; at < len(src); {
		r, size := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && size == 1 || !allowed(r) {
			return at
		}
		at += size
	}
	return -1
}

// allowed reports whether a file may contain a character, by YAML 1.2, production [1] c-printable.
func allowed(r rune) bool {
	switch r {
	case '\t', '\n', '\r', 0x85:
		return true
	case 0xfffe, 0xffff:
		return false
	}
	return !unicode.IsControl(r)
}

// syntaxHints are remedies for error messages of yaml.v3 that contain said; the first match counts.
var syntaxHints = []struct{ said, remedy string }{
	{"cannot start any token", "indent with spaces, and quote text that begins with @, ` or %"},
	{"unknown anchor", `quote text that begins with *: "*.pem"`},
	{"did not find expected alphabetic", `quote text that begins with * or &: "*.pem"`},
	{"mapping values are not allowed", "quote text that holds a colon and a blank, and check the indentation"},
	{"did not find expected key", "indent the keys of one mapping alike"},
	{"did not find expected '-'", "indent the entries of one list alike"},
	{"did not find expected ','", "close the bracket, or separate the entries by commas"},
	{"unexpected end of stream", "close the quote"},
	{"unknown escape character", `write the character itself, and \\ for a backslash`},
	{"invalid Unicode character escape", "write the character itself"}, // half of a surrogate pair, as JSON has them
	{"could not find expected ':'", "write a colon and a blank after the key"},
}

// syntaxProblem turns an error of yaml.v3 into a problem with line, column and remedy.
func syntaxProblem(doc *Document, src []byte, err error) diag.Problems {
	lines := bytes.SplitAfter(src, []byte("\n"))
	line, said := reason(err)
	if len(src) <= maxSearched {
		line = searchLine(lines, said)
	}
	line = min(max(line, 1), len(lines))
	text := string(lines[line-1])
	column := len(text) - len(strings.TrimLeft(text, " ")) + 1
	remedy := ""
	for _, hint := range syntaxHints {
		if strings.Contains(said, hint.said) {
			remedy = hint.remedy
			break
		}
	}
	return diag.Problems{Place{doc, line, column}.Problem(remedy, "%s", said)}
}

// maxSearched is the size in bytes up to which searchLine is used: its binary
// search parses the file once for each doubling of its lines.
const maxSearched = 64 << 10

// searchLine returns the number of the line that causes the yaml.v3 error said: the
// first one up to which parsing the file fails with this error. The line that the
// library itself names is where the enclosing block begins, the one before, or none.
func searchLine(lines [][]byte, said string) int {
	return 1 + sort.Search(len(lines)-1, func(i int) bool {
		_, err := documents(bytes.Join(lines[:i+1], nil))
		if err == nil {
			return false
		}
		_, now := reason(err)
		return now == said
	})
}

// reason splits an error of yaml.v3 into the line that it names, or 0, and the
// message without it.
func reason(err error) (line int, said string) {
	said = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, found := strings.CutPrefix(said, "line "); found {
		number, what, _ := strings.Cut(rest, ": ")
		line, _ = strconv.Atoi(number)
		said = what
	}
	return line, said
}
