package netfilter

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/network/netlink"
)

// Names inside the namespace, for nft(8) to show.
const (
	tableName = "claudebox"
	chainName = "out"
)

// tables is a filter of nf_tables.
type tables struct{ socket *netlink.Socket }

// load puts the rules in force, all at once.
func (t tables) load(rules []Rule, forbidden []netip.Prefix) error {
	batch := []netlink.Message{
		begin(),
		command(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, func(m *netlink.Message) {
			m.Text(unix.NFTA_TABLE_NAME, tableName)
		}),
		command(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, chain),
	}
	for i, f := range families {
		batch = append(batch, command(unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE, f.newSet(uint32(i+1))))
		batch = append(batch, f.fill(forbidden)...)
	}
	for _, r := range rules {
		batch = append(batch, command(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, r.add))
	}
	return t.socket.Ask(append(batch, end())...)
}

// replace makes other addresses the forbidden ones, in one step: a packet
// meets the old or the new.
func (t tables) replace(forbidden []netip.Prefix) error {
	batch := []netlink.Message{begin()}
	for _, f := range families {
		batch = append(batch, command(unix.NFT_MSG_DELSETELEM, 0, f.nameSet))
		batch = append(batch, f.fill(forbidden)...)
	}
	return t.socket.Ask(append(batch, end())...)
}

// begin and end make the commands between them one transaction.
func begin() netlink.Message { return edge(unix.NFNL_MSG_BATCH_BEGIN) }
func end() netlink.Message   { return edge(unix.NFNL_MSG_BATCH_END) }

func edge(kind uint16) netlink.Message {
	m := netlink.New(kind, 0, unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, 0)
	binary.BigEndian.PutUint16(m[unix.SizeofNlMsghdr+2:], unix.NFNL_SUBSYS_NFTABLES) // nfgenmsg.res_id
	return m
}

// command is one message of nf_tables, for packets of both families.
func command(kind uint16, flags int, fill func(*netlink.Message)) netlink.Message {
	m := netlink.New(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags|unix.NLM_F_ACK, unix.NFPROTO_INET, unix.NFNETLINK_V0, 0, 0)
	fill(&m)
	return m
}

// chain sees every packet that leaves, and drops it unless a rule says
// otherwise.
func chain(m *netlink.Message) {
	m.Text(unix.NFTA_CHAIN_TABLE, tableName)
	m.Text(unix.NFTA_CHAIN_NAME, chainName)
	m.Nest(unix.NFTA_CHAIN_HOOK, func() {
		m.Big(unix.NFTA_HOOK_HOOKNUM, unix.NF_INET_LOCAL_OUT)
		m.Big(unix.NFTA_HOOK_PRIORITY, 0)
	})
	m.Big(unix.NFTA_CHAIN_POLICY, nfDrop)
	m.Text(unix.NFTA_CHAIN_TYPE, "filter")
}

func (r Rule) add(m *netlink.Message) {
	m.Text(unix.NFTA_RULE_TABLE, tableName)
	m.Text(unix.NFTA_RULE_CHAIN, chainName)
	m.Nest(unix.NFTA_RULE_EXPRESSIONS, func() {
		for _, e := range r.match {
			e(m)
		}
		r.verdict(m)
	})
}

func (f addressFamily) newSet(id uint32) func(*netlink.Message) {
	return func(m *netlink.Message) {
		m.Text(unix.NFTA_SET_TABLE, tableName)
		m.Text(unix.NFTA_SET_NAME, f.set)
		m.Big(unix.NFTA_SET_FLAGS, unix.NFT_SET_INTERVAL)
		m.Big(unix.NFTA_SET_KEY_TYPE, f.setType)
		m.Big(unix.NFTA_SET_KEY_LEN, f.length)
		m.Big(unix.NFTA_SET_ID, id)
	}
}

// nameSet names the set of a command on its elements; without any, all are
// meant.
func (f addressFamily) nameSet(m *netlink.Message) {
	m.Text(unix.NFTA_SET_ELEM_LIST_TABLE, tableName)
	m.Text(unix.NFTA_SET_ELEM_LIST_SET, f.set)
}

// mostIntervals bounds one command, whose elements are one attribute of at
// most 64 KiB.
const mostIntervals = 512

// fill puts the prefixes of the family into its set.
func (f addressFamily) fill(forbidden []netip.Prefix) []netlink.Message {
	var commands []netlink.Message
	for some := range slices.Chunk(intervals(forbidden, f.ipv4), mostIntervals) {
		commands = append(commands, command(unix.NFT_MSG_NEWSETELEM, unix.NLM_F_CREATE, func(m *netlink.Message) {
			f.nameSet(m)
			m.Nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS, func() {
				for _, i := range some {
					i.add(m)
				}
			})
		}))
	}
	return commands
}

// add adds the elements at which the interval begins and, if there are
// addresses behind it, ends.
func (i interval) add(m *netlink.Message) {
	element(m, i.first, 0)
	if behind := i.last.Next(); behind.IsValid() {
		element(m, behind, unix.NFT_SET_ELEM_INTERVAL_END)
	}
}

func element(m *netlink.Message, key netip.Addr, flags uint32) {
	m.Nest(unix.NFTA_LIST_ELEM, func() {
		if flags != 0 {
			m.Big(unix.NFTA_SET_ELEM_FLAGS, flags)
		}
		m.Nest(unix.NFTA_SET_ELEM_KEY, func() { m.Bytes(unix.NFTA_DATA_VALUE, key.AsSlice()) })
	})
}
