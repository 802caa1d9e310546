package nixdaemon_test

import (
	"testing"

	"claudebox/internal/nix/nixdaemon"
)

func numbers(values ...uint64) []nixdaemon.Field {
	fields := make([]nixdaemon.Field, len(values))
	for i, v := range values {
		fields[i].Number = v
	}
	return fields
}

// The events are those of a real daemon of 2.34 that fetches two paths and
// builds one derivation.
func TestProgress(t *testing.T) {
	const all, builds, copies, copyA, copyB, other, building = 2, 3, 4, 5, 6, 7, 8
	result := func(id uint64, kind nixdaemon.ResultType, values ...uint64) nixdaemon.Result {
		return nixdaemon.Result{ID: id, Type: kind, Fields: numbers(values...)}
	}
	var p nixdaemon.Progress
	for i, step := range []struct {
		event nixdaemon.Event
		want  string
	}{
		{nixdaemon.Start{ID: all, Type: 102}, ""},
		{nixdaemon.Start{ID: builds, Type: nixdaemon.Builds}, ""},
		{nixdaemon.Start{ID: copies, Type: nixdaemon.CopyPaths}, ""},
		{result(builds, nixdaemon.Progressed, 0, 0, 0, 0), ""},
		{result(copies, nixdaemon.Progressed, 0, 2, 0, 0), "fetched 0 of 2 paths"},
		{result(all, nixdaemon.SetExpected, 101, 9<<20), "fetched 0 of 2 paths"}, // compressed: not what is counted
		{result(all, nixdaemon.SetExpected, 100, 28<<20), "fetched 0 of 2 paths (0 of 28 MiB)"},
		{nixdaemon.Start{ID: copyA, Type: nixdaemon.CopyPath}, "fetched 0 of 2 paths (0 of 28 MiB)"},
		{nixdaemon.Start{ID: copyB, Type: nixdaemon.CopyPath}, "fetched 0 of 2 paths (0 of 28 MiB)"},
		{result(copyA, nixdaemon.Progressed, 3<<20, 20<<20, 0, 0), "fetched 0 of 2 paths (3 of 28 MiB)"},
		{result(copyB, nixdaemon.Progressed, 1<<20, 8<<20, 0, 0), "fetched 0 of 2 paths (4 of 28 MiB)"},
		{result(copyA, nixdaemon.Progressed, 20<<20, 20<<20, 0, 0), "fetched 0 of 2 paths (21 of 28 MiB)"},
		{result(other, nixdaemon.Progressed, 1<<30, 1<<30, 0, 0), "fetched 0 of 2 paths (21 of 28 MiB)"},
		{result(copies, nixdaemon.Progressed, 1, 2, 1, 0), "fetched 1 of 2 paths (21 of 28 MiB)"},
		{result(builds, nixdaemon.Progressed, 0, 1, 0, 0), "fetched 1 of 2 paths (21 of 28 MiB), built 0 of 1"},
		{
			nixdaemon.Start{ID: building, Type: nixdaemon.Build, Fields: []nixdaemon.Field{{Text: drvA, IsText: true}}},
			"fetched 1 of 2 paths (21 of 28 MiB), built 0 of 1, building a",
		},
		{nixdaemon.Result{ID: building, Type: nixdaemon.BuildLogLine, Fields: []nixdaemon.Field{{Text: "x", IsText: true}}}, "fetched 1 of 2 paths (21 of 28 MiB), built 0 of 1, building a"},
		{nixdaemon.Stop{ID: copyA}, "fetched 1 of 2 paths (21 of 28 MiB), built 0 of 1, building a"},
		{result(copies, nixdaemon.Progressed), "fetched 1 of 2 paths (21 of 28 MiB), built 0 of 1, building a"},
		{result(builds, nixdaemon.Progressed, 1, 1, 0, 0), "fetched 1 of 2 paths (21 of 28 MiB), built 1 of 1"},
	} {
		before := p.String()
		changed := p.Hear(step.event)
		if got := p.String(); got != step.want {
			t.Errorf("after event %d it says %q; want %q", i, got, step.want)
		}
		if p.String() != before && !changed {
			t.Errorf("event %d changed the sum and did not say so", i)
		}
	}
}
