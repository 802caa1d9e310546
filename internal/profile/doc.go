// Package profile reads profiles: files in which a person says what the agent
// may have. It returns a [Profile], or every problem in the files with file,
// line and column, all in one run.
//
// A profile is read in four steps, each a pure function: package shape decodes
// each document by the table in schema.go; load.go follows extends and merges
// the documents; validate.go checks what concerns several values at once;
// build.go makes the typed values. A Profile that comes out is valid: no caller
// needs to check it again.
//
// The package does no I/O: the caller finds and reads the files, see [Opener].
// It treats all text that it is given as untrusted.
package profile
