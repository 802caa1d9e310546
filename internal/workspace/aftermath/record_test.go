package aftermath

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"claudebox/internal/workspace/git"
)

// TestAnotherFormHasAnotherNumber holds who changes a record to change the
// number in recordForm, or in reportForm: a later build reads what an earlier one left, and a
// field in another place would be taken for another field.
func TestAnotherFormHasAnotherNumber(t *testing.T) {
	t.Parallel()
	const file = "{Path string, Kind int, Stamp {Ino uint64, Size int64, Change int64, Sum uint64}, Rel string, Led bool}"
	const before = "claudebox session 21\n" +
		"{Noted {Began {Wall int64, Up int64}, " +
		"Scope {Build string, Path string, Common string, Index string, Strip string, Hash int, Places []string, Hide []string, Protect []string, " +
		"Relative []string, InEach []string, Unmade []string, Led []{To string, Link string}, Entered []string}, " +
		"Inode uint64, ID string, Before {Folders []{Path string, Role int, Entries []{Name string, Kind int, Stamp {Ino uint64, Size int64, Change int64, Sum uint64}}, " +
		"Closed []string, Rel string, In string}, Files []" + file + ", Named []" + file + "}, " +
		"Tracked []string, Covered []string, Hidden []string, Inodes []uint64, Ignoring []{Rel string, Rules []string, Secret string}, Closed []string, Cut bool, " +
		"Watched {Named []string, Behind []string, Wholes []{Rel string, Sum string, Means string, Once bool, To string}, Hushed []string}, " +
		"Instance string, Conversations []string, Filled []{Rel string, Inode uint64}}, Places []string, Held string}"
	wantForm(t, formBefore+form(reflect.TypeFor[recordBefore]()), before)
	const want = "claudebox session 22\n" +
		"{Noted {Began {Wall int64, Up int64}, " +
		"Scope {Build string, Path string, Common string, Index string, Strip string, Hash int, Places []string, Hide []string, Protect []string, " +
		"Relative []string, InEach []string, Unmade []string, Led []{To string, Link string}, Entered []string}, " +
		"Inode uint64, ID string, Before {Folders []{Path string, Role int, Entries []{Name string, Kind int, Stamp {Ino uint64, Size int64, Change int64, Sum uint64}}, " +
		"Closed []string, Rel string, In string}, Files []" + file + ", Named []" + file + "}, " +
		"Tracked []string, Covered []string, Hidden []string, Inodes []uint64, Ignoring []{Rel string, Rules []string, Secret string}, Closed []string, Cut bool, " +
		"Watched {Named []string, Behind []string, Wholes []{Rel string, Sum string, Means string, Once bool, To string}}, " +
		"Instance string, Conversations []string, Filled []{Rel string, Inode uint64}}, Places []string, Held string}"
	wantForm(t, recordForm+form(reflect.TypeFor[record]()), want)
	const report = "claudebox report 2\n" +
		"{Began int64, Report {Project string, Unfinished bool, Began {}, " +
		"Changes []{Path string, Change string, Means string, Ordinary bool, Back string}, " +
		"Cut bool, Beyond int, Closed []string, Failures []string}}"
	wantForm(t, reportForm+form(reflect.TypeFor[kept]()), report)
}

func wantForm(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A failure is tried again, and told then: what was planned is not told beside it.
func TestRepairsThatFailedAreNotToldAsDone(t *testing.T) {
	t.Parallel()
	var r Report
	home := t.TempDir()
	r.plan(home, moment{}, []git.Repair{{Rel: "x"}}, func(rel string) string { return rel })
	if r.file == nil || len(r.Changes) > 0 {
		t.Fatalf("%+v", r)
	}
	r.keep(home, moment{})
	if left, err := os.ReadDir(home + "/" + reportsFolder); len(left) > 0 || err != nil || r.file != nil {
		t.Errorf("%v, %v", left, err)
	}
}

// form spells out what a value is made of.
func form(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "[]" + form(t.Elem())
	case reflect.Struct:
		var fields []string
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				continue // is not written down
			}
			fields = append(fields, f.Name+" "+form(f.Type))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	return t.Kind().String()
}
