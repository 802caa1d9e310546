package session

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/network"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/netns"
	"claudebox/internal/network/ports"
	"claudebox/internal/network/proxy"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/launch"
)

// addNetwork finds what the tier needs, and refuses it where it cannot be had.
func (s *Session) addNetwork(h *launch.Host, p plan.Plan, o Options, _ Purpose) error {
	if o.NetworkLog != "" && p.Network.Tier != launch.ProxiedTier {
		return diag.Errorf("read --network-log", "leave it out, or use tier allow", "only the proxy of tier allow decides; the tier is %s", p.Network.Tier)
	}
	switch p.Network.Tier {
	case launch.ConnectedTier:
		return addInet(h, p)
	case launch.ProxiedTier:
		return s.addProxy(h, p, o)
	case "full":
		if len(o.Publish) > 0 {
			h.Notes = append(h.Notes, "--publish changes nothing in tier full: every port inside is a port of this host")
		}
	}
	return nil
}

func addInet(h *launch.Host, p plan.Plan) error {
	h.Pasta = plan.ToolPath(p, resolve.ToolPasta)
	if !h.OwnPIDs {
		return diag.Errorf("use tier inet", "run claudebox on the host, with a /proc that hides nothing (no hidepid=), or use `--network allow` or `--network none`",
			"process 2 is not seen in /proc here, so that a `kill -9` of claudebox could leave a network behind")
	}
	return needResolver(h, p)
}

func needResolver(h *launch.Host, p plan.Plan) error {
	if network.ResolvConf(h.Etc.Resolv) != nil {
		return nil
	}
	return diag.Errorf("use tier "+p.Network.Tier, "connect this machine, or name a resolver in /etc/resolv.conf, or use `--network none`",
		"/etc/resolv.conf names no resolver, so that no name could be looked up")
}

// addProxy judges the list of hosts, and what the proxy will need outside.
func (s *Session) addProxy(h *launch.Host, p plan.Plan, o Options) error {
	const op = "use tier allow"
	var err error
	if len(p.Network.Allow) == 0 {
		return diag.Errorf(op, "list them in the profile: `network: {tier: allow, allow: [anthropic, github]}`", "profile %s lists no hosts", p.Profile)
	}
	if s.network.allow, err = hostpattern.ParseList(p.Network.Allow); err != nil {
		return &diag.Error{Op: op, Err: err, Remedy: "mend the plan's or the profile's list of hosts"}
	}
	if err := needResolver(h, p); err != nil {
		return err
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		if h.Facts.Env.Value(name, "") != "" {
			h.Notes = append(h.Notes, name+" of this host is not used: claudebox's proxy connects to the listed hosts itself")
			break
		}
	}
	s.network.log, err = s.networkLog(o)
	return err
}

// networkLog is where the log goes. In the project an agent could read it, or
// have put a link there.
func (s *Session) networkLog(o Options) (string, error) {
	if o.NetworkLog == "" {
		return "", nil
	}
	op := "write the network log " + o.NetworkLog
	file, err := filepath.Abs(o.NetworkLog)
	if err != nil {
		return "", &diag.Error{Op: op, Err: err}
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return "", &diag.Error{Op: op, Err: diag.Cause(err), Remedy: "name a file in a folder that exists"}
	}
	if pathname.Below(dir, s.project.Path) {
		return "", diag.Errorf(op, "write it to a place outside of the project", "the agent can change what is in the project")
	}
	return filepath.Join(dir, filepath.Base(file)), nil
}

// outside is what this process does for the sandbox's network while it runs.
type outside struct {
	allow   hostpattern.List // of tier allow
	log     string           // its log; empty: none
	journal *proxy.Journal   // nil: no proxy
	in      ports.Inward
}

// open takes what has to be there before the sandbox starts: ports of the
// host, and the log. What is made within the sandbox's network is made by the
// launch.
func (n *outside) open(l *launch.Launch) (err error) {
	wanted := l.Plan.Network
	if l.Tier == "full" || l.Tier != launch.ProxiedTier && len(wanted.In)+len(wanted.Out) == 0 {
		return nil
	}
	if l.Tier == launch.ProxiedTier {
		if n.journal, err = openJournal(n.log); err != nil {
			return err
		}
	}
	if n.in, err = ports.Take(wanted.In); err != nil {
		return err
	}
	l.Attach = func(ns netns.Namespace) error { return n.attach(ns, wanted) }
	return nil
}

func openJournal(file string) (*proxy.Journal, error) {
	if file == "" {
		return proxy.NewJournal(nil, nil), nil
	}
	log, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &diag.Error{Op: "write the network log " + file, Err: diag.Cause(err), Remedy: "name a file that you can write and that is no link"}
	}
	return proxy.NewJournal(log, time.Now), nil
}

// attach serves a sandbox's network from here. The agent does not run yet.
func (n *outside) attach(ns netns.Namespace, wanted plan.Network) error {
	if n.journal != nil {
		l, err := ns.Listen(launch.ProxyPort(wanted))
		if err != nil {
			return err
		}
		go proxy.New(n.allow, n.journal).Serve(l)
	}
	if _, err := ports.Outward(ns, wanted.Out); err != nil {
		return err
	}
	n.in.Serve(ns)
	return nil
}

// refused is what the proxy refused.
func (n *outside) refused() []proxy.Refused {
	if n.journal == nil {
		return nil
	}
	return n.journal.Refused()
}

// endNetwork gives the ports back, and says what was refused.
func (s *Session) endNetwork() {
	s.network.in.Close()
	if s.network.journal == nil || s.report.silent {
		return
	}
	if refused := s.network.journal.Summary(); refused != "" {
		diag.Note(s.caller.Stderr, "refused: "+refused)
	}
}

// withPublished adds the ports of --publish to a plan.
func withPublished(p plan.Plan, words []string) (plan.Plan, error) {
	var list []int
	for _, word := range words {
		port, err := strconv.Atoi(word)
		if err != nil || strconv.Itoa(port) != word || port < 1 || port > 65535 {
			return plan.Plan{}, diag.Errorf("read --publish", "write a number: --publish 3000", "%q is not a port; expected 1 to 65535", word)
		}
		list = append(list, port)
	}
	return p.WithPorts(list...), nil
}
