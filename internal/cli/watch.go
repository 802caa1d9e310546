package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/session/live"
	"claudebox/internal/session/sessions"
)

const watchLong = `Say line by line what happens in a session while it runs: hosts that were
refused, with the command that would allow them, and hosts that were reached;
commits that crossed, names that are held back until its end, secrets that were
used. Without an id these are all sessions of this project: it waits for the
first, and ends with the last. With --json each line is a JSON object.

What the agent does again and again is said when its count has doubled, and of a
flood you read the number.`

const watchExample = `  claudebox watch
  claudebox watch k3v9qdxm
  claudebox watch --json | jq .host`

func newWatchCommand(sys System) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "watch [ID]", Short: "Say what happens in the sessions of this project", Long: watchLong,
		Example: watchExample, Args: oneWord,
		RunE: func(_ *cobra.Command, words []string) error {
			w := &watcher{System: sys, json: asJSON, known: map[string]bool{}, heard: make(chan heard)}
			if len(words) > 0 {
				w.id = words[0]
			}
			return w.run()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return c
}

// watcher prints what sessions tell.
type watcher struct {
	System
	id     string // of the only session; empty: all here
	json   bool
	looked bool            // for sessions, before
	known  map[string]bool // sessions that are listened to, or were
	count  int             // how many are
	heard  chan heard
}

// heard is what a session tells.
type heard struct {
	sessions.Live
	events []live.Event
	err    error // it is the last of that session
}

// lookAgain is how often new sessions are looked for.
const lookAgain = 2 * time.Second

func (w *watcher) run() error {
	if err := w.listen(); err != nil {
		return err
	}
	if w.count == 0 {
		diag.Note(w.Stderr, "no session of this project runs yet: waiting for one, until Ctrl-C")
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for w.count > 0 || len(w.known) == 0 {
		select {
		case h := <-w.heard:
			if err := w.print(h); err != nil {
				return err
			}
		case <-tick.C:
			if err := w.listen(); err != nil {
				return err
			}
		}
	}
	return nil
}

// listen begins to listen to the sessions that are new.
func (w *watcher) listen() error {
	if w.id != "" && w.known[w.id] {
		return nil
	}
	caller := w.Caller()
	if w.looked { // which sessions do not answer is said once
		caller.Stderr = io.Discard
	}
	w.looked = true
	running, err := sessions.Here(caller, w.id)
	for _, one := range running {
		if w.known[one.ID] {
			continue
		}
		w.known[one.ID] = true
		w.count++
		fmt.Fprintf(w.Stderr, "%s in %s, since %s\n", one, diag.Name(one.Project), one.Began.Format(clock))
		go w.follow(one)
	}
	return err
}

// clock is the form in which times of today are shown.
const clock = "15:04:05"

// follow tells what a session tells until that ends.
func (w *watcher) follow(one sessions.Live) {
	last := 0
	for {
		events, err := one.Events(last)
		for _, e := range events {
			last = e.N
			if e.Kind == live.Ended {
				err = live.ErrGone
			}
		}
		w.heard <- heard{one, events, err}
		if err != nil {
			return
		}
	}
}

func (w *watcher) print(h heard) error {
	for _, e := range h.events {
		e.Session = h.ID
		now, always := "", ""
		if e.Kind == live.Refused && e.Count == 0 {
			now, always = h.Remedies(e)
		}
		if !w.json { // the first line names the project
			e.What, e.Why = strings.TrimPrefix(e.What, h.Project+"/"), strings.TrimSuffix(e.Why, " in "+h.Project)
		}
		if err := w.say(e, now, always); err != nil {
			return err
		}
	}
	if h.err == nil {
		return nil
	}
	w.count--
	if !errors.Is(h.err, live.ErrGone) {
		diag.Print(w.Stderr, fmt.Errorf("%s is not heard any more: %w", h.Live, h.err))
	}
	return nil
}

// say prints one event, and what lets a session reach what was refused, now and always.
func (w *watcher) say(e live.Event, now, always string) error {
	if w.json {
		text, err := json.Marshal(struct {
			live.Event
			Now    string `json:"for_this_session,omitempty"`
			Always string `json:"for_good,omitempty"`
		}{e, now, always})
		if err == nil {
			_, err = fmt.Fprintf(w.Stdout, "%s\n", live.ASCII(text))
		}
		return err
	}
	line := fmt.Sprintf("%s  %s  %s\n", e.Time.Local().Format(clock), e.Session, diag.Visible(eventText(e)))
	if now != "" {
		line += "            for this session: " + diag.Visible(now) + "\n"
	}
	if always != "" {
		line += "            for good:         " + diag.Visible(always) + "\n"
	}
	_, err := fmt.Fprint(w.Stdout, line)
	return err
}

// eventText says in one line what has happened.
func eventText(e live.Event) string {
	times := ""
	if e.Count > 1 {
		times = fmt.Sprintf(", %d times by now", e.Count)
	}
	switch e.Kind {
	case live.Refused:
		return "refused    " + e.What + " (" + e.Why + ")" + times
	case live.Reached:
		return "reached    " + e.What
	case live.Allowed:
		return "allowed    " + e.What
	case live.Commits:
		return "commits    " + diag.Name(e.What) + " " + e.Why + times
	case live.Held:
		return "held back  " + diag.Name(e.What) + ": it comes out when the session ends" + times
	case live.Used:
		if e.Why != "" {
			return "secret     " + e.What + " was sent to " + e.Why + times
		}
		return "secret     " + e.What + times
	case live.Stopped:
		return "stopped    the placeholder of " + e.What + " was sent to " + e.Why + times
	case live.More:
		return fmt.Sprintf("%-10s %d more, not listed", e.What, e.Count)
	case live.Ended:
		return "ended"
	}
	return string(e.Kind) + "    " + e.What
}
