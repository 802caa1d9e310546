package handover

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// What is remembered of a place is what was there, names of any bytes included. The form before is read; what is
// damaged is no memory, and stays.
func TestAMemoryIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	p := Place{Folder: t.TempDir()}
	want := memory{Version: memoryVersion, Named: map[string]string{"a": "b"}, Sizes: map[string]int{".": 11, "worktrees/x": 3}, Common: Side{Trees: map[string]State{
		".": {Head: "ref: refs/heads/main", Index: "100\ta\n\xff\x00b\x00c"}, "worktrees/x": {Index: "d\ne"},
	}}}
	must.Do(t, p.remember(want))
	if got, err := p.recall(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	whole, err := os.ReadFile(p.memoryFile())
	must.Do(t, err)
	for _, damaged := range []string{string(whole[:len(whole)-1]), string(whole) + "x", strings.Replace(string(whole), `"Sizes":{".":11`, `"Sizes":{".":-1`, 1), ""} {
		must.Write(t, p.memoryFile(), damaged)
		if _, err := p.recall(); !errors.Is(err, errForm) {
			t.Errorf("%.80q: %v", damaged, err)
		}
	}
	before := `{"Version":1,"Common":{"Trees":{".":{"Head":"x","Index":"YQBi"}}}}`
	must.Write(t, p.memoryFile(), before)
	if got, err := p.recall(); err != nil || got.Common.Trees["."].Index != "a\x00b" {
		t.Errorf("the form before: %+v, %v", got, err)
	}
}
