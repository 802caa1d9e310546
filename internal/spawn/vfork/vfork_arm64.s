#include "textflag.h"

// func Fork(flags uintptr) (pid, errno uintptr)
//
// The return address is in R30, which the kernel keeps for the parent.
TEXT ·Fork(SB), NOSPLIT|NOFRAME, $0-24
	MOVD	flags+0(FP), R0
	MOVD	ZR, R1	// the parent's stack
	MOVD	ZR, R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	$220, R8	// SYS_clone
	SVC
	CMN	$4095, R0
	BCC	made
	NEG	R0, R0
	MOVD	$-1, R4
	MOVD	R4, pid+8(FP)
	MOVD	R0, errno+16(FP)
	RET
made:
	MOVD	R0, pid+8(FP)
	MOVD	ZR, errno+16(FP)
	RET
