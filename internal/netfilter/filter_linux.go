package netfilter

import (
	"errors"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/netlink"
	"claudebox/internal/netns"
)

// Filter is what is in force in a namespace. It is for one goroutine at a
// time.
type Filter struct {
	kind      kind
	socket    *netlink.Socket
	forbidden []netip.Prefix
}

// Link is the interface that leads out.
type Link struct {
	Name    string
	Gateway netip.Addr // IPv4
	MAC     string     // of the gateway, as pasta(1) takes it
}

// kind is how a filter is made.
type kind interface {
	load(rules []Rule, forbidden []netip.Prefix) error
	replace(forbidden []netip.Prefix) error
}

// how is where a kind of filter is asked for.
type how struct {
	protocol int // of netlink
	on       func(*netlink.Socket, Link) kind
}

// kinds are those that there are, the best first.
var kinds = []how{
	{unix.NETLINK_NETFILTER, func(s *netlink.Socket, _ Link) kind { return tables{s} }},
	{unix.NETLINK_ROUTE, func(s *netlink.Socket, l Link) kind { return &routing{socket: s, link: l} }},
}

// absent are the errors of a kernel that lacks a kind, or a part of it.
var absent = []error{unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.EOPNOTSUPP, unix.ENOENT}

// Load puts the rules in force in a namespace, with these addresses
// forbidden. It must come before anything connects the namespace, which this
// link will do.
func Load(ns netns.Namespace, l Link, forbidden []netip.Prefix) (*Filter, error) {
	var err error
	for _, k := range kindsHere() {
		var f *Filter
		if f, err = try(ns, k, l, forbidden); err == nil {
			return f, nil
		}
		if !slices.ContainsFunc(absent, func(e error) bool { return errors.Is(err, e) }) {
			break
		}
	}
	return nil, &diag.Error{Op: "load the rules of tier inet", Err: err, Remedy: Remedy}
}

// Remedy is for a kernel that takes neither kind.
const Remedy = "run `sudo modprobe -a nf_tables nft_reject_inet`; on NixOS set `boot.kernelModules = [ \"nf_tables\" \"nft_reject_inet\" ];`; or use `--network allow` or `none`"

func try(ns netns.Namespace, h how, l Link, forbidden []netip.Prefix) (*Filter, error) {
	fds, err := ns.Sockets(1, unix.AF_NETLINK, unix.SOCK_RAW, h.protocol)
	if err != nil {
		return nil, err
	}
	f := &Filter{socket: netlink.On(fds[0]), forbidden: forbidden}
	f.kind = h.on(f.socket, l)
	if err := f.kind.load(rulesInForce(), rangesInForce(forbidden)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Settle does what is left to do when the link is there, before anybody may
// use it.
func (f *Filter) Settle() error {
	r, ok := f.kind.(*routing)
	if !ok {
		return nil
	}
	if err := r.settle(rangesInForce(f.forbidden)); err != nil {
		return &diag.Error{Op: "close the neighbours of tier inet", Err: err, Remedy: Remedy}
	}
	return nil
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
	if err := f.kind.replace(rangesInForce(all)); err != nil {
		return &diag.Error{Op: "forbid what this machine is now connected to", Err: err}
	}
	f.forbidden = all
	return nil
}

// Kinds of filter, by what they are made of.
const (
	Tables  = "nf_tables"
	Routing = "routing rules"
)

// Kind tells what the filter is made of.
func (f *Filter) Kind() string {
	if _, ok := f.kind.(*routing); ok {
		return Routing
	}
	return Tables
}

// Close lets go of the namespace. The rules stay in force.
func (f *Filter) Close() error { return f.socket.Close() }
