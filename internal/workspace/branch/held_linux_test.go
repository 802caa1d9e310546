package branch

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"claudebox/internal/workspace/handover"
)

// The last to leave removes the folder in which another is about to make its own.
func TestSessionsComeAndGoOnManyBranchesAtOnce(t *testing.T) {
	outer := t.TempDir()
	var all sync.WaitGroup
	for n := range 8 {
		h := &Held{Branch: Branch{Request: Request{Name: fmt.Sprint("b", n), Repo: handover.Place{Outer: outer}}}}
		all.Go(func() {
			for range 50 {
				if err := h.Take(); err != nil {
					t.Error(err)
					return
				}
				h.release()
			}
		})
	}
	all.Wait()
	if left, _ := os.ReadDir(outer); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
