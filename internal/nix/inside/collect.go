package inside

// upperAlone is where the upper layer is mounted for a collection, without the host's
// store below it: through the overlay Nix fails on a host that has garbage.
const upperAlone = "/run/claudebox/nix-upper"

// CollectWords returns bwrap's arguments for a garbage collection in the inner store in dir,
// by a nix-store of the host. The seccomp filter is descriptor
// 3. The project is mounted because its links are roots.
func CollectWords(dir, project, nixStore string) []string {
	return []string{
		"--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--die-with-parent",
		"--new-session", "--seccomp", "3",
		"--tmpfs", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
		"--ro-bind", "/nix/store", "/nix/store", "--bind", Var(dir), StateInner, "--bind", Upper(dir), upperAlone,
		"--ro-bind", project, project,
		"--setenv", "HOME", "/tmp", "--setenv", "NIX_CONF_DIR", "/tmp", "--remount-ro", "/", "--",
		nixStore, "--option", "build-users-group", "", "--store", "local?real=" + upperAlone, "--gc",
	}
}
