// Package stack makes the stack of the first goroutine as large as a launch
// needs it, while it is all but empty. It begins with 2 KiB and is doubled by
// need, deep in calls whose frames are moved then: a hundredth of a start.
//
// A program imports it for that effect. It imports nothing, so it is initialised
// before nearly all others.
package stack

// size is more than a launch needs, in bytes: the runtime takes the next power
// of two, 32 KiB.
const size = 20 << 10

func init() { grow(false) }

// grow has a frame for which room is made when it is entered. None of it is
// touched, nor cleared.
//
//go:noinline
func grow(never bool) {
	if never {
		var frame [size]byte
		touch(&frame)
	}
}

//go:noinline
func touch(frame *[size]byte) { frame[0] = 1 }
