package netfilter

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/network/netlink"
	"claudebox/internal/network/netns"
)

// Filter is what is in force in a namespace. It is for one goroutine at a
// time.
type Filter struct {
	tables    tables
	forbidden []netip.Prefix
}

// Remedy is for a kernel without nf_tables.
const Remedy = "run `sudo modprobe -a nf_tables nft_reject_inet`; on NixOS set `boot.kernelModules = [ \"nf_tables\" \"nft_reject_inet\" ];`; or use `--network allow` or `none`"

// Load puts the rules in force in a namespace, with these addresses
// forbidden. It must come before anything connects the namespace.
func Load(ns netns.Namespace, forbidden []netip.Prefix) (*Filter, error) {
	f, err := filterOf(ns, rulesInForce(), forbidden)
	if err != nil {
		return nil, &diag.Error{Op: "load the rules of tier inet", Err: err, Remedy: Remedy}
	}
	return f, nil
}

func filterOf(ns netns.Namespace, rules []Rule, forbidden []netip.Prefix) (*Filter, error) {
	fds, err := ns.Sockets(1, unix.AF_NETLINK, unix.SOCK_RAW, protocolHere())
	if err != nil {
		return nil, err
	}
	f := &Filter{tables: tables{netlink.On(fds[0])}, forbidden: forbidden}
	if err := f.tables.load(rules, rangesInForce(forbidden)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Forbid forbids these addresses as well. What was forbidden stays so.
func (f *Filter) Forbid(more []netip.Prefix) error {
	all := slices.Clone(f.forbidden)
	for _, p := range more {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	if len(all) == len(f.forbidden) {
		return nil
	}
	if err := f.tables.replace(rangesInForce(all)); err != nil {
		return &diag.Error{Op: "forbid what this machine is now connected to", Err: err}
	}
	f.forbidden = all
	return nil
}

// Close lets go of the namespace. The rules stay in force.
func (f *Filter) Close() error { return f.tables.socket.Close() }
