package temporal

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"tandem/host/hosttest"
)

var update = flag.Bool("update", false, "record histories that are missing; those that are there stay as they are") // read-only

// golden are cases whose histories are kept, and the execution of each.
var golden = map[string]string{ // read-only
	"Flow/Chain": "x", "Flow/ConcurrentLoop": "x", "Failure/RetriesWithBackoff": "x", "Operator/CancelReachesWhatRuns": "x", "Operator/PauseHoldsWhatIsNew": "x",
	"Wait/Timer": "x", "Wait/Answer": "x", "Wait/UnknownOutcomeDone": "x", "Child/IsWaitedFor": "x", "Crash/EverythingGoesOn": "x1",
}

// Histories that are not of a case: many runs at once, which the loop begins in portions; and an execution that has outgrown its history,
// with what it went on as.
const (
	crowdName    = "crowd"
	outgrownName = "outgrown"
	wentOnName   = "outgrown_went_on"
)

// packed is how the names of histories end that are compressed, since they are large.
const packed = ".gz"

func goldenFile(name string) string {
	file := filepath.Join("testdata", strings.ReplaceAll(name, "/", "_")+".json")
	if name == outgrownName {
		file += packed
	}
	return file
}

// TestLoop_Golden replays histories of before. A loop that would not do now what it did then cannot go on with executions that are under
// way, so it must not be changed like that: what is new has to be asked for by something new in what a workflow begins with.
func TestLoop_Golden(t *testing.T) {
	t.Parallel()
	if *update {
		record(t)
	}
	files, err := filepath.Glob("testdata/*.json*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{crowdName, outgrownName, wentOnName} {
		if !recorded(name) {
			t.Errorf("the history %q is missing: record it with -update", name)
		}
	}
	if len(files) <= len(golden) {
		t.Errorf("there are %d histories, want more than %d: record them with -update", len(files), len(golden))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			replayer := worker.NewWorkflowReplayer()
			replayer.RegisterWorkflowWithOptions(loop, workflow.RegisterOptions{Name: loopName})
			if err := replayer.ReplayWorkflowHistoryFromJSONFile(slog.New(slog.DiscardHandler), unpacked(t, file)); err != nil {
				t.Error(err)
			}
		})
	}
}

// unpacked is a file that is not compressed.
func unpacked(t *testing.T, file string) string {
	t.Helper()
	if !strings.HasSuffix(file, packed) {
		return file
	}
	content, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }() // it was read
	text, err := gzip.NewReader(content)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(text)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "history.json")
	if err := os.WriteFile(file, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestLoop_GoldenOutgrown: the histories of an execution that has outgrown its own are what they are kept for.
func TestLoop_GoldenOutgrown(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]enums.EventType{
		outgrownName: enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
		wentOnName:   enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
	} {
		text, err := os.ReadFile(unpacked(t, goldenFile(name)))
		if err != nil {
			t.Fatal(err)
		}
		var h history.History
		if err := (temporalproto.CustomJSONUnmarshalOptions{}).Unmarshal(text, &h); err != nil {
			t.Fatal(err)
		}
		if last := h.Events[len(h.Events)-1].EventType; last != want {
			t.Errorf("%q ends with %s", name, last)
		}
		if n := len(h.Events); name == outgrownName && n <= maxEvents {
			t.Errorf("%q has %d events", name, n)
		}
	}
}

// recorded says that there is a history.
func recorded(name string) bool {
	_, err := os.Stat(goldenFile(name))
	return err == nil
}

// record makes the histories that are missing.
func record(t *testing.T) {
	t.Helper()
	for _, c := range hosttest.Cases() {
		execution, kept := golden[c.Name]
		if !kept || recorded(c.Name) {
			continue
		}
		s := newSite(t)
		c.Play(t, s.rig(hosttest.NewDisk().Stores), hosttest.Fate{})
		serve(t, s.queue, over{}.attend, over{}.step) // the end of the workflow may come behind that of the processes
		keep(t, c.Name, s.queue+"/one/"+execution)
	}
	recordGone(t)
	if !recorded(crowdName) {
		recordCrowd(t, 250, crowdName, crowdName)
	}
	if !recorded(outgrownName) {
		recordCrowd(t, 1500, outgrownName, wentOnName)
	}
}

// recordCrowd makes the history of so many runs at once: that which it began as, and that which it ended as.
func recordCrowd(t *testing.T, size int, first, last string) {
	t.Helper()
	c := &crowd{size: size, tries: map[string]int{}}
	queue := newQueue()
	serve(t, queue, c.attend, c.step)
	run, err := server.SignalWithStartWorkflow(t.Context(), queue, wakeSignal, nil, client.StartWorkflowOptions{TaskQueue: queue}, loopName, going{Execution: execution{"w", "x"}})
	if err != nil {
		t.Fatal(err)
	}
	began := run.GetRunID() // then it is that of the last
	if err := run.Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	keepRun(t, first, queue, began)
	keepRun(t, last, queue, "")
}

// keep writes the history of a workflow that has ended.
func keep(t *testing.T, name, id string) {
	t.Helper()
	if err := server.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	keepRun(t, name, id, "")
}

// keepRun writes the history of one run of a workflow, which has ended; that of the last if none is named.
func keepRun(t *testing.T, name, id, run string) {
	t.Helper()
	var all history.History
	for events := server.GetWorkflowHistory(t.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		all.Events = append(all.Events, e)
	}
	text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(&all)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`"[0-9]+@[^"]*"|`+regexp.QuoteMeta(machine+":")).ReplaceAllFunc(text, func(found []byte) []byte { // which machine it was
		if found[0] == '"' {
			return []byte(`"worker"`)
		}
		return []byte("sticky:")
	})
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if strings.HasSuffix(goldenFile(name), packed) {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text = b.Bytes()
	}
	if err := os.WriteFile(goldenFile(name), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// over stands in for the activities of an execution that has ended.
type over struct{}

func (over) attend(context.Context, execution, []string) (answer, error) {
	return answer{Seq: 1 << 40, Ended: true}, nil
}

func (o over) step(ctx context.Context, e execution, _ string) (answer, error) {
	return o.attend(ctx, e, nil)
}

// serve has a worker carry executions, with stand-ins for the activities.
func serve(t *testing.T, queue string, attend, step any) {
	t.Helper()
	w := worker.New(server, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(loop, workflow.RegisterOptions{Name: loopName})
	w.RegisterActivityWithOptions(step, activity.RegisterOptions{Name: stepName})
	w.RegisterActivityWithOptions(attend, activity.RegisterOptions{Name: attendName})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}
