package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/session"
	"claudebox/internal/session/planning"
	"claudebox/internal/ui/attack"
	"claudebox/internal/ui/doctor"
)

const checkLong = `Look at everything that a launch in this folder needs, and say what is missing
and what to do about it. The steps of a launch are taken, with a folder of
claudebox's own that is thrown away: nothing is changed, and no agent is run.

With --attack a sandbox of the profile is started around a project that is made
for it, and our own program tries from inside what is known to have worked
against such sandboxes: a line for each, red where it got something. Nothing but
this machine is contacted.

Format json is an array of {name, level, detail, remedy}; the level is ok, info,
warning or failed. The exit status is 0 when nothing failed, else 125.`

func newCheckCommand(sys System) *cobra.Command {
	var o *options
	var format string
	var attacked bool
	c := &cobra.Command{
		Use: "check [flags]", Short: "Check what a launch needs, and say what to do about it", Long: checkLong,
		Args: noWords,
		RunE: func(*cobra.Command, []string) error {
			if err := knownFormat(format, "print the findings"); err != nil {
				return err
			}
			if attacked {
				return checkAttacks(sys, *o, format)
			}
			return checkLaunch(sys, *o, format)
		},
	}
	o = addLaunchFlags(c.Flags(), append([]string{"yes"}, planFlags...)...)
	c.Flags().BoolVar(&attacked, "attack", false, "attack a sandbox from inside")
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

// checkLaunch looks at everything that a launch with these options needs, and
// prints what it finds. It changes nothing. It returns an error if a launch would
// not start.
func checkLaunch(sys System, o options, format string) error {
	c := session.Check(sys.Caller(), o.Options)
	return printFindings(sys, c.Facts, c.Findings, format, "check what a launch needs", "%d of %d checks failed")
}

func knownFormat(format, op string) error {
	if format != "text" && format != "json" {
		return diag.Errorf(op, "use text or json", "there is no format %q", format)
	}
	return nil
}

// printFindings prints findings as text or json. If any is [doctor.Failed] it returns an error of op, whose cause is
// count with the numbers of failed findings and of all.
func printFindings(sys System, facts host.Facts, list []doctor.Finding, format, op, count string) (err error) {
	text := doctor.Text(viewOn(sys.Stdout, facts).View, list)
	if format == "json" {
		text, err = jsonText(list)
	}
	if err == nil {
		_, err = io.WriteString(sys.Stdout, text)
	}
	if failed := doctor.Count(list, doctor.Failed); err == nil && failed > 0 {
		return diag.Errorf(op, "", count, failed, len(list))
	}
	return err
}

// attackPatience bounds the start of the sandbox and all attacks together.
const attackPatience = 30 * time.Second

// checkAttacks plans with these options, launches that plan in a planted project with claudebox itself as the attacker,
// and prints what it got. It fails if an attack got something, or could not be run.
func checkAttacks(sys System, o options, format string) error {
	facts, err := host.Detect()
	if err != nil {
		return err
	}
	p, err := planning.Plan(sys.Caller(), o.Options, planning.Purpose{})
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
	op := "attack a sandbox of profile " + p.Profile
	if err := printFindings(sys, facts, findings, format, op, "%d of %d attacks got something"); err != nil {
		return err
	}
	said := fmt.Sprintf("%d attacks got nothing", doctor.Count(findings, doctor.OK))
	if open := doctor.Count(findings, doctor.Info); open > 0 {
		said += fmt.Sprintf("; %d are open by tier %s", open, p.Network.Tier)
	}
	diag.Note(sys.Stderr, said)
	return nil
}

// attackInside launches by the plan, as a careless caller would: with
// a secret in the environment, and an open file.
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
	cmd := exec.CommandContext(ctx, self, "shell", "--yes", "--no-report", "--plan", file,
		"--mount-ro", self+":"+attack.Place, "--", attack.Place, string(targets))
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
