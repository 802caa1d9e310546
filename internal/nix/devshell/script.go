package devshell

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/smallfile"
)

// shell is what Nix says of a dev shell: the JSON that `nix print-dev-env` builds.
type shell struct {
	Functions map[string]string   `json:"bashFunctions"`
	Variables map[string]variable `json:"variables"`
}

// variable is one of bash.
type variable struct {
	Type  string          `json:"type"` // exported, var, array, associative, unknown
	Value json.RawMessage `json:"value"`
}

// mostShell bounds the JSON, in bytes: the environment of a big Rust or Haskell shell takes some hundred kilobytes.
const mostShell = 32 << 20

// readShell reads the file that an evaluation has made.
func readShell(file string) (s shell, err error) {
	text, err := smallfile.Read(file, mostShell)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

// exported are the variables that programs get.
func (s shell) exported() environment {
	env := environment{}
	for name, v := range s.Variables {
		var value string
		if v.Type == "exported" && json.Unmarshal(v.Value, &value) == nil {
			env[name] = value
		}
	}
	return env
}

// hook is the script that a shell runs when it begins.
func (s shell) hook() string {
	var text string
	_ = json.Unmarshal(s.Variables["shellHook"].Value, &text)
	return text
}

// definitions is a bash script that has the variables, arrays and functions of the shell, but for those that bash
// itself or the launch has. Values come quoted, and names are checked: nothing is run by it.
func (s shell) definitions(keep func(name string) bool) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Variables)) {
		v := s.Variables[name]
		if !diag.IsVariable(name) || keep(name) {
			continue
		}
		var text string
		var list []string
		var table map[string]string
		switch {
		case v.Type == "exported" && json.Unmarshal(v.Value, &text) == nil:
			fmt.Fprintf(&b, "export %s=%s\n", name, diag.Quote(text))
		case v.Type == "var" && json.Unmarshal(v.Value, &text) == nil:
			fmt.Fprintf(&b, "%s=%s\n", name, diag.Quote(text))
		case v.Type == "array" && json.Unmarshal(v.Value, &list) == nil:
			fmt.Fprintf(&b, "declare -a %s=(", name)
			for _, item := range list {
				b.WriteString(diag.Quote(item) + " ")
			}
			b.WriteString(")\n")
		case v.Type == "associative" && json.Unmarshal(v.Value, &table) == nil:
			fmt.Fprintf(&b, "declare -A %s=(", name)
			for _, key := range slices.Sorted(maps.Keys(table)) {
				fmt.Fprintf(&b, "[%s]=%s ", diag.Quote(key), diag.Quote(table[key]))
			}
			b.WriteString(")\n")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Functions)) {
		if !strings.ContainsAny(name, " \t\n;&|()<>$`\"'\\{}") {
			fmt.Fprintf(&b, "%s ()\n{\n%s\n}\n", name, s.Functions[name])
		}
	}
	return b.String()
}

// forTyping is the script that a bash begins with in which somebody types: what is no variable of its environment, and
// the shell's functions.
func (s shell) forTyping(r Request, env environment) string {
	return "[ ! -e ~/.bashrc ] || . ~/.bashrc\n" + s.definitions(kept(r, env))
}
