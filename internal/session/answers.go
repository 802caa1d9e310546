package session

import (
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/session/asking"
	"claudebox/internal/session/live"
	"claudebox/internal/ui/why"
)

// listen begins to answer claudebox's commands about this session.
func (r *running) listen() (err error) {
	r.live, err = live.Serve(r.Folders.Home, live.Info{
		Began: time.Now(), Project: r.project.Path, Dir: r.Facts.Cwd, Kind: r.Plan.Project, Profile: r.Call.FullRef(),
		Plan: r.Options.Plan, Network: r.Options.Network, Tier: r.Launch.Tier, Branch: r.branchName(),
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

// answerInside begins to answer questions from inside, by the launch alone.
func (r *running) answerInside() (err error) {
	home := beneath.Real(r.Facts.Home)
	answer := func(question string) string {
		within := why.Within{Launch: r.runner.Launch, Home: home, Session: r.live.ID(), Opened: r.network.Opened()}
		answer, ok := within.Answer(question)
		if !ok {
			return "unknown: that is no host, no path and no program\n"
		}
		return answer.Answered()
	}
	refusals := func() int { return r.network.Refusals() + r.broker.Refused.Count() }
	r.replies, err = asking.Serve(r.Instance.Dir, asking.Answers{Answer: answer, Refusals: refusals})
	return err
}
