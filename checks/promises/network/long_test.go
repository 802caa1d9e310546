//go:build lab

package network_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// What a host sends fast arrives as it was sent: over IPv4 several segments come as one packet.
func TestALongDownloadArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	const port = 9003
	content := make([]byte, 64<<20)
	rand.NewChaCha8([32]byte{}).Read(content)
	want := fmt.Sprintf("%d %x\n", len(content), sha256.Sum256(content))
	for name, layout := range map[string]world.Layout{"tun": world.Systemd, "no tun": withoutTun()} {
		w := world.New(t)
		for _, l := range w.ListenOutside(t, fmt.Sprint(port), target.Internet, target.Internet6) {
			go serveAll(l, content)
		}
		for _, address := range []string{target.Internet, target.Internet6} {
			t.Run(name+" "+address, func(t *testing.T) {
				t.Parallel()
				u := newUser(t, w)
				u.layout = layout
				wantEqual(t, succeed(t, u.probe(t, "inet", "digest", target.At(address, port))), want)
			})
		}
	}
}

// serveAll sends the content to everybody who connects.
func serveAll(l net.Listener, content []byte) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_, _ = bytes.NewReader(content).WriteTo(c)
		}()
	}
}
