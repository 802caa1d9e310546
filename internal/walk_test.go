package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// A step is one function of the walk through a launch, see docs/architecture.md.
type step struct {
	name, file string          // "planner.plan" is a method
	calls      map[string]bool // names of what it calls, in whatever package
}

// function is the name by which others call the step.
func (s step) function() string { return s.name[strings.LastIndexByte(s.name, '.')+1:] }

var stepLine = regexp.MustCompile("(?m)^([0-9]+)\\. `([A-Za-z.]+)` in `([a-z_/]+\\.go)`: .+$")

// readWalk reads the list, and the functions that it names.
func readWalk(t *testing.T) []step {
	t.Helper()
	text := must.Read(t, filepath.Join(top, "docs/architecture.md"))
	var walk []step
	for _, found := range stepLine.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(found[1]); err != nil || n != len(walk)+1 {
			t.Errorf("%s stands where %d should", found[1], len(walk)+1)
		}
		s := step{name: found[2], file: found[3]}
		if s.calls = callsOf(t, s); s.calls == nil {
			t.Errorf("step %d: there is no %s in %s", len(walk)+1, s.name, s.file)
		}
		walk = append(walk, s)
	}
	return walk
}

// callsOf are the names that a step's function calls; nil when there is no such
// function.
func callsOf(t *testing.T, s step) map[string]bool {
	t.Helper()
	list := functionsIn(t, filepath.Join(top, s.file))
	at := slices.IndexFunc(list, func(f step) bool { return f.name == s.name })
	if at < 0 {
		return nil
	}
	return list[at].calls
}

// calls are the names of what a function calls.
func calls(f *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if call, is := n.(*ast.CallExpr); is {
			switch f := call.Fun.(type) {
			case *ast.Ident:
				names[f.Name] = true
			case *ast.SelectorExpr:
				names[f.Sel.Name] = true
			}
		}
		return true
	})
	return names
}

// nameOf is a function's name, with its receiver's type before it.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	kind := f.Recv.List[0].Type
	if star, is := kind.(*ast.StarExpr); is {
		kind = star.X
	}
	return kind.(*ast.Ident).Name + "." + f.Name.Name
}

// A launch can be read from main to execve without going back up.
func TestTheWalkThroughALaunchIsAsWritten(t *testing.T) {
	walk := readWalk(t)
	if len(walk) < 15 || len(walk) > 25 {
		t.Fatalf("the walk has %d steps; want 15 to 25", len(walk))
	}
	if first, last := walk[0], walk[len(walk)-1]; first.file != "cmd/claudebox/main.go" || !last.calls["ForkExec"] {
		t.Errorf("it leads from %s to %s; want from main to what executes", first.name, last.name)
	}
	for i, s := range walk[1:] {
		if !slices.ContainsFunc(walk[:i+1], func(earlier step) bool { return reaches(t, earlier, s.function()) }) {
			t.Errorf("step %d: no earlier step calls %s", i+2, s.name)
		}
	}
	for i, s := range walk {
		for _, earlier := range walk[:i] {
			if s.calls[earlier.function()] && !strings.Contains(earlier.name, ".") && filepath.Dir(s.file) == filepath.Dir(earlier.file) {
				t.Errorf("step %d: %s calls %s, which is above it", i+1, s.name, earlier.name)
			}
		}
	}
}

// reaches reports whether a step calls a function, or calls one of its own file
// or package that does.
func reaches(t *testing.T, s step, function string) bool {
	t.Helper()
	if s.calls[function] {
		return true
	}
	files, err := filepath.Glob(filepath.Join(top, filepath.Dir(s.file), "*.go"))
	must.Do(t, err)
	for name := range s.calls {
		for _, file := range files {
			for _, candidate := range functionsIn(t, file) {
				if candidate.function() == name && candidate.calls[function] {
					return true
				}
			}
		}
	}
	return false
}

var parsed = map[string][]step{}

// functionsIn are the functions of a file, read once.
func functionsIn(t *testing.T, file string) []step {
	t.Helper()
	if known, is := parsed[file]; is {
		return known
	}
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	must.Do(t, err)
	var list []step
	for _, decl := range tree.Decls {
		if f, is := decl.(*ast.FuncDecl); is {
			list = append(list, step{name: nameOf(f), file: strings.TrimPrefix(file, top+"/"), calls: calls(f)})
		}
	}
	parsed[file] = list
	return list
}
