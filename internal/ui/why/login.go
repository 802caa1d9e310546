package why

// Login answers for the user's Claude login at a path: it is used from outside,
// or a copy of it enters, or it does not, for a reason; made says that one which
// was made inside is there.
func Login(shown string, outside, enters, made bool, reason string) Answer {
	switch {
	case outside && made:
		return Answer{
			Says: "the login that this project uses was made inside; yours, " + shown +
				", is not used, and neither is inside",
			Rule: "made inside", Change: "`/logout` inside",
		}
	case outside:
		return Answer{
			Says: "your login " + shown + " is used from outside: a placeholder is inside, at the agent's path, " +
				"swapped on the way to Anthropic's hosts",
			Rule: reason, Change: "let an ANTHROPIC_API_KEY be used instead, or log out",
		}
	case enters:
		return Answer{
			Inside: true, Says: "a copy of your login " + shown +
				" is inside, at the agent's path; one that is renewed there is written back",
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
