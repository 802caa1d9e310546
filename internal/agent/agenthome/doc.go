// Package agenthome defines the content of the files in an agent's home. Each is made at launch from the user's own
// files and from what the agent left there. What enters of the user's is named by allow-lists. Nothing done inside
// changes the user's own files, but for the prompts that [NewPrompts] gives back.
//
// The package maps bytes to bytes and does no I/O. Bytes that the agent wrote are not trusted: they may have any
// shape.
package agenthome
