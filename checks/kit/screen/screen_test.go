package screen_test

import (
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/screen"
)

func TestScreenShowsWhatATerminalWould(t *testing.T) {
	for name, tc := range map[string]struct{ written, want string }{
		"text with line breaks":                  {"one\r\ntwo", "one\ntwo"},
		"line feed alone keeps the column":       {"one\ntwo", "one\n   two"},
		"a full line wraps with the next letter": {"0123456789", "01234567\n89"},
		"a full line alone does not wrap":        {"01234567\r\nx", "01234567\nx"},
		"the last line scrolls":                  {"a\r\nb\r\nc\r\nd\r\ne", "b\nc\nd\ne"},
		"cursor by place":                        {"\x1b[2;3Hx", "\n  x"},
		"cursor by steps":                        {"abc\x1b[2D\x1b[Bx\x1b[Ay", "aby\n x"},
		"column alone":                           {"ab\x1b[5Gx", "ab  x"},
		"cursor stays on the screen":             {"\x1b[99;99Hx\x1b[99A\x1b[99Dy", "y\n\n\n       x"},
		"backspace and tab":                      {"ab\bX\ty", "aX     y"},
		"erase to the end of the line":           {"abcd\x1b[2D\x1b[K", "ab"},
		"erase up to the cursor":                 {"abcd\x1b[2D\x1b[1K", "   d"},
		"erase below":                            {"ab\r\ncd\x1b[1;2H\x1b[J", "a"},
		"erase all keeps the cursor":             {"ab\x1b[2Jx", "  x"},
		"erase letters":                          {"abcd\r\x1b[2X", "  cd"},
		"colours, titles, charsets are not text": {"\x1b[38;5;1ma\x1b]0;title\x07b\x1b]0;t\x1b\\c\x1b(Bd\x1bP+q\x1b\\e", "abcde"},
		"queries are not text":                   {"\x1b[>0q\x1b[?u\x1b[c\x1b[?2026$pok", "ok"},
		"saved place":                            {"ab\x1b7cd\x1b8x", "abxd"},
		"the alternate screen is empty":          {"old\x1b[?1049hnew", "   new"},
		"the main one is as it was after it":     {"old\x1b[?1049hnew\x1b[?1049l.", "old."},
		"letters beyond ASCII":                   {"❯ é", "❯ é"},
	} {
		t.Run(name, func(t *testing.T) {
			s := screen.New(4, 8)
			_, _ = s.Write([]byte(tc.written))
			if got := s.String(); got != tc.want {
				t.Errorf("%q shows %q; want %q", tc.written, got, tc.want)
			}
		})
	}
}

func TestModesTellWhatWasLeftSet(t *testing.T) {
	for name, tc := range map[string]struct {
		written string
		want    []string
	}{
		"nothing at rest":              {"", nil},
		"set and reset":                {"\x1b[?2004h\x1b[?2004l", nil},
		"several in one sequence":      {"\x1b[?1000;1006h", []string{"?1000", "?1006"}},
		"hidden cursor":                {"\x1b[?25l", []string{"?25l"}},
		"shown cursor is rest":         {"\x1b[?25l\x1b[?25h", nil},
		"pushed keyboard":              {"\x1b[>5u", []string{">u"}},
		"popped keyboard":              {"\x1b[>5u\x1b[>5u\x1b[<2u", nil},
		"keyboard of the other screen": {"\x1b[>5u\x1b[?1049h\x1b[<u\x1b[?1049l", []string{">u"}},
		"a pop too many is harmless":   {"\x1b[<u\x1b[>5u\x1b[<u", nil},
		"keys modified":                {"\x1b[>4;2m", []string{">4"}},
		"keys no longer modified":      {"\x1b[>4;2m\x1b[>4m", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := screen.New(4, 8)
			_, _ = s.Write([]byte(tc.written))
			if got := s.Modes(); !slices.Equal(got, tc.want) {
				t.Errorf("%q leaves %q; want %q", tc.written, got, tc.want)
			}
		})
	}
}

func TestTitleIsTheLastOneSet(t *testing.T) {
	for name, tc := range map[string]struct{ written, want string }{
		"none at rest":        {"text", ""},
		"ended by a bell":     {"\x1b]0;one\x07", "one"},
		"ended by ST":         {"\x1b]2;one\x1b\\", "one"},
		"the last one counts": {"\x1b]0;one\x07\x1b]0;two\x07", "two"},
		"taken back":          {"\x1b]0;one\x07\x1b]0;\x07", ""},
		"not a clipboard":     {"\x1b]52;c;b25l\x07", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := screen.New(4, 8)
			_, _ = s.Write([]byte(tc.written))
			if got := s.Title(); got != tc.want {
				t.Errorf("%q gives the title %q; want %q", tc.written, got, tc.want)
			}
		})
	}
}

// The law of a stream: where it is cut makes no difference.
func FuzzCutsMakeNoDifference(f *testing.F) {
	f.Add("a\x1b[2;3Hé\x1b]0;t\x07\x1b[?1049h❯", 3)
	f.Add("\x1b]0;t\x1b\\x\x1b(B", 5)
	f.Add("\x1b[?25l\x1b[>4;2m"+strings.Repeat("wrap", 9), 7)
	f.Fuzz(func(t *testing.T, written string, cut int) {
		whole, parts := screen.New(4, 8), screen.New(4, 8)
		_, _ = whole.Write([]byte(written))
		cut = max(0, min(cut, len(written)))
		for _, part := range []string{written[:cut], written[cut:]} {
			_, _ = parts.Write([]byte(part))
		}
		if got, want := parts.String(), whole.String(); got != want {
			t.Errorf("%q cut at %d shows %q; want %q", written, cut, got, want)
		}
		if got, want := parts.Title(), whole.Title(); got != want {
			t.Errorf("%q cut at %d has the title %q; want %q", written, cut, got, want)
		}
		if got, want := parts.Modes(), whole.Modes(); !slices.Equal(got, want) {
			t.Errorf("%q cut at %d leaves %q; want %q", written, cut, got, want)
		}
	})
}
