package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"claudebox/internal/agent"
)

// Of a program with many libraries of its own some are left out, and it is said from which one on.
func TestAProgramHasFortyMountsAtMost(t *testing.T) {
	const others = 5 // the program itself, and the library folders of the host
	for count, want := range map[int]string{
		40 - others:     "",
		40 - others + 1: "/opt/own/lib35.so and what follows are left out",
		60:              "/opt/own/lib35.so and what follows are left out",
	} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			var libraries []string
			files := map[string]string{}
			for i := range count {
				libraries = append(libraries, fmt.Sprintf("lib%d.so", i))
				files["/opt/own/"+libraries[i]] = code
			}
			// Libraries that are nowhere count for nothing.
			needed := slices.Concat([]string{"libc.so.6"}, libraries, []string{"libm.so.6"})
			r := request(nil)
			r.Files = newTree(debian(merge(installed(program(loader64, "/opt/own", needed...)), files)), nil)
			got, err := agent.Find(r)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Mounts) != min(count+others, 40) {
				t.Errorf("%d mounts: %s", len(got.Mounts), lines(got.Mounts))
			}
			notes := strings.Join(got.Notes, "\n")
			if !strings.Contains(notes, want) || strings.Contains(notes, "left out") != (want != "") {
				t.Errorf("notes %q; want %q", got.Notes, want)
			}
		})
	}
}
