package main

// stackSize is more than a launch needs of its stack, in bytes: with it the
// runtime makes one of 32 KiB.
const stackSize = 20 << 10

// growStack makes the stack of this goroutine as large as it gets, while it is
// all but empty. It begins with 8 KiB and is doubled by need, deep in calls
// whose frames are moved then: a hundredth of a start. A function's frame is
// made room for when it is entered, and this one touches none of it.
//
//go:noinline
func growStack(never bool) {
	if never {
		var frame [stackSize]byte
		touch(&frame)
	}
}

//go:noinline
func touch(frame *[stackSize]byte) { frame[0] = 1 }
