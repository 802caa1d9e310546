// Package expect is for what a test looks at: where it is not as it should be, the test fails and goes on. Only tests import
// it. It imports the standard library only.
package expect

import (
	"strings"
	"testing"
)

// Contains expects each of these in a text.
func Contains(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
