//go:build lab

package flake_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
)

// odd is one configuration of odd.nix.
type odd struct {
	Wants         []string
	Judged, Whole bool
}

// place is where in the file a complaint points; file is all that is known of
// an option itself.
var place, file = regexp.MustCompile(`odd\.nix:\d+`), regexp.MustCompile(`odd\.nix`)

// judge reports whether a complaint names what it has to.
func (o odd) judge(t *testing.T, complaint string) {
	t.Helper()
	expect.Contains(t, complaint, o.Wants...)
	where := place
	if o.Whole {
		where = file
	}
	if !where.MatchString(complaint) {
		t.Errorf("no place that matches %s in:\n%s", where, complaint)
	}
}

func odds(t *testing.T, expression string) map[string]odd {
	t.Helper()
	text := succeed(t, exec.Command("nix-instantiate", "--eval", "--read-write-mode", "--strict", "--json", "--expr", expression+".said"))
	all := map[string]odd{}
	must.Do(t, json.Unmarshal([]byte(text), &all))
	if len(all) < 30 {
		t.Fatalf("%d configurations", len(all))
	}
	return all
}

// quote is a string of the Nix language.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "${", `\${`).Replace(text) + `"`
}

// TestOddConfigurationsWorkOrNameTheirPlace builds them in the lab's
// home-manager.
func TestOddConfigurationsWorkOrNameTheirPlace(t *testing.T) {
	t.Parallel()
	expression := fmt.Sprintf("(import %s/checks/promises/flake/testdata/odd-lab.nix { lab = %s; root = %s; })", root, lab, root)
	for name, o := range odds(t, expression) {
		t.Run(name, func(t *testing.T) {
			build := exec.Command("nix-build", "--no-out-link", "--expr", expression+".homes."+quote(name))
			if o.Wants == nil {
				succeed(t, build)
				return
			}
			o.judge(t, fail(t, build))
		})
	}
}

// TestOddConfigurationsInTheRealHomeManager evaluates them there, where the
// checkouts are. What the program judges is seen in a build only.
func TestOddConfigurationsInTheRealHomeManager(t *testing.T) {
	t.Parallel()
	inputs := os.Getenv("CLAUDEBOX_REAL_INPUTS")
	if inputs == "" {
		t.Skip("CLAUDEBOX_REAL_INPUTS names no folder with the real inputs")
	}
	dir := folder(t)
	succeed(t, exec.Command(root+"/checks/real/prepare", inputs, dir))
	expression := fmt.Sprintf("(import %s/checks/real/odd.nix { folder = %s; root = %s; system = \"x86_64-linux\"; })", root, quote(dir), root)
	evaluate := func(rest string) *exec.Cmd {
		return exec.Command("nix-instantiate", "--store", "dummy://", "--eval", "--strict", "--expr", expression+rest)
	}
	var works []string
	for name, o := range odds(t, expression) {
		if o.Wants == nil || o.Judged {
			works = append(works, quote(name))
			continue
		}
		t.Run(name, func(t *testing.T) {
			o.judge(t, fail(t, evaluate(".homes."+quote(name)+".drvPath")))
		})
	}
	// Together, as they have most in common.
	succeed(t, evaluate(".paths [ "+strings.Join(works, " ")+" ]"))
}
