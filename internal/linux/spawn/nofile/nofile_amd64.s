#include "textflag.h"

// func getrlimit(resource uintptr, limit *Limit) (result int)
TEXT ·getrlimit(SB), NOSPLIT, $0-24
	MOVQ	resource+0(FP), DI
	MOVQ	limit+8(FP), SI
	MOVL	$97, AX	// SYS_getrlimit
	SYSCALL
	MOVQ	AX, result+16(FP)
	RET
