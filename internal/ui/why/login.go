package why

// Login answers for the user's Claude login at a path: it is used from outside,
// or it is not, for a reason; made says that one which was made inside is there.
func Login(shown string, outside, made bool, reason string) Answer {
	switch {
	case outside && made:
		return no("the login that this project uses was made inside; yours, "+shown+", is not used, and neither is "+
			"inside", "made inside", "`/logout` inside")
	case outside:
		return no("your login "+shown+" is used from outside: a placeholder is inside, at the agent's path, swapped "+
			"on the way to Anthropic's hosts", reason, "let an ANTHROPIC_API_KEY be used instead, or log out")
	}
	return no("your login "+shown+" is not inside: "+reason, "", "")
}
