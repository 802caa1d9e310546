// Package profile turns a profile, the file in which a person says what the
// agent may have, into a [Profile], or into every problem of it with file,
// line and column, all in one run.
//
// A profile is read in four steps, each a function of values: package shape
// decodes each document by the table in schema.go; load.go follows extends
// and merges the documents; build.go makes the typed values; validate.go
// judges what concerns several values at once. A Profile that comes out is
// valid: nobody downstream checks it again.
//
// The package touches nothing: the caller looks files up, see [Opener]. No text
// it is given is trusted.
package profile
