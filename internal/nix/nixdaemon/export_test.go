package nixdaemon

import "context"

// DialError is the error that [Dial] gives for a failed connect.
func DialError(err error) error { return explain("connect to the Nix daemon", named(err)) }

// SendUnchecked asks whether path is valid without a look at it.
func SendUnchecked(ctx context.Context, c *Client, path string) error {
	return c.do(ctx, request{op: isValidPath, encode: func(e *encoder) { e.text(path) }, decode: func(d *decoder) { d.bool() }})
}
