package program

import (
	"slices"
	"testing"

	"claudebox/internal/host"
)

// U9: what is set outside and not inside is named, where that is felt.
func TestVariablesThatAreMissedInsideAreNamed(t *testing.T) {
	env := host.Environment{
		"ANTHROPIC_BASE_URL=x", "ANTHROPIC_API_KEY=x", "CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CODE_ENTRYPOINT=cli", "https_proxy=x",
		"GIT_AUTHOR_NAME=x", "GIT_SSH_COMMAND=x", "GIT_CONFIG_GLOBAL=/x", "PIP_INDEX_URL=x", "GOPROXY=x", "GOPATH=x", "npm_config_cache=x", "PAGER=less", "ANTHROPIC_MODEL=",
	}
	entering := []string{"ANTHROPIC_API_KEY"}
	want := []string{"ANTHROPIC_BASE_URL", "CLAUDE_CODE_USE_BEDROCK", "GIT_SSH_COMMAND", "GOPROXY", "PIP_INDEX_URL", "https_proxy"}
	if got := NotPassed(env, entering, "full"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := NotPassed(env, entering, "allow"); !slices.Equal(got, want[:5]) {
		t.Errorf("in tier allow got %q, want %q", got, want[:5])
	}
}

// A version manager's choice, a compiler, and the file that Claude Code runs before each command.
func TestVariablesThatChooseWhatRunsAreNamed(t *testing.T) {
	env := host.Environment{"CLAUDE_ENV_FILE=/x", "PYENV_VERSION=3.12", "CC=clang", "CCACHE_DIR=/x", "BASH_ENV=/x", "RIPGREP_CONFIG_PATH=/x", "CONDA_CHANNELS=corp", "CXXXX=1"}
	want := []string{"BASH_ENV", "CC", "CLAUDE_ENV_FILE", "CONDA_CHANNELS", "PYENV_VERSION", "RIPGREP_CONFIG_PATH"}
	if got := NotPassed(env, nil, "full"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// Where databases and containers are is known outside only.
func TestVariablesOfServicesAreNamed(t *testing.T) {
	env := host.Environment{"DATABASE_URL=postgres://u@h/x", "DOCKER_HOST=unix:///run/d", "PGHOST=/run/postgresql", "PGPASSWORD=x", "PIP_CERT=/x"}
	if got := NotPassed(env, nil, "full"); !slices.Equal(got, []string{"DATABASE_URL", "DOCKER_HOST", "PGHOST"}) {
		t.Errorf("got %q", got)
	}
}

// What is sorted and printed by another locale than the rest is so outside only. LC_ALL would overrule it, and one that is
// not inside would spoil all.
func TestALocaleOfItsOwnIsNamed(t *testing.T) {
	env := host.Environment{"LANG=de_DE.UTF-8", "LC_COLLATE=C", "LC_TIME=de_DE.UTF-8", "LC_PAPER=x", "LC_NUMERIC=", "LC_MONETARY=fr_FR.UTF-8"}
	if got := NotPassed(env, nil, "full"); !slices.Equal(got, []string{"LC_COLLATE"}) {
		t.Errorf("got %q", got)
	}
	if got := NotPassed(append(env, "LC_ALL=C"), nil, "full"); got != nil {
		t.Errorf("with LC_ALL got %q", got)
	}
}
