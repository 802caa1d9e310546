// Probe says what the timer slack was at its start, is, and is when restored.
package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/timerslack"
)

func main() {
	runtime.LockOSThread()
	now := slack()
	timerslack.Restore()
	fmt.Println(timerslack.AtStart, now, slack())
}

func slack() int {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		panic(err)
	}
	return ns
}
