#include "textflag.h"

// claudebox_entry is where the kernel begins: there is no stack but its own, and
// no Go yet. The runtime's own entry takes the arguments from RSP.
TEXT claudebox_entry(SB), NOSPLIT|NOFRAME, $0
	MOVD	$30, R0	// PR_GET_TIMERSLACK
	MOVD	$167, R8	// SYS_prctl
	SVC
	CMP	$0, R0
	BLE	begin
	MOVD	$·AtStart(SB), R1
	MOVD	R0, (R1)
	MOVD	$29, R0	// PR_SET_TIMERSLACK
	MOVD	$1000000, R1
	MOVD	$167, R8
	SVC
begin:
	JMP	_rt0_arm64_linux(SB)
