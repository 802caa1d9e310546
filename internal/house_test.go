package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"claudebox/checks/kit/must"
)

// top is the folder of the whole project.
const top = ".."

// vendored is where a build without network finds other people's code.
const vendored = top + "/vendor"

// eachFile hands every file of Go's to a function, parsed with its comments.
func eachFile(t *testing.T, do func(name string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	count := 0
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if name == vendored && err == nil {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err == nil {
			count++
			do(strings.TrimPrefix(name, top+"/"), set, file)
		}
		return err
	})
	if err != nil || count < 100 {
		t.Fatalf("%d files were read: %v", count, err)
	}
}

// A function that does not fit a screen does two things. The table of a test may
// be as long as it likes.
func TestFunctionsAreShort(t *testing.T) {
	const most = 60
	eachFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, decl := range file.Decls {
			f, is := decl.(*ast.FuncDecl)
			if !is {
				continue
			}
			if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > most {
				t.Errorf("%s: %s has %d lines; at most %d", name, f.Name.Name, lines, most)
			}
		}
	})
}

// A line is read without scrolling: at most 120 columns, a tab being four. What
// is generated may be longer, and what stands between backquotes.
func TestLinesAreShort(t *testing.T) {
	const most = 120
	eachFile(t, func(name string, _ *token.FileSet, file *ast.File) {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "checks/") || ast.IsGenerated(file) {
			return
		}
		text := must.Read(t, filepath.Join(top, name))
		number := 0
		for line := range strings.Lines(text) {
			number++
			line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")
			if columns := utf8.RuneCountInString(line); columns > most && !strings.Contains(line, "`") {
				t.Errorf("%s:%d has %d columns; at most %d", name, number, columns, most)
			}
		}
	})
}

// Comments speak of a user as they, and of what a function reports.
func TestCommentsAreInPlainEnglish(t *testing.T) {
	dialect := regexp.MustCompile(`(?i)\b(tells? whether|says whether|he|him|his|himself)\b`)
	eachFile(t, func(name string, set *token.FileSet, file *ast.File) {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if found := dialect.FindString(comment.Text); found != "" {
					t.Errorf("%s: a comment says %q", set.Position(comment.Pos()), found)
				}
			}
		}
	})
}

// Nothing runs before main, so the order of imports decides nothing.
func TestNothingRunsBeforeMain(t *testing.T) {
	eachFile(t, func(name string, _ *token.FileSet, file *ast.File) {
		for _, decl := range file.Decls {
			if f, is := decl.(*ast.FuncDecl); is && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init", name)
			}
		}
	})
}

func TestThereIsNoAssembly(t *testing.T) {
	must.Do(t, filepath.WalkDir(top, func(name string, _ fs.DirEntry, err error) error {
		if name == vendored && err == nil {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".s") {
			t.Errorf("%s", name)
		}
		return err
	}))
}

func TestTheHouseHasAtMostFourteenRooms(t *testing.T) {
	if len(rooms) > 14 {
		t.Errorf("there are %d", len(rooms))
	}
}

// The comment of an exported function, type or method begins with its name, as in
// "Build makes the plan": what it does stands first. Methods that everybody knows
// need none, nor do those of a type that nobody else can name.
func TestExportedNamesSayFirstWhatTheyDo(t *testing.T) {
	known := []string{"Error", "Unwrap", "String", "Close", "Read", "Write"}
	judge := func(set *token.FileSet, name *ast.Ident, doc *ast.CommentGroup) {
		text := strings.TrimPrefix(strings.TrimPrefix(doc.Text(), "An "), "A ")
		if name.IsExported() && !strings.HasPrefix(text, name.Name) &&
			(doc != nil || !slices.Contains(known, name.Name)) {
			t.Errorf("%s: the comment of %s begins with %.20q", set.Position(name.Pos()), name.Name, text)
		}
	}
	eachFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if strings.HasSuffix(name, "_test.go") || file.Name.Name == "main" {
			return
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil || ast.IsExported(receiver(d)) {
					judge(set, d.Name, d.Doc)
				}
			case *ast.GenDecl:
				if spec, is := d.Specs[0].(*ast.TypeSpec); is && !d.Lparen.IsValid() {
					judge(set, spec.Name, d.Doc)
				}
			}
		}
	})
}

// receiver is the name of the type that a method belongs to.
func receiver(method *ast.FuncDecl) string {
	of := method.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	if generic, is := of.(*ast.IndexExpr); is {
		of = generic.X
	}
	name, _ := of.(*ast.Ident)
	return name.Name
}
