package sign

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"golang.org/x/crypto/ssh/agent"

	"claudebox/internal/secret/sshagent"
)

// Message types (draft-miller-ssh-agent, section 5.1). Only the three requests are parsed. All other requests
// would change keys or the like: they are answered with failure, and not parsed.
const (
	askKeys      = 11
	askSignature = 13
	askExtension = 27
	failure      = 5
)

// maxMessage is the largest message that OpenSSH's agent reads, in bytes.
const maxMessage = 256 << 10

// serve answers the requests on a connection, until it ends.
func serve(conn net.Conn, f *filter) {
	defer conn.Close()
	for {
		message, err := readMessage(conn)
		if errors.Is(err, errRefused) {
			why := fmt.Sprintf("a message that is empty, or has more than %d KiB", maxMessage>>10)
			f.tell(sshagent.Use{Refused: why})
		}
		if err != nil {
			return
		}
		if !slices.Contains([]byte{askKeys, askSignature, askExtension}, message[lengthSize]) {
			if _, err := conn.Write([]byte{0, 0, 0, 1, failure}); err != nil {
				return
			}
			continue
		}
		one := struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(message), conn}
		err = agent.ServeAgent(f, one)
		if err != io.EOF { //nolint:errorlint // ServeAgent returns it unwrapped at the end of message
			return
		}
	}
}

// lengthSize is how many bytes the length before each message has.
const lengthSize = 4

// readMessage reads one message and returns it with its length in front. The message has at least one byte.
func readMessage(from io.Reader) ([]byte, error) {
	var length [lengthSize]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n == 0 || n > maxMessage {
		return nil, errRefused
	}
	message := make([]byte, lengthSize+n)
	copy(message, length[:])
	_, err := io.ReadFull(from, message[lengthSize:])
	return message, err
}
