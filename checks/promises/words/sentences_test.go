package words_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// documents are what a person reads first.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	return append(files, "../../../README.md")
}

// userPages are those of the documents that are for people who use claudebox, not for developers and auditors.
func userPages(t *testing.T) []string {
	t.Helper()
	others := []string{"architecture.md", "assurance.md", "glossary.md"}
	return slices.DeleteFunc(documents(t), func(file string) bool { return slices.Contains(others, filepath.Base(file)) })
}

var (
	code     = regexp.MustCompile("(?ms)^```.*?^```$")
	word     = regexp.MustCompile("`[^`]*`")
	target   = regexp.MustCompile(`\]\([^)]*\)`)
	listItem = regexp.MustCompile(`^(?:[-*]|\d+\.) `)
	ended    = regexp.MustCompile(`[.!?:][*")]*\s+`)
	noProse  = regexp.MustCompile(`^(?:\||#|!\[|<)`)
)

// paragraphs are the texts of a page: no code, tables, headings or pictures. A word of code is one word.
func paragraphs(page string) (list []string) {
	var now []string
	end := func() {
		if text := strings.Join(now, " "); text != "" {
			list = append(list, text)
		}
		now = nil
	}
	for line := range strings.Lines(code.ReplaceAllString(page, "")) {
		line = strings.TrimSpace(line)
		if line == "" || noProse.MatchString(line) {
			end()
			continue
		}
		if at := listItem.FindString(line); at != "" {
			end()
			line = line[len(at):]
		}
		now = append(now, line)
	}
	end()
	return list
}

// sentences are those of a page, each as its words. A colon ends one.
func sentences(page string) (list [][]string) {
	for _, text := range paragraphs(page) {
		text = target.ReplaceAllString(word.ReplaceAllString(text, "code"), "]")
		for _, sentence := range strings.Split(ended.ReplaceAllString(text, "$0\x00"), "\x00") {
			words := slices.DeleteFunc(strings.Fields(sentence), func(w string) bool { return !strings.ContainsFunc(w, isLetter) })
			if len(words) > 0 {
				list = append(list, words)
			}
		}
	}
	return list
}

func isLetter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// A page of long sentences is not read.
func TestSentencesAreShort(t *testing.T) {
	const most, mean = 32, 13
	for _, file := range userPages(t) {
		page := must.Read(t, file)
		all, words := sentences(page), 0
		for _, sentence := range all {
			words += len(sentence)
			if len(sentence) > most {
				t.Errorf("%s: %d words, %d are allowed: %s", filepath.Base(file), len(sentence), most, strings.Join(sentence, " "))
			}
		}
		if words > mean*len(all) {
			t.Errorf("%s: a sentence has %.1f words in the mean; %d are allowed", filepath.Base(file), float64(words)/float64(len(all)), mean)
		}
	}
}

// own are words that only the glossary explains.
var own = regexp.MustCompile(`(?i)\b(?:stand-ins?|hand-?overs?|manifests?|realised?s?|grants?|gate|live cop(?:y|ies)|brokers?|brokered|closures?|instances?|layers?|inner|outer|aftermath)\b`)

// Who opens a page sees words of daily life first.
func TestTheFirstScreenOfAPageNeedsNoGlossary(t *testing.T) {
	const screen = 1200 // characters of prose
	for _, file := range userPages(t) {
		page := must.Read(t, file)
		first := word.ReplaceAllString(strings.Join(paragraphs(page), "\n"), "")
		if found := own.FindString(first[:min(screen, len(first))]); found != "" {
			t.Errorf("%s: %q stands in the first screen", filepath.Base(file), found)
		}
	}
}

func TestASentenceIsCounted(t *testing.T) {
	const page = "# A title that does not count at all\n\nOne two: three `four five`.\nSix [seven](eight nine).\n\n" +
		"- ten eleven\n- twelve **thirteen.** Fourteen\n\n| not | counted |\n\n```text\nnor this.\n```\n"
	var got []int
	for _, s := range sentences(page) {
		got = append(got, len(s))
	}
	if want := []int{2, 2, 2, 2, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v: %q", got, want, sentences(page))
	}
}
