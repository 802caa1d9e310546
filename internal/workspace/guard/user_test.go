package guard

import (
	"strings"
	"testing"
	"time"
)

// Which program of the user's may make what, by its command line.
func TestWhatAProgramOfTheUsersMayMake(t *testing.T) {
	const file, repository, orders = 1, 2, 4 // bringsTo, makesAt, makesIn of /p/new/.git
	for line, want := range map[string]int{
		"/p git clone https://h/new.git": file | repository | orders, "/p git clone https://h/x new": file | repository | orders,
		"/p git clone h:new": file | repository | orders, "/p git clone https://h/x": file, "/p/new git init": file | repository | orders,
		"/ git -C /p init new": file, "/p git init -q new": file | repository | orders, "/p git init": file,
		"/p git clone https://h/new .": file | repository | orders, "/elsewhere git clone https://h/new": 0, "/p git worktree add new": file | repository,
		"/p git submodule update --init": file | repository, "/p git clone . other": file, "/new git clone https://h/x /p/new": file | repository | orders,
		"/p git pull": file, "/p git checkout x": file, "/p git status": 0, "/p git commit": 0, "/elsewhere git pull": 0,
		"/p cp -r ../x new": file | repository, "/p cp -r ../x other": 0, "/p cp -r new ../x": 0, "/p cp -t new ../x": file | repository, "/p rsync -a h:x/ .": file | repository,
		"/p/new tar x": file | repository, "/p/other tar x": 0, "/p tar c .": 0, "/elsewhere tar -x -C /p/new": file | repository, "/elsewhere unzip -d /p/new a.zip": file | repository,
		"/p git rebase -i x; old": 0, "/p git checkout -p; old": 0, "/p git pull; old": file, "/p git pull; old|/p git merge x; old": 0,
		"/p git rebase -i x; old|/p git pull": file, "/p git clone https://h/new; old": repository | orders, "/p rsync -a h:x/ .; old": file | repository,
	} {
		v := vcs{asked: time.Now().Add(time.Hour)} // it asks for no others
		for _, one := range strings.Split(line, "|") {
			one, old := strings.CutSuffix(one, "; old")
			words := strings.Fields(one)
			v.list = append(v.list, program{name: words[1], words: words[1:], at: words[0], old: old}.asked())
		}
		got := 0
		for bit, is := range map[int]bool{
			file: v.bringsTo("/p/new/.git", "/p"), repository: v.makesAt("/p/new/.git", "/p"), orders: v.makesIn("/p/new"),
		} {
			if is {
				got |= bit
			}
		}
		if got != want {
			t.Errorf("%s: %b, want %b", line, got, want)
		}
	}
}

func TestWhatAsksIsNotTakenForWhatMakes(t *testing.T) {
	for line, makes := range map[string]bool{
		"git clone x": true, "git -C d stash pop": true, "git stash": true, "git pull": true, "git worktree add w": true, "git -c a=b --no-pager init": true,
		"git --git-dir init status": false, "git submodule update": true, "jj git clone x": true, "python3 /usr/bin/hg clone x": true,
		"git status": false, "git stash list": false, "git stash show -p": false, "git worktree list": false, "git log": false,
		"git grep init src": false, "git log -- repo": false, "git commit -em clone": false, "git submodule foreach init": false,
	} {
		words := strings.Fields(line)
		name := words[0]
		if strings.HasPrefix(name, "python") {
			name = "hg"
		}
		p := program{name: name, words: words, at: "/p"}.asked()
		if got := p.makes() || p.brings(); got != makes {
			t.Errorf("%s: %t", line, got)
		}
	}
	for line, copies := range map[string]bool{
		"tar cf - .": false, "tar -cf a.tar x": false, "tar xf a.tar": true, "tar --extract -f a": true, "bsdtar -xf a": true, "unzip a.zip": true,
		"unzip -l a.zip": false, "7z x a.7z": true, "7z l a.7z": false, "cp a b": true,
	} {
		words := strings.Fields(line)
		if got := (program{name: words[0], words: words}).copies(); got != copies {
			t.Errorf("%s: %t", line, got)
		}
	}
}
