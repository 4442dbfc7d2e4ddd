// Package memory is the ten memories: what they keep, how they are asked, and what they tell a model.
//
// A memory belongs to one user of one workspace: to a memory node, to a session that several nodes share, or, for the
// scratch space, to one execution. Every memory has operations of its own and two that all have: it tells what it knows
// about a question (load_context), and it takes in an exchange between a user and a model (remember).
//
// A change is made once, however often it is asked for under the same name: the store keeps the names. What has to be read
// before it is changed is read again when somebody else was faster. A model and an embedder come from outside; without a
// model, plain rules for Chinese and English take its place.
//
// The package does not know nodes or providers, and holds no SQL. The kinds of package builtin and the API import it.
package memory

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

// Options are what memories need of the program that they are part of.
type Options struct {
	Records store.Memories
	// Executions tell which execution another one comes from; nil: scratch spaces are never copied.
	Executions store.Executions
	// Local turns a text into a vector without asking anybody.
	Local func(text string) []float32
}

// Store is all memories of an installation. It is safe for concurrent use.
type Store struct{ o Options }

// New makes the memories over a store of records.
func New(o Options) *Store { return &Store{o} }

// Prompt is what a model is asked.
type Prompt struct {
	System string
	User   string
	// JSON asks for an object.
	JSON bool
}

// Call says who asks, on whose behalf, and when.
type Call struct {
	Workspace string
	User      string
	Workflow  string
	Node      string
	Execution string
	// Once names what is done: the same again changes nothing. Empty: it is done each time.
	Once     string
	Now      time.Time
	Language string
	// Model asks a model by its profile; nil: rules take its place, as they do for memories without a profile.
	Model func(ctx context.Context, profile string, p Prompt) (string, error)
	// Embed turns texts into vectors by a profile; nil: there are none.
	Embed func(ctx context.Context, profile string, texts []string) ([][]float32, error)
	// Warn is told what went wrong and was put up with; nil: nobody wants to know.
	Warn func(message string, err error)
}

// Common are the configurations of all memories.
type Common struct {
	// Where older files keep a memory does not matter: it is kept here.
	_ struct{} `dropped:"storage_backend,connection_config,database_provider,database_url,table_name,graph_database"`

	SessionID       string `json:"session_id" doc:"Whose memory it is: records of other sessions are not seen." zh:"会话编号；其他会话的记录不可见。"`
	MaxContextChars int    `json:"max_context_chars" range:"1.." doc:"The most characters that a model is given of the memory." zh:"提供给模型的最多字符数。"`
	LLMProfile      string `json:"llm_profile" names:"profile" older:"profile_id" doc:"The model profile that summarises or extracts; without one rules do." zh:"用于总结或提取的模型配置档；省略时按规则处理。"`
}

// common is the defaults of all memories.
func common() Common { return Common{MaxContextChars: 8000} }

// Ask is what the input of every memory can have.
type Ask struct {
	// Operation is what to do, unless the configurations say so.
	Operation string `json:"operation,omitempty" doc:"What is done, if the configuration does not say." zh:"未配置时的操作。"`
	// Query is what load_context is asked about, and what searches look for.
	Query string `json:"query,omitempty" doc:"What is looked for." zh:"查找的内容。"`
	// User and Assistant are the exchange that remember takes in.
	User      string `json:"user,omitempty" doc:"What the user has said, for remember." zh:"用户的话：remember 时用户所说的话。"`
	Assistant string `json:"assistant,omitempty" doc:"What the model has said, for remember." zh:"模型的话：remember 时模型所说的话。"`
}

// Answer is what the output of every memory has.
type Answer struct {
	Success   bool   `json:"success" doc:"Whether it was done." zh:"是否成功。"`
	Operation string `json:"operation" doc:"What was done." zh:"执行的操作。"`
	// Context is what a model is told: for load_context of the question, for other operations of what they have found or kept.
	Context string `json:"context" doc:"What was found or kept, as a model is told it." zh:"查到或保存的内容，以供模型阅读。"`
	// Stored says whether something was taken in, for operations that do that.
	Stored *bool `json:"stored,omitempty" doc:"Whether something was taken in." zh:"是否保存了内容。"`
	// Sources are where what was found comes from, as far as it says so.
	Sources []Source `json:"sources,omitempty" doc:"The documents that what was found comes from: id, document, title, page, section, row, chunk, start and end." zh:"来源：所查到内容的出处，含 id、document、title、page、section、row、chunk、start 和 end。"`
}

// The operations that every memory has.
const (
	LoadContext = "load_context"
	Remember    = "remember"
)

// Config is the configurations of one of the ten memories.
type Config interface {
	open(s *Store, c Call) (keeper, error)
}

// keeper is what every memory can do for a model.
type keeper interface {
	context(ctx context.Context, query string) (Context, error)
	remember(ctx context.Context, e Exchange) (stored bool, err error)
}

// Context is what a memory tells a model.
type Context struct {
	Text string
	// Items is how many things of the memory are in it.
	Items int
	// Sources are where they come from, as far as they say so.
	Sources []Source
}

// Exchange is what a user said and a model answered.
type Exchange struct {
	User      string
	Assistant string
}

// Context asks a memory what it knows about a question.
func (s *Store) Context(ctx context.Context, c Call, cfg Config, query string) (Context, error) {
	k, err := cfg.open(s, c)
	if err != nil {
		return Context{}, err
	}
	return k.context(ctx, query)
}

// Remember hands an exchange to a memory and says whether anything of it was taken in.
func (s *Store) Remember(ctx context.Context, c Call, cfg Config, e Exchange) (bool, error) {
	k, err := cfg.open(s, c)
	if err != nil {
		return false, err
	}
	return k.remember(ctx, e)
}

// attached does what an operation that all memories have asks for; false: it is not such an operation.
func attached(ctx context.Context, k keeper, op string, ask Ask, a *Answer) (bool, error) {
	*a = Answer{Success: true, Operation: op}
	switch op {
	case LoadContext:
		told, err := k.context(ctx, ask.Query)
		a.Context, a.Sources = told.Text, told.Sources
		return true, err
	case Remember:
		if ask.User == "" && ask.Assistant == "" {
			return true, required(op, "user")
		}
		stored, err := k.remember(ctx, Exchange{ask.User, ask.Assistant})
		a.Stored = yes(stored)
		return true, err
	}
	return false, nil
}

// maxBytes is how large one thing may be that is remembered.
const maxBytes = 1 << 20

// session is one operation on one memory.
type session struct {
	*Store
	Call
	scope   store.MemoryScope
	profile string
}

// open finds the memory that a call means.
func (s *Store) open(c Call, kind string, common Common, part string) *session {
	x := &session{Store: s, Call: c, profile: common.LLMProfile}
	x.scope = store.MemoryScope{User: c.User, Kind: kind, Part: part}
	if common.SessionID != "" {
		x.scope.Session = common.SessionID
	} else {
		x.scope.Workflow, x.scope.Node = c.Workflow, c.Node
	}
	x.scope.ID = scopeID(x.scope)
	return x
}

// scopeID follows from what the memory is the memory of.
func scopeID(m store.MemoryScope) string {
	return "mem_" + digest(m.User, m.Kind, m.Workflow, m.Node, m.Session, m.Execution, m.Part)
}

// digest makes a short name of several texts.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)[:15]))
}

// recordID is the id of the record number i of this call: the same whenever the call is made again. A call without a name
// gets a new one each time, from the clock and the version of the memory.
func (x *session) recordID(version int64, i int) string {
	if x.Once == "" {
		return digest(x.scope.ID, fmt.Sprint(x.Now.UnixNano(), version), fmt.Sprint(i))
	}
	return digest(x.Once, fmt.Sprint(i))
}

func (x *session) principal() identity.Principal {
	return identity.Principal{Workspace: x.Workspace, User: x.User}
}

func (x *session) millis() int64 { return x.Now.UnixMilli() }

func (x *session) warn(message string, err error) {
	if x.Warn != nil {
		x.Warn(message, err)
	}
}

// version is that of the memory now, -1 when there is none yet.
func (x *session) version(ctx context.Context) (int64, error) {
	m, err := x.o.Records.Scope(ctx, x.principal(), x.scope.ID)
	if errors.Is(err, store.ErrNotFound) {
		return -1, nil
	}
	return m.Version, err
}

// list reads records that have not expired. A memory that is not there has none.
func (x *session) list(ctx context.Context, q store.MemoryQuery) ([]store.MemoryRecord, error) {
	page, err := x.page(ctx, q)
	return page.Records, err
}

func (x *session) page(ctx context.Context, q store.MemoryQuery) (store.MemoryPage, error) {
	q.Scope, q.Now = x.scope.ID, x.millis()
	page, err := x.o.Records.Records(ctx, x.principal(), q)
	if errors.Is(err, store.ErrNotFound) {
		return store.MemoryPage{}, nil
	}
	return page, err
}

// count is how many records of a sort there are.
func (x *session) count(ctx context.Context, sort string) (int, error) {
	page, err := x.page(ctx, store.MemoryQuery{Sort: sort, Limit: 1, Count: true})
	return page.Total, err
}

// getRecord reads one record into v and says whether it is there.
func (x *session) getRecord(ctx context.Context, sort, id string, v any) (store.MemoryRecord, bool, error) {
	list, err := x.list(ctx, store.MemoryQuery{Sort: sort, IDs: []string{id}})
	if err != nil || len(list) == 0 {
		return store.MemoryRecord{}, false, err
	}
	return list[0], true, read(list[0], v)
}

// read decodes the body of a record.
func read(r store.MemoryRecord, v any) error {
	if err := json.Unmarshal(r.Body, v); err != nil {
		return fmt.Errorf("memory record %q: %w", r.ID, err)
	}
	return nil
}

// readAll decodes the bodies of records.
func readAll[T any](records []store.MemoryRecord) ([]T, error) {
	list := make([]T, len(records))
	for i, r := range records {
		if err := read(r, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// body encodes what a record is about and refuses what is too large.
func body(what string, v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fault.Newf(fault.InvalidInput, "%q cannot be kept: %w", what, err)
	}
	if len(raw) > maxBytes {
		return nil, fault.Newf(fault.TooLarge, "%q has %d bytes; a memory takes up to %d at once", what, len(raw), maxBytes).With("path",
			what).With("limit", maxBytes)
	}
	return raw, nil
}

// draft is a change that was prepared from a version of the memory.
type draft struct {
	store.MemoryChange
	// idle says that there is nothing to change.
	idle bool
}

// maxTries bounds how often a change is prepared again because somebody else was faster.
const maxTries = 50

// change prepares a change from what is there and makes it, again and again until nobody was faster. A change that has been
// made before is not made again; its receipt says so.
func (x *session) change(ctx context.Context, prepare func(ctx context.Context, version int64) (draft, error)) (store.MemoryReceipt,
	error) {
	for try := 0; ; try++ {
		version, err := x.version(ctx)
		if err != nil {
			return store.MemoryReceipt{}, err
		}
		d, err := prepare(ctx, version)
		if err != nil || d.idle {
			// It may be for what it did itself that it finds nothing to do, or is refused.
			if done, rerr := x.repeated(ctx, version); rerr != nil || done.Repeated {
				return done, rerr
			}
			return store.MemoryReceipt{}, err
		}
		d.Scope, d.Mark, d.Time, d.Expect = x.scope, x.Once, x.millis(), version
		receipt, err := x.o.Records.Change(ctx, x.principal(), d.MemoryChange)
		if err == nil || !errors.Is(err, store.ErrConflict) || try == maxTries {
			return receipt, err
		}
		if ctx.Err() != nil {
			return store.MemoryReceipt{}, context.Cause(ctx)
		}
	}
}

// repeated asks whether this call has changed the memory before, without changing it.
func (x *session) repeated(ctx context.Context, version int64) (store.MemoryReceipt, error) {
	if x.Once == "" || version < 0 {
		return store.MemoryReceipt{}, nil
	}
	// A change that expects what cannot be is refused, unless it was made before.
	receipt, err := x.o.Records.Change(ctx, x.principal(), store.MemoryChange{Scope: x.scope, Mark: x.Once, Expect: impossible})
	if errors.Is(err, store.ErrConflict) {
		return store.MemoryReceipt{}, nil
	}
	return receipt, err
}

// impossible is a version that no memory has.
const impossible = 1 << 62

// clear removes everything.
func (x *session) clear(ctx context.Context) error {
	_, err := x.change(ctx, func(_ context.Context, version int64) (draft, error) {
		return draft{MemoryChange: store.MemoryChange{Clear: true}, idle: version < 0}, nil
	})
	return err
}

// remove removes records and says how many were there.
func (x *session) remove(ctx context.Context, sort string, ids ...string) (int, error) {
	receipt, err := x.change(ctx, func(ctx context.Context, version int64) (draft, error) {
		records, err := x.list(ctx, store.MemoryQuery{Sort: sort, IDs: append([]string{}, ids...)})
		d := draft{idle: len(records) == 0}
		for _, r := range records {
			d.Delete = append(d.Delete, store.MemoryKey{Sort: sort, ID: r.ID})
		}
		d.Result, _ = json.Marshal(len(records)) // a number is always JSON
		return d, err
	})
	if err != nil {
		return 0, err
	}
	n := 0
	if receipt.Result != nil {
		err = json.Unmarshal(receipt.Result, &n)
	}
	return n, err
}

// required refuses an operation without one of its fields.
func required(operation, field string) error {
	return fault.Newf(fault.ParameterMissing, "%q is required when operation is %q", field, operation).With("path",
		field).With("missing_fields", []string{field})
}

// unknown refuses an operation that a memory does not have.
func unknown(operation string, known ...string) error {
	if operation == "" {
		return fault.Newf(fault.ParameterMissing, `no operation is named; set "operation" to one of "%s"`, strings.Join(known, `", "`)).With("path", "operation").With("missing_fields", []string{"operation"})
	}
	var hint text.Text
	if near := fault.Nearest(operation, known); near != "" {
		hint = text.Of("; did you mean %q?", near)
	}
	return fault.Newf(fault.InvalidInput, `there is no operation %q here; there are "%s"%s`, operation, strings.Join(known, `", "`), hint).With("path", "operation")
}

// operation is what the configurations name, else the input, else a default.
func operation(config, input, otherwise string) string {
	for _, name := range []string{input, config, otherwise} {
		if name == LoadContext || name == Remember {
			return name // asked by the node that the memory is attached to, whatever it does on its own
		}
	}
	for _, name := range []string{config, input, otherwise} {
		if name != "" {
			return strings.ToLower(name)
		}
	}
	return ""
}

func yes(v bool) *bool { return &v }

// cut is the beginning of a text, at most n characters.
func cut(said string, n int) string {
	if n <= 1 || utf8.RuneCountInString(said) <= n {
		return text.First(said, max(n, 0))
	}
	return strings.TrimRight(text.First(said, n-1), " \n") + text.Mark
}

// writing puts a context together within a bound, in characters.
type writing struct {
	b    strings.Builder
	room int
}

// line adds a line if there is room for all of it.
func (w *writing) line(format string, args ...any) bool {
	text := fmt.Sprintf(format, args...)
	n := utf8.RuneCountInString(text)
	if w.b.Len() > 0 {
		n++
	}
	if n > w.room {
		return false
	}
	if w.b.Len() > 0 {
		w.b.WriteByte('\n')
	}
	w.b.WriteString(text)
	w.room -= n
	return true
}

func (w *writing) String() string { return w.b.String() }

// in is a text in the language of the call.
func (c *Call) in(t text.Text) string { return t.In(c.Language) }
