package selfpipe

const saRestorer = 0 // the kernel has its own (arch/arm64/kernel/vdso)
