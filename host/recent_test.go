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
		if _, keep := hub.Finished(ref(n)); n%10 != 0 {
			keep(&host.View{Status: engine.StatusError}, host.Start{}, nil)
		} else {
			keep(nil, host.Start{}, nil) // it is not there
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

// Answers are kept for readers who may see the same, within a bound, and not beyond the view that they were made of.
func TestFinished_Answers(t *testing.T) {
	t.Parallel()
	hub, ref := host.NewHub(), host.Ref{Workspace: "one", Execution: "e"}
	_, keep := hub.Finished(ref)
	f := keep(&host.View{Execution: "e", Seq: 3, Status: engine.StatusSuccess}, host.Start{}, nil)
	all, some := host.Reader{Detail: true, About: "a"}, host.Reader{About: "a"}
	f.KeepAnswer(all, []byte("all"))
	if _, kept := f.Answer(some); kept {
		t.Error("who may see less is shown what was made for others")
	}
	f.KeepAnswer(some, []byte("some"))
	for reader, want := range map[host.Reader]string{all: "all", some: "some"} {
		if got, kept := f.Answer(reader); !kept || string(got) != want {
			t.Errorf("%+v is sent %q, want %q", reader, got, want)
		}
	}
	if got, kept := f.Answer(host.Reader{About: "b"}); kept {
		t.Errorf("what was said of another description is sent: %q", got)
	}
	f.KeepAnswer(host.Reader{About: "large"}, make([]byte, 1<<20))
	if _, kept := f.Answer(host.Reader{About: "large"}); kept {
		t.Error("a large answer is kept")
	}
	size := func() (size int) {
		for n := range 1000 {
			reader := host.Reader{About: fmt.Sprint(n)}
			answer, kept := f.Answer(reader)
			if size += len(answer); !kept && n == 999 {
				t.Error("the last answer is not kept")
			}
		}
		return size
	}
	for n := range 1000 {
		f.KeepAnswer(host.Reader{About: fmt.Sprint(n)}, make([]byte, 3000))
	}
	if got := size(); got > 20_000 {
		t.Errorf("%d bytes of answers are kept", got)
	}
	hub.Publish(ref, host.Row{Seq: 4})
	_, keep = hub.Finished(ref)
	if _, kept := keep(&host.View{Execution: "e", Seq: 4, Status: engine.StatusSuccess}, host.Start{}, nil).Answer(host.Reader{About: "999"}); kept {
		t.Error("an answer outlives what it was made of")
	}
}

// Nothing is kept of an execution while somebody appends to it.
func TestHub_Changing(t *testing.T) {
	t.Parallel()
	hub, ref := host.NewHub(), host.Ref{Workspace: "one", Execution: "e"}
	read := func() bool {
		known, keep := hub.Finished(ref)
		if known == nil {
			keep(&host.View{Execution: "e", Status: engine.StatusSuccess}, host.Start{}, nil)
		}
		return hub.Known(ref) != nil
	}
	if !read() {
		t.Fatal("it is not kept")
	}
	_, keep := hub.Finished(host.Ref{Workspace: "one", Execution: "other"})
	first := hub.Changing(ref)
	second := hub.Changing(ref)
	if hub.Known(ref) != nil || read() {
		t.Error("it is kept while it changes")
	}
	first()
	if read() {
		t.Error("it is kept while somebody else changes it")
	}
	other := hub.Changing(host.Ref{Workspace: "one", Execution: "other"})
	keep(&host.View{Status: engine.StatusSuccess}, host.Start{}, nil) // it was being read when the change began
	if other(); hub.Known(host.Ref{Workspace: "one", Execution: "other"}) != nil {
		t.Error("what was read before a change is kept after it")
	}
	if second(); !read() {
		t.Error("it is not kept after it has changed")
	}
}

// What is read and not kept, because it has not ended or is not there, takes the place of nothing that is kept.
func TestHub_ReadingTakesNoRoom(t *testing.T) {
	t.Parallel()
	hub := host.NewHub()
	ref := host.Ref{Workspace: "one", Execution: "kept"}
	_, keep := hub.Finished(ref)
	f := keep(&host.View{Status: engine.StatusSuccess}, host.Start{}, nil)
	for n := range 5000 {
		_, keep := hub.Finished(host.Ref{Workspace: "one", Execution: fmt.Sprint(n)})
		if n%2 == 0 {
			keep(nil, host.Start{}, nil)
		} else {
			keep(&host.View{Status: engine.StatusRunning}, host.Start{}, nil)
		}
	}
	if hub.Known(ref) != f {
		t.Error("it is not kept any more")
	}
}
