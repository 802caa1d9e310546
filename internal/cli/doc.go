// Package cli is the whole of claudebox: the launch of package start, and all
// commands. It is the only package that knows cobra, and the place where effects
// meet: it reads what the pure stages need and hands it to them as values.
package cli
