// Package script is a stand-in for the model's side of the Messages API: an
// HTTP server that answers with turns written down beforehand, so that the
// real Claude Code can be driven on loopback, without an account and with the
// same outcome each time.
//
// It speaks as much of https://docs.claude.com/en/api/messages-streaming as an
// agent needs: text and tool calls, streamed or whole, and token counts.
// Requests that offer no tools (titles, summaries, quota) are the agent's
// own housekeeping: they get a fixed answer and take no turn.
//
// The package imports reply and the standard library, and trusts nothing that
// it is sent. It knows nothing of claudebox.
package script
