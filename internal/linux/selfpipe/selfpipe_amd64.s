#include "textflag.h"

// The kernel calls it with the signal in DI. It may use any register: all are
// put back when it returns (sigreturn(2)).
TEXT write<>(SB), NOSPLIT|NOFRAME, $0
	PUSHQ	DI
	MOVQ	·target(SB), DI
	MOVQ	SP, SI
	MOVL	$1, DX
	MOVL	$1, AX	// SYS_write
	SYSCALL
	POPQ	DI
	RET

TEXT sigreturn<>(SB), NOSPLIT|NOFRAME, $0
	MOVL	$15, AX	// SYS_rt_sigreturn
	SYSCALL
	INT	$3

// func handler() uintptr
TEXT ·handler(SB), NOSPLIT, $0-8
	LEAQ	write<>(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

// func restorer() uintptr
TEXT ·restorer(SB), NOSPLIT, $0-8
	LEAQ	sigreturn<>(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
