// Package toml reads and writes the settings of an agent that keeps them in TOML. What it reads has the types that
// encoding/json has for the same values: map[string]any, []any, string, bool, json.Number. What JSON has no number for
// (dates, infinity) is a string. It does no I/O.
//
// It trusts nothing of what it reads, as an agent may have written that: it takes time in proportion to the text. The
// usual libraries take 9 s for 20 KB with one deep key, or 20 s for 60,000 keys of two words.
package toml

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"claudebox/internal/diag/pattern"
)

// deepest bounds how deep values and keys lie in one another.
const deepest = 50

var errTOML = errors.New("is no TOML")

// Parse reads a document. The error says in which line it is none.
func Parse(text []byte) (root map[string]any, err error) {
	p := parser{rest: strings.ReplaceAll(string(text), "\r\n", "\n")}
	whole := p.rest
	defer func() {
		if failed := recover(); failed != nil && failed != errTOML { //nolint:errorlint // it is that very value
			panic(failed)
		} else if failed != nil {
			line := strings.Count(whole[:len(whole)-len(p.rest)], "\n") + 1
			root, err = nil, fmt.Errorf("line %d %w", line, errTOML)
		}
	}()
	p.must(utf8.Valid(text))
	root = map[string]any{}
	table := root
	for p.space(true); p.rest != ""; p.space(true) {
		switch {
		case p.skip("[["):
			name := p.key()
			p.need("]]")
			table = below(root, name[:len(name)-1])
			last := name[len(name)-1]
			list, isList := table[last].([]any)
			p.must(isList || table[last] == nil)
			next := map[string]any{}
			table[last], table = append(list, next), next
		case p.skip("["):
			table = below(root, p.key())
			p.need("]")
		default:
			p.pair(table, 0)
		}
		p.space(false)
		p.must(p.rest == "" || p.rest[0] == '\n')
	}
	return root, nil
}

// below is the table with a name in another one, made where it is missing; of several the last.
func below(table map[string]any, name []string) map[string]any {
	for _, word := range name {
		if table[word] == nil {
			table[word] = map[string]any{}
		}
		value := table[word]
		if list, isList := value.([]any); isList && len(list) > 0 {
			value = list[len(list)-1]
		}
		next, is := value.(map[string]any)
		if !is {
			panic(errTOML)
		}
		table = next
	}
	return table
}

// parser has what is not read yet. Its methods panic with [errTOML].
type parser struct{ rest string }

func (p *parser) must(is bool) {
	if !is {
		panic(errTOML)
	}
}

func (p *parser) skip(text string) (was bool) {
	p.rest, was = strings.CutPrefix(p.rest, text)
	return was
}

func (p *parser) need(text string) {
	p.space(false)
	p.must(p.skip(text))
}

// space skips blanks, and with lines also ends of lines and comments of their own.
func (p *parser) space(lines bool) {
	for {
		p.rest = strings.TrimLeft(p.rest, " \t")
		if strings.HasPrefix(p.rest, "#") {
			comment, _, _ := strings.Cut(p.rest, "\n")
			p.rest = p.rest[len(comment):]
		}
		if !lines || !p.skip("\n") {
			return
		}
	}
}

const bare pattern.Expr = `^[A-Za-z0-9_-]+`

// key reads a name, of several words with dots between.
func (p *parser) key() (name []string) {
	for len(name) < deepest {
		p.space(false)
		word := bare.Compiled().FindString(p.rest)
		if word == "" {
			p.must(p.rest != "" && strings.Contains(`"'`, p.rest[:1]))
			word = p.text()
		} else {
			p.rest = p.rest[len(word):]
		}
		name = append(name, word)
		p.space(false)
		if !p.skip(".") {
			return name
		}
	}
	panic(errTOML)
}

// pair reads a name and its value into a table.
func (p *parser) pair(table map[string]any, depth int) {
	name := p.key()
	p.need("=")
	p.space(false)
	last := len(name) - 1
	table = below(table, name[:last])
	p.must(table[name[last]] == nil)
	table[name[last]] = p.value(depth + 1)
}

// word matches what is neither a text, nor a list, nor a table.
const word pattern.Expr = `^[A-Za-z0-9_+.:-]+( \d\d:[0-9:.+Z-]+)?`

func (p *parser) value(depth int) any {
	p.must(p.rest != "" && depth < deepest)
	switch {
	case strings.Contains(`"'`, p.rest[:1]):
		return p.text()
	case p.skip("["):
		list := []any{}
		p.items("]", func() { list = append(list, p.value(depth+1)) })
		return list
	case p.skip("{"):
		table := map[string]any{}
		p.items("}", func() { p.pair(table, depth) })
		return table
	}
	found := word.Compiled().FindString(p.rest)
	p.must(found != "")
	p.rest = p.rest[len(found):]
	number := strings.TrimPrefix(strings.ReplaceAll(found, "_", ""), "+")
	switch {
	case found == "true" || found == "false":
		return found == "true"
	case strings.IndexAny(number, "-0123456789") == 0 && json.Valid([]byte(number)):
		return json.Number(number)
	}
	if n, err := strconv.ParseInt(number, 0, 64); err == nil {
		return json.Number(strconv.FormatInt(n, 10))
	}
	return found
}

// items reads what stands between commas, until end.
func (p *parser) items(end string, item func()) {
	for p.space(true); !p.skip(end); p.space(true) {
		item()
		p.space(true)
		if !p.skip(",") {
			p.need(end)
			return
		}
	}
}

// text reads a text in one of its four forms.
func (p *parser) text() string {
	for _, quote := range []string{`"""`, `'''`, `"`, `'`} {
		if !p.skip(quote) {
			continue
		}
		long := len(quote) > 1
		if long {
			p.skip("\n")
		}
		var b strings.Builder
		for !strings.HasPrefix(p.rest, quote) || long && strings.HasPrefix(p.rest[1:], quote) {
			p.must(p.rest != "" && (long || p.rest[0] != '\n'))
			if quote[0] == '"' && p.skip(`\`) {
				b.WriteString(p.escape(long))
				continue
			}
			b.WriteByte(p.rest[0])
			p.rest = p.rest[1:]
		}
		p.skip(quote)
		return b.String()
	}
	panic(errTOML)
}

// escape reads what stands behind a backslash. At the end of a line it and all blanks that follow mean nothing.
func (p *parser) escape(long bool) string {
	if end := strings.TrimLeft(p.rest, " \t"); long && strings.HasPrefix(end, "\n") {
		p.rest = strings.TrimLeft(end, " \t\n")
		return ""
	}
	p.must(p.rest != "")
	const plain, means = `btnfre"\`, "\b\t\n\f\r\x1b\"\\"
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[p.rest[0]]
	if digits == 0 {
		at := strings.IndexByte(plain, p.rest[0])
		p.must(at >= 0)
		p.rest = p.rest[1:]
		return means[at : at+1]
	}
	p.must(len(p.rest) > digits)
	code, err := strconv.ParseUint(p.rest[1:digits+1], 16, 32)
	p.must(err == nil)
	p.rest = p.rest[digits+1:]
	return string(rune(code))
}

// Format writes a document with one line for each key.
func Format(root map[string]any) []byte {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(root)) {
		b.WriteString(named(key) + " = ")
		format(&b, root[key])
		b.WriteString("\n")
	}
	return []byte(b.String())
}

func format(b *strings.Builder, value any) {
	switch v := value.(type) {
	case map[string]any:
		b.WriteString("{")
		for i, key := range slices.Sorted(maps.Keys(v)) {
			b.WriteString(strings.Repeat(", ", min(i, 1)) + named(key) + " = ")
			format(b, v[key])
		}
		b.WriteString("}")
	case []any:
		b.WriteString("[")
		for i, item := range v {
			b.WriteString(strings.Repeat(", ", min(i, 1)))
			format(b, item)
		}
		b.WriteString("]")
	case string:
		b.WriteString(quoted(v))
	default:
		fmt.Fprint(b, v)
	}
}

// named is a key, in quotes where it needs them.
func named(key string) string {
	if key != "" && bare.Compiled().FindString(key) == key {
		return key
	}
	return quoted(key)
}

// quoted is a text as JSON writes it, which TOML reads alike but for one character.
func quoted(text string) string {
	written, err := json.Marshal(text)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return strings.ReplaceAll(string(written), "\x7f", `\u007f`)
}
