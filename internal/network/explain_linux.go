package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// Remedies. Tiers none and allow need nothing of what inet needs.
const (
	ownPasta   = "use the claudebox that its flake builds, which pins a pasta that suits; or install passt from 2023-03 on"
	otherTiers = "; or use `--network allow` or `--network none`, which do without"
)

// pastaCauses are the known reasons why pasta stops, by what it says.
var pastaCauses = []struct {
	said, cause, remedy string
}{
	{"External interface not usable", "this machine has no default route: it is offline", "connect first, or use `--network none`"},
	{"No routable interface", "this machine has no default route: it is offline", "connect first, or use `--network none`"},
	{"unrecognized option", "this pasta is too old", ownPasta},
	{"Usage:", "this pasta is too old", ownPasta},
	{"Couldn't switch to pasta namespaces", "pasta may not enter the sandbox's namespaces; AppArmor or a container may forbid it", "run `claudebox check`"},
}

// explain says why pasta did not connect the sandbox. It looks at the machine
// only now: what is there costs a launch nothing.
func (p *pasta) explain(how string) error {
	const op = "connect the sandbox to the internet"
	said := p.words()
	if err := CheckTun(); err != nil {
		return err
	}
	for _, c := range pastaCauses {
		if strings.Contains(said, c.said) {
			return &diag.Error{Op: op, Err: fmt.Errorf("%s (pasta: %s)", c.cause, shortened(said)), Remedy: c.remedy}
		}
	}
	if said != "" {
		how += ": " + shortened(said)
	}
	return &diag.Error{Op: op, Err: errors.New("pasta: " + how), Remedy: "run `claudebox check`" + otherTiers}
}

// shortened is enough of a message to recognise it by.
func shortened(said string) string {
	const enough = 300
	if len(said) > enough {
		said = said[:enough] + "…"
	}
	return said
}

// tun is the device that every rootless network is made with.
const tun = "/dev/net/tun"

// CheckTun tells by opening it whether this user may make interfaces, in a
// network namespace of their own.
func CheckTun() error {
	file, err := os.OpenFile(tun, os.O_RDWR, 0)
	if err == nil {
		return file.Close()
	}
	remedy := "run `sudo chmod 0666 " + tun + "`, as udev's own rules do (50-udev-default.rules)"
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		remedy = "run `sudo modprobe tun`; on NixOS set `boot.kernelModules = [ \"tun\" ];`; in a container pass the device (docker: `--device " + tun + "`)"
	case errors.Is(err, unix.EPERM):
		remedy = "pass the device to the container (docker: `--device " + tun + "`), or run claudebox on the host"
	}
	return &diag.Error{Op: "make a network interface", Err: err, Remedy: remedy + otherTiers}
}
