#include "textflag.h"

DATA all<>+0(SB)/8, $-1
GLOBL all<>(SB), RODATA|NOPTR, $8

// func Fork(flags uintptr, before *uint64) (pid, errno uintptr)
//
// The child returns first and uses the stack below, so what the parent still
// needs waits in registers: the kernel keeps all but AX, CX and R11 for it.
TEXT ·Fork(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ	before+8(FP), R13
	MOVL	$2, DI	// SIG_SETMASK
	LEAQ	all<>(SB), SI
	MOVQ	R13, DX
	MOVL	$8, R10
	MOVL	$14, AX	// SYS_rt_sigprocmask
	SYSCALL
	TESTQ	AX, AX
	JNE	failed
	MOVQ	flags+0(FP), DI
	XORL	SI, SI	// the parent's stack
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	MOVL	$56, AX	// SYS_clone
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	TESTQ	AX, AX
	JEQ	made
	MOVQ	AX, R12
	MOVL	$2, DI
	MOVQ	R13, SI
	XORL	DX, DX
	MOVL	$8, R10
	MOVL	$14, AX
	SYSCALL
	MOVQ	R12, AX
	CMPQ	AX, $0xfffffffffffff001
	JCS	made
failed:
	NEGQ	AX
	MOVQ	$-1, pid+16(FP)
	MOVQ	AX, errno+24(FP)
	RET
made:
	MOVQ	AX, pid+16(FP)
	MOVQ	$0, errno+24(FP)
	RET
