#include "textflag.h"

// claudebox_entry is where the kernel begins: there is no stack but its own, and
// no Go yet. The runtime's own entry takes the arguments from SP.
TEXT claudebox_entry(SB), NOSPLIT|NOFRAME, $0
	MOVL	$30, DI	// PR_GET_TIMERSLACK
	MOVL	$157, AX	// SYS_prctl
	SYSCALL
	TESTQ	AX, AX
	JLE	begin
	MOVQ	AX, ·AtStart(SB)
	MOVL	$29, DI	// PR_SET_TIMERSLACK
	MOVL	$1000000, SI
	MOVL	$157, AX
	SYSCALL
begin:
	JMP	_rt0_amd64_linux(SB)
