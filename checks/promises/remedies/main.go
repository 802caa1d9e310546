// Command remedies lists what claudebox tells people to do: every remedy in the program, with its place and the test
// that follows it, by followed.txt and stories.txt beside it.
//
//	go run ./checks/promises/remedies
package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	list, err := remedies("internal")
	if err != nil {
		fmt.Fprintln(os.Stderr, "remedies:", err)
		os.Exit(1)
	}
	tests, _ := testsOf(list)
	reasons := exceptions()
	for _, r := range list {
		fmt.Printf("%s: %s\n\t%s\n", r.place, r.text, cmp.Or(tests[r.text], "no test: "+reasons[r.text]))
	}
	fmt.Printf("%d of %d remedies are followed by a test; %d are excepted\n", len(tests), len(list), len(reasons))
}

//go:embed followed.txt
var table string

//go:embed stories.txt
var told string

//go:embed edits.txt
var edited string

//go:embed exceptions.txt
var excepted string

// exceptions reads the remedies that no test follows, with the reasons: a line each, the reason after a tab.
func exceptions() map[string]string {
	reasons, text := map[string]string{}, ""
	for line := range strings.Lines(excepted) {
		line = strings.TrimSuffix(line, "\n")
		if reason, is := strings.CutPrefix(line, "\t"); is {
			reasons[text] = reason
		} else if !strings.HasPrefix(line, "# ") {
			text = line
		}
	}
	return reasons
}

// followed says which test follows the remedies that hold a text.
type followed struct{ test, text string }

// follow reads the table, a test and a text on each line, the stories, and the edits.
func follow() (list []followed) {
	for line := range strings.Lines(table) {
		if test, text, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			list = append(list, followed{test, text})
		}
	}
	for _, s := range stories() {
		for _, says := range s.says {
			list = append(list, followed{"TestStoriesOfRemedies", says})
		}
	}
	for _, e := range edits() {
		list = append(list, followed{"TestEditsOfProfiles", e.says[0]})
	}
	return list
}

// testsOf says by which test each remedy is followed, by its text, and what is wrong with the tables.
func testsOf(list []remedy) (tests map[string]string, faults []string) {
	tests = map[string]string{}
	for _, r := range list {
		if len(r.commands())+len(r.flags())+len(r.lines()) > 0 {
			tests[r.text] = "TestRemediesCanBeFollowed"
		}
	}
	for _, f := range follow() {
		of := f.of(list)
		if len(of) != 1 {
			faults = append(faults, fmt.Sprintf("%s: %q is of %d remedies: %q", f.test, f.text, len(of), of))
			continue
		}
		tests[of[0]] = f.test
	}
	return tests, faults
}

// of returns the remedies that a text is of: the one that it is, those that it is a part of, or those that it is the
// whole of, with what is only known when it is said.
func (f followed) of(list []remedy) (is []string) {
	var holds, says []string
	for _, r := range list {
		if r.text == f.text {
			return []string{r.text}
		}
		if pattern(f.text).MatchString(r.text) {
			holds = append(holds, r.text)
		}
		if pattern(r.text).FindString(f.text) == f.text {
			says = append(says, r.text)
		}
	}
	if holds != nil {
		return holds
	}
	longest := func(a, b string) int {
		return len(unknown.ReplaceAllString(b, "")) - len(unknown.ReplaceAllString(a, ""))
	}
	slices.SortStableFunc(says, longest)
	return says[:min(len(says), 1)]
}

var unknown = regexp.MustCompile(`…|%(?:s|d|o|03d)`)

// pattern matches a text with anything for what is only known when it is said.
func pattern(text string) *regexp.Regexp {
	pieces := unknown.Split(text, -1)
	for i := range pieces {
		pieces[i] = regexp.QuoteMeta(pieces[i])
	}
	return regexp.MustCompile(strings.Join(pieces, ".+"))
}

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	flag   = regexp.MustCompile(`(?:^|[ (])(--[a-z]{2,}[a-z-]*)`)
	key    = regexp.MustCompile(`^[a-z_]+: `)
)

// commands are the command lines of claudebox that a remedy names.
func (r remedy) commands() (list []string) {
	for _, match := range quoted.FindAllStringSubmatch(r.text, -1) {
		if words, is := strings.CutPrefix(match[1], "claudebox "); is {
			list = append(list, words)
		}
	}
	return list
}

// flags are the flags that a remedy names out of a command line.
func (r remedy) flags() (list []string) {
	for _, match := range flag.FindAllStringSubmatch(quoted.ReplaceAllString(r.text, ""), -1) {
		list = append(list, match[1])
	}
	return list
}

// lines are the lines of a profile that a remedy names whole.
func (r remedy) lines() (list []string) {
	for _, match := range quoted.FindAllStringSubmatch(r.text, -1) {
		if key.MatchString(match[1]) && !unknown.MatchString(match[1]) {
			list = append(list, match[1])
		}
	}
	return list
}

// story is one of stories.txt: what goes wrong, what is said, and what works then.
type story struct {
	name, given, run, do, then string
	says                       []string
}

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
			s.says = append(s.says, value)
		case "do":
			s.do = value
		case "then":
			s.then = value
		}
	}
	return list
}

// edits reads edits.txt: what a profile says, the remedy, and what it says then.
func edits() (list []story) {
	for line := range strings.Lines(edited) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		switch value = strings.TrimLeft(value, " "); key {
		case "bad":
			list = append(list, story{given: value})
		case "says":
			list[len(list)-1].says = []string{value}
		case "good":
			list[len(list)-1].then = value
		}
	}
	return list
}
