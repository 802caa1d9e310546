//go:build lab

package doctor_test

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/ui/attack"
	"claudebox/internal/ui/doctor"
)

// PROOF-01: in each tier nothing is got that must not be.
func TestTheAttacksOnASandboxOfEachTierGetNothing(t *testing.T) {
	for _, network := range []string{"full", "inet", "{tier: allow, allow: [anthropic]}", "none"} {
		t.Run(network, func(t *testing.T) {
			home := trial.Home(t, "cb-attack-")
			profile := "name: x\nextends: default\nnetwork: " + network + "\n"
			must.Do(t, os.Mkdir(home+"/.ssh", 0o700), os.WriteFile(home+"/.ssh/id", []byte("key"), 0o600), os.WriteFile(home+"/x.yaml", []byte(profile), 0o600))
			cmd := exec.CommandContext(t.Context(), os.Getenv("CLAUDEBOX_BIN"), "-P", home+"/x.yaml", "check", "--attack", "--format", "json")
			cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "USER=u", "PATH=/usr/bin:/bin", "TERM=xterm"}
			status, stdout, stderr := trial.Run(t, cmd)
			var findings []doctor.Finding
			if err := json.Unmarshal([]byte(stdout), &findings); err != nil || status != 0 || len(findings) < 50 || doctor.Count(findings, doctor.Failed) > 0 {
				t.Errorf("status %d, %v\n%s\n%s", status, err, stdout, stderr)
			}
			if network == "full" && doctor.Count(findings, doctor.Info) == 0 {
				t.Errorf("that services of this machine can be reached is not said: %s", stdout)
			}
			if left, _ := filepath.Glob(home + "/.claudebox*"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// box is a sandbox made by hand, in which every attack fails, and what can be
// changed of it to plant a hole.
type box struct {
	attack.Targets
	words   map[string][]string // bwrap's, by what they are for
	cmdline []string            // further ones that stand on its command line
	env     []string
	extra   *os.File
	stdin   *os.File
	allow   []uint32 // calls that the filter lets through
	ioctls  []uint32 // requests likewise
	high    bool     // the filter compares all 64 bits
	sockets []uint32 // families likewise

	protocols, netlink []uint32 // protocols likewise
}

func share(b *box) { delete(b.words, "net") }

// holes are planted one by one, each under the name of its line.
var holes = map[string]func(b *box, dir string){
	"environment":      func(b *box, _ string) { b.env = []string{"X=" + b.Canary} },
	"command lines":    func(b *box, _ string) { b.cmdline = []string{"--symlink", b.Canary, "/tmp/x"} },
	"loader variables": func(b *box, _ string) { b.words["hole"] = []string{"--setenv", "LD_AUDIT", "/x"} },
	"agents of the user": func(b *box, _ string) {
		b.words["hole"] = []string{"--setenv", "SSH_AUTH_SOCK", "/x"}
	},
	"descriptors":      func(b *box, _ string) { b.extra, _ = os.Open(b.HostFile) },
	"standard streams": func(b *box, dir string) { b.stdin, _ = os.Open(dir) },
	"processes": func(b *box, _ string) {
		delete(b.words, "pid")
		b.words["proc"] = []string{"--ro-bind", "/proc", "/proc"}
	},
	"capabilities":  func(b *box, _ string) { b.words["hole"] = []string{"--cap-add", "CAP_SYS_CHROOT"} },
	"crashes":       func(b *box, _ string) { b.allow = []uint32{unix.SYS_PRLIMIT64} },
	"secret places": func(b *box, _ string) { b.words["hole"] = []string{"--dir", b.Home + "/.ssh"} },
	"system secrets": func(b *box, dir string) {
		b.words["etc"] = []string{"--tmpfs", "/etc", "--ro-bind", dir + "/file", "/etc/shadow", "--remount-ro", "/etc"}
	},
	"other homes":         func(b *box, dir string) { b.words["hole"] = []string{"--ro-bind", dir, "/home/other"} },
	"the host's /tmp":     func(b *box, _ string) { b.words["hole"] = []string{"--ro-bind", b.HostFile, b.HostFile} },
	"sockets of the host": func(b *box, _ string) { b.words["hole"] = []string{"--ro-bind", b.Socket, "/run/x"} },
	"devices":             func(b *box, _ string) { b.words["hole"] = []string{"--dev-bind", "/dev/net/tun", "/dev/net/tun"} },
	"/sys":                func(b *box, _ string) { b.words["hole"] = []string{"--ro-bind", "/sys", "/sys"} },
	"the host's system":   func(b *box, _ string) { b.words["hole"] = []string{"--dir", "/boot"} },
	"settings of the kernel": func(b *box, dir string) {
		b.words["hole"] = []string{"--bind", dir + "/file", "/proc/sys/kernel/core_pattern"}
	},
	"write to /":               func(b *box, _ string) { delete(b.words, "z root") },
	"write to /etc":            func(b *box, _ string) { b.words["etc"] = []string{"--tmpfs", "/etc"} },
	"write to the store":       func(b *box, _ string) { b.words["store"] = []string{"--tmpfs", "/nix/store"} },
	"write beside the project": func(b *box, _ string) { delete(b.words, "y beside") },
	"covered secrets":          func(b *box, _ string) { delete(b.words, "project .env") },
	"your git folder": func(b *box, _ string) {
		at := filepath.Join(b.Project, ".git")
		b.words["project .git"] = []string{"--bind", at, at}
	},
	"another git folder":       func(b *box, _ string) { delete(b.words, "project .git"); b.GitFolder = "none" },
	"files the host runs":      func(b *box, _ string) { delete(b.words, "project .envrc") },
	"user namespaces":          func(b *box, _ string) { b.allow = []uint32{unix.SYS_UNSHARE} },
	"other namespaces":         func(b *box, _ string) { b.allow = []uint32{unix.SYS_SETNS} },
	"mounts":                   func(b *box, _ string) { b.allow = []uint32{unix.SYS_OPEN_TREE} },
	"typing into the terminal": func(b *box, _ string) { b.ioctls = []uint32{unix.TIOCSTI} },
	"typing with high bits":    func(b *box, _ string) { b.high = true },
	"the console's clipboard":  func(b *box, _ string) { b.ioctls = []uint32{0x541c} },
	"io_uring":                 func(b *box, _ string) { b.allow = []uint32{unix.SYS_IO_URING_SETUP} },
	"userfaultfd":              func(b *box, _ string) { b.allow = []uint32{unix.SYS_USERFAULTFD} },
	"perf events":              func(b *box, _ string) { b.allow = []uint32{unix.SYS_PERF_EVENT_OPEN} },
	"bpf":                      func(b *box, _ string) { b.allow = []uint32{unix.SYS_BPF} },
	"keyrings: add":            func(b *box, _ string) { b.allow = []uint32{unix.SYS_ADD_KEY} },
	"keyrings: ask":            func(b *box, _ string) { b.allow = []uint32{unix.SYS_REQUEST_KEY} },
	"keyrings: read":           func(b *box, _ string) { b.allow = []uint32{unix.SYS_KEYCTL} },
	"AF_ALG":                   func(b *box, _ string) { b.sockets = []uint32{unix.AF_ALG} },
	"rare protocols":           func(b *box, _ string) { b.protocols = []uint32{unix.IPPROTO_UDPLITE} },
	"AF_VSOCK":                 func(b *box, _ string) { b.sockets = []uint32{unix.AF_VSOCK} },
	"AF_RXRPC":                 func(b *box, _ string) { b.sockets = []uint32{unix.AF_RXRPC} },
	"AF_BLUETOOTH":             func(b *box, _ string) { b.sockets = []uint32{unix.AF_BLUETOOTH} },
	"xfrm":                     func(b *box, _ string) { b.netlink = []uint32{unix.NETLINK_XFRM} },
	"netfilter":                func(b *box, _ string) { b.netlink = []uint32{unix.NETLINK_NETFILTER} },
	"services on loopback":     func(b *box, _ string) { share(b); b.Addresses, b.Abstract = nil, "none" },
	"services of this machine": func(b *box, _ string) {
		share(b)
		b.Addresses, b.Loopback, b.Abstract = []string{"127.0.0.2" + b.Addresses[0][strings.LastIndexByte(b.Addresses[0], ':'):]}, "", "none"
	},
	"interfaces":       func(b *box, _ string) { b.Addresses = []string{"127.0.0.1:1"} },
	"abstract sockets": func(b *box, _ string) { share(b); b.Addresses, b.Loopback = nil, "" },
	"a socket's path": func(b *box, _ string) {
		b.words["hole"] = []string{"--ro-bind", b.Socket, "/opt/socket"}
		b.Socket = "/opt/socket"
	},
}

// lacking are lines that this kernel cannot open, whatever the sandbox lets
// through: what they try is not built in, or closed for all but root.
func lacking(t *testing.T) []string {
	var list []string
	for name, domain := range map[string]int{"AF_ALG": unix.AF_ALG, "AF_VSOCK": unix.AF_VSOCK, "AF_RXRPC": unix.AF_RXRPC, "AF_BLUETOOTH": unix.AF_BLUETOOTH} {
		kind, protocol := unix.SOCK_SEQPACKET, 0
		switch domain {
		case unix.AF_VSOCK:
			kind = unix.SOCK_STREAM
		case unix.AF_RXRPC:
			kind, protocol = unix.SOCK_DGRAM, unix.AF_INET
		case unix.AF_BLUETOOTH:
			kind, protocol = unix.SOCK_RAW, 1
		}
		if fd, err := unix.Socket(domain, kind, protocol); err != nil {
			list = append(list, name)
		} else {
			unix.Close(fd)
		}
	}
	for name, protocol := range map[string]int{"xfrm": unix.NETLINK_XFRM, "netfilter": unix.NETLINK_NETFILTER} {
		if fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, protocol); err != nil {
			list = append(list, name)
		} else {
			unix.Close(fd)
		}
	}
	none := ^uintptr(0)
	for name, call := range map[string][3]uintptr{
		"io_uring": {unix.SYS_IO_URING_SETUP, 1, none}, "perf events": {unix.SYS_PERF_EVENT_OPEN, none, 0},
		"bpf": {unix.SYS_BPF, none, none}, "userfaultfd": {unix.SYS_USERFAULTFD, 1, 0},
		"keyrings: add": {unix.SYS_ADD_KEY, none, none}, "keyrings: ask": {unix.SYS_REQUEST_KEY, none, none}, "keyrings: read": {unix.SYS_KEYCTL, 0, none},
	} {
		fd, _, err := unix.Syscall(call[0], call[1], call[2], 0)
		switch err {
		case 0:
			unix.Close(int(fd))
		case unix.EPERM, unix.ENOSYS:
			list = append(list, name)
		}
	}
	t.Logf("not to be planted on this kernel: %q", list)
	return list
}

// PROOF-01: each hole that is planted turns exactly its line red.
func TestThePlantedHolesAreFound(t *testing.T) {
	home := trial.Home(t, "cb-hole-")
	made, err := attack.Make(home)
	must.Do(t, err)
	t.Cleanup(made.Close)
	dir := t.TempDir()
	must.Do(t, os.WriteFile(dir+"/file", nil, 0o600), os.Chmod(dir, 0o755))
	must.Do(t, unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC), // what the test itself was given
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1})) // as claudebox does
	if red := attackIn(t, newBox(made.Targets, dir)); len(red) > 0 {
		t.Fatalf("without a hole these are red: %q", red)
	}
	missing, found := lacking(t), 0
	for _, name := range slices.Sorted(maps.Keys(holes)) {
		if slices.Contains(missing, name) {
			continue
		}
		b := newBox(made.Targets, dir)
		holes[name](b, dir)
		if red := attackIn(t, b); !slices.Equal(red, []string{name}) {
			t.Errorf("hole %q turns these red: %q", name, red)
			continue
		}
		found++
	}
	if found < 40 {
		t.Errorf("%d holes were found, want 40", found)
	}
}

func newBox(t attack.Targets, dir string) *box {
	b := &box{Targets: t, words: map[string][]string{
		"a":        {"--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--clearenv"},
		"pid":      {"--unshare-pid"},
		"net":      {"--unshare-net"},
		"b dev":    {"--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/run", "--ro-bind", os.Getenv("CLAUDEBOX_BIN"), attack.Place},
		"proc":     {"--proc", "/proc"},
		"etc":      {"--tmpfs", "/etc", "--remount-ro", "/etc"},
		"store":    {"--tmpfs", "/nix/store", "--remount-ro", "/nix/store"},
		"b home":   {"--tmpfs", filepath.Dir(t.Project), "--bind", t.Project, t.Project},
		"y beside": {"--remount-ro", filepath.Dir(t.Project)},
		"z root":   {"--remount-ro", "/"},
	}}
	for _, name := range []string{".envrc", ".mcp.json"} {
		b.words["project "+name] = []string{"--ro-bind", filepath.Join(t.Project, name), filepath.Join(t.Project, name)}
	}
	b.words["project .git"] = []string{"--bind", dir, filepath.Join(t.Project, ".git")} // one of the agent's own
	b.words["project .env"] = []string{"--ro-bind", dir + "/file", filepath.Join(t.Project, ".env")}
	return b
}

// attackIn runs the attacker in a box and gives the lines that are red.
func attackIn(t *testing.T, b *box) (red []string) {
	t.Helper()
	var words []string
	for _, key := range slices.SortedFunc(maps.Keys(b.words), func(a, c string) int {
		return strings.Compare(strings.Replace(a, "hole", "x", 1), strings.Replace(c, "hole", "x", 1))
	}) {
		words = append(words, b.words[key]...)
	}
	targets, err := json.Marshal(b.Targets)
	must.Do(t, err)
	args, filter := piped(t, []byte(strings.Join(words, "\x00")+"\x00")), piped(t, b.filter())
	call := append([]string{"--args", "3", "--seccomp", "4"}, b.cmdline...)
	cmd := exec.Command("bwrap", append(call, "--", attack.Place, string(targets))...)
	cmd.Env, cmd.ExtraFiles, cmd.Stdin = append([]string{}, b.env...), []*os.File{args, filter}, nil
	if b.stdin != nil {
		cmd.Stdin = b.stdin
	}
	if b.extra != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, b.extra)
	}
	status, stdout, stderr := trial.Run(t, cmd)
	var loot attack.Loot
	if err := json.Unmarshal([]byte(stdout), &loot); err != nil || status != 0 {
		t.Fatalf("status %d, %v\n%s\n%s", status, err, stdout, stderr)
	}
	for _, f := range attack.Judge(loot, "none") {
		if f.Level == doctor.Failed {
			red = append(red, f.Name)
		}
	}
	return red
}

func piped(t *testing.T, content []byte) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	must.Do(t, err)
	go func() { _, _ = w.Write(content); w.Close() }()
	t.Cleanup(func() { r.Close() })
	return r
}

// denied are the calls that the filter of a box without a hole refuses.
var denied = []uint32{
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_OPEN_TREE, unix.SYS_IO_URING_SETUP, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_BPF, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_PRLIMIT64,
}

// filter is a seccomp filter: a program that looks at the call's number, and
// at the arguments of ioctl and socket.
func (b *box) filter() []byte {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		answer = unix.BPF_RET | unix.BPF_K
		allow  = 0x7fff0000
		refuse = 0x00050000 // with the error in the low bits
	)
	argument := func(n uint32) uint32 { return 16 + 8*n }
	var p []unix.SockFilter
	op := func(code uint16, k uint32, jt, jf uint8) {
		p = append(p, unix.SockFilter{Code: code, K: k, Jt: jt, Jf: jf})
	}
	op(load, 0, 0, 0)
	for _, number := range denied {
		if !slices.Contains(b.allow, number) {
			op(equal, number, 0, 1)
			op(answer, refuse|uint32(unix.EPERM), 0, 0)
		}
	}
	for _, request := range []uint32{unix.TIOCSTI, 0x541c} {
		if slices.Contains(b.ioctls, request) {
			// what remains refused of it is the other spelling
			if request == unix.TIOCSTI {
				b.refuseIoctl(op, load, equal, answer, refuse, request, 1)
			}
			continue
		}
		if b.high && request == unix.TIOCSTI {
			b.refuseIoctl(op, load, equal, answer, refuse, request, 0)
			continue
		}
		op(equal, unix.SYS_IOCTL, 0, 4)
		op(load, argument(1), 0, 0)
		op(equal, request, 0, 1)
		op(answer, refuse|uint32(unix.EPERM), 0, 0)
		op(load, 0, 0, 0)
	}
	op(equal, unix.SYS_SOCKET, 1, 0)
	op(answer, allow, 0, 0)
	op(load, argument(0), 0, 0)
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		usual := append([]uint32{0, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP}, b.protocols...)
		op(equal, family, 0, uint8(2+2*len(usual)))
		op(load, argument(2), 0, 0)
		for _, protocol := range usual {
			op(equal, protocol, 0, 1)
			op(answer, allow, 0, 0)
		}
		op(answer, refuse|uint32(unix.EPROTONOSUPPORT), 0, 0)
	}
	for _, family := range append([]uint32{unix.AF_UNIX}, b.sockets...) {
		op(equal, family, 0, 1)
		op(answer, allow, 0, 0)
	}
	op(equal, unix.AF_NETLINK, 1, 0)
	op(answer, refuse|uint32(unix.EAFNOSUPPORT), 0, 0)
	op(load, argument(2), 0, 0)
	for _, protocol := range append([]uint32{unix.NETLINK_ROUTE}, b.netlink...) {
		op(equal, protocol, 0, 1)
		op(answer, allow, 0, 0)
	}
	op(answer, refuse|uint32(unix.EPROTONOSUPPORT), 0, 0)
	out := []byte{}
	for _, i := range p {
		out = binary.LittleEndian.AppendUint16(out, i.Code)
		out = append(out, i.Jt, i.Jf)
		out = binary.LittleEndian.AppendUint32(out, i.K)
	}
	return out
}

// refuseIoctl refuses a request whose upper 32 bits are these, and lets others
// through.
func (b *box) refuseIoctl(op func(code uint16, k uint32, jt, jf uint8), load, equal, answer uint16, refuse, request, upper uint32) {
	op(equal, unix.SYS_IOCTL, 0, 6)
	op(load, 16+8, 0, 0)
	op(equal, request, 0, 3)
	op(load, 16+8+4, 0, 0)
	op(equal, upper, 0, 1)
	op(answer, refuse|uint32(unix.EPERM), 0, 0)
	op(load, 0, 0, 0)
}
