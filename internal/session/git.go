package session

import (
	"claudebox/internal/sandbox/view"
	"claudebox/internal/session/agentstate"
	"claudebox/internal/session/folders"
	"claudebox/internal/session/gituse"
	"claudebox/internal/session/lending"
)

// gitOf makes git as the agent uses it.
func gitOf(h folders.Host, kept agentstate.Request, lent lending.Host, inside *view.View) (gituse.Part, error) {
	return gituse.Of(gituse.Request{
		Plan: h.Plan, Facts: h.Facts, Project: kept.Project, User: h.Git, Inside: inside,
		Instance: lent.Instance, Sees: kept.Sees(inside), Lend: lent.Lend,
	})
}
