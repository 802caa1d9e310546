package nixdaemon

import (
	"fmt"
	"strings"

	"claudebox/internal/nix/storepath"
)

// Progress sums up the events of one operation for a waiting user. The
// zero value is ready; pass every event to [Progress.Hear], in order.
type Progress struct {
	Fetched, ToFetch uint64 // store paths; ToFetch grows as more is known
	Built, ToBuild   uint64 // derivations
	Bytes, ToDo      uint64 // unpacked size of what is fetched
	Building         string // name of the derivation whose build began last

	kinds  map[uint64]Activity // of the activities that are summed up
	copied map[uint64]uint64   // bytes, by activity
}

// Hear adds an event, and reports whether the sum has changed.
func (p *Progress) Hear(e Event) bool {
	switch e := e.(type) {
	case Start:
		switch e.Type {
		case CopyPath, CopyPaths, Builds:
			if p.kinds == nil {
				p.kinds, p.copied = map[uint64]Activity{}, map[uint64]uint64{}
			}
			p.kinds[e.ID] = e.Type
		case Build:
			if len(e.Fields) > 0 && storepath.Check(e.Fields[0].Text) == nil {
				p.Building = strings.TrimSuffix(storepath.Name(e.Fields[0].Text), ".drv")
				return true
			}
		}
	case Result:
		return p.result(e)
	}
	return false
}

func (p *Progress) result(r Result) bool {
	kind := p.kinds[r.ID]
	switch {
	case r.Type == SetExpected && len(r.Fields) == 2 && Activity(r.Fields[0].Number) == CopyPath:
		p.ToDo = max(p.ToDo, r.Fields[1].Number)
	case r.Type != Progressed || len(r.Fields) < 2:
		return false
	case kind == CopyPaths:
		p.Fetched, p.ToFetch = r.Fields[0].Number, r.Fields[1].Number
	case kind == Builds:
		p.Built, p.ToBuild = r.Fields[0].Number, r.Fields[1].Number
	case kind == CopyPath:
		p.Bytes += r.Fields[0].Number - p.copied[r.ID]
		p.copied[r.ID] = r.Fields[0].Number
	default:
		return false
	}
	return true
}

// String returns one line without a verb for the whole: "fetched 3 of 12 paths
// (40 of 210 MiB), built 0 of 1, building hello-2.12". It is empty while
// nothing is to be fetched or built.
func (p *Progress) String() string {
	var parts []string
	if p.ToFetch > 0 {
		part := fmt.Sprintf("fetched %d of %d paths", p.Fetched, p.ToFetch)
		if p.ToDo > 0 {
			part += fmt.Sprintf(" (%d of %d MiB)", p.Bytes>>20, p.ToDo>>20)
		}
		parts = append(parts, part)
	}
	if p.ToBuild > 0 {
		part := fmt.Sprintf("built %d of %d", p.Built, p.ToBuild)
		if p.Building != "" && p.Built < p.ToBuild {
			part += ", building " + p.Building
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
