package swap

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"

	"claudebox/checks/kit/must"
)

// BenchmarkDown is a long answer, through the broker and without.
func BenchmarkDown(b *testing.B) {
	w := newWorld(b)
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	w.upstream.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		for range 64 {
			_, _ = out.Write(text)
		}
	})
	direct := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", w.upstream.Listener.Addr().String())
		},
	}}
	for name, client := range map[string]*http.Client{"brokered": w.client("http/1.1"), "direct": direct} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(64 * int64(len(text)))
			for b.Loop() {
				r, err := http.NewRequest("GET", hub+"/echo", nil)
				must.Do(b, err)
				r.Header.Set("Authorization", "Bearer "+w.placeholder("GH_TOKEN"))
				in, err := client.Do(r)
				must.Do(b, err)
				_, _ = io.Copy(io.Discard, in.Body)
				in.Body.Close()
			}
		})
	}
}
