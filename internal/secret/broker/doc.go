// Package broker is claudebox's side of the broker of secrets, which is package
// swap. It defines which secrets the agent may use, the placeholders that it gets instead, the
// authority that its sandbox trusts, and the process that swaps placeholders for secrets.
package broker
