package host

import (
	"cmp"
	"slices"
)

// Subscription follows an execution. It has one user at a time and must be closed.
//
// The way to follow without a gap: subscribe, read the journal, then [Subscription.Sync] and use its rows that are new and its outputs as
// snapshots, then [Subscription.Next] for whatever comes. When Next says that the subscriber was too slow, begin again with the journal.
type Subscription struct {
	hub   *Hub
	ref   Ref
	topic *topic
	// next is the number of the first notice that was not handed out.
	next   uint64
	closed bool
}

// Subscribe begins to follow an execution: whatever is published from now on is for the subscriber.
func (h *Hub) Subscribe(ref Ref) *Subscription {
	t := h.find(ref, true)
	t.readers++
	if t.readers > fewReaders && t.stop == nil {
		t.poke, t.stop = make(chan struct{}, 1), make(chan struct{})
		go t.announce(t.poke, t.stop)
	}
	s := &Subscription{hub: h, ref: ref, topic: t, next: t.first + uint64(len(t.ring))}
	t.mu.Unlock()
	return s
}

// Close ends the subscription. The last subscription of an execution to end drops all that was kept for readers.
func (s *Subscription) Close() {
	if s.closed {
		return
	}
	s.closed = true
	t := s.topic
	t.mu.Lock()
	t.readers--
	if t.readers == 0 {
		if t.stop != nil {
			close(t.stop)
			t.poke, t.stop = nil, nil
		}
		t.first += uint64(len(t.ring))
		t.ring, t.bytes, t.shared = nil, 0, nil
	}
	s.hub.release(s.ref, t)
}

// announce wakes all that wait for something new. It is the topic's only goroutine, begins when the readers are no longer few and
// ends with the last of them.
func (t *topic) announce(poke, stop <-chan struct{}) {
	for {
		select {
		case <-poke:
			t.mu.Lock()
			waiting := t.changed
			t.changed = nil
			t.mu.Unlock()
			if waiting != nil {
				close(waiting)
			}
		case <-stop:
			return
		}
	}
}

// Next returns what has come since the last call, in order; with nothing to return, a channel that is closed when there may be something.
// Behind says that some of it is no longer in memory: the subscriber was too slow and has to read the journal, then [Subscription.Sync].
func (s *Subscription) Next() (list []Notice, more <-chan struct{}, behind bool) {
	t := s.topic
	t.mu.RLock()
	list, behind = s.takeNotices(nil)
	t.mu.RUnlock()
	if len(list) > 0 || behind {
		return list, nil, behind
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if list, behind = s.takeNotices(nil); len(list) > 0 || behind {
		return list, nil, behind
	}
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return nil, t.changed, false
}

// takeNotices returns the notices that are wanted. The topic is locked.
func (s *Subscription) takeNotices(wanted func(Notice) bool) (list []Notice, behind bool) {
	t := s.topic
	if s.next < t.first {
		return nil, true
	}
	rest := t.ring[s.next-t.first:]
	s.next += uint64(len(rest))
	if wanted == nil {
		return rest[:len(rest):len(rest)], false // entries of a ring never change, and it grows elsewhere
	}
	for _, n := range rest {
		if wanted(n) {
			list = append(list, n)
		}
	}
	return list, false
}

// Sync brings the subscriber to now. Rows are those that have come since; outputs are the outputs of running attempts as of now, and
// earlier pieces of them are skipped. Behind says that rows are missing: the journal has to be read again, then this is to be called again.
func (s *Subscription) Sync() (rows []*Row, outputs []Output, behind bool) {
	t := s.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	list, behind := s.takeNotices(func(n Notice) bool { return n.Row != nil })
	if behind {
		s.next = t.first + uint64(len(t.ring))
		return nil, nil, true
	}
	for _, n := range list {
		rows = append(rows, n.Row)
	}
	for _, o := range t.outputs { // order does not matter: sorted below
		text := tail(o.text)
		if len(text) == 0 && o.data == nil {
			continue
		}
		outputs = append(outputs, Output{Attempt: o.id, Offset: o.end - int64(len(text)), Text: string(text), Data: o.data})
	}
	slices.SortFunc(outputs, func(a, b Output) int { return cmp.Compare(a.Activation, b.Activation) })
	return rows, outputs, false
}

// Shared returns what subscribers of the execution share under a key, made by the first who asks. It lives as long as
// the execution has subscribers.
func (s *Subscription) Shared(key any, make func() any) any {
	t := s.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	value, ok := t.shared[key]
	if !ok {
		if t.shared == nil {
			t.shared = map[any]any{}
		}
		value = make()
		t.shared[key] = value
	}
	return value
}
