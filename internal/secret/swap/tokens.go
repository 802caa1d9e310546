package swap

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"claudebox/internal/secret/broker"
)

// RequestTokens sends a request to the token endpoint from this host, and returns at most 1 MiB of the answer.
func RequestTokens(p broker.TokenRequest) (broker.TokenAnswer, error) {
	ctx := context.Background() // the process is killed when nobody waits for it any more
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.Address, bytes.NewReader(p.Body))
	if err != nil {
		return broker.TokenAnswer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", p.Agent)
	in, err := NewTransport(p.Roots, NewOutward(p.Proxies, byPeer).Dial).RoundTrip(r)
	if err != nil {
		return broker.TokenAnswer{}, err
	}
	defer in.Body.Close()
	const most = 1 << 20
	answer, err := io.ReadAll(io.LimitReader(in.Body, most))
	return broker.TokenAnswer{Status: in.StatusCode, Body: answer}, err
}
