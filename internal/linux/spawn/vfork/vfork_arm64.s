#include "textflag.h"

DATA all<>+0(SB)/8, $-1
GLOBL all<>(SB), RODATA|NOPTR, $8

// func Fork(flags uintptr, before *uint64) (pid, errno uintptr)
//
// The child returns first, so what the parent still needs waits in registers:
// the kernel keeps all but R0 for it. The return address is in R30.
TEXT ·Fork(SB), NOSPLIT|NOFRAME, $0-32
	MOVD	before+8(FP), R9
	MOVD	$2, R0	// SIG_SETMASK
	MOVD	$all<>(SB), R1
	MOVD	R9, R2
	MOVD	$8, R3
	MOVD	$135, R8	// SYS_rt_sigprocmask
	SVC
	CBNZ	R0, failed
	MOVD	flags+0(FP), R0
	MOVD	ZR, R1	// the parent's stack
	MOVD	ZR, R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	$220, R8	// SYS_clone
	SVC
	CBZ	R0, made
	MOVD	R0, R10
	MOVD	$2, R0
	MOVD	R9, R1
	MOVD	ZR, R2
	MOVD	$8, R3
	MOVD	$135, R8
	SVC
	MOVD	R10, R0
	CMN	$4095, R0
	BCC	made
failed:
	NEG	R0, R0
	MOVD	$-1, R4
	MOVD	R4, pid+16(FP)
	MOVD	R0, errno+24(FP)
	RET
made:
	MOVD	R0, pid+16(FP)
	MOVD	ZR, errno+24(FP)
	RET
