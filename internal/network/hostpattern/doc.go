// Package hostpattern says which hosts a list admits. A pattern is a host with
// an optional port, where a leading "*." stands for one label or more; without
// a port it means the ports of the web. Presets are lists that belong
// together.
//
// It is pure and judges text only. Whether what a name resolves to may be
// reached is another question, see package forbidden.
package hostpattern
