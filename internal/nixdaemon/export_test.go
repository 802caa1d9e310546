package nixdaemon

// DialError is the error that [Dial] gives for a failed connect.
func DialError(err error) error { return explain("connect to the Nix daemon", dialCause(err)) }
