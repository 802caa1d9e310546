#include "textflag.h"

// func getrlimit(resource uintptr, limit *Limit) (result int)
TEXT ·getrlimit(SB), NOSPLIT, $0-24
	MOVD	resource+0(FP), R0
	MOVD	limit+8(FP), R1
	MOVD	$163, R8	// SYS_getrlimit
	SVC
	MOVD	R0, result+16(FP)
	RET
