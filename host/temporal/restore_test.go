package temporal

import (
	"testing"

	"go.temporal.io/sdk/client"

	"tandem/host/hosttest"
)

// TestRestore_AnotherTaskQueue: a workflow that remembers more of an execution than a restored journal has keeps nobody up who works on
// another task queue. It can be ended.
func TestRestore_AnotherTaskQueue(t *testing.T) {
	t.Parallel()
	before, after := newSite(t), newSite(t)
	id := before.queue + "/one/x0"
	if _, err := server.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: before.queue}, loopName,
		going{Execution: execution{"one", "x0"}, Seq: 1000}); err != nil {
		t.Fatal(err)
	}
	hosttest.Chain(1, 2, func() {}).Play(t, after.rig(hosttest.NewDisk().Stores), hosttest.Fate{})
	serve(t, after.queue, over{}.attend, over{}.step) // the end of the workflow may come behind that of the processes
	if err := server.GetWorkflow(t.Context(), after.queue+"/one/x0", "").Get(t.Context(), nil); err != nil {
		t.Errorf("the workflow of the new task queue does not end: %v", err)
	}
	if err := server.TerminateWorkflow(t.Context(), id, "", "restored"); err != nil {
		t.Errorf("the workflow of the old task queue is not open: %v", err)
	}
}
