// Benchmark measures what claudebox costs, and prints a table in Markdown:
// a start against bare bwrap with the same words and descriptors, what a project
// adds to it, a start in tier inet against one in tier full, a download by a carried port
// against a direct one, a plan, many mounts, many packages, `nix
// build` for each package, and the waiting parent.
//
// It needs the lab (checks/setup) and runs as its user; checks/bench does both.
// Two ways that are compared take turns, so that other load on the machine
// meets both; a number is the median.
package main
