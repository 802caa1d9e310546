package profile

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/profile/shape"
	"claudebox/internal/secret/leak"
)

// Opener finds and reads profiles. The package itself opens no files.
type Opener interface {
	// Open reads the profile that ref names. A ref that contains a slash or
	// ends in .yaml, .yml or .json is a file, any other is a profile's name
	// ("work"). From is the place of the extends entry that has ref; a relative
	// file is relative to the file there. The zero Position means that ref
	// comes from the command line.
	//
	// Open returns the profile's name for messages, its file as a person would
	// write it, and its content, cut after [MaxSize] bytes and one more. It must
	// write the same file in the same way each time: cycles are found by it. If
	// ref does not exist the error is a [NotFoundError]; for the ref "default"
	// the built-in profile is used then.
	Open(ref string, from diag.Position) (name, file string, src []byte, err error)
}

// NotFoundError is returned for a profile that does not exist.
type NotFoundError struct {
	Ref    string   // name or file
	Looked []string // the folders that were searched; empty for a file
	Known  []string // the names of existing profiles, for "did you mean"
	Here   bool     // there is a file of that name, which none is looked for as
}

// Error says which profile is missing, and suggests a known name that is similar.
func (e *NotFoundError) Error() string {
	if near := shape.Nearest(e.Ref, e.Known); near != "" {
		return fmt.Sprintf("no profile %s; did you mean %q?", shape.Quote(e.Ref), near)
	}
	if IsFile(e.Ref) {
		return "there is no file " + shape.Quote(e.Ref)
	}
	return "no profile " + shape.Quote(e.Ref)
}

// Remedy returns what the user can do about it; "" if no folder was searched.
func (e *NotFoundError) Remedy() string {
	if e.Here {
		return "write ./" + e.Ref + " for the file, or see `claudebox profile list`"
	}
	if IsFile(e.Ref) {
		return "name a file that is there, or a profile of `claudebox profile list`"
	}
	if len(e.Looked) == 0 {
		return ""
	}
	return "see `claudebox profile list`, or write " + path.Join(e.Looked[0], e.Ref+".yaml")
}

const (
	// Default is the name of the built-in profile.
	Default = "default"
	// BuiltIn is shown in messages as the file of the built-in profile.
	BuiltIn = "(built in)"
	// MaxSize is the largest profile that is read, in bytes.
	MaxSize = shape.MaxSize
)

//go:embed default.yaml
var defaultYAML []byte

const (
	maxDepth   = 16  // length of a chain of profiles that extend one another
	maxSources = 128 // files that one profile may be merged from

	maxPatterns = 200 // in one list of a project's own profile: each is looked for at each launch
)

// Load reads the profile that ref names and all that it extends. It returns the
// profile and warnings. The error is a [diag.Problems] with all mistakes in the
// files, or a *[diag.Error] if ref itself cannot be read.
func Load(ref string, open Opener) (Profile, diag.Problems, error) {
	return (&loader{open: open}).profile(ref)
}

// LoadOver reads the profile that ref names, as [Load] does, and returns it
// twice: base without the project's own profile, laid with it merged on top. The
// file over is that profile, see [ProjectFileOf], and src is its content. It may
// extend profiles by name only: any file that it named could have been written
// by an agent. Its settings have the origin ".claudebox.yaml:LINE", whatever name
// it gives itself; laid has the name and description of base.
func LoadOver(ref, over string, src []byte, open Opener) (base, laid Profile, warnings diag.Problems, err error) {
	l := loader{open: open}
	if base, warnings, err = l.profile(ref); err != nil {
		return Profile{}, Profile{}, warnings, err
	}
	l.open, l.over = project{over, src, open}, over
	if laid, warnings, err = l.profile(over); err != nil {
		return Profile{}, Profile{}, warnings, err
	}
	laid.Name, laid.Description = base.Name, base.Description
	return base, laid, warnings, nil
}

// project is the [Opener] for reading a project's own profile, whose bytes are src.
type project struct {
	file string
	src  []byte
	Opener
}

func (p project) Open(ref string, from diag.Position) (name, file string, src []byte, err error) {
	switch {
	case ref == p.file && from.File == "":
		return ProjectFileOf(p.file), p.file, p.src, nil
	case from.File == p.file && IsFile(ref):
		return "", "", nil, errors.New(shape.Quote(ref) +
			" is a file, which an agent could write; a project may extend profiles by name only")
	}
	return p.Opener.Open(ref, from)
}

// IsFile reports whether ref is a file rather than the name of a profile.
func IsFile(ref string) bool {
	return strings.Contains(ref, "/") || slices.Contains(Extensions, path.Ext(ref))
}

// Show returns the profile that ref names, merged with all that it extends, as
// one YAML document with defaults filled in. A comment at each value says where
// it comes from. Reading the document gives the same profile, unless mask is
// set: then the values of constants that look secret are replaced.
func Show(ref string, open Opener, mask bool) ([]byte, diag.Problems, error) {
	merged, warnings, err := (&loader{open: open}).load(ref)
	if err != nil {
		return nil, warnings, err
	}
	style := shape.Style{Origin: func(at shape.Place) string { return origin(at).String() }}
	if mask {
		style.Hide = func(name, value string) bool { return leak.Variable(name, value) != "" }
	}
	text, err := style.Document(schema, merged)
	return text, warnings, err
}

// NameOf returns the name for a profile that does not set one: the file's base
// name without extension, or "profile" if that is not a valid profile name.
func NameOf(file string) string {
	name := path.Base(file)
	for _, extension := range Extensions {
		name = strings.TrimSuffix(name, extension)
	}
	if profileName.Check(name) != nil {
		return "profile"
	}
	return name
}

// Extensions are the file name extensions of profiles, in the order of lookup.
var Extensions = []string{".yaml", ".yml", ".json"}

// loader follows extends and merges the documents. A profile is merged after
// those that it extends, so that it overrides them; each file is merged once.
type loader struct {
	open     Opener
	over     string   // the file of the project's own profile; empty: none
	stack    []string // files that are being read, outermost first: to find cycles
	read     []string // all files read so far, in that order
	merged   shape.Value
	sources  []Source // the files in merged
	full     bool     // maxSources was reached, and reported
	problems diag.Problems
}

// profile calls [loader.load] and turns the merged document into a [Profile].
func (l *loader) profile(ref string) (Profile, diag.Problems, error) {
	merged, warnings, err := l.load(ref)
	if err != nil {
		return Profile{}, warnings, err
	}
	p := build(merged)
	p.Sources = slices.Clone(l.sources)
	return p, warnings, nil
}

// load reads the profile ref, merges it over all that was loaded before, and
// validates the result. The errors are those of [Load].
func (l *loader) load(ref string) (merged shape.Value, warnings diag.Problems, err error) {
	name, file, src, err := l.find(ref, diag.Position{})
	if err != nil {
		return merged, nil, &diag.Error{Op: "open profile", Err: err, Remedy: remedyOf(err)}
	}
	l.document(name, file, src)
	problems, warnings := validate(l.merged)
	problems, warnings = l.inOrder(append(l.problems, problems...)), l.inOrder(warnings)
	if len(problems) > 0 {
		return merged, warnings, problems
	}
	return l.merged, warnings, nil
}

// find opens a profile. For the ref "default" it returns the built-in profile if
// the user has none, or if the user's own is being read already: a user's
// profile named default may extend the built-in one.
func (l *loader) find(ref string, from diag.Position) (name, file string, src []byte, err error) {
	name, file, src, err = l.open.Open(ref, from)
	var missing *NotFoundError
	if ref == Default && (errors.As(err, &missing) || err == nil && slices.Contains(l.stack, file)) {
		return Default, BuiltIn, defaultYAML, nil
	}
	return name, file, src, err
}

func remedyOf(err error) string {
	var missing *NotFoundError
	if errors.As(err, &missing) {
		return missing.Remedy()
	}
	if remedy := diag.Remedy(err); remedy != "" || !errors.Is(err, fs.ErrPermission) {
		return remedy
	}
	return "make it, and the folders on the way to it, readable for you"
}

// isPlan reports whether a file is a plan, which begins with its digest, in JSON or YAML.
func isPlan(src []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(src, "{\"\n\t "), []byte("digest"))
}

// document decodes one file, reads what it extends, and merges the file on top.
func (l *loader) document(name, file string, src []byte) {
	l.read = append(l.read, file)
	if isPlan(src) {
		l.problems = append(l.problems, diag.Problem{
			Position: diag.Position{File: file},
			Message:  "it is a plan, not a profile", Remedy: "launch by it: --plan " + file,
		})
		return
	}
	doc := &shape.Document{Name: name, File: file}
	value, problems := shape.Decode(doc, src, schema, "profile")
	l.problems = append(l.problems, problems...)
	if !value.IsSet() {
		return
	}
	if said := value.Get("name"); said.IsSet() && file != l.over {
		doc.Name = said.Text
	}
	if file == l.over {
		l.patterns(value)
	}
	l.stack = append(l.stack, file)
	for _, ref := range value.Get("extends").Items {
		l.extend(ref)
	}
	l.stack = l.stack[:len(l.stack)-1]
	doc.Rank = len(l.sources)
	sum := fmt.Sprintf("%x", sha256.Sum256(src))
	l.sources = append(l.sources, Source{Name: doc.Name, File: file, SHA256: sum})
	if file == BuiltIn {
		doc.Name = "built-in" // for origins: "default:3" could be a line of the user's own default profile
	}
	l.merged = shape.Merge(l.merged, layer(value, len(l.stack) == 0))
}

// patterns refuses more patterns than a project may bring: it needs no leave for them, and an agent may have written
// them.
func (l *loader) patterns(value shape.Value) {
	for _, key := range []string{"hide", "show", "protect"} {
		if items := value.Get(key).Items; len(items) > maxPatterns {
			const remedy = "use wider patterns, such as secrets/**, or name them in a profile of your own"
			l.refuse(items[maxPatterns].Place, remedy,
				"%s: more than %d patterns in a project's own profile", key, maxPatterns)
		}
	}
}

// extend reads the profile that ref, an entry of extends, names, unless it was
// read already. It reports cycles and exceeded limits at ref.
func (l *loader) extend(ref shape.Value) {
	at := ref.Place
	name, file, src, err := l.find(ref.Text, at.Position())
	switch {
	case err != nil:
		l.refuse(at, remedyOf(err), "extends: %s", err)
	case slices.Contains(l.stack, file):
		circle := slices.Concat(l.stack[slices.Index(l.stack, file):], []string{file})
		l.refuse(at, "remove one extends of the circle", "extends: %s extends itself: %s", file,
			strings.Join(circle, " → "))
	case slices.Contains(l.read, file):
		return // merged already, where it was named first
	case len(l.stack) >= maxDepth:
		l.refuse(at, "", "extends: more than %d profiles deep", maxDepth)
	case l.full:
		return
	case len(l.read) >= maxSources:
		l.full = true
		l.refuse(at, "", "extends: more than %d profiles", maxSources)
	default:
		l.document(name, file, src)
	}
}

func (l *loader) refuse(at shape.Place, remedy, format string, args ...any) {
	l.problems = append(l.problems, at.Problem(remedy, format, args...))
}

// ownKeys concern one document only and are not inherited through extends.
var ownKeys = []string{"name", "description", "extends"}

// layer returns the part of a document that is merged: without extends and,
// unless it is the outermost one, without name and description. The outermost
// one gets the name of its document if it sets none.
func layer(value shape.Value, outermost bool) shape.Value {
	own := value.Members
	value.Members = slices.DeleteFunc(slices.Clone(own), func(m shape.Member) bool {
		return slices.Contains(ownKeys, m.Key) && (!outermost || m.Key == "extends")
	})
	if outermost && !value.Get("name").IsSet() {
		at := shape.Place{Doc: value.Doc, Line: 1, Column: 1}
		name := shape.Value{Place: at, Shape: schema.Key("name"), Text: value.Doc.Name}
		value.Members = append(value.Members, shape.Member{Place: at, Key: "name", Value: name})
	}
	return value
}

// inOrder sorts problems by file, in the order the files were read, then by line
// and column. It drops duplicates: an alias repeats the problems of its anchor.
func (l *loader) inOrder(problems diag.Problems) diag.Problems {
	slices.SortStableFunc(problems, func(a, b diag.Problem) int {
		return cmp.Or(slices.Index(l.read, a.File)-slices.Index(l.read, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return slices.Compact(problems)
}
