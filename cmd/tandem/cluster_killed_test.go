package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tandem/api"
)

// retold reads a stream of a model that is asked again: what each attempt has said.
type retold struct {
	name    string
	events  <-chan told
	attempt int
	text    string
}

// hears reads until an attempt has said a text. What it says comes once and in order, and nothing of an attempt before it comes later.
func (r *retold) hears(t *testing.T, attempt int, text string) {
	t.Helper()
	for r.attempt != attempt || r.text != text {
		wait(t, r.events, func(e told) bool {
			var update api.ExecutionUpdate
			if err := json.Unmarshal(e.event.Data, &update); err != nil {
				t.Fatal(err)
			}
			if e.name == "execution_completed" || e.name == "node_completed" && update.NodeID == "say" {
				t.Fatalf("%s: %s came before attempt %d had said %q; attempt %d has said %q", r.name, e.name, attempt, text, r.attempt, r.text)
			}
			p := update.PartialOutput
			if e.name != "node_output_update" {
				return false
			}
			switch {
			case p.Attempt < r.attempt:
				t.Fatalf("%s: attempt %d is heard after attempt %d", r.name, p.Attempt, r.attempt)
			case p.Attempt > r.attempt:
				r.attempt, r.text = p.Attempt, ""
			}
			switch {
			case p.Snapshot:
				r.text = p.Text
			case p.Offset != int64(len(r.text)):
				t.Fatalf("%s: a piece of attempt %d is told from %d on, after %d bytes", r.name, p.Attempt, p.Offset, len(r.text))
			default:
				r.text += p.Text
			}
			return true
		})
	}
}

// TestCluster_KilledWhileSpeaking kills a worker in the midst of what a model says on it. Another worker asks the model again, and readers that were
// there hear all that it says then, once and from its beginning, and nothing more of what was said before.
func TestCluster_KilledWhileSpeaking(t *testing.T) {
	t.Parallel()
	if os.Getenv("TANDEM_LONG") == "" {
		t.Skip("it needs a cluster of its own; TANDEM_LONG=1 plays it")
	}
	i := newInstallation(t)
	i.kill(workers[1]) // so that it is known who speaks
	e, err := i.clients[1].Execute(t.Context(), "speak", api.ExecuteRequest{}, "killed")
	if err != nil {
		t.Fatal(err)
	}
	<-i.asked
	var streams []*retold
	for _, name := range servers {
		url := "http://" + i.addresses[name]
		streams = append(streams, &retold{name: "events of " + name, events: readEvents(t, t.Context(), url, e.ExecutionID)},
			&retold{name: "WebSocket of " + name, events: readMessages(t, url, e.ExecutionID)})
	}
	i.words <- "Once upon "
	for _, s := range streams {
		s.hears(t, 1, "Once upon ")
	}
	i.start(workers[1])
	i.kill(workers[0])
	i.words <- "" // to nobody: the model need not know that who asked is gone
	<-i.asked     // by the other worker
	said := ""
	for _, words := range []string{"Twice upon ", "a time ", strings.Repeat("there were two workers, ", 1000), "and then one."} {
		i.words <- words
		said += words
		for _, s := range streams {
			s.hears(t, 2, said)
		}
	}
	i.words <- ""
	<-i.slow
	i.release <- struct{}{}
	for _, s := range streams {
		for _, e := range wait(t, s.events, named("execution_completed")) {
			if e.name == "node_output_update" {
				t.Errorf("%s: output is told after its end: %s", s.name, e.event.Data)
			}
		}
	}
	i.succeed(e.ExecutionID)
	done, err := i.clients[0].Execution(t.Context(), e.ExecutionID)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := json.Marshal(done)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(kept), "Once upon"); n > 0 || !strings.Contains(string(kept), "Twice upon a time ") {
		t.Errorf("of what nobody has finished saying %d are kept: %.300s", n, kept)
	}
	if n := i.count("/slow/live"); n != 1 {
		t.Errorf("what follows was done %d times", n)
	}
}
