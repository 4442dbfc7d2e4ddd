package storetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// memoryScope is a scope of the principal's own.
func memoryScope(p identity.Principal, id string) store.MemoryScope {
	return store.MemoryScope{ID: id, User: p.User, Kind: "KEY_VALUE_STORE", Workflow: "w", Node: "n",
		Session: "s", Execution: "e", Part: "p"}
}

func remember(t *testing.T, s store.Stores, p identity.Principal, c store.MemoryChange) store.MemoryReceipt {
	t.Helper()
	return must[store.MemoryReceipt](t)(s.Memories.Change(t.Context(), p, c))
}

// recalled lists the ids of a query.
func recalled(t *testing.T, s store.Stores, p identity.Principal, q store.MemoryQuery) []string {
	t.Helper()
	return memoryIDs(must[store.MemoryPage](t)(s.Memories.Records(t.Context(), p, q)).Records)
}

func memoryIDs(records []store.MemoryRecord) []string {
	ids := []string{}
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids
}

func testMemories(t *testing.T, s store.Stores) {
	p := tenant(t)
	_, err := s.Memories.Scope(t.Context(), p, "m")
	wantCode(t, "no scope", err, fault.NotFound)
	_, err = s.Memories.Records(t.Context(), p, store.MemoryQuery{Scope: "m"})
	wantCode(t, "records of no scope", err, fault.NotFound)
	_, err = s.Memories.Change(t.Context(), p, store.MemoryChange{Scope: memoryScope(p, "m"), Put: []store.MemoryRecord{{Sort: "a"}}})
	wantCode(t, "a record without an id", err, fault.Invalid)

	a := store.MemoryRecord{Sort: "item", ID: "a", Body: json.RawMessage(`{"x":1}`), Source: "s", Target: "t", Weight: 0.5, At: 7, Expires: 1000}
	receipt := remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Time: 10,
		Put: []store.MemoryRecord{a, {Sort: "item", ID: "b", Body: []byte("22")}}})
	equal(t, "receipt", store.MemoryReceipt{Version: 1}, receipt)
	want := memoryScope(p, "m")
	want.Workspace, want.Version, want.Records, want.Bytes, want.Created, want.Updated = p.Workspace, 1, 2, 9, 10, 10
	equal(t, "scope", want, must[store.MemoryScope](t)(s.Memories.Scope(t.Context(), p, "m")))
	a.Seq, a.Used, a.Version, a.Created, a.Updated = 1, 10, 1, 10, 10
	equal(t, "record", a, must[store.MemoryPage](t)(s.Memories.Records(t.Context(), p, store.MemoryQuery{Scope: "m"})).Records[0])

	// Replaced in its place, with its age.
	receipt = remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Time: 20,
		Put:   []store.MemoryRecord{{Sort: "item", ID: "a", Body: []byte("333"), Vector: []float32{1}, Space: "v"}},
		Touch: []store.MemoryKey{{Sort: "item", ID: "b"}}, Delete: []store.MemoryKey{{Sort: "item", ID: "nothing"}}})
	equal(t, "receipt", store.MemoryReceipt{Version: 2}, receipt)
	all := must[store.MemoryPage](t)(s.Memories.Records(t.Context(), p, store.MemoryQuery{Scope: "m", Sort: "item", Count: true}))
	equal(t, "records", store.MemoryPage{Total: 2, Records: []store.MemoryRecord{
		{Sort: "item", ID: "a", Seq: 1, Body: []byte("333"), Space: "v", Used: 20, Version: 2, Created: 10, Updated: 20},
		{Sort: "item", ID: "b", Seq: 2, Body: []byte("22"), Used: 20, Version: 1, Created: 10, Updated: 10},
	}}, all)
	receipt = remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Time: 30,
		Delete: []store.MemoryKey{{Sort: "item", ID: "a"}, {Sort: "other", ID: "b"}}})
	equal(t, "deleted", 1, receipt.Deleted)
	equal(t, "left", []string{"b"}, recalled(t, s, p, store.MemoryQuery{Scope: "m"}))
	receipt = remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Time: 40, Clear: true,
		Put: []store.MemoryRecord{{Sort: "item", ID: "c", Body: []byte("1")}}})
	equal(t, "cleared", 1, receipt.Deleted)
	scope := must[store.MemoryScope](t)(s.Memories.Scope(t.Context(), p, "m"))
	equal(t, "counts", []int64{1, 1, 4}, []int64{scope.Records, scope.Bytes, scope.Version})
	ok(t, s.Memories.Forget(t.Context(), p, "m"))
	wantCode(t, "forgotten twice", s.Memories.Forget(t.Context(), p, "m"), fault.NotFound)
	// What comes after it begins anew.
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Time: 50,
		Put: []store.MemoryRecord{{Sort: "item", ID: "a", Body: []byte("1")}}})
	equal(t, "begun anew", []string{"a"}, recalled(t, s, p, store.MemoryQuery{Scope: "m"}))

	// Another user of the workspace, and Tandem itself.
	other := p
	other.User = "bob"
	_, err = s.Memories.Scope(t.Context(), other, "m")
	wantCode(t, "another's scope", err, fault.NotFound)
	_, err = s.Memories.Records(t.Context(), other, store.MemoryQuery{Scope: "m"})
	wantCode(t, "another's records", err, fault.NotFound)
	_, err = s.Memories.Search(t.Context(), other, store.MemorySearch{Scope: "m", Words: []string{"a"}, Limit: 1})
	wantCode(t, "searching another's", err, fault.NotFound)
	_, err = s.Memories.Nearest(t.Context(), other, store.MemoryNearest{Scope: "m", Vector: []float32{1}, Limit: 1})
	wantCode(t, "near another's", err, fault.NotFound)
	_, err = s.Memories.Change(t.Context(), other, store.MemoryChange{Scope: memoryScope(p, "m"), Clear: true})
	wantCode(t, "changing another's", err, fault.NotFound)
	_, err = s.Memories.Change(t.Context(), other, store.MemoryChange{Scope: memoryScope(other, "m"), Clear: true})
	wantCode(t, "an id of another's", err, fault.NotFound)
	wantCode(t, "forgetting another's", s.Memories.Forget(t.Context(), other, "m"), fault.NotFound)
	equal(t, "untouched", []string{"a"}, recalled(t, s, p, store.MemoryQuery{Scope: "m"}))
	equal(t, "seen by the server", []string{"a"}, recalled(t, s, identity.System(p.Workspace), store.MemoryQuery{Scope: "m"}))
	ok(t, s.Memories.Forget(t.Context(), identity.System(p.Workspace), "m"))
}

func testMemoryMarks(t *testing.T, s store.Stores) {
	p := tenant(t)
	change := store.MemoryChange{Scope: memoryScope(p, "m"), Mark: "e1\x00a", Result: json.RawMessage(`{"n":1}`), Time: 5,
		Put: []store.MemoryRecord{{Sort: "item", ID: "a", Body: []byte("1")}}}
	equal(t, "first", store.MemoryReceipt{Version: 1, Result: json.RawMessage(`{"n":1}`)}, remember(t, s, p, change))
	again := change
	again.Result, again.Clear, again.Expect = json.RawMessage(`{"n":2}`), true, 99 // even what it would do now is not looked at
	equal(t, "again", store.MemoryReceipt{Repeated: true, Version: 1, Result: json.RawMessage(`{"n":1}`)}, remember(t, s, p, again))
	equal(t, "unchanged", []string{"a"}, recalled(t, s, p, store.MemoryQuery{Scope: "m"}))
	// The mark outlives what it made, but not the scope; and it is of its scope only.
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Clear: true})
	equal(t, "after clearing", true, remember(t, s, p, change).Repeated)
	other := change
	other.Scope = memoryScope(p, "m2")
	equal(t, "another scope", false, remember(t, s, p, other).Repeated)
	for _, mark := range []string{"e1\x01a", "e1\x01\x01a", "e1a"} {
		other.Mark = mark
		equal(t, fmt.Sprintf("mark %q", mark), false, remember(t, s, p, other).Repeated)
	}
	ok(t, s.Memories.Forget(t.Context(), p, "m"))
	equal(t, "after forgetting", false, remember(t, s, p, change).Repeated)
}

func testMemoryConflicts(t *testing.T, s store.Stores) {
	p := tenant(t)
	put := func(id string, expect int64) error {
		_, err := s.Memories.Change(t.Context(), p, store.MemoryChange{Scope: memoryScope(p, "m"), Expect: expect,
			Put: []store.MemoryRecord{{Sort: "item", ID: id, Body: []byte("1")}}})
		return err
	}
	wantCode(t, "a version of nothing", put("x", 3), fault.Conflict)
	ok(t, put("a", -1))
	wantCode(t, "made twice", put("x", -1), fault.Conflict)
	ok(t, put("b", 1))
	wantCode(t, "an old version", put("x", 1), fault.Conflict)
	equal(t, "records", []string{"a", "b"}, recalled(t, s, p, store.MemoryQuery{Scope: "m"}))

	// Of many that count on what they have read, each gets its turn and none is lost.
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for {
				seen, err := s.Memories.Scope(t.Context(), p, "m")
				if err != nil {
					t.Error(err)
					return
				}
				err = put(fmt.Sprint("c", i), seen.Version)
				if err == nil {
					return
				}
				if !isConflict(err) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	equal(t, "all of them", 10, len(recalled(t, s, p, store.MemoryQuery{Scope: "m"})))
	equal(t, "versions", int64(10), must[store.MemoryScope](t)(s.Memories.Scope(t.Context(), p, "m")).Version)
}

func testMemoryList(t *testing.T, s store.Stores) {
	p := tenant(t)
	var put []store.MemoryRecord
	for i := range 10 {
		put = append(put, store.MemoryRecord{Sort: "edge", ID: fmt.Sprint("e", i), Body: []byte("0"), Source: fmt.Sprint("n", i%3),
			Target: fmt.Sprint("n", i%4),
			Weight: float64(i%5) / 10, At: int64(100 - i), Used: int64(1000 - i)})
	}
	put = append(put, store.MemoryRecord{Sort: "gone", ID: "x", Body: []byte("0"), Expires: 50},
		store.MemoryRecord{Sort: "gone", ID: "y", Body: []byte("0"), Expires: 51})
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Time: 1, Put: put})
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m2"), Time: 1, Put: put[:1]})
	for _, c := range []struct {
		what string
		q    store.MemoryQuery
		want []string
	}{
		{"ids", store.MemoryQuery{Sort: "edge", IDs: []string{"e7", "e2", "e2", "nothing"}}, []string{"e2", "e7"}},
		{"no ids", store.MemoryQuery{Sort: "edge", IDs: []string{}}, []string{}},
		{"sources", store.MemoryQuery{Sort: "edge", Sources: []string{"n1"}}, []string{"e1", "e4", "e7"}},
		{"targets", store.MemoryQuery{Sort: "edge", Targets: []string{"n3"}}, []string{"e3", "e7"}},
		{"either", store.MemoryQuery{Sort: "edge", Sources: []string{"n1"}, Targets: []string{"n3"}}, []string{"e1", "e3", "e4", "e7"}},
		{"since and until", store.MemoryQuery{Sort: "edge", Since: 95, Until: 97}, []string{"e3", "e4", "e5"}},
		{"unexpired", store.MemoryQuery{Sort: "gone", Now: 50}, []string{"y"}},
		{"newest first", store.MemoryQuery{Sort: "edge", Order: store.NewestFirst, Limit: 2}, []string{"e9", "e8"}},
		{"latest first", store.MemoryQuery{Sort: "edge", Order: store.LatestFirst, Limit: 2, Offset: 1}, []string{"e1", "e2"}},
		{"heaviest first", store.MemoryQuery{Sort: "edge", Order: store.HeaviestFirst, Limit: 3}, []string{"e4", "e9", "e3"}},
		{"least used first", store.MemoryQuery{Sort: "edge", Order: store.LeastUsedFirst, Limit: 2}, []string{"e9", "e8"}},
		{"all sorts", store.MemoryQuery{Limit: 4, Offset: 8}, []string{"e8", "e9", "x", "y"}},
	} {
		c.q.Scope, c.q.Count = "m", true
		page := must[store.MemoryPage](t)(s.Memories.Records(t.Context(), p, c.q))
		equal(t, c.what, c.want, memoryIDs(page.Records))
		unlimited := c.q
		unlimited.Limit, unlimited.Offset = 0, 0
		equal(t, c.what+" in all", len(recalled(t, s, p, unlimited)), page.Total)
	}
	var paged []string
	for offset := 0; ; offset += 5 {
		part := recalled(t, s, p, store.MemoryQuery{Scope: "m", Limit: 5, Offset: offset})
		if len(part) == 0 {
			break
		}
		paged = append(paged, part...)
	}
	equal(t, "pages leave nothing out", recalled(t, s, p, store.MemoryQuery{Scope: "m"}), paged)
	_, err := s.Memories.Records(t.Context(), p, store.MemoryQuery{Scope: "m", Order: 99})
	wantCode(t, "an unknown order", err, fault.Invalid)
	_, err = s.Memories.Records(t.Context(), p, store.MemoryQuery{Scope: "m", IDs: []string{"e1"}})
	wantCode(t, "ids of any sort", err, fault.Invalid)
}

func testMemoryScopes(t *testing.T, s store.Stores) {
	p := tenant(t)
	bob := p
	bob.User = "bob"
	for i := range 7 {
		scope := memoryScope(p, fmt.Sprint("m", i))
		if i%2 == 1 {
			scope.Kind, scope.Session, scope.Workflow, scope.Node = "VECTOR_DATABASE", "s2", "w2", "n2"
		}
		remember(t, s, p, store.MemoryChange{Scope: scope, Time: int64(i)})
	}
	remember(t, s, bob, store.MemoryChange{Scope: memoryScope(bob, "b0"), Time: 100})
	list := func(p identity.Principal, q store.MemoryScopeQuery) ([]string, int) {
		page := must[store.MemoryScopePage](t)(s.Memories.Scopes(t.Context(), p, q))
		ids := []string{}
		for _, m := range page.Scopes {
			ids = append(ids, m.ID)
		}
		return ids, page.Total
	}
	check := func(what string, p identity.Principal, q store.MemoryScopeQuery, total int, want ...string) {
		t.Helper()
		ids, n := list(p, q)
		equal(t, what, want, ids)
		equal(t, what+" in all", total, n)
	}
	check("first page", p, store.MemoryScopeQuery{Page: store.Page{Size: 3}}, 7, "m6", "m5", "m4")
	check("last page", p, store.MemoryScopeQuery{Page: store.Page{Number: 3, Size: 3}}, 7, "m0")
	check("kind", p, store.MemoryScopeQuery{Kind: "VECTOR_DATABASE"}, 3, "m5", "m3", "m1")
	check("session and workflow", p, store.MemoryScopeQuery{Session: "s2", Workflow: "w2"}, 3, "m5", "m3", "m1")
	check("node", p, store.MemoryScopeQuery{Node: "n"}, 4, "m6", "m4", "m2", "m0")
	check("bob's", bob, store.MemoryScopeQuery{}, 1, "b0")
	check("the server's", identity.System(p.Workspace), store.MemoryScopeQuery{Page: store.Page{Size: 1}}, 8, "b0")
	check("of one user for the server", identity.System(p.Workspace), store.MemoryScopeQuery{User: "bob"}, 1, "b0")
	ids, n := list(bob, store.MemoryScopeQuery{User: "ann"})
	equal(t, "ann's for bob", 0, len(ids)+n)
}

func testMemorySearch(t *testing.T, s store.Stores) {
	p := tenant(t)
	text := func(id, title, content, extra string) store.MemoryRecord {
		return store.MemoryRecord{Sort: "document", ID: id, Body: []byte("0"),
			Text: &store.MemoryText{Title: title, Content: content, Extra: extra}}
	}
	expired := text("old", "", "apple", "")
	expired.Expires = 5
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Put: []store.MemoryRecord{
		text("apple", "Fruit", "An apple a day; APPLE pie", ""), text("pear", "Fruit", "A pear", "apple"),
		text("zh", "水果", "数据库里有苹果和小猫", ""),
		text("odd", `"quoted" AND (broken`, "a* OR NEAR(x) -y ^z {title}: s1x", ""), expired, {Sort: "document", ID: "silent", Body: []byte("0")},
	}})
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m2"),
		Put: []store.MemoryRecord{text("other", "apple", "apple 数据库", "apple")}})
	search := func(q store.MemorySearch) store.MemoryFound {
		t.Helper()
		q.Scope = "m"
		if q.Limit == 0 {
			q.Limit = 10
		}
		return must[store.MemoryFound](t)(s.Memories.Search(t.Context(), p, q))
	}
	check := func(what string, q store.MemorySearch, want ...string) {
		t.Helper()
		got := memoryIDs(search(q).Records)
		slices.Sort(got)
		equal(t, what, append([]string{}, want...), got)
	}
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"Apple", []string{"apple", "old", "pear"}},
		{"apple PEAR", []string{"apple", "old", "pear"}},
		{"苹果", []string{"zh"}},
		{"数据库", []string{"zh"}},
		{"猫", []string{"zh"}}, // one character, at the end of a run
		{"数", []string{"zh"}}, // and at the beginning of one
		{"果树", nil},
		{`"quoted" AND (`, []string{"odd"}},
		{`s1x*`, []string{"odd"}},
		{`title: "`, []string{"odd"}},
		{"app", nil}, // words are whole
		{"", nil}, {"*** ( \" )", nil},
	} {
		check(fmt.Sprintf("%q", c.query), store.MemorySearch{Words: store.Query(c.query, 32)}, c.want...)
	}
	check("in titles", store.MemorySearch{Words: []string{"fruit", "apple"}, Title: true}, "apple", "pear")
	check("in extras", store.MemorySearch{Words: []string{"fruit", "apple"}, Extra: true}, "pear")
	check("in contents and extras", store.MemorySearch{Words: []string{"apple"}, Content: true, Extra: true}, "apple", "old", "pear")
	check("unexpired", store.MemorySearch{Words: []string{"apple"}, Now: 5}, "apple", "pear")
	check("another sort", store.MemorySearch{Words: []string{"apple"}, Sort: "letter"})
	found := search(store.MemorySearch{Words: []string{"apple", "fruit", "nothing"}})
	equal(t, "frequencies", map[string]int{"apple": 3, "fruit": 2, "nothing": 0}, found.Frequency)
	equal(t, "counts", []int{3, 5}, []int{found.Total, found.Documents})
	equal(t, "limited", 1, len(search(store.MemorySearch{Words: []string{"apple"}, Limit: 1}).Records))

	// A text of more than a megabyte, which is more than some indexes take at once.
	word := func(i int) string { return fmt.Sprintf("w%dz%s", i, strings.Repeat("x", 45)) }
	var long strings.Builder
	for i := range 24_000 {
		long.WriteString(word(i) + " ")
	}
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Put: []store.MemoryRecord{text("long", "", long.String(), "fruit")}})
	check("words of a long text", store.MemorySearch{Words: []string{word(0), word(9999), word(23_999)}, Content: true}, "long")
	found = search(store.MemorySearch{Words: []string{word(0), word(23_999), "fruit"}})
	equal(t, "of a long text", fmt.Sprint(3, map[string]int{word(0): 1, word(23_999): 1, "fruit": 3}), fmt.Sprint(found.Total, found.Frequency))
	equal(t, "with more of the rare words", "long", found.Records[0].ID)
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Delete: []store.MemoryKey{{Sort: "document", ID: "long"}}})
	check("of a long text that is gone", store.MemorySearch{Words: []string{word(0), word(23_999)}})

	// What is replaced or removed is no longer found.
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Put: []store.MemoryRecord{text("apple", "", "plum", "")},
		Delete: []store.MemoryKey{{Sort: "document", ID: "pear"}}})
	check("after a change", store.MemorySearch{Words: []string{"apple", "pear"}}, "old")
	check("the new words", store.MemorySearch{Words: []string{"plum"}}, "apple")
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Clear: true})
	check("after clearing", store.MemorySearch{Words: []string{"plum", "苹果"}})
}

// unit makes a vector of length one.
func unit(r *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	sum := 0.0
	for i := range v {
		v[i] = float32(r.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func testMemoryNearest(t *testing.T, s store.Stores) {
	p := tenant(t)
	r := rand.New(rand.NewPCG(1, 2))
	const dims = 24
	vectors := map[string][]float32{}
	put := func(ids ...string) {
		t.Helper()
		var list []store.MemoryRecord
		for _, id := range ids {
			vectors[id] = unit(r, dims)
			list = append(list, store.MemoryRecord{Sort: "item", ID: id, Body: json.RawMessage(`"` + id + `"`), Vector: vectors[id], Space: "v"})
		}
		remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Put: list})
	}
	nearest := func(q store.MemoryNearest) []string {
		t.Helper()
		q.Scope, q.Space = "m", cmp.Or(q.Space, "v")
		ids := []string{}
		for _, m := range must[[]store.MemoryMatch](t)(s.Memories.Nearest(t.Context(), p, q)) {
			ids = append(ids, m.ID)
		}
		return ids
	}
	naive := func(q store.MemoryNearest) []string {
		type scored struct {
			id    string
			score float64
		}
		var all []scored
		for id, v := range vectors { // order does not matter: sorted below
			sum := 0.0
			for i := range v {
				sum += float64(v[i]) * float64(q.Vector[i])
			}
			if sum >= q.Min && (q.Keep == nil || q.Keep(store.MemoryRecord{Body: json.RawMessage(`"` + id + `"`)})) {
				all = append(all, scored{id, sum})
			}
		}
		slices.SortFunc(all, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
		ids := []string{}
		for _, a := range all[:min(len(all), q.Limit)] {
			ids = append(ids, a.id)
		}
		return ids
	}
	compare := func(what string) {
		t.Helper()
		for i := range 20 {
			q := store.MemoryNearest{Vector: unit(r, dims), Limit: 1 + i, Min: []float64{-1, 0, 0.2, 0.9}[i%4]}
			if i%3 == 0 {
				q.Keep = func(m store.MemoryRecord) bool { return m.Body[len(m.Body)-2] < '5' }
			}
			equal(t, what, naive(q), nearest(q))
		}
	}
	var ids []string
	for i := range 500 {
		ids = append(ids, fmt.Sprint("i", i))
	}
	put(ids...)
	compare("all")
	put("j1", "j2") // rows that come later
	compare("with more")
	put("i7", "j1", "i499") // replaced
	compare("with others in their place")
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"),
		Delete: []store.MemoryKey{{Sort: "item", ID: "i3"}, {Sort: "item", ID: "j2"}}})
	delete(vectors, "i3")
	delete(vectors, "j2")
	compare("with fewer")

	v := unit(r, dims)
	for _, id := range []string{"t3", "t1", "t2"} {
		vectors[id] = v
		remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"),
			Put: []store.MemoryRecord{{Sort: "item", ID: id, Body: json.RawMessage(`"` + id + `"`), Vector: v, Space: "v"}}})
	}
	equal(t, "ties by id", []string{"t1", "t2"}, nearest(store.MemoryNearest{Vector: v, Limit: 2}))
	equal(t, "another space", []string{}, nearest(store.MemoryNearest{Vector: v, Limit: 2, Space: "w"}))
	equal(t, "another length", []string{}, nearest(store.MemoryNearest{Vector: v[:8], Limit: 2}))
	equal(t, "back to the first", []string{"t1"}, nearest(store.MemoryNearest{Vector: v, Limit: 1}))
	// A record that had no vector gets one.
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Put: []store.MemoryRecord{{Sort: "item", ID: "t1", Body: []byte(`"t1"`)}}})
	equal(t, "without", []string{"t2", "t3"}, nearest(store.MemoryNearest{Vector: v, Limit: 2, Min: 0.99}))
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"),
		Put: []store.MemoryRecord{{Sort: "item", ID: "t1", Body: []byte(`"t1"`), Vector: v, Space: "v"}}})
	equal(t, "with", []string{"t1", "t2", "t3"}, nearest(store.MemoryNearest{Vector: v, Limit: 5, Min: 0.99}))
	ok(t, s.Memories.Forget(t.Context(), p, "m"))
	clear(vectors)
	put("only")
	compare("after forgetting")
	remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Clear: true})
	clear(vectors)
	compare("after clearing")
}

func testMemoryPurge(t *testing.T, s store.Stores) {
	p := tenant(t)
	other := tenant(t)
	for _, p := range []identity.Principal{p, other} {
		remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Mark: "k", Time: 5, Put: []store.MemoryRecord{
			{Sort: "item", ID: "old", Body: []byte("0"), Expires: 10, Text: &store.MemoryText{Content: "apple"},
				Vector: []float32{1}, Space: "v"},
			{Sort: "item", ID: "later", Body: []byte("0"), Expires: 11}, {Sort: "item", ID: "ever", Body: []byte("0")},
		}})
	}
	equal(t, "purged", 1, must[int](t)(s.Memories.Purge(t.Context(), p, 10, 5)))
	equal(t, "left", []string{"later", "ever"}, recalled(t, s, p, store.MemoryQuery{Scope: "m"}))
	equal(t, "of the other workspace", 3, len(recalled(t, s, other, store.MemoryQuery{Scope: "m"})))
	scope := must[store.MemoryScope](t)(s.Memories.Scope(t.Context(), p, "m"))
	equal(t, "count", int64(2), scope.Records)
	equal(t, "found", 0, len(must[store.MemoryFound](t)(s.Memories.Search(t.Context(), p,
		store.MemorySearch{Scope: "m", Words: []string{"apple"}, Limit: 1})).Records))
	equal(t, "the mark", true, remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Mark: "k"}).Repeated)
	equal(t, "marks purged", 1, must[int](t)(s.Memories.Purge(t.Context(), p, 0, 6)))
	equal(t, "the mark is gone", false, remember(t, s, p, store.MemoryChange{Scope: memoryScope(p, "m"), Mark: "k"}).Repeated)
	equal(t, "the other's is not", true, remember(t, s, other, store.MemoryChange{Scope: memoryScope(other, "m"), Mark: "k"}).Repeated)
}
