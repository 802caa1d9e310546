// Package record writes what happens in a session to a file, for --record.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/leak"
	"claudebox/internal/session/live"
	"claudebox/internal/session/logfile"
	"claudebox/internal/workspace/aftermath"
)

// Recorder writes what happens in a session, a line of JSON for each. A nil one writes nothing.
type Recorder struct {
	name    string
	file    *os.File
	secrets []string // values that are not written

	mu     sync.Mutex
	size   int // in bytes
	failed error
	ended  chan struct{}
	both   sync.WaitGroup
}

// recorded is one line: an event, or a program that ran inside.
type recorded struct {
	live.Event
	Words []string `json:"words,omitempty"` // the first ones of the program's command line
}

const (
	program live.Kind = "program" // one was seen to run inside
	changed live.Kind = "changed" // a file, by the report at the end

	// programsEvery is how often the processes inside are looked at. A program that ends sooner may not be seen: the
	// kernel tells an ordinary user of no program that begins.
	programsEvery = 50 * time.Millisecond
	mostRecord    = 64 << 20 // bytes
	firstWords    = 8
	longestWord   = 200 // bytes
	longestLine   = 16 << 10
)

// Open opens the file of --record; an empty name is none. Secrets that the launch lets in are not written.
func Open(name, project string, l launch.Launch) (*Recorder, error) {
	if name == "" {
		return nil, nil
	}
	at, err := logfile.Path("record", name, project)
	if err != nil {
		return nil, err
	}
	c := &Recorder{name: name}
	if c.file, err = logfile.Open("record", at); err != nil {
		return nil, err
	}
	for _, v := range l.Env {
		if v.Value != "" && v.Masked() != v.Value {
			c.secrets = append(c.secrets, v.Value)
		}
	}
	return c, nil
}

// Begin records what happens from now on. init is process 1 inside.
func (c *Recorder) Begin(init int, events *live.Events, refresh func()) {
	if c == nil {
		return
	}
	c.ended = make(chan struct{})
	c.both.Go(func() {
		for n := 0; ; {
			for _, e := range events.After(n, refresh) {
				if n = e.N; e.Kind == live.Ended {
					return
				}
				c.write(recorded{Event: e})
			}
		}
	})
	c.both.Go(func() {
		look, known := time.NewTicker(programsEvery), map[int][]byte{}
		defer look.Stop()
		for {
			c.look(init, known)
			select {
			case <-c.ended:
				return
			case <-look.C:
			}
		}
	})
}

// look records the programs inside that are not known yet. known has the command line of each process.
func (c *Recorder) look(init int, known map[int][]byte) {
	all := proctree.All(init)
	for pid := range known {
		if !slices.Contains(all, pid) {
			delete(known, pid)
		}
	}
	for _, pid := range all {
		line, err := commandLine(pid)
		if err != nil || len(line) == 0 || bytes.Equal(line, known[pid]) {
			continue
		}
		known[pid] = line
		words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
		c.write(recorded{Event: live.Event{Time: time.Now(), Kind: program}, Words: c.masked(words)})
	}
}

// commandLine reads the beginning of a process's command line, in whole words, as a part of a secret is not known for
// one. All of it can be megabytes, of each process inside.
func commandLine(pid int) ([]byte, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	line, err := io.ReadAll(io.LimitReader(file, longestLine))
	if end := bytes.LastIndexByte(line, 0); len(line) == longestLine && end > 0 {
		line = line[:end]
	}
	return line, err
}

// masked returns the first words of a command line, without what looks like a secret.
func (c *Recorder) masked(words []string) (list []string) {
	for _, word := range words[:min(len(words), firstWords)] {
		has := func(secret string) bool { return strings.Contains(word, secret) }
		if slices.ContainsFunc(c.secrets, has) || leak.Text(word) != "" {
			word = "***"
		}
		if len(word) > longestWord {
			word = strings.ToValidUTF8(word[:longestWord], "") + "…"
		}
		list = append(list, word)
	}
	return list
}

// write writes a line.
func (c *Recorder) write(line recorded) {
	text, err := json.Marshal(line)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size > mostRecord && line.Kind != live.Ended || c.failed != nil {
		return
	}
	if c.size > mostRecord {
		text = []byte(`{"event":"more","why":"the record has its full size: the rest was left out"}`)
	}
	if err == nil {
		text = append(live.ASCII(text), '\n')
		c.size += len(text)
		_, err = c.file.Write(text)
	}
	c.failed = err
}

// End ends the record after the events, with what the session changed.
func (c *Recorder) End(events *live.Events, reports []aftermath.Report) error {
	if c == nil {
		return nil
	}
	events.End()
	if c.ended != nil {
		close(c.ended)
		c.both.Wait()
	}
	for _, report := range reports {
		for _, change := range report.Changes {
			why := change.Change + ": " + change.Means
			c.write(recorded{Event: live.Event{Time: time.Now(), Kind: changed, What: change.Path, Why: why}})
		}
	}
	c.write(recorded{Event: live.Event{Time: time.Now(), Kind: live.Ended}})
	if err := errors.Join(c.failed, c.file.Close()); err != nil {
		return &diag.Error{
			Op: "write the record " + c.name, Err: err,
			Remedy: "make room there; this session's record is not complete",
		}
	}
	return nil
}
