// Package agenthome says what the files of an agent's home hold: each is made
// at launch from the user's own files and from what the agent left there.
// What of the user's enters is named by allow-lists; nothing done inside
// finds its way back.
//
// All is a function of bytes; the package touches nothing. Bytes of the
// agent's are not trusted: they may have any shape.
package agenthome
