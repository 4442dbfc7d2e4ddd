package lines_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/host/lines"
	"tandem/store"
)

// run is a run that writes lines into a log which may be away.
type run struct {
	lines.Kept
	room  *lines.Room
	away  bool
	tries int
	log   []string
}

func (r *run) say(texts ...string) {
	for _, text := range texts {
		if r.Add(r.room, store.LogLine{Activation: "a", Message: text}, r.flush) {
			r.flush()
		}
	}
}

func (r *run) flush() {
	r.Store(r.room, r.flush, func(list []store.LogLine) bool {
		r.tries++
		if !r.away {
			r.log = append(r.log, messages(list)...)
		}
		return r.away
	})
}

func messages(list []store.LogLine) (texts []string) {
	for _, l := range list {
		texts = append(texts, l.Message)
	}
	return texts
}

func numbered(from, to int) (texts []string) {
	for i := from; i < to; i++ {
		texts = append(texts, fmt.Sprint(i))
	}
	return texts
}

// TestKept_Away: lines that cannot be stored are kept, in their order, and stored once they can be. Nobody waits for that, and it is not
// tried more often than every second.
func TestKept_Away(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &run{room: &lines.Room{}, away: true}
		r.say(numbered(0, 150)...)
		if r.tries != 1 {
			t.Errorf("%d tries at once", r.tries)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if r.tries > 20 {
			t.Errorf("%d tries in a minute", r.tries)
		}
		r.say(numbered(150, 300)...)
		r.away = false
		time.Sleep(time.Minute)
		synctest.Wait()
		r.say("later")
		time.Sleep(time.Second)
		synctest.Wait()
		if want := append(numbered(0, 300), "later"); !slices.Equal(r.log, want) {
			t.Errorf("stored are %d lines: %v", len(r.log), r.log)
		}
	})
}

// TestKept_Bounded: of a run that says very much while nothing can be stored so many lines are kept, and readers are told how many were not.
func TestKept_Bounded(t *testing.T) {
	t.Parallel()
	const most = store.MaxLogLines / 2
	synctest.Test(t, func(t *testing.T) {
		r := &run{room: &lines.Room{}, away: true}
		r.say(numbered(0, 2000)...)
		time.Sleep(time.Minute) // and of several tries that do not work one gap is left
		r.say(numbered(2000, 2100)...)
		r.away = false
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(r.log) != most+1 || !slices.Equal(r.log[:most], numbered(0, most)) || !strings.HasPrefix(r.log[most], "1600 lines were left out here") {
			t.Fatalf("%d lines are stored, at the end %q", len(r.log), r.log[len(r.log)-1])
		}
		r.say("later")
		time.Sleep(time.Second)
		synctest.Wait()
		if len(r.log) != most+2 || r.log[most+1] != "later" {
			t.Errorf("afterwards %q is stored", r.log[most+1:])
		}
	})
}

// TestKept_Room: all runs together keep no more than there is room for, and the room is there again when lines were stored.
func TestKept_Room(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		room, long := &lines.Room{}, strings.Repeat("x", 1<<20)
		runs := []*run{{room: room, away: true}, {room: room, away: true}}
		for round := range 2 {
			for _, r := range runs {
				r.away, r.log = true, nil
				r.say(numbered(0, 100)...)
				r.flush()
			}
			for range 40 {
				runs[0].say(long)
				runs[1].say(long)
			}
			for _, r := range runs {
				r.away = false
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			stored := 0
			for _, r := range runs {
				for _, text := range r.log {
					stored += len(text)
				}
			}
			if stored < 60<<20 || stored > 64<<20 {
				t.Errorf("round %d: %d bytes were kept", round, stored)
			}
		}
	})
}

// TestKept_Hand: lines are handed over with what was left out behind them, and come back before those that were said since.
func TestKept_Hand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &run{room: &lines.Room{}, away: true}
		r.say(numbered(0, 601)...)
		handed := r.Hand(r.room)
		if len(handed) != 501 || !strings.HasPrefix(handed[500].Message, "101 lines") {
			t.Fatalf("%d lines are handed over", len(handed))
		}
		r.say("since")
		r.TakeBack(r.room)
		r.away = false
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := append(messages(handed), "since"); !slices.Equal(r.log, want) {
			t.Errorf("stored are %d lines", len(r.log))
		}
	})
}

// TestKept_LeftOutMeanwhile: lines that are left out while others are being stored are told of before those that follow.
func TestKept_LeftOutMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &run{room: &lines.Room{}, away: true}
		r.say(numbered(0, store.MaxLogLines/2+5)...)
		r.away = false
		meanwhile := numbered(9000, 9003)
		r.Store(r.room, r.flush, func(list []store.LogLine) bool {
			r.say(meanwhile...)
			r.log = append(r.log, messages(list)...)
			return false
		})
		r.say("later")
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(r.log); n < 4 || !strings.HasPrefix(r.log[n-3], "5 lines were left out") || !strings.HasPrefix(r.log[n-2], "3 lines were left out") || r.log[n-1] != "later" {
			t.Errorf("the log ends with %q", r.log[max(0, len(r.log)-4):])
		}
	})
}

// TestKept_LeftOutAtTheEnd: of lines that were left out while the last ones were stored it is told although nothing follows.
func TestKept_LeftOutAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &run{room: &lines.Room{}, away: true}
		r.say(numbered(0, store.MaxLogLines/2+5)...)
		r.away = false
		r.Store(r.room, r.flush, func(list []store.LogLine) bool {
			r.say("a", "b")
			r.log = append(r.log, messages(list)...)
			return false
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(r.log); !strings.HasPrefix(r.log[n-1], "2 lines were left out") {
			t.Errorf("the log ends with %q", r.log[n-1])
		}
	})
}
