package profile_test

import (
	"strings"
	"testing"

	"claudebox/internal/profile"
)

// Each document, and everything that is said about it: FILE:LINE:COL, what
// is wrong, and behind the arrow what to do.
var wrong = map[string]struct{ src, want string }{
	"a misspelt key is named": {
		"pakages: [hello]",
		`work.yaml:1:1: unknown key "pakages" in profile; did you mean "packages"?`,
	},
	"a shortened key is named": {
		"extra_env: [A]",
		`work.yaml:1:1: unknown key "extra_env" in profile; did you mean "extra_env_passthrough"?`,
	},
	"a key that is near none gets the list": {
		"nix: {sandbox: off}",
		`work.yaml:1:7: unknown key "sandbox" in nix; expected daemon, store`,
	},
	"a key said twice names the first": {
		"name: a\n# b\nname: b",
		`work.yaml:3:1: duplicate key "name" in profile, first said in line 1 -> keep one of them`,
	},
	"a variable said twice names the first": {
		"env:\n  A: 1\n  A: 2",
		`work.yaml:3:3: duplicate key "A" in env, first said in line 2 -> keep one of them`,
	},
	"a list in the place of the profile": {
		"- name: work",
		`work.yaml:1:1: profile: expected a mapping, found a list`,
	},
	"a text in the place of the profile": {
		"work",
		`work.yaml:1:1: profile: expected a mapping, found text`,
	},
	"a list that is a single text": {
		"packages: hello",
		`work.yaml:1:11: packages: expected a list, found text -> write a list: [hello]`,
	},
	"a number where a package is meant": {
		"packages: [1.10]",
		`work.yaml:1:12: packages: expected a package, found the number 1.10`,
	},
	"a date where text is meant": {
		"description: 2026-01-01",
		`work.yaml:1:14: description: expected one line of text, found the date 2026-01-01 -> quote it: "2026-01-01"`,
	},
	"a truth value where text is meant": {
		"name: true",
		`work.yaml:1:7: name: expected a profile name, found the truth value true -> quote it: "true"`,
	},
	"a version of nixpkgs is a number": {
		"nixpkgs: 25.05",
		`work.yaml:1:10: nixpkgs: expected "pinned", a store path, or a locked flake reference, found the number 25.05`,
	},
	"yes is text in YAML 1.2": {
		"mounts: [{host: /srv, optional: yes}]",
		`work.yaml:1:33: optional: expected true or false, found text -> write true`,
	},
	"false in the place of off": {
		"compat: false",
		`work.yaml:1:9: compat: expected nix-ld or off, found the truth value false -> write off`,
	},
	"nothing in the place of a word must not become the default": {
		"network:\nstate: ~",
		`work.yaml:1:9: network: expected full, inet, allow or none, or a mapping, found nothing -> write a value, or remove the key
work.yaml:2:8: state: expected project, shared, ephemeral or host, found nothing -> write a value, or remove the key`,
	},
	"a tilde is nothing to YAML": {
		"mounts: [{host: ~}]",
		"work.yaml:1:17: host: expected a path, found nothing -> write ~/folder: `~` alone is YAML for nothing",
	},
	"an empty variable": {
		"env: {A: , B: ~}",
		`work.yaml:1:10: A: expected text, found nothing -> write "" for an empty value, or remove the key
work.yaml:1:15: B: expected text, found nothing -> write "" for an empty value, or remove the key`,
	},
	"a variable that is a list": {
		"env: {A: [1, 2]}",
		`work.yaml:1:10: A: expected text, found a list`,
	},
	"binary data": {
		"env: {A: !!binary aGVsbG8=}",
		`work.yaml:1:10: A: unknown tag "!!binary" -> remove the tag`,
	},
	"a word that is none of the set": {
		"network: inte\nstate: projekt\nconfirm: ask",
		`work.yaml:1:10: network: unknown word "inte"; expected full, inet, allow or none -> write inet
work.yaml:2:8: state: unknown word "projekt"; expected project, shared, ephemeral or host -> write project
work.yaml:3:10: confirm: unknown word "ask"; expected changed, always or never`,
	},
	"ports in every wrong way": {
		"ports: {in: [0x1F90, 010, 3_000, 0, 65536, -1, '80', 8080:80, 1e3, 99999999999999999999]}",
		`work.yaml:1:14: in: 0x1F90 is not a plain number -> write it in decimal, without leading zeros
work.yaml:1:22: in: 010 is not a plain number -> write it in decimal, without leading zeros
work.yaml:1:27: in: 3_000 is not a plain number -> write it in decimal, without leading zeros
work.yaml:1:34: in: 0 is out of range; expected 1 to 65535
work.yaml:1:37: in: 65536 is out of range; expected 1 to 65535
work.yaml:1:44: in: -1 is out of range; expected 1 to 65535
work.yaml:1:48: in: expected a whole number, found text -> remove the quotes
work.yaml:1:54: in: expected a whole number, found text
work.yaml:1:63: in: expected a whole number, found the number 1e3
work.yaml:1:68: in: expected a whole number, found the number 99999999999999999999`,
	},
	"a port of the host without a network": {
		"network: none\nports: {out: [8931]}",
		`work.yaml:2:14: out: ports of the host need a network, and the tier is none -> write network: inet, or remove ports.out`,
	},
	"a port that leads both ways": {
		"ports: {in: [3000, 8080], out: [8931, 8080]}",
		`work.yaml:1:39: out: port 8080 leads inside too, by ports.in: what comes for it would be carried round and round -> keep one of them, or have one of the two programs take another port`,
	},
	"an empty allow list": {
		"network: {tier: allow, allow: []}",
		`work.yaml:1:31: allow: the list is empty; expected at least one entry`,
	},
	"an allow list for another tier": {
		"network: {tier: inet, allow: [github.com]}",
		`work.yaml:1:30: allow: a list of hosts is for tier allow, and the tier is inet -> write tier: allow, or remove the list`,
	},
	"exceptions for another tier": {
		"network: {tier: none, except: [10.0.0.1]}",
		`work.yaml:1:31: except: exceptions are for tier inet, and the tier is none -> write tier: inet, or remove the list`,
	},
	"exceptions that cannot be": {
		"network: {tier: inet, except: [\"127.0.0.1:5432\", \"[fd00::1]]:80\"]}",
		`work.yaml:1:32: except: 127.0.0.1:5432 cannot be opened: it is this machine itself -> write an address or a network, with a port if need be: 192.168.1.20:5432
work.yaml:1:50: except: "[fd00::1]]:80" is neither [ADDRESS] nor [ADDRESS]:PORT -> write an address or a network, with a port if need be: 192.168.1.20:5432`,
	},
	"a proxy for another tier": {
		"network: {tier: inet, via: \"http://proxy.corp:3128\"}",
		`work.yaml:1:28: via: a proxy looks names up itself, so it is for the listed hosts of tier allow, and the tier is inet -> write tier: allow with the hosts, or remove via`,
	},
	"a proxy's password in a profile": {
		"network: {tier: allow, allow: [x.org], via: \"http://me:hunter2@proxy.corp:3128\"}",
		`work.yaml:1:45: via: a proxy's user and password cannot be named here, where everybody reads them -> write http://HOST:PORT or socks5://HOST:PORT`,
	},
	"a preset that is private": {
		"network: {tier: allow, allow: [{host: github, private: true}]}",
		`work.yaml:1:39: allow: github is a preset, and none of its hosts is private -> name the hosts`,
	},
	"a private host without a name": {
		"network: {tier: allow, allow: [{private: true}]}",
		`work.yaml:1:32: allow: key "host" is missing`,
	},
	"an allow list without a tier must not mean the full network": {
		"network: {allow: [github.com]}",
		`work.yaml:1:18: allow: a list of hosts is for tier allow, and the tier is full -> write tier: allow, or remove the list`,
	},
	"hosts in every wrong way": {
		`network: {tier: allow, allow: ["*", "*.com", "a.*.com", "https://x.org/y", "x.org/y", "x.org.", "x.org:0", "x.org:http",
  "10.0.0.1", "10.0.0.1:80", "[::1]:80", "bücher.de", "a_b.org", "-a.org", "githab", "intranet", "x..org", ""]}`,
		`work.yaml:1:32: allow: "*" is not a host; expected NAME.DOMAIN, *.NAME.DOMAIN, and a port if need be
work.yaml:1:37: allow: "*.com" covers a whole top-level domain -> name the domain: *.example.com
work.yaml:1:46: allow: "a.*.com" is not a host; expected NAME.DOMAIN, *.NAME.DOMAIN, and a port if need be
work.yaml:1:57: allow: "https://x.org/y" is a URL; expected a host -> write x.org
work.yaml:1:76: allow: "x.org/y" has a path; only whole hosts can be allowed -> write x.org
work.yaml:1:87: allow: "x.org." is not a host -> remove the dot at the end
work.yaml:1:97: allow: "x.org:0": "0" is not a port; expected 1 to 65535
work.yaml:1:108: allow: "x.org:http": "http" is not a port; expected 1 to 65535
work.yaml:2:3: allow: "10.0.0.1" is an address; expected a host name -> name the host
work.yaml:2:15: allow: "10.0.0.1:80" is an address; expected a host name -> name the host
work.yaml:2:30: allow: "[::1]:80" is an address; expected a host name -> name the host
work.yaml:2:42: allow: "bücher.de" is not a host -> write the name in its ASCII form (xn--…)
work.yaml:2:55: allow: "a_b.org" is not a host; expected NAME.DOMAIN, *.NAME.DOMAIN, and a port if need be
work.yaml:2:66: allow: "-a.org" is not a host; expected NAME.DOMAIN, *.NAME.DOMAIN, and a port if need be
work.yaml:2:76: allow: "githab" is neither a preset (anthropic, gemini, github, go, nixpkgs, npm, openai, opencode, pypi) nor a host with a domain -> write github
work.yaml:2:86: allow: "intranet" is neither a preset (anthropic, gemini, github, go, nixpkgs, npm, openai, opencode, pypi) nor a host with a domain
work.yaml:2:98: allow: "x..org" is not a host; expected NAME.DOMAIN, *.NAME.DOMAIN, and a port if need be
work.yaml:2:108: allow: the text is empty -> write a value, or remove the key`,
	},
	"git hosts that are one": {
		"git: {hosts: {github.com: GH_TOKEN, GitHub.com: X}}",
		`work.yaml:1:37: hosts: github.com is named in work:1 too -> keep one of them`,
	},
	"packages in every wrong way": {
		`packages: ["nixpkgs#hello", nodejs@20, hello@latest, "3.12", "a b", a..b, hello^, "hello^Out", /nix/store/x, "-rf", ""]`,
		`work.yaml:1:12: packages: "nixpkgs#hello" is not an attribute of nixpkgs -> write it without nixpkgs#
work.yaml:1:29: packages: "nodejs@20" is not an attribute of nixpkgs -> find the attribute of that version: nodejs_20, python312
work.yaml:1:40: packages: "hello@latest" is not an attribute of nixpkgs -> write hello
work.yaml:1:54: packages: "3.12" is not an attribute of nixpkgs
work.yaml:1:62: packages: "a b" is not an attribute of nixpkgs
work.yaml:1:69: packages: "a..b" is not an attribute of nixpkgs
work.yaml:1:75: packages: "hello^": "" is not the name of an output
work.yaml:1:83: packages: "hello^Out": "Out" is not the name of an output
work.yaml:1:96: packages: "/nix/store/x" is not an attribute of nixpkgs -> name the attribute of nixpkgs
work.yaml:1:110: packages: "-rf" is not an attribute of nixpkgs
work.yaml:1:117: packages: the text is empty -> write a value, or remove the key`,
	},
	"nixpkgs that is not locked": {
		"nixpkgs: github:NixOS/nixpkgs/nixos-unstable",
		`work.yaml:1:10: nixpkgs: "github:NixOS/nixpkgs/nixos-unstable" is not locked; expected a reference with a revision or narHash -> add the revision: github:NixOS/nixpkgs/REV, of 40 hexadecimal digits`,
	},
	"nixpkgs by an owner with a name like a revision": {
		"nixpkgs: github:391b592eb44808b3bd0cb80bb71b63a5a118b8bb/nixpkgs/main",
		`work.yaml:1:10: nixpkgs: "github:391b592eb44808b3bd0cb80bb71b63a5a118b8bb/nixpkgs/main" is not locked; expected a reference with a revision or narHash -> add the revision: github:NixOS/nixpkgs/REV, of 40 hexadecimal digits`,
	},
	"nixpkgs that is a word": {
		"nixpkgs: unstable",
		`work.yaml:1:10: nixpkgs: "unstable" is not a flake reference -> write pinned, or a reference with a revision`,
	},
	"nixpkgs that is a folder": {
		"nixpkgs: /home/me/nixpkgs",
		`work.yaml:1:10: nixpkgs: "/home/me/nixpkgs" is not in the store -> copy it to the store first: nix store add-path`,
	},
	"variables in every wrong way": {
		"extra_env_passthrough: [A=b, $B, C-D, 1E, PATH, HOME, 'f f', '']\nenv: {SHELL: /bin/sh}",
		`work.yaml:1:25: extra_env_passthrough: A=… has a value (1 bytes) -> name the variable only; constants go under env
work.yaml:1:30: extra_env_passthrough: "$B" is not the name of a variable -> write it without the $
work.yaml:1:34: extra_env_passthrough: "C-D" is not the name of a variable; expected letters, digits and underscores
work.yaml:1:39: extra_env_passthrough: "1E" is not the name of a variable; expected letters, digits and underscores
work.yaml:1:43: extra_env_passthrough: PATH is made by claudebox and cannot be set -> use packages: to put programs on PATH
work.yaml:1:49: extra_env_passthrough: HOME is made by claudebox and cannot be set -> remove it; home is at the same path inside
work.yaml:1:55: extra_env_passthrough: "f f" is not the name of a variable; expected letters, digits and underscores
work.yaml:1:62: extra_env_passthrough: "" is not the name of a variable; expected letters, digits and underscores
work.yaml:2:7: env: SHELL is made by claudebox and cannot be set -> remove it; it is the bash of the sandbox`,
	},
	"a token in the place of a name is not shown": {
		"git: {hosts: {github.com: ghp_0123456789abcdefghijABCDEFGHIJ012345}}\nextra_env_passthrough: [sk-ant-api03-0123456789abcdef, npm_config_registry_of_2]",
		`work.yaml:1:27: github.com: a token stands where the name of a variable is expected -> put it into a variable, and name that
work.yaml:2:25: extra_env_passthrough: a token stands where the name of a variable is expected -> put it into a variable, and name that`,
	},
	"a variable that is constant and passes": {
		"env: {A: 1, B: 2}\nextra_env_passthrough: [A]\nagent: {env: [B]}",
		`work.yaml:2:25: A passes from the host, and is a constant in work:1 -> keep one of them
work.yaml:3:15: B passes from the host, and is a constant in work:1 -> keep one of them`,
	},
	"paths in every wrong way": {
		`mounts:
  - host: data
  - host: ../data
  - host: /srv/../etc
  - host: ~root/x
  - host: $HOME/x
  - host: ${XDG_DATA_HOME}/x
  - host: /srv/*.txt
  - host: ./
  - host: ""
  - host: "/a\nb"
  - host: "/a\0b"
  - {sandbox: /srv}
  - /srv`,
		`work.yaml:2:11: host: "data" is relative; expected a path that begins with /, ~/ or ./ (the project) -> write ~/data or ./data
work.yaml:3:11: host: "../data" holds a .. segment -> write the path out
work.yaml:4:11: host: "/srv/../etc" holds a .. segment -> write the path out
work.yaml:5:11: host: "~root/x": only your own home can be written with ~ -> write the path out, or ~/ for your own home
work.yaml:6:11: host: "$HOME/x": variables are not expanded in paths -> write ~/x
work.yaml:7:11: host: "${XDG_DATA_HOME}/x": variables are not expanded in paths -> write the path out
work.yaml:8:11: host: "/srv/*.txt" is a pattern; mounts take none -> name each path
work.yaml:9:11: host: "./" is the project, which is mounted anyway -> remove the mount
work.yaml:10:11: host: the text is empty -> write a value, or remove the key
work.yaml:11:11: host: "/a\nb" holds a control character or a line break
work.yaml:12:11: host: the text holds a NUL character
work.yaml:13:5: mounts: key "host" is missing
work.yaml:14:5: mounts: expected a mapping, found text`,
	},
	"mounts that show what must not be seen": {
		"mounts: [{host: /}, {host: \"~\"}, {host: /home/me}, {host: ~/.config, secret: true}, {host: /proc/1}, {host: /etc}]",
		`work.yaml:1:17: host: / holds ~/.ssh (SSH keys) -> mount the files and folders in it that are needed
work.yaml:1:28: host: ~ holds ~/.ssh (SSH keys) -> mount the files and folders in it that are needed
work.yaml:1:41: host: /home/me holds ~/.ssh (SSH keys) -> mount the files and folders in it that are needed
work.yaml:1:59: host: ~/.config holds ~/.config/gh (a GitHub token) -> mount the files and folders in it that are needed
work.yaml:1:92: host: /proc/1 shows the processes and devices of the host -> remove the mount; the sandbox has one of its own
work.yaml:1:109: host: /etc holds /etc/ssh (host keys) -> mount the files and folders in it that are needed`,
	},
	"mounts at places that are taken": {
		"mounts: [{host: /srv/a, sandbox: /nix/store/x}, {host: /srv/b, sandbox: ~/.claude/hooks}, {host: /srv/c, sandbox: /usr}, {host: /nix/store}]",
		`work.yaml:1:34: sandbox: /nix/store/x is in /nix, which claudebox makes inside -> choose another path inside
work.yaml:1:73: sandbox: ~/.claude/hooks is in ~/.claude, which claudebox makes inside -> choose another path inside
work.yaml:1:115: sandbox: /usr holds what the sandbox needs -> mount single files or folders
work.yaml:1:129: sandbox: /nix/store is in /nix, which claudebox makes inside -> choose another path inside`,
	},
	"mounts that conflict name each other": {
		"mounts:\n  - {host: /srv/a, sandbox: /data}\n  - {host: /srv/b, sandbox: /data/}\n  - {host: /srv/c}\n  - {host: /srv/c, mode: rw}",
		`work.yaml:3:5: mounts: /data is mounted differently in work:2 -> keep one of them, or tag the list with !replace
work.yaml:5:5: mounts: /srv/c is mounted differently in work:4 -> keep one of them, or tag the list with !replace`,
	},
	"a mount that is reported already conflicts with none": {
		"mounts: [{host: /srv/a, mode: rw}, {host: /srv/a, mode: r}]",
		`work.yaml:1:57: mode: unknown word "r"; expected ro or rw`,
	},
	"patterns in every wrong way": {
		`hide: [/etc, ../x, "a/../b", "!x", "[a", ""]
worktrees: [wt, /wt, ../../x, "../*", "../*/x", "../[a-z]*", "../a/../b"]`,
		`work.yaml:1:8: hide: "/etc" is absolute; expected a pattern relative to the project
work.yaml:1:14: hide: "../x" leaves the project
work.yaml:1:20: hide: "a/../b" leaves the project
work.yaml:1:30: hide: "!x": patterns are not negated by ! -> use show: to take a pattern away
work.yaml:1:36: hide: "[a": the bracket is not closed -> write \[ for the bracket itself
work.yaml:1:42: hide: the text is empty -> write a value, or remove the key
work.yaml:2:13: worktrees: "wt" is not beside the project; expected ../NAME
work.yaml:2:17: worktrees: "/wt" is not beside the project; expected ../NAME
work.yaml:2:22: worktrees: "../../x" is not beside the project; expected ../NAME
work.yaml:2:31: worktrees: "../*" names every folder beside the project -> begin the pattern with a name: ../wt-*
work.yaml:2:39: worktrees: "../*/x" names every folder beside the project -> begin the pattern with a name: ../wt-*
work.yaml:2:49: worktrees: "../[a-z]*" names every folder beside the project -> begin the pattern with a name: ../wt-*
work.yaml:2:62: worktrees: "../a/../b" is not beside the project; expected ../NAME`,
	},
	"agents in every wrong way": {
		"agent: {command: [], home: {/x: persist, ~/y: persist, ../z: persist, a//b: persist, .ok: keep}}",
		`work.yaml:1:18: command: the list is empty; expected at least one entry
work.yaml:1:29: home: "/x" is absolute; expected a folder below home
work.yaml:1:42: home: "~/y": the folder is below home anyway -> write it without ~/
work.yaml:1:56: home: "../z" is not a plain path below home -> write z
work.yaml:1:71: home: "a//b" is not a plain path below home -> write a/b
work.yaml:1:91: .ok: unknown word "keep"; expected persist or ephemeral`,
	},
	"an agent in the project": {
		"agent: {command: [./node_modules/.bin/codex, ./prompt]}",
		`work.yaml:1:19: command: "./node_modules/.bin/codex" is relative, and would lead into the project -> write the whole path, or the name alone`,
	},
	"an agent that is a command line": {
		"agent: codex --yolo",
		`work.yaml:1:8: agent: "codex --yolo" is a command, not the name of a program -> write agent: {command: [PROGRAM, WORD…]}`,
	},
	"names that are none": {
		"name: 'a/b'\ndescription: \"a\\tb\"\nmcp: {import: ['a b']}",
		`work.yaml:1:7: name: "a/b" is not a profile name; expected up to 64 letters, digits, dots, pluses, dashes and underscores
work.yaml:2:14: description: "a\tb" holds a control character or a line break
work.yaml:3:16: import: "a b" is not the name of an MCP server`,
	},
	"a long text is cut in messages": {
		"name: " + strings.Repeat("é", 100),
		`work.yaml:1:7: name: "` + strings.Repeat("é", 30) + `…" is not a profile name; expected up to 64 letters, digits, dots, pluses, dashes and underscores`,
	},
	"an unknown tag": {
		"packages: !append [a]\nname: !x y\nhide: !replace a\nagent: !replace {name: x}",
		`work.yaml:1:11: packages: unknown tag "!append" -> remove the tag
work.yaml:2:7: name: unknown tag "!x" -> remove the tag
work.yaml:3:7: hide: !replace is for lists and mappings that would be joined -> remove the tag; a later value replaces an earlier one anyway
work.yaml:4:8: agent: !replace is for lists and mappings that would be joined -> remove the tag; a later value replaces an earlier one anyway`,
	},
	"a tag that makes something else of a value": {
		"hide: !!null x\nmounts: [{host: /x, secret: !!bool maybe}]\n!!int state: shared\nports: !!map {in: [!!int x]}\nname: !!str 1",
		`work.yaml:1:7: hide: unknown tag "!!null" -> remove the tag
work.yaml:2:29: secret: unknown tag "!!bool" -> remove the tag
work.yaml:3:1: profile: a key cannot have the tag "!!int" -> remove the tag
work.yaml:4:20: in: unknown tag "!!int" -> remove the tag`,
	},
	"a merge key": {
		"env: &e {A: 1}\ngit:\n  <<: *e",
		`work.yaml:3:3: git: merge keys (<<) are not supported -> write the keys out, or use extends`,
	},
	"a key that is no text": {
		"? [a]\n: b\nnix: {? {a: b} : c}",
		`work.yaml:1:3: profile: a key must be text, found a list
work.yaml:3:9: nix: a key must be text, found a mapping`,
	},
	"a wrong anchor is reported once, however often it is used": {
		"mounts: [&m {host: data}, *m, *m]",
		`work.yaml:1:20: host: "data" is relative; expected a path that begins with /, ~/ or ./ (the project) -> write ~/data or ./data`,
	},
	"an anchor that holds itself": {
		"packages: &p [*p]",
		`work.yaml:1:11: packages: expected a package, found a list`,
	},
}

func TestEveryProblemHasItsPlaceAndRemedy(t *testing.T) {
	for name, tc := range wrong {
		t.Run(name, func(t *testing.T) {
			_, _, err := readOne("work.yaml", []byte(tc.src))
			if got := problemsOf(t, err); got != tc.want+"\n" {
				t.Errorf("got:\n%s\nwant:\n%s\n", got, tc.want)
			}
		})
	}
}

func TestTextThatIsNoYAMLIsReportedWhereItGoesWrong(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"a tab as indentation": {
			"name: a\nenv:\n\tA: b\n",
			"work.yaml:3:1: found character that cannot start any token -> indent with spaces, and quote text that begins with @, ` or %",
		},
		"an at sign in front": {
			"name: a\npackages:\n  - @angular/cli\n",
			"work.yaml:3:3: found character that cannot start any token -> indent with spaces, and quote text that begins with @, ` or %",
		},
		"a star in front": {
			"name: a\nhide:\n  - *.pem\n",
			`work.yaml:3:3: did not find expected alphabetic or numeric character -> quote text that begins with * or &: "*.pem"`,
		},
		"a star in front of a word": {
			"name: a\nhide:\n  - *env\n",
			`work.yaml:3:3: unknown anchor 'env' referenced -> quote text that begins with *: "*.pem"`,
		},
		"a colon in text": {
			"name: a\ndescription: this: that\n",
			"work.yaml:2:1: mapping values are not allowed in this context -> quote text that holds a colon and a blank, and check the indentation",
		},
		"keys that do not line up": {
			"name: a\nenv:\n  A: b\n C: d\n",
			"work.yaml:4:2: did not find expected key -> indent the keys of one mapping alike",
		},
		"a bracket that is not closed": {
			"name: a\npackages: [b, c\nenv: {}\n",
			"work.yaml:2:1: did not find expected ',' or ']' -> close the bracket, or separate the entries by commas",
		},
		"a quote that is not closed": {
			"name: a\ndescription: \"b\nenv: {}\n",
			"work.yaml:2:1: found unexpected end of stream -> close the quote",
		},
		"an escape that only JSON has": {
			"{\"name\": \"a\",\n  \"description\": \"\\/\"}",
			`work.yaml:2:3: found unknown escape character -> write the character itself, and \\ for a backslash`,
		},
		"half of a surrogate pair": {
			`{"description": "\ud83d\ude00"}`,
			"work.yaml:1:1: found invalid Unicode character escape code -> write the character itself",
		},
		"a second document": {
			"name: a\n---\nname: b\n",
			"work.yaml:2:1: a second document begins here; expected one -> remove what follows, or put it into a file of its own",
		},
		"a byte that is not UTF-8": {
			"name: a\ndescription: f\xfcr\n",
			"work.yaml:2:15: byte 0xfc is not text; expected UTF-8 without control characters -> save the file as UTF-8",
		},
		"a NUL": {
			"name: a\x00\n",
			"work.yaml:1:8: byte 0x00 is not text; expected UTF-8 without control characters -> save the file as UTF-8",
		},
		"an escape sequence": {
			"name: \x1b[31mred\n",
			"work.yaml:1:7: byte 0x1b is not text; expected UTF-8 without control characters -> save the file as UTF-8",
		},
		"UTF-16": {
			"\xff\xfen\x00a\x00",
			"work.yaml:1:1: byte 0xff is not text; expected UTF-8 without control characters -> save the file as UTF-8",
		},
		"more than a mebibyte": {
			strings.Repeat("#", profile.MaxSize+1),
			"work.yaml:1:1: the file is larger than 1048576 bytes",
		},
		"very deep nesting": {
			"env: " + strings.Repeat("[", 100_000),
			"work.yaml:1:1: exceeded max depth of 10000",
		},
		"deep nesting": {
			"packages: " + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000),
			"work.yaml:1:12: packages: expected a package, found a list",
		},
		"an alias bomb": {
			"mounts: [&m {host: /srv/a, mode: ro, optional: true, secret: true}" + strings.Repeat(", *m", 3_000) + "]",
			"work.yaml:1:8069: aliases stand for more than 10000 values -> write the values out, or use extends",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readOne("work.yaml", []byte(tc.src))
			if got := problemsOf(t, err); got != tc.want+"\n" {
				t.Errorf("got:\n%s\nwant:\n%s\n", got, tc.want)
			}
		})
	}
}

func TestWarningsDoNotStopTheProfile(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"a hook into every program": {
			"env: {LD_PRELOAD: /x.so}",
			"work.yaml:1:7: LD_PRELOAD makes the loader run other code in every program\n",
		},
		"a socket that passes": {
			"extra_env_passthrough: [SSH_AUTH_SOCK]",
			"work.yaml:1:25: SSH_AUTH_SOCK names a socket that signs with your SSH keys\n",
		},
		"a secret as a constant": {
			"env: {GH_TOKEN: ghp_secret, AUTHOR: me, EMPTY_TOKEN: ''}",
			"work.yaml:1:7: GH_TOKEN looks like a secret (name holds TOKEN), and its value stands in the profile" +
				" -> write `secrets: [{env: GH_TOKEN, hosts: [HOST]}]`, and keep the value out of the file\n",
		},
		"a secret path that was not called so": {
			"mounts: [{host: ~/.ssh/known_hosts}, {host: /home/me/.aws, secret: true}, {host: ~/.config/gh}]",
			"work.yaml:1:17: host: ~/.ssh/known_hosts is a secret path (SSH keys), and no launch mounts it so -> add secret: true to the mount if the agent shall read it\n" +
				"work.yaml:1:82: host: ~/.config/gh is a secret path (a GitHub token), and no launch mounts it so -> add secret: true to the mount if the agent shall read it\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings := parse(t, tc.src)
			if got := report(warnings); got != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}
