package dns

import (
	"encoding/binary"
	"errors"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// question is a client's question, and what answer the client accepts.
type question struct {
	header dnsmessage.Header
	dnsmessage.Question
	edns bool // it understands EDNS
	do   bool // it also wants DNSSEC records
	room int  // bytes that it accepts by UDP
}

// name is the name that is asked for, in lower case and without the last dot.
func (q question) name() string {
	return strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
}

// refusal is an answer without records.
type refusal struct{ code dnsmessage.RCode }

func (r refusal) Error() string { return "refused: " + r.code.String() }

var errNoQuery = errors.New("not a query")

// Types that are no question for records: transfers of zones, everything, keys of
// transactions (RFC 6895, 3.1), and what the sender says of itself.
const firstMeta, lastMeta = 128, 255

// smallest is what every client takes by UDP (RFC 1035, 4.2.1), and ours what
// we ask for, which no path cuts in pieces.
const (
	smallest = 512
	ours     = 1232
)

// parse reads a query with one question. An error that is a [refusal] is to be answered; after any other
// error nothing is.
func parse(message []byte) (q question, err error) {
	var p dnsmessage.Parser
	if q.header, err = p.Start(message); err != nil || q.header.Response {
		return q, errNoQuery
	}
	if q.header.OpCode != 0 {
		return q, refusal{dnsmessage.RCodeNotImplemented}
	}
	asked, err := p.AllQuestions()
	if err != nil {
		return q, refusal{dnsmessage.RCodeFormatError}
	}
	if len(asked) != 1 {
		return q, refusal{dnsmessage.RCodeNotImplemented}
	}
	q.Question, q.room = asked[0], smallest
	isMeta := q.Type >= firstMeta && q.Type <= lastMeta || q.Type == dnsmessage.TypeOPT || q.Type == 0
	if isMeta || q.Class != dnsmessage.ClassINET {
		return q, refusal{dnsmessage.RCodeRefused}
	}
	return q, q.readRest(&p)
}

// readRest reads what may stand behind a question: what the client says of
// itself (RFC 6891), and nothing else.
func (q *question) readRest(p *dnsmessage.Parser) error {
	malformed := refusal{dnsmessage.RCodeFormatError}
	if _, err := p.AnswerHeader(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return malformed
	}
	if _, err := p.AuthorityHeader(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return malformed
	}
	for {
		h, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return nil
		}
		if err != nil || h.Type != dnsmessage.TypeOPT || q.edns {
			return malformed
		}
		q.edns, q.do, q.room = true, h.DNSSECAllowed(), max(smallest, int(h.Class))
		if err := p.SkipAdditional(); err != nil {
			return malformed
		}
	}
}

// upstream returns the query that we send to a resolver for the question.
func (q question) upstream(id uint16) ([]byte, error) {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{
		ID: id, RecursionDesired: true, CheckingDisabled: q.header.CheckingDisabled,
		AuthenticData: q.header.AuthenticData,
	})
	var opt dnsmessage.ResourceHeader
	err := errors.Join(b.StartQuestions(), b.Question(q.Question), b.StartAdditionals(),
		opt.SetEDNS0(ours, dnsmessage.RCodeSuccess, q.do))
	if err == nil && q.edns {
		err = b.OPTResource(opt, dnsmessage.OPTResource{})
	}
	if err != nil {
		return nil, err
	}
	return b.Finish()
}

// answers reports whether a message is the answer to the question that was
// asked with an id.
func (q question) answers(message []byte, id uint16) bool {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || !h.Response || h.ID != id {
		return false
	}
	asked, err := p.AllQuestions()
	return err == nil && len(asked) == 1 && asked[0].Type == q.Type && asked[0].Class == q.Class &&
		strings.EqualFold(asked[0].Name.String(), q.Name.String())
}

// reply begins an answer of our own.
func (q question) reply(code dnsmessage.RCode) dnsmessage.Builder {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{
		ID: q.header.ID, Response: true, OpCode: q.header.OpCode, RCode: code,
		RecursionDesired: q.header.RecursionDesired, RecursionAvailable: true,
	})
	b.EnableCompression()
	return b
}

// refuse returns an answer with only the reason of a refusal. Options are for a client that understands EDNS.
func (q question) refuse(code dnsmessage.RCode, options ...dnsmessage.Option) []byte {
	b := q.reply(code)
	if q.Name.Length > 0 && b.StartQuestions() == nil {
		_ = b.Question(q.Question)
	}
	var opt dnsmessage.ResourceHeader
	if q.edns && b.StartAdditionals() == nil && opt.SetEDNS0(ours, code, q.do) == nil {
		_ = b.OPTResource(opt, dnsmessage.OPTResource{Options: options})
	}
	message, err := b.Finish()
	if err != nil {
		return nil
	}
	return message
}

// unlisted is why a name that is not on the list of hosts does not exist (RFC 8914): the code Blocked, and a text.
func unlisted() dnsmessage.Option {
	const extendedError, blocked = 15, 15
	data := binary.BigEndian.AppendUint16(nil, blocked)
	return dnsmessage.Option{
		Code: extendedError,
		Data: append(data, "claudebox: not on the list of hosts; `claudebox-why HOST` says what the user can run"...),
	}
}

// truncate returns an answer that tells a client to ask again by TCP.
func (q question) truncate() []byte {
	message := q.refuse(dnsmessage.RCodeSuccess)
	const flags, tc = 2, 0x02
	if len(message) > flags {
		message[flags] |= tc
	}
	return message
}
