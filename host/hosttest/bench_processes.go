package hosttest

import (
	"strings"

	"tandem/engine"
	"tandem/store"
)

// setup is what a process is started with.
func (b *bench) setup(p *process) Setup {
	return Setup{
		Stores: p.fuse.Stores(), Find: b.finder(p), Child: b.childOf, Workers: b.workers, MaxRunning: b.maxRunning, MaxTasks: b.maxTasks,
		Register: fusedNotes{&b.notes, p.fuse}, Rest: b.resting,
		Task:     func(id string) bool { return strings.HasPrefix(id, "task") },
		Recorded: func(store.Ref) { b.notify() },
		GivenUp:  b.abandoned(p.fuse),
		Died:     p.fuse.blown,
		Beside:   b.another,
	}
}

// another is a process beside the one of the bench.
func (b *bench) another() Setup {
	stores := b.rig.Beside
	if stores == nil {
		stores = b.rig.Stores
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var blow Blow
	if b.joined < len(b.fate.Beside) {
		blow = b.fate.Beside[b.joined]
	}
	b.joined++
	f := newFuse(stores(), blow, 0, b.world.appended)
	f.cleared, f.struck = b.notify, b.bereave
	b.beside = append(b.beside, f)
	return b.setup(&process{world: b.world, fuse: f, beside: true})
}

// bereave notes that a process beside the bench's dies of its blow. What it has just written nobody else tells of.
func (b *bench) bereave() {
	b.world.mu.Lock()
	b.world.deaths++
	b.world.mu.Unlock()
	b.notify()
}

// deaths is how many processes have died. Those that died together count once.
func (b *bench) deaths() int {
	b.world.mu.Lock()
	defer b.world.mu.Unlock()
	return b.crashes + b.world.deaths
}

// killAll ends all processes.
func (b *bench) killAll() {
	b.mu.Lock()
	beside := b.beside
	b.beside = nil
	b.mu.Unlock()
	b.fuse.Kill()
	for _, f := range beside {
		f.Kill()
	}
}

// deadly is how many deaths it takes until a run is given up that ends its process each time.
func (b *bench) deadly() int {
	if b.rig.Shared {
		return engine.MaxBlamed + 1 // the first death tells nothing
	}
	return engine.MaxBlamed
}
