package hosttest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

// Random makes a case by chance: a small workflow of the suite's kinds, and people who do something to its execution. The
// same seed makes the same case. Steady says that its execution "x" ends in the same way however often the process dies.
func Random(seed uint64) (c Case, steady bool) {
	s := &scenario{chance: rand.New(rand.NewPCG(seed, 7))}
	s.kid = s.chance.IntN(3)
	size := 3 + s.chance.IntN(5)
	for i := range size {
		s.node(i)
		s.connect(i)
	}
	s.pauses, s.cancels = s.chance.IntN(3), s.chance.IntN(8) == 0
	c = Case{Name: fmt.Sprintf("Random/%d", seed), Crashes: true, run: s.run}
	if s.chance.IntN(4) == 0 {
		c.MaxRunning = 1
	}
	return c, !s.cancels
}

// scenario is a case in the making.
type scenario struct {
	chance  *rand.Rand
	nodes   []string
	edges   []string
	outs    []string // how the nodes are left: by name, or by name and key
	signals []string // nodes that wait for one
	failing string   // a node that fails until it is skipped
	kid     int
	pauses  int
	cancels bool
}

// node adds a node of the top level, with its body if it has one.
func (s *scenario) node(i int) {
	name := fmt.Sprintf("n%d", i)
	out := name
	switch pick := s.chance.IntN(20); {
	case pick < 3:
		s.addNode(name, fmt.Sprintf("%s {effect: once, ms: %d}", []string{"WORK", "WORK", "SEND"}[s.chance.IntN(3)], s.chance.IntN(3)))
	case pick < 6:
		s.addNode(name, fmt.Sprintf("WORK {effect: idempotent, ms: %d, fail: %d}", s.chance.IntN(3), s.chance.IntN(3)))
	case pick < 8:
		s.addNode(name, "BRIEF")
	case pick < 9:
		s.addNode(name, "WORK {pad: 36000}")
	case pick < 10:
		s.addNode(name, fmt.Sprintf("WAIT {seconds: %d}", 1+s.chance.IntN(3)))
	case pick < 12:
		s.addNode(name, "WAIT {signal: go}")
		s.signals = append(s.signals, name)
	case pick < 13:
		s.addNode(name, "ASK")
	case pick < 15:
		s.addNode(name, fmt.Sprintf("CHILD {workflow: kid, detached: %v, children: %d}", s.chance.IntN(3) == 0, 1+s.chance.IntN(2)))
	case pick < 16:
		s.addNode(name, "WORK {fail: -1, final: true, on_error: default_output, default_output: {n: 4}}")
	case pick < 17:
		s.addNode(name, "CHOICE {key: "+s.key()+"}")
		out = name + "." + s.key()
	case pick < 18 && s.failing == "":
		s.addNode(name, "WORK {fail: -1, final: true, ms: 2}")
		s.failing = name
	default:
		s.loop(name)
		out = name + ".completed"
	}
	s.outs = append(s.outs, out)
}

func (s *scenario) key() string { return []string{"yes", "no"}[s.chance.IntN(2)] }

func (s *scenario) addNode(name, what string) { s.nodes = append(s.nodes, name+" "+what) }

// loop adds a loop with a body of one or two nodes.
func (s *scenario) loop(name string) {
	s.addNode(name, fmt.Sprintf("EACH {count: %d, concurrency: %d, keep_going: true, turns: %v}", s.chance.IntN(5), 1+s.chance.IntN(3), s.chance.IntN(3) == 0))
	from := name + ".iteration"
	for i := range 1 + s.chance.IntN(2) {
		inner := fmt.Sprintf("%sb%d", name, i)
		s.addNode(inner, []string{
			"WORK {effect: idempotent, fail_item: 1, ms: 1}", "WORK {effect: once}", "BRIEF", "WAIT {seconds: 1}", "ASK", "CHILD {workflow: kid}",
		}[s.chance.IntN(6)])
		s.edges = append(s.edges, from+" -> "+inner)
		from = inner
	}
	s.edges = append(s.edges, from+" -> "+name)
}

// connect leads one or two of the nodes before to a node.
func (s *scenario) connect(i int) {
	if i == 0 || s.chance.IntN(6) == 0 {
		return
	}
	first := s.chance.IntN(i)
	s.edges = append(s.edges, fmt.Sprintf("%s -> n%d", s.outs[first], i))
	if second := s.chance.IntN(i); second != first && s.chance.IntN(2) == 0 {
		s.edges = append(s.edges, fmt.Sprintf("%s -> n%d", s.outs[second], i))
	}
}

// run plays the case.
func (s *scenario) run(b *bench) {
	b.t.Helper()
	kids := []string{"a WORK {effect: once}", "a WAIT {seconds: 1}", "a ASK"}
	b.save(flow("f", s.nodes, s.edges), flow("kid", []string{"t MANUAL", kids[s.kid]}, []string{"t -> a"}))
	b.obliging = true
	// What people do is chosen anew for each play, from the same numbers.
	chance := rand.New(rand.NewPCG(uint64(len(s.nodes)), uint64(s.pauses)))
	b.start("x", "f")
	for _, name := range s.signals {
		if chance.IntN(2) == 0 {
			b.idle(time.Duration(chance.IntN(2000)) * time.Millisecond)
		}
		b.may("x", host.ActionSignal, onNode(name), withValue(`{"n":3}`), withDedup("go "+name), func(r *host.Request) { r.Signal = "go" })
	}
	for range s.pauses {
		b.idle(time.Duration(chance.IntN(1500)) * time.Millisecond)
		b.may("x", host.ActionPause)
		b.idle(time.Duration(chance.IntN(1500)) * time.Millisecond)
		b.may("x", host.ActionResume)
	}
	if s.cancels {
		b.idle(time.Duration(chance.IntN(2500)) * time.Millisecond)
		b.may("x", host.ActionCancel)
	}
	b.await("the end", func() bool { return b.summary("x").Status.Final() })
	for range 10 {
		if b.summary("x").Status != engine.StatusError {
			break
		}
		s.repair(b)
	}
}

// repair deals with the failure that ended the execution: the node that always fails is skipped, and one of which nobody
// knew how it ended is given what it has done, or done again.
func (s *scenario) repair(b *bench) {
	b.t.Helper()
	view, _ := b.view("x")
	failed := view.ErrorNode
	done := b.world.truth(b.who.Workspace, "x", failed)
	switch {
	case string(failed) == s.failing:
		b.may("x", host.ActionSkip, onActivation(failed), withValue(`{"n":8}`))
	case done != nil:
		b.may("x", host.ActionSkip, onActivation(failed), withValue(string(done)))
	default:
		b.may("x", host.ActionRetry, onActivation(failed))
	}
	for _, name := range s.signals { // those that came after the failure were refused
		b.may("x", host.ActionSignal, onNode(name), withValue(`{"n":3}`), withDedup(fmt.Sprintf("%s after row %d", name, view.Seq)),
			func(r *host.Request) { r.Signal = "go" })
	}
	b.await("the end after a repair", func() bool { return b.summary("x").Status.Final() })
}

// may does what may come too late.
func (b *bench) may(id string, action host.Action, change ...func(*host.Request)) {
	b.t.Helper()
	if _, err := b.tryAct(id, action, change...); err != nil && fault.CodeOf(err) != fault.Conflict {
		b.t.Fatalf("%s of %q: %v", action, id, err)
	}
}

// idle lets time pass, while questions are answered and processes replaced.
func (b *bench) idle(d time.Duration) {
	b.t.Helper()
	over := time.Now().Add(d)
	clock := time.AfterFunc(d, b.notify)
	defer clock.Stop()
	b.await("time to pass", func() bool { return !time.Now().Before(over) })
}
