// Package broker is claudebox's side of the broker of secrets, which is package
// swap: what the agent may use, the placeholders that it has instead, the
// authority that its sandbox trusts, and the process that swaps them.
package broker
