package local

import (
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/store"
)

// timerShelf is the timers of a store, in order.
type timerShelf struct {
	mu  sync.Mutex
	all []store.Timer
	// sorted says that all are in order.
	sorted bool
	read   func() // called after a page is taken
}

func (s *timerShelf) upcoming(after store.Timer, limit int) ([]store.Timer, error) {
	s.mu.Lock()
	if !s.sorted {
		slices.SortFunc(s.all, store.Timer.Compare)
		s.sorted = true
	}
	from := 0
	if after != (store.Timer{}) {
		from = sort.Search(len(s.all), func(i int) bool { return s.all[i].Compare(after) > 0 })
	}
	page := slices.Clone(s.all[from:min(from+limit, len(s.all))])
	read := s.read
	s.mu.Unlock()
	if read != nil {
		read()
	}
	return page, nil
}

func (s *timerShelf) put(t store.Timer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, t)
	s.sorted = false
}

func timerOf(n int, until int64) store.Timer {
	return store.Timer{Workspace: "w", Execution: fmt.Sprintf("e%06d", n), ID: "t#1", Until: until}
}

func refOf(t store.Timer) store.Ref { return store.Ref{Workspace: t.Workspace, Execution: t.Execution} }

func (t *timers) kept() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.heap)
}

// fired collects what timers fire.
type fired struct {
	mu   sync.Mutex
	list []string
	// most is how many timers were kept when one was fired, at most.
	at   *timers
	most int
}

func (f *fired) watch(at *timers) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = at
}

func (f *fired) fire(ref store.Ref, _ engine.TimerID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, ref.Execution)
	if f.at != nil {
		f.most = max(f.most, f.at.kept())
	}
}

func (f *fired) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list)
}

func TestTimers(t *testing.T) {
	t.Parallel()
	const many = 10 * manyTimers
	inOrder := func(t *testing.T, got []string, want int) {
		t.Helper()
		if len(got) != want || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != want {
			t.Errorf("%d of %d were fired, in order: %v", len(got), want, slices.IsSorted(got))
		}
	}
	t.Run("KeepsTheFirstOfManyAndFiresAll", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			shelf, out, now := &timerShelf{}, &fired{}, time.Now().UnixMilli()
			for n := range many {
				shelf.put(timerOf(n, now+int64(n)*1000))
			}
			at := newTimers(out.fire, shelf.upcoming)
			at.start()
			defer at.close()
			out.watch(at)
			synctest.Wait()
			if kept := at.kept(); kept == 0 || kept > timerPage {
				t.Errorf("%d of %d timers are kept", kept, many)
			}
			time.Sleep((many/2)*time.Second - time.Millisecond)
			synctest.Wait()
			inOrder(t, out.all(), many/2)
			time.Sleep(many * time.Second)
			synctest.Wait()
			inOrder(t, out.all(), many)
			out.mu.Lock()
			defer out.mu.Unlock()
			if most := out.most; most > fewTimers+timerPage {
				t.Errorf("%d timers were kept", most)
			}
		})
	})
	t.Run("LeavesWhatIsSetLaterToTheStore", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			shelf, out, now := &timerShelf{}, &fired{}, time.Now().UnixMilli()
			at := newTimers(out.fire, shelf.upcoming)
			at.start()
			defer at.close()
			synctest.Wait()
			for n := many - 1; n >= 0; n-- { // the last one first, so that each is before those that are kept
				timer := timerOf(n, now+int64(n+1)*1000)
				shelf.put(timer)
				at.setTimer(refOf(timer), "t#1", timer.Until)
			}
			at.setUnstored(store.Ref{Workspace: "w", Execution: "z"}, "again", now+many*3000)
			if kept := at.kept(); kept > manyTimers+1 {
				t.Errorf("%d of %d timers are kept", kept, many)
			}
			time.Sleep(many * 2 * time.Second)
			synctest.Wait()
			inOrder(t, out.all(), many)
			time.Sleep(many * 2 * time.Second)
			synctest.Wait()
			inOrder(t, out.all(), many+1)
		})
	})
	t.Run("KeepsWhatIsStoredBesideManyUnstored", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			const unstored, stored = 5 * timerPage, 10
			shelf, out, now := &timerShelf{}, &fired{}, time.Now().UnixMilli()
			at := newTimers(out.fire, shelf.upcoming)
			at.start()
			defer at.close()
			synctest.Wait() // the store has none: the heap is whole
			for n := range unstored {
				timer := timerOf(n, now+int64(n+1)*1000)
				at.setUnstored(refOf(timer), "t#1", timer.Until)
			}
			for n := range stored {
				timer := timerOf(unstored+n, now+int64(unstored+n+1)*1000)
				shelf.put(timer)
				at.setTimer(refOf(timer), "t#1", timer.Until)
			}
			if kept := at.kept(); kept != unstored+stored {
				t.Errorf("%d of %d timers are kept", kept, unstored+stored)
			}
			time.Sleep(2 * unstored * time.Second)
			synctest.Wait()
			inOrder(t, out.all(), unstored+stored)
		})
	})
	t.Run("ReadsThePageThatComesBeforeManyUnstored", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			shelf, out, now := &timerShelf{}, &fired{}, time.Now().UnixMilli()
			for n := range 2 * timerPage {
				shelf.put(timerOf(n, now+int64(n+1)*1000))
			}
			at := newTimers(out.fire, shelf.upcoming)
			at.start()
			defer at.close()
			synctest.Wait() // the first page is read
			for n := range timerPage {
				timer := timerOf(2*timerPage+n, now+10*timerPage*1000)
				at.setUnstored(refOf(timer), "t#1", timer.Until)
			}
			time.Sleep(3 * timerPage * time.Second)
			synctest.Wait()
			inOrder(t, out.all(), 2*timerPage)
		})
	})
	t.Run("SeesWhatChangesWhileAPageIsRead", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			shelf, out, now := &timerShelf{}, &fired{}, time.Now().UnixMilli()
			cleared, moved, added := timerOf(1, now+1000), timerOf(2, now+2000), timerOf(3, now+3000)
			shelf.put(cleared)
			shelf.put(moved)
			reading, goOn := make(chan struct{}), make(chan struct{})
			shelf.read = func() {
				close(reading)
				<-goOn
			}
			at := newTimers(out.fire, shelf.upcoming)
			at.start()
			defer at.close()
			<-reading
			at.clear(refOf(cleared), "t#1")
			at.setTimer(refOf(moved), "t#1", now+5000)
			at.setTimer(refOf(added), "t#1", added.Until)
			close(goOn)
			time.Sleep(4 * time.Second)
			synctest.Wait()
			if got := out.all(); !slices.Equal(got, []string{"e000003"}) {
				t.Errorf("fired %v", got)
			}
			time.Sleep(4 * time.Second)
			synctest.Wait()
			if got := out.all(); !slices.Equal(got, []string{"e000003", "e000002"}) {
				t.Errorf("fired %v", got)
			}
		})
	})
	t.Run("TriesAgainWhenTheStoreCannotBeRead", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			shelf, out, now := &timerShelf{}, &fired{}, time.Now().UnixMilli()
			shelf.put(timerOf(1, now+10_000))
			var mended atomic.Bool
			at := newTimers(out.fire, func(after store.Timer, limit int) ([]store.Timer, error) {
				if !mended.Load() {
					return nil, fmt.Errorf("the disk is away")
				}
				return shelf.upcoming(after, limit)
			})
			at.start()
			defer at.close()
			synctest.Wait()
			mended.Store(true)
			time.Sleep(11 * time.Second)
			synctest.Wait()
			if got := out.all(); len(got) != 1 {
				t.Errorf("fired %v", got)
			}
		})
	})
	t.Run("WaitsForItsStart", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			shelf, out := &timerShelf{}, &fired{}
			shelf.put(timerOf(1, time.Now().UnixMilli()-1))
			at := newTimers(out.fire, shelf.upcoming)
			defer at.close()
			synctest.Wait()
			if got := out.all(); len(got) != 0 {
				t.Errorf("fired %v", got)
			}
			at.start()
			synctest.Wait()
			if got := out.all(); len(got) != 1 {
				t.Errorf("fired %v", got)
			}
		})
	})
	t.Run("PassesOverReminders", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			shelf, out := &timerShelf{}, &fired{}
			shelf.put(store.Timer{Workspace: "w", Execution: "e", ID: string(reminder("c")), Until: reminderTime})
			shelf.put(store.Timer{Workspace: "w", Execution: "e", ID: string(errorTimer), Until: reminderTime})
			at := newTimers(out.fire, shelf.upcoming)
			at.start()
			defer at.close()
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := out.all(); len(got) != 0 {
				t.Errorf("fired %v", got)
			}
		})
	})
}
