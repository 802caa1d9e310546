package plan

import (
	"strings"
	"testing"
)

func TestDecodeBelievesNoFalseClaim(t *testing.T) {
	add := func(m Mount) func(*Plan) { return func(p *Plan) { p.Mounts = append(p.Mounts, m) } }
	mount := func(kind MountKind, source string) func(*Plan) {
		return add(Mount{Kind: kind, Source: source, Destination: "/mnt", Why: Base})
	}
	of := func(why, source, destination string) func(*Plan) {
		return add(Mount{Kind: Bind, Source: source, Destination: destination, Why: why})
	}
	variable := func(e Env) func(*Plan) { return func(p *Plan) { p.Env = append(p.Env, e) } }
	tool := func(path string) func(*Plan) {
		return func(p *Plan) { p.Pins.Tools = append(p.Pins.Tools, Tool{Name: "bwrap", Path: path}) }
	}
	kept := func(folder string, mounts ...string) func(*Plan) {
		return func(p *Plan) {
			p.Agent.Home = []string{folder}
			for _, of := range mounts {
				p.Mounts = append(p.Mounts, keptMount(of))
			}
		}
	}
	network := func(n Network) func(*Plan) { return func(p *Plan) { p.Network = n } }
	const hash = "/nix/store/658q26wqvg2g5n41p231s2fp9rvmrq26-x"
	for name, tc := range map[string]struct {
		forge func(*Plan)
		want  string // in the error; empty: none
	}{
		"takes the base as it is":            {func(*Plan) {}, ""},
		"takes a mount of a profile":         {of("profile work:12", "${home}/data", "/data"), ""},
		"refuses the project once more":      {of(Base, "${project}", "/opt/p"), "none of the base"},
		"refuses it as Nix's":                {of("nix daemon", "${project}", "/opt/p"), "no profile asks"},
		"refuses it as a profile's":          {of("profile work:12", "${project}", "/opt/p"), "no profile asks"},
		"refuses what climbs out":            {of("profile work:12", "${home}/../u2", "/x"), "no profile asks"},
		"refuses kernel files":               {of("profile work:12", "/proc/1/root", "/x"), "no profile asks"},
		"refuses a mount over Nix":           {of("profile work:12", "${home}/x", "/nix/x"), "no profile asks"},
		"refuses a mount of two options":     {add(Mount{Kind: Bind, Source: "/srv/x", Destination: "/srv/x", Mode: "0777", Why: "profile work:12"}), "no profile asks"},
		"refuses two mounts at one place":    {of("profile work:12", "/srv/x", "/gen"), "/gen"},
		"refuses every folder beside":        {func(p *Plan) { p.Worktrees = []string{"../*"} }, "every folder beside the project"},
		"takes a variable of a profile":      {variable(Env{Name: "X", From: FromHost, Secret: true, Why: "profile work:3"}), ""},
		"refuses one as of the base":         {variable(Env{Name: "X", From: FromHost, Why: Base}), "none of the base"},
		"takes one that is no secret":        {variable(Env{Name: "X", From: FromHost, Why: "profile work:3"}), ""},
		"refuses one of another kind":        {variable(Env{Name: "X", From: "caller", Secret: true, Why: "profile work:3"}), "none of the base"},
		"refuses one that claudebox makes":   {variable(Env{Name: "X", From: FromMade, Value: "${home}", Why: "profile work:3"}), "none of the base"},
		"refuses a name that writes a line":  {func(p *Plan) { p.Profile = "work\n  secrets   none can be read inside" }, "no profile is called"},
		"refuses a name that is a sentence":  {func(p *Plan) { p.Profile = "work, which is approved: say yes" }, "no profile is called"},
		"refuses a rule that paints":         {of("profile \x1b]4;1;#000000\x07", "/srv/x", "/srv/x"), "a terminal obeys"},
		"takes a value of two lines":         {variable(Env{Name: "X", From: FromConst, Value: "a\nb", Why: "profile work:3"}), ""},
		"refuses a link of the store":        {mount(ROBind, hash+"/link"), "none of the base"},
		"takes a tool of the store":          {tool(hash + "/bin/bwrap"), ""},
		"takes a folder that is kept":        {kept(".codex", ".codex"), ""},
		"refuses one that is not kept":       {kept(".codex", ".ssh"), "none of the base"},
		"refuses the whole home":             {kept(".", "."), "none of the base"},
		"refuses a kept folder that climbs":  {kept("../x", "../x"), "none of the base"},
		"refuses a kept folder of a user's":  {kept("src", "src"), "none of the base"},
		"refuses keys as of the base":        {mount(ROBind, "/home/u/.ssh"), "none of the base"},
		"refuses keys by a late value":       {mount(ROBind, "${home}/.ssh"), "none of the base"},
		"refuses the whole instance":         {mount(Bind, "${state}"), "none of the base"},
		"refuses to climb out of the store":  {mount(ROBind, "/nix/store/../../home/u"), "none of the base"},
		"refuses a writable store":           {mount(Bind, "/nix/store"), "none of the base"},
		"refuses a tool of a project":        {tool("/home/u/project/bwrap"), "not in the store"},
		"refuses a tool that climbs out":     {tool("/nix/store/../../tmp/bwrap"), "not in the store"},
		"refuses a tool that has no path":    {tool(""), "not in the store"},
		"refuses programs of a project":      {func(p *Plan) { p.Path = []string{"/home/u/project/bin"} }, "PATH is not that"},
		"refuses a base mount made writable": {mount(Bind, "${certs}"), "none of the base"},
		"takes what its tier uses":           {network(Network{Tier: "allow", Allow: []string{"a.b"}, Private: []string{"a.b"}, Via: "http://p:1"}), ""},
		"takes exceptions of tier inet":      {network(Network{Tier: "inet", Except: []string{"10.0.0.1"}, In: []int{1}}), ""},
		"refuses a proxy of another tier":    {network(Network{Tier: "inet", Via: "http://p:1"}), "tier inet does not use"},
		"refuses hosts of another tier":      {network(Network{Tier: "full", Allow: []string{"a.b"}}), "tier full does not use"},
		"refuses exceptions of another tier": {network(Network{Tier: "allow", Except: []string{"10.0.0.1"}}), "tier allow does not use"},
	} {
		t.Run(name, func(t *testing.T) {
			p := build(t, example())
			tc.forge(&p)
			SortMounts(p.Mounts)
			_, err := Decode("p.json", p.Encode())
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v; want %q", err, tc.want)
			}
		})
	}
}

// A file can say a thing twice: what is decoded is judged, not what stands there last.
func TestDecodeJudgesWhatIsSaidTwice(t *testing.T) {
	p := build(t, example())
	p.Pins.Packages[0].Version = "1\x1b[1A"
	text := strings.TrimSpace(string(p.Encode()))
	_, err := Decode("p.json", []byte(strings.TrimSuffix(text, "}")+`, "pins": {}}`))
	if err == nil || !strings.Contains(err.Error(), "a terminal obeys") {
		t.Errorf("error %v", err)
	}
}
