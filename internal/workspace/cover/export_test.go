package cover

// SeeNothing has every look at a process fail, as of one that is just ending.
func SeeNothing() (again func()) {
	was := isReadOnly
	isReadOnly = func(int, string) bool { return false }
	return func() { isReadOnly = was }
}
