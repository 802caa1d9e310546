// Package proxy is the only way out of a sandbox in tier allow. It runs in
// claudebox, outside: HTTP CONNECT, plain HTTP and SOCKS5 at one port of the
// sandbox's loopback, to the hosts of a list and nowhere else.
//
// What asks is the attacker. Whatever is not understood in full is refused,
// nothing is passed on that was not parsed, and every refusal is counted for
// the user:
//
//   - Names only. An address, in any notation, is refused; a name that is not
//     on the list is not even looked up.
//   - Names are resolved here, by the host's resolver, and never with its
//     search domains. The address is judged when it is connected to, so that no
//     second answer can differ from the one that was judged (rebinding).
//   - A tunnel to port 443 has to begin with TLS, and on every port a TLS
//     client hello has to name the host of the tunnel. One without a name, and
//     one with an encrypted client hello, which could hide another, are refused.
//     What a server does with the names inside TLS is out of sight: a host that
//     serves others too (domain fronting) reaches them.
//   - Plain HTTP, directly or in a tunnel to port 80, is one request a
//     connection, with its framing and its Host checked and its head written
//     anew: nothing can be smuggled behind it, and nothing upgraded.
//
// HTTP is parsed here and not by net/http, which repairs where this has to
// refuse, and whose initialisation every launch in every tier would pay for.
package proxy
