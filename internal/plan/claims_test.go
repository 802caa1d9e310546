package plan

import (
	"slices"
	"strings"
	"testing"
)

func TestDecodeBelievesNoFalseClaim(t *testing.T) {
	mount := func(kind MountKind, source string) func(*Plan) {
		return func(p *Plan) {
			p.Mounts = append(p.Mounts, Mount{Kind: kind, Source: source, Destination: "/mnt", Why: Base})
		}
	}
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
		"takes a path of a closure":          {mount(ROBind, hash), ""},
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
		"refuses a base mount made writable": {mount(Bind, "${certs}"), "none of the base"},
		"takes what its tier uses":           {network(Network{Tier: "allow", Allow: []string{"a.b"}, Private: []string{"a.b"}, Via: "http://p:1"}), ""},
		"takes exceptions of tier inet":      {network(Network{Tier: "inet", Except: []string{"10.0.0.1"}, In: []int{1}}), ""},
		"refuses a proxy of another tier":    {network(Network{Tier: "inet", Via: "http://p:1"}), "tier inet does not use"},
		"refuses hosts of another tier":      {network(Network{Tier: "full", Allow: []string{"a.b"}}), "tier full does not use"},
		"refuses exceptions of another tier": {network(Network{Tier: "allow", Except: []string{"10.0.0.1"}}), "tier allow does not use"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan{Version: Version, Mounts: slices.Concat(based(baseMounts), based(cacheMounts("project")))}
			tc.forge(&p)
			_, err := Decode("p.json", p.Encode())
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v; want %q", err, tc.want)
			}
		})
	}
}
