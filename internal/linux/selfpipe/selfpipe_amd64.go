package selfpipe

const saRestorer = 0x04000000
