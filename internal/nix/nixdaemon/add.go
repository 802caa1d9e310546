package nixdaemon

import "context"

// AddText adds a text to the store by its content and pins it to the
// connection. It may refer to paths that are there; references are sorted. A
// derivation is such a text, and anybody may add one.
func (c *Client) AddText(ctx context.Context, name, text string, references []string) (path string, err error) {
	r := request{op: opAddToStore, encode: func(e *encoder) {
		e.text(name)
		e.text("text:sha256")
		e.texts(references)
		e.bool(false) // no repair
		e.framed(text)
	}, decode: func(d *decoder) {
		path = d.text()
		decodePathInfo(d, path)
	}}
	err = c.doPaths(ctx, references, r)
	return path, err
}
