#include "textflag.h"

// The kernel calls it with the signal in R0. It may use any register: all are
// put back when it returns (sigreturn(2)), which R30 leads to.
TEXT write<>(SB), NOSPLIT|NOFRAME, $0
	SUB	$16, RSP
	MOVD	R0, (RSP)
	MOVD	·target(SB), R0
	MOVD	RSP, R1
	MOVD	$1, R2
	MOVD	$64, R8	// SYS_write
	SVC
	ADD	$16, RSP
	RET

// func handler() uintptr
TEXT ·handler(SB), NOSPLIT, $0-8
	MOVD	$write<>(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// func restorer() uintptr
TEXT ·restorer(SB), NOSPLIT, $0-8
	MOVD	ZR, ret+0(FP)
	RET
