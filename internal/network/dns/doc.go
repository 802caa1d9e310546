// Package dns answers the sandbox's DNS queries. It asks this
// machine's current resolvers, of either family, and
// gives some names addresses of their own, so that a connection to such an address
// can be judged by the name. Nothing that the sandbox sends is passed on unchanged: each
// query is written anew, and only queries are sent.
package dns
