package leak

//go:generate go run ./gen

// rule recognises a kind of token by its beginning and an expression.
type rule struct {
	begin   string  // in lower case
	what    string  // "a GitHub token"
	entropy float64 // least entropy of a match, in bits per byte; 0: any
	expr    string  // matches the whole token, RE2
}
