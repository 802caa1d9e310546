// Package syntax reads and writes YAML: text to the nodes of package shape, and
// back. It alone knows yaml.v3, which takes a launch time before its first
// statement: whoever reads profiles is handed [Parse].
//
// What it reads is not trusted: its size is bounded, and a fault is reported
// with its place.
package syntax
