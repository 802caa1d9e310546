package doctor

import (
	"claudebox/internal/sandbox/launch"
)

func userNamespaces(examination) Finding {
	if err := launch.CheckUserNamespaces(); err != nil {
		return fault(err)
	}
	return Finding{Level: OK, Detail: "can be made"}
}

// bwrap is judged by its file, its version and its options.
func bwrap(e examination) Finding {
	if e.Bwrap == "" {
		return Finding{}
	}
	if err := launch.CheckBwrap(e.Bwrap); err != nil {
		return fault(err)
	}
	b, err := launch.AskBwrap(e.Bwrap)
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
		return Finding{
			Level: Warning,
			Detail: b.Version + " makes mount points through links (CVE-2026-87766); " +
				"launches keep it from that, and refuse some mounts: " + path,
			Remedy: "use bwrap " + launch.SafeBwrap + " or newer: the claudebox that its flake builds has it",
		}
	}
	return Finding{Level: OK, Detail: b.Version + ", " + path}
}

// sandbox starts an empty one.
func sandbox(e examination) Finding {
	if e.Bwrap == "" || e.Env == "" {
		return Finding{}
	}
	network, err := e.startNetwork()
	if err != nil {
		return fault(err)
	}
	if network != nil {
		defer network.Close()
	}
	trial := launch.Trial{Bwrap: e.Bwrap, Env: e.Env, Tier: e.Tier, Network: network, Seccomp: e.Seccomp}
	if err := trial.Run(); err != nil {
		return fault(err)
	}
	if network != nil {
		return Finding{Level: OK, Detail: "an empty one starts, with a network of its own"}
	}
	return Finding{Level: OK, Detail: "an empty one starts"}
}
