package main

import (
	"syscall"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
)

// Values are spelt out here on purpose: a wrong constant in the table must
// not be right in its test.
const (
	eperm           = syscall.Errno(1)
	enosys          = syscall.Errno(38)
	eprotonosupport = syscall.Errno(93)
	eafnosupport    = syscall.Errno(97)
)

func TestWhatTheAgentMayAndMayNotCall(t *testing.T) {
	const high = 0xdeadbeef << 32
	allowed := seccomp.ActionAllow
	for name, tc := range map[string]struct {
		call string
		args [6]uint64
		want seccomp.Action
	}{
		"typing into the terminal (CVE-2017-5226)":                    {"ioctl", [6]uint64{0, 0x5412}, fails(eperm)},
		"typing into the terminal with high bits (CVE-2019-10063)":    {"ioctl", [6]uint64{0, high | 0x5412}, fails(eperm)},
		"pasting on a console (CVE-2023-28100)":                       {"ioctl", [6]uint64{0, 0x541c}, fails(eperm)},
		"pasting on a console with high bits":                         {"ioctl", [6]uint64{0, high | 0x541c}, fails(eperm)},
		"another driver behind the terminal (CVE-2017-2636)":          {"ioctl", [6]uint64{0, high | 0x5423}, fails(eperm)},
		"asking for the size of the window":                           {"ioctl", [6]uint64{0, 0x5413}, allowed},
		"raw mode of the terminal":                                    {"ioctl", [6]uint64{0, 0x5402}, allowed},
		"killing the group that claudebox is in":                      {"kill", [6]uint64{0, 9}, fails(eperm)},
		"killing that group with high bits":                           {"kill", [6]uint64{high, high | 9}, fails(eperm)},
		"halting the group that claudebox is in":                      {"kill", [6]uint64{0, 19}, fails(eperm)},
		"a fault for that group":                                      {"kill", [6]uint64{0, 11}, fails(eperm)},
		"a real-time signal for that group":                           {"kill", [6]uint64{0, 34}, fails(eperm)},
		"a signal by the terminal's keys":                             {"fcntl", [6]uint64{0, high | 4, high | 0x2800}, fails(eperm)},
		"a signal by the terminal's keys, in the older way":           {"ioctl", [6]uint64{0, high | 0x5452}, fails(0)},
		"waiting for nothing":                                         {"fcntl", [6]uint64{0, 4, 0x800}, allowed},
		"another signal for what a program itself asked for":          {"fcntl", [6]uint64{0, 10, 9}, allowed},
		"ending one's own group":                                      {"kill", [6]uint64{0, 15}, allowed},
		"stopping one's own group, as for Ctrl-Z":                     {"kill", [6]uint64{0, 20}, allowed},
		"killing a process":                                           {"kill", [6]uint64{7, 9}, allowed},
		"killing a group by its number":                               {"kill", [6]uint64{0xfffffffffffffff9, 9}, allowed},
		"slowing that group down":                                     {"setpriority", [6]uint64{1, 0, 19}, fails(eperm)},
		"slowing oneself down":                                        {"setpriority", [6]uint64{0, 0, 19}, allowed},
		"slowing that group's reading down":                           {"ioprio_set", [6]uint64{2, 0, 3 << 13}, fails(eperm)},
		"an AF_VSOCK socket":                                          {"socket", [6]uint64{40, 1}, fails(eafnosupport)},
		"an AF_PACKET socket":                                         {"socket", [6]uint64{17, 3}, fails(eafnosupport)},
		"an AF_ALG socket":                                            {"socket", [6]uint64{38, 5}, fails(eafnosupport)},
		"an AF_BLUETOOTH socket":                                      {"socket", [6]uint64{31, 1}, fails(eafnosupport)},
		"an AF_VSOCK socket with high bits":                           {"socket", [6]uint64{high | 40, 1}, fails(eafnosupport)},
		"AF_PACKET by way of SOCK_PACKET":                             {"socket", [6]uint64{2, 10}, fails(eafnosupport)},
		"AF_PACKET by way of SOCK_PACKET, with flags":                 {"socket", [6]uint64{2, 10 | 0x800 | 0x80000}, fails(eafnosupport)},
		"DCCP by its type alone":                                      {"socket", [6]uint64{2, 6 | 0x80000}, fails(eafnosupport)},
		"DCCP over IPv6 by its type alone":                            {"socket", [6]uint64{10, 6}, fails(eafnosupport)},
		"SCTP by its type alone":                                      {"socket", [6]uint64{2, high | 5}, fails(eafnosupport)},
		"a UNIX socket of whole messages":                             {"socket", [6]uint64{1, 5}, allowed},
		"raw IPv6, which needs a right":                               {"socket", [6]uint64{10, 3, 58}, allowed},
		"an AF_TIPC pair":                                             {"socketpair", [6]uint64{30, 1}, fails(eafnosupport)},
		"a UNIX pair":                                                 {"socketpair", [6]uint64{1, 1 | 0x80000}, allowed},
		"a UNIX socket":                                               {"socket", [6]uint64{1, 1}, allowed},
		"TCP over IPv4, close-on-exec and non-blocking":               {"socket", [6]uint64{2, 1 | 0x800 | 0x80000}, allowed},
		"UDP over IPv6":                                               {"socket", [6]uint64{10, 2}, allowed},
		"netlink for routes":                                          {"socket", [6]uint64{16, 3 | 0x80000, 0}, allowed},
		"netlink for the packet filter":                               {"socket", [6]uint64{16, 3, 12}, fails(eprotonosupport)},
		"netlink for the host's sockets":                              {"socket", [6]uint64{16, 3, 4}, fails(eprotonosupport)},
		"a ring that makes sockets past the filter":                   {"io_uring_setup", [6]uint64{8}, fails(eperm)},
		"a user namespace by unshare":                                 {"unshare", [6]uint64{0x10000000}, fails(eperm)},
		"a user namespace by unshare among other flags":               {"unshare", [6]uint64{0x10000000 | 0x200}, fails(eperm)},
		"a time namespace by unshare":                                 {"unshare", [6]uint64{0x80}, fails(eperm)},
		"a working folder of its own, as Nix's download thread makes": {"unshare", [6]uint64{0x200}, allowed},
		"a user namespace by clone":                                   {"clone", [6]uint64{0x10000000 | 17}, fails(eperm)},
		"a mount namespace by clone":                                  {"clone", [6]uint64{0x20000 | 17}, fails(eperm)},
		"fork":                                                        {"clone", [6]uint64{0x1200000 | 17}, allowed},
		"a thread":                                                    {"clone", [6]uint64{0x3d0f00}, allowed},
		"clone3, whose flags cannot be seen (CVE-2021-41133)":         {"clone3", [6]uint64{0x7fff0000, 88}, fails(enosys)},
		"the namespace of another process":                            {"setns", [6]uint64{3, 0x10000000}, fails(eperm)},
		"mount":                                                       {"mount", [6]uint64{}, fails(eperm)},
		"umount":                                                      {"umount2", [6]uint64{}, fails(eperm)},
		"the new way to mount (CVE-2021-41133)":                       {"fsopen", [6]uint64{}, fails(enosys)},
		"a copy of a mount":                                           {"open_tree", [6]uint64{}, fails(enosys)},
		"a copy of a mount with attributes":                           {"open_tree_attr", [6]uint64{}, fails(enosys)},
		"making a read-only mount writable":                           {"mount_setattr", [6]uint64{}, fails(enosys)},
		"another root":                                                {"pivot_root", [6]uint64{}, fails(eperm)},
		"opening a file by number":                                    {"open_by_handle_at", [6]uint64{}, fails(eperm)},
		"reading the keyring":                                         {"keyctl", [6]uint64{11}, fails(eperm)},
		"asking for a key":                                            {"request_key", [6]uint64{}, fails(eperm)},
		"adding a key":                                                {"add_key", [6]uint64{}, fails(eperm)},
		"reading the host's kernel log":                               {"syslog", [6]uint64{3}, fails(eperm)},
		"loading a BPF program":                                       {"bpf", [6]uint64{5}, fails(eperm)},
		"handling page faults":                                        {"userfaultfd", [6]uint64{}, fails(eperm)},
		"counting the kernel's events":                                {"perf_event_open", [6]uint64{}, fails(eperm)},
		"another kernel":                                              {"kexec_load", [6]uint64{}, fails(eperm)},
		"a kernel module":                                             {"finit_module", [6]uint64{}, fails(eperm)},
		"turning address randomisation off":                           {"personality", [6]uint64{0x40000}, fails(eperm)},
		"asking for the personality":                                  {"personality", [6]uint64{0xffffffff}, allowed},
		"plain Linux":                                                 {"personality", [6]uint64{0}, allowed},
		"linux32":                                                     {"personality", [6]uint64{8}, allowed},
		"debugging":                                                   {"ptrace", [6]uint64{16}, allowed},
		"a memory file":                                               {"memfd_create", [6]uint64{}, allowed},
		"a filter of its own":                                         {"seccomp", [6]uint64{1}, allowed},
		"a stricter Landlock":                                         {"landlock_restrict_self", [6]uint64{}, allowed},
	} {
		t.Run(name, func(t *testing.T) {
			for _, goarch := range architectures {
				c := call{number(t, goarch, tc.call), native[goarch].ID, tc.args}
				if got := newMachine(t, goarch).decide(t, c); got != tc.want {
					t.Errorf("%s: verdict %#x, want %#x", goarch, got, tc.want)
				}
			}
		})
	}
}

func TestForeignCallsPassNoRule(t *testing.T) {
	kill := seccomp.ActionKillProcess
	x32Ioctl := uint32(0x40000000 | 514)
	for name, tc := range map[string]struct {
		goarch string
		call   call
		want   seccomp.Action
	}{
		"int 0x80 on amd64 is killed, harmless or not":   {"amd64", call{number: 20, arch: arch.I386.ID}, kill},
		"int 0x80 for an allowed number is killed too":   {"amd64", call{number: 1, arch: arch.I386.ID}, kill},
		"32-bit ARM code on arm64 is killed":             {"arm64", call{number: 54, arch: arch.ARM.ID}, kill},
		"an architecture nobody heard of is killed":      {"amd64", call{number: 0, arch: 0xdead}, kill},
		"x32's ioctl is unknown":                         {"amd64", call{number: x32Ioctl, arch: arch.X86_64.ID}, fails(enosys)},
		"x32's number without its bit is unknown":        {"amd64", call{number: 514, arch: arch.X86_64.ID}, fails(enosys)},
		"x32's write is unknown":                         {"amd64", call{number: 0x40000001, arch: arch.X86_64.ID}, fails(enosys)},
		"the last x32 number is unknown":                 {"amd64", call{number: 0xfffffffe, arch: arch.X86_64.ID}, fails(enosys)},
		"a call that a debugger cancelled is left alone": {"amd64", call{number: 0xffffffff, arch: arch.X86_64.ID}, seccomp.ActionAllow},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newMachine(t, tc.goarch).decide(t, tc.call); got != tc.want {
				t.Errorf("verdict %#x, want %#x", got, tc.want)
			}
		})
	}
}
