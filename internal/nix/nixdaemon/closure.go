package nixdaemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
