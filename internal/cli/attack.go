package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/session"
	"claudebox/internal/ui/attack"
	"claudebox/internal/ui/doctor"
)

// attackPatience bounds the start of the sandbox and all attacks together.
const attackPatience = 30 * time.Second

// checkAttacks plans with these options, launches that plan in a planted project with claudebox itself as the attacker,
// and prints what it got. It fails if an attack got something, or could not be run.
func checkAttacks(sys System, o options, format string) error {
	if err := knownFormat(format); err != nil {
		return err
	}
	facts, err := host.Detect()
	if err != nil {
		return err
	}
	p, err := session.Plan(sys.Caller(), o.Options, session.Purpose{})
	if err != nil {
		return err
	}
	made, err := attack.Make(facts.Home)
	if err != nil {
		return err
	}
	defer made.Close()
	loot, err := attackInside(sys, p, made)
	if err != nil {
		return err
	}
	findings := attack.Judge(loot, p.Network.Tier)
	if err := printFindings(sys, facts, findings, format); err != nil {
		return err
	}
	if failed := doctor.Count(findings, doctor.Failed); failed > 0 {
		return diag.Errorf("attack a sandbox of profile "+p.Profile, "", "%d of %d attacks got something", failed,
			len(findings))
	}
	said := fmt.Sprintf("%d attacks got nothing", doctor.Count(findings, doctor.OK))
	if open := doctor.Count(findings, doctor.Info); open > 0 {
		said += fmt.Sprintf("; %d are open by tier %s", open, p.Network.Tier)
	}
	diag.Note(sys.Stderr, said)
	return nil
}

// attackInside launches by the plan, with everything in this process's hands
// that a careless caller has: a secret in the environment, an open file.
func attackInside(sys System, p plan.Plan, made *attack.Made) (attack.Loot, error) {
	file := filepath.Join(made.Folder(), "plan.json")
	if err := os.WriteFile(file, p.Encode(), 0o600); err != nil {
		return nil, err
	}
	targets, err := json.Marshal(made.Targets)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	leaked, err := os.Open(made.HostFile)
	if err != nil {
		return nil, err
	}
	defer leaked.Close()
	ctx, cancel := context.WithTimeout(context.Background(), attackPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "shell", "--yes", "--no-report", "--plan", file, "--mount-ro",
		self+":"+attack.Place,
		"--", attack.Place, string(targets))
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = made.Project, &out, sys.Stderr, []*os.File{leaked}
	cmd.Env = append(os.Environ(), "CLAUDEBOX_ATTACK="+made.Canary,
		"CLAUDEBOX_HOME="+filepath.Join(made.Folder(), "state"))
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("the attacks took longer than %s", attackPatience)
		}
		return nil, &diag.Error{Op: "attack a sandbox", Err: err, Remedy: "`claudebox check` says what a launch needs"}
	}
	var loot attack.Loot
	if err := json.Unmarshal(out.Bytes(), &loot); err != nil {
		return nil, &diag.Error{Op: "read what the attacks got", Err: err}
	}
	return loot, nil
}
