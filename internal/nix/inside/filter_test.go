package inside_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/wire"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/inside"
	"claudebox/internal/nix/nixdaemon"
)

func TestQuestionsAreAnswered(t *testing.T) {
	f := newFiltered(t, nil)
	c := f.connect(t)
	if got := c.Info(); got.Trust != nixdaemon.NotTrusted || got.Protocol != nixdaemon.Newest {
		t.Errorf("the handshake tells %+v", got)
	}
	for path, want := range map[string]bool{pathA: true, absent: false} {
		if got, err := c.IsValidPath(t.Context(), path); err != nil || got != want {
			t.Errorf("IsValidPath(%s) = %v, %v; want %v", path, got, err, want)
		}
		info, err := c.QueryPathInfo(t.Context(), path)
		if err != nil || !reflect.DeepEqual(info, f.valid[path]) {
			t.Errorf("QueryPathInfo(%s) = %+v, %v; want %+v", path, info, err, f.valid[path])
		}
	}
	valid, err := c.QueryValidPaths(t.Context(), []string{absent, pathA, pathB})
	slices.Sort(valid)
	if err != nil || !slices.Equal(valid, []string{pathA, pathB}) {
		t.Errorf("QueryValidPaths = %q, %v", valid, err)
	}
	substituting := f.talk(t, append(greeting(38), message(31, 2, absent, pathA, 1)...))
	if !bytes.HasSuffix(substituting, message(0x616c7473, 1, pathA)) {
		t.Errorf("QueryValidPaths, with substitution, is answered by %q", substituting)
	}
	for name, ask := range map[string]func() ([]string, error){
		"referrers": func() ([]string, error) { return c.QueryReferrers(t.Context(), pathB) },
		"derivers":  func() ([]string, error) { return c.QueryValidDerivers(t.Context(), pathB) },
	} {
		if got, err := ask(); err != nil || !slices.Equal(got, []string{pathA, pathC}) {
			t.Errorf("%s are %q, %v", name, got, err)
		}
	}
	f.onlyQuestions(t)
}

// What the sandbox does not see is not there.
func TestInClosureModeTheRestOfTheStoreIsNotThere(t *testing.T) {
	f := newFiltered(t, map[string]bool{pathA: true, pathB: true})
	c := f.connect(t)
	if got, err := c.IsValidPath(t.Context(), pathC); err != nil || got {
		t.Errorf("IsValidPath = %v, %v; want false", got, err)
	}
	if got, err := c.QueryPathInfo(t.Context(), pathC); err != nil || got != nil {
		t.Errorf("QueryPathInfo = %+v, %v; want none", got, err)
	}
	asked := []string{pathA, pathC}
	if got, err := c.QueryValidPaths(t.Context(), asked); err != nil || !slices.Equal(got, []string{pathA}) {
		t.Errorf("QueryValidPaths = %q, %v; want a", got, err)
	}
	if got, err := c.QueryReferrers(t.Context(), pathB); err != nil || !slices.Equal(got, []string{pathA}) {
		t.Errorf("QueryReferrers = %q, %v; want a", got, err)
	}
	if got, err := c.QueryReferrers(t.Context(), pathC); err != nil || len(got) != 0 {
		t.Errorf("QueryReferrers of what is not seen = %q, %v; want none", got, err)
	}
	if got, err := c.QueryPathInfo(t.Context(), pathA); err != nil || got == nil || got.Deriver != "" {
		t.Errorf("QueryPathInfo = %+v, %v; want no deriver, as it is not seen", got, err)
	}
	if f.texts[pathC] {
		t.Error("the daemon was asked about what is not seen")
	}
}

func message(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		switch v := v.(type) {
		case int:
			_ = wire.WriteUint64(&b, uint64(v))
		case string:
			_ = wire.WriteString(&b, v)
		case []byte:
			b.Write(v)
		}
	}
	return b.Bytes()
}

// greeting is a client's side of the handshake, all that it says.
func greeting(minor int) []byte {
	m := message(0x6e697863, 0x100|minor)
	if minor >= 38 {
		m = append(m, message(0)...)
	}
	return append(m, message(0, 0)...)
}

// talk sends bytes and gives all that the filter says to them.
func (f *filtered) talk(t testing.TB, sent []byte) []byte {
	t.Helper()
	conn, err := net.Dial("unix", f.socket)
	must.Do(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(*net.UnixConn).CloseWrite()
	}()
	said, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Fatalf("read what the filter says: %v", err)
	}
	return said
}

const mark = "/nix/store/44bgd045z0d4icpbc2yyz4gx48ak44la-mark"

// bodies are arguments that an attacker may send with an operation. None begins
// with the number of a question: it would be one, behind an operation without
// arguments.
var bodies = [][]byte{
	nil,
	message(mark),
	message(mark, mark),
	message(2, mark, mark, 0),
	message(0, 2, mark, mark, 1, 0, 0, 0, 0),
	message(mark+".drv!out", 2),
	message("mark", "fixed:r:sha256", 0, 0, 8, "nix-arch", 0),
	bytes.Repeat([]byte{0xff}, 64),
}

// answered are the operations that are.
var answered = []int{1, 6, 19, 26, 31, 33, 43}

// All operations that there are or were, and some that there are not yet, in
// every version of the protocol: none of them reaches the daemon, with no byte.
//
// Promise: no rights through Nix.
func TestNoOtherOperationReachesTheDaemon(t *testing.T) {
	f := newFiltered(t, nil)
	for op := range 64 {
		if slices.Contains(answered, op) {
			continue
		}
		for minor := 21; minor <= 39; minor++ {
			for _, body := range bodies {
				f.talk(t, append(greeting(minor), message(op, body)...))
				if f.dials != 0 {
					t.Fatalf("operation %d in version 1.%d with %q reached the daemon", op, minor, body)
				}
			}
		}
	}
	for _, op := range []int{1<<32 | 1, 1 << 62, 1<<32 | 26} { // a daemon reads 32 bits
		f.talk(t, append(greeting(38), message(op, mark)...))
	}
	if f.dials != 0 {
		t.Error("an operation with a large number reached the daemon")
	}
}

// The same with a question before and after: where the arguments end may be in
// doubt, what is asked after that is not.
func TestABrokenRequestAsksNothing(t *testing.T) {
	f := newFiltered(t, nil)
	for op := range 64 {
		for _, body := range bodies {
			f.talk(t, slices.Concat(greeting(38), message(1, pathA), message(op, body), message(20, 0, 0, 0, 0, 0, 0, 0)))
		}
	}
	f.onlyQuestions(t)
	for text := range f.texts {
		if text != pathA && text != mark {
			t.Errorf("the daemon was sent %q", text)
		}
	}
}

func TestARefusalSaysWhyAndTheClientGoesOn(t *testing.T) {
	f := newFiltered(t, nil)
	for op, arguments := range map[int][]byte{
		9: message(1, mark, 0), 11: message(mark), 14: nil, 20: message(0, 1, mark, 1, 0, 0, 0, 0), 23: nil,
		29: message("00bgd045z0d4icpbc2yyz4gx48ak44la"), 38: message(mark),
		40: message(1, mark), 46: message(1, mark, 0), 47: message(mark, "/x"),
	} {
		said := f.talk(t, slices.Concat(greeting(38), message(op), arguments, message(1, pathA)))
		if !bytes.Contains(said, []byte("the host's Nix store is read-only here (")) {
			t.Errorf("operation %d: the filter says %q", op, said)
		}
		if !bytes.HasSuffix(said, message(0x616c7473, 1)) {
			t.Errorf("operation %d: the question after it is answered by %q", op, said[max(0, len(said)-16):])
		}
	}
}

func TestTooMuchIsRefused(t *testing.T) {
	f := newFiltered(t, nil)
	many := make([]byte, 0, 80<<16)
	for range 1 << 16 {
		many = append(many, message(strings.Repeat("y", 200))...)
	}
	for name, sent := range map[string][]byte{
		"a path of 64 MiB":           message(1, 64<<20),
		"a path of 5 KiB":            message(1, strings.Repeat("x", 5<<10)),
		"a list of a billion":        message(31, 1<<30),
		"options of 16 MiB":          message(19, make([]byte, 12*8), 1<<16, many),
		"a path with an end":         message(1, pathA+"/etc"),
		"a path that leaves":         message(1, "/nix/store/../../etc/passwd"),
		"a path with a zero byte":    message(1, pathA[:45]+"\x00"),
		"padding that is not zero":   append(message(1, 3), "abcxxxxx"...),
		"a request that never comes": message(31, 5, pathA),
	} {
		said := f.talk(t, append(greeting(38), sent...))
		if bytes.HasSuffix(said, message(0x616c7473, 1)) {
			t.Errorf("%s is answered", name)
		}
	}
	f.onlyQuestions(t)
	if c := f.connect(t); true {
		if ok, err := c.IsValidPath(t.Context(), pathA); err != nil || !ok {
			t.Errorf("after all that: IsValidPath = %v, %v", ok, err)
		}
	}
}

// A session opens many clients; each is served, though only so many at once.
func TestManyClientsAtOnce(t *testing.T) {
	f := newFiltered(t, nil)
	const many = 600
	results := make(chan error, many)
	for i := range many {
		go func() {
			c, err := nixdaemon.Dial(t.Context(), f.socket, nixdaemon.Options{DialTimeout: time.Minute})
			if err == nil {
				var ok bool
				ok, err = c.IsValidPath(t.Context(), []string{pathA, pathB, pathC}[i%3])
				if err == nil && !ok {
					err = fmt.Errorf("path %d is not valid", i%3)
				}
				c.Close()
			}
			results <- err
		}()
	}
	for range many {
		must.Do(t, <-results)
	}
	if f.dials != 1 {
		t.Errorf("the daemon was connected to %d times; want once", f.dials)
	}
}

// A client that says nothing, or half a word, keeps nobody from being served.
func TestSilentClientsAreInNobodysWay(t *testing.T) {
	f := newFiltered(t, nil)
	for range 200 {
		conn, err := net.Dial("unix", f.socket)
		must.Do(t, err)
		defer conn.Close()
		_, _ = conn.Write(message(0x6e697863)[:5])
	}
	if ok, err := f.connect(t).IsValidPath(t.Context(), pathA); err != nil || !ok {
		t.Errorf("IsValidPath = %v, %v", ok, err)
	}
}

func TestWhatIsAnsweredIsHeldAndWrittenDown(t *testing.T) {
	f := newFiltered(t, nil)
	c := f.connect(t)
	for _, path := range []string{pathA, absent, pathA} {
		if _, err := c.IsValidPath(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.QueryPathInfo(t.Context(), pathB); err != nil {
		t.Fatal(err)
	}
	want := []string{pathA, pathB}
	if got := f.list(t); !slices.Equal(got, want) {
		t.Errorf("written down: %q; want %q", got, want)
	}
	if !slices.Equal(f.held, want) {
		t.Errorf("roots: %q; want %q", f.held, want)
	}
}

// Daemons are restarted, and roots go with the connection.
func TestADaemonThatWasRestartedHoldsTheSame(t *testing.T) {
	f := newFiltered(t, nil)
	c := f.connect(t)
	if ok, err := c.IsValidPath(t.Context(), pathA); err != nil || !ok {
		t.Fatal(ok, err)
	}
	f.hangUp()
	if ok, err := c.IsValidPath(t.Context(), pathB); err != nil || !ok {
		t.Errorf("IsValidPath = %v, %v", ok, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := []string{pathA, pathB}; !slices.Equal(f.held, want) {
		t.Errorf("roots: %q; want %q", f.held, want)
	}
}

// A restart of the daemon hides nothing from the host's collector for long, though
// nobody asks for anything.
func TestADaemonThatWentIsAskedToHoldAgainAtOnce(t *testing.T) {
	f := newFiltered(t, nil)
	if ok, err := f.connect(t).IsValidPath(t.Context(), pathA); err != nil || !ok {
		t.Fatal(ok, err)
	}
	f.hangUp()
	held := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.dials == 2 && slices.Equal(f.held, []string{pathA})
	}
	for range 1000 {
		if held() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("what was held is held no more")
}

// Nothing is built on what is gone.
func TestAPathThatWasCollectedEndsTheUseOfTheStore(t *testing.T) {
	f := newFiltered(t, nil)
	if _, err := f.known.WriteString(pathB + "\n" + absent + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.host.Prepare(); !errors.Is(err, inside.ErrCollected) {
		t.Errorf("Prepare = %v; want ErrCollected", err)
	}
	_, err := f.connect(t).IsValidPath(t.Context(), pathA)
	if err == nil || !strings.Contains(err.Error(), absent) || strings.Contains(err.Error(), "\n") {
		t.Errorf("IsValidPath = %v; want a line that names %s", err, absent)
	}
}

func TestAListThatWasCutOff(t *testing.T) {
	for text, want := range map[string]int{
		"":                                 0,
		pathA + "\n" + pathB:               1,
		pathA + "\n" + pathB + "\n":        2,
		pathA + "\n/etc/passwd\n":          -1,
		pathA + "\n" + pathB[:20] + pathA:  1,
		strings.Repeat("x", 40<<20) + "\n": -1,
	} {
		paths, err := known(strings.NewReader(text))
		if got := len(paths); err == nil && got != want || err != nil && want >= 0 {
			t.Errorf("Known(%.80q) = %q, %v; want %d paths", text, paths, err, want)
		}
	}
}
