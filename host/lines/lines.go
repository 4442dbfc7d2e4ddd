// Package lines keeps what runs of nodes write into their logs until it is stored. While the database is away it keeps as much as there is
// room for, and tells later readers what was left out.
//
// It stores nothing itself and knows nothing of runs: hosts give it lines and a function that writes them.
package lines

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tandem/store"
)

const (
	// After how many lines, and after what time, a run that goes on has its lines stored.
	many  = 100
	after = 300 * time.Millisecond
	// The pauses between tries while lines cannot be stored.
	firstPause = time.Second
	lastPause  = 10 * time.Second
	// most is how many lines of a run are kept meanwhile: the log of an activation has no room for more than twice as many anyway.
	most = store.MaxLogLines / 2
	// roomSize is how much is kept of all runs, in bytes.
	roomSize = 64 << 20
	// lineSize is what a line takes besides its texts.
	lineSize = 150
)

// Room is what all runs of a host share: how much is kept. The zero value is ready.
type Room struct{ used atomic.Int64 }

func size(l store.LogLine) int64 { return int64(lineSize + len(l.Message) + len(l.Context)) }

func (r *Room) leave(list []store.LogLine) {
	for _, l := range list {
		r.used.Add(-size(l))
	}
}

// Kept are the lines of a run that are not stored yet. The zero value is ready.
type Kept struct {
	mu    sync.Mutex
	lines []store.LogLine
	// handed are lines that were handed over to be stored with a row.
	handed []store.LogLine
	// flying is how many lines are being stored.
	flying int
	// soon has the lines stored; nil while there are none.
	soon *time.Timer
	// pause is how long it is until the next try while lines cannot be stored, and zero while they can.
	pause time.Duration
	// left is how many lines were left out behind those that are kept, the first of them at gap. Telling is how many more are being told of.
	left, telling int
	gap           store.LogLine
	// writing is held while lines are stored, so that they are in the log in the order in which they were said.
	writing sync.Mutex
}

// Add keeps a line, and has flush called in a moment. It says that there are many, which are to be stored at once.
func (k *Kept) Add(room *Room, line store.LogLine, flush func()) (flushNow bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pause > 0 && (k.left+k.telling > 0 || k.flying+len(k.lines) >= most || room.used.Load()+size(line) > roomSize) {
		if k.left++; k.left == 1 {
			k.gap = line
		}
		return false
	}
	if k.left > 0 { // the last write went well: what is said of them comes before this line
		k.lines = k.told(k.lines, k.left)
		room.used.Add(size(k.lines[len(k.lines)-1]))
		k.left = 0
	}
	room.used.Add(size(line))
	k.lines = append(k.lines, line)
	if k.soon == nil {
		k.soon = time.AfterFunc(max(k.pause, after), flush)
	}
	return k.pause == 0 && len(k.lines) >= many
}

// take returns what is kept, and behind it what is said of how many were left out. The lock is the caller's.
func (k *Kept) take() (list []store.LogLine, left int) {
	list, left, k.lines = k.lines, k.left, nil
	if k.soon != nil {
		k.soon.Stop()
		k.soon = nil
	}
	return list, left
}

// told are lines with one behind them that says how many were left out there.
func (k *Kept) told(list []store.LogLine, left int) []store.LogLine {
	if left == 0 {
		return list
	}
	line := store.LogLine{Activation: k.gap.Activation, NodeID: k.gap.NodeID, Time: k.gap.Time, Level: store.LevelWarn,
		Message: fmt.Sprintf("%d lines were left out here: the database could not be written to, and there was no room to keep them", left)}
	return append(slices.Clip(list), line)
}

// Store writes what is kept. If write says that the lines are to be written later they stay, and flush is called after a while.
func (k *Kept) Store(room *Room, flush func(), write func([]store.LogLine) (later bool)) {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	list, left := k.take()
	gap := k.gap
	k.flying, k.telling, k.left = len(list), left, 0
	all := k.told(list, left)
	k.mu.Unlock()
	if len(all) == 0 {
		return
	}
	later := write(all)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flying, k.telling = 0, 0
	if !later {
		room.leave(list)
		if k.pause = 0; k.left > 0 && k.soon == nil {
			k.soon = time.AfterFunc(after, flush)
		}
		return
	}
	if left > 0 {
		k.left, k.gap = k.left+left, gap
	}
	k.lines = append(list, k.lines...)
	k.pause = min(max(2*k.pause, firstPause), lastPause)
	if k.soon != nil {
		k.soon.Stop()
	}
	k.soon = time.AfterFunc(k.pause, flush)
}

// Hand hands over what is kept, to be stored with a row.
func (k *Kept) Hand(room *Room) []store.LogLine {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	list, left := k.take()
	room.leave(list)
	k.handed, k.left = k.told(list, left), 0
	return k.handed
}

// TakeBack takes lines back that were handed over for a row that was not written.
func (k *Kept) TakeBack(room *Room) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.handed {
		room.used.Add(size(l))
	}
	k.lines, k.handed = append(k.handed, k.lines...), nil
}
