package nixdaemon

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

func TestWhyALocalDaemonEndsIsTold(t *testing.T) {
	program := filepath.Join(t.TempDir(), "nix-daemon")
	script := "#!/bin/sh\necho 'warning: hello' >&2\necho 'error: the database is broken' >&2\nexit 1\n"
	must.Program(t, program, script)
	conn, said, err := startLocal(program)
	must.Do(t, err)
	defer said.Close()
	_, err = attach(t.Context(), t.Context(), "connect", conn, &Options{AnswerTimeout: time.Minute})
	const want = `nix-daemon says "error: the database is broken"`
	if err = withReason(err, said); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
	if err := withReason(err, nil); strings.Count(err.Error(), "says") != 1 {
		t.Error(err)
	}
}
