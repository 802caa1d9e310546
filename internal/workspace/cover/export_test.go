package cover

// SeeNothing has every look at a process fail, as of one that is just ending.
func SeeNothing() (again func()) {
	was := isCovered
	isCovered = func(int, File) bool { return false }
	return func() { isCovered = was }
}
