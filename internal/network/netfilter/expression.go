package netfilter

import (
	"golang.org/x/sys/unix"

	"claudebox/internal/network/netlink"
)

// expression adds itself to the expressions of a rule. The names and
// attributes are those of linux/netfilter/nf_tables.h.
type expression func(*netlink.Message)

// register is the one that every expression here loads and reads.
const register = unix.NFT_REG_1

// step is one expression of the kernel.
func step(name string, fill func(*netlink.Message)) expression {
	return func(m *netlink.Message) {
		m.Nest(unix.NFTA_LIST_ELEM, func() {
			m.Text(unix.NFTA_EXPR_NAME, name)
			m.Nest(unix.NFTA_EXPR_DATA, func() { fill(m) })
		})
	}
}

func both(a, b expression) expression {
	return func(m *netlink.Message) {
		a(m)
		b(m)
	}
}

// meta loads what the kernel knows of a packet.
func meta(key uint32) expression {
	return step("meta", func(m *netlink.Message) {
		m.Big(unix.NFTA_META_KEY, key)
		m.Big(unix.NFTA_META_DREG, register)
	})
}

// load loads bytes of a packet.
func load(base, offset, length uint32) expression {
	return step("payload", func(m *netlink.Message) {
		m.Big(unix.NFTA_PAYLOAD_DREG, register)
		m.Big(unix.NFTA_PAYLOAD_BASE, base)
		m.Big(unix.NFTA_PAYLOAD_OFFSET, offset)
		m.Big(unix.NFTA_PAYLOAD_LEN, length)
	})
}

// equals goes on when the loaded value is this one.
func equals(value ...byte) expression {
	return step("cmp", func(m *netlink.Message) {
		m.Big(unix.NFTA_CMP_SREG, register)
		m.Big(unix.NFTA_CMP_OP, unix.NFT_CMP_EQ)
		m.Nest(unix.NFTA_CMP_DATA, func() { m.Bytes(unix.NFTA_DATA_VALUE, value) })
	})
}

// isIn goes on when the loaded value is in a set.
func isIn(set string) expression {
	return step("lookup", func(m *netlink.Message) {
		m.Text(unix.NFTA_LOOKUP_SET, set)
		m.Big(unix.NFTA_LOOKUP_SREG, register)
	})
}

// accept lets a packet out.
func accept(m *netlink.Message) {
	step("immediate", func(m *netlink.Message) {
		m.Big(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
		m.Nest(unix.NFTA_IMMEDIATE_DATA, func() {
			m.Nest(unix.NFTA_DATA_VERDICT, func() { m.Big(unix.NFTA_VERDICT_CODE, nfAccept) })
		})
	})(m)
}

const (
	nfDrop   = 0 // NF_DROP, linux/netfilter.h
	nfAccept = 1 // NF_ACCEPT
)

// reset ends a TCP connection at once, as if nobody listened; refuse tells the
// sender of any other packet. Without them programs would wait for minutes.
func reset(m *netlink.Message) { reject(m, unix.NFT_REJECT_TCP_RST, 0) }

func refuse(m *netlink.Message) {
	reject(m, unix.NFT_REJECT_ICMPX_UNREACH, unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED)
}

func reject(m *netlink.Message, kind uint32, code byte) {
	step("reject", func(m *netlink.Message) {
		m.Big(unix.NFTA_REJECT_TYPE, kind)
		m.Bytes(unix.NFTA_REJECT_ICMP_CODE, []byte{code})
	})(m)
}
