package seccomp_test

// foreign is empty: the law in gen proves that 32-bit ARM calls are killed,
// and no arm64 machine that runs such code is at hand.
var foreign map[string]attack
