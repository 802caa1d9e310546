package branch

import (
	"fmt"

	"claudebox/internal/linux/watch"
	"claudebox/internal/workspace/survey"
)

// mostFolders is how many folders of a checkout are watched. Of one with more, git is asked at the end of each session.
const mostFolders = 50_000

// walk looks at the folders of the checkout, and lists those that were changed since an earlier look.
func (h *Held) walk(before []survey.Folder) *survey.Survey {
	return survey.Walk(h.tree, survey.Question{Limit: mostStill}, survey.Of(before))
}

// Watch begins to note whether anything at all is done to the checkout. It is called right before the agent runs. Where
// the checkout is as it was when git was last asked about it and found nothing to do, and stays so, git is not asked at
// the end of the session: the content of files was changed by nobody, as only sessions open the checkout.
func (h *Held) Watch() {
	was := find(h.Dir + "/left")
	if was.Key == "" || h.stirred {
		return
	}
	seen := h.walk(was.Folders)
	if !seen.Same || seen.Cut || len(seen.Closed) > 0 || len(seen.Git) > 1 || len(was.Folders) > mostFolders {
		return
	}
	top := fmt.Sprintf("/proc/self/fd/%d/", h.tree.FD())
	var folders []string
	for _, f := range was.Folders {
		folders = append(folders, top+f.Rel)
	}
	h.rest, _ = watch.Changes(folders) // if it cannot be, git is asked
}

// rests reports whether the checkout is as git last saw it.
func (h *Held) rests() bool { return h.rest != nil && h.rest.None() }
