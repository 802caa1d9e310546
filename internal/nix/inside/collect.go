package inside

// upperAlone is where the upper layer is mounted for a collection, without the host's
// store below it: through the overlay Nix fails on a host that has garbage.
const upperAlone = "/run/claudebox/nix-upper"

// CollectWords returns bwrap's arguments for a garbage collection in the inner store in dir,
// by a nix-store of the host. The seccomp filter is descriptor
// 3. links are folders, outside and inside, whose links are roots: the project, caches of the home. They are mounted
// read-only.
func CollectWords(dir string, links [][2]string, nixStore string) []string {
	words := []string{
		"--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--die-with-parent",
		"--new-session", "--seccomp", "3",
		"--tmpfs", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
		"--ro-bind", "/nix/store", "/nix/store", "--bind", Var(dir), StateInner, "--bind", Upper(dir), upperAlone,
	}
	for _, at := range links {
		words = append(words, "--ro-bind-try", at[0], at[1])
	}
	return append(words,
		"--setenv", "HOME", "/tmp", "--setenv", "NIX_CONF_DIR", "/tmp", "--remount-ro", "/", "--",
		nixStore, "--option", "build-users-group", "", "--store", "local?real="+upperAlone, "--gc")
}
