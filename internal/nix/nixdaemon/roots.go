package nixdaemon

import (
	"context"
	"fmt"
	"path/filepath"
)

// AddTempRoots keeps paths, valid or not yet, and what they refer to from
// the garbage collector until the connection ends. Any user may. Do it
// before asking whether they are valid: the other order leaves a gap.
func (c *Client) AddTempRoots(ctx context.Context, paths []string) error {
	return c.doPaths(ctx, paths, tempRoots(paths)...)
}

func tempRoots(paths []string) []request {
	requests := make([]request, len(paths))
	for i, path := range paths {
		requests[i] = request{op: opAddTempRoot, encode: oneText(path), decode: done}
	}
	return requests
}

// Pin is [Client.AddTempRoots] and then [Client.QueryValidPaths], sent as
// one: the daemon works in order, so what it calls valid will stay.
func (c *Client) Pin(ctx context.Context, paths []string) ([]string, error) {
	var valid []string
	requests := append(tempRoots(paths), queryValid(paths, false, &valid))
	return valid, c.doPaths(ctx, paths, requests...)
}

// AddIndirectRoots makes what each symlink points at a root, for as long as the
// symlink is there; no connection is needed for that. Any user may. A link may
// be made later, if no collection comes between, and nobody checks it.
func (c *Client) AddIndirectRoots(ctx context.Context, links []string) error {
	requests := make([]request, len(links))
	for i, link := range links {
		if !filepath.IsAbs(link) {
			return explain(opAddIndirectRoot.String(), fmt.Errorf("%q is not an absolute path", link))
		}
		requests[i] = request{op: opAddIndirectRoot, encode: oneText(link), decode: done}
	}
	return c.do(ctx, requests...)
}

// Root is one reason why the garbage collector keeps a path. To an untrusted
// user Link is "{censored}" for what other processes hold, so links repeat.
type Root struct{ Link, Path string }

// FindRoots lists the roots. The daemon walks /proc for it: 20 ms and more.
func (c *Client) FindRoots(ctx context.Context) ([]Root, error) {
	var roots []Root
	r := request{op: opFindRoots, encode: nothing, decode: func(d *decoder) {
		roots = list(d, func(d *decoder) Root { return Root{Link: d.text(), Path: d.text()} })
	}}
	return roots, c.do(ctx, r)
}

// done reads the 1 that stands for "it is done".
func done(d *decoder) { d.uint() }
