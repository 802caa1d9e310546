package confine

import (
	"testing"

	"golang.org/x/sys/unix"
)

// What a kernel can take away is taken away, and nothing is asked of it that it does not know.
func TestEachKernelTakesAwayWhatItCan(t *testing.T) {
	const abstract, both = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	for name, tc := range map[string]struct {
		kernel             kernel
		network            bool
		files, net, scopes uint64
	}{
		"Linux 5.13":               {kernel{1, 0, false}, false, 1<<13 - 1, 0, 0},
		"Linux 6.2":                {kernel{3, 0, false}, false, 1<<15 - 1, 0, 0},
		"Linux 6.7":                {kernel{4, 0, false}, false, 1<<15 - 1, tcpRights, 0},
		"Linux 6.12":               {kernel{6, 0, false}, false, 1<<16 - 1, tcpRights, abstract},
		"Linux 6.15":               {kernel{7, 3, false}, false, 1<<16 - 1, tcpRights, both},
		"sockets by their paths":   {kernel{9, 3, false}, false, 1<<17 - 1, tcpRights, both},
		"UDP":                      {kernel{10, 7, true}, false, 1<<17 - 1, tcpRights | udpRights, both},
		"a process of the network": {kernel{10, 7, true}, true, 1<<17 - 1, 0, both},
	} {
		got := tc.kernel.handled(tc.network)
		if got.Handled_access_fs != tc.files || got.Handled_access_net != tc.net || got.Scoped != tc.scopes {
			t.Errorf("%s: %+v", name, got)
		}
	}
	k, err := ask()
	if err != nil {
		t.Skip("NOT RUN: ", err)
	}
	for _, network := range []bool{false, true} {
		ruleset, err := create(k.handled(network))
		if err != nil {
			t.Fatalf("this kernel, %+v: %v", k, err)
		}
		unix.Close(int(ruleset))
	}
	t.Logf("this kernel: %+v", k)
}
