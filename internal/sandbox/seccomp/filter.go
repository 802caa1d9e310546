package seccomp

// Filter is the program for the architecture that claudebox was built for: an
// array of struct sock_filter (linux/filter.h), 8 bytes each, in the
// machine's byte order. It allows what it does not know. On an architecture
// without one the package does not compile, so there is no launch without a
// filter. The caller owns the slice.
func Filter() []byte { return []byte(filter) }
