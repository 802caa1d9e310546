// Package aside asks a program of claudebox's own something that few sessions
// need to know: the libraries that know it are linked there, and no other start
// pays for them.
package aside

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// reply is what the program says.
type reply struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"` // why there is no answer
}

// Ask runs a program, called with one word and without an environment, gives it a
// question, and reads its answer. Both are JSON and go through pipes. The program
// hears nothing of a Ctrl-C, and ends with the context or with its caller.
func Ask(ctx context.Context, program, word string, question, answer any) error {
	cmd := exec.CommandContext(ctx, program)
	cmd.Args, cmd.Env, cmd.Dir = []string{word}, []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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
	case err != nil:
		return errors.Join(err, failed)
	}
	return json.Unmarshal(said.Answer, answer)
}

// Answer is the program's part: it answers one question. It ends the process when
// who asked is gone.
func Answer[Question, Result any](do func(Question) (Result, error)) error {
	var q Question
	if err := json.NewDecoder(os.Stdin).Decode(&q); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the end: the question's newline may still come
		os.Exit(1)
	}()
	var said reply
	result, err := do(q)
	if err == nil {
		said.Answer, err = json.Marshal(result)
	}
	if err != nil {
		said = reply{Error: err.Error()}
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}
