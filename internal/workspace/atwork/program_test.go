package atwork

import (
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// Which program of the user's may make what, by its command line.
func TestWhatAProgramOfTheUsersMayMake(t *testing.T) {
	const file, repository, orders, change = 1, 2, 4, 8 // of /p/new/.git: BringTo, MakeAt, OrderAt, WriterIn
	const makes = file | repository | orders | change
	for line, want := range map[string]int{
		"/p git clone https://h/new.git": makes, "/p git clone https://h/x new": makes, "/p git clone h:new": makes, "/p git clone /x/new/.git/": makes,
		"/p git clone https://h/x": 0, "/p/new git init": makes, "/ git -C /p init new": 0, "/p git init -q new": makes, "/p git init": file | change,
		"/p git clone https://h/new .": file | change, "/p/new git clone https://h/x .": makes, "/elsewhere git clone https://h/new": 0,
		"/p git worktree add new": file | repository | change, "/p git worktree add -b x new main": file | repository | change,
		"/p git worktree add x new": change, "/p git worktree move x new": file | repository | change, "/p git worktree remove new": change,
		"/p git clone -b new h:x other": change, "/p git clone --bra new h:x other": change, "/p git clone -qb new h:x other": change, "/p git clone --branch=x h:x new": makes,
		"/p git clone -c a=new h:x": change, "/p git clone -- h:x new": makes, "/p git clone h:x .": file | change, "/p git clone --depth 1 h:new": makes,
		"/p git submodule update --init": 0, "/p git submodule--helper clone --name x --path new --url h:x": file | repository | change,
		"/p git submodule--helper clone --path=new": file | repository | change, "/p git submodule add h:x new": file | repository | change,
		"/p git submodule add -b new h:x": change, "/p git clone . other": 0, "/new git clone https://h/x /p/new": makes,
		"/p git pull": file, "/p git checkout x": file, "/p git status": 0, "/p git commit": 0, "/elsewhere git pull": 0, "/p/new git commit": change,
		"/p/new/src git log": 0, "/p/new/src git stash": file | change, "/ git --git-dir=/p/new/.git gc": change, "/p git fetch new": change,
		"/p rsync -a h:x/ .": file | change, "/p rsync -a h:x/ new": file | change, "/p rsync -a h:x other": 0,
		"/p/new tar x": file | change, "/p/other tar x": 0, "/p tar c .": 0, "/elsewhere tar -x -C /p/new": file | change,
		"/elsewhere unzip -d /p/new a.zip": file | change,
		"/p git rebase -i x; old":          0, "/p git checkout -p; old": 0, "/p git pull; old": file, "/p git pull; old|/p git merge x; old": 0,
		"/p git rebase -i x; old|/p git pull": file, "/p git clone https://h/new; old": repository | orders | change, "/p rsync -a h:x/ .; old": file | change,
		"/p jj git clone h:new": makes, "/p jj workspace add --name x new": file | repository | change, "/p hg clone -u tip h:x new": makes,
	} {
		v := Programs{asked: time.Now().Add(time.Hour)} // it asks for no others
		for _, one := range strings.Split(line, "|") {
			one, old := strings.CutSuffix(one, "; old")
			words := strings.Fields(one)
			v.list = append(v.list, program{name: words[1], words: words[1:], at: words[0], old: old}.asked())
		}
		got := 0
		for bit, is := range map[int]bool{
			file: v.BringTo("/p/new/.git", "/p"), repository: v.MakeAt("/p/new/.git"), orders: v.OrderAt("/p/new/.git"),
			change: v.WriterIn("/p/new") != "",
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

// What cp brings is where it comes from, too: what an agent makes beside it does not count.
func TestWhatACopyBrings(t *testing.T) {
	top := must.Folder(t)
	must.Write(t, top+"/from/repo/.git/HEAD", "x")
	for line, want := range map[string]string{
		"cp -r ../from/repo .": "repo", "cp -r ../from/repo new": "new new/repo", "cp -r ../from/. .": "repo", "cp -rt . ../from/repo": "repo",
		"cp -r --target-directory=new ../from/repo": "new/repo", "cp -rS ~ ../from/repo new": "new new/repo", "cp -r ../from new": "new/repo",
		"rsync -a ../from/ .": "repo", "rsync -at ../from/repo .": "repo", "cp -r repo ../from": "",
	} {
		p := program{name: strings.Fields(line)[0], words: strings.Fields(line), at: top + "/p"}.asked()
		for _, in := range []string{"repo", "new", "new/repo", "agents", "repo/agents", "new/agents"} {
			if got := p.copiesHere(top + "/p/" + in + "/.git"); got != slices.Contains(strings.Fields(want), in) {
				t.Errorf("%s: of %s/.git it is %t", line, in, got)
			}
		}
	}
}

func TestWhatAsksIsNotTakenForWhatMakes(t *testing.T) {
	for line, makes := range map[string]bool{
		"git clone x": true, "git -C d stash pop": true, "git stash": true, "git pull": true, "git worktree add w": true, "git -c a=b --no-pager init": true,
		"git --git-dir init status": false, "git submodule add x": true, "jj git clone x": true, "python3 /usr/bin/hg clone x": true,
		"git status": false, "git stash list": false, "git stash show -p": false, "git worktree list": false, "git log": false,
		"git grep init src": false, "git log -- repo": false, "git commit -em clone": false, "git submodule foreach init": false,
	} {
		words := strings.Fields(line)
		name := words[0]
		if strings.HasPrefix(name, "python") {
			name = "hg"
		}
		p := program{name: name, words: words, at: "/p"}.asked()
		if got := len(p.makes) > 0 || p.brings(); got != makes {
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
