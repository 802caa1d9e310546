// Package gate inspects what a sandbox sends to a host that it may reach only by
// name. A connection names its server twice: in TLS, and in the Host of a request
// in clear text. Both must be the name that was judged, or else a server of many
// hosts would answer for another one.
package gate
