//go:build lab

package sandbox_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// environ is a sandbox's environment as the agent's first program finds it.
func (w *world) environ(t *testing.T, flags ...string) map[string]string {
	t.Helper()
	cmd := w.claudebox(slices.Concat([]string{"shell", "--yes"}, flags, []string{"--", "env", "--null"})...)
	found := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(succeedWarned(t, cmd, ""), "\x00"), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		if _, twice := found[name]; twice {
			t.Errorf("%s is set twice", name)
		}
		found[name] = value
	}
	return found
}

// wantEnviron compares all variables.
func (w *world) wantEnviron(t *testing.T, got, want map[string]string) {
	t.Helper()
	text := func(env map[string]string) string {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(env)) {
			value := brokerProxy.ReplaceAllString(env[name], "proxy")
			if placeholder.MatchString(value) {
				value = "a placeholder"
			}
			fmt.Fprintf(&b, "%s=%q\n", name, value)
		}
		return b.String()
	}
	wantEqual(t, text(got), text(want))
}

// planned is the environment that the plan lists, with its late values and
// the caller's variables filled in by the test: not by the code under test.
func (w *world) planned(t *testing.T, flags ...string) map[string]string {
	t.Helper()
	var p struct {
		Env []struct{ Name, From, Value string }
	}
	text := succeed(t, w.claudebox(slices.Concat([]string{"plan", "--format", "json"}, flags)...))
	must.Do(t, json.Unmarshal([]byte(text), &p))
	late := strings.NewReplacer("${home}", w.home, "${cwd}", w.project, "${runtime}", fmt.Sprintf("/run/user/%d", os.Getuid()))
	env := map[string]string{}
	for name, value := range brokers {
		env[name] = value
	}
	for _, v := range p.Env {
		value, set := late.Replace(v.Value), true
		if v.From == "host" {
			value, set = w.env[v.Name], w.env[v.Name] != ""
		}
		if set {
			env[v.Name] = value
		}
	}
	env["PATH"] += ":/run/claudebox/bin" // with claudebox-why
	if env["ANTHROPIC_API_KEY"] != "" {
		env["ANTHROPIC_API_KEY"] = "a placeholder"
	}
	return env
}

// brokers are the variables that lead programs to the broker of tier full and to
// its authority.
var brokers = func() map[string]string {
	const bundle = "/etc/ssl/certs/ca-certificates.crt"
	list := map[string]string{
		"NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/claudebox.crt", "UV_NATIVE_TLS": "true", "DENO_TLS_CA_STORE": "system,mozilla",
	}
	for _, name := range strings.Fields(`CURL_CA_BUNDLE GIT_SSL_CAINFO REQUESTS_CA_BUNDLE PIP_CERT CARGO_HTTP_CAINFO AWS_CA_BUNDLE
		CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE HTTPLIB2_CA_CERTS DENO_CERT GRPC_DEFAULT_SSL_ROOTS_FILE_PATH HEX_CACERTS_PATH`) {
		list[name] = bundle
	}
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"} {
		value := "proxy"
		if name == "NO_PROXY" {
			value = "localhost,127.0.0.1,::1,claudebox"
		}
		list[name], list[strings.ToLower(name)] = value, value
	}
	return list
}()

// placeholder is what stands for a secret.
var placeholder = regexp.MustCompile(`^(sk-ant-api03-)?x*cbx[a-z2-7]{30}$`)

// everyVariable is an environment in which every variable of the table that enters is set.
func (w *world) everyVariable() {
	maps.Copy(w.env, map[string]string{
		"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1", "FORCE_COLOR": "0",
		"LANG": "en_US.UTF-8", "LC_ALL": "C.UTF-8", "LC_CTYPE": "C", "TZ": "UTC", "USER": "someone", "EDITOR": "less", "VISUAL": "less", "PAGER": "less", "LESS": "-R",
		"TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.3", "VTE_VERSION": "7600", "KONSOLE_VERSION": "250400", "KITTY_WINDOW_ID": "1",
		"LC_TERMINAL": "iTerm2", "LC_TERMINAL_VERSION": "3.6", "WT_SESSION": "1b2e", "FORCE_HYPERLINK": "1", "TMUX": "/tmp/tmux-1000/default,1,0",
		"ANTHROPIC_API_KEY": "sk-ant-api03-0123456789", "SSL_CERT_FILE": "/nowhere", "NIX_SSL_CERT_FILE": "/nowhere",
		"SHELL": "/bin/zsh", "NIX_REMOTE": "unix:///evil", "NIX_PATH": "evil", "XDG_RUNTIME_DIR": "/evil", "TMPDIR": "/evil",
		"CLAUDE_CONFIG_DIR": "/evil", "LD_LIBRARY_PATH": "/evil", "CLAUDEBOX": "0", "LOCALE_ARCHIVE": "/evil", "PROMPT_COMMAND": "evil",
	})
}

// Promise: no variable of yours inside, unless named.
func TestTheEnvironmentIsThePlansListByteForByte(t *testing.T) {
	for name, set := range map[string]func(*world){
		"with the fewest variables": func(*world) {},
		"with all that may pass":    (*world).everyVariable,
		"with values that quoting could spoil": func(w *world) {
			w.env["ANTHROPIC_API_KEY"] = "a 'b' \"c\" $HOME `id`\n--ro-bind\t/ \\ é \xff"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			set(w)
			w.wantEnviron(t, w.environ(t), w.planned(t))
		})
	}
}

// The table itself: a variable more in the code's table is one
// more that enters, and has to be written down here as well.
func TestNoOtherVariableEntersThanThoseOfTheTable(t *testing.T) {
	w := newWorld(t)
	w.everyVariable()
	env := w.environ(t)
	maps.DeleteFunc(env, func(name, _ string) bool { return brokers[name] != "" })
	got := slices.Sorted(maps.Keys(env))
	want := strings.Fields(`ANTHROPIC_API_KEY CLAUDEBOX CLAUDE_CONFIG_DIR COLORTERM DISABLE_AUTOUPDATER EDITOR FORCE_COLOR FORCE_HYPERLINK
		HOME KITTY_WINDOW_ID KONSOLE_VERSION LANG LC_ALL LC_CTYPE LC_TERMINAL LC_TERMINAL_VERSION LESS LOCALE_ARCHIVE NIX_LD NIX_LD_LIBRARY_PATH
		NIX_PATH NIX_SSL_CERT_FILE NO_COLOR PAGER PATH PWD SHELL SSL_CERT_FILE TERM TERMINFO_DIRS TERM_PROGRAM TERM_PROGRAM_VERSION TMPDIR TZ USER
		VISUAL VTE_VERSION WT_SESSION XDG_RUNTIME_DIR`)
	if !slices.Equal(got, want) {
		t.Errorf("inside are\n%q\nwant\n%q", got, want)
	}
}

func TestVariablesThatHaveToFitTheInside(t *testing.T) {
	for name, tc := range map[string]struct {
		host, want map[string]string // "-": not set
	}{
		"an unknown terminal becomes a common one":    {map[string]string{"TERM": "no-such-terminal"}, map[string]string{"TERM": "xterm-256color"}},
		"a terminal's name does not climb":            {map[string]string{"TERM": "../x/xterm"}, map[string]string{"TERM": "xterm-256color"}},
		"an editor that is not inside stays out":      {map[string]string{"EDITOR": "/usr/bin/vi", "VISUAL": "code --wait"}, map[string]string{"EDITOR": "-", "VISUAL": "-", "GIT_EDITOR": "true"}},
		"an editor that is inside passes":             {map[string]string{"EDITOR": "less -R"}, map[string]string{"EDITOR": "less -R", "GIT_EDITOR": "-"}},
		"a pager that is not inside stays out":        {map[string]string{"PAGER": "bat -p"}, map[string]string{"PAGER": "-"}},
		"a pager that is inside passes":               {map[string]string{"PAGER": "less", "LESS": "-FRX"}, map[string]string{"PAGER": "less", "LESS": "-FRX"}},
		"the terminal's own name passes":              {map[string]string{"TERM": "xterm-ghostty-x", "TERM_PROGRAM": "ghostty"}, map[string]string{"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}},
		"an editor's terminal stays out":              {map[string]string{"TERM_PROGRAM": "vscode"}, map[string]string{"TERM_PROGRAM": "-"}},
		"a language is made when there is none":       {map[string]string{"LANG": "-"}, map[string]string{"LANG": "C.UTF-8"}},
		"no locale is inherited beyond the three":     {map[string]string{"LC_TIME": "de_DE.UTF-8", "LANGUAGE": "de"}, map[string]string{"LC_TIME": "-", "LANGUAGE": "-"}},
		"a variable is added for one launch":          {map[string]string{"CLAUDEBOX_EXTRA_ENV": "A, B,MISSING", "A": "1", "B": "x=y z", "C": "3"}, map[string]string{"A": "1", "B": "x=y z", "C": "-", "MISSING": "-", "CLAUDEBOX_EXTRA_ENV": "-"}},
		"no added variable replaces a made one":       {map[string]string{"CLAUDEBOX_EXTRA_ENV": "PATH,TMPDIR"}, map[string]string{"TMPDIR": "/tmp"}},
		"a hook of the loader passes when asked for":  {map[string]string{"CLAUDEBOX_EXTRA_ENV": "NODE_OPTIONS", "NODE_OPTIONS": "--trace-warnings"}, map[string]string{"NODE_OPTIONS": "--trace-warnings"}},
		"claudebox's own variables stay out":          {map[string]string{"CLAUDEBOX_PROFILE": "default"}, map[string]string{"CLAUDEBOX_PROFILE": "-"}},
		"what a profile does not name does not pass":  {map[string]string{"VAULT_TOKEN": "s.x"}, map[string]string{"VAULT_TOKEN": "-"}},
		"a set but empty variable is not a secret":    {map[string]string{"ANTHROPIC_API_KEY": ""}, map[string]string{"CLAUDEBOX": "1"}},
		"a zone outside the table of zones stays out": {map[string]string{"TZ": "../../etc/passwd"}, map[string]string{"CLAUDEBOX": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			maps.Copy(w.env, tc.host)
			maps.DeleteFunc(w.env, func(_, value string) bool { return value == "-" })
			got := w.environ(t)
			for name, want := range tc.want {
				value, set := got[name]
				if want == "-" && set || want != "-" && value != want {
					t.Errorf("%s is %q (set: %v); want %q", name, value, set, want)
				}
			}
		})
	}
}

func TestAProfilesVariablesEnter(t *testing.T) {
	w := newWorld(t)
	w.env["MY_ORG_TOKEN"], w.env["OTHER_TOKEN"] = "t0ken", "other"
	file := w.profile(t, "env: {AWS_PROFILE: work, FOUR: '4'}", "extra_env_passthrough: [MY_ORG_TOKEN, UNSET_TOKEN]")
	got := w.environ(t, "--profile", file)
	w.wantEnviron(t, got, w.planned(t, "--profile", file))
	if got["AWS_PROFILE"] != "work" || got["FOUR"] != "4" || got["MY_ORG_TOKEN"] != "t0ken" || got["OTHER_TOKEN"] != "" {
		t.Errorf("inside is %q", got)
	}
}

func TestTheZoneIsTheHostsOwn(t *testing.T) {
	w := newWorld(t)
	w.env["TZ"] = "Asia/Kathmandu"
	if !exists("/usr/share/zoneinfo/Asia/Kathmandu") && !exists("/etc/zoneinfo/Asia/Kathmandu") {
		t.Skip("this machine has no zones")
	}
	got := w.inside(t, "date -d @0 +%H:%M; unset TZ; date -d @0 +%H:%M; readlink /etc/localtime")
	wantEqual(t, got, "05:30\n05:30\n/usr/share/zoneinfo/Asia/Kathmandu\n")
}

// Other zones than the host's own were not inside: date took UTC for them, without a word, and Python found none.
func TestAllZonesAreInside(t *testing.T) {
	w := newWorld(t)
	if !exists("/usr/share/zoneinfo/Asia/Tokyo") && !exists("/etc/zoneinfo/Asia/Tokyo") {
		t.Skip("this machine has no zones")
	}
	got := w.inside(t, `TZ=Asia/Tokyo date -d @0 +%H:%M; python3 -c 'import zoneinfo; print(zoneinfo.ZoneInfo("America/New_York"))'`)
	wantEqual(t, got, "09:00\nAmerica/New_York\n")
}

// The C library of the lab's packages does not read LOCALE_ARCHIVE, so that the
// file can be looked at only.
func TestTheLocalesAreInside(t *testing.T) {
	w := newWorld(t)
	got := w.inside(t, `for l in C.utf8 en_US.utf8; do grep -qaF "$l" "$LOCALE_ARCHIVE" && echo "$l"; done; ls -d "$TERMINFO_DIRS"/x/xterm`)
	if !strings.HasPrefix(got, "C.utf8\nen_US.utf8\n/nix/store/") {
		t.Errorf("inside are %q", got)
	}
}
