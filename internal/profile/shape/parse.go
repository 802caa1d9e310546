package shape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"claudebox/internal/diag"
)

// MaxSize is the largest document that is read, in bytes. A profile with ten
// thousand packages has a quarter of it.
const MaxSize = 1 << 20

// parse turns a file into the node of its one document, or says what is wrong
// with its first wrong place.
func parse(doc *Document, src []byte) (*yaml.Node, *diag.Problem) {
	if fault := checkBytes(doc, src); fault != nil {
		return nil, fault
	}
	nodes, err := documents(src)
	switch {
	case err == nil:
		return nil, &diag.Problem{
			Position: diag.Position{File: doc.File, Line: nodes[1].Line, Column: nodes[1].Column},
			Message:  "a second document begins here; expected one",
			Remedy:   "remove what follows, or put it into a file of its own",
		}
	case !errors.Is(err, io.EOF):
		return nil, syntaxProblem(doc, src, err)
	case nodes[0].IsZero():
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}, nil
	}
	return nodes[0].Content[0], nil
}

// documents reads the first two of a file. The error is [io.EOF] when there are fewer.
func documents(src []byte) (nodes [2]yaml.Node, err error) {
	reader := yaml.NewDecoder(bytes.NewReader(src))
	for i := range nodes {
		if err := reader.Decode(&nodes[i]); err != nil {
			return nodes, err
		}
	}
	return nodes, nil
}

// checkBytes refuses what no reader of text should be given.
func checkBytes(doc *Document, src []byte) *diag.Problem {
	if len(src) > MaxSize {
		return &diag.Problem{
			Position: diag.Position{File: doc.File, Line: 1, Column: 1},
			Message:  fmt.Sprintf("the file is larger than %d bytes", MaxSize),
		}
	}
	at := badByte(src)
	if at < 0 {
		return nil
	}
	line, start := bytes.Count(src[:at], []byte("\n"))+1, bytes.LastIndexByte(src[:at], '\n')+1
	return &diag.Problem{
		Position: diag.Position{File: doc.File, Line: line, Column: utf8.RuneCount(src[start:at]) + 1},
		Message:  fmt.Sprintf("byte 0x%02x is not text; expected UTF-8 without control characters", src[at]),
		Remedy:   "save the file as UTF-8",
	}
}

// badByte is the offset of the first byte that is not UTF-8 or that YAML does
// not allow in a file, else -1.
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

// allowed follows YAML 1.2, production [1] c-printable.
func allowed(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85:
		return true
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}

// syntaxHints are remedies by what yaml.v3 says, first match first.
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

// syntaxProblem gives an error of yaml.v3 its place.
func syntaxProblem(doc *Document, src []byte, err error) *diag.Problem {
	lines := bytes.SplitAfter(src, []byte("\n"))
	line, said := reason(err)
	if len(src) <= maxSearched {
		line = searchLine(src, lines, said)
	}
	line = min(max(line, 1), len(lines))
	text := string(lines[line-1])
	column := len(text) - len(strings.TrimLeft(text, " ")) + 1
	problem := &diag.Problem{Position: diag.Position{File: doc.File, Line: line, Column: column}, Message: said}
	for _, hint := range syntaxHints {
		if strings.Contains(said, hint.said) {
			problem.Remedy = hint.remedy
			break
		}
	}
	return problem
}

// maxSearched bounds the files whose syntax errors are searched for, which
// reads the file once for each doubling of its lines.
const maxSearched = 64 << 10

// searchLine is the number of the first line with which a file goes wrong in
// the way that yaml.v3 said. The library itself names the line where the
// enclosing block begins, the one before, or none.
func searchLine(src []byte, lines [][]byte, said string) int {
	ends := make([]int, len(lines))
	end := 0
	for i, line := range lines {
		end += len(line)
		ends[i] = end
	}
	return 1 + sort.Search(len(lines)-1, func(i int) bool {
		_, err := documents(src[:ends[i]])
		if err == nil {
			return false
		}
		_, now := reason(err)
		return now == said
	})
}

// reason takes an error of yaml.v3 apart: the line it names, or 0, and what it
// says.
func reason(err error) (line int, said string) {
	said = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, found := strings.CutPrefix(said, "line "); found {
		number, what, _ := strings.Cut(rest, ": ")
		line, _ = strconv.Atoi(number)
		said = what
	}
	return line, said
}
