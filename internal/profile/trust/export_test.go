package trust

import "slices"

// FieldNames are the fields of a profile that Narrow judges.
func FieldNames() []string {
	return slices.Compact(mapped(settings, func(s setting) string { return s.field }))
}
