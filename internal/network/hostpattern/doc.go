// Package hostpattern says which hosts a list admits. A pattern is a host with
// an optional port, where a leading "*." stands for one label or more; without
// a port it means the ports of the web. Presets are lists that belong
// together.
//
// It does no I/O and judges text only. Whether the address that a name resolves to may be
// reached is decided by package policy.
package hostpattern
