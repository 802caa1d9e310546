package state_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"claudebox/internal/secret/broker"
)

// numbered is a file of credentials with the n-th login, good for some hours.
func numbered(n int) string {
	return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"true-a%d","refreshToken":"true-r%d","expiresAt":%d,"scopes":["x"]}}`,
		n, n, time.Now().Add(5*time.Hour).UnixMilli())
}

// What an older version left inside is taken out at the first launch. Where it is
// newer than the user's it is brought to the user first.
func TestALoginOfAnOlderVersionIsTakenOutAndWhatIsNewerBroughtBack(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/.credentials.json", numbered(1))
	old := w.session(w.request())
	inside := strings.TrimPrefix(old.Dir, w.home+"/") + "/.claude/.credentials.json"
	sum := sha256.Sum256([]byte("true-a1\x00true-r1"))
	w.write(rel(w, old.Dir)+"/login", `{"base":"`+hex.EncodeToString(sum[:16])+`"}`)
	w.write(inside, numbered(2)) // renewed inside, and claudebox killed
	req := w.request()
	req.Key, req.Post = broker.NewKey(), func(context.Context, []byte) (int, []byte, error) { return 0, nil, os.ErrClosed }
	in := w.launch(req)
	if got := w.read(".claude/.credentials.json"); !strings.Contains(got, "true-r2") {
		t.Errorf("the user's login is %s", got)
	}
	if got := w.read(inside); strings.Contains(got, "true-") || !strings.Contains(got, "cbx") {
		t.Errorf("inside is %s", got)
	}
	if access, _, _ := in.Guard().Current(); access != "true-a2" {
		t.Errorf("the login that is used is %q", access)
	}
	must(t, in.Close())
}

// A login that was made inside, as older versions kept it, stays the instance's,
// and is inside no more.
func TestALoginMadeInsideAnOlderVersionIsKeptOutside(t *testing.T) {
	w := newWorld(t)
	old := w.session(w.request())
	inside := strings.TrimPrefix(old.Dir, w.home+"/") + "/.claude/.credentials.json"
	w.write(inside, numbered(7))
	req := w.request()
	req.Key, req.Post = broker.NewKey(), func(context.Context, []byte) (int, []byte, error) { return 0, nil, os.ErrClosed }
	in := w.launch(req)
	if access, _, _ := in.Guard().Current(); access != "true-a7" || !in.Guard().Made() {
		t.Errorf("the login that is used is %q", access)
	}
	if got := w.read(inside); strings.Contains(got, "true-") || !strings.Contains(got, "cbx") {
		t.Errorf("inside is %s", got)
	}
	must(t, in.Close())
}
