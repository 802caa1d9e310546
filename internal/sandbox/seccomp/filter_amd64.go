package seccomp

import _ "embed"

//go:embed filter_amd64.bpf
var filter string
