package session

import (
	"context"

	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/plan"
	"claudebox/internal/ui/audit"
)

// Sizes asks the Nix daemon how much of the store the launch refers to. What
// is not there yet has no size.
func (s *Session) Sizes() (sizes audit.Sizes, err error) {
	err = interruptible(s.ignored, func(ctx context.Context) error {
		valid, err := s.keeper.store().Pin(ctx, s.Launch.Plan.Roots())
		if err != nil {
			return err
		}
		client, err := s.keeper.store().Client(ctx)
		if err != nil {
			return err
		}
		infos, err := client.Closure(ctx, valid)
		if err != nil {
			return err
		}
		sizes = sizesOf(s.Launch.Plan, infos, valid)
		return nil
	})
	return sizes, err
}

func sizesOf(p plan.Plan, infos []*nixdaemon.PathInfo, roots []string) audit.Sizes {
	sizes := audit.Sizes{Paths: len(infos), Total: nixdaemon.Size(infos, roots), Of: map[string]uint64{}}
	for _, pkg := range p.Pins.Packages {
		for _, output := range pkg.Outputs {
			sizes.Of[output.Path] = nixdaemon.Size(infos, []string{output.Path})
		}
	}
	return sizes
}
