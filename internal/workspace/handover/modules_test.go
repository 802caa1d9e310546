package handover

import (
	"strings"
	"testing"
)

// What a submodule's git folder says is the agent's: no text of it becomes a name or a commit that is none.
func TestASubmoduleAnswersWithWhatGitWouldNotSay(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("a", 40), strings.Repeat("b", 40)
	p := Place{Branch: "feat"}
	for text, want := range map[string]string{
		"":            "",
		"\n\n":        "",
		broken + "\n": "fault",
		a + "\n\n":    "feat " + a,
		a + "\nrefs/heads/main\n" + a + " refs/heads/main\n":         "feat " + a,
		a + "\n\n" + b + " refs/heads/x\n":                           "feat " + a + ", x " + b,
		a + "\n\n" + b + " refs/heads/feat\n":                        "detached " + a + " beside, feat " + b,
		a + "\n\n" + b + " refs/heads/$(x)\n":                        "feat " + a + ", odd refs/heads/$(x)",
		a + "\n\n" + b + " refs/tags/x\n":                            "fault",
		a + "\n\n--all refs/heads/x\n":                               "fault",
		"-x\n\n":                                                     "fault",
		a + "\n":                                                     "fault",
		a + "\n\n" + strings.Repeat(b+" refs/heads/x\n", mostTips+1): "fault",
	} {
		tips, odd, err := p.tips(text)
		var got []string
		for _, t := range tips {
			line := t.branch + " " + t.commit
			if t.beside {
				line += " beside"
			}
			got = append(got, line)
		}
		for _, ref := range odd {
			got = append(got, "odd "+ref)
		}
		if err != nil {
			got = []string{"fault"}
		}
		if said := strings.Join(got, ", "); said != want {
			t.Errorf("%.100q: %s, want %s", text, said, want)
		}
	}
}
