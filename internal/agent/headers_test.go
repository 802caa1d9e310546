package agent

import (
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is read of this host's programs is what package debug/elf reads, which
// finds the strings another way: by the table of sections.
func TestHeadersSayWhatSectionsSay(t *testing.T) {
	const some = 400
	files, _ := filepath.Glob("/usr/bin/*")
	private, _ := filepath.Glob("/usr/lib/*/*/*.so") // many have a path of their own
	files = append(files[:min(len(files), some)], private[:min(len(private), some)]...)
	compared, withPath := 0, 0
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		defer file.Close()
		want, err := elf.NewFile(file)
		if err != nil || want.Class != elf.ELFCLASS64 {
			continue
		}
		got, err := readHeaders(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		compared++
		for _, known := range []elf.DynTag{elf.DT_NEEDED, elf.DT_RPATH, elf.DT_RUNPATH} {
			texts, _ := want.DynString(known)
			if !slices.Equal(got.dynStrings(known), texts) {
				t.Errorf("%s: %v %q, want %q", name, known, got.dynStrings(known), texts)
			}
			if known != elf.DT_NEEDED && len(texts) > 0 {
				withPath++
			}
		}
		loader := ""
		for _, segment := range want.Progs {
			if segment.Type == elf.PT_INTERP {
				text, _ := io.ReadAll(segment.Open())
				loader = strings.TrimRight(string(text), "\x00")
			}
		}
		if got.interpreter() != loader {
			t.Errorf("%s: loader %q, want %q", name, got.interpreter(), loader)
		}
	}
	t.Logf("%d files, %d with a path", compared, withPath)
	if compared == 0 {
		t.Skip("skipped: no program of 64 bits here")
	}
}
