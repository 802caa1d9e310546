package nixeval

// ReasonOf finds the cause in what Nix printed.
var ReasonOf = reason
