package manual

import (
	"bytes"
	"fmt"
	"strings"
)

// page is a manual page that is being written. Text may be of several
// paragraphs; indented lines stay as they are, and `words` stand out.
type page struct{ bytes.Buffer }

// newPage begins a page: its title, section and what it is about in one line.
func newPage(title string, section int, about string) *page {
	p := &page{}
	p.line(`.\" Made by checks/docs from the program's own tables: do not edit.`)
	p.line(`.TH %s %d "" claudebox`, strings.ToUpper(title), section)
	p.line(".ad l\n.nh") // ragged and unbroken: keys and flags are looked for
	p.section("name")
	p.line(`%s \- %s`, escape(title), escape(about))
	return p
}

// line writes one line of roff, without escaping.
func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) section(title string) { p.line(".SH %s", strings.ToUpper(title)) }

func (p *page) subsection(title string) { p.line(`.SS "%s"`, escape(title)) }

// text writes paragraphs, each but the first below a gap.
func (p *page) text(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			p.line(".PP")
		}
		if strings.HasPrefix(paragraph, "  ") {
			p.example(paragraph)
			continue
		}
		p.fill(inline(strings.Join(strings.Fields(paragraph), " ")))
	}
}

// fill writes one paragraph in lines that a difference can be read in.
func (p *page) fill(text string) {
	for len(text) > width {
		end := strings.LastIndexByte(text[:width], ' ')
		if end < 0 {
			break
		}
		p.line("%s", begin(text[:end]))
		text = text[end+1:]
	}
	p.line("%s", begin(text))
}

const width = 80

// example writes lines as they are.
func (p *page) example(text string) {
	p.line(".RS 4\n.nf")
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		p.line("%s", begin(escape(strings.TrimPrefix(strings.TrimRight(line, "\n"), "  "))))
	}
	p.line(".fi\n.RE")
}

// entry writes a term and what it means.
func (p *page) entry(term, meaning string) {
	p.line(".TP\n%s", begin(inline(term)))
	p.text(meaning)
}

// inline sets `words` in bold.
func inline(text string) string {
	parts := strings.Split(text, "`")
	var b strings.Builder
	for i, part := range parts {
		switch {
		case i%2 == 1 && i < len(parts)-1:
			b.WriteString(`\fB` + escape(part) + `\fR`)
		case i%2 == 1:
			b.WriteString(escape("`" + part))
		default:
			b.WriteString(escape(part))
		}
	}
	return b.String()
}

var special = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`, "`", `\(ga`)

// escape gives text that roff shows as it is: dashes that can be searched for, quotes that are not curled.
func escape(text string) string { return special.Replace(text) }

// begin keeps the start of a line from being taken for a request.
func begin(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}

// sentence ends text as a sentence.
func sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
