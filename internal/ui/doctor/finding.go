package doctor

import (
	"errors"

	"claudebox/internal/diag"
)

// Level is how much a finding matters.
type Level string

const (
	OK      Level = "ok"
	Info    Level = "info"    // good to know, nothing to do
	Warning Level = "warning" // a launch starts, with less than it could have
	Failed  Level = "failed"  // a launch does not start
)

// Finding is what one look came to. Its JSON form is for programs and stays
// as it is.
type Finding struct {
	Name   string `json:"name"` // what was looked at: "user namespaces"
	Level  Level  `json:"level"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"` // one imperative line; empty when none is needed
}

// What a look comes to.
func ok(detail string) Finding   { return Finding{Level: OK, Detail: detail} }
func info(detail string) Finding { return Finding{Level: Info, Detail: detail} }
func warning(detail, remedy string) Finding {
	return Finding{Level: Warning, Detail: detail, Remedy: remedy}
}

func failed(detail, remedy string) Finding {
	return Finding{Level: Failed, Detail: detail, Remedy: remedy}
}

// Faults are the findings of an error: one for each problem of a file, else
// one. Without an error there are none.
func Faults(name string, err error) (list []Finding) {
	var problems diag.Problems
	switch {
	case err == nil:
	case errors.As(err, &problems):
		for _, p := range problems {
			list = append(list, Finding{name, Failed, p.String() + ": " + p.Message, p.Remedy})
		}
	default:
		list = []Finding{{name, Failed, err.Error(), diag.Remedy(err)}}
	}
	return list
}

func fault(err error) Finding { return failed(err.Error(), diag.Remedy(err)) }

// Count is how many findings are of a level.
func Count(findings []Finding, level Level) int {
	n := 0
	for _, f := range findings {
		if f.Level == level {
			n++
		}
	}
	return n
}
