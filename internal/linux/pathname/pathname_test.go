package pathname

import "testing"

func TestBelow(t *testing.T) {
	for _, tc := range []struct {
		path, folder string
		want         bool
	}{
		{"/a", "/a", true},
		{"/a/b", "/a", true},
		{"/ab", "/a", false},
		{"/a", "/a/b", false},
		{"/a", "/", true},
		{"/", "/", true},
		{"a/b", "a", true},
		{"ab", "a", false},
	} {
		if got := Below(tc.path, tc.folder); got != tc.want {
			t.Errorf("Below(%q, %q) = %v", tc.path, tc.folder, got)
		}
	}
}
