// Package aside asks another program of claudebox's own a question that few sessions have. The libraries that the
// answer takes are linked into that program, so no other start pays for them.
package aside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"claudebox/internal/linux/capture"
)

// reply is the program's answer, as sent.
type reply struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"` // why there is no answer
}

// Ask runs a program with word as its argv[0], no arguments and no environment, sends it question and reads its
// answer, both as JSON over pipes. A Ctrl-C does not reach the program. It ends with ctx or with the process that
// asks.
func Ask(ctx context.Context, program, word string, question, answer any) error {
	cmd := exec.CommandContext(ctx, program)
	cmd.Args, cmd.Env, cmd.Dir = []string{word}, []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr := &capture.Head{Most: 4 << 10}
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var said reply
	if err = json.NewEncoder(in).Encode(question); err == nil {
		err = json.NewDecoder(out).Decode(&said)
	}
	in.Close()
	failed := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case said.Error != "":
		return errors.New(said.Error)
	case err != nil && failed != nil:
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), failed, bytes.TrimSpace(stderr.Bytes()))
	case err != nil:
		return err
	}
	return json.Unmarshal(said.Answer, answer)
}

// Answer is called in the started program: it reads one question, and writes the answer of work. It ends the process
// if the one that asked has ended.
func Answer[Question, Result any](work func(Question) (Result, error)) error {
	var q Question
	if err := json.NewDecoder(os.Stdin).Decode(&q); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the end: the question's newline may still come
		os.Exit(1)
	}()
	var said reply
	result, err := work(q)
	if err == nil {
		said.Answer, err = json.Marshal(result)
	}
	if err != nil {
		said = reply{Error: err.Error()}
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}
