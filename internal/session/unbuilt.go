package session

import (
	"claudebox/internal/diag"
	"claudebox/internal/profile"
)

// unbuiltWishes lists what a profile may ask for and this version cannot do. A
// launch that asks for it is refused: to leave a protection out in silence is
// worse than not to start.
var unbuiltWishes = []struct {
	asked func(profile.Profile) bool
	what  string
}{
	{func(p profile.Profile) bool { return p.Nix.Builds == profile.BuildsOff }, "nix.builds: off"},
}

// refuseWishes refuses a profile that asks for what is not there yet.
func refuseWishes(p profile.Profile) error {
	for _, u := range unbuiltWishes {
		if u.asked(p) {
			return diag.Errorf("plan profile "+p.Name, "leave it out", "this version of claudebox has no %s yet", u.what)
		}
	}
	return nil
}
