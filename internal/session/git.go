package session

import (
	"claudebox/internal/sandbox/view"
	"claudebox/internal/session/gituse"
)

// gitOf makes git as the agent uses it.
func gitOf(in *inputs, inside *view.View) (gituse.Part, error) {
	return gituse.Of(gituse.Request{
		Plan: in.Plan, Facts: in.Facts, Project: in.project, User: in.Git, Inside: inside,
		Instance: in.Instance.Dir, Sees: in.agentState().Sees(inside),
		Lend: in.lending().Lend,
	})
}
