package seccomp

// Filter returns the BPF program for the architecture that claudebox was built for: an
// array of struct sock_filter (linux/filter.h), 8 bytes each, in the machine's byte
// order. It allows calls that it has no rule for. For an architecture without a filter
// the package does not compile, so there is no launch without one. The caller owns the
// slice.
func Filter() []byte { return []byte(filter) }
