package survey

import "claudebox/internal/linux/cachefile"

// Large reports whether a survey is worth keeping: whether a first walk takes
// longer than to read it back.
func (s *Survey) Large() bool {
	const folders = 200
	return len(s.folders) > folders
}

// Pack writes a survey down, for a later walk by the same question to go by.
// Only this very build can read it.
func (s *Survey) Pack() []byte {
	list := make([]folder, 0, len(s.folders))
	for _, f := range s.folders {
		list = append(list, *f)
	}
	return cachefile.Encode(list)
}

// Unpack reads it back; nil when it is none.
func Unpack(content []byte) *Survey {
	var list []folder
	if !cachefile.Decode(content, &list) {
		return nil
	}
	s := &Survey{folders: make(map[string]*folder, len(list))}
	for i := range list {
		s.folders[list[i].Rel] = &list[i]
	}
	return s
}
