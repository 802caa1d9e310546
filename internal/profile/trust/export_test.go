package trust

// FieldNames are the fields of a profile that Narrow judges.
func FieldNames() []string { return mapped(fields, func(f field) string { return f.name }) }
