package profile

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/profile/shape"
	"claudebox/internal/secret/leak"
)

// Opener looks profiles up. The package itself opens nothing.
type Opener interface {
	// Open finds the profile that ref names: a name ("work"), or a file when
	// ref holds a slash or ends in .yaml, .yml or .json. From is where a
	// profile extends ref, and says what a relative file is relative to; the
	// zero Position stands for the command line.
	//
	// It returns the profile's name for messages, its file as a person would
	// write it, and its bytes, at most [MaxSize] and one more. The file must
	// be the same text for the same file, so that a cycle is seen. A ref that
	// does not exist is a [NotFoundError]; for the ref "default" the built-in
	// profile then takes its place.
	Open(ref string, from diag.Position) (name, file string, src []byte, err error)
}

// NotFoundError says that there is no profile of that name or file.
type NotFoundError struct {
	Ref    string
	Looked []string // the folders that were looked in; empty for a file
	Known  []string // the names there are, for "did you mean"
}

// Error says what is missing, and what may have been meant.
func (e *NotFoundError) Error() string {
	if near := shape.Nearest(e.Ref, e.Known); near != "" {
		return fmt.Sprintf("no profile %s; did you mean %q?", shape.Quote(e.Ref), near)
	}
	if IsFile(e.Ref) {
		return "there is no file " + shape.Quote(e.Ref)
	}
	return "no profile " + shape.Quote(e.Ref)
}

// Remedy says where a profile could be put.
func (e *NotFoundError) Remedy() string {
	if IsFile(e.Ref) {
		return "name a file that is there, or a profile of `claudebox profile list`"
	}
	if len(e.Looked) == 0 {
		return ""
	}
	return "see `claudebox profile list`, or write " + path.Join(e.Looked[0], e.Ref+".yaml")
}

const (
	// Default is the name of the profile that is built in.
	Default = "default"
	// BuiltIn is the file that messages show for it.
	BuiltIn = "(built in)"
	// MaxSize is the largest profile that is read, in bytes.
	MaxSize = shape.MaxSize
)

//go:embed default.yaml
var defaultYAML []byte

const (
	maxDepth   = 16  // profiles that extend one another in a row
	maxSources = 128 // files that one profile is made of
)

// Load reads the profile that ref names and all it extends. It returns the
// profile and warnings, or an error: [diag.Problems] for what is wrong in the
// files, all of it in one run; a *[diag.Error] when ref itself cannot be read.
func Load(ref string, open Opener) (Profile, diag.Problems, error) {
	p, err := load(ref, open)
	if err != nil {
		return Profile{}, p.warnings, err
	}
	return p.profile(), p.warnings, nil
}

// ProjectFile is the profile that a project may bring, at its root. What it
// asks for counts as far as its user allowed it, see package trust.
const ProjectFile = ".claudebox.yaml"

// LoadOver reads the profile that ref names, as [Load] does, and once more
// with the [ProjectFile] over laid over it, src being its bytes. That file may
// extend profiles by name only: any file it named could be written by an
// agent. Its settings have the origin ".claudebox.yaml:LINE", whatever name it
// gives itself, and the profile keeps the name that it has without it.
func LoadOver(ref, over string, src []byte, open Opener) (base, laid Profile, warnings diag.Problems, err error) {
	below, err := load(ref, open)
	if err != nil {
		return Profile{}, Profile{}, below.warnings, err
	}
	all, err := load(ref, open, project{over, src, open})
	if err != nil {
		return Profile{}, Profile{}, all.warnings, err
	}
	base, laid = below.profile(), all.profile()
	laid.Name, laid.Description = base.Name, base.Description
	return base, laid, all.warnings, nil
}

// project is the Opener behind a [ProjectFile].
type project struct {
	file string
	src  []byte
	Opener
}

func (p project) Open(ref string, from diag.Position) (name, file string, src []byte, err error) {
	switch {
	case ref == p.file && from.File == "":
		return ProjectFile, p.file, p.src, nil
	case from.File == p.file && IsFile(ref):
		return "", "", nil, errors.New(shape.Quote(ref) +
			" is a file, which an agent could write; a project may extend profiles by name only")
	}
	return p.Opener.Open(ref, from)
}

// IsFile reports whether a reference names a file, and not a profile.
func IsFile(ref string) bool {
	return strings.Contains(ref, "/") || slices.Contains(Extensions, path.Ext(ref))
}

// Show is the profile that ref names with all it extends, as one commented
// document: each value with its origin, and the defaults. Reading it gives the
// same profile. With mask, constants that look secret are not shown.
func Show(ref string, open Opener, mask bool) ([]byte, diag.Problems, error) {
	p, err := load(ref, open)
	if err != nil {
		return nil, p.warnings, err
	}
	style := shape.Style{Origin: func(at shape.Place) string { return string(origin(at)) }}
	if mask {
		style.Hide = func(name, value string) bool { return leak.Variable(name, value) != "" }
	}
	text, err := style.Document(schema, p.merged)
	return text, p.warnings, err
}

// loaded is what the documents of a profile say together.
type loaded struct {
	merged   shape.Value
	sources  []Source
	warnings diag.Problems
}

func (l loaded) profile() Profile {
	p := build(l.merged)
	p.Sources = l.sources
	return p
}

// load merges what ref names, with what the project brings laid over it, and
// judges it.
func load(ref string, open Opener, over ...project) (loaded, error) {
	l := loader{open: open}
	if err := l.root(ref); err != nil {
		return loaded{}, err
	}
	for _, p := range over {
		l.open, l.over = p, p.file
		if err := l.root(p.file); err != nil {
			return loaded{}, err
		}
	}
	var merged shape.Value
	for _, layer := range l.layers {
		merged = shape.Merge(merged, layer)
	}
	problems, warnings := validate(merged)
	l.problems = append(l.problems, problems...)
	l.inOrder(l.problems)
	l.inOrder(warnings)
	if len(l.problems) > 0 {
		return loaded{warnings: warnings}, l.problems
	}
	return loaded{merged, l.sources, warnings}, nil
}

// NameOf is the name of a profile that says none: its file's, without folder
// and extension.
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

// Extensions are the endings of a profile's file, in the order of lookup.
var Extensions = []string{".yaml", ".yml", ".json"}

// loader follows extends. Documents are kept in the order of application:
// what is extended stands before what extends it, each once.
type loader struct {
	open     Opener
	over     string   // the file of the project's own profile; empty: none
	stack    []string // files that are being read, outermost first
	read     []string // files in the order they were met
	layers   []shape.Value
	sources  []Source
	full     bool // maxSources was met, and reported
	problems diag.Problems
}

func (l *loader) root(ref string) error {
	name, file, src, err := l.find(ref, diag.Position{})
	if err != nil {
		return &diag.Error{Op: "open profile", Err: err, Remedy: remedyOf(err)}
	}
	l.document(name, file, src)
	return nil
}

// find opens a profile. The built-in default stands in for a missing one, and
// for one that would extend itself.
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
	var known *diag.Error
	switch {
	case errors.As(err, &missing):
		return missing.Remedy()
	case errors.As(err, &known):
		return known.Remedy
	}
	return ""
}

// document reads one file, then what it extends, and adds it as a layer.
func (l *loader) document(name, file string, src []byte) {
	l.read = append(l.read, file)
	doc := &shape.Document{Name: name, File: file}
	value, problems := shape.Decode(doc, src, schema, "profile")
	l.problems = append(l.problems, problems...)
	if !value.Said() {
		return
	}
	if said := value.Get("name"); said.Said() && file != l.over {
		doc.Name = said.Text
	}
	l.stack = append(l.stack, file)
	for _, ref := range value.Get("extends").Items {
		l.extend(ref)
	}
	l.stack = l.stack[:len(l.stack)-1]
	sum := fmt.Sprintf("%x", sha256.Sum256(src))
	l.sources = append(l.sources, Source{Name: doc.Name, File: file, SHA256: sum})
	if file == BuiltIn {
		doc.Name = "built-in" // in origins: its lines are not those of a default of one's own
	}
	doc.Rank = len(l.layers)
	l.layers = append(l.layers, layer(value, len(l.stack) == 0))
}

// extend reads the profile that an entry of extends names.
func (l *loader) extend(ref shape.Value) {
	at := ref.Position()
	name, file, src, err := l.find(ref.Text, at)
	switch {
	case err != nil:
		l.refuse(at, remedyOf(err), "extends: %s", err)
	case slices.Contains(l.stack, file):
		circle := slices.Concat(l.stack[slices.Index(l.stack, file):], []string{file})
		l.refuse(at, "remove one extends of the circle", "extends: %s extends itself: %s", file,
			strings.Join(circle, " → "))
	case slices.Contains(l.read, file):
		return // applied already, where it was met first
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

func (l *loader) refuse(at diag.Position, remedy, format string, args ...any) {
	l.problems = append(l.problems, diag.Problem{Position: at, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

// ownKeys say something of one document only and are not inherited.
var ownKeys = []string{"name", "description", "extends"}

// layer is what a document adds to the merged profile. The outermost one
// always has a name.
func layer(value shape.Value, outermost bool) shape.Value {
	own := value.Members
	value.Members = slices.DeleteFunc(slices.Clone(own), func(m shape.Member) bool {
		return slices.Contains(ownKeys, m.Key) && (!outermost || m.Key == "extends")
	})
	if outermost && !value.Get("name").Said() {
		at := shape.Place{Doc: value.Doc, Line: 1, Column: 1}
		name := shape.Value{Place: at, Shape: schema.Key("name"), Text: value.Doc.Name}
		value.Members = append(value.Members, shape.Member{Place: at, Key: "name", Value: name})
	}
	return value
}

// inOrder sorts problems by file as they were met, and by place.
func (l *loader) inOrder(problems diag.Problems) {
	slices.SortStableFunc(problems, func(a, b diag.Problem) int {
		return cmp.Or(slices.Index(l.read, a.File)-slices.Index(l.read, b.File), a.Line-b.Line, a.Column-b.Column)
	})
}
