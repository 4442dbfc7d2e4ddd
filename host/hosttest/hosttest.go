// Package hosttest is what every host must do, and the means to try it under crashes.
//
// A host's test calls [Run] with a [Rig]. The suite brings kinds, workflows and a world of its own, so it needs neither
// the built-in kinds nor the program that is put together of them. Beside the suite stand a database in memory ([Disk])
// and a fuse between a process and its stores ([Fuse]) that blows at a chosen write; with them a host can be crashed at
// every one of its writes ([Case.Play], [Random]).
//
// It drives nothing itself and is not a double of a host. Only tests import it.
package hosttest

import (
	"context"
	"io"
	"testing"
	"time"

	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
)

// Rig is a host to be tried, on data of its own.
type Rig struct {
	// Stores are where the host keeps everything. They are asked for again after each crash.
	Stores func() store.Stores
	// Beside are the stores as processes beside the first one reach them; nil: as that one does.
	Beside func() store.Stores
	// Restart is called between two processes: what the old one had open is closed. May be nil.
	Restart func()
	// Start starts a host on the data. It returns when the host is ready.
	Start func(ctx context.Context, s Setup) (Host, error)
	// Source reads executions where the host keeps them.
	Source func(store.Stores) host.Source
	// Revision is a revision as folds of the host see it.
	Revision func(*node.Revision) host.Revision
	// Shared says that several processes work on each execution: what has not begun is not lost with one of them, and what was lost
	// is recorded when it runs again. How many ran beside a run is not known when it is lost, so the first death in it tells nothing; those
	// in the moments after it has come back are held against it.
	Shared bool
	// Patience is how long to wait for something that must come; a minute when zero.
	Patience time.Duration
}

// Host is a host that can be stopped. Drain lets nothing new run, waits until what runs has ended, and says whether that was so
// before the context ended; Close returns when nothing of it runs any more.
type Host interface {
	host.Host
	Drain(ctx context.Context) bool
	Close()
}

// Setup is what a host is started with.
type Setup struct {
	Stores store.Stores
	// Find returns a revision that is ready to run; Child what to start for a child.
	Find  func(ctx context.Context, p identity.Principal, workflow, hash string) (*node.Revision, error)
	Child func(ctx context.Context, p identity.Principal, workflow, revision string) (host.StartRequest, error)
	// Workers is how many nodes may run at once, MaxRunning how many executions; 0: any number.
	Workers    int
	MaxRunning int
	// MaxTasks is how many executions of workflows that Task says yes to may run at once; 0: any number.
	MaxTasks int
	Task     func(workflowID string) bool
	// Register outlives the process: what the host notes in it of its runs, the next one reads.
	Register Register
	// Rest is a host that runs nothing: what it is asked for is recorded.
	Rest bool
	// Recorded is to be called after each row, GivenUp when the host cannot go on with an execution.
	Recorded func(store.Ref)
	GivenUp  func(store.Ref, error)
	// Died is closed when the process is dead: nothing of it may reach anybody any more.
	Died <-chan struct{}
	// Beside is another process of the same installation, with a death of its own. The rig starts it if it wants one, and the next one when
	// it has died.
	Beside func() Setup
}

// Register is where a host notes what the next process has to know should this one die.
type Register interface {
	io.ReaderAt
	io.WriterAt
}

// Case is one thing that a host must do.
type Case struct {
	Name string
	// Crashes says that the case holds whenever the process dies.
	Crashes bool
	// MaxRunning is how many executions may run at once, MaxTasks how many of workflows whose id begins with "task"; 0: any
	// number.
	MaxRunning int
	MaxTasks   int
	// before is done before the first process begins. May be nil.
	before func(b *bench)
	run    func(b *bench)
}

// Fate is what befalls the processes of a case.
type Fate struct {
	// Blows strike one process after the other; when none is left, the process lives.
	Blows []Blow
	// Beside strike the processes beside these, in the order in which those are started.
	Beside []Blow
	// Latency is the seed of how long the disk takes; 0: no time. It needs a clock that costs nothing.
	Latency uint64
	// Tell logs what is on the disk in the end.
	Tell bool
}

// Report is what a case has done.
type Report struct {
	// Writes is how many writes the first process made.
	Writes int
	// Crashes is how many processes died.
	Crashes int
	// Ends is how every execution ended, with its outputs.
	Ends map[string]string
	// Logs are what was recorded of each activation, by execution and activation, in the order of the journal; Problems say where the
	// journal has something before what it follows from.
	Logs     map[string]map[engine.ActivationID][]string
	Problems []string
}

// Play runs the case. It ends the test when something does not hold.
func (c Case) Play(t testing.TB, rig Rig, fate Fate) Report {
	t.Helper()
	b := c.bench(t, rig, fate)
	c.run(b)
	return b.finish()
}

func (c Case) bench(t testing.TB, rig Rig, fate Fate) *bench {
	t.Helper()
	b := newBench(t, rig, fate, c.MaxRunning)
	b.maxTasks = c.MaxTasks
	if c.before != nil {
		c.before(b)
	}
	b.open()
	return b
}

// Run holds a host to the suite.
func Run(t *testing.T, open func(t *testing.T) Rig) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Play(t, open(t), Fate{})
		})
	}
}

// Cases are what the suite consists of.
func Cases() []Case {
	var all []Case
	for _, part := range [][]Case{flowCases(), failureCases(), operatorCases(), waitCases(), childCases(), errorWorkflowCases(),
		forkCases(), crashCases(), stopCases(), admissionCases(), taskCases()} {
		all = append(all, part...)
	}
	return all
}
