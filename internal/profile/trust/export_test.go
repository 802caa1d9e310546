package trust

import "slices"

// FieldNames are the fields of a profile that Narrow judges.
func FieldNames() []string {
	var names []string
	for _, s := range settings {
		names = append(names, s.field)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
