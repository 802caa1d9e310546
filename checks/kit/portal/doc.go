// Package portal is a stand-in for an MCP server that wants a login of its own,
// as MCP's authorization has it: metadata of the resource and of who gives the
// tokens (RFC 9728, 8414), a client that registers itself (RFC 7591), and a
// code with a proof that who redeems it is who asked for it (RFC 6749, 7636).
//
// Which requests Claude Code makes was measured with 2.1.329. The package
// imports reply and the standard library.
package portal
