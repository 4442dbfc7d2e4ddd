package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tandem/engine"
	"tandem/host"
)

func ref(execution string) host.Ref { return host.Ref{Workspace: "w", Execution: execution} }

func attempt(id engine.ActivationID, generation, n uint32) engine.Attempt {
	return engine.Attempt{Activation: id, Generation: generation, Attempt: n}
}

// emptyRow has nothing to tell.
func emptyRow(seq uint64) host.Row { return host.Row{Seq: seq, Time: int64(seq)} }

// seqs are the rows among notices.
func seqs(list []host.Notice) []uint64 {
	var out []uint64
	for _, n := range list {
		if n.Row != nil {
			out = append(out, n.Row.Seq)
		}
	}
	return out
}

func TestHub_Publish(t *testing.T) {
	t.Parallel()
	t.Run("TellsSubscribersInOrder", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		h.Publish(ref("a"), emptyRow(1)) // nobody listens yet
		one, two, other := h.Subscribe(ref("a")), h.Subscribe(ref("a")), h.Subscribe(ref("b"))
		defer one.Close()
		defer two.Close()
		defer other.Close()
		if list, more, behind := one.Next(); len(list) != 0 || more == nil || behind {
			t.Fatalf("nothing has come, and Next returned %v, %v, %v", list, more, behind)
		}
		h.Publish(ref("a"), emptyRow(2))
		h.Publish(ref("a"), emptyRow(3))
		for _, s := range []*host.Subscription{one, two} {
			list, _, behind := s.Next()
			if diff := cmp.Diff([]uint64{2, 3}, seqs(list)); diff != "" || behind {
				t.Errorf("rows (-want +got):\n%s, behind %v", diff, behind)
			}
		}
		if list, _, _ := other.Next(); len(list) != 0 {
			t.Errorf("another execution was told %v", list)
		}
	})
	t.Run("WakesWhoWaits", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		s := h.Subscribe(ref("a"))
		defer s.Close()
		_, more, _ := s.Next()
		h.Publish(ref("a"), emptyRow(1))
		<-more
		if list, _, _ := s.Next(); len(list) != 1 {
			t.Errorf("awake, and %d notices", len(list))
		}
	})
	t.Run("TellsWhoIsTooSlow", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		s := h.Subscribe(ref("a"))
		defer s.Close()
		const n = 5000
		for seq := uint64(1); seq <= n; seq++ {
			h.Publish(ref("a"), emptyRow(seq))
		}
		if _, _, behind := s.Next(); !behind {
			t.Fatal("the ring has kept everything")
		}
		if _, _, behind := s.Sync(); !behind {
			t.Fatal("the rows that are gone are not missing")
		}
		h.Publish(ref("a"), emptyRow(n+1))
		rows, _, behind := s.Sync()
		if behind || len(rows) != 1 || rows[0].Seq != n+1 {
			t.Errorf("after the journal was read: %d rows, behind %v", len(rows), behind)
		}
	})
	t.Run("LeavesLargeValuesOut", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		s := h.Subscribe(ref("a"))
		defer s.Close()
		row := host.Row{Seq: 2, Values: []json.RawMessage{json.RawMessage(`1`), json.RawMessage(`"` + strings.Repeat("x", host.MaxInline) + `"`)}}
		if err := row.Spill(func(json.RawMessage) (host.Blob, error) { return host.Blob{Hash: "h", Size: 9}, nil }); err != nil {
			t.Fatal(err)
		}
		h.Publish(ref("a"), row)
		list, _, _ := s.Next()
		if got := list[0].Row.Values; string(got[0]) != "1" || got[1] != nil {
			t.Errorf("values %s", got)
		}
		if row.Values[1] == nil {
			t.Error("the owner's row was changed")
		}
	})
	t.Run("KeepsBytesInBounds", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		s := h.Subscribe(ref("a"))
		defer s.Close()
		value := json.RawMessage(`"` + strings.Repeat("x", host.MaxInline-2) + `"`)
		for seq := uint64(2); seq < 400; seq++ {
			h.Publish(ref("a"), host.Row{Seq: seq, Values: []json.RawMessage{value}})
		}
		if _, _, behind := s.Next(); !behind {
			t.Error("13 MB of rows are held for a reader that does not read")
		}
	})
}

// text reads all that a subscription has of one activation's text, applying the rules for readers.
type text struct {
	attempt engine.Attempt
	content string
}

func (x *text) take(t *testing.T, o host.Output, snapshot bool) {
	t.Helper()
	if snapshot || o.Attempt != x.attempt {
		if !snapshot && o.Offset != 0 {
			t.Errorf("attempt %v begins at %d", o.Attempt, o.Offset)
		}
		*x = text{o.Attempt, ""}
	} else if o.Offset != int64(len(x.content)) {
		t.Errorf("a piece at %d follows %d bytes", o.Offset, len(x.content))
	}
	x.content += o.Text
}

func TestHub_Emit(t *testing.T) {
	t.Parallel()
	t.Run("OrderAndOffsets", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 1), Text: "Hel"})
		s := h.Subscribe(ref("a"))
		defer s.Close()
		_, outputs, _ := s.Sync()
		if len(outputs) != 1 || outputs[0].Text != "Hel" || outputs[0].Offset != 0 {
			t.Fatalf("snapshot %+v", outputs)
		}
		var got text
		got.take(t, outputs[0], true)
		for _, piece := range []string{"lo", ", ", "世界"} {
			h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 1), Text: piece})
		}
		list, _, _ := s.Next()
		for _, n := range list {
			got.take(t, *n.Output, false)
		}
		if got.content != "Hello, 世界" {
			t.Errorf("text %q", got.content)
		}
	})
	t.Run("ANewAttemptBeginsAtZero", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		s := h.Subscribe(ref("a"))
		defer s.Close()
		h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 1), Text: "first"})
		h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 2), Text: "second"})
		h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 1), Text: "late"}) // of an attempt that was given up
		h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 1, 1), Text: "anew"})
		h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 3), Text: "late"})
		list, _, _ := s.Next()
		var got []string
		for _, n := range list {
			got = append(got, fmt.Sprintf("%d.%d@%d %s", n.Output.Generation, n.Output.Attempt.Attempt, n.Output.Offset, n.Output.Text))
		}
		if diff := cmp.Diff([]string{"0.1@0 first", "0.2@0 second", "1.1@0 anew"}, got); diff != "" {
			t.Errorf("pieces (-want +got):\n%s", diff)
		}
	})
	t.Run("AnObjectReplacesAndTextStays", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		id := attempt("n", 0, 1)
		h.Emit(ref("a"), host.Chunk{Attempt: id, Text: "text"})
		h.Emit(ref("a"), host.Chunk{Attempt: id, Data: json.RawMessage(`{"n":1}`)})
		h.Emit(ref("a"), host.Chunk{Attempt: id, Data: json.RawMessage(`{"n":2}`)})
		s := h.Subscribe(ref("a"))
		defer s.Close()
		_, outputs, _ := s.Sync()
		if len(outputs) != 1 || outputs[0].Text != "text" || string(outputs[0].Data) != `{"n":2}` {
			t.Errorf("snapshot %+v", outputs)
		}
		h.Emit(ref("a"), host.Chunk{Attempt: id, Data: json.RawMessage(`"` + strings.Repeat("x", host.MaxInline) + `"`)})
		list, _, _ := s.Next()
		if got := string(list[0].Output.Data); got != `{"$omitted":true,"size":32770}` {
			t.Errorf("a large object is told as %.80s", got)
		}
	})
	t.Run("KeepsTheEndOfALongText", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		piece := strings.Repeat("世", 1000)
		total := int64(0)
		for range 1200 {
			h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 1), Text: piece})
			total += int64(len(piece))
		}
		s := h.Subscribe(ref("a"))
		defer s.Close()
		_, outputs, _ := s.Sync()
		o := outputs[0]
		if len(o.Text) > host.MaxText || len(o.Text) < host.MaxText-3 || o.Offset+int64(len(o.Text)) != total || !utf8.ValidString(o.Text) {
			t.Errorf("%d bytes at %d of %d", len(o.Text), o.Offset, total)
		}
	})
	t.Run("NeverCutsALetter", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		s := h.Subscribe(ref("a"))
		defer s.Close()
		for _, b := range []byte("aé世🙂\xffz") {
			h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 1), Text: string([]byte{b})})
		}
		list, _, _ := s.Next()
		var got text
		for _, n := range list {
			if !utf8.ValidString(n.Output.Text) {
				t.Errorf("piece %q", n.Output.Text)
			}
			got.take(t, *n.Output, false)
		}
		if got.content != "aé世🙂\uFFFDz" {
			t.Errorf("text %q", got.content)
		}
	})
	t.Run("ASlowReaderGetsASnapshot", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		s := h.Subscribe(ref("a"))
		defer s.Close()
		want := strings.Builder{}
		for i := range 4000 {
			piece := fmt.Sprint(i, " ")
			want.WriteString(piece)
			h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 1), Text: piece})
		}
		if _, _, behind := s.Next(); !behind {
			t.Fatal("4000 pieces fit")
		}
		var outputs []host.Output
		for behind := true; behind; {
			_, outputs, behind = s.Sync()
		}
		if len(outputs) != 1 || outputs[0].Text != want.String() {
			t.Errorf("snapshot of %d bytes, want %d", len(outputs[0].Text), want.Len())
		}
	})
}

func TestHub_ForgetsOutputThatHasEnded(t *testing.T) {
	t.Parallel()
	ends := map[string]host.Row{
		"Completed": {Facts: []engine.Fact{engine.NodeCompleted{Attempt: attempt("n", 0, 1)}}},
		"Failed":    {Facts: []engine.Fact{engine.NodeFailed{Attempt: attempt("n", 0, 1)}}},
		"Canceled":  {Told: []host.Told{{What: host.ToldNode, Activation: "n", Node: engine.NodeCanceled}}},
		"Retrying":  {Told: []host.Told{{What: host.ToldNode, Activation: "n", Attempt: 2, Node: engine.NodeRetrying}}},
		"Finished":  {Told: []host.Told{{What: host.ToldExecution, Status: engine.StatusError}}},
	}
	for name, row := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host.NewHub()
			h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 1), Text: "x"})
			h.Publish(ref("a"), row)
			s := h.Subscribe(ref("a"))
			defer s.Close()
			if _, outputs, _ := s.Sync(); len(outputs) != 0 {
				t.Errorf("still there: %+v", outputs)
			}
		})
	}
	t.Run("Ended", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 1), Text: "x"})
		h.Ended(ref("a"), attempt("n", 0, 1))
		h.Ended(ref("b"), attempt("n", 0, 1))
		s := h.Subscribe(ref("a"))
		defer s.Close()
		if _, outputs, _ := s.Sync(); len(outputs) != 0 {
			t.Errorf("still there: %+v", outputs)
		}
	})
	for name, row := range ends {
		if name == "Finished" {
			continue
		}
		t.Run("ButNotOfALaterAttempt/"+name, func(t *testing.T) { // the row is heard of late
			t.Parallel()
			h, later := host.NewHub(), attempt("n", 0, 2)
			if name == "Canceled" {
				later = attempt("n", 1, 1)
			}
			h.Emit(ref("a"), host.Chunk{Attempt: later, Text: "x"})
			h.Publish(ref("a"), row)
			s := h.Subscribe(ref("a"))
			defer s.Close()
			if _, outputs, _ := s.Sync(); len(outputs) != 1 {
				t.Errorf("it has %+v", outputs)
			}
		})
	}
	t.Run("ButNotWhatWaits", func(t *testing.T) {
		t.Parallel()
		h := host.NewHub()
		h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 1), Text: "x"})
		h.Publish(ref("a"), host.Row{Told: []host.Told{{What: host.ToldNode, Activation: "n", Node: engine.NodeWaitingInput}, {What: host.ToldExecution, Status: engine.StatusWaitingForHuman}}})
		s := h.Subscribe(ref("a"))
		defer s.Close()
		if _, outputs, _ := s.Sync(); len(outputs) != 1 {
			t.Errorf("an attempt that waits has lost its text: %+v", outputs)
		}
	})
}

// A row and the text around it come in the order they were handed in, whoever reads when.
func TestHub_SyncIsAConsistentCut(t *testing.T) {
	t.Parallel()
	h := host.NewHub()
	s := h.Subscribe(ref("a"))
	defer s.Close()
	h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, 1), Text: "one"})
	h.Publish(ref("a"), host.Row{Seq: 1, Facts: []engine.Fact{engine.NodeCompleted{Attempt: attempt("n", 0, 1)}}})
	h.Emit(ref("a"), host.Chunk{Attempt: attempt("m", 0, 1), Text: "two"})
	rows, outputs, behind := s.Sync()
	if behind || len(rows) != 1 || len(outputs) != 1 || outputs[0].Activation != "m" {
		t.Fatalf("rows %v, outputs %+v, behind %v", rows, outputs, behind)
	}
	h.Emit(ref("a"), host.Chunk{Attempt: attempt("m", 0, 1), Text: "three"})
	list, _, _ := s.Next()
	if len(list) != 1 || list[0].Output.Offset != 3 {
		t.Errorf("after the snapshot: %+v", list)
	}
}

func TestHub_Shared(t *testing.T) {
	t.Parallel()
	h := host.NewHub()
	one, two := h.Subscribe(ref("a")), h.Subscribe(ref("a"))
	a := one.Shared("k", func() any { return new(int) })
	if b := two.Shared("k", func() any { return new(int) }); a != b {
		t.Error("two readers share two things")
	}
	one.Close()
	one.Close()
	two.Close()
	three := h.Subscribe(ref("a"))
	defer three.Close()
	if c := three.Shared("k", func() any { return new(int) }); a == c {
		t.Error("what was shared outlives its readers")
	}
}

// Publishing, emitting, subscribing and leaving at the same time: who follows the rules sees every row once and in order, and
// nothing is left behind.
func TestHub_Concurrent(t *testing.T) {
	t.Parallel()
	h := host.NewHub()
	const rows, readers = 3000, 20
	var journal atomic.Uint64 // the last row on disk
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			s := h.Subscribe(ref("a"))
			defer s.Close()
			seen, live := uint64(0), false
			for seen < rows {
				if !live {
					seen = max(seen, journal.Load())
					list, _, behind := s.Sync()
					for _, row := range list {
						if row.Seq > seen+1 {
							t.Errorf("row %d follows row %d", row.Seq, seen)
						}
						seen = max(seen, row.Seq)
					}
					live = !behind
					continue
				}
				list, more, behind := s.Next()
				for _, seq := range seqs(list) {
					if seq > seen+1 {
						t.Errorf("row %d follows row %d", seq, seen)
					}
					seen = max(seen, seq)
				}
				if live = !behind; more != nil {
					<-more
				}
			}
		})
		wg.Go(func() { // one that comes and goes
			for range 50 {
				s := h.Subscribe(ref("a"))
				s.Next()
				s.Close()
			}
		})
	}
	wg.Go(func() {
		for seq := uint64(1); seq <= rows; seq++ {
			journal.Store(seq)
			h.Publish(ref("a"), emptyRow(seq))
			h.Emit(ref("a"), host.Chunk{Attempt: attempt("n", 0, uint32(seq)), Text: "x"})
		}
		h.Ended(ref("a"), attempt("n", 0, rows))
	})
	wg.Wait()
}

// The hub's only goroutine is there as long as somebody reads.
func TestSubscription_CloseLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left in it
		h := host.NewHub()
		for range 3 {
			one, two := h.Subscribe(ref("a")), h.Subscribe(ref("a"))
			_, more, _ := one.Next()
			h.Publish(ref("a"), emptyRow(1))
			<-more
			one.Close()
			two.Close()
		}
		synctest.Wait()
	})
}

// Who follows an execution is told that rows may be missing, also while it waits.
func TestHub_Missed(t *testing.T) {
	t.Parallel()
	h := host.NewHub()
	s := h.Subscribe(ref("a"))
	defer s.Close()
	h.Publish(ref("a"), emptyRow(1))
	if list, _, behind := s.Next(); len(list) != 1 || behind {
		t.Fatalf("%d rows, behind %v", len(list), behind)
	}
	_, more, _ := s.Next()
	h.Missed()
	<-more
	if _, _, behind := s.Next(); !behind {
		t.Error("it does not know that rows may be missing")
	}
	if _, _, behind := s.Sync(); !behind {
		t.Error("the journal need not be read again")
	}
	if _, _, behind := s.Sync(); behind {
		t.Error("it stays behind")
	}
	h.Publish(ref("a"), emptyRow(2))
	if list, _, behind := s.Next(); len(list) != 1 || behind {
		t.Errorf("then %d rows, behind %v", len(list), behind)
	}
}

func BenchmarkHub_Publish(b *testing.B) {
	for _, readers := range []int{0, 1, 1000} {
		b.Run(fmt.Sprintf("Readers%d", readers), func(b *testing.B) {
			h := host.NewHub()
			for range readers {
				s := h.Subscribe(ref("a"))
				defer s.Close()
				stop := make(chan struct{})
				defer close(stop)
				go func() {
					for {
						_, more, behind := s.Next()
						if behind {
							s.Sync()
						}
						if more == nil {
							continue
						}
						select {
						case <-more:
						case <-stop:
							return
						}
					}
				}()
			}
			row := emptyRow(2)
			b.ReportAllocs()
			for b.Loop() {
				h.Publish(ref("a"), row)
			}
		})
	}
}
