package host_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"tandem/engine"
	"tandem/host"
)

// What is kept of an execution that has ended is kept until another row of it comes, and not at all if one came while it was read.
func TestHub_KeepsWhatHasEnded(t *testing.T) {
	t.Parallel()
	hub, ref := host.NewHub(), host.Ref{Workspace: "one", Execution: "e"}
	ended := func() *host.View { return &host.View{Execution: "e", Seq: 3, Status: engine.StatusSuccess} }

	known, keep := hub.Finished(ref)
	if known != nil {
		t.Fatal("there is something of an execution that nobody has read")
	}
	f := keep(ended(), host.Start{Language: "en"}, "summary")
	f.Add(map[engine.Ref]json.RawMessage{"r2.0": json.RawMessage(`1`), "r3.0": json.RawMessage(`"` + string(make([]byte, 1<<20)) + `"`)})
	again, _ := hub.Finished(ref)
	if again != f || again.Start.Language != "en" || hub.Known(ref) != f || f.Summary != "summary" {
		t.Fatalf("kept is %+v and %+v, want %+v", again, hub.Known(ref), f)
	}
	if v, ok := again.Value("r2.0"); !ok || string(v) != "1" {
		t.Errorf("the value is %s, %v", v, ok)
	}
	if _, ok := again.Value("r3.0"); ok {
		t.Error("a value is kept that is too large")
	}
	if other, _ := hub.Finished(host.Ref{Workspace: "two", Execution: "e"}); other != nil {
		t.Error("another workspace is shown what is kept")
	}
	if other := hub.Known(host.Ref{Workspace: "two", Execution: "e"}); other != nil {
		t.Error("another workspace is shown what is kept")
	}
	hub.Publish(ref, host.Row{Seq: 4})
	unknown := hub.Known(ref)
	known, keep = hub.Finished(ref)
	if known != nil || unknown != nil {
		t.Error("what was kept is used after another row has come")
	}
	hub.Publish(ref, host.Row{Seq: 5}) // while it is read
	keep(ended(), host.Start{}, nil)
	if known, _ = hub.Finished(ref); known != nil {
		t.Error("what was read before a row came is used after it")
	}
	_, keep = hub.Finished(ref)
	keep(&host.View{Execution: "e", Seq: 6, Status: engine.StatusRunning}, host.Start{}, nil)
	if known, _ = hub.Finished(ref); known != nil {
		t.Error("an execution that goes on is kept")
	}
}

// However many executions are read, few are kept.
func TestHub_KeepsFew(t *testing.T) {
	t.Parallel()
	hub, left := host.NewHub(), 0
	ref := func(n int) host.Ref { return host.Ref{Workspace: "one", Execution: fmt.Sprint(n)} }
	for n := range 10_000 {
		if _, keep := hub.Finished(ref(n)); n%10 != 0 { // some are never read to their end
			keep(&host.View{Status: engine.StatusError}, host.Start{}, nil)
		}
	}
	for n := range 10_000 {
		if known, _ := hub.Finished(ref(n)); known != nil {
			left++
		}
	}
	if left > 2000 {
		t.Errorf("%d are kept", left)
	}
}
