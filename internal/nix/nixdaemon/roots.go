package nixdaemon

import (
	"context"
	"fmt"
	"path/filepath"
)

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
