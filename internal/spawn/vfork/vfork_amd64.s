#include "textflag.h"

// func Fork(flags uintptr) (pid, errno uintptr)
//
// The child returns first and uses the stack below, so the return address
// waits in a register: the kernel keeps all but CX and R11 for the parent.
TEXT ·Fork(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ	flags+0(FP), DI
	XORL	SI, SI	// the parent's stack
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	MOVL	$56, AX	// SYS_clone
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	CMPQ	AX, $0xfffffffffffff001
	JCS	made
	NEGQ	AX
	MOVQ	$-1, pid+8(FP)
	MOVQ	AX, errno+16(FP)
	RET
made:
	MOVQ	AX, pid+8(FP)
	MOVQ	$0, errno+16(FP)
	RET
