// Package hostnet knows where this machine stands: its own addresses and the
// networks that it is connected to, which no tier but full may reach, and
// when they change. It reads them by rtnetlink(7) and changes nothing.
package hostnet
