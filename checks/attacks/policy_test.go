//go:build lab

package attacks_test

import (
	"net"
	"strconv"
	"testing"
)

// P1: the default profile reaches every port of this machine, so a project that
// asks for one asks for no more. Under `--network inet` it does.
func TestAProjectsProfileAsksForAPortThatAFlagTookAway(t *testing.T) {
	w := newWorld(t)
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	go func() {
		for {
			c, err := service.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(canary + "\n"))
			c.Close()
		}
	}()
	port := strconv.Itoa(service.Addr().(*net.TCPAddr).Port)
	w.write("project/.claudebox.yaml", "ports: {out: ["+port+"]}\n")
	script := "exec 3<>/dev/tcp/127.0.0.1/" + port + " && cat <&3; true"
	for _, tier := range []string{"inet", "none"} {
		w.wantNoCanary(w.attack(script, "--network", tier))
	}
	if got := w.claudebox("allow", "--network", "inet", "--yes"); got.status != 0 {
		t.Fatal(got)
	}
	if got := w.attack(script, "--network", "inet"); got.stdout != canary+"\n" {
		t.Errorf("what the user allowed is not there\n%s", got)
	}
}

// What a profile's mount covers in a folder of the host must not show in one
// that a flag mounts because the project's profile leaves the cover out.
func TestAProjectsProfileLeavesOutAMountThatCoversAFlagsMount(t *testing.T) {
	w := newWorld(t)
	w.folder("nothing")
	flags := append(w.profile("mounts: [{host: ~/nothing, sandbox: /data/documents}]"), "--mount-ro", w.home+"/kept:/data")
	w.write("kept/documents/letter", canary)
	w.write("project/.claudebox.yaml", "mounts: !replace []\n")
	w.wantNoCanary(w.attack("cat /data/documents/letter", flags...))
}
