// Package dns answers the sandbox's questions for names. It asks this
// machine's resolvers, of either family and as they are at that moment, and
// gives some names addresses of their own, so that a connection to such a name
// is known by it. Of what the sandbox sends nothing is passed on as it is: a
// question is written anew, and nothing but questions is asked.
package dns
