package profile

import (
	"path"
	"strings"
)

// SecretPath is a path of the host that never enters a sandbox unless a
// profile names it exactly and says `secret: true` (SAND-09).
type SecretPath struct {
	Path string // absolute or "~/…"; a * stands for any part of the last segment
	What string // what is there
}

// SecretPaths is the list of SAND-09, grown by what the same programs keep
// elsewhere.
var SecretPaths = []SecretPath{
	{"~/.ssh", "SSH keys"},
	{"~/.gnupg", "GPG keys"},
	{"~/.config/gh", "a GitHub token"},
	{"~/.age*", "age keys"},
	{"~/.config/age", "age keys"},
	{"~/.config/sops", "age keys"},
	{"~/.aws", "AWS credentials"},
	{"~/.azure", "Azure credentials"},
	{"~/.oci", "Oracle Cloud credentials"},
	{"~/.config/gcloud", "Google Cloud credentials"},
	{"~/.config/doctl", "DigitalOcean credentials"},
	{"~/.config/hcloud", "Hetzner credentials"},
	{"~/.config/rclone", "cloud storage credentials"},
	{"~/.terraform.d", "Terraform credentials"},
	{"~/.vault-token", "a Vault token"},
	{"~/.kube", "Kubernetes credentials"},
	{"~/.docker", "registry credentials"},
	{"~/.config/containers/auth.json", "registry credentials"},
	{"~/.netrc", "passwords of hosts"},
	{"~/.git-credentials", "git passwords"},
	{"~/.config/git/credentials", "git passwords"},
	{"~/.config/hub", "a GitHub token"},
	{"~/.config/glab-cli", "a GitLab token"},
	{"~/.config/tea", "a Gitea token"},
	{"~/.npmrc", "an npm token"},
	{"~/.pypirc", "a PyPI token"},
	{"~/.cargo/credentials*", "a crates.io token"},
	{"~/.gem/credentials", "a RubyGems token"},
	{"~/.config/nix/nix.conf", "access tokens of Nix"},
	{"~/.config/op", "1Password"},
	{"~/.config/1Password", "1Password"},
	{"~/.config/Bitwarden*", "Bitwarden"},
	{"~/.password-store", "passwords"},
	{"~/.local/share/keyrings", "the desktop's passwords"},
	{"~/.local/share/kwalletd", "the desktop's passwords"},
	{"~/.claude", "the host's Claude Code: login, history, settings"},
	{"~/.claude.json", "the host's Claude Code: login and servers"},
	{"~/.claudebox", "the sandboxes of other projects"},
	{"~/.mozilla", "browser profiles"},
	{"~/.config/mozilla", "browser profiles"},
	{"~/.librewolf", "browser profiles"},
	{"~/.zen", "browser profiles"},
	{"~/.thunderbird", "mail"},
	{"~/.config/google-chrome*", "browser profiles"},
	{"~/.config/chromium", "browser profiles"},
	{"~/.config/BraveSoftware", "browser profiles"},
	{"~/.config/microsoft-edge*", "browser profiles"},
	{"~/.config/vivaldi*", "browser profiles"},
	{"~/.config/opera*", "browser profiles"},
	{"~/.var/app", "data of Flatpak programs"},
	{"~/snap", "data of snaps"},
	{"~/.bash_history", "shell history"},
	{"~/.zsh_history", "shell history"},
	{"~/.zhistory", "shell history"},
	{"~/.histfile", "shell history"},
	{"~/.history", "shell history"},
	{"~/.local/share/fish/fish_history", "shell history"},
	{"~/.local/share/atuin", "shell history"},
	{"~/.local/state/bash", "shell history"},
	{"~/.python_history", "command history"},
	{"~/.node_repl_history", "command history"},
	{"~/.psql_history", "command history"},
	{"~/.pgpass", "database passwords"},
	{"~/.my.cnf", "database passwords"},
	{"~/.mysql_history", "command history"},
	{"/var/lib/tailscale", "Tailscale keys"},
	{"/run/user/*", "sockets of your session"},
	{"/run/secrets*", "secrets of the system"},
	{"/run/agenix*", "secrets of the system"},
	{"/run/docker.sock", "Docker's socket: root on the host"},
	{"/run/podman", "Podman's socket"},
	{"/run/dbus", "the system bus"},
	{"/var/run", "sockets of the system"},
	{"/etc/ssh", "host keys"},
	{"/etc/shadow*", "password hashes"},
	{"/etc/gshadow*", "password hashes"},
	{"/etc/sudoers*", "sudo rules"},
	{"/etc/nix/*.key", "signing keys"},
	{"/etc/nix/nix.conf", "access tokens of Nix"},
	{"/etc/wireguard", "VPN keys"},
	{"/etc/NetworkManager/system-connections", "network passwords"},
	{"/tmp", "temporary files of every program"},
	{"/var/tmp", "temporary files of every program"},
	{"/var/log", "logs of the system"},
}

// Relation is how a host path lies to a [SecretPath].
type Relation int

const (
	Apart  Relation = iota // nothing secret is known there
	Within                 // it is the secret path, or lies below it
	Around                 // it is a folder that holds the secret path
)

// Exposes finds which secret path mounting a host path would show; Within wins
// over Around. The path is clean, and absolute or "~/…"; an absolute home is
// recognised below /home and at /root only, so a caller that knows the home
// passes [Tilde] of it, with links resolved.
func Exposes(host string) (SecretPath, Relation) {
	host = guessTilde(host)
	for _, wanted := range []Relation{Within, Around} {
		for _, secret := range SecretPaths {
			if relation(host, secret.Path) == wanted {
				return secret, wanted
			}
		}
	}
	return SecretPath{}, Apart
}

// Tilde writes a path below home as "~/…", and leaves all others.
func Tilde(home, host string) string {
	if isBelow(host, home) {
		return "~" + host[len(home):]
	}
	return host
}

// guessTilde takes the usual places of homes for "~": a profile's text is
// judged before the home is known, and another user's keys are no better. What
// holds homes is judged as one.
func guessTilde(host string) string {
	switch host {
	case "/", "/home", "/var/home":
		return "~"
	}
	for _, homes := range []string{"/home/", "/var/home/"} {
		if rest, below := strings.CutPrefix(host, homes); below {
			if _, rest, deeper := strings.Cut(rest, "/"); deeper {
				return "~/" + rest
			}
			return "~"
		}
	}
	return Tilde("/root", host)
}

// relation compares a clean path with one of the list, which may have a * in its
// last segment: what is around it is found by its text.
func relation(host, secret string) Relation {
	switch {
	case isBelow(host, secret):
		return Within
	case isBelow(secret, host):
		return Around
	case strings.IndexByte(secret, '*') < 0:
		return Apart
	}
	folder, last := path.Split(secret)
	if rest, below := strings.CutPrefix(host, folder); below {
		name, _, _ := strings.Cut(rest, "/")
		if matched, err := path.Match(last, name); err == nil && matched {
			return Within
		}
	}
	return Apart
}

// isBelow reports whether name is folder or lies in it.
func isBelow(name, folder string) bool {
	return strings.HasPrefix(name, folder) && (len(name) == len(folder) || name[len(folder)] == '/')
}
