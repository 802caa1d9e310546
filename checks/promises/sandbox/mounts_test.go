//go:build lab

package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
)

func TestAProfilesMounts(t *testing.T) {
	w := newWorld(t)
	w.write(t, "data/file", "data\n")
	w.write(t, "notes/file", "notes\n")
	w.write(t, "single", "single\n")
	w.write(t, "behind/file", "behind\n")
	w.link(t, "behind", "linked")
	file := w.profile(t, "mounts:",
		"  - {host: ~/data, mode: ro}",
		"  - {host: ~/notes, sandbox: /mnt/notes, mode: rw}",
		"  - {host: ~/single, sandbox: /mnt/deep/er/single, mode: ro}",
		"  - {host: ~/linked, mode: ro}",
		"  - {host: ~/missing, mode: ro, optional: true}")
	got := w.inside(t, `
		cat ~/data/file /mnt/notes/file /mnt/deep/er/single ~/linked/file
		for f in ~/data/file ~/data/new /mnt/notes/file /mnt/notes/new /mnt/deep/er/single ~/linked/file; do
			if echo changed >>$f; then echo "$f"; fi
		done 2>/dev/null
		ls -d ~/missing ~/behind 2>/dev/null || true`, "--profile", file)
	wantEqual(t, got, "data\nnotes\nsingle\nbehind\n/mnt/notes/file\n/mnt/notes/new\n")
	wantEqual(t, w.read(t, "notes/file")+w.read(t, "notes/new"), "notes\nchanged\nchanged\n")
}

func TestTheFlagsMounts(t *testing.T) {
	w := newWorld(t)
	w.write(t, "ro/file", "ro\n")
	w.write(t, "rw/file", "rw\n")
	w.link(t, w.path("ro"), "link")
	got := w.inside(t, `cat ~/ro/file /mnt/there ~/rw/file /mnt/link/file; for f in ~/ro/file /mnt/there ~/rw/file /mnt/link/x; do if echo x >>$f; then echo "$f"; fi; done 2>/dev/null`,
		"--mount-ro", "~/ro", "--mount-ro", "../ro/file:/mnt/there", "--mount-rw", "~/rw", "--mount-ro", "../link:/mnt/link")
	wantEqual(t, w.normal(got), "ro\nro\nrw\nro\nHOME/rw/file\n")
}

func TestAPathWithAColonIsMountedByAFlag(t *testing.T) {
	w := newWorld(t)
	w.write(t, "a:b/file", "whole\n")
	w.write(t, "a/file", "a\n")
	w.folder(t, "project/b")
	w.write(t, "c:d/file", "c\n")
	got := w.inside(t, `cat ~/c:d/file b/file`, "--mount-ro", "~/a:b", "--mount-rw", "~/c:d")
	wantEqual(t, got, "c\na\n") // a is there: it is what is mounted, at b
}

func TestAMountThatCannotBeIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		mount, flag, reason string
		empty               bool // the flag says nothing
	}{
		"a missing source":                     {mount: "{host: ~/missing, mode: ro}", reason: "no such file"},
		"a missing source of a flag":           {flag: "~/missing", reason: "no such file"},
		"a secret that is not marked as one":   {flag: "~/.ssh", reason: "~/.ssh"},
		"a folder that holds secrets":          {flag: "~:/mnt/home", reason: "~/.ssh"},
		"the whole home":                       {flag: "~", reason: "it would show ~/.ssh (SSH keys)"},
		"everything":                           {flag: "/", reason: "it would show ~/.ssh (SSH keys)"},
		"the host's processes":                 {flag: "/proc:/mnt/proc", reason: "shows the processes and devices of the host"},
		"a place that claudebox makes":         {flag: "~/data:~/.claude/skills", reason: "which claudebox makes inside"},
		"all of a folder that is needed":       {flag: "~/data:/etc", reason: "holds what the sandbox needs"},
		"nothing":                              {flag: "", reason: "it needs a value: HOST[:INSIDE]", empty: true},
		"nothing inside":                       {flag: "~/data:", reason: "a side of the colon is empty"},
		"all homes, elsewhere":                 {flag: "/home:/mnt/h", reason: "~/.ssh"},
		"a part of a secret":                   {flag: "~/.aws/credentials", reason: "it lies in ~/.aws"},
		"a link that leads to a secret":        {flag: "~/to-keys:/mnt/keys", reason: "~/.ssh"},
		"a link of the project that leads out": {flag: "innocent", reason: "a link in the project leads out"},
		"a profile's link that leads to one":   {mount: "{host: ~/to-keys, sandbox: /mnt/keys, mode: ro}", reason: "~/.ssh"},
		"the home in a profile":                {mount: "{host: ~/., sandbox: /mnt/h, mode: rw}", reason: ""},
		"another folder of temporary files":    {flag: "/var/tmp", reason: "/var/tmp"},
		"a folder of sockets":                  {flag: "/run:/mnt/run", reason: "/run"},
		"the same destination twice":           {flag: "~/data:" + "/etc/passwd", reason: "/etc/passwd"},
		"a destination that is the project":    {flag: "~/data:.", reason: "both lie at"},
		"a file over a folder":                 {flag: "~/data/file:sub", reason: ""},
		"a mount point that the project lacks": {flag: "~/data:lacking", reason: ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, ".ssh/id", canary)
			w.write(t, ".aws/credentials", canary)
			w.write(t, "data/file", "data")
			w.folder(t, "project/sub")
			w.link(t, "../.ssh", "project/innocent")
			w.link(t, ".ssh", "to-keys")
			var flags []string
			if tc.mount != "" {
				flags = append(flags, "--profile", w.profile(t, "mounts: ["+tc.mount+"]"))
			}
			if tc.flag != "" || tc.empty {
				flags = append(flags, "--mount-ro", tc.flag)
			}
			wantRefused(t, run(t, w.session("true", flags...)), tc.reason)
			if exists(w.path("project/lacking")) {
				t.Error("a mount point was made in the project")
			}
		})
	}
}

// What is protected or hidden in the project must not be reached by another
// way in.
func TestAMountDoesNotOpenWhatIsKeptInTheProject(t *testing.T) {
	for name, tc := range map[string]struct{ flag, mount, opens string }{
		"git's folder elsewhere":           {"--mount-rw", ".git:/mnt/git", ".git"},
		"the project elsewhere":            {"--mount-rw", ".:/mnt/p", "it would open"},
		"a folder around it elsewhere":     {"--mount-rw", "..:/mnt/all", "it would show"},
		"a hook by its own path":           {"--mount-rw", ".git/hooks/mine", ".git/hooks"},
		"a hidden file elsewhere":          {"--mount-ro", ".env:/mnt/env", ".env"},
		"a folder with one":                {"--mount-ro", "conf:/mnt/conf", "conf/.env"},
		"git's configuration and its keys": {"--mount-ro", ".git:/mnt/git", ".git"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, "project/.git/hooks/mine", "")
			w.write(t, "project/.env", "KEY="+canary+"\n")
			w.write(t, "project/conf/.env", "KEY="+canary+"\n")
			wantRefused(t, run(t, w.session("true", tc.flag, tc.mount)), tc.opens)
		})
	}
}

func TestAMountBesideWhatIsKeptWorks(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, "project/docs/page", "page\n")
	wantEqual(t, w.inside(t, "cat /mnt/docs/page; echo more >>/mnt/docs/page; cat docs/page", "--mount-rw", "docs:/mnt/docs"), "page\npage\nmore\n")
}

// What is made where two given folders overlap is reported once, and a repository there becomes the user's.
func TestAGivenFolderLiesInAnother(t *testing.T) {
	for name, tc := range map[string]struct {
		project string
		flags   []string
	}{
		"both are mounted":            {"project", []string{"--mount-rw", "~/given/part", "--mount-rw", "~/given"}},
		"it is the project's outside": {"given/part", []string{"--mount-rw", "~/given"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, "given/part/file", "x")
			w.project = w.folder(t, tc.project)
			const script = "cd ~/given/part; git init -q made; touch Makefile; " +
				"git -C made -c user.name=a -c user.email=a@b.example commit -q --allow-empty -m inside"
			got := run(t, w.claudebox(slices.Concat([]string{"shell", "--yes"}, tc.flags, []string{"--", "bash", "-ec", script})...))
			if got.status != 0 || strings.Count(got.stderr, "Makefile ") != 1 || strings.Contains(got.stderr, "held back") {
				t.Errorf("status %d: %s", got.status, got.stderr)
			}
			expect.Contains(t, w.git(t, "given/part/made", "log", "--format=%s"), "inside")
		})
	}
}

// An agent that was given a folder turns a part of it into a link; the next
// session takes it for what it was.
func TestALinkThatAnAgentCouldHaveMadeIsApprovedOfOnce(t *testing.T) {
	w := newWorld(t)
	w.write(t, "given/part/file", "part\n")
	w.write(t, "private/diary", "dear\n")
	w.write(t, "other/diary", "other\n")
	w.inside(t, `mv ~/given/part ~/given/old; ln -s ../private ~/given/part`, "--mount-rw", "~/given")
	flags := []string{"--mount-ro", "~/given/part:/mnt/part"}
	wantRefused(t, run(t, w.session("cat /mnt/part/diary", flags...)), "it is reached by the link "+w.path("given/part")+", which an agent could have made")
	never := append(flags, "--profile", w.write(t, ".claudebox/profiles/silent.yaml", "extends: default\nconfirm: never\n"))
	asked := w.claudebox(append([]string{"shell"}, append(never, "--", "true")...)...)
	wantRefused(t, run(t, asked), "which an agent could have made")

	// a person who is asked sees where it leads, and says yes
	asks := w.claudebox(append(append([]string{"shell"}, flags...), "--", "cat", "/mnt/part/diary")...)
	if shown := atTerminal(t, asks, "y\n"); !strings.Contains(shown, "private") || !strings.Contains(shown, "dear") {
		t.Errorf("shown:\n%s", shown)
	}
	wantEqual(t, succeedWarned(t, w.session("cat /mnt/part/diary", flags...), "which an agent could have made"), "dear\n")
	w.inside(t, `ln -sfn ../other ~/given/part`, "--mount-rw", "~/given")
	wantRefused(t, run(t, w.session("cat /mnt/part/diary", flags...)), "which an agent could have made")

	// one that no agent can have made needs no word
	w.link(t, "private", "mine")
	wantEqual(t, w.inside(t, "cat /mnt/mine/diary", "--mount-ro", "~/mine:/mnt/mine"), "dear\n")
}

// TestATokenInAScriptOfTheUsersOwnIsNotInside: it is named, with --yes, too, and what only looks like one enters.
func TestATokenInAScriptOfTheUsersOwnIsNotInside(t *testing.T) {
	w := newWorld(t)
	token := "ghp_" + "kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO"
	w.write(t, ".claude/skills/deploy/SKILL.md", "push with "+token+"\n")
	w.write(t, ".claude/skills/deploy/run.py", "T = '"+token+"'\n")
	w.write(t, ".claude/hooks/big.js", strings.Repeat("a=1;", 1<<20)+"t='"+token+"'")
	w.write(t, ".claude/commands/plain.md", "AKIAIOSFODNN7EXAMPLE is no key, nor is Bearer your_access_token\n")
	const login = "the login of codex"
	w.write(t, ".codex/auth.json", login)
	must.Do(t, os.Link(w.path(".codex/auth.json"), w.path(".claude/skills/deploy/notes.md")))
	w.write(t, ".claude/CLAUDE.md", "@imported.md\n")
	must.Do(t, os.Link(w.path(".codex/auth.json"), w.path(".claude/imported.md")))
	must.Do(t, syscall.Mkfifo(w.path(".claude/skills/pipe"), 0o600))
	w.write(t, "elsewhere/tool.py", "T = '"+token+"'\n")
	must.Do(t, os.Symlink(w.path("elsewhere/tool.py"), w.path(".claude/hooks/tool.py")))
	w.write(t, "shared/deep/t.py", "T = '"+token+"'\n")
	must.Do(t, os.Symlink(w.path("shared"), w.path(".claude/hooks/all"))) // what is hidden lies in both folders
	must.Do(t, os.Symlink(w.path("shared/deep"), w.path(".claude/hooks/deep")))
	for range 2 { // the second time by what the first has kept
		inside := run(t, w.session("cd ~/.claude; cat skills/deploy/* hooks/* hooks/*/* hooks/all/deep/* commands/* imported.md 2>/dev/null || true")).stdout
		if strings.Contains(inside, token) || strings.Contains(inside, login) || !strings.Contains(inside, "is no key") {
			t.Errorf("inside: %q", inside)
		}
	}
	for what, text := range map[string]string{
		"plan": succeed(t, w.claudebox("plan")), "--yes": run(t, w.session("true")).stderr,
	} {
		flat := oneLine(text)
		for _, want := range []string{
			"SKILL.md (a GitHub personal token)", "run.py (a GitHub personal token)", "hooks/big.js (a GitHub personal token) looks secret", "your hook tool.py does not enter",
			"notes.md (another name of ~/.codex/auth.json)", "imported.md does not enter: it is, or holds, another name of ~/.codex/auth.json",
		} {
			if !strings.Contains(flat, want) {
				t.Errorf("%s lacks %q:\n%s", what, want, text)
			}
		}
		if strings.Contains(text, token) || strings.Contains(flat, "plain.md") {
			t.Errorf("%s: %s", what, text)
		}
	}
}

// Skills and plugins bring keys of their own along.
func TestASecretFileOfTheUsersSkillsOrPluginsIsNotInside(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".claude/skills/deploy/.env", "KEY="+canary+"\n")
	w.write(t, ".claude/skills/deploy/token.txt", canary+"\n")
	w.write(t, ".claude/skills/deploy/SKILL.md", "deploy\n")
	w.write(t, ".claude/plugins/m/.git/config", "[remote \"origin\"]\n\turl = https://u:"+canary+"@h/x\n")
	w.write(t, ".claude/plugins/m/.git/credentials", "https://u:"+canary+"@h\n")
	w.write(t, ".claude/plugins/m/.git/git-crypt/keys/default", canary)
	const look = `cat ~/.claude/skills/deploy/* ~/.claude/skills/deploy/.env; grep -r . ~/.claude/plugins/m/.git`
	const told = ".claude/skills/deploy/.env, "
	if got := succeedWarned(t, w.session(look), told); strings.Contains(got, canary) || !strings.Contains(got, "deploy\n") || !strings.Contains(got, "https://h/x") {
		t.Errorf("inside: %s", got)
	}
	expect.Contains(t, oneLine(succeed(t, w.claudebox("plan"))), told, "look secret and do not enter")
	file := w.profile(t, "show: [.claude/skills/deploy/.env]")
	got := succeedWarned(t, w.session(`cat ~/.claude/skills/deploy/.env`, "--profile", file), ".claude/skills/deploy/token.txt (a secret) looks secret")
	wantEqual(t, got, "KEY="+canary+"\n")
}

func TestASecretFileOfAMountedFolderIsNotInside(t *testing.T) {
	w := newWorld(t)
	w.write(t, "data/.env", "KEY="+canary+"\n")
	w.write(t, "data/table.csv", "1\n")
	w.write(t, "data/deep/.env", "KEY="+canary+"\n")
	for _, flags := range [][]string{
		{"--mount-ro", w.path("data")}, {"--mount-rw", w.path("data")}, {"--mount-ro", w.path("data"), "--mount-ro", w.path("data/deep")},
	} {
		if got := w.inside(t, `cat ~/data/table.csv ~/data/.env ~/data/deep/.env`, flags...); got != "1\n" {
			t.Errorf("%q: inside: %s", flags, got)
		}
	}
	shown := w.profile(t, "mounts: [{host: ~/data, mode: ro}]", "show: [data/.env]")
	wantEqual(t, w.inside(t, `cat ~/data/.env`, "--profile", shown), "KEY="+canary+"\n")
	granted := w.profile(t, "mounts: [{host: ~/data, mode: ro, secret: true}]")
	told := succeedWarned(t, w.session(`cat ~/data/.env`, "--profile", granted), readable+"~/data\n")
	wantEqual(t, told, "KEY="+canary+"\n")
}

// The name of the mounted folder itself may be what tells: in ~/.bundle lies a file "config".
func TestALoginInAMountedFolderOfAPackageManagerIsNotInside(t *testing.T) {
	w := newWorld(t)
	const password = "hunter2x9"
	for name, content := range map[string]string{
		".bundle/config": "BUNDLE_GEMS__CORP__COM: \"me:" + password + "\"\n", ".config/go/env": "GOPROXY=https://me:" + password + "@proxy.corp\n",
		".gradle/init.d/mirror.gradle": "credentials { username \"me\"; password \"" + password + "\" }\n", ".config/pnpm/rc": "//npm.corp/:_authToken=" + password + "\n",
		".sbt/1.0/credentials.sbt": "Credentials(\"r\", \"h\", \"me\", \"" + password + "\")\n", ".config/hatch/config.toml": "[publish.index]\nauth = \"" + password + "\"\n",
		".lein/profiles.clj": "{:auth {:username \"me\" :password \"" + password + "\"}}\n", ".cabal/config": "url: https://me:" + password + "@hackage.corp/\n",
	} {
		w.write(t, name, content)
		folder := filepath.Dir(name)
		w.write(t, folder+"/plain.txt", "plain\n")
		got := run(t, w.session("cat ~/"+folder+"/*", "--mount-ro", "~/"+folder))
		if strings.Contains(got.stdout+got.stderr, password) || got.stdout != "plain\n" || !strings.Contains(oneLine(succeed(t, w.claudebox("plan", "--mount-ro", "~/"+folder))), "looks secret and does not enter") {
			t.Errorf("%s: %s%s", name, got.stdout, got.stderr)
		}
	}
}

// What package managers and shells read has logins of any shape, and claudebox itself offers to mount such files.
//
// Promise: no secret place.
func TestALoginInAFileThatIsMountedByItselfIsNotInside(t *testing.T) {
	w := newWorld(t)
	const password = "hunter2x9"
	for name, content := range map[string]string{
		".config/pip/pip.conf": "[global]\nindex-url = https://me:" + password + "@pypi.corp/simple\n",
		".config/uv/uv.toml":   "[[index]]\nurl = \"https://me:" + password + "@pypi.corp/simple\"\n",
		".condarc":             "channels: [https://conda.corp/t/" + password + "/main]\n",
		".m2/settings.xml":     "<server><password>" + password + "</password></server>\n",
		".bundle/config":       "BUNDLE_GEMS__CORP__COM: \"me:" + password + "\"\n",
		".bashrc":              "export CORP_TOKEN=" + password + "\n",
		".curlrc":              "user = me:" + password + "\n",
		"plain.txt":            "use " + canary + " there\n",
	} {
		w.write(t, name, content)
		granted := w.profile(t, "mounts: [{host: ~/"+name+", mode: ro}]")
		for _, flags := range [][]string{{"--mount-ro", "~/" + name}, {"--mount-rw", "~/" + name}, {"--profile", granted}} {
			got := run(t, w.session("cat ~/"+name, flags...))
			if strings.Contains(got.stdout+got.stderr, password) || !strings.Contains(got.stderr, "secret: true") {
				t.Errorf("%s by %q: %s%s", name, flags, got.stdout, got.stderr)
			}
		}
		granted = w.profile(t, "mounts: [{host: ~/"+name+", mode: ro, secret: true}]")
		if got := run(t, w.session("cat ~/"+name, "--profile", granted)); got.stdout != content {
			t.Errorf("%s was granted: %s%s", name, got.stdout, got.stderr)
		}
	}
	offers := oneLine(succeed(t, w.claudebox("plan")))
	expect.Contains(t, offers, "as logins lie there: ~/.config/pip/pip.conf, ~/.config/uv/uv.toml, ~/.condarc")
	if strings.Contains(offers, "--mount-ro ~/") {
		t.Errorf("a file with a login is offered: %s", offers)
	}
	for name, content := range map[string]string{
		".config/pip/pip.conf": "[global]\nindex-url = https://pypi.corp/simple\n", ".bashrc": "export TOKEN=$(pass show x)\nalias k=kubectl\n",
		".condarc": "channels: [https://conda.corp/main]\n", "manual.txt": "connect to postgres://app:secret@localhost/db\n",
	} {
		w.write(t, name, content)
		wantEqual(t, w.inside(t, "cat ~/"+name, "--mount-ro", "~/"+name), content)
	}
}

// Promise: no secret place.
func TestASecretEntersWhenAProfileSaysSoOfExactlyIt(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".aws/credentials", "key\n")
	w.write(t, ".aws/config", "config\n")
	file := w.profile(t, "mounts: [{host: ~/.aws/credentials, sandbox: ~/.aws/credentials, mode: ro, secret: true}]")
	told := readable + "~/.aws/credentials\n"
	wantEqual(t, succeedWarned(t, w.session(`cat ~/.aws/credentials; ls ~/.aws`, "--profile", file), told),
		"key\ncredentials\n")
}

// Promise: no secret place.
func TestASecretPathIsMountedByAProfileThatDoesNotCallItSecret(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".ssh/id_ed25519", "key\n")
	for _, host := range []string{"~/.ssh", "~/.ssh/id_ed25519", w.path(".ssh/id_ed25519")} {
		file := w.profile(t, "mounts: [{host: "+host+", sandbox: ~/keys, mode: ro}]")
		got := run(t, w.session("cat ~/keys ~/keys/*", "--profile", file))
		if got.status != 125 || strings.Contains(got.stdout, "key") || !strings.Contains(got.stderr, "secret: true") {
			t.Errorf("%s: status %d, %s%s", host, got.status, got.stdout, got.stderr)
		}
	}
}

// What is below ~/.cache is the project's own inside, and `why` offers the user's: each such mount was refused.
func TestAFolderOfTheUsersCacheIsMountedAsWhySays(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".cache/ms-playwright/chrome", "a browser\n")
	w.write(t, ".cache/models/hub/model", "a model\n")
	at := w.path(".cache/ms-playwright")
	_, flag, _ := strings.Cut(oneLine(run(t, w.claudebox("why", at)).stdout), "change: `")
	flag, _, _ = strings.Cut(flag, "`")
	kind, folder, _ := strings.Cut(strings.ReplaceAll(flag, "~", w.home), " ")
	wantEqual(t, w.inside(t, "cat ~/.cache/ms-playwright/chrome", kind, folder), "a browser\n")
	w.write(t, ".cache/file", "") // for which the cache inside would need a file of its own
	w.link(t, "nowhere", "broken")
	for name, want := range map[string]string{".cache/file": "`--mount-ro ~/.cache/file:INSIDE`", "broken": "once it is there, `--mount-ro ~/broken`"} {
		expect.Contains(t, oneLine(run(t, w.claudebox("why", w.path(name))).stdout), want)
	}
	file := w.profile(t, "mounts: [{host: ~/.cache/models/hub, mode: rw}, {host: ~/.cache/none, mode: ro, optional: true}]")
	w.inside(t, "echo more >>~/.cache/models/hub/model; echo own >~/.cache/own", "--profile", file)
	wantEqual(t, w.read(t, ".cache/models/hub/model"), "a model\nmore\n")
	if exists(w.path(".cache/own")) {
		t.Error("the cache itself is the user's")
	}
	file = w.profile(t, "mounts: [{host: ./weights, sandbox: ~/.cache/weights, mode: ro}]")
	w.write(t, "project/weights/w", "heavy\n")
	wantEqual(t, w.inside(t, "cat ~/.cache/weights/w", "--profile", file), "heavy\n")
}

// CVE-2026-87766: bwrap before 0.12 made mount points through a link that an
// earlier session left in the project, on the host.
func TestAPlantedLinkAtAMountPointLeadsNowhere(t *testing.T) {
	for name, tc := range map[string]struct{ plant, destination string }{
		"the mount point is a link to a folder":  {`ln -s "$HOME/.config" evil`, "evil"},
		"a parent of the mount point is a link":  {`ln -s /oldroot"$HOME"/.config evil`, "evil/autostart"},
		"a link by another name of the host's":   {`ln -s ../.config evil`, "evil/autostart"},
		"the link leads to a file":               {`ln -s ../.bashrc evil`, "evil"},
		"the link leads into a folder inside":    {`mkdir real; ln -s real evil`, "evil"},
		"a parent is a link to a folder inside":  {`mkdir -p real/x; ln -s real evil`, "evil/x"},
		"the link leads to what /proc tells":     {`ln -s /proc/self/root evil`, "evil/x"},
		"the mount point was removed":            {`rmdir there`, "there"},
		"the mount point became a file":          {`rmdir there; touch there`, "there"},
		"the mount point became a named pipe":    {`rmdir there; mknod there p`, "there"},
		"the folder above was moved out of view": {`mv deep other; mkdir deep`, "deep/there"},
		"the link is in the project's cache":     {`ln -s "$HOME/.config" ~/.cache/evil`, "~/.cache/evil/x"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, "data/file", "data")
			w.write(t, ".config/own", "own")
			w.write(t, ".bashrc", "own")
			w.folder(t, "project/there")
			w.folder(t, "project/deep/there")
			w.inside(t, tc.plant)
			got := run(t, w.session("true", "--mount-ro", "~/data:"+tc.destination))
			if got.status != 125 {
				t.Errorf("status %d, %s", got.status, got.stderr)
			}
			entries, err := os.ReadDir(w.path(".config"))
			if err != nil || len(entries) != 1 {
				t.Errorf("on the host ~/.config holds %v, %v", entries, err)
			}
			wantEqual(t, w.read(t, ".bashrc"), "own")
		})
	}
}

// Between two sessions an agent swaps the folder that a mount of the profile
// takes from the project for a link out of it.
func TestASourceSwappedForALinkIsRefused(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".ssh/id", canary)
	w.folder(t, "project/out")
	file := w.profile(t, "mounts: [{host: ~/project/out, sandbox: /mnt/out, mode: ro}]")
	w.inside(t, `rmdir out; ln -s ../.ssh out`, "--profile", file)
	wantRefused(t, run(t, w.session("cat /mnt/out/id", "--profile", file)), "a link in the project leads out")
}

// The agent owns its home; what it leaves there must not lead claudebox out of
// it at the next launch.
func TestALinkPlantedInTheAgentsHomeLeadsNowhere(t *testing.T) {
	for name, plant := range map[string]string{
		"in place of its settings":     `rm -f ~/.claude/settings.json; ln -s ../../../../.bashrc ~/.claude/settings.json`,
		"in place of its state":        `rm -f ~/.claude/.claude.json; ln -s "$HOME"/.bashrc ~/.claude/.claude.json`,
		"in place of its memory":       `rm -f ~/.claude/CLAUDE.md; ln -s "$HOME"/.bashrc ~/.claude/CLAUDE.md`,
		"in place of a cache":          `rm -rf ~/.cache/home-.npm; ln -s "$HOME"/.config ~/.cache/home-.npm`,
		"in place of an imported list": `rm -rf ~/.claude/commands; ln -s "$HOME"/.config ~/.claude/commands`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, ".bashrc", "own")
			w.write(t, ".config/own", "own")
			w.write(t, ".claude/settings.json", `{"model":"opus"}`)
			w.write(t, ".claude/commands/c.md", "command")
			w.inside(t, plant)
			got := run(t, w.session("cat ~/.claude/* ~/.cache/*/own 2>/dev/null || true"))
			if strings.Contains(got.stdout, "own") || got.status != 0 && got.status != 125 {
				t.Errorf("status %d, stdout %q, %s", got.status, got.stdout, got.stderr)
			}
			wantEqual(t, w.read(t, ".bashrc")+w.read(t, ".config/own"), "ownown")
			if entries, _ := filepath.Glob(w.path(".config/*")); len(entries) != 1 {
				t.Errorf("on the host ~/.config holds %q", entries)
			}
		})
	}
}

// U4: folders beside the project that `worktrees` names are there and guarded
// like it; a link of that name, and a folder that no pattern names, are not.
func TestWorktreesBesideTheProjectAreMounted(t *testing.T) {
	w := newWorld(t)
	w.git(t, "project", "init", "-q")
	w.write(t, "project/file", "a\n")
	w.git(t, "project", "add", ".")
	w.git(t, "project", "commit", "-qm", "one")
	w.git(t, "project", "worktree", "add", "-q", "../wt-a")
	w.write(t, ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n")
	w.write(t, "wt-a/.env", "A=secret")
	w.write(t, "private/diary", "dear")
	w.link(t, w.path("private"), "wt-link")
	file := w.profile(t, "worktrees: [../wt-*]")
	got := w.inside(t, `cd ../wt-a; cat .env; git log --oneline | wc -l; echo b >file; git commit -qam two && git log --oneline | wc -l; ls -d ../wt-*; cat ../private/diary 2>/dev/null || :`, "--profile", file)
	wantEqual(t, w.normal(got), "1\n2\n../wt-a\n")
}

// U4: folders that an agent keeps in its home are those that the profile says.
func TestFoldersOfTheAgentsHomeAreKept(t *testing.T) {
	w := newWorld(t)
	file := w.profile(t, "agent: {command: [bash], home: {.own/data: persist, .other: ephemeral}}")
	w.inside(t, "echo kept >~/.own/data/file; mkdir -p ~/.other; echo gone >~/.other/file", "--profile", file)
	wantEqual(t, w.inside(t, "cat ~/.own/data/file; ls -A ~/.other 2>/dev/null || echo none", "--profile", file), "kept\nnone\n")
}

// Of D25: a file that was given by itself, and that the user's shell runs, was changed in silence.
func TestAGivenFileThatTheAgentChangedIsReported(t *testing.T) {
	w := newWorld(t)
	w.write(t, ".bashrc", "mine\n")
	w.write(t, "read.sh", "mine\n")
	got := run(t, w.claudebox("shell", "--yes", "--mount-rw", "~/.bashrc", "--mount-rw", "~/read.sh", "--report-json", w.path("report"), "--",
		"bash", "-c", "echo agent >>~/.bashrc; cat ~/read.sh >/dev/null; touch ~/read.sh"))
	if got.status != 0 || !strings.Contains(got.stderr, "changed  ~/.bashrc  your shell runs it") || strings.Contains(got.stderr, "read.sh") {
		t.Errorf("status %d\n%s", got.status, got.stderr)
	}
	if report := w.read(t, "report"); !strings.Contains(report, `"path": "~/.bashrc"`) {
		t.Errorf("--report-json: %s", report)
	}
}

// ~/.agents was taken for a place of age keys: a launch with ~/.claude/skills linked there was refused, and single
// skills linked there did not enter. Links of projects to it led nowhere.
func TestSkillsThatAgentsShareEnter(t *testing.T) {
	for name, links := range map[string]map[string]string{
		"all":                  {".claude/skills": "../.agents/skills"},
		"one":                  {".claude/skills/z": "../../.agents/skills/z"},
		"those of a project":   {"project/.claude/skills": "~/.agents/skills"},
		"none is linked there": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, ".agents/skills/z/SKILL.md", "shared\n")
			at := "~/.agents/skills"
			for link, target := range links {
				w.link(t, strings.Replace(target, "~", w.home, 1), link)
				at = "~/" + strings.TrimSuffix(link, "/z")
			}
			got := run(t, w.session("cat "+at+"/z/SKILL.md; echo x 2>&- >~/.agents/skills/x"))
			if got.stdout != "shared\n" || got.status == 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}
