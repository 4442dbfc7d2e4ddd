package route

import (
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"tandem/fault"
)

func TestCheckKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		ok   bool
	}{
		"Few":        {`{"a":1,"b":{"c":[{"d":2}]}}`, true},
		"Many":       {`{"a":1,"b":{"c":[{"d":2}],"e":1}}`, false},
		"InTexts":    {`{"a":"::::::::","b:":"\":\\\":::::","c":[":,:"]}`, true},
		"Unfinished": {`{"a":"` + `\`, true},
		"Broken":     {`{:::::::::`, false},
		"List":       {`[` + strings.Repeat("0,", maxItems-2) + `0]`, true},
		"LongList":   {`[` + strings.Repeat("0,", maxItems) + `0]`, false},
		"BOM":        {"\uFEFF {\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1}", false},
		"YAML":       {"a: 1\nb: 2\nc: 3\nd: 4\ne: 5\n", true},
		"Empty":      {"", true},
		"Blank":      {"         ", true},
	} {
		if err := checkKeys([]byte(c.body), 4); (err == nil) != c.ok || err != nil && fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fillRoom takes all the room there is and returns what gives it back.
func fillRoom(t *testing.T, room *semaphore.Weighted, size int64) func() {
	t.Helper()
	if err := room.Acquire(t.Context(), size); err != nil { // a request that was just answered may still be leaving
		t.Fatal(err)
	}
	return func() { room.Release(size) }
}

func TestMeter(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	meterOn := func(room *semaphore.Weighted, body io.Reader) *meter {
		return &meter{ReadCloser: io.NopCloser(body), ctx: t.Context(), room: room, patience: time.Millisecond, most: MaxBody}
	}
	t.Run("CountsWhatArrives", func(t *testing.T) {
		t.Parallel()
		room := semaphore.NewWeighted(size)
		m := meterOn(room, strings.NewReader(strings.Repeat("x", uncountedBytes)))
		if _, err := io.Copy(io.Discard, m); err != nil || m.held != 0 {
			t.Errorf("%d bytes are held, %v", m.held, err)
		}
		m = meterOn(room, strings.NewReader(strings.Repeat("x", 3<<20)))
		if _, err := io.Copy(io.Discard, m); err != nil || m.held < 3<<20-uncountedBytes || m.held > 3<<20+countStep {
			t.Errorf("%d bytes are held, %v", m.held, err)
		}
		m.done()
		m.done()
		if !room.TryAcquire(size) {
			t.Error("room was not given back")
		}
	})
	t.Run("WaitsForRoom", func(t *testing.T) {
		t.Parallel()
		room := semaphore.NewWeighted(size)
		give := fillRoom(t, room, size)
		m := meterOn(room, strings.NewReader(strings.Repeat("x", 1<<20)))
		m.patience = time.Minute
		var wait sync.WaitGroup
		wait.Go(func() {
			if n, err := io.Copy(io.Discard, m); err != nil || n != 1<<20 {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
		give()
		wait.Wait()
	})
	t.Run("NoRoom", func(t *testing.T) {
		t.Parallel()
		room := semaphore.NewWeighted(size)
		m := meterOn(room, io.LimitReader(zeros{}, 64<<20))
		n, err := io.Copy(io.Discard, m)
		if fault.CodeOf(err) != fault.Busy || n > size+uncountedBytes || m.why() == nil || m.brokeOff() {
			t.Errorf("%d bytes, %v", n, err)
		}
		m.done()
		if !room.TryAcquire(size) {
			t.Error("room was not given back")
		}
	})
	t.Run("ThrownAway", func(t *testing.T) {
		t.Parallel()
		room := semaphore.NewWeighted(size)
		m := meterOn(room, io.LimitReader(zeros{}, 16<<20))
		m.most = 1 << 20
		if _, err := io.Copy(io.Discard, m); err != nil || m.held > 1<<20+countStep {
			t.Errorf("%d bytes are held, %v", m.held, err)
		}
	})
}

// zeros is a body without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
