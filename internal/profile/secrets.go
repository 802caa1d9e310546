package profile

import (
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/pathname"
)

// SecretPath is a path of the host that is never visible in a sandbox unless a
// profile mounts that very path with `secret: true`.
type SecretPath struct {
	Path string // absolute or "~/…"; the last segment may contain a *, as in path.Match
	What string // what is stored there, for messages
}

// OfAgent is what lies at a path that an agent has of its own inside.
const OfAgent = "the login of an agent"

// OfClaude is what lies in the folder of the user's own Claude Code.
const OfClaude = "the host's Claude Code: login, history, settings"

// SecretPaths are the places where common programs keep secrets.
var SecretPaths = []SecretPath{
	{"~/.ssh", "SSH keys"},
	{"~/.gnupg", "GPG keys"},
	{"~/.local/share/gnupg", "GPG keys"},
	{"~/.config/gh", "a GitHub token"},
	{"~/.age", "age keys"},
	{"~/.age-*", "age keys"}, // and not ~/.agents, where skills are
	{"~/.age[_.k]*", "age keys"},
	{"~/.config/age", "age keys"},
	{"~/.config/sops", "age keys"},
	{"~/.aws", "AWS credentials"},
	{"~/.azure", "Azure credentials"},
	{"~/.oci", "Oracle Cloud credentials"},
	{"~/.config/gcloud", "Google Cloud credentials"},
	{"~/.config/doctl", "DigitalOcean credentials"},
	{"~/.config/hcloud", "Hetzner credentials"},
	{"~/.config/scw", "Scaleway credentials"},
	{"~/.config/linode-cli", "Linode credentials"},
	{"~/.linode-cli", "Linode credentials"},
	{"~/.vultr-cli.yaml", "a Vultr key"},
	{"~/.civo.json", "a Civo key"},
	{"~/.config/exoscale", "Exoscale credentials"},
	{"~/.aliyun", "Alibaba Cloud credentials"},
	{"~/.tccli", "Tencent Cloud credentials"},
	{"~/.bluemix", "IBM Cloud credentials"},
	{"~/.s3cfg", "cloud storage credentials"},
	{"~/.boto", "cloud storage credentials"},
	{"~/.mc", "cloud storage credentials"},
	{"~/.saml2aws", "AWS credentials"},
	{"~/.granted", "AWS credentials"},
	{"~/.okta", "Okta credentials"},
	{"~/.config/rclone", "cloud storage credentials"},
	{"~/.terraform.d", "Terraform credentials"},
	{"~/.vault-token", "a Vault token"},
	{"~/.kube", "Kubernetes credentials"},
	{"~/.minikube", "Kubernetes credentials"},
	{"~/.rancher", "Kubernetes credentials"},
	{"~/.talos", "Kubernetes credentials"},
	{"~/.config/argocd", "an Argo CD token"},
	{"~/.docker", "registry credentials"},
	{"~/.config/containers/auth.json", "registry credentials"},
	{"~/.config/helm/registry", "registry credentials"},
	{"~/.netrc", "passwords of hosts"},
	{"~/.git-credentials", "git passwords"},
	{"~/.subversion/auth", "Subversion passwords"},
	{"~/.config/git/credentials", "git passwords"},
	{"~/.config/hub", "a GitHub token"},
	{"~/.config/glab-cli", "a GitLab token"},
	{"~/.config/tea", "a Gitea token"},
	{"~/.npmrc", "an npm token"},
	{"~/.pypirc", "a PyPI token"},
	{"~/.cargo/credentials*", "a crates.io token"},
	{"~/.config/pypoetry/auth.toml", "tokens of Poetry"},
	{"~/.local/share/uv/credentials", "tokens of uv"},
	{"~/.kaggle", "a Kaggle token"},
	{"~/.config/configstore", "tokens of npm's programs"},
	{"~/.gem/credentials", "a RubyGems token"},
	{"~/.composer/auth.json", "a Composer token"},
	{"~/.config/composer/auth.json", "a Composer token"},
	{"~/.huggingface", "a Hugging Face token"},
	{"~/.cache/huggingface/token", "a Hugging Face token"},
	{"~/.config/github-copilot", "a GitHub token"},
	{"~/.config/stripe", "a Stripe key"},
	{"~/.config/netlify", "a Netlify token"},
	{"~/.netlify", "a Netlify token"},
	{"~/.config/heroku", "a Heroku token"},
	{"~/.expo", "an Expo login"},
	{"~/.config/ngrok", "an ngrok token"},
	{"~/.ngrok2", "an ngrok token"},
	{"~/.codeium", "a Codeium token"},
	{"~/.config/.wrangler", "a Cloudflare login"},
	{"~/.wrangler", "a Cloudflare login"},
	{"~/.cloudflared", "Cloudflare credentials"},
	{"~/.fly", "a Fly.io token"},
	{"~/.railway", "a Railway token"},
	{"~/.local/share/com.vercel.cli", "a Vercel token"},
	{"~/.supabase", "a Supabase token"},
	{"~/.pulumi", "a Pulumi token"},
	{"~/.databrickscfg", "Databricks tokens"},
	{"~/.snowflake", "Snowflake credentials"},
	{"~/.snowsql", "Snowflake credentials"},
	{"~/.tsh", "Teleport keys"},
	{"~/.step", "certificate keys"},
	{"~/.config/nix/nix.conf", "access tokens of Nix"},
	{"~/.config/op", "1Password"},
	{"~/.config/1Password", "1Password"},
	{"~/.config/Bitwarden*", "Bitwarden"},
	{"~/.config/rbw", "Bitwarden"},
	{"~/.local/share/rbw", "Bitwarden"},
	{"~/.password-store", "passwords"},
	{"~/.local/share/password-store", "passwords"},
	{"~/.keepass", "passwords"},
	{"~/.vnc", "passwords of remote desktops"},
	{"~/.config/remmina", "passwords of remote desktops"},
	{"~/.local/share/remmina", "passwords of remote desktops"},
	{"~/.config/rustdesk", "passwords of remote desktops"},
	{"~/.config/filezilla", "FTP passwords"},
	{"~/.filezilla", "FTP passwords"},
	{"~/.local/share/keyrings", "the desktop's passwords"},
	{"~/.local/share/kwalletd", "the desktop's passwords"},
	{"~/.Xauthority", "the key to your display"},
	{"~/.electrum", "a wallet"},
	{"~/.bitcoin", "a wallet"},
	{"~/.ethereum/keystore", "a wallet"},
	{"~/.config/solana", "a wallet"},
	{"~/.local/share/mkcert", "the key of your certificate authority"},
	{"~/.android/adbkey*", "a key of Android's"},
	{"~/.config/syncthing", "Syncthing's key"},
	{"~/.local/state/syncthing", "Syncthing's key"},
	{"~/.claude", OfClaude},
	{"~/.claude.json", "the host's Claude Code: login and servers"},
	{"~/.codex/auth.json", OfAgent},
	{"~/.gemini/oauth_creds.json", OfAgent},
	{"~/.local/share/opencode/auth.json", OfAgent},
	{"~/.qwen/oauth_creds.json", OfAgent},
	{"~/.claudebox", "the sandboxes of other projects"},
	{"~/.mozilla", "browser profiles"},
	{"~/.config/mozilla", "browser profiles"},
	{"~/.librewolf", "browser profiles"},
	{"~/.zen", "browser profiles"},
	{"~/.thunderbird", "mail"},
	{"~/.config/evolution", "mail"},
	{"~/.local/share/evolution", "mail"},
	{"~/.offlineimaprc", "mail passwords"},
	{"~/.mbsyncrc", "mail passwords"},
	{"~/.msmtprc", "mail passwords"},
	{"~/.config/Signal*", "messages"},
	{"~/.config/Slack", "messages"},
	{"~/.config/discord", "messages"},
	{"~/.config/Element", "messages"},
	{"~/.local/share/TelegramDesktop", "messages"},
	{"~/.purple", "messages"},
	{"~/.weechat", "messages"},
	{"~/.config/weechat", "messages"},
	{"~/.irssi", "messages"},
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
	{"~/.local/state/nvim/shada", "command history"},
	{"~/.viminfo", "command history"},
	{"~/.lesshst", "command history"},
	{"~/.python_history", "command history"},
	{"~/.node_repl_history", "command history"},
	{"~/.psql_history", "command history"},
	{"~/.pgpass", "database passwords"},
	{"~/.my.cnf", "database passwords"},
	{"~/.mylogin.cnf", "database passwords"},
	{"~/.pg_service.conf", "database passwords"},
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

// moved are variables by which programs keep elsewhere what lies at and below a place of [SecretPaths]: at the path
// that the variable has, or below it.
var moved = []struct{ variable, usual, below string }{
	{"XDG_CONFIG_HOME", "~/.config", ""},
	{"XDG_DATA_HOME", "~/.local/share", ""},
	{"XDG_STATE_HOME", "~/.local/state", ""},
	{"XDG_CACHE_HOME", "~/.cache", ""},
	{"CLAUDE_CONFIG_DIR", "~/.claude", ""},
	{"CLAUDEBOX_HOME", "~/.claudebox", ""},
	{"CODEX_HOME", "~/.codex", ""},
	{"GEMINI_CLI_HOME", "~/.gemini", ".gemini"},
	{"GEMINI_CLI_HOME", "~/.gemini", ""},
	{"OPENCODE_CONFIG_DIR", "~/.local/share/opencode", ""},
	{"GNUPGHOME", "~/.gnupg", ""},
	{"PASSWORD_STORE_DIR", "~/.password-store", ""},
	{"SOPS_AGE_KEY_FILE", "~/.config/sops", ""},
	{"GH_CONFIG_DIR", "~/.config/gh", ""},
	{"GLAB_CONFIG_DIR", "~/.config/glab-cli", ""},
	{"AWS_SHARED_CREDENTIALS_FILE", "~/.aws", ""},
	{"AWS_CONFIG_FILE", "~/.aws", ""},
	{"AZURE_CONFIG_DIR", "~/.azure", ""},
	{"CLOUDSDK_CONFIG", "~/.config/gcloud", ""},
	{"GOOGLE_APPLICATION_CREDENTIALS", "~/.config/gcloud", ""},
	{"OCI_CLI_CONFIG_FILE", "~/.oci", ""},
	{"RCLONE_CONFIG", "~/.config/rclone", ""},
	{"TF_CLI_CONFIG_FILE", "~/.terraform.d", ""},
	{"KUBECONFIG", "~/.kube", ""},
	{"DOCKER_CONFIG", "~/.docker", ""},
	{"REGISTRY_AUTH_FILE", "~/.config/containers/auth.json", ""},
	{"NETRC", "~/.netrc", ""},
	{"NPM_CONFIG_USERCONFIG", "~/.npmrc", ""},
	{"npm_config_userconfig", "~/.npmrc", ""},
	{"CARGO_HOME", "~/.cargo", ""},
	{"PGPASSFILE", "~/.pgpass", ""},
	{"HISTFILE", "~/.bash_history", ""},
	{"HF_HOME", "~/.cache/huggingface", ""},
	{"COMPOSER_HOME", "~/.composer", ""},
	{"PULUMI_HOME", "~/.pulumi", ""},
	{"SNOWFLAKE_HOME", "~/.snowflake", ""},
	{"DATABRICKS_CONFIG_FILE", "~/.databrickscfg", ""},
	{"TELEPORT_HOME", "~/.tsh", ""},
	{"STEPPATH", "~/.step", ""},
}

// PlacesOf returns [SecretPaths], and where variables of the caller say that the same lies instead. value returns
// that of a variable; real resolves the links on a path. What lies below home begins with "~/".
func PlacesOf(home string, value func(name, unset string) string, real func(string) string) []SecretPath {
	places := slices.Clip(SecretPaths)
	for _, m := range moved {
		for at := range strings.SplitSeq(value(m.variable, ""), ":") { // KUBECONFIG is a list
			if !path.IsAbs(at) {
				continue
			}
			at = Tilde(real(home), real(path.Join(at, m.below)))
			for _, s := range SecretPaths {
				if rest, is := pathname.Cut(s.Path, m.usual); is && at != m.usual {
					places = append(places, SecretPath{path.Join(at, rest), s.What})
				}
			}
		}
	}
	return places
}

// Relation says how a host path relates to a [SecretPath].
type Relation int

const (
	Apart  Relation = iota // no secret path is at, above or below it
	Within                 // it is the secret path, or lies below it
	Around                 // it is a folder that contains the secret path
)

// Exposes returns the secret path that would become visible by mounting host, and
// how host relates to it; Within is preferred to Around. It returns the zero
// SecretPath and Apart if there is none. host must be clean, and absolute or
// "~/…". Home folders are recognised below /home and /var/home and at /root only:
// a caller that knows the user's home should resolve links and pass [Tilde]'s result.
func Exposes(host string) (SecretPath, Relation) { return Exposed(SecretPaths, host) }

// Exposed is [Exposes] for the places of a host, see [PlacesOf], whose home is "~".
func Exposed(places []SecretPath, host string) (SecretPath, Relation) {
	for _, wanted := range []Relation{Within, Around} {
		for _, secret := range places {
			if relation(host, secret.Path) == wanted || relation(guessTilde(host), secret.Path) == wanted {
				return secret, wanted
			}
		}
	}
	return SecretPath{}, Apart
}

// Tilde returns host with a leading home replaced by "~"; other paths are returned unchanged.
func Tilde(home, host string) string {
	if rest, below := pathname.Cut(host, home); below {
		return path.Join("~", rest)
	}
	return host
}

// guessTilde replaces the usual locations of home folders by "~": a profile is
// checked before the user's home is known, and another user's keys must not be
// mounted either. A folder that contains homes (/home) becomes "~", too.
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

// relation returns how host, a clean path, relates to a path of the list. The
// pattern in secret's last segment counts for Within only; Around compares text.
func relation(host, secret string) Relation {
	folder, last := path.Split(secret)
	rest, below := strings.CutPrefix(host, folder)
	name, _, _ := strings.Cut(rest, "/")
	matched, err := path.Match(last, name)
	switch {
	case below && (err == nil && matched || name == last):
		return Within
	case pathname.Below(secret, host):
		return Around
	}
	return Apart
}
