package nixdaemon

import (
	"context"
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
