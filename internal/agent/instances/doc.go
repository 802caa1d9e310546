// Package instances lists what claudebox keeps for projects, with sizes and
// last use, and chooses what of it to remove (STATE-04). How an instance is
// kept and removed is package state's affair.
//
// It imports beneath, diag and state, and only reads. It does not trust what
// lies in an agent's home: it follows no link there and bounds what it reads.
package instances
