package route

import queue "container/list"

// Recent keeps a bounded number of values, those that were used last. It is not safe for concurrent use.
type Recent[K comparable, V any] struct {
	size  int
	known map[K]*queue.Element
	order *queue.List // of kept[K, V], the last used first
}

type kept[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](size int) *Recent[K, V] {
	return &Recent[K, V]{size: size, known: map[K]*queue.Element{}, order: queue.New()}
}

// get returns a value and counts as a use of it.
func (r *Recent[K, V]) get(key K) (value V, ok bool) {
	e := r.known[key]
	if e == nil {
		return value, false
	}
	r.order.MoveToFront(e)
	return e.Value.(kept[K, V]).value, true
}

// put adds a value, and forgets the one that was not used for the longest time if there are too many.
func (r *Recent[K, V]) put(key K, value V) {
	if e := r.known[key]; e != nil {
		e.Value = kept[K, V]{key, value}
		r.order.MoveToFront(e)
		return
	}
	if oldest := r.order.Back(); oldest != nil && r.order.Len() >= r.size {
		r.order.Remove(oldest)
		delete(r.known, oldest.Value.(kept[K, V]).key)
	}
	r.known[key] = r.order.PushFront(kept[K, V]{key, value})
}

// drop forgets a value.
func (r *Recent[K, V]) drop(key K) {
	if e := r.known[key]; e != nil {
		r.order.Remove(e)
		delete(r.known, key)
	}
}
