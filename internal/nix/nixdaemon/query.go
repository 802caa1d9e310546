package nixdaemon

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// PathInfo is what the daemon knows of a valid path.
type PathInfo struct {
	Path       string
	Deriver    string // store path of the derivation; empty when unknown
	NARHash    string // sha256 in hex, without a prefix
	References []string
	Registered time.Time
	NARSize    uint64 // bytes
	Ultimate   bool   // built on this machine
	Signatures []string
	CA         string // content address; empty for an input-addressed path
}

// IsValidPath reports whether path is in the store and complete.
func (c *Client) IsValidPath(ctx context.Context, path string) (valid bool, err error) {
	err = c.do(ctx, request{op: isValidPath, words: []string{path}, decode: func(d *decoder) { valid = d.bool() }})
	return valid, err
}

// QueryValidPaths returns those of paths that are valid, sorted, in one round trip
// for any number of them.
func (c *Client) QueryValidPaths(ctx context.Context, paths []string) (valid []string, err error) {
	err = c.do(ctx, queryValid(paths, &valid))
	return valid, err
}

func queryValid(paths []string, valid *[]string) request {
	return request{
		op: queryValidPaths, words: paths,
		encode: func(e *encoder) { e.texts(paths); e.bool(false) }, // false: fetch nothing first
		decode: func(d *decoder) { *valid = d.texts() },
	}
}

// QueryPathInfo returns what the store knows about one path; nil if the path is not valid.
func (c *Client) QueryPathInfo(ctx context.Context, path string) (*PathInfo, error) {
	infos, err := c.QueryPathInfos(ctx, []string{path})
	if err != nil {
		return nil, err
	}
	return infos[0], nil
}

// QueryPathInfos does the same for many paths, in their order, with nil for each path that
// is not valid. The requests are pipelined.
func (c *Client) QueryPathInfos(ctx context.Context, paths []string) ([]*PathInfo, error) {
	infos := make([]*PathInfo, len(paths))
	requests := make([]request, len(paths))
	for i, path := range paths {
		requests[i] = request{op: queryPathInfo, words: []string{path}, decode: func(d *decoder) {
			if d.bool() {
				infos[i] = decodePathInfo(d, path)
			}
		}}
	}
	if err := c.do(ctx, requests...); err != nil {
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

// QueryReferrers returns the valid paths that refer to path; none for a path
// that is not valid.
func (c *Client) QueryReferrers(ctx context.Context, path string) ([]string, error) {
	return c.related(ctx, queryReferrers, path)
}

// QueryValidDerivers returns the valid derivations that have path as an output.
func (c *Client) QueryValidDerivers(ctx context.Context, path string) ([]string, error) {
	return c.related(ctx, queryValidDerivers, path)
}

func (c *Client) related(ctx context.Context, op operation, path string) (paths []string, err error) {
	err = c.do(ctx, request{op: op, words: []string{path}, decode: func(d *decoder) { paths = d.texts() }})
	return paths, err
}

// Closure returns, by path, information about roots and everything they refer to. It asks
// level by level: a closure of 200 paths takes about 5 ms. A root that is not valid is an
// error.
func (c *Client) Closure(ctx context.Context, roots []string) (map[string]*PathInfo, error) {
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
	return known, nil
}

// Size returns how many bytes roots and everything they refer to take unpacked. A path
// that is not in the closure adds nothing.
func Size(closure map[string]*PathInfo, roots []string) (size uint64) {
	counted := map[string]bool{}
	for next := slices.Clone(roots); len(next) > 0; {
		path := next[len(next)-1]
		next = next[:len(next)-1]
		if info := closure[path]; info != nil && !counted[path] {
			counted[path] = true
			size += info.NARSize
			next = append(next, info.References...)
		}
	}
	return size
}

// Pin protects paths, valid or not yet, and what they refer to from the garbage
// collector until the connection ends, and returns those that are valid. Any user
// may do this. All requests are sent together: the daemon works in order, so a path
// that it then calls valid will stay.
func (c *Client) Pin(ctx context.Context, paths []string) (valid []string, err error) {
	requests := each(addTempRoot, paths)
	err = c.do(ctx, append(requests, queryValid(paths, &valid))...)
	return valid, err
}

// AddIndirectRoots makes the target of each symlink a garbage collector root, for as
// long as the symlink exists, also after the connection has ended. Any user may do this. The daemon
// does not check the link, which may be made later if no collection comes between.
func (c *Client) AddIndirectRoots(ctx context.Context, links []string) error {
	return c.do(ctx, each(addIndirectRoot, links)...)
}

// each makes one request of op per word. The daemon answers each with the number 1: done.
func each(op operation, words []string) []request {
	requests := make([]request, len(words))
	for i, word := range words {
		requests[i] = request{op: op, words: []string{word}, decode: func(d *decoder) { d.uint() }}
	}
	return requests
}
