package turns

import (
	"slices"
	"sync/atomic"
	"testing"
)

// However much work there is, each piece is done once, and outcomes are told in the order of the work.
func TestBatches(t *testing.T) {
	t.Parallel()
	var room Room[int]
	for _, count := range []int{0, 1, maxBatch - 1, maxBatch, maxBatch + 1, 3*maxBatch + 7, (maxWaiting+20)*maxBatch + 1} {
		var done atomic.Int64
		b := NewBatches(func(n *int) int {
			done.Add(1)
			return *n * 2
		}, &room)
		for range 2 { // what was finished is not told again
			done.Store(0)
			for n := range count {
				b.Add(n)
			}
			var got []int
			b.Finish(func(outcomes []int) { got = append(got, outcomes...) })
			want := make([]int, count)
			for n := range want {
				want[n] = n * 2
			}
			if !slices.Equal(got, want) || int(done.Load()) != count {
				t.Errorf("of %d, %d were done, with the outcomes %v", count, done.Load(), got)
			}
		}
	}
}

// While work is collected, what came before is under way.
func TestBatches_WorkWhileOthersAreCollected(t *testing.T) {
	t.Parallel()
	first := make(chan struct{}, 1)
	var room Room[int]
	b := NewBatches(func(*int) int {
		select {
		case first <- struct{}{}:
		default:
		}
		return 0
	}, &room)
	for n := range maxBatch + 1 {
		b.Add(n)
	}
	<-first // before Finish is called
	b.Finish(func([]int) {})
}

// What waits is bounded: an owner that collects faster than work is done does some of it.
func TestBatches_Bounded(t *testing.T) {
	t.Parallel()
	var room Room[int]
	began, release := make(chan struct{}), make(chan struct{})
	b := NewBatches(func(n *int) int {
		switch {
		case *n == 0: // the only goroutine is busy with the first batch
			close(began)
			<-release
		case *n < maxBatch:
			<-release
		}
		return *n
	}, &room)
	b.workers = 1 << 10 // as if all of them were busy
	for n := range maxBatch + 1 {
		b.Add(n)
	}
	b.going.Go(func() { b.doNext() })
	<-began
	for n := range (maxWaiting + 2) * maxBatch {
		b.Add(maxBatch + n)
		if len(b.waiting) > maxWaiting {
			t.Fatalf("%d batches wait", len(b.waiting))
		}
	}
	close(release)
	b.Finish(func([]int) {})
}

// Work is not kept once it is done.
func TestRoom_IsEmpty(t *testing.T) {
	t.Parallel()
	var room Room[*int]
	used := append(room.take(), new(int), new(int))
	room.giveBack(used)
	if used[0] != nil || used[1] != nil {
		t.Error("room that is given back has what was in it")
	}
	if again := room.take(); len(again) != 0 || cap(again) == 0 {
		t.Errorf("room for %d with %d in it", cap(again), len(again))
	}
}
