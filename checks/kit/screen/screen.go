package screen

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Screen is a display of fixed size. It is an [io.Writer] for what the program
// on it writes; it is not safe for use by several goroutines at once.
type Screen struct {
	cells       [][]rune // rows of columns; 0 is blank
	row, col    int      // of the cursor; col may be one past the end of its row
	saved       [2]int   // row and col, as kept by ESC 7
	main        [][]rune // the cells while the alternate screen is shown
	mainAt      [2]int   // row and col there
	title       string
	modes       map[string]bool
	keyboard    map[bool]int // depth of the kitty keyboard stack, by "is the alternate screen"
	modifyOther bool         // xterm's modifyOtherKeys
	pending     []byte       // the beginning of a sequence whose end is not here yet
}

// New makes an empty screen with the cursor in its upper left corner.
func New(rows, cols int) *Screen {
	s := &Screen{modes: map[string]bool{}, keyboard: map[bool]int{}}
	s.Resize(rows, cols)
	return s
}

// Resize gives the screen a new size. What was shown is gone: the program is
// expected to draw anew.
func (s *Screen) Resize(rows, cols int) {
	s.cells, s.main, s.mainAt = blank(rows, cols), blank(rows, cols), [2]int{}
	s.row, s.col = min(s.row, rows-1), min(s.col, cols-1)
}

func blank(rows, cols int) [][]rune {
	cells := make([][]rune, rows)
	for i := range cells {
		cells[i] = make([]rune, cols)
	}
	return cells
}

// Write shows what the program wrote. It never fails.
func (s *Screen) Write(p []byte) (int, error) {
	data := append(s.pending, p...)
	for len(data) > 0 {
		n := s.step(data)
		if n == 0 {
			break
		}
		data = data[n:]
	}
	s.pending = slices.Clone(data)
	return len(p), nil
}

// step acts on what data begins with and tells its length; 0 asks for more.
func (s *Screen) step(data []byte) int {
	if data[0] == escape {
		return s.sequence(data)
	}
	if act, ok := controls[data[0]]; ok {
		act(s)
		return 1
	}
	if data[0] < ' ' {
		return 1
	}
	if !utf8.FullRune(data) {
		return 0
	}
	r, n := utf8.DecodeRune(data)
	s.put(r)
	return n
}

// put shows a character and moves on. The last column wraps only when a
// further character comes, as terminals do.
func (s *Screen) put(r rune) {
	if s.col >= len(s.cells[s.row]) {
		s.col = 0
		s.lineFeed()
	}
	s.cells[s.row][s.col] = r
	s.col++
}

func (s *Screen) lineFeed() {
	if s.row < len(s.cells)-1 {
		s.row++
		return
	}
	first := s.cells[0]
	clear(first)
	s.cells = append(s.cells[1:], first)
}

// move puts the cursor at a place, or at the nearest there is.
func (s *Screen) move(row, col int) {
	s.row = max(0, min(row, len(s.cells)-1))
	s.col = max(0, min(col, len(s.cells[0])-1))
}

// String is the display, without blanks at the ends of lines and without
// empty lines at the end.
func (s *Screen) String() string {
	lines := make([]string, len(s.cells))
	for i, row := range s.cells {
		line := strings.Map(func(r rune) rune {
			if r == 0 {
				return ' '
			}
			return r
		}, string(row))
		lines[i] = strings.TrimRight(line, " \u00a0")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// Title is the window's title; empty at rest.
func (s *Screen) Title() string { return s.title }

// Modes are the modes that differ from a terminal's at rest, sorted: private
// ones as "?2004", ones that are on at rest and were switched off as "?25l",
// a keyboard protocol that is still pushed as ">u", modifyOtherKeys as ">4".
func (s *Screen) Modes() []string {
	var modes []string
	for name, on := range s.modes {
		switch {
		case on && !atRest[name]:
			modes = append(modes, name)
		case !on && atRest[name]:
			modes = append(modes, name+"l")
		}
	}
	if s.keyboard[false] > 0 || s.keyboard[true] > 0 {
		modes = append(modes, ">u")
	}
	if s.modifyOther {
		modes = append(modes, ">4")
	}
	slices.Sort(modes)
	return modes
}
