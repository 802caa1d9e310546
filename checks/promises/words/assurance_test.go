package words_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

var update = flag.Bool("update", false, "write docs/assurance.md")

// proof is a test that says in its comment which promise it holds.
type proof struct{ promise, name, folder, why string }

var promised = regexp.MustCompile(`(?m)^Promise: (.+)\.$`)

// proofs are found in the comments at tests of the whole project.
func proofs(t *testing.T) (list []proof) {
	t.Helper()
	const root = "../../.."
	must.Do(t, filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		for _, d := range parsed.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Doc == nil {
				continue
			}
			for _, found := range promised.FindAllStringSubmatch(f.Doc.Text(), -1) {
				why := strings.Join(strings.Fields(promised.ReplaceAllString(f.Doc.Text(), "")), " ")
				why = strings.TrimPrefix(why, f.Name.Name+": ")
				list = append(list, proof{found[1], f.Name.Name, folder, why})
			}
		}
		return err
	}))
	slices.SortFunc(list, func(a, b proof) int {
		return cmp.Or(strings.Compare(a.folder, b.folder), strings.Compare(a.name, b.name))
	})
	return list
}

// promises are those of docs/security.md, in its order.
func promises(t *testing.T) (list []string) {
	t.Helper()
	page := must.Read(t, "../../../docs/security.md")
	_, table, _ := strings.Cut(page, "| promise | kept by |\n| --- | --- |\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 {
			break
		}
		list = append(list, strings.TrimPrefix(cells[0], "| "))
	}
	if len(list) < 10 {
		t.Fatalf("promises: %q", list)
	}
	return list
}

// Each promise is held by tests, each of these is of a promise, and the page says which.
func TestTheAssurancePageIsFresh(t *testing.T) {
	const file = "../../../docs/assurance.md"
	all, known := proofs(t), promises(t)
	var page strings.Builder
	page.WriteString("# Assurance\n\nWhich test holds which promise of [Security](security.md). " +
		"The tests say so in their comments (`Promise: …`), and `checks/docs` makes this page of them.\n" +
		"Each attacks a real sandbox, or the part that is named by its folder. `checks/test` runs them all.\n")
	for _, promise := range known {
		fmt.Fprintf(&page, "\n## %s%s\n\n", strings.ToUpper(promise[:1]), promise[1:])
		none := true
		for _, p := range all {
			if p.promise == promise {
				none = false
				fmt.Fprintf(&page, "- `%s` (`%s`)", p.name, p.folder)
				if p.why != "" {
					page.WriteString(": " + p.why)
				}
				page.WriteString("\n")
			}
		}
		if none {
			t.Errorf("no test holds %q", promise)
		}
	}
	for _, p := range all {
		if !slices.Contains(known, p.promise) {
			t.Errorf("%s is a test of %q, which docs/security.md does not promise", p.name, p.promise)
		}
	}
	if *update {
		must.Write(t, file, page.String())
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != page.String() {
		t.Errorf("%s is stale; run `checks/docs`: %v", file, err)
	}
}
