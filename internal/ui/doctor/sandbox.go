package doctor

import (
	"os"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/network/helper"
	"claudebox/internal/sandbox/launch"
)

func userNamespaces(examination) Finding {
	if err := launch.CheckUserNamespaces(); err != nil {
		return fault(err)
	}
	return ok("can be made")
}

// bwrap checks the program's file, its version and its options.
func bwrap(e examination) Finding {
	var b launch.Bwrap
	err := launch.CheckBwrap(e.Bwrap)
	if err == nil {
		b, err = launch.AskBwrap(e.Bwrap)
	}
	if err == nil {
		err = b.Suits()
	}
	if err != nil {
		return fault(err)
	}
	return judgeVersion(b, e.Bwrap)
}

func judgeVersion(b launch.Bwrap, path string) Finding {
	if b.Before(launch.SafeBwrap) {
		return warning(b.Version+" makes mount points through links (CVE-2026-87766); launches keep it from that, "+
			"and refuse some mounts: "+path,
			launch.OwnBwrap)
	}
	return ok(b.Version + ", " + path)
}

// networkHelper checks the program that serves the network of tiers inet and allow.
func networkHelper(e examination) Finding {
	if err := unix.Access(e.Network, unix.X_OK); err != nil {
		return failed("it cannot be run: "+e.Network+": "+err.Error(),
			diag.Reinstall)
	}
	return ok(e.Network)
}

// tun reports whether the network interface of a sandbox can be a tun device; else it is a veth pair.
func tun(e examination) Finding {
	file, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return info("cannot be opened; a veth pair serves instead")
	}
	file.Close()
	return ok("can be opened")
}

// sandbox starts an empty sandbox, with a network of its own where the launch would have one.
func sandbox(e examination) Finding {
	trial, detail := launch.Trial{Bwrap: e.Bwrap, Shim: e.Env, Tier: e.Tier, Seccomp: e.Seccomp}, "an empty one starts"
	if e.Network != "" {
		network, err := helper.Start(helper.Settings{
			Program: e.Network, Config: helper.Config{Tier: "inet"}, Ended: func(error) {},
		})
		if err != nil {
			return fault(err)
		}
		defer network.Close()
		trial.Network, detail = network, detail+", with a network of its own"
	}
	if err := trial.Run(); err != nil {
		return fault(err)
	}
	return ok(detail)
}
