package session

import (
	"claudebox/internal/linux/beneath"
	"claudebox/internal/session/asking"
	"claudebox/internal/ui/why"
)

// answerInside begins to answer questions from inside, by the launch alone.
func (r *running) answerInside() (err error) {
	home := beneath.Real(r.Facts.Home)
	answer := func(question string) string {
		within := why.Within{Launch: r.Launch, Home: home, Session: r.live.ID(), Opened: r.network.Opened()}
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
