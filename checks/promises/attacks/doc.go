// Package attacks tries on claudebox what an attacker would: each test is
// named after its attack, plays the agent inside real sandboxes and what it
// left behind for the next one, and passes when the attack fails.
//
// The tests need the lab (checks/setup) and carry the build tag lab; they run
// $CLAUDEBOX_BIN as checks/test sets it.
package attacks
