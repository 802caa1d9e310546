package main

import (
	"regexp/syntax"
	"strings"
)

// What gen requires of a rule's beginning: with fewer letters too many words would be
// tried with its expression, and more beginnings would make the table long.
const (
	fewestLetters = 2
	mostWays      = 6
)

// beginnings returns the literals, in lower case, such that every match of expr begins
// with one of them. It returns none if there are too many, or one is too short.
func beginnings(expr string) ([]string, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	ways, _ := begin(tree.Simplify())
	if len(ways) == 0 || len(ways) > mostWays {
		return nil, nil
	}
	for _, way := range ways {
		if len(way) < fewestLetters {
			return nil, nil
		}
	}
	return ways, nil
}

// begin returns the literals that matches of a node begin with. whole means that they are
// complete matches of the node, so that what follows the node can be appended.
func begin(n *syntax.Regexp) (ways []string, whole bool) {
	switch n.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(n.Rune))}, true
	case syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpBeginText, syntax.OpBeginLine:
		return []string{""}, true
	case syntax.OpCapture:
		return begin(n.Sub[0])
	case syntax.OpCharClass:
		return letters(n)
	case syntax.OpConcat:
		return beginConcat(n.Sub)
	case syntax.OpAlternate:
		return beginAlternate(n.Sub)
	}
	return []string{""}, false
}

// letters returns the characters of a class, if there are few.
func letters(n *syntax.Regexp) (ways []string, whole bool) {
	for i := 0; i < len(n.Rune); i += 2 {
		for r := n.Rune[i]; r <= n.Rune[i+1]; r++ {
			if ways = append(ways, strings.ToLower(string(r))); len(ways) > mostWays {
				return []string{""}, false
			}
		}
	}
	return ways, true
}

func beginConcat(parts []*syntax.Regexp) (ways []string, whole bool) {
	ways = []string{""}
	for _, part := range parts {
		next, whole := begin(part)
		if len(ways)*len(next) > mostWays {
			return ways, false
		}
		ways = product(ways, next)
		if !whole {
			return ways, false
		}
	}
	return ways, true
}

func product(heads, tails []string) []string {
	var all []string
	for _, head := range heads {
		for _, tail := range tails {
			all = append(all, head+tail)
		}
	}
	return all
}

func beginAlternate(parts []*syntax.Regexp) (ways []string, whole bool) {
	whole = true
	for _, part := range parts {
		next, all := begin(part)
		ways, whole = append(ways, next...), whole && all
	}
	return ways, whole
}
