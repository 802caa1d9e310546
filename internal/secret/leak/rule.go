package leak

//go:generate go run ./gen

// rule knows a token by how it begins.
type rule struct {
	begin   string  // in lower case
	what    string  // "a GitHub token"
	entropy float64 // bits a byte that a match has at least; 0: any
	expr    string  // what all of it looks like, RE2
}
