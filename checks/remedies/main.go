// Command remedies lists what claudebox tells people to do: every remedy in the program, with its place and the test
// that follows it, by followed.txt and stories.txt beside it.
//
//	go run ./checks/remedies
package main

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// remedy is one text, with … for what is only known when it is said.
type remedy struct{ place, text string }

// arguments are the functions that take a remedy, with its position.
var arguments = map[string]int{"Errorf": 1, "Wrap": 2, "fail": 1, "failed": 1, "warning": 1, "refuse": 1}

func main() {
	list, err := remedies("internal")
	if err != nil {
		fmt.Fprintln(os.Stderr, "remedies:", err)
		os.Exit(1)
	}
	tests, count := follow(), 0
	for _, r := range list {
		test := testOf(r, tests)
		if test != "" {
			count++
		}
		fmt.Printf("%s: %s\n\t%s\n", r.place, r.text, test)
	}
	fmt.Printf("%d remedies; the texts of %d are followed by a test, %d stories among them; "+
		"what TestRemediesCanBeFollowed follows is not counted\n", len(list), count, len(stories()))
}

// remedies reads the remedies in the Go files below a folder, each once.
func remedies(top string) (list []remedy, err error) {
	err = filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, e := range remediesIn(n) {
				text := textOf(e)
				if strings.Trim(text, "… ") != "" {
					list = append(list, remedy{fmt.Sprintf("%s:%d", name, set.Position(e.Pos()).Line), text})
				}
			}
			return true
		})
		return nil
	})
	slices.SortFunc(list, func(a, b remedy) int { return strings.Compare(a.text+a.place, b.text+b.place) })
	return slices.CompactFunc(list, func(a, b remedy) bool { return a.text == b.text }), err
}

// remediesIn returns the expressions in a node that are remedies: an argument, a field, or the value of a variable.
func remediesIn(n ast.Node) []ast.Expr {
	isRemedy := func(e ast.Expr) bool {
		name, is := e.(*ast.Ident)
		return is && strings.Contains(strings.ToLower(name.Name), "remedy")
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		name := ""
		switch f := n.Fun.(type) {
		case *ast.SelectorExpr:
			name = f.Sel.Name
			if on, is := f.X.(*ast.Ident); name == "Errorf" && (!is || on.Name != "diag") {
				return nil
			}
		case *ast.Ident:
			name = f.Name
		}
		if at, takes := arguments[name]; takes && at < len(n.Args) {
			return n.Args[at : at+1]
		}
	case *ast.KeyValueExpr:
		if isRemedy(n.Key) {
			return []ast.Expr{n.Value}
		}
	case *ast.AssignStmt:
		if len(n.Lhs) == len(n.Rhs) {
			for i := range n.Lhs {
				if isRemedy(n.Lhs[i]) {
					return n.Rhs[i : i+1]
				}
			}
		}
	case *ast.ValueSpec:
		for i := range n.Values {
			if isRemedy(n.Names[i]) {
				return n.Values[i : i+1]
			}
		}
	}
	return nil
}

// textOf is the text of an expression.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	case *ast.CallExpr:
		if f, is := e.Fun.(*ast.SelectorExpr); is && f.Sel.Name == "Sprintf" {
			return textOf(e.Args[0])
		}
	}
	return "…"
}

//go:embed followed.txt
var table string

//go:embed stories.txt
var told string

// followed says which test follows the remedies that hold a text.
type followed struct{ test, text string }

// follow reads the table, a test and a text on each line, and the stories.
func follow() (list []followed) {
	for line := range strings.Lines(table) {
		if test, text, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			list = append(list, followed{test, text})
		}
	}
	for _, s := range stories() {
		list = append(list, followed{"TestStoriesOfRemedies", s.says})
	}
	return list
}

// testOf returns the test that follows a remedy; empty: none does.
func testOf(r remedy, list []followed) string {
	for _, f := range list {
		if f.isOf(r) {
			return f.test
		}
	}
	return ""
}

// isOf reports whether a text is a part of a remedy, or the whole of it with what is only known when it is said.
func (f followed) isOf(r remedy) bool {
	if strings.Contains(r.text, f.text) {
		return true
	}
	pieces := strings.FieldsFunc(strings.NewReplacer("%s", "…", "%d", "…").Replace(r.text), func(c rune) bool { return c == '…' })
	rest, whole := f.text, len(pieces) > 1
	for _, piece := range pieces {
		at := strings.Index(rest, piece)
		if at < 0 {
			return false
		}
		rest = rest[at+len(piece):]
	}
	return whole
}

// story is one of stories.txt: what goes wrong, what is said, and what works then.
type story struct{ name, given, run, says, do, then string }

// stories reads stories.txt.
func stories() (list []story) {
	for line := range strings.Lines(told) {
		if name, is := strings.CutPrefix(line, "== "); is {
			list = append(list, story{name: strings.TrimSpace(name), given: ":", do: ":"})
			continue
		}
		key, value, is := strings.Cut(line, ":")
		if !is || len(list) == 0 {
			continue
		}
		s, value := &list[len(list)-1], strings.TrimSpace(value)
		switch key {
		case "given":
			s.given = value
		case "run":
			s.run, s.then = value, value
		case "says":
			s.says = value
		case "do":
			s.do = value
		case "then":
			s.then = value
		}
	}
	return list
}
