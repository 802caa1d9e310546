// Package shape describes a YAML document by a table and reads documents by
// it: one table serves the decoder, the merge of several documents, and the
// listing with origins, so the three cannot drift apart.
//
// It knows nothing of profiles, and touches nothing. What it reads is not
// trusted: size, depth and aliases are bounded, and every fault is reported with
// its place, all of them in one run.
package shape
