// Package shape decodes YAML documents by a table that describes them, a [Shape].
// The decoder, the merge of several documents, and the listing with origins use
// the same table, so the three cannot drift apart.
//
// It does not depend on profiles and does no I/O. Its input is not trusted: size,
// depth and aliases are bounded, and every fault is reported with its place, all
// of them in one run.
package shape
