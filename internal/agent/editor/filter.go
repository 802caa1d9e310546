package editor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"claudebox/internal/diag"
)

// longest is how long a message may be, in bytes.
const longest = 64 << 20

// verdict is what becomes of a message of an agent's.
type verdict struct {
	message []byte // it goes on as this; nil: it does not
	reply   []byte // the agent is answered this; nil: nothing
	why     string // the reason, for the user; empty: that is of no interest
}

// noMessage is what cannot be read.
var noMessage = verdict{why: "it is no message"}

// tooLong is why a message does not go on.
const tooLong = "it is longer than 64 MiB"

// change makes of an editor's message what reaches the agent. It calls tell with what it leaves out.
type change func(line []byte, tell func(string)) []byte

// fromAgent copies messages of an agent's to its editor, as judge says, until the first error; the end of in is none.
// back takes answers to the agent. It calls refused with each reason.
func fromAgent(in io.Reader, out, back io.Writer, judge func(line []byte) verdict, refused func(why string)) error {
	return eachLine(in, func(line []byte) error {
		v := noMessage
		if line == nil {
			v.why = tooLong
		} else if utf8.Valid(line) {
			v = judge(line)
		}
		if v.why != "" {
			refused(v.why)
		}
		for _, to := range []struct {
			stream io.Writer
			text   []byte
		}{{out, v.message}, {back, v.reply}} {
			if to.text == nil {
				continue
			}
			if _, err := to.stream.Write(append(to.text, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
}

// fromEditor copies messages of an editor's to its agent, as made makes them, until the first error; the end of in is
// none. It calls tell with what does not reach the agent.
func fromEditor(in io.Reader, out io.Writer, made change, tell func(string)) error {
	return eachLine(in, func(line []byte) error {
		if line == nil {
			tell("a message of the editor to the agent was not passed on: " + tooLong)
			return nil
		}
		_, err := out.Write(append(made(line, tell), '\n'))
		return err
	})
}

// eachLine calls do for each line that is not blank, which counts until the next one is read. In the place of one that
// is too long it is nil: nobody ends what reads by a line without an end.
func eachLine(in io.Reader, do func(line []byte) error) error {
	from, line, long := bufio.NewReaderSize(in, 64<<10), []byte{}, false
	for {
		part, err := from.ReadSlice('\n')
		if long = long || len(line)+len(part) > longest; !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if line = bytes.TrimSpace(line); long {
			line = nil
		}
		if long || len(line) > 0 {
			if err := do(line); err != nil {
				return err
			}
		}
		if line, long = line[:0], false; errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// readObject reads an object. A name that stands there twice is an error: two readers may take each another one.
func readObject(text []byte) (map[string]json.RawMessage, error) {
	from, object := json.NewDecoder(bytes.NewReader(text)), map[string]json.RawMessage{}
	if open, err := from.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.Join(errors.New("it is no object"), err)
	}
	for from.More() {
		name, err := from.Token()
		if err != nil {
			return nil, err
		}
		key, is := name.(string)
		var value json.RawMessage
		if err := from.Decode(&value); err != nil || !is {
			return nil, errors.Join(errors.New("it is no object"), err)
		}
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("%q stands there twice", key)
		}
		object[key] = value
	}
	if _, err := from.Token(); err != nil {
		return nil, err
	}
	if _, err := from.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows")
	}
	return object, nil
}

// outside is why a message does not go on that asks for a thing by its name.
func outside(name string) string {
	return "it asks for " + diag.Name(name) + ", which an editor does outside"
}

// ordered is why a question in which the user is to open an address does not go on. One of the web is there to be
// looked at; by others an agent's file is opened, or a program outside gets an order. Empty: there is none of these.
func ordered(question any) (why string) {
	switch q := question.(type) {
	case map[string]any:
		for name, value := range q {
			at, is := value.(string)
			scheme, _, _ := strings.Cut(strings.ToLower(at), "://")
			if is && strings.EqualFold(name, "url") && scheme != "https" && scheme != "http" {
				return "it has " + diag.Name(at) + " opened, which is no address of the web"
			}
			if why = ordered(value); why != "" {
				return why
			}
		}
	case []any:
		for _, value := range q {
			if why = ordered(value); why != "" {
				return why
			}
		}
	}
	return ""
}
