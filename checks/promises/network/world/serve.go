package world

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// answerHTTP tells everyone the name, until the listener is closed.
func answerHTTP(l net.Listener, name string) {
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, name) }),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that hang up are part of the tests
	}
	_ = server.Serve(l)
}

func answerDatagrams(c net.PacketConn, name string) {
	buffer := make([]byte, 2048)
	for {
		_, from, err := c.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = c.WriteTo([]byte(name+"\n"), from)
	}
}
