package local_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/engine"
	"tandem/host"
	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/store"
	"tandem/workflow"
)

// rigOn is a local host on a simulated disk.
func rigOn(disk *hosttest.Disk) hosttest.Rig {
	return hosttest.Rig{
		Stores:   disk.Stores,
		Start:    startHost,
		Source:   func(s store.Stores) host.Source { return local.NewSource(s.Journal, s.Blobs) },
		Revision: local.Revision,
		Patience: 100 * time.Hour, // of a clock that costs nothing
	}
}

func startHost(ctx context.Context, s hosttest.Setup) (hosttest.Host, error) {
	h, err := local.New(ctx, local.Options{
		Journal: s.Stores.Journal, Inbox: s.Stores.Inbox, Timers: s.Stores.Timers, Executions: s.Stores.Executions, Blobs: s.Stores.Blobs, Logs: s.Stores.Logs,
		Revision: s.Find, Child: s.Child, Workers: s.Workers, MaxRunning: s.MaxRunning, MaxTasks: s.MaxTasks, Task: s.Task, Register: s.Register, Rest: s.Rest, RunAhead: true,
		Recorded: func(ref store.Ref, _ *workflow.Graph, _ host.Row, _ []engine.Command) { s.Recorded(ref) },
		GivenUp:  s.GivenUp,
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// TestSimulation_Suite runs the suite on the simulated disk, without crashes but those of the cases themselves.
func TestSimulation_Suite(t *testing.T) {
	t.Parallel()
	for _, c := range hosttest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { c.Play(t, rigOn(hosttest.NewDisk()), hosttest.Fate{}) })
		})
	}
}

// TestSimulation_CrashAtEveryWrite kills the process of each case at every one of its writes, before the write is on disk
// and after it is, with nobody told.
func TestSimulation_CrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, c := range hosttest.Cases() {
		if !c.Crashes {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			calm := calmly(t, c)
			for _, n := range some(calm.Writes, 8) {
				for _, how := range []hosttest.How{hosttest.Before, hosttest.After} {
					blow := hosttest.Blow{Write: n, How: how}
					compare(t, calm, play(t, c, hosttest.Fate{Blows: []hosttest.Blow{blow}}), blow.String())
					if t.Failed() {
						t.Fatalf("it was killed %s", blow)
					}
				}
			}
			t.Logf("%d writes", calm.Writes)
		})
	}
}

// TestSimulation_OneWrite: an execution that needs nothing but brief pure runs is started and ended with one write.
func TestSimulation_OneWrite(t *testing.T) {
	t.Parallel()
	for _, c := range hosttest.Cases() {
		if c.Name == hosttest.OnlyBrief {
			if calm := play(t, c, hosttest.Fate{}); calm.Writes != 1 {
				t.Errorf("it took %d writes", calm.Writes)
			}
			return
		}
	}
	t.Error("there is no such case")
}

// some are the writes to be struck: all of them, or, when there are many and nobody asks for a long run, a choice.
func some(writes, most int) (list []int) {
	step := 1
	if os.Getenv("TANDEM_SIM") == "" {
		step = (writes + most - 1) / most
	}
	for n := 1 + rand.IntN(max(step, 1)); n <= writes; n += step {
		list = append(list, n)
	}
	return list
}

// TestSimulation_ClockSetBack lets the second of two processes begin three hours before the first: timers still come, and
// rows stay in order.
func TestSimulation_ClockSetBack(t *testing.T) {
	t.Parallel()
	disk := hosttest.NewDisk()
	before, after := hosttest.ClockCases()
	synctest.Test(t, func(t *testing.T) { before.Leave(t, rigOn(disk)) })
	synctest.Test(t, func(t *testing.T) { after.Play(t, rigOn(disk), hosttest.Fate{}) })
}

// play plays a case in a bubble with a clock of its own, on an empty disk.
func play(t *testing.T, c hosttest.Case, fate hosttest.Fate) (report hosttest.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { report = c.Play(t, rigOn(hosttest.NewDisk()), fate) })
	return report
}

// calms are the cases of the suite played without crashes, each once for all tests that compare with it.
var calms sync.Map

// calmly plays a case of the suite without crashes, or knows how it was.
func calmly(t *testing.T, c hosttest.Case) hosttest.Report {
	t.Helper()
	once, _ := calms.LoadOrStore(c.Name, sync.OnceValue(func() hosttest.Report { return play(t, c, hosttest.Fate{}) }))
	return once.(func() hosttest.Report)()
}

// compare expects that everything has ended as it does without crashes.
func compare(t *testing.T, want, got hosttest.Report, when string) {
	t.Helper()
	if diff := cmp.Diff(want.Ends, got.Ends); diff != "" {
		t.Errorf("%s: another end (-calm +crashed):\n%s", when, diff)
	}
}

// TestSimulation_FullAndBrokenDisk lets the disk be full for a while, or break, at every write of each case.
func TestSimulation_FullAndBrokenDisk(t *testing.T) {
	t.Parallel()
	for _, c := range hosttest.Cases() {
		if !c.Crashes {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			calm := calmly(t, c)
			for _, n := range some(calm.Writes, 2) {
				for _, blow := range []hosttest.Blow{{Write: n, How: hosttest.Full, Writes: 1}, {Write: n, How: hosttest.Full, Writes: 7}, {Write: n, How: hosttest.Broken}} {
					compare(t, calm, play(t, c, hosttest.Fate{Blows: []hosttest.Blow{blow}}), blow.String())
					if t.Failed() {
						t.Fatalf("the disk was struck %s", blow)
					}
				}
			}
		})
	}
}

// TestSimulation_Random plays cases made by chance, each with several processes that die by chance, on a disk that takes
// its time. TANDEM_SIM says how many, and from which seed on: "5000", "1@123456" to see one again.
func TestSimulation_Random(t *testing.T) {
	t.Parallel()
	runs, seed := 24, uint64(time.Now().UnixNano())
	if text := os.Getenv("TANDEM_SIM"); text != "" {
		count, from, given := strings.Cut(text, "@")
		var err error
		if runs, err = strconv.Atoi(count); err != nil {
			t.Fatalf("TANDEM_SIM: %v", err)
		}
		if given {
			if seed, err = strconv.ParseUint(from, 10, 64); err != nil {
				t.Fatalf("TANDEM_SIM: %v", err)
			}
		}
	}
	crashes := 0
	for i := range runs {
		one := seed + uint64(i)
		c, steady := hosttest.Random(one)
		ok := t.Run(strconv.FormatUint(one, 10), func(t *testing.T) {
			calm := play(t, c, hosttest.Fate{})
			got := play(t, c, fateOf(one, calm.Writes))
			crashes += got.Crashes
			if want, end := calm.Ends["one/x"], got.Ends["one/x"]; steady && want != end {
				fate := fateOf(one, calm.Writes)
				fate.Tell = true
				play(t, c, fate)
				t.Errorf("it ended with %s, and with crashes with %s", want, end)
			}
		})
		if !ok {
			t.Fatalf("TANDEM_SIM=1@%d shows it again", one)
		}
	}
	t.Logf("%d cases from seed %d, %d crashes", runs, seed, crashes)
}

// fateOf strikes up to three processes.
func fateOf(seed uint64, writes int) hosttest.Fate {
	chance := rand.New(rand.NewPCG(seed, 3))
	fate := hosttest.Fate{Latency: seed | 1}
	for range 1 + chance.IntN(3) {
		blow := hosttest.Blow{Write: 1 + chance.IntN(writes), How: hosttest.Before}
		switch chance.IntN(8) {
		case 0, 1, 2:
			blow.How = hosttest.After
		case 3:
			blow.How, blow.Writes = hosttest.Full, 1+chance.IntN(20)
		case 4:
			blow.How = hosttest.Broken
		}
		fate.Blows = append(fate.Blows, blow)
	}
	return fate
}
