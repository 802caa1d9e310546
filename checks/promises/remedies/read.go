package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// remedy is one text, with … for what is only known when it is said.
type remedy struct{ place, text string }

// folder is the Go of one package, with what its remedies are found by.
type folder struct {
	files   []*ast.File
	values  map[string]ast.Expr // of the constants and variables of the package
	takes   map[string]int      // functions and methods, with the argument that is a remedy
	gives   map[string]int      // functions, with the result that is a remedy
	structs map[string]int      // types, with the field that is a remedy

	functions map[string]*ast.FuncDecl // of one result
	all       map[string]*folder       // by the last element of its path, which imports are used by
}

// remedies reads the remedies in the Go files below a folder, each once: what is given as an argument, a field, a
// variable or a result that the program calls a remedy.
func remedies(top string) (list []remedy, err error) {
	set, folders, all := token.NewFileSet(), map[string]*folder{}, map[string]*folder{}
	err = filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.Dir(name)
		if folders[dir] == nil {
			folders[dir] = &folder{
				nil, map[string]ast.Expr{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]*ast.FuncDecl{}, all,
			}
		}
		all[filepath.Base(dir)] = folders[dir]
		folders[dir].add(file)
		return nil
	})
	for _, f := range folders {
		for _, file := range f.files {
			for _, e := range f.remediesIn(file) {
				text := f.textOf(e)
				if strings.Trim(text, "… ") != "" {
					at := set.Position(e.Pos())
					list = append(list, remedy{fmt.Sprintf("%s:%d", at.Filename, at.Line), text})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b remedy) int { return strings.Compare(a.text+a.place, b.text+b.place) })
	return slices.CompactFunc(list, func(a, b remedy) bool { return a.text == b.text }), err
}

func isRemedy(name string) bool { return strings.HasSuffix(strings.ToLower(name), "remedy") }

// placeIn returns which of a list's names is a remedy; -1: none.
func placeIn(list *ast.FieldList) (at int) {
	if list == nil {
		return -1
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			if isRemedy(name.Name) {
				return at
			}
			at++
		}
		at += max(1-len(field.Names), 0)
	}
	return -1
}

// add notes the functions, types and values of a file.
func (f *folder) add(file *ast.File) {
	f.files = append(f.files, file)
	note := func(to map[string]int, name string, list *ast.FieldList) {
		if at := placeIn(list); at >= 0 {
			to[name] = at
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			note(f.takes, n.Name.Name, n.Type.Params)
			note(f.gives, n.Name.Name, n.Type.Results)
			if n.Type.Results.NumFields() == 1 && n.Body != nil {
				f.functions[n.Name.Name] = n
				if strings.Contains(strings.ToLower(n.Name.Name), "remedy") {
					f.gives[n.Name.Name] = 0
				}
			}
		case *ast.AssignStmt: // of a function without a name
			lit, is := n.Rhs[0].(*ast.FuncLit)
			if name, named := n.Lhs[0].(*ast.Ident); is && named {
				note(f.takes, name.Name, lit.Type.Params)
			}
		case *ast.TypeSpec:
			if fields, is := n.Type.(*ast.StructType); is {
				note(f.structs, n.Name.Name, fields.Fields)
			}
		}
		return true
	})
	for _, decl := range file.Decls {
		if values, is := decl.(*ast.GenDecl); is {
			for _, spec := range values.Specs {
				if v, is := spec.(*ast.ValueSpec); is && len(v.Values) == len(v.Names) {
					for i, name := range v.Names {
						f.values[name.Name] = v.Values[i]
					}
				}
			}
		}
	}
}

// remediesIn returns the expressions in a file that are remedies.
func (f *folder) remediesIn(file *ast.File) (list []ast.Expr) {
	for _, decl := range file.Decls {
		if function, is := decl.(*ast.FuncDecl); is && function.Body != nil {
			if at, gives := f.gives[function.Name.Name]; gives {
				list = append(list, f.whole(results(function, at), decl)...)
			}
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			list = append(list, f.whole(f.remediesAt(n), decl)...)
			return true
		})
	}
	return list
}

// remediesAt returns the remedies of a node: an argument, a field, or the value of a variable.
func (f *folder) remediesAt(n ast.Node) (list []ast.Expr) {
	switch n := n.(type) {
	case *ast.CallExpr:
		if at, is := f.taken(n.Fun); is && at < len(n.Args) {
			return n.Args[at : at+1]
		}
	case *ast.KeyValueExpr:
		if key, is := n.Key.(*ast.Ident); is && isRemedy(key.Name) {
			return []ast.Expr{n.Value}
		}
	case *ast.AssignStmt, *ast.ValueSpec:
		return assigned(n, isRemedy)
	case *ast.CompositeLit:
		at, literals := f.fields(n)
		for _, l := range literals {
			if at >= 0 && at < len(l.Elts) {
				if _, keyed := l.Elts[at].(*ast.KeyValueExpr); !keyed {
					list = append(list, l.Elts[at])
				}
			}
		}
	}
	return list
}

// assigned returns what a node gives to the variables or constants of a name.
func assigned(n ast.Node, is func(name string) bool) (list []ast.Expr) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i := range n.Lhs {
			if name, named := n.Lhs[i].(*ast.Ident); named && is(name.Name) && len(n.Lhs) == len(n.Rhs) {
				list = append(list, n.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		for i := range n.Values {
			if is(n.Names[i].Name) {
				list = append(list, n.Values[i])
			}
		}
	}
	return list
}

// results returns what a function returns at a place.
func results(function *ast.FuncDecl, at int) (list []ast.Expr) {
	ast.Inspect(function.Body, func(n ast.Node) bool {
		if r, is := n.(*ast.ReturnStmt); is && at < len(r.Results) {
			list = append(list, r.Results[at])
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	return list
}

// whole follows variables of a function to what they are given, the choices of cmp.Or, and the functions of the package
// that are called for a remedy.
func (f *folder) whole(of []ast.Expr, decl ast.Decl) (list []ast.Expr) {
	for _, e := range of {
		switch e := e.(type) {
		case *ast.Ident:
			if f.values[e.Name] == nil && !isRemedy(e.Name) {
				ast.Inspect(decl, func(n ast.Node) bool {
					given := assigned(n, func(name string) bool { return name == e.Name })
					if len(given) > 0 && given[0] != ast.Expr(e) {
						list = append(list, f.whole(given, decl)...)
					}
					return true
				})
				continue
			}
		case *ast.IndexExpr: // of a table of remedies
			if table, is := e.X.(*ast.Ident); is && f.values[table.Name] != nil {
				for _, entry := range f.values[table.Name].(*ast.CompositeLit).Elts {
					list = append(list, entry.(*ast.KeyValueExpr).Value)
				}
				continue
			}
		case *ast.CallExpr:
			if called := f.called(e.Fun); called != nil {
				list = append(list, results(called, 0)...)
				continue
			}
			if called, is := e.Fun.(*ast.SelectorExpr); is && called.Sel.Name == "Or" {
				list = append(list, f.whole(e.Args, decl)...)
				continue
			}
		}
		list = append(list, e)
	}
	return list
}

// taken returns which argument of a function is a remedy.
func (f *folder) taken(function ast.Expr) (at int, is bool) {
	switch function := function.(type) {
	case *ast.Ident:
		at, is = f.takes[function.Name]
	case *ast.SelectorExpr:
		name, of := function.Sel.Name, f
		if on, isName := function.X.(*ast.Ident); isName && f.all[on.Name] != nil {
			of = f.all[on.Name]
		}
		at, is = of.takes[name]
		if !is && of == f && name == "Problem" { // a method of shape's
			at, is = f.all["shape"].takes[name]
		}
	}
	return at, is
}

// fields returns the values without keys that are of a type with a remedy: one, or those of a list.
func (f *folder) fields(n *ast.CompositeLit) (at int, list []*ast.CompositeLit) {
	of := n.Type
	if array, is := of.(*ast.ArrayType); is {
		of = array.Elt
		for _, e := range n.Elts {
			if l, is := e.(*ast.CompositeLit); is {
				list = append(list, l)
			}
		}
	} else {
		list = []*ast.CompositeLit{n}
	}
	switch of := of.(type) {
	case *ast.StructType:
		return placeIn(of.Fields), list
	case *ast.Ident:
		if at, is := f.structs[of.Name]; is {
			return at, list
		}
	}
	return -1, nil
}

// called returns the function of the package that is called; nil if it is another's.
func (f *folder) called(function ast.Expr) *ast.FuncDecl {
	switch function := function.(type) {
	case *ast.Ident:
		return f.functions[function.Name]
	case *ast.SelectorExpr:
		if on, is := function.X.(*ast.Ident); is && f.all[on.Name] == nil {
			return f.functions[function.Sel.Name]
		}
	}
	return nil
}

// textOf is the text of an expression.
func (f *folder) textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return f.textOf(e.X) + f.textOf(e.Y)
	case *ast.Ident:
		if value, is := f.values[e.Name]; is {
			return f.textOf(value)
		}
	case *ast.SelectorExpr: // a constant of another package
		if of, is := e.X.(*ast.Ident); is && f.all[of.Name] != nil && f.all[of.Name].values[e.Sel.Name] != nil {
			return f.all[of.Name].textOf(e.Sel)
		}
	case *ast.CallExpr:
		if called, is := e.Fun.(*ast.SelectorExpr); is && called.Sel.Name == "Sprintf" {
			return f.textOf(e.Args[0])
		}
	}
	return "…"
}
