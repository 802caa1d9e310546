package doctor

import (
	"os"

	"golang.org/x/sys/unix"

	"claudebox/internal/network/helper"
)

// networkHelper is the program that serves the network of tiers inet and allow.
func networkHelper(e examination) Finding {
	if e.Network == "" {
		return Finding{}
	}
	if err := unix.Access(e.Network, unix.X_OK); err != nil {
		return Finding{
			Level: Failed, Detail: "it cannot be run: " + e.Network + ": " + err.Error(),
			Remedy: "install claudebox anew: this program belongs to it",
		}
	}
	return Finding{Level: OK, Detail: e.Network}
}

// tunDevice is what the sandbox's interface is made with where it can be had.
const tunDevice = "/dev/net/tun"

// tun says which way the interface is made.
func tun(e examination) Finding {
	if e.Network == "" {
		return Finding{}
	}
	file, err := os.OpenFile(tunDevice, os.O_RDWR, 0)
	if err != nil {
		return Finding{Level: Info, Detail: "cannot be opened; a veth pair serves instead"}
	}
	file.Close()
	return Finding{Level: OK, Detail: "can be opened"}
}

// startNetwork starts a network for an empty sandbox; nil: it needs none.
func (e examination) startNetwork() (*helper.Helper, error) {
	if e.Network == "" {
		return nil, nil
	}
	return helper.Start(helper.Settings{Program: e.Network, Config: helper.Config{Tier: "inet"}, Ended: func(error) {}})
}
