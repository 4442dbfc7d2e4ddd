package register

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tandem/engine"
	"tandem/store"
)

// File is where a host notes the runs that have begun. It must outlive the process, and need not outlive the machine.
type File interface {
	io.ReaderAt
	io.WriterAt
}

// mark is what is known of a run in the register.
type mark byte

const (
	markNone  mark = '-'
	markBegun mark = 'b' // it has begun
	markTrial mark = 't' // it has begun, in a trial
	markWaits mark = 'w' // it has not begun yet: it waits for an interpreter
	// Of runs that had begun when their process died:
	markLeft  mark = 'l' // others ran beside it
	markTried mark = 'd' // others ran beside it, and it was in a trial
	markAlone mark = 'a' // nothing else ran
)

const (
	registerWorking  = "working "
	registerStopping = "stopping"
	registerTitle    = "tandem runs 1 "
	headerFormat     = registerTitle + "%s %010d\n"
	placeFormat      = "%c %010d %s %s\n"
	headerSize       = len(registerTitle) + 8 + 1 + 10 + 1
	placeSize        = 1 + 1 + 10 + 1 + 32 + 1 + 32 + 1
	// maxRegister is how large a register may be that is read: far more runs than a process begins.
	maxRegister = 16 << 20
)

// left says that a run's process died in it.
func (m mark) left() bool { return m == markLeft || m == markTried || m == markAlone }

// place is one line of the register.
type place struct {
	mark    mark
	process uint32
	// execution and attempt are hashes.
	execution, attempt string
	// trial says that it is a run of this process that is being tried, serial numbers the runs of this process.
	trial  bool
	serial uint64
}

func (p place) text() []byte {
	if p.mark == 0 || p.mark == markNone {
		empty := strings.Repeat("0", 32)
		p = place{mark: markNone, execution: empty, attempt: empty}
	}
	return fmt.Appendf(nil, placeFormat, p.mark, p.process, p.execution, p.attempt)
}

func hashOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func executionHash(ref store.Ref) string { return hashOf(ref.Workspace, ref.Execution) }

func attemptHash(ref store.Ref, a engine.Attempt) string {
	return hashOf(ref.Workspace, ref.Execution, string(a.Activation), strconv.FormatUint(uint64(a.Generation), 10),
		strconv.FormatUint(uint64(a.Attempt), 10))
}

// Register is what a host notes of its runs. One without a place to write to records nothing and suspects no run.
type Register struct {
	at  File
	log *slog.Logger
	// process numbers this process. Known says that the one before has kept the register, died that it did not stop in order.
	process uint32
	known   bool
	died    bool

	mu       sync.Mutex
	places   []place
	serial   uint64
	stopping bool
}

// Open reads what the process before has left and begins a register for this one, with room for so many runs.
func Open(at File, room int, log *slog.Logger) (*Register, error) {
	r := &Register{at: at, log: log}
	if at == nil {
		return r, nil
	}
	text, err := io.ReadAll(io.NewSectionReader(at, 0, maxRegister))
	if err != nil {
		return nil, fmt.Errorf("read the register of runs: %w", err)
	}
	r.read(string(text))
	// What ran is marked first, then this process takes the register over: a death in between changes nothing of what is told.
	for i := range r.places {
		if err := r.write(i); err != nil {
			return nil, err
		}
	}
	r.process++
	if err := r.header(registerWorking); err != nil {
		return nil, err
	}
	for range room { // now, so that a disk that is full later does not matter
		r.places = append(r.places, place{})
		if err := r.write(len(r.places) - 1); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// read takes over what is in the register. What cannot be read tells nothing.
func (r *Register) read(text string) {
	if len(text) < headerSize {
		return
	}
	number, err := strconv.ParseUint(text[headerSize-11:headerSize-1], 10, 32)
	if err != nil || !strings.HasPrefix(text, registerTitle) {
		r.log.Warn("the register of runs cannot be read; nothing is blamed on what ran before")
		return
	}
	r.process, r.known, r.died = uint32(number), true, !strings.HasPrefix(text, registerTitle+registerStopping)
	begun, waiting := 0, 0
	for text = text[headerSize:]; len(text) >= placeSize; text = text[placeSize:] {
		p := readPlace(text)
		switch last := p.process == r.process; {
		case !last && !p.mark.left(), last && !r.died:
			p = place{}
		case last && p.mark == markWaits:
			waiting++
		case last && p.mark != 0:
			begun++
		}
		r.places = append(r.places, p)
	}
	for i := range r.places {
		switch p := &r.places[i]; {
		case p.process != r.process || p.mark == 0:
		case p.mark == markWaits:
			*p = place{}
		case begun == 1 && waiting == 0:
			p.mark = markAlone
		case p.mark == markTrial || p.mark == markTried:
			p.mark = markTried
		default:
			p.mark = markLeft
		}
	}
}

// readPlace reads a line; one that cannot be read is an empty place.
func readPlace(text string) place {
	number, err := strconv.ParseUint(text[2:12], 10, 32)
	p := place{mark: mark(text[0]), process: uint32(number), execution: text[13:45], attempt: text[46:78]}
	switch p.mark {
	case markBegun, markTrial, markWaits, markLeft, markTried, markAlone:
		if err == nil {
			return p
		}
	}
	return place{}
}

func (r *Register) header(state string) error {
	if _, err := r.at.WriteAt(fmt.Appendf(nil, headerFormat, state, r.process), 0); err != nil {
		return fmt.Errorf("write the register of runs: %w", err)
	}
	return nil
}

func (r *Register) write(i int) error {
	if _, err := r.at.WriteAt(r.places[i].text(), int64(headerSize+i*placeSize)); err != nil {
		return fmt.Errorf("write the register of runs: %w", err)
	}
	return nil
}

// Entry is a run that this process has in the register.
type Entry struct {
	r      *Register
	i      int
	serial uint64
}

// Begin notes that a run begins, in a trial or not. It is to be called before it does.
func (r *Register) Begin(ref store.Ref, a engine.Attempt, trial bool) Entry {
	if r.at == nil {
		return Entry{}
	}
	p := place{process: r.process, execution: executionHash(ref), attempt: attemptHash(ref, a), trial: trial}
	p.begin()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serial++
	p.serial = r.serial
	i := 0
	for i < len(r.places) && r.places[i].mark != 0 {
		i++
	}
	if i == len(r.places) {
		r.places = append(r.places, place{})
	}
	r.places[i] = p
	r.wrote(r.write(i))
	return Entry{r, i, p.serial}
}

// change changes what is noted of the run, as long as it goes on.
func (e Entry) change(change func(p *place)) {
	if e.r == nil {
		return
	}
	e.r.mu.Lock()
	defer e.r.mu.Unlock()
	p := &e.r.places[e.i]
	if p.serial != e.serial {
		return // it has ended, and the place is another's
	}
	before := *p
	if change(p); *p != before {
		e.r.wrote(e.r.write(e.i))
	}
}

// Waits notes that the run waits for an interpreter.
func (e Entry) Waits() { e.change(func(p *place) { p.mark = markWaits }) }

// Begun notes that the run has what it waited for.
func (e Entry) Begun() { e.change((*place).begin) }

// Tried notes that the run's trial is over.
func (e Entry) Tried() {
	e.change(func(p *place) {
		if p.trial = false; p.mark == markTrial {
			p.mark = markBegun
		}
	})
}

// End notes that the run has ended.
func (e Entry) End() { e.change(func(p *place) { *p = place{} }) }

func (p *place) begin() {
	if p.mark = markBegun; p.trial {
		p.mark = markTrial
	}
}

// wrote looks at how a write went. A register that lacks a run could blame another, so after one that failed nothing is blamed
// on this process any more.
func (r *Register) wrote(err error) {
	if err == nil || r.stopping {
		return
	}
	r.stopping = true
	if herr := r.header(registerStopping); herr != nil {
		err = errors.Join(err, herr)
	}
	r.log.Warn("which runs have begun cannot be noted; should the process die, nothing is blamed on them", "error", err)
}

// Stop notes that the process was told to stop: whatever ends with it is not to blame.
func (r *Register) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil || r.stopping {
		return
	}
	r.stopping = true
	if err := r.header(registerStopping); err != nil {
		r.log.Warn("the register does not know that the process stops in order", "error", err)
	}
}

// Blame says which of an execution's attempts had begun when a process died, which of them in a trial, and whether it was one that
// ran alone. A process that has kept no register leaves that open: then all may have.
func (r *Register) Blame(ref store.Ref, attempts []engine.Attempt) (begun, tried []engine.ActivationID, alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range attempts {
		hash := attemptHash(ref, a)
		i := slices.IndexFunc(r.places, func(p place) bool { return p.mark.left() && p.attempt == hash })
		if i < 0 {
			if !r.known {
				begun = append(begun, a.Activation)
			}
			continue
		}
		begun = append(begun, a.Activation)
		if r.places[i].mark == markTried {
			tried = append(tried, a.Activation)
		}
		alone = alone || r.places[i].mark == markAlone
	}
	return begun, tried, alone
}

// AtOnce is how many of the runs that were left are tried at a time: half of those that can be to blame. Those that were in a trial
// are more likely to be than those that had survived theirs.
func (r *Register) AtOnce() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	left, tried := 0, 0
	for _, p := range r.places {
		switch p.mark {
		case markTried:
			tried++
		case markLeft, markAlone:
			left++
		}
	}
	if tried > 0 {
		left = tried
	}
	return max(1, (left+1)/2)
}

// Leaves says whether something was left of an execution.
func (r *Register) Leaves(ref store.Ref) bool {
	hash := executionHash(ref)
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.places, func(p place) bool { return p.mark.left() && p.execution == hash })
}

// Unexplained says that the process before died of nothing that it had noted.
func (r *Register) Unexplained() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.died && !slices.ContainsFunc(r.places, func(p place) bool { return p.mark.left() && p.process == r.process-1 })
}

// Settled forgets what was left of an execution: its journal tells it now.
func (r *Register) Settled(ref store.Ref) {
	hash := executionHash(ref)
	r.forget(func(p place) bool { return p.execution == hash })
}

// KeepOnly forgets what was left of all executions but some: the others have ended.
func (r *Register) KeepOnly(some []store.Ref) {
	keep := map[string]bool{}
	for _, ref := range some {
		keep[executionHash(ref)] = true
	}
	r.forget(func(p place) bool { return !keep[p.execution] })
}

func (r *Register) forget(which func(place) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, p := range r.places {
		if p.mark.left() && which(p) {
			r.places[i] = place{}
			r.wrote(r.write(i))
		}
	}
}
