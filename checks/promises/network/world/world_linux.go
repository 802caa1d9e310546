package world

import (
	"errors"
	"net"
	"strconv"
	"testing"

	"claudebox/checks/promises/network/target"
)

// World is a host and what it can reach, with every service running.
type World struct {
	host, outside namespace
	closers       []func() error
	tap           *tap
	samples       []target.Target // of ranges out of bounds, those that can be served
}

// New makes a world for the time of a test.
func New(t *testing.T) *World {
	t.Helper()
	w, err := build()
	if err != nil {
		t.Fatal("make the world: ", err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func build() (*World, error) {
	w := &World{}
	var err error
	if w.outside, err = newNamespace(); err != nil {
		return nil, err
	}
	w.closers = append(w.closers, w.outside.file.Close)
	if w.host, err = newNamespace(); err != nil {
		return nil, err
	}
	w.closers = append(w.closers, w.host.file.Close)
	if err = w.connect(); err == nil {
		err = w.listenIn()
	}
	if err == nil {
		err = w.serve()
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *World) close() error {
	var errs []error
	for _, c := range w.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// serve starts the service of every target.
func (w *World) serve() error {
	for _, side := range []struct {
		where target.Side
		ns    namespace
	}{{target.Outside, w.outside}, {target.Host, w.host}} {
		for _, t := range target.On(side.where) {
			if err := w.serveTarget(side.ns, t); err != nil {
				return err
			}
		}
	}
	for _, t := range w.samples {
		if err := w.serveTarget(w.outside, t); err != nil {
			return err
		}
	}
	return errors.Join(w.serveAbstract(), w.serveNames(), w.serveEar())
}

func (w *World) serveTarget(ns namespace, t target.Target) error {
	host := t.Addr.String()
	if t.Addr.IsLinkLocalUnicast() && t.Addr.Is6() {
		host += "%eth0"
	}
	address := net.JoinHostPort(host, strconv.Itoa(int(t.Port)))
	l, err := ns.listen("tcp", address)
	if err != nil {
		return err
	}
	c, err := ns.listenPacket("udp", address)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	w.closers = append(w.closers, l.Close, c.Close)
	go answerHTTP(l, t.Name)
	go answerDatagrams(c, t.Name)
	return nil
}

func (w *World) serveAbstract() error {
	l, err := w.host.listen("unix", target.Abstract)
	if err != nil {
		return err
	}
	c, err := w.host.listenPacket("unixgram", target.AbstractDatagram)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	w.closers = append(w.closers, l.Close, c.Close)
	go answerHTTP(l, "host abstract")
	return nil
}
