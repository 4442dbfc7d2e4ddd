package memories_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational/memories"
	"tandem/store/sqlite/sqlitetest"
)

// Sizes of the memory that the benchmarks ask.
const (
	benchRecords = 100_000
	benchDims    = 256
)

func ann() identity.Principal { return identity.Principal{Workspace: "ws", User: "ann"} }

// open returns the memories of a new database.
func open(t testing.TB) *memories.Memories {
	t.Helper()
	m, ok := sqlitetest.Open(t).Stores().Memories.(*memories.Memories)
	if !ok {
		t.Fatal("the store keeps memories otherwise")
	}
	return m
}

// benchMemory fills a memory with records that have a text and a vector.
func benchMemory(b *testing.B) (*memories.Memories, *rand.Rand) {
	b.Helper()
	m := open(b)
	r := rand.New(rand.NewPCG(1, 2))
	p := ann()
	for at := 0; at < benchRecords; at += 1000 {
		c := store.MemoryChange{Scope: store.MemoryScope{ID: "m", User: p.User}}
		for i := range 1000 {
			text := fmt.Sprintf("common 数据库 word%d topic%d item%d", r.IntN(5000), r.IntN(50), at+i)
			c.Put = append(c.Put, store.MemoryRecord{Sort: "item", ID: fmt.Sprint("i", at+i), Body: fmt.Appendf(nil, `{"content":%q,"metadata":{"n":%d}}`, text, at+i),
				Text: &store.MemoryText{Content: text}, Vector: unit(r), Space: "v", Source: fmt.Sprint("n", r.IntN(10000)), Target: fmt.Sprint("n", r.IntN(10000)), Weight: 0.5, At: int64(at + i)})
		}
		if _, err := m.Change(b.Context(), p, c); err != nil {
			b.Fatal(err)
		}
	}
	return m, r
}

func unit(r *rand.Rand) []float32 {
	v := make([]float32, benchDims)
	sum := 0.0
	for i := range v {
		v[i] = float32(r.NormFloat64())
		sum += float64(v[i] * v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// TestMemories_VectorsAreKeptWithinABound asks memories that together, and one that alone, have more vectors than are kept.
func TestMemories_VectorsAreKeptWithinABound(t *testing.T) {
	t.Parallel()
	m := open(t)
	const most = 64 << 10 // 64 vectors
	m.LimitVectors(most)
	r, p := rand.New(rand.NewPCG(3, 4)), ann()
	vectors := map[string][]float32{}
	for scope, n := range map[string]int{"a": 40, "b": 30, "large": 100} {
		c := store.MemoryChange{Scope: store.MemoryScope{ID: scope, User: p.User}}
		for i := range n {
			id := fmt.Sprint(scope, i)
			vectors[id] = unit(r)
			c.Put = append(c.Put, store.MemoryRecord{Sort: "item", ID: id, Body: []byte("{}"), Vector: vectors[id], Space: "v"})
		}
		if _, err := m.Change(t.Context(), p, c); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"a7", "b8", "large99", "a39", "large0", "b29", "a0"} {
		found, err := m.Nearest(t.Context(), p, store.MemoryNearest{Scope: strings.TrimRight(id, "0123456789"), Space: "v", Vector: vectors[id], Limit: 1})
		if err != nil || len(found) != 1 || found[0].ID != id || found[0].Score < 0.999 {
			t.Errorf("%s: found %+v, %v", id, found, err)
		}
		if kept := m.KeptVectors(); kept > most {
			t.Errorf("%d bytes are kept", kept)
		}
	}
	if m.KeptVectors() == 0 {
		t.Error("nothing is kept")
	}
}

// BenchmarkMemories asks a memory of a hundred thousand records.
func BenchmarkMemories(b *testing.B) {
	m, r := benchMemory(b)
	p := ann()
	check := func(b *testing.B, n int, err error) {
		b.Helper()
		if err != nil || n == 0 {
			b.Fatalf("%d records found: %v", n, err)
		}
	}
	near := func(b *testing.B) {
		found, err := m.Nearest(b.Context(), p, store.MemoryNearest{Scope: "m", Space: "v", Vector: unit(r), Limit: 5, Min: 0.05})
		check(b, len(found), err)
	}
	b.Run("NearestFirst", func(b *testing.B) {
		for b.Loop() {
			m.ForgetVectors() // as after a restart
			near(b)
		}
	})
	b.Run("NearestAgain", func(b *testing.B) {
		for b.Loop() {
			near(b)
		}
	})
	for name, words := range map[string][]string{"SearchRare": {"item77777"}, "SearchSome": {"word17", "topic3"}, "SearchCommon": {"common", "数据"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				found, err := m.Search(b.Context(), p, store.MemorySearch{Scope: "m", Words: words, Limit: 50})
				check(b, len(found.Records), err)
			}
		})
	}
	for name, q := range map[string]store.MemoryQuery{
		"Get":       {Sort: "item", IDs: []string{"i500"}},
		"Last20":    {Sort: "item", Order: store.NewestFirst, Limit: 20},
		"Latest20":  {Sort: "item", Order: store.LatestFirst, Limit: 20},
		"LinksOf50": {Sort: "item", Sources: ids(50), Targets: ids(50), Order: store.HeaviestFirst, Limit: 5000},
	} {
		b.Run(name, func(b *testing.B) {
			q.Scope = "m"
			for b.Loop() {
				page, err := m.Records(b.Context(), p, q)
				check(b, len(page.Records), err)
			}
		})
	}
	b.Run("Add", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n++
			_, err := m.Change(b.Context(), p, store.MemoryChange{Scope: store.MemoryScope{ID: "m", User: p.User}, Mark: fmt.Sprint("mark", n), Put: []store.MemoryRecord{{Sort: "item", ID: fmt.Sprint("new", n), Body: []byte("{}"),
				Text: &store.MemoryText{Content: "one more common word"}, Vector: unit(r), Space: "v"}}})
			check(b, 1, err)
		}
	})
}

func ids(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint("n", i)
	}
	return list
}
