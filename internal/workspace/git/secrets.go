package git

import (
	"hash/maphash"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
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

// Secrets are what an agent may not see in a git folder, as it was before the
// session.
func (f *Folder) Secrets() []Secret { return f.secrets }

// addSecrets finds what people and programs leave in a git folder: tokens in its
// configuration and in copies of that (config.bak), passwords
// (git-credential-store(1)), addresses with a password, and tokens in messages and in
// what is no data of git's: hooks, and the files of other tools.
func (f folderLook) addSecrets() {
	for _, e := range slices.Concat(f.Entries, f.samples) {
		first, _, inner := strings.Cut(e.Name, "/")
		switch name := e.Name; {
		case inner && (first == "hooks" || first == "info"), strings.HasSuffix(name, "MSG"):
			f.addSecret(e, ifSmall(f.tokens))
		case inner:
		case name == "remotes" || name == "branches": // addresses, as git wrote them once (gitrepository-layout(5))
			if slices.ContainsFunc(f.Entries, func(in Entry) bool { return strings.HasPrefix(in.Name, name+"/") }) {
				f.addSecret(e, nil)
			}
		case strings.HasPrefix(name, Aside), // configurations as they were, secrets included
			name == "credentials" || secretfile.Of(nil, []byte(name)) == secretfile.Secret:
			f.addSecret(e, nil)
		case name == "FETCH_HEAD":
			f.addSecret(e, withoutPasswords)
		case name == "logs":
			head, err := f.root.Read(path.Join(f.Rel, "logs/HEAD"), textLimit)
			if err == nil && hasUserinfo(head) {
				f.addSecret(e, withoutPasswords)
			} else if f.Entry("FETCH_HEAD") != nil { // else no fetch wrote an address there
				f.addSecret(e, withoutPasswords, "remotes") // of those there are many
			}
		case name == "lfs":
			f.addSecret(e, f.tokens, "objects")
		case e.Kind != beneath.Dir && strings.HasPrefix(strings.ToLower(name), "config"):
			f.addSecret(e, withoutSecrets)
		case ruleOf(name).sort == unknown && secretfile.Of(nil, []byte(name)) == secretfile.Ask:
			f.addSecret(e, ifSmall(asked))
		case ruleOf(name).sort == unknown:
			f.addSecret(e, ifSmall(f.tokens), "objects")
		}
	}
}

// addSecret takes down what by says of an entry, or of each file below it; all of
// it without by.
func (f folderLook) addSecret(e Entry, by instead, skipped ...string) {
	const limit = 2000
	files := []survey.File{{Rel: path.Join(f.Rel, e.Name), Kind: e.Kind}}
	if e.Kind == beneath.Dir && by != nil {
		files = survey.Walk(f.root, survey.Question{
			From: []string{files[0].Rel}, Skipped: skipped, Apart: f.apart, Wanted: survey.Everything, Limit: limit,
		}, nil).Files
	}
	for _, file := range files {
		var copied []byte
		switch {
		case file.Kind == beneath.Regular && by != nil:
			content, err := f.root.Read(file.Rel, textLimit)
			var covered bool
			if copied, covered = by(content, err == nil); !covered {
				continue
			}
		case file.Kind != beneath.Regular && (file.Kind != beneath.Dir || by != nil):
			continue
		}
		f.secrets = append(f.secrets, Secret{f.below(file.Rel), file.Kind == beneath.Dir, copied})
	}
}

// instead says what is seen instead of a file with some content, or of one that
// could not be read: the same, another content, or nothing of it.
type instead func(content []byte, read bool) (copied []byte, covered bool)

// withoutSecrets is for configurations of git.
func withoutSecrets(content []byte, read bool) ([]byte, bool) {
	if !read || !gitconfig.HoldsSecrets(content) {
		return nil, !read
	}
	return gitconfig.Sanitise(content), true
}

// withoutPasswords is for what git writes down: before 2.28 it wrote addresses as
// they were typed.
func withoutPasswords(content []byte, read bool) ([]byte, bool) {
	return []byte(gitconfig.StripUserinfo(string(content))), read && hasUserinfo(content)
}

// tokens is for files that may hold a token, or an address with a password. A
// content is judged once: git puts the same fourteen hooks into each repository.
func (g *gatherer) tokens(content []byte, read bool) ([]byte, bool) {
	if !read {
		return nil, true
	}
	sum := maphash.Bytes(g.salt, content)
	holds, judged := g.judged[sum]
	if !judged {
		holds = secretfile.HoldsToken(content) || hasUserinfo(content)
		g.judged[sum] = holds
	}
	return nil, holds
}

// asked is for files whose name asks.
func asked(content []byte, _ bool) ([]byte, bool) { return nil, secretfile.Holds(content) }

// ifSmall is for files of other tools, which need the large ones, as an index.
func ifSmall(by instead) instead {
	return func(content []byte, read bool) ([]byte, bool) {
		if !read {
			return nil, false
		}
		return by(content, read)
	}
}

func hasUserinfo(content []byte) bool {
	return gitconfig.StripUserinfo(string(content)) != string(content)
}
