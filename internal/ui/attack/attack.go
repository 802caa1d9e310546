package attack

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"claudebox/internal/ui/doctor"
)

// Place is where claudebox's own program is mounted inside, as the attacker. Started by this name it
// attacks, see [Run].
const Place = "/opt/claudebox-attack"

// Targets are what an attacker looks for.
type Targets struct {
	Canary    string   // stands in the caller's environment, in files, and behind sockets
	Project   string   // the project's folder, a repository
	Home      string   // the user's
	GitFolder string   // identity of the project's .git, see [FileID]
	HostFile  string   // a file of the host's /tmp that holds the canary
	Loopback  string   // address of a service on the host's 127.0.0.1
	Addresses []string // the same service at this machine's other addresses
	Abstract  string   // name of an abstract socket
	Socket    string   // path of a socket
}

// Loot maps the name of each attack that was tried to what it got; empty: nothing.
type Loot map[string]string

// try is one attack.
type try struct {
	name string               // stays as it is: programs read it
	gets string               // what it would have got
	run  func(Targets) string // what it got; empty: nothing
}

// tries are all attacks, in the order in which they are shown.
func tries() []try {
	return slices.Concat(processTries, fileTries, projectTries, kernelTries, socketFamilyTries, fullTries,
		unixSocketTries)
}

// Run runs all attacks, if words say that this program was started as the attacker, and prints its [Loot] as JSON.
// status is the exit status; ran is false if the program is not the attacker.
func Run(words []string) (status int, ran bool) {
	if len(words) != 2 || words[0] != Place {
		return 0, false
	}
	var t Targets
	if err := json.Unmarshal([]byte(words[1]), &t); err != nil {
		fmt.Fprintln(os.Stderr, "claudebox: read the targets:", err)
		return 125, true
	}
	loot := Loot{}
	for _, a := range tries() {
		loot[a.name] = a.run(t)
	}
	if err := json.NewEncoder(os.Stdout).Encode(loot); err != nil {
		return 125, true
	}
	return 0, true
}

// Judge makes a finding for each attack: whether it got what it must not get in a sandbox of
// tier. An attack that was not tried counts as one that succeeded.
func Judge(loot Loot, tier string) []doctor.Finding {
	open := func(a try) bool {
		return tier == "full" && slices.ContainsFunc(fullTries, func(f try) bool { return f.name == a.name })
	}
	var list []doctor.Finding
	for _, a := range tries() {
		got, tried := loot[a.name]
		f := doctor.Finding{Name: a.name, Level: doctor.OK, Detail: "not got: " + a.gets}
		switch {
		case !tried:
			f.Level, f.Detail, f.Remedy = doctor.Failed, "not tried: "+a.gets, "report this"
		case got != "" && open(a):
			f.Level, f.Detail = doctor.Info, "open, as network: full says: "+a.gets
		case got != "":
			f.Level, f.Detail = doctor.Failed, "got "+got+": "+a.gets
			f.Remedy = "do not use this sandbox for what you do not trust, and report this"
		}
		list = append(list, f)
	}
	return list
}
