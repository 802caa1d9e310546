// Package ports carries TCP ports between the loopback of the host and that of
// a sandbox with a network of its own, both ways, on 127.0.0.1 only: nobody
// else on the host's networks reaches them. Nothing of it runs inside.
package ports
