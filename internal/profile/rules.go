package profile

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/profile/shape"
)

// The rules of single texts. Each holds the form twice: Check decides and
// explains, Pattern is for editors; a fuzzer holds the two together.
var (
	anyLine = shape.Rule{
		Name:  "one line of text",
		Check: checkLine,
	}
	profileName = shape.Rule{
		Name:     "a profile name",
		Pattern:  `^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`,
		Examples: []string{"work"},
		Check:    checkProfileName,
	}
	profileRef = shape.Rule{
		Name:     "the name or file of a profile",
		Pattern:  `^.+$`,
		Examples: []string{"default", "./team.yaml"},
		Check:    checkLine,
	}
	programName = shape.Rule{
		Name:     "the name of a program",
		Pattern:  `^[A-Za-z0-9_][A-Za-z0-9._+-]*$`,
		Examples: []string{"claude"},
		Check:    checkProgramName,
	}
	commandWord = shape.Rule{
		Name:    "a word of a command line",
		Pattern: `^[\s\S]+$`,
		Check:   checkCommandWord,
	}
	envName = shape.Rule{
		Name:     "the name of an environment variable",
		Pattern:  `^[A-Za-z_][A-Za-z0-9_]*$`,
		Examples: []string{"AWS_PROFILE"},
		Check:    checkEnvName,
	}
	headerName = shape.Rule{
		Name:     "the name of a header",
		Pattern:  `^[A-Za-z][A-Za-z0-9-]*$`,
		Examples: []string{"X-Api-Key"},
		Check:    checkHeaderName,
	}
	serverName = shape.Rule{
		Name:     "the name of an MCP server",
		Pattern:  `^[A-Za-z0-9_][A-Za-z0-9._-]*$`,
		Examples: []string{"github"},
		Check:    checkServerName,
	}
	memorySize = shape.Rule{
		Name:     "a size of memory",
		Pattern:  `^[1-9][0-9]{0,5}[KMGT]$`,
		Examples: []string{"8G"},
		Check:    checkMemorySize,
	}
	cpuShare = shape.Rule{
		Name:     "a share of processors in percent",
		Pattern:  `^[1-9][0-9]{0,5}%$`,
		Examples: []string{"400%"},
		Check:    checkCPUShare,
	}
)

func fault(remedy, format string, args ...any) *shape.Fault {
	return &shape.Fault{Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isAlnum(c byte) bool  { return isLetter(c) || isDigit(c) }

// made reports whether text is one byte of first and then bytes of rest.
func made(text string, first, rest func(byte) bool) bool {
	if text == "" || !first(text[0]) {
		return false
	}
	for i := 1; i < len(text); i++ {
		if !rest(text[i]) {
			return false
		}
	}
	return true
}

func isAlnumLow(c byte) bool  { return isAlnum(c) || c == '_' }
func isLetterLow(c byte) bool { return isLetter(c) || c == '_' }
func isNameByte(c byte) bool  { return isAlnum(c) || strings.IndexByte("._+-", c) >= 0 }

// show quotes a text in a message, cut when it is long.
func show(text string) string {
	const most = 60
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strconv.Quote(text)
}

func checkLine(text string) *shape.Fault {
	switch {
	case text == "":
		return fault("write a value, or remove the key", "the text is empty")
	case strings.ContainsFunc(text, isControl):
		return fault("", "%s holds a control character or a line break", show(text))
	}
	return nil
}

// maxName keeps a profile's name fit for a file name and a table.
const maxName = 64

func checkProfileName(text string) *shape.Fault {
	if !made(text, isAlnum, isNameByte) || len(text) > maxName {
		return fault("", "%s is not a profile name; expected up to %d letters, digits, dots, pluses, dashes and "+
			"underscores",
			show(text), maxName)
	}
	return nil
}

func checkProgramName(text string) *shape.Fault {
	switch {
	case strings.ContainsAny(text, "/ "):
		return fault("write agent: {command: [PROGRAM, WORD…]}", "%s is a command, not the name of a program",
			show(text))
	case !made(text, isAlnumLow, isNameByte):
		return fault("", "%s is not the name of a program", show(text))
	}
	return nil
}

func checkCommandWord(text string) *shape.Fault {
	if text == "" {
		return fault("remove the word", "a word of the command is empty")
	}
	return nil
}

func checkEnvName(text string) *shape.Fault {
	name, value, assigned := strings.Cut(text, "=")
	switch {
	case isToken(text):
		return fault("put it into a variable, and name that", "a token stands where the name of a variable is expected")
	case assigned && made(name, isLetterLow, isAlnumLow):
		return fault("name the variable only; constants go under env", "%s=… has a value (%d bytes)", name, len(value))
	case strings.HasPrefix(text, "$"):
		return fault("write it without the $", "%s is not the name of a variable", show(text))
	case !made(text, isLetterLow, isAlnumLow):
		return fault("", "%s is not the name of a variable; expected letters, digits and underscores", show(text))
	}
	if instead := madeInside(text); instead != "" {
		return fault(instead, "%s is made by claudebox and cannot be set", text)
	}
	return nil
}

func checkHeaderName(text string) *shape.Fault {
	if !made(text, isLetter, func(c byte) bool { return isAlnum(c) || c == '-' }) {
		return fault("", "%s is not the name of a header", show(text))
	}
	return nil
}

// minTasks is what a shell with an agent in it takes; maxTasks is what Linux can
// count (PID_MAX_LIMIT).
const minTasks, maxTasks = 32, 4194304

// minMemory, in bytes, is what an agent does not start with less of.
const minMemory = 64 << 20

// units of memory, by their letter, and the one of processors.
var (
	units   = map[byte]int64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}
	percent = map[byte]int64{'%': 1}
)

func checkMemorySize(text string) *shape.Fault {
	switch size := amount(text, units); {
	case size == 0:
		return fault("write a number and K, M, G or T: 8G", "%s is not a size of memory", show(text))
	case size < minMemory:
		return fault("write 64M or more", "%s is too little for an agent to start", show(text))
	}
	return nil
}

func checkCPUShare(text string) *shape.Fault {
	if amount(text, percent) == 0 {
		return fault("write a number and %: 400%", "%s is not a share of processors", show(text))
	}
	return nil
}

// amount is a whole number with a unit, in its smallest unit; 0 when it is none.
func amount(text string, units map[byte]int64) int64 {
	const mostDigits = 6
	last := len(text) - 1
	if last < 1 || last > mostDigits || text[0] == '0' || strings.Trim(text[:last], "0123456789") != "" {
		return 0
	}
	n, err := strconv.ParseInt(text[:last], 10, 64)
	if err != nil {
		return 0
	}
	return n * units[text[last]]
}

func checkServerName(text string) *shape.Fault {
	if !made(text, isAlnumLow, isNameByte) || strings.Contains(text, "+") {
		return fault("", "%s is not the name of an MCP server", show(text))
	}
	return nil
}

// madeFolders are those of the agent's home that claudebox makes in any case.
var madeFolders = []string{
	".bun", ".cache", ".cargo", ".claude", ".claude.json", ".gitconfig", ".gradle", ".m2",
	".npm",
}

// checkHomeFolder judges a folder of the agent's home, below it.
func checkHomeFolder(text string) *shape.Fault {
	if fault := checkLine(text); fault != nil {
		return fault
	}
	switch {
	case text[0] == '~':
		return fault("write it without ~/", "%s: the folder is below home anyway", show(text))
	case strings.HasPrefix(text, "/"):
		return fault("", "%s is absolute; expected a folder below home", show(text))
	case path.Clean(text) != text || text == "." || climbs(text):
		return fault("write "+path.Clean("/" + text)[1:], "%s is not a plain path below home", show(text))
	}
	first, _, _ := strings.Cut(text, "/")
	switch {
	case first[0] != '.':
		return fault("", "%s does not begin with a dot; expected a folder of an agent's own", show(text))
	case slices.Contains(madeFolders, first):
		return fault("", "%s is made by claudebox", show(text))
	}
	return nil
}

// climbs reports whether a path has a segment "..".
func climbs(text string) bool {
	return text == ".." || strings.HasPrefix(text, "../") || strings.HasSuffix(text, "/..") ||
		strings.Contains(text, "/../")
}
