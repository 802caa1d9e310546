// Package gate listens to what a sandbox says to a host that it may reach by
// its name alone. Two names tell a server whom a connection is for: that of
// TLS, and the Host of a request in the clear. Both must be the name that was
// judged, or a server of many hosts would answer for another one.
package gate
