package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"tandem/fault"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
)

// WorkingConfig are the configurations of a scratch space.
type WorkingConfig struct {
	Operation string `json:"operation" enum:"store|get|list|delete|clear" legacy:"retrieve|load_context|remember" doc:"What is done; without it the input says so." zh:"执行的操作；省略时由输入决定。"`
	Common
	CapacityLimit  int    `json:"capacity_limit" range:"1..1000" doc:"How many values are kept." zh:"保留的值数。"`
	EvictionPolicy string `json:"eviction_policy" enum:"importance|lru|fifo" doc:"Which value makes room for a new one." zh:"空间不足时移除哪个值。"`
	// TTLSeconds is zero for as long as the execution lasts.
	TTLSeconds int64  `json:"ttl_seconds" range:"0.." doc:"After how many seconds a value is forgotten; 0 for the end of the execution." zh:"值的有效秒数；0 表示直至执行结束。"`
	Namespace  string `json:"namespace" doc:"A name that keeps values of several nodes apart." zh:"用于区分不同节点的命名空间。"`
}

// Defaults sets what is not configured.
func (c *WorkingConfig) Defaults() {
	c.Common, c.CapacityLimit, c.EvictionPolicy, c.TTLSeconds = common(), 100, "importance", 86400
}

// WorkingInput is what a scratch space is asked.
type WorkingInput struct {
	Ask
	Key         string          `json:"key,omitempty" doc:"The key." zh:"键。"`
	Value       json.RawMessage `json:"value,omitempty" doc:"The value to keep." zh:"要保存的值。"`
	Importance  *float64        `json:"importance,omitempty" doc:"How important it is, from 0 to 1." zh:"重要程度（0 到 1）。"`
	Tags        []string        `json:"tags,omitempty" doc:"Words to find it by." zh:"标签。"`
	TTLOverride *int64          `json:"ttl_override,omitempty" doc:"How long it is kept, in seconds, in the place of ttl_seconds." zh:"保存时间：代替 ttl_seconds 的保存时间（秒）。"`
}

// WorkingOutput is what a scratch space answers.
type WorkingOutput struct {
	Answer
	// CurrentState is every value by its key.
	CurrentState map[string]json.RawMessage `json:"current_state" doc:"All values by key." zh:"所有键值。"`
	RecentItems  []WorkingItem              `json:"recent_items" doc:"The values with what is known of each, the latest first." zh:"各值及其信息，最新的在前。"`
	// OperationResult is the value that was asked for, or what became of the operation.
	OperationResult json.RawMessage `json:"operation_result" doc:"What the operation has found or done." zh:"操作的结果。"`
	MemoryStats     WorkingStats    `json:"memory_stats" doc:"How many values there are, how many there may be, and how many had to go." zh:"数量、上限和被移出的数量。"`
}

// WorkingItem is one thing in a scratch space.
type WorkingItem struct {
	Key        string          `json:"key"`
	Value      json.RawMessage `json:"value"`
	Importance float64         `json:"importance"`
	Tags       []string        `json:"tags,omitempty"`
	Updated    int64           `json:"updated,omitempty"`
}

// WorkingStats says how full a scratch space is.
type WorkingStats struct {
	Items    int `json:"items"`
	Capacity int `json:"capacity"`
	// Evicted is how many had to go for this operation.
	Evicted int `json:"evicted"`
}

// recentItems is how many of the last changed items an answer has.
const recentItems = 10

type working struct {
	*session
	cfg WorkingConfig
}

// openWorking finds the scratch space of an execution: all nodes of it share one, unless they name different spaces.
func (s *Store) openWorking(c Call, cfg WorkingConfig) *working {
	x := s.open(c, "WORKING_MEMORY", cfg.Common, cfg.Namespace)
	x.scope.Workflow, x.scope.Node, x.scope.Execution = "", "", c.Execution
	x.scope.ID = scopeID(x.scope)
	return &working{x, cfg}
}

func (c WorkingConfig) open(s *Store, call Call) (keeper, error) { return s.openWorking(call, c), nil }

// Working is the scratch space of one execution.
func (s *Store) Working(ctx context.Context, c Call, cfg WorkingConfig, in WorkingInput) (out WorkingOutput, err error) {
	op := operation(cfg.Operation, in.Operation, "")
	if op == "retrieve" {
		op = "get"
	}
	w := s.openWorking(c, cfg)
	out.OperationResult = json.RawMessage("null")
	if err := w.inherit(ctx); err != nil {
		return out, err
	}
	done, err := attached(ctx, w, op, in.Ask, &out.Answer)
	if err != nil {
		return out, err
	}
	if !done {
		if err := w.do(ctx, op, in, &out); err != nil {
			return out, err
		}
	}
	items, err := w.items(ctx)
	if err != nil {
		return out, err
	}
	out.CurrentState, out.RecentItems = map[string]json.RawMessage{}, []WorkingItem{}
	for _, i := range items {
		out.CurrentState[i.Key] = i.Value
	}
	slices.SortStableFunc(items, func(a, b WorkingItem) int { return cmp.Compare(b.Updated, a.Updated) })
	out.RecentItems = append(out.RecentItems, items[:min(len(items), recentItems)]...)
	out.MemoryStats.Items, out.MemoryStats.Capacity = len(items), cfg.CapacityLimit
	if !done {
		told, err := w.context(ctx, "")
		out.Context = told.Text
		return out, err
	}
	return out, nil
}

func (w *working) do(ctx context.Context, op string, in WorkingInput, out *WorkingOutput) (err error) {
	var result any
	switch op {
	case "store":
		if in.Key == "" {
			return required(op, "key")
		}
		if len(in.Value) == 0 {
			return required(op, "value")
		}
		item := WorkingItem{Key: in.Key, Value: in.Value, Importance: 0.5, Tags: in.Tags}
		if in.Importance != nil {
			item.Importance = *in.Importance
		}
		ttl := w.cfg.TTLSeconds
		if in.TTLOverride != nil {
			ttl = *in.TTLOverride
		}
		if out.MemoryStats.Evicted, err = w.put(ctx, item, ttl); err != nil {
			return err
		}
		out.Stored = yes(true)
		result = map[string]any{"stored": true, "key": in.Key}
	case "get":
		if in.Key == "" {
			return required(op, "key")
		}
		if out.OperationResult, err = w.value(ctx, in.Key); err != nil {
			return err
		}
		return nil
	case "list":
		items, err := w.items(ctx)
		if err != nil {
			return err
		}
		result = slices.DeleteFunc(items, func(i WorkingItem) bool {
			return slices.ContainsFunc(in.Tags, func(tag string) bool { return !slices.Contains(i.Tags, tag) })
		})
	case "delete":
		if in.Key == "" {
			return required(op, "key")
		}
		n, err := w.remove(ctx, sortKey, in.Key)
		if err != nil {
			return err
		}
		result = map[string]any{"deleted": n > 0, "key": in.Key}
	case "clear":
		if err := w.clear(ctx); err != nil {
			return err
		}
		result = map[string]any{"cleared": true}
	default:
		return unknown(op, "store", "get", "list", "delete", "clear", LoadContext, Remember)
	}
	out.OperationResult, err = json.Marshal(result)
	return err
}

// items are all that have not expired, as they came.
func (w *working) items(ctx context.Context) ([]WorkingItem, error) {
	records, err := w.list(ctx, store.MemoryQuery{Sort: sortKey})
	if err != nil {
		return nil, err
	}
	items, err := readAll[WorkingItem](records)
	for i := range items {
		items[i].Updated = records[i].Updated
	}
	return items, err
}

// value is that of a key, null when there is none. Asking for it is using it.
func (w *working) value(ctx context.Context, key string) (json.RawMessage, error) {
	var item WorkingItem
	_, found, err := w.getRecord(ctx, sortKey, key, &item)
	if err != nil || !found {
		return json.RawMessage("null"), err
	}
	if w.cfg.EvictionPolicy == "lru" {
		c := store.MemoryChange{Scope: w.scope, Time: w.millis(), Touch: []store.MemoryKey{{Sort: sortKey, ID: key}}}
		if _, err := w.o.Records.Change(ctx, w.principal(), c); err != nil {
			return nil, err
		}
	}
	return item.Value, nil
}

// put stores an item and lets others go when there are too many.
func (w *working) put(ctx context.Context, item WorkingItem, ttl int64) (evicted int, err error) {
	if item.Importance < 0 || item.Importance > 1 {
		return 0, fault.New(fault.InvalidInput, `"importance" must be a number from 0 to 1`).With("path", "importance")
	}
	if ttl < 0 {
		return 0, fault.New(fault.InvalidInput, `"ttl_override" must not be negative`).With("path", "ttl_override")
	}
	raw, err := body("value", item)
	if err != nil {
		return 0, err
	}
	receipt, err := w.change(ctx, func(ctx context.Context, _ int64) (d draft, err error) {
		order := map[string]store.MemoryOrder{"importance": store.HeaviestFirst, "lru": store.LeastUsedFirst,
			"fifo": store.OldestFirst}[w.cfg.EvictionPolicy]
		others, err := w.list(ctx, store.MemoryQuery{Sort: sortKey, Order: order})
		if err != nil {
			return d, err
		}
		if order == store.HeaviestFirst { // the least important goes first, of those the oldest
			slices.SortStableFunc(others, func(a, b store.MemoryRecord) int {
				return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Seq, b.Seq))
			})
		}
		others = slices.DeleteFunc(others, func(r store.MemoryRecord) bool { return r.ID == item.Key })
		for _, r := range others[:max(0, len(others)+1-w.cfg.CapacityLimit)] {
			d.Delete = append(d.Delete, store.MemoryKey{Sort: sortKey, ID: r.ID})
		}
		d.Put = []store.MemoryRecord{{Sort: sortKey, ID: item.Key, Body: raw, Weight: item.Importance,
			At: w.millis(), Expires: w.after(ttl)}}
		d.Result, err = json.Marshal(len(d.Delete))
		return d, err
	})
	if err != nil {
		return 0, err
	}
	return evicted, json.Unmarshal(receipt.Result, &evicted)
}

// maxAncestors bounds how far back a scratch space is looked for.
const maxAncestors = 100

// inherit gives the scratch space of a child or a fork, when it is used first, what the one that it comes from has.
func (w *working) inherit(ctx context.Context) error {
	version, err := w.version(ctx)
	if err != nil || version >= 0 || w.o.Executions == nil || w.Execution == "" {
		return err
	}
	// As Tandem itself: a child may run for somebody else than its parent does.
	system := identity.System(w.Workspace)
	at := w.Execution
	for range maxAncestors {
		e, err := w.o.Executions.Get(ctx, system, at)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if at = cmp.Or(e.ForkedFrom, e.Parent); at == "" {
			return nil
		}
		from, err := w.o.Executions.Get(ctx, system, at)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		scope := w.scope
		scope.Execution, scope.User = at, from.User
		page, err := w.o.Records.Records(ctx, system, store.MemoryQuery{Scope: scopeID(scope), Sort: sortKey, Now: w.millis()})
		if errors.Is(err, store.ErrNotFound) {
			continue // it has none of its own yet: what it would begin with is further back
		}
		if err != nil {
			return err
		}
		return w.copyFrom(ctx, page.Records)
	}
	return nil
}

func (w *working) copyFrom(ctx context.Context, records []store.MemoryRecord) error {
	c := store.MemoryChange{Scope: w.scope, Expect: -1, Time: w.millis(), Put: records}
	_, err := w.o.Records.Change(ctx, w.principal(), c)
	if errors.Is(err, store.ErrConflict) {
		return nil // another node of the execution was faster
	}
	return err
}

func (w *working) context(ctx context.Context, _ string) (Context, error) {
	var told Context
	if err := w.inherit(ctx); err != nil {
		return told, err
	}
	items, err := w.items(ctx)
	if err != nil {
		return told, err
	}
	slices.SortStableFunc(items, func(a, b WorkingItem) int { return cmp.Compare(b.Importance, a.Importance) })
	b := writing{room: w.cfg.MaxContextChars}
	for _, i := range items {
		if b.line("%s = %s", i.Key, cut(payload.JSON(i.Value), 1000)) {
			told.Items++
		}
	}
	told.Text = b.String()
	return told, nil
}

// remember keeps the last exchange, so that later nodes of the execution can read it.
func (w *working) remember(ctx context.Context, e Exchange) (bool, error) {
	if err := w.inherit(ctx); err != nil {
		return false, err
	}
	raw, err := json.Marshal(map[string]string{"user": e.User, "assistant": e.Assistant})
	if err != nil {
		return false, err
	}
	_, err = w.put(ctx, WorkingItem{Key: "last_exchange", Value: raw, Importance: 0.5}, w.cfg.TTLSeconds)
	return err == nil, err
}
