package git

import (
	"hash/maphash"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/secretfile"
	"claudebox/internal/workspace/survey"
)

// Secret is a file or folder in a git folder that an agent may not see as it is.
type Secret struct {
	Name string // below the git folder
	Dir  bool
	Copy []byte // what is seen instead; nil: nothing
}

// Secrets are what an agent may not see in a git folder, as it was before the session.
func (f *Folder) Secrets() []Secret { return f.secrets }

// keyFolders hold keys and nothing else, whatever the files in them are called: those of an unlocked repository
// (git-crypt, commands.cpp: get_internal_keys_path), and the logins of remotes (git-annex, Annex/Locations.hs:
// gitAnnexCredsDir). The folder of transcrypt (crypt) is none: it has a program in it, and the password is in the
// configuration.
var keyFolders = []string{"git-crypt", "annex/creds"}

// addSecrets notes the secrets that people and programs leave in a git folder: tokens in its configuration and in
// copies of that (config.bak), passwords (git-credential-store(1)), addresses with a password, and what is secret in
// messages and in files that are not git's own data: hooks, and files of other tools.
func (f folderLook) addSecrets() {
	for _, e := range slices.Concat(f.Entries, f.samples) {
		first, _, inner := strings.Cut(e.Name, "/")
		switch name := e.Name; {
		case inner && (first == "hooks" || first == "info"), strings.HasSuffix(name, "MSG"):
			f.addForeign(e, false)
		case inner:
		case name == "remotes" || name == "branches": // addresses, as git wrote them once (gitrepository-layout(5))
			if slices.ContainsFunc(f.Entries, func(in Entry) bool { return strings.HasPrefix(in.Name, name+"/") }) {
				f.addSecret(e, nil, true)
			}
		case strings.HasPrefix(name, Aside), // configurations as they were, secrets included
			name == "credentials" || secretfile.Of("", name) == secretfile.Secret:
			f.addSecret(e, nil, true)
		case name == "FETCH_HEAD":
			f.addSecret(e, withoutPasswords, false)
		case name == "logs":
			head, err := f.root.Read(path.Join(f.Rel, "logs/HEAD"), textLimit)
			if err == nil && hasUserinfo(head) {
				f.addSecret(e, withoutPasswords, false)
			} else if f.Entry("FETCH_HEAD") != nil { // else no fetch wrote an address there
				f.addSecret(e, withoutPasswords, false, "remotes") // of those there are many
			}
		case name == "lfs":
			f.addForeign(e, true)
		case e.Kind != beneath.Dir && strings.HasPrefix(strings.ToLower(name), "config"):
			f.addSecret(e, withoutSecrets, true)
		case !isGits(name): // other tools need their large files, such as an index
			f.addForeign(e, false)
		}
	}
}

// addForeign notes what is secret in a file that is not git's own data, or in a folder of such files: what is so by its
// name, as in a project, and files of any name that hold a token. A file that cannot be read or is too large counts as
// secret if its name asks, or unread is set.
func (f folderLook) addForeign(e Entry, unread bool) {
	for _, file := range f.filesOf(e, "objects") {
		name := f.below(file.Rel)
		key := slices.IndexFunc(keyFolders, func(dir string) bool { return pathname.Below(name, dir) })
		verdict := secretfile.Of(path.Dir(name), path.Base(name))
		switch {
		case key >= 0 && name != keyFolders[key]: // it goes with the folder
		case key >= 0 || file.Kind != beneath.Dir && verdict == secretfile.Secret:
			f.addFile(file, nil, true)
		case file.Kind == beneath.Dir:
		case verdict == secretfile.Suspect:
			f.addFile(file, f.asked, true)
		default:
			f.addFile(file, f.tokens, unread)
		}
	}
}

// filesOf returns an entry, and what lies below it if that is a folder.
func (f folderLook) filesOf(e Entry, skipped ...string) []survey.File {
	const limit = 2000
	files := []survey.File{{Rel: path.Join(f.Rel, e.Name), Kind: e.Kind}}
	if e.Kind != beneath.Dir {
		return files
	}
	return append(files, survey.Walk(f.root, survey.Question{
		From: []string{files[0].Rel}, Skipped: skipped, Apart: f.apart, Wanted: survey.Everything, Limit: limit,
	}, nil).Files...)
}

// addSecret notes what by says of an entry, or of each file below it; without by, all of it is secret. A file that
// cannot be read or is too large counts as secret if unread is set.
func (f folderLook) addSecret(e Entry, by instead, unread bool, skipped ...string) {
	if by == nil {
		f.addFile(survey.File{Rel: path.Join(f.Rel, e.Name), Kind: e.Kind}, nil, unread)
		return
	}
	for _, file := range f.filesOf(e, skipped...) {
		f.addFile(file, by, unread)
	}
}

// addFile notes what by says of one file. Without by, it is secret, and may be a folder; of a link that is what it
// leads to in the git folder.
func (f folderLook) addFile(file survey.File, by instead, unread bool) {
	var copied []byte
	covered := by == nil
	if covered && file.Kind == beneath.Link {
		file = f.behind(file.Rel)
	}
	if !covered && file.Kind == beneath.Regular {
		covered = unread
		if content, err := f.root.Read(file.Rel, textLimit); err == nil {
			copied, covered = by(content)
		}
	}
	if covered && (file.Kind == beneath.Regular || file.Kind == beneath.Dir) {
		f.secrets = append(f.secrets, Secret{f.below(file.Rel), file.Kind == beneath.Dir, copied})
	}
}

// behind returns what a link leads to at last, if that lies in the git folder; else nothing.
func (f folderLook) behind(link string) survey.File {
	real, err := filepath.EvalSymlinks(f.root.Join(link))
	to, in := pathname.Cut(real, f.Path)
	if err != nil || !in || to == "" {
		return survey.File{}
	}
	at := path.Join(f.Rel, to)
	what, _ := f.root.Look(at)
	return survey.File{Rel: at, Kind: what.Kind}
}

// instead returns what is seen inside instead of a file with some content: the file itself if it is not covered,
// another content, or nothing if that is nil.
type instead func(content []byte) (copied []byte, covered bool)

// withoutSecrets is for configurations of git.
func withoutSecrets(content []byte) ([]byte, bool) {
	if !gitconfig.NeedsSanitising(content) {
		return nil, false
	}
	return gitconfig.Sanitise(content), true
}

// withoutPasswords is for addresses in git's own notes: before 2.28 git wrote them as they were typed.
func withoutPasswords(content []byte) ([]byte, bool) {
	return []byte(gitconfig.StripUserinfo(string(content))), hasUserinfo(content)
}

// tokens is for files that may hold a token, or an address with a password. It judges each content once: git copies the
// same fourteen hooks into each repository.
func (g *gatherer) tokens(content []byte) ([]byte, bool) {
	sum := maphash.Bytes(g.salt, content)
	holds, judged := g.judged[sum]
	if !judged {
		holds = secretfile.HoldsToken(content) || hasUserinfo(content)
		g.judged[sum] = holds
	}
	return nil, holds
}

// asked is for files whose name asks.
func (g *gatherer) asked(content []byte) ([]byte, bool) {
	if secretfile.Holds(content) {
		return nil, true
	}
	return g.tokens(content)
}

func hasUserinfo(content []byte) bool {
	return gitconfig.StripUserinfo(string(content)) != string(content)
}
