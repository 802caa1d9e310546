package session

import (
	"claudebox/internal/session/gituse"
)

// gitOf makes git as the agent uses it.
func gitOf(in *inputs) (gituse.Part, error) {
	return gituse.Of(gituse.Request{
		Plan: in.Plan, Facts: in.Facts, Project: in.project, User: in.Git, Inside: in.inside,
		Instance: in.Instance.Dir, Sees: in.agentState().Sees(in.inside),
		Lend: in.lending().Lend,
	})
}
