package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// source is one rule as it stands in its source.
type source struct {
	id      string
	what    string // what the rule finds, with its article: "a GitHub token"
	expr    string // regular expression, RE2
	entropy float64
}

// field matches the lines of gitleaks.toml that are needed; all others (keywords,
// allow lists) are skipped.
var field = regexp.MustCompile(`^(id|description|regex|entropy) = (?:"(.*)"|'''(.*)'''|([0-9.]+))$`)

// read returns the rules in gitleaks' file. A program of theirs writes that file, with one
// field per line.
func read(toml string) ([]source, error) {
	var list []source
	for i, line := range strings.Split(toml, "\n") {
		if line == "[[rules]]" {
			list = append(list, source{})
			continue
		}
		found := field.FindStringSubmatch(line)
		if found == nil || len(list) == 0 {
			continue
		}
		if err := list[len(list)-1].set(found[1], found[2]+found[3]+found[4]); err != nil {
			return nil, fmt.Errorf("gitleaks.toml:%d: %w", i+1, err)
		}
	}
	return list, nil
}

func (s *source) set(name, value string) (err error) {
	target := map[string]*string{"id": &s.id, "description": &s.what, "regex": &s.expr}[name]
	switch {
	case target == nil:
		s.entropy, err = strconv.ParseFloat(value, 64)
	case *target == "": // a rule's allow lists have descriptions and expressions too
		*target = value
	}
	return err
}
