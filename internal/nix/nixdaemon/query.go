package nixdaemon

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"claudebox/internal/nix/storepath"
)

// PathInfo is what the daemon knows of a valid path.
type PathInfo struct {
	Path       string
	Deriver    string // store path of the derivation; empty when unknown
	NARHash    string // sha256 in hex, without a prefix
	References []string
	Registered time.Time
	NARSize    uint64 // bytes
	Ultimate   bool   // built here
	Signatures []string
	CA         string // content address; empty for an input-addressed path
}

// IsValidPath reports whether path is in the store and complete.
func (c *Client) IsValidPath(ctx context.Context, path string) (bool, error) {
	var valid bool
	r := request{op: isValidPath, encode: oneText(path), decode: func(d *decoder) { valid = d.bool() }}
	return valid, c.doPaths(ctx, []string{path}, r)
}

// QueryValidPaths gives the paths that are valid, sorted, in one round trip
// however many they are.
func (c *Client) QueryValidPaths(ctx context.Context, paths []string) ([]string, error) {
	var valid []string
	return valid, c.doPaths(ctx, paths, queryValid(paths, &valid))
}

func queryValid(paths []string, valid *[]string) request {
	return request{
		op:     queryValidPaths,
		encode: func(e *encoder) { e.texts(paths); e.bool(false) }, // nothing is to be fetched first
		decode: func(d *decoder) { *valid = d.texts() },
	}
}

// QueryPathInfo is what the store knows of one path; nil means that it is not valid.
func (c *Client) QueryPathInfo(ctx context.Context, path string) (*PathInfo, error) {
	infos, err := c.QueryPathInfos(ctx, []string{path})
	if err != nil {
		return nil, err
	}
	return infos[0], nil
}

// QueryPathInfos is the same for many paths, in their order, with nil for each that
// is not valid. The questions are pipelined.
func (c *Client) QueryPathInfos(ctx context.Context, paths []string) ([]*PathInfo, error) {
	infos := make([]*PathInfo, len(paths))
	requests := make([]request, len(paths))
	for i, path := range paths {
		requests[i] = request{op: queryPathInfo, encode: oneText(path), decode: func(d *decoder) {
			if d.bool() {
				infos[i] = decodePathInfo(d, path)
			}
		}}
	}
	if err := c.doPaths(ctx, paths, requests...); err != nil {
		return nil, err
	}
	return infos, nil
}

func decodePathInfo(d *decoder, path string) *PathInfo {
	return &PathInfo{
		Path:       path,
		Deriver:    d.text(),
		NARHash:    d.text(),
		References: d.texts(),
		Registered: time.Unix(int64(d.uint()), 0).UTC(),
		NARSize:    d.uint(),
		Ultimate:   d.bool(),
		Signatures: d.texts(),
		CA:         d.text(),
	}
}

// QueryReferrers gives the valid paths that refer to path; none for a path
// that is not valid.
func (c *Client) QueryReferrers(ctx context.Context, path string) ([]string, error) {
	return c.related(ctx, queryReferrers, path)
}

// QueryValidDerivers gives the valid derivations that have path as an output.
func (c *Client) QueryValidDerivers(ctx context.Context, path string) ([]string, error) {
	return c.related(ctx, queryValidDerivers, path)
}

func (c *Client) related(ctx context.Context, op operation, path string) (paths []string, err error) {
	r := request{op: op, encode: oneText(path), decode: func(d *decoder) { paths = d.texts() }}
	err = c.doPaths(ctx, []string{path}, r)
	return paths, err
}

// doPaths is do behind a look at every path that goes out: the daemon answers
// a bad one by hanging up.
func (c *Client) doPaths(ctx context.Context, paths []string, requests ...request) error {
	for _, path := range paths {
		if err := storepath.Check(path); err != nil {
			return explain(requests[0].op.does, err)
		}
	}
	return c.do(ctx, requests...)
}

func oneText(s string) func(*encoder) { return func(e *encoder) { e.text(s) } }

// Closure is about roots and everything they refer to, sorted by path. It
// asks level by level: a closure of 200 paths takes about 5 ms. A root that
// is not valid is an error.
func (c *Client) Closure(ctx context.Context, roots []string) ([]*PathInfo, error) {
	known := map[string]*PathInfo{}
	for level := roots; len(level) > 0; {
		infos, err := c.QueryPathInfos(ctx, level)
		if err != nil {
			return nil, err
		}
		if i := slices.Index(infos, nil); i >= 0 {
			return nil, explain(queryPathInfo.does, fmt.Errorf("%s is not valid", level[i]))
		}
		level = nil
		for _, info := range infos {
			known[info.Path] = info
		}
		for _, info := range infos {
			for _, ref := range info.References {
				if _, ok := known[ref]; !ok {
					known[ref] = nil // asked about next, once
					level = append(level, ref)
				}
			}
		}
	}
	byPath := func(a, b *PathInfo) int { return strings.Compare(a.Path, b.Path) }
	return slices.SortedFunc(maps.Values(known), byPath), nil
}

// Size is the bytes, unpacked, of roots and everything they refer to, of what
// infos say: a closure that holds the roots.
func Size(infos []*PathInfo, roots []string) uint64 {
	known := make(map[string]*PathInfo, len(infos))
	for _, info := range infos {
		known[info.Path] = info
	}
	var size uint64
	for next := slices.Clone(roots); len(next) > 0; {
		path := next[len(next)-1]
		next = next[:len(next)-1]
		if info := known[path]; info != nil {
			delete(known, path) // counted
			size += info.NARSize
			next = append(next, info.References...)
		}
	}
	return size
}

// Pin keeps paths, valid or not yet, and what they refer to from the garbage
// collector until the connection ends, and gives those that are valid. Any user
// may. It is sent as one: the daemon works in order, so what it calls valid will
// stay.
func (c *Client) Pin(ctx context.Context, paths []string) ([]string, error) {
	var valid []string
	var requests []request
	for _, path := range paths {
		requests = append(requests, request{op: addTempRoot, encode: oneText(path), decode: done})
	}
	requests = append(requests, queryValid(paths, &valid))
	return valid, c.doPaths(ctx, paths, requests...)
}

// AddIndirectRoots makes what each symlink points at a root, for as long as the
// symlink is there; no connection is needed for that. Any user may. A link may
// be made later, if no collection comes between, and nobody checks it.
func (c *Client) AddIndirectRoots(ctx context.Context, links []string) error {
	requests := make([]request, len(links))
	for i, link := range links {
		if !filepath.IsAbs(link) {
			return explain(addIndirectRoot.does, fmt.Errorf("%q is not an absolute path", link))
		}
		requests[i] = request{op: addIndirectRoot, encode: oneText(link), decode: done}
	}
	return c.do(ctx, requests...)
}

// done reads the 1 that stands for "it is done".
func done(d *decoder) { d.uint() }
