package store

import (
	"context"
	"encoding/json"

	"tandem/identity"
)

// MemoryScope is one memory of one user: what a memory node, a session or an execution remembers. Its id follows from
// what it is the memory of, so the same memory is found again without asking for it.
type MemoryScope struct {
	Workspace string
	ID        string
	// User is whose memory it is. No other user sees it; Tandem itself does.
	User string
	// Kind is the kind of memory: CONVERSATION_BUFFER and so on.
	Kind string
	// Workflow and Node, or Session, or Execution say what it is the memory of.
	Workflow  string
	Node      string
	Session   string
	Execution string
	// Part distinguishes several memories of one node: a collection, a namespace.
	Part string

	// What follows is set by the store.

	// Version grows with every change.
	Version int64
	Records int64
	Bytes   int64
	Created int64
	Updated int64
}

// MemoryRecord is one record of a memory. Which fields are used depends on the kind of memory.
type MemoryRecord struct {
	// Sort distinguishes records of a scope with different uses: messages, their summary.
	Sort string
	// ID is unique among the records of a sort.
	ID string
	// Seq is set by the store: the order in which records came into their scope.
	Seq  int64
	Body json.RawMessage
	// Text is what a search finds it by; nil: it is not searched. It is not read back.
	Text *MemoryText
	// Vector is what [Memories.Nearest] finds it by; nil: it is not. It is not read back. Space names what made it:
	// vectors of different spaces are never compared.
	Vector []float32
	Space  string
	// Source and Target are the ends of a link, or other keys that it is found by.
	Source string
	Target string
	// Weight is how important, sure or strong it is.
	Weight float64
	// At is the time of the event that it describes.
	At int64
	// Used is when it was last asked for.
	Used int64
	// Expires is when it ceases to exist; zero: never.
	Expires int64
	// Version counts from 1 and is set by the store, as are Created and Updated.
	Version int64
	Created int64
	Updated int64
}

// MemoryText is the text of a record in the three parts that a search can be restricted to.
type MemoryText struct {
	Title   string
	Content string
	Extra   string
}

// MemoryKey names a record in its scope.
type MemoryKey struct {
	Sort string
	ID   string
}

// MemoryOrder is the order of a listing.
type MemoryOrder int

// The orders. Records that are equal in it are in the order in which they came.
const (
	OldestFirst    MemoryOrder = iota // as they came
	NewestFirst                       // the last that came first
	LatestFirst                       // by At, the latest first
	HeaviestFirst                     // by Weight, the heaviest first
	LeastUsedFirst                    // by Used, the longest unused first
)

// MemoryQuery narrows a listing of the records of a scope. Empty fields do not narrow it.
type MemoryQuery struct {
	Scope string
	Sort  string
	// IDs, Sources and Targets need a sort.
	IDs []string
	// Sources and Targets are the values that these fields may have; when both are given, one of them must fit.
	Sources []string
	Targets []string
	// Since and Until bound At, both included.
	Since int64
	Until int64
	// Now leaves out what has expired by then.
	Now   int64
	Order MemoryOrder
	// Limit is how many at most, after Offset; zero: all.
	Limit  int
	Offset int
	// Count asks for the size of the whole, which takes time.
	Count bool
}

// MemoryPage is a part of a listing, and the size of the whole if it was asked for.
type MemoryPage struct {
	Records []MemoryRecord
	Total   int
}

// MemoryScopeQuery narrows a listing of scopes. Empty fields do not narrow it.
type MemoryScopeQuery struct {
	// User is whose; only Tandem itself may ask for another's.
	User     string
	Kind     string
	Workflow string
	Node     string
	Session  string
	Page     Page
}

// MemoryScopePage is a part of a listing, last changed first, and the size of the whole.
type MemoryScopePage struct {
	Scopes []MemoryScope
	Total  int
}

// MemorySearch is a search for words, as [Words] makes them of a text. A record that has one of them is found.
type MemorySearch struct {
	Scope string
	Sort  string
	Words []string
	// Title, Content and Extra restrict the search to these parts; none means all.
	Title   bool
	Content bool
	Extra   bool
	Now     int64
	// Limit is how many of the best are returned.
	Limit int
}

// MaxMemoryCount is where a search stops counting: more records than that are counted as one more.
const MaxMemoryCount = 20_000

// MemoryFound is the result of a search, roughly the best first, with what is needed to score it.
type MemoryFound struct {
	Records []MemoryRecord
	// Total is how many records have one of the words; Documents how many are searched at all.
	Total     int
	Documents int
	// Frequency is how many records have a word.
	Frequency map[string]int
}

// MemoryNearest is a search for the records whose vectors point the same way.
type MemoryNearest struct {
	Scope string
	Sort  string
	// Vector has length one, as those of the records have. Space is what made it.
	Vector []float32
	Space  string
	// Min is the least cosine that counts.
	Min float64
	Now int64
	// Keep, when it is set, filters records; it must not call the store.
	Keep  func(MemoryRecord) bool
	Limit int
}

// MemoryMatch is a record and the cosine between its vector and that asked for.
type MemoryMatch struct {
	MemoryRecord
	Score float64
}

// MemoryChange changes a scope, all of it or nothing.
type MemoryChange struct {
	// Scope is what is changed. It is made if it is not there.
	Scope MemoryScope
	// Mark names the change: a second one with the same mark changes nothing and has the same result.
	Mark string
	// Result is stored and returned to a repetition.
	Result json.RawMessage
	// Expect, when not zero, is the version that the caller has seen: [ErrConflict] if there is a newer one. -1: there must
	// be no such scope yet.
	Expect int64
	Time   int64

	// In this order: everything is removed, records are removed, put, and marked as used.

	Clear  bool
	Delete []MemoryKey
	// Put makes records or replaces them, except for their place in the order and when they were made.
	Put   []MemoryRecord
	Touch []MemoryKey
}

// MemoryReceipt is the result of a change.
type MemoryReceipt struct {
	// Repeated says that it had been made before; Result is what the first one stored.
	Repeated bool
	Result   json.RawMessage
	Version  int64
	// Deleted is how many records are gone.
	Deleted int
}

// Memories keeps the memories of users. A principal sees its own scopes, Tandem itself those of the whole workspace;
// another user's scope is [ErrNotFound].
type Memories interface {
	Scope(ctx context.Context, p identity.Principal, id string) (MemoryScope, error)
	Scopes(ctx context.Context, p identity.Principal, q MemoryScopeQuery) (MemoryScopePage, error)
	// Records lists; a scope that is not there is [ErrNotFound].
	Records(ctx context.Context, p identity.Principal, q MemoryQuery) (MemoryPage, error)
	Search(ctx context.Context, p identity.Principal, q MemorySearch) (MemoryFound, error)
	// Nearest returns the best first, ties by id.
	Nearest(ctx context.Context, p identity.Principal, q MemoryNearest) ([]MemoryMatch, error)
	Change(ctx context.Context, p identity.Principal, c MemoryChange) (MemoryReceipt, error)
	// Forget removes a scope with everything in it.
	Forget(ctx context.Context, p identity.Principal, scope string) error
	// Purge removes what has expired by a time, and the marks of changes made before another, a bounded number of each, and
	// returns how many. Tandem itself may do it for all workspaces.
	Purge(ctx context.Context, p identity.Principal, now, marksBefore int64) (int, error)
}
