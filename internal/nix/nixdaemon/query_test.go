package nixdaemon_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixdaemon"
)

const hexHash = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"

// pathInfo is op 26's answer for [pathA].
var pathInfo = []any{msgLast, 1, drvA, hexHash, 2, pathA, pathB, 1_700_000_000, 4096, 1, 1, "cache:sig", "fixed:r:sha256:x"}

// Each operation, as bytes that go out and come in, and the value they mean.
func TestOperations(t *testing.T) {
	type exchange = func(context.Context, *nixdaemon.Client) (any, error)
	for name, tc := range map[string]struct {
		minor      int
		call       exchange
		sent, back []any
		want       any
	}{
		"asks whether a path is valid": {
			38, func(ctx context.Context, c *nixdaemon.Client) (any, error) { return c.IsValidPath(ctx, pathA) },
			[]any{1, pathA},
			[]any{msgLast, 1},
			true,
		},
		"asks which of many are": {
			38, func(ctx context.Context, c *nixdaemon.Client) (any, error) {
				return c.QueryValidPaths(ctx, []string{pathB, pathA})
			},
			[]any{31, 2, pathB, pathA, 0},
			[]any{msgLast, 1, pathA},
			[]string{pathA},
		},
		"describes a path": {
			34, func(ctx context.Context, c *nixdaemon.Client) (any, error) { return c.QueryPathInfo(ctx, pathA) },
			[]any{26, pathA},
			pathInfo, &nixdaemon.PathInfo{
				Path: pathA, Deriver: drvA, NARHash: hexHash, References: []string{pathA, pathB},
				Registered: time.Unix(1_700_000_000, 0).UTC(), NARSize: 4096, Ultimate: true,
				Signatures: []string{"cache:sig"}, CA: "fixed:r:sha256:x",
			},
		},
		"knows nothing of an invalid path": {
			38, func(ctx context.Context, c *nixdaemon.Client) (any, error) { return c.QueryPathInfo(ctx, pathA) },
			[]any{26, pathA},
			[]any{msgLast, 0},
			(*nixdaemon.PathInfo)(nil),
		},
		"lists referrers": {
			38, func(ctx context.Context, c *nixdaemon.Client) (any, error) { return c.QueryReferrers(ctx, pathA) },
			[]any{6, pathA},
			[]any{msgLast, 1, pathB},
			[]string{pathB},
		},
		"lists derivers": {
			38, func(ctx context.Context, c *nixdaemon.Client) (any, error) { return c.QueryValidDerivers(ctx, pathA) },
			[]any{33, pathA},
			[]any{msgLast, 1, drvA},
			[]string{drvA},
		},
		"registers a link": {
			38, func(ctx context.Context, c *nixdaemon.Client) (any, error) {
				return nil, c.AddIndirectRoots(ctx, []string{"/home/u/link"})
			},
			[]any{12, "/home/u/link"},
			[]any{msgLast, 1},
			nil,
		},
		"foretells what is missing": {
			38, func(ctx context.Context, c *nixdaemon.Client) (any, error) {
				return c.QueryMissing(ctx, []string{drvA + "!*"})
			},
			[]any{40, 1, drvA + "!*"},
			[]any{msgLast, 1, drvA, 1, pathA, 1, pathB, 10, 20},
			nixdaemon.Missing{[]string{drvA}, []string{pathA}, []string{pathB}, 10, 20, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, tc.minor, nixdaemon.Options{}, func(p peer) {
				p.expect(tc.sent...)
				p.send(tc.back...)
				p.untilGone()
			})
			got, err := tc.call(t.Context(), c)
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
}

// What a daemon would answer by hanging up is not sent.
func TestBadArgumentsStayHere(t *testing.T) {
	c := dial(t, 38, nixdaemon.Options{}, func(p peer) {
		p.expect(1, pathA)
		p.send(msgLast, 1)
		p.untilGone()
	})
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"a file below a path": func() error { _, err := c.IsValidPath(ctx, pathA+"/bin"); return err },
		"one bad path of two": func() error { _, err := c.Pin(ctx, []string{pathA, "/etc"}); return err },
		"the command line's form": func() error {
			_, err := c.BuildPaths(ctx, []string{drvA + "^out"})
			return err
		},
		"outputs of what is no derivation": func() error {
			_, err := c.BuildPaths(ctx, []string{pathA + "!out"})
			return err
		},
		"an output without a name": func() error {
			_, err := c.QueryMissing(ctx, []string{drvA + "!a,,b"})
			return err
		},
		"outputs that are not sorted": func() error {
			_, err := c.QueryMissing(ctx, []string{drvA + "!out,dev"})
			return err
		},
		"a relative link": func() error { return c.AddIndirectRoots(ctx, []string{"link"}) },
	} {
		if err := call(); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if valid, err := c.IsValidPath(ctx, pathA); !valid || err != nil {
		t.Errorf("IsValidPath = %t, %v; want an untouched connection", valid, err)
	}
}

// A batch is read before the next is written, else both sides could block.
func TestManyQuestionsArePipelinedInBatches(t *testing.T) {
	paths := make([]string, 150)
	for i := range paths {
		paths[i] = fmt.Sprintf("%s%d", pathA, i)
	}
	c := dial(t, 38, nixdaemon.Options{}, func(p peer) {
		for start := 0; start < len(paths); start += 64 {
			batch := paths[start:min(start+64, len(paths))]
			for _, path := range batch {
				p.expect(26, path)
			}
			p.expectNoMore()
			for range batch {
				p.send(msgLast, 1, "", hexHash, 0, 1, 2, 0, 0, "")
			}
		}
		p.untilGone()
	})
	infos, err := c.QueryPathInfos(t.Context(), paths)
	must.Do(t, err)
	for i, info := range infos {
		if info == nil || info.Path != paths[i] {
			t.Fatalf("infos[%d] = %+v; want that of %s", i, info, paths[i])
		}
	}
}

func TestSizeCountsWhatIsSharedOnce(t *testing.T) {
	closure := map[string]*nixdaemon.PathInfo{
		"a": {NARSize: 1, References: []string{"c", "a"}},
		"b": {NARSize: 2, References: []string{"c", "b"}},
		"c": {NARSize: 4, References: []string{"a", "c"}},
	}
	for want, roots := range map[uint64][]string{7: {"a", "b"}, 5: {"a"}, 0: {"elsewhere"}} {
		if got := nixdaemon.Size(closure, roots); got != want {
			t.Errorf("Size(%q) = %d, want %d", roots, got, want)
		}
	}
}

func TestClosure(t *testing.T) {
	node := func(refs ...any) []any {
		return append([]any{msgLast, 1, "", hexHash, len(refs)}, append(refs, 1, 2, 0, 0, "")...)
	}
	c := dial(t, 38, nixdaemon.Options{}, func(p peer) {
		p.expect(26, pathB, 26, drvA) // the roots
		p.send(node(pathA, pathB)...)
		p.send(node(pathA)...)
		p.expect(26, pathA) // once, though both refer to it
		p.expectNoMore()
		p.send(node(pathB)...)
		p.expect(26, pathA)
		p.send(msgLast, 0)
		p.untilGone()
	})
	infos, err := c.Closure(t.Context(), []string{pathB, drvA})
	if err != nil || len(infos) != 3 || infos[pathA] == nil || infos[pathB] == nil || infos[drvA] == nil {
		t.Errorf("Closure = %v, %v; want a, b and the derivation, once each", infos, err)
	}
	if _, err := c.Closure(t.Context(), []string{pathA}); err == nil || !strings.Contains(err.Error(), pathA) {
		t.Errorf("Closure of an invalid path = %v; want its name", err)
	}
}
