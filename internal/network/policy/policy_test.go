package policy_test

import (
	"net/netip"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/network/flow"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/policy"
)

func entries(t *testing.T, private bool, patterns ...string) (list []policy.Entry) {
	t.Helper()
	for _, text := range patterns {
		p, err := hostpattern.Parse(text)
		must.Do(t, err)
		list = append(list, policy.Entry{Pattern: p, Private: private})
	}
	return list
}

func exceptions(t *testing.T, texts ...string) (list []policy.Exception) {
	t.Helper()
	for _, text := range texts {
		e, err := policy.ParseException(text)
		must.Do(t, err)
		list = append(list, e)
	}
	return list
}

func to(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

// byName is where a flow goes whose name is not looked up yet.
func byName(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.Addr{}, port) }

func TestJudge(t *testing.T) {
	here := policy.Host{
		Addresses: []netip.Addr{netip.MustParseAddr("192.168.77.10"), netip.MustParseAddr("198.51.100.9")},
		Networks:  []netip.Prefix{netip.MustParsePrefix("192.168.77.0/24"), netip.MustParsePrefix("198.51.100.0/24")},
	}
	brokered := func(name string, port uint16) bool { return name == "api.test" && (port == 443 || port == 0) }
	inet := policy.Rules{Tier: policy.TierInet, Answers: brokered}
	opened := policy.Rules{Tier: policy.TierInet, Except: exceptions(t, "192.168.77.20:5432", "10.1.0.0/16", "[fd00::7]:22", "192.168.77.10")}
	allow := policy.Rules{
		Tier:    policy.TierAllow,
		Allow:   append(entries(t, false, "good.test", "*.sub.test:8443", "api.test", "git.test:22"), entries(t, true, "corp.test", "git.sub.test:8443")...),
		Answers: brokered,
	}
	none := policy.Rules{Tier: policy.TierNone}
	for _, tc := range []struct {
		name  string
		rules policy.Rules
		flow  flow.Flow
		want  flow.Action
	}{
		{"the internet", inet, flow.Flow{Proto: flow.TCP, To: to("203.0.113.10:443")}, flow.Dial},
		{"the internet by UDP", inet, flow.Flow{Proto: flow.UDP, To: to("203.0.113.10:443")}, flow.Dial},
		{"the internet by ping", inet, flow.Flow{Proto: flow.ICMP, To: to("203.0.113.10:0")}, flow.Dial},
		{"the internet without a port", inet, flow.Flow{Proto: flow.TCP, To: to("203.0.113.10:0")}, flow.Refuse},
		{"the LAN", inet, flow.Flow{Proto: flow.TCP, To: to("192.168.77.2:80")}, flow.Refuse},
		{"the LAN, mapped", inet, flow.Flow{Proto: flow.TCP, To: to("[::ffff:192.168.77.2]:80")}, flow.Refuse},
		{"the machine's public neighbour", inet, flow.Flow{Proto: flow.TCP, To: to("198.51.100.20:80")}, flow.Refuse},
		{"no address", inet, flow.Flow{Proto: flow.TCP, To: byName(80)}, flow.Refuse},
		{"a host whose secrets are brokered", inet, flow.Flow{Proto: flow.TCP, To: byName(443), Name: "api.test"}, flow.Answer},
		{"the same at another port", inet, flow.Flow{Proto: flow.TCP, To: byName(80), Name: "api.test"}, flow.Dial},
		{"the same by UDP", inet, flow.Flow{Proto: flow.UDP, To: byName(443), Name: "api.test"}, flow.Refuse},
		{"a brokered host that leads home", inet, flow.Flow{Proto: flow.TCP, To: to("192.168.77.2:443"), Name: "api.test"}, flow.Refuse},

		{"an exception", opened, flow.Flow{Proto: flow.TCP, To: to("192.168.77.20:5432")}, flow.Dial},
		{"an exception at another port", opened, flow.Flow{Proto: flow.TCP, To: to("192.168.77.20:22")}, flow.Refuse},
		{"the neighbour of an exception", opened, flow.Flow{Proto: flow.TCP, To: to("192.168.77.21:5432")}, flow.Refuse},
		{"a network as an exception", opened, flow.Flow{Proto: flow.UDP, To: to("10.1.2.3:53")}, flow.Dial},
		{"an IPv6 exception", opened, flow.Flow{Proto: flow.TCP, To: to("[fd00::7]:22")}, flow.Dial},
		{"the machine itself, excepted", opened, flow.Flow{Proto: flow.TCP, To: to("192.168.77.10:80")}, flow.Refuse},

		{"a listed name", allow, flow.Flow{Proto: flow.TCP, To: byName(443), Name: "good.test"}, flow.Dial},
		{"a listed name and its address", allow, flow.Flow{Proto: flow.TCP, To: to("203.0.113.10:443"), Name: "good.test"}, flow.Dial},
		{"a listed name at another port", allow, flow.Flow{Proto: flow.TCP, To: byName(22), Name: "good.test"}, flow.Refuse},
		{"a listed port", allow, flow.Flow{Proto: flow.TCP, To: byName(22), Name: "git.test"}, flow.Dial},
		{"a name by a wildcard", allow, flow.Flow{Proto: flow.TCP, To: byName(8443), Name: "a.sub.test"}, flow.Dial},
		{"another name", allow, flow.Flow{Proto: flow.TCP, To: byName(443), Name: "evil.test"}, flow.Refuse},
		{"an address", allow, flow.Flow{Proto: flow.TCP, To: to("203.0.113.10:443")}, flow.Refuse},
		{"a listed name by UDP", allow, flow.Flow{Proto: flow.UDP, To: byName(443), Name: "good.test"}, flow.Refuse},
		{"a listed name that leads home", allow, flow.Flow{Proto: flow.TCP, To: to("192.168.77.2:443"), Name: "good.test"}, flow.Refuse},
		{"a listed name that leads to metadata", allow, flow.Flow{Proto: flow.TCP, To: to("169.254.169.254:80"), Name: "good.test"}, flow.Refuse},
		{"a private host", allow, flow.Flow{Proto: flow.TCP, To: to("192.168.77.2:443"), Name: "corp.test"}, flow.Dial},
		{"a private host below a domain that is listed", allow, flow.Flow{Proto: flow.TCP, To: to("192.168.77.2:8443"), Name: "git.sub.test"}, flow.Dial},
		{"its neighbour", allow, flow.Flow{Proto: flow.TCP, To: to("192.168.77.2:8443"), Name: "wiki.sub.test"}, flow.Refuse},
		{"a private host by a ULA", allow, flow.Flow{Proto: flow.TCP, To: to("[fd00::5]:443"), Name: "corp.test"}, flow.Dial},
		{"a private host that is this machine", allow, flow.Flow{Proto: flow.TCP, To: to("192.168.77.10:443"), Name: "corp.test"}, flow.Refuse},
		{"a private host that is the loopback", allow, flow.Flow{Proto: flow.TCP, To: to("127.0.0.1:443"), Name: "corp.test"}, flow.Refuse},
		{"a private host that is metadata", allow, flow.Flow{Proto: flow.TCP, To: to("169.254.169.254:80"), Name: "corp.test"}, flow.Refuse},
		{"a listed host that is brokered", allow, flow.Flow{Proto: flow.TCP, To: byName(443), Name: "api.test"}, flow.Answer},

		{"the internet in tier none", none, flow.Flow{Proto: flow.TCP, To: to("203.0.113.10:443")}, flow.Refuse},
		{"the zero rules", policy.Rules{}, flow.Flow{Proto: flow.TCP, To: to("192.168.77.2:443")}, flow.Refuse},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := policy.Judge(tc.rules, here, tc.flow)
			if got.Action != tc.want || (got.Why == "") != (tc.want != flow.Refuse) {
				t.Errorf("Judge(%+v) = %+v; want %v", tc.flow, got, tc.want)
			}
		})
	}
}

// They give the credentials of a cloud's machine to who asks: by a network that is excepted, and by a private host whose
// name leads there.
func TestNoRuleOpensAMetadataService(t *testing.T) {
	for _, address := range []string{
		"169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
		"fd00:c1::a9fe:a9fe", "fd00:a9fe:a9fe::1", "fd00:100::100:200",
	} {
		at := netip.AddrPortFrom(netip.MustParseAddr(address), 80)
		wide := policy.Rules{Tier: policy.TierInet, Except: exceptions(t, "100.0.0.0/8", "168.0.0.0/7", "192.0.0.0/8", "fc00::/7")}
		if v := policy.Judge(wide, policy.Host{}, flow.Flow{Proto: flow.TCP, To: at}); v.Action != flow.Refuse {
			t.Errorf("an exception opens %s", address)
		}
		private := policy.Rules{Tier: policy.TierAllow, Allow: entries(t, true, "corp.test")}
		if v := policy.Judge(private, policy.Host{}, flow.Flow{Proto: flow.TCP, To: at, Name: "corp.test"}); v.Action != flow.Refuse {
			t.Errorf("a private host opens %s", address)
		}
		if e, err := policy.ParseException(at.String()); err == nil {
			t.Errorf("%s can be written", e)
		}
	}
}

func TestExceptionsThatCannotBe(t *testing.T) {
	for _, text := range []string{
		"", "good.test", "192.168.1.20:", "192.168.1.20:0", "192.168.1.20:65536", "192.168.1.20:+1", "192.168.1.0/23:x", "192.168.1.1/24", "[fd00::1]x", "[fd00::1",
		"[fd00::1]]:80", "[[fd00::1]]:80", "[fd00::1]]",
		"fe80::1%eth0", "127.0.0.1:5432", "[::1]:22", "169.254.169.254", "0.0.0.0/0", "::/0", "239.1.2.3", "fe80::1", "168.63.129.16",
	} {
		if e, err := policy.ParseException(text); err == nil {
			t.Errorf("%q was taken for %s", text, e)
		}
	}
	for _, text := range []string{"192.168.1.20", "192.168.1.20:5432", "10.0.0.0/8", "10.0.0.0/8:53", "fd00::1", "fd00::", "[fd00::1]:22", "[fd00::/64]:22"} {
		if e, err := policy.ParseException(text); err != nil || e.String() != text {
			t.Errorf("%q is read as %s, %v", text, e, err)
		}
	}
}

func TestWhichNamesAreTheMachineThatAsks(t *testing.T) {
	for name, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"localhost.example": false, "10.0.0.1": false, "::": false, "": false,
	} {
		if got := policy.IsLoopback(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
