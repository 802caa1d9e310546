package why

// Login answers for the user's Claude login at a path: a copy of it enters or
// not, for a reason; made says that one which was made inside is there.
func Login(shown string, enters, made bool, reason string) Answer {
	switch {
	case enters:
		return Answer{
			Inside: true, Says: "a copy of your login " + shown + " is inside, at the agent's path; one that is renewed there is written back",
			Rule: reason, Change: "let an ANTHROPIC_API_KEY in, or log out: the copy goes at the next launch",
		}
	case made:
		return Answer{
			Inside: true, Says: "a login that was made inside is in the agent's home; yours does not enter: " + reason,
			Rule: "made inside", Change: "`/logout` inside",
		}
	}
	return Answer{Says: "your login " + shown + " is not inside: " + reason}
}
