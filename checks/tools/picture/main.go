// Command picture turns what a terminal shows, as `tmux capture-pane -e` prints
// it on standard input, into a picture, on standard output. checks/question
// takes docs/question.svg with it.
package main

import (
	"bufio"
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

// colours are those of the few attributes that claudebox uses (ECMA-48).
var colours = map[string]string{"31": "#e06c75", "32": "#98c379", "33": "#e5c07b", "2": "#7f848e"}

const (
	plain  = "#d7dae0"
	ground = "#1e2127"
	column = 8.4 // width of a character, in units of the picture
	row    = 19
	margin = 14
	size   = 14
)

// attribute is a change of how text looks.
var attribute = regexp.MustCompile("\x1b\\[([0-9;]*)m")

func main() {
	var lines []string
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		lines = append(lines, strings.TrimRight(in.Text(), " "))
	}
	for len(lines) > 0 && attribute.ReplaceAllString(lines[len(lines)-1], "") == "" {
		lines = lines[:len(lines)-1]
	}
	widest := 0
	for _, line := range lines {
		widest = max(widest, utf8.RuneCountInString(attribute.ReplaceAllString(line, "")))
	}
	width, height := float64(widest)*column+2*margin, len(lines)*row+2*margin
	fmt.Printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d">`+"\n", width, height, width, height)
	fmt.Printf(`<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", ground)
	fmt.Printf(`<g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="%d" xml:space="preserve">`+"\n", size)
	look := style{fill: plain}
	for i, line := range lines {
		fmt.Printf(`<text x="%d" y="%d">%s</text>`+"\n", margin, margin+size+i*row, look.spans(line))
	}
	fmt.Println("</g>\n</svg>")
}

// style is how text looks that follows.
type style struct {
	fill string
	bold bool
}

// spans is a line as parts that look alike.
func (s *style) spans(line string) string {
	var b strings.Builder
	at := 0
	for _, m := range attribute.FindAllStringSubmatchIndex(line, -1) {
		s.write(&b, line[at:m[0]])
		s.change(line[m[2]:m[3]])
		at = m[1]
	}
	s.write(&b, line[at:])
	return b.String()
}

func (s *style) write(b *strings.Builder, text string) {
	if text == "" {
		return
	}
	weight := ""
	if s.bold {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(b, `<tspan fill="%s"%s>%s</tspan>`, s.fill, weight, html.EscapeString(text))
}

func (s *style) change(codes string) {
	for code := range strings.SplitSeq(codes, ";") {
		switch code {
		case "", "0":
			*s = style{fill: plain}
		case "39":
			s.fill = plain
		case "1":
			s.bold = true
		default:
			if fill, known := colours[code]; known {
				s.fill = fill
			}
		}
	}
}
