package session

import (
	"time"

	"claudebox/internal/session/live"
)

// listen begins to answer claudebox's commands about this session.
func (r *running) listen() (err error) {
	r.live, err = live.Serve(r.Folders.Home, live.Info{
		Began: time.Now(), Project: r.project.Path, Dir: r.Facts.Cwd, Kind: r.Plan.Project, Profile: r.Call.FullRef(),
		Plan: r.Options.Plan, Network: r.Options.Network, Tier: r.Launch.Tier, Branch: r.Options.Branch,
	}, r.answer)
	return err
}

// answer answers a question of a command outside.
func (r *running) answer(q live.Question) (a live.Answer) {
	switch {
	case q.Open != nil:
		if err := r.network.OpenMore(*q.Open); err != nil {
			a.Error = err.Error()
		}
	case q.Refused:
		a.Refused = r.network.Unlisted()
	case q.After != nil:
		a.Events = r.events.After(*q.After, r.network.Note)
	}
	return a
}
