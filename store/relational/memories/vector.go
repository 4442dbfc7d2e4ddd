package memories

import (
	"cmp"
	ordered "container/list"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"sync"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

// Vectors are searched by looking at all of a scope's: exact, and fast as long as they are in memory. A hundred thousand
// of 256 numbers take some 20 ms there, and an index that approximates would save little and lose some. What is read from
// the database once is kept for the next search, bounded, and brought up to date by reading the rows that have come since.
// Rows that are gone stay in it until there are many: no record answers to them any more.

// maxVectors bounds what is kept, in bytes.
const maxVectors = 256 << 20

// vectorCache keeps the vectors of the scopes searched last. Its zero value is ready.
type vectorCache struct {
	mu    sync.Mutex
	sets  map[vectorKey]*ordered.Element // of *vectorSet
	order ordered.List                   // the one used last first
	size  int64
	// most is how many bytes are kept; zero: maxVectors. It is set before the first search.
	most int64
}

// limit is how many bytes are kept.
func (c *vectorCache) limit() int64 { return cmp.Or(c.most, maxVectors) }

type vectorKey struct {
	scope int64
	space string
}

// vectorSet is the vectors of one space of a scope. Its lock is held while it is read from the database, so that one
// search reads and the others wait for it.
type vectorSet struct {
	key  vectorKey
	size int64 // as the cache has counted it; the cache's

	mu     sync.Mutex
	loaded bool
	// removed is the scope's count when it was read; what has been added to it since is what is gone of it.
	removed int64
	dims    int
	last    int64 // the last place that was looked at
	places  []int64
	data    []float32
}

// get finds a set or makes it, and makes it the one used last.
func (c *vectorCache) get(key vectorKey) *vectorSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.sets[key]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*vectorSet)
	}
	if c.sets == nil {
		c.sets = map[vectorKey]*ordered.Element{}
	}
	s := &vectorSet{key: key}
	c.sets[key] = c.order.PushFront(s)
	return s
}

// weigh counts what a set has come to, and lets go of others until there is room.
func (c *vectorCache) weigh(s *vectorSet, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.sets[s.key]; !ok || e.Value != s {
		return
	}
	c.size += size - s.size
	s.size = size
	for e := c.order.Back(); e != nil && c.size > c.limit(); {
		before := e.Prev()
		c.drop(e)
		e = before
	}
}

func (c *vectorCache) drop(e *ordered.Element) {
	s := e.Value.(*vectorSet)
	c.size -= s.size
	s.size = 0
	delete(c.sets, s.key)
	c.order.Remove(e)
}

// forget lets go of the sets of a scope that is gone.
func (c *vectorCache) forget(scope int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.sets { // order does not matter: all are dropped
		if key.scope == scope {
			c.drop(e)
		}
	}
}

// scored is the place of a vector and how near it is.
type scored struct {
	place int64
	score float32
}

// Nearest implements [store.Memories].
func (x *Memories) Nearest(ctx context.Context, p identity.Principal, q store.MemoryNearest) ([]store.MemoryMatch, error) {
	m, err := x.find(ctx, p, q.Scope)
	if err != nil || len(q.Vector) == 0 || q.Limit <= 0 {
		return nil, err
	}
	near, err := x.scores(ctx, m, q)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(near, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.place, b.place))
	})
	// The best are looked up in growing portions until enough of them are wanted.
	var found []store.MemoryMatch
	for step := max(2*q.Limit, 32); len(near) > 0 && len(found) < q.Limit; step *= 4 {
		n := min(step, len(near))
		for n < len(near) && near[n].score == near[n-1].score { // ties are decided by id
			n++
		}
		portion, err := x.lookUp(ctx, near[:n], q)
		if err != nil {
			return nil, err
		}
		found, near = append(found, portion...), near[n:]
	}
	slices.SortFunc(found, func(a, b store.MemoryMatch) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return found[:min(len(found), q.Limit)], nil
}

// scores returns every vector of the scope that is near enough.
func (x *Memories) scores(ctx context.Context, m *memoryScope, q store.MemoryNearest) ([]scored, error) {
	set := x.vectors.get(vectorKey{m.n, q.Space})
	places, data, all, err := set.load(ctx, x.db, m, len(q.Vector), x.vectors.limit())
	if err != nil {
		x.vectors.forget(m.n)
		return nil, err
	}
	least := float32(q.Min)
	var near []scored
	if !all {
		// Too many to be kept: read and forgotten.
		err := eachVector(ctx, x.db, m.first(), m.last(), q.Space, len(q.Vector), func(place int64, v []float32) bool {
			if s := dot(q.Vector, v); s >= least {
				near = append(near, scored{place, s})
			}
			return true
		})
		return near, err
	}
	x.vectors.weigh(set, int64(cap(data))*4+int64(cap(places))*8)
	dims := len(q.Vector)
	for i, place := range places {
		if s := dot(q.Vector, data[i*dims:(i+1)*dims]); s >= least {
			near = append(near, scored{place, s})
		}
	}
	return near, nil
}

// lookUp reads the records of vectors and keeps those that are wanted.
func (x *Memories) lookUp(ctx context.Context, near []scored, q store.MemoryNearest) ([]store.MemoryMatch, error) {
	places := make([]int64, len(near))
	score := make(map[int64]float32, len(near))
	for i, n := range near {
		places[i], score[n.place] = n.place, n.score
	}
	list, err := json.Marshal(places)
	if err != nil {
		return nil, err
	}
	type owned struct {
		store.MemoryRecord
		vector int64
	}
	records, err := relational.Query(ctx, x.db, `SELECT r.vector, `+recordColumns+` FROM memory_vectors v JOIN memory_records r ON r.place = v.record AND r.vector = v.place
		WHERE v.place IN (SELECT CAST(value AS bigint) FROM json_each(?1)) AND (r.sort = ?2 OR ?2 = '') AND (?3 = 0 OR r.expires = 0 OR r.expires > ?3)`,
		func(s relational.Scanner) (o owned, err error) {
			o.MemoryRecord, err = scanMemory(s, &o.vector)
			return o, err
		}, string(list), q.Sort, q.Now)
	if err != nil {
		return nil, err
	}
	var found []store.MemoryMatch
	for _, r := range records {
		if q.Keep == nil || q.Keep(r.MemoryRecord) {
			found = append(found, store.MemoryMatch{MemoryRecord: r.MemoryRecord, Score: float64(score[r.vector])})
		}
	}
	return found, nil
}

// load brings a set up to date and returns it as it is now; all is false when it is too large to be kept.
func (s *vectorSet) load(ctx context.Context, db relational.Database, m *memoryScope, dims int, limit int64) (places []int64,
	data []float32, all bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Records*int64(dims)*4 > limit {
		s.loaded, s.places, s.data = false, nil, nil
		return nil, nil, false, nil
	}
	if !s.loaded || s.dims != dims || m.removed-s.removed > int64(len(s.places)/4)+1000 {
		s.loaded, s.removed, s.dims, s.last, s.places, s.data = false, m.removed, dims, m.first(), nil, nil
	}
	fits := true
	if next := m.n<<32 | m.next; s.last < next-1 {
		// What others have been given stays as it is: rows are only added behind it.
		err = eachVector(ctx, db, s.last, next-1, s.key.space, dims, func(place int64, v []float32) bool {
			s.places, s.data = append(s.places, place), append(s.data, v...)
			fits = int64(len(s.data))*4 <= limit
			return fits
		})
		s.last = next - 1
	}
	if err != nil || !fits {
		s.loaded, s.places, s.data = false, nil, nil
		return nil, nil, false, err
	}
	s.loaded = true
	return s.places, s.data, true, nil
}

// eachVector reads the vectors after a place, up to and with another. The slice is valid during the call; false ends it.
func eachVector(ctx context.Context, db relational.Database, after, last int64, space string, dims int,
	each func(place int64, v []float32) bool) error {
	v := make([]float32, dims)
	return db.Read(ctx, func(c relational.Reader) error {
		return c.Each(ctx, `SELECT place, vector FROM memory_vectors WHERE place > ? AND place <= ? AND space = ? ORDER BY place`, []any{after, last, space}, func(s relational.Scanner) (bool, error) {
			var place int64
			var raw []byte
			if err := s.Scan(&place, &raw); err != nil {
				return false, relational.ReadError(ctx, err)
			}
			if len(raw) != 4*dims {
				return true, nil // of another length than is asked for
			}
			for i := range v {
				v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			}
			return each(place, v), nil
		})
	})
}

func packVector(v []float32) []byte {
	raw := make([]byte, 4*len(v))
	for i, f := range v {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(f))
	}
	return raw
}

// dot is the cosine of two vectors of length one. Eight sums at once keep the processor busy.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 {
		x, y := a[:8:8], b[:8:8]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		s4 += x[4] * y[4]
		s5 += x[5] * y[5]
		s6 += x[6] * y[6]
		s7 += x[7] * y[7]
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}
