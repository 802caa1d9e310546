package shape

// Merge lays over on top of base, both of one shape: a later scalar wins,
// lists append, mappings join key by key; what is tagged !replace drops what
// base said. Neither value is changed.
func Merge(base, over Value) Value {
	switch {
	case !over.Said():
		return base
	case !base.Said() || over.Replace || over.Shape.Whole || over.Shape.Kind.isScalar():
		return over
	}
	joined := over
	joined.Broken = base.Broken || over.Broken
	if over.Shape.Kind == List {
		joined.Items = append(base.Items[:len(base.Items):len(base.Items)], over.Items...)
		return joined
	}
	joined.Members = mergeMembers(base.Members, over.Members)
	return joined
}

func mergeMembers(base, over []Member) []Member {
	at := make(map[string]int, len(base))
	members := append(make([]Member, 0, len(base)+len(over)), base...)
	for i, m := range members {
		at[m.Key] = i
	}
	for _, m := range over {
		if i, said := at[m.Key]; said {
			m.Value = Merge(members[i].Value, m.Value)
			members[i] = m
			continue
		}
		members = append(members, m)
	}
	return members
}
