package screen

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

const (
	escape    = 0x1b
	alternate = "?1049" // the mode of the alternate screen
)

// atRest are the private modes that are on in a terminal that nobody touched:
// wrapping at the end of the line, and the visible cursor.
var atRest = map[string]bool{"?7": true, "?25": true}

// controls are the control characters that move the cursor.
var controls = map[byte]func(*Screen){
	'\r': func(s *Screen) { s.col = 0 },
	'\n': (*Screen).lineFeed,
	'\b': func(s *Screen) { s.move(s.row, s.col-1) },
	'\t': func(s *Screen) { s.move(s.row, s.col/8*8+8) },
}

// The shapes of sequences; the first that fits is it. A control sequence has
// its private mark, parameters and final byte as groups, a title its text.
var (
	controlSequence = regexp.MustCompile(`^\x1b\[([<=>?]?)([0-9;:]*)[ -/]*([@-~])`)
	titleSequence   = regexp.MustCompile(`^\x1b\][02];([^\x07\x1b]*)(?:\x07|\x1b\\)`)
	otherSequences  = []*regexp.Regexp{
		regexp.MustCompile(`(?s)^\x1b[\]P_^X].*?(?:\x07|\x1b\\)`), // a string: clipboard, terminal query, …
		regexp.MustCompile(`^\x1b[ -/]+[0-~]`),                    // a character set
	}
	introducers = []byte("[]P_^X !\"#$%&'()*+,-./")
)

// sequence acts on the escape sequence that data begins with.
func (s *Screen) sequence(data []byte) int {
	if m := controlSequence.FindSubmatch(data); m != nil {
		s.control(string(m[1]), string(m[2]), m[3][0])
		return len(m[0])
	}
	if m := titleSequence.FindSubmatch(data); m != nil {
		s.title = string(m[1])
		return len(m[0])
	}
	for _, form := range otherSequences {
		if m := form.Find(data); m != nil {
			return len(m)
		}
	}
	if len(data) < 2 || bytes.IndexByte(introducers, data[1]) >= 0 {
		return 0
	}
	switch data[1] {
	case '7':
		s.saved = [2]int{s.row, s.col}
	case '8':
		s.move(s.saved[0], s.saved[1])
	}
	return 2
}

func (s *Screen) control(mark, params string, final byte) {
	switch mark + string(final) {
	case "?h", "?l":
		for name := range strings.SplitSeq(params, ";") {
			s.setMode("?"+name, final == 'h')
		}
	case ">u":
		s.keyboard[s.modes[alternate]]++
	case "<u":
		depth := s.keyboard[s.modes[alternate]]
		s.keyboard[s.modes[alternate]] = max(0, depth-max(1, number(params, 0)))
	case ">m":
		s.modifyOther = strings.HasPrefix(params, "4;") && params != "4;0"
	default:
		if act, ok := motions[final]; ok && mark == "" {
			act(s, params)
		}
	}
}

// setMode keeps a private mode. The alternate screen is empty when it comes, and
// the main one is as it was when it goes.
func (s *Screen) setMode(name string, on bool) {
	switch {
	case name != alternate || s.modes[name] == on:
	case on:
		s.main, s.mainAt = s.cells, [2]int{s.row, s.col}
		s.cells = blank(len(s.cells), len(s.cells[0]))
	default:
		s.cells, s.row, s.col = s.main, s.mainAt[0], s.mainAt[1]
	}
	s.modes[name] = on
}

// motions are the control sequences that move the cursor or erase.
var motions = map[byte]func(s *Screen, params string){
	'A': func(s *Screen, p string) { s.move(s.row-count(p), s.col) },
	'B': func(s *Screen, p string) { s.move(s.row+count(p), s.col) },
	'C': func(s *Screen, p string) { s.move(s.row, s.col+count(p)) },
	'D': func(s *Screen, p string) { s.move(s.row, s.col-count(p)) },
	'E': func(s *Screen, p string) { s.move(s.row+count(p), 0) },
	'F': func(s *Screen, p string) { s.move(s.row-count(p), 0) },
	'G': func(s *Screen, p string) { s.move(s.row, count(p)-1) },
	'H': func(s *Screen, p string) { s.move(count(p)-1, max(1, number(p, 1))-1) },
	'd': func(s *Screen, p string) { s.move(count(p)-1, s.col) },
	'J': eraseDisplay,
	'K': func(s *Screen, p string) { s.eraseLine(number(p, 0)) },
	'X': func(s *Screen, p string) { clear(s.rest()[:min(count(p), len(s.rest()))]) },
}

func eraseDisplay(s *Screen, params string) {
	how := number(params, 0)
	for i, row := range s.cells {
		if how >= 2 || how == 0 && i > s.row || how == 1 && i < s.row {
			clear(row)
		}
	}
	if how < 2 {
		s.eraseLine(how)
	}
}

// eraseLine clears the cursor's line: 0 from the cursor on, 1 up to it, 2 all.
func (s *Screen) eraseLine(how int) {
	row := s.cells[s.row]
	switch how {
	case 0:
		clear(s.rest())
	case 1:
		clear(row[:min(s.col+1, len(row))])
	case 2:
		clear(row)
	}
}

// rest is the cursor's line from the cursor on.
func (s *Screen) rest() []rune {
	row := s.cells[s.row]
	return row[min(s.col, len(row)):]
}

// count is the first parameter of a motion, where none and 0 mean 1.
func count(params string) int { return max(1, number(params, 0)) }

// number is parameter i, 0 when there is none.
func number(params string, i int) int {
	fields := strings.Split(params, ";")
	if i >= len(fields) {
		return 0
	}
	n, err := strconv.Atoi(fields[i])
	if err != nil {
		return 0
	}
	return n
}
