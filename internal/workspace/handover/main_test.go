package handover

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Most tests wait: for a clock, or for git. So more of them run at once than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if at, _ := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); at < 8 {
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}
