// Package lent finds secrets in the folders of the user that an agent may read:
// skills, plugins and the like of ~/.claude. A file that looks secret by name
// and content there is no more the agent's than one in the project (SEC-05).
//
// It reads below the folder it is given, follows no link, and writes nothing.
package lent

import (
	"path"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/secretfile"
	"claudebox/internal/workspace/survey"
)

// Cover is what is to be laid over a file.
type Cover struct {
	Rel     string // from the folder
	Content []byte // nil: nothing is in it
}

// Limit is how many entries of a folder are looked at: some ten milliseconds.
const Limit = 50_000

// unwalked are folders that tools fill, with nothing of the user's.
var unwalked = []string{"node_modules", ".venv"}

// Covers looks through a folder. shown tells what may be read all the same.
// cut: there was more than could be looked at.
func Covers(dir string, shown func(rel string) bool) (covers []Cover, cut bool, err error) {
	at, err := beneath.Open(dir)
	if err != nil {
		return nil, false, err
	}
	defer at.Close()
	seen := survey.Walk(at, survey.Question{Wanted: wanted, Skipped: unwalked, Limit: Limit}, nil)
	configs := map[string]bool{} // those of git, of which only the secrets are left out
	for _, place := range seen.Git {
		rel := path.Join(place, "config")
		configs[rel] = true
		if content, err := at.Read(rel, secretfile.Limit); err == nil && gitconfig.HoldsSecrets(content) &&
			!shown(rel) {
			covers = append(covers, Cover{rel, gitconfig.Sanitise(content)})
		}
	}
	for _, f := range seen.Files {
		if f.Kind == beneath.Regular && !configs[f.Rel] && !shown(f.Rel) && isSecret(at, f) {
			covers = append(covers, Cover{Rel: f.Rel})
		}
	}
	return covers, seen.Cut, nil
}

func wanted(folder string) func(name []byte, dir bool) bool {
	last := []byte(path.Base(folder))
	return func(name []byte, dir bool) bool { return !dir && secretfile.Of(last, name) != secretfile.Plain }
}

func isSecret(at *beneath.Folder, f survey.File) bool {
	switch secretfile.Of([]byte(path.Base(path.Dir(f.Rel))), []byte(path.Base(f.Rel))) {
	case secretfile.Secret:
		return true
	case secretfile.Look:
		content, err := at.Read(f.Rel, secretfile.SmallLimit)
		return err == nil && secretfile.HoldsToken(content)
	}
	content, err := at.Read(f.Rel, secretfile.Limit)
	return err != nil || secretfile.Holds(content)
}
