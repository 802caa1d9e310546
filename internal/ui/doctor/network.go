package doctor

import (
	"strings"

	"claudebox/internal/network"
	"claudebox/internal/sandbox/launch"
)

// needsPasta reports whether the launch would be in the tier that pasta
// connects. What it needs is not judged otherwise, see [wouldConnect].
func (e examination) needsPasta() bool { return e.Tier == launch.ConnectedTier }

// pasta is judged by its file and its words.
func pasta(e examination) Finding {
	if !e.needsPasta() {
		return Finding{}
	}
	p, err := network.AskPasta(e.Pasta)
	if err == nil {
		err = p.Suits()
	}
	switch {
	case err != nil:
		return fault(err)
	case p.Old:
		return Finding{
			Level: Warning, Detail: "it is from before 2024: names with long answers are not found, uploads are slow, and now and then it stalls: " + e.Pasta,
			Remedy: "use the claudebox that its flake builds, which pins a newer one",
		}
	}
	return Finding{Level: OK, Detail: e.Pasta}
}

// tun is the device that pasta connects a sandbox by.
func tun(e examination) Finding {
	if !e.needsPasta() {
		return Finding{}
	}
	if err := network.CheckTun(); err != nil {
		return fault(err)
	}
	return Finding{Level: OK, Detail: "can be opened"}
}

// wouldConnect is a remark for who thinks of tier inet, in any other tier: it
// says what a launch in it would need, and fails for nothing.
func wouldConnect(e examination) Finding {
	if e.needsPasta() || e.Tier == "" || e.Pasta == "" {
		return Finding{}
	}
	var missing []string
	for _, err := range []error{network.CheckTool(e.Pasta), network.CheckTun()} {
		if err != nil {
			missing = append(missing, fault(err).Detail+"; "+fault(err).Remedy)
		}
	}
	if len(missing) == 0 {
		return Finding{Level: Info, Detail: "not used by this profile; what it needs is there"}
	}
	return Finding{Level: Info, Detail: "not used by this profile, and not possible here: " + strings.Join(missing, "; ")}
}
