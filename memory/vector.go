package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"tandem/fault"
	"tandem/store"
)

// VectorConfig are the configurations of a vector database.
type VectorConfig struct {
	Operation string `json:"operation" enum:"search|store|update|delete|reindex" legacy:"load_context|remember" doc:"What is done; without it the input says so." zh:"执行的操作；省略时由输入决定。"`
	Common
	EmbeddingProfile string `json:"embedding_profile" names:"profile" doc:"The profile whose embedding model makes vectors; without one words are compared." zh:"生成向量的配置档；省略时按词语比较。"`
	// SimilarityThreshold is 0.7 for profiles and 0.3 for the local embedder, unless it is set.
	SimilarityThreshold *float64 `json:"similarity_threshold" range:"0..1" doc:"How alike a text must be to be found, from 0 to 1." zh:"相似度下限（0 到 1）。"`
	MaxResults          int      `json:"max_results" range:"1..50" doc:"The most texts that are found." zh:"最多返回的文本数。"`
	AutoCaptureFromAI   bool     `json:"auto_capture_from_ai" doc:"Whether the exchange is stored when the memory is attached to a model." zh:"附加到模型时是否保存对话。"`
}

// Defaults sets what is not configured.
func (c *VectorConfig) Defaults() { c.Common, c.MaxResults, c.AutoCaptureFromAI = common(), 5, true }

func (c *VectorConfig) threshold() float64 {
	switch {
	case c.SimilarityThreshold != nil:
		return *c.SimilarityThreshold
	case c.EmbeddingProfile == "":
		return LocalThreshold
	}
	return 0.7
}

// Item is a text that is found by its meaning.
type Item struct {
	ID       string          `json:"id,omitempty"`
	Content  string          `json:"content"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// UnmarshalJSON reads an item; a text alone is its content.
func (i *Item) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &i.Content)
	}
	type plain Item
	return json.Unmarshal(raw, (*plain)(i))
}

// VectorInput is what a vector database is asked.
type VectorInput struct {
	Ask
	Filters json.RawMessage `json:"filters,omitempty" doc:"What the metadata of a find must have." zh:"结果的元数据须满足的条件。"`
	Items   []Item          `json:"items,omitempty" doc:"The texts to keep, each with an id, content and metadata." zh:"要保存的文本，各有 id、content 和 metadata。"`
	IDs     []string        `json:"ids,omitempty" doc:"The texts to remove." zh:"要删除的文本编号。"`
	// Replaces is what the items take the place of: the chunks of an earlier state of a document.
	Replaces json.RawMessage `json:"replaces,omitempty" doc:"What the metadata of texts has that the items take the place of, such as a document: those that are not among the items are removed with the same change." zh:"取代：被取代文本的元数据须满足的条件，例如某个文档；不在 items 中的这些文本随同一次更改删除。"`
}

// VectorOutput is what a vector database answers.
type VectorOutput struct {
	Answer
	Results []Item    `json:"results" doc:"The texts that were found or kept." zh:"查到或保存的文本。"`
	Scores  []float64 `json:"scores" doc:"How alike each is to the query." zh:"各结果的相似度。"`
	// TotalResults is how many were found, stored, removed or indexed anew.
	TotalResults int `json:"total_results" doc:"How many were found, kept, removed or indexed anew." zh:"数量：查到、保存、删除或重建索引的数量。"`
}

// Sorts of records of vector databases.
const (
	sortItem  = "item"
	sortSpace = "space"
)

// space says what made the vectors of a memory.
type space struct {
	Name       string `json:"name"`
	Dimensions int    `json:"dimensions"`
}

type vectors struct {
	*session
	cfg VectorConfig
}

func (s *Store) openVectors(call Call, c VectorConfig) *vectors {
	return &vectors{s.open(call, "VECTOR_DATABASE", c.Common, ""), c}
}

func (c VectorConfig) open(s *Store, call Call) (keeper, error) { return s.openVectors(call, c), nil }

// Vectors finds by meaning.
func (s *Store) Vectors(ctx context.Context, c Call, cfg VectorConfig, in VectorInput) (out VectorOutput, err error) {
	op := operation(cfg.Operation, in.Operation, "")
	v := s.openVectors(c, cfg)
	out.Results, out.Scores = []Item{}, []float64{}
	if done, err := attached(ctx, v, op, in.Ask, &out.Answer); done || err != nil {
		return out, err
	}
	switch op {
	case "search":
		if in.Query == "" {
			return out, required(op, "query")
		}
		f, err := newFilter(in.Filters)
		if err != nil {
			return out, err
		}
		out.Results, out.Scores, err = v.search(ctx, in.Query, f, cfg.MaxResults)
		told := v.write(out.Results)
		out.TotalResults, out.Context, out.Sources = len(out.Results), told.Text, told.Sources
		return out, err
	case "store", "update":
		if len(in.Items) == 0 {
			return out, required(op, "items")
		}
		f, err := filterIn("replaces", in.Replaces)
		if err != nil {
			return out, err
		}
		out.Results, err = v.put(ctx, in.Items, op == "update", f)
		out.TotalResults, out.Stored, out.Context = len(out.Results), yes(err == nil), v.write(out.Results).Text
		return out, err
	case "delete":
		f, err := newFilter(in.Filters)
		if err != nil {
			return out, err
		}
		if len(in.IDs) == 0 && len(f) == 0 {
			return out, required(op, "ids")
		}
		out.TotalResults, err = v.drop(ctx, in.IDs, f)
		return out, err
	case "reindex":
		out.TotalResults, err = v.reindex(ctx)
		return out, err
	}
	return out, unknown(op, "search", "store", "update", "delete", "reindex", LoadContext, Remember)
}

// embed turns texts into vectors of length one and says what made them.
func (x *session) embed(ctx context.Context, profile string, texts []string) ([][]float32, space, error) {
	var list [][]float32
	name := "local"
	switch {
	case profile == "" && x.o.Local == nil, profile != "" && x.Embed == nil:
		return nil, space{}, fault.New(fault.Unsupported, `this installation cannot turn texts into vectors that way; choose another "embedding_profile", or none`).With("path", "configurations.embedding_profile")
	case profile == "":
		for _, text := range texts {
			list = append(list, x.o.Local(text))
		}
	default:
		var err error
		if list, err = x.Embed(ctx, profile, texts); err != nil {
			return nil, space{}, err
		}
		name = "profile:" + profile
	}
	if len(list) != len(texts) {
		return nil, space{}, fault.Newf(fault.OutputInvalid, "%d texts became %d vectors", len(texts), len(list))
	}
	s := space{Name: name}
	for i, v := range list {
		if i == 0 {
			s.Dimensions = len(v)
		}
		if len(v) == 0 || len(v) != s.Dimensions {
			return nil, space{}, fault.Newf(fault.OutputInvalid, "the vectors have %d and %d dimensions; they must be alike", s.Dimensions, len(v))
		}
		list[i] = normal(v)
	}
	return list, s, nil
}

func (s space) String() string { return fmt.Sprintf("%s/%d", s.Name, s.Dimensions) }

// normal is a vector of length one in the same direction. One without a direction stays as it is.
func normal(v []float32) []float32 {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return make([]float32, len(v))
	}
	out := make([]float32, len(v))
	for i, f := range v {
		out[i] = float32(float64(f) / math.Sqrt(sum))
	}
	return out
}

// agree refuses vectors that cannot be compared with those that are there.
func (v *vectors) agree(ctx context.Context, s space) error {
	var has space
	_, found, err := v.getRecord(ctx, sortSpace, sortSpace, &has)
	if err != nil || !found || has == s {
		return err
	}
	return fault.Newf(fault.Conflict, `the memory has vectors of %s, and these are of %s; run the operation "reindex" first`, has, s).With("has", has.String()).With("wanted", s.String())
}

func (v *vectors) search(ctx context.Context, query string, f filter, limit int) ([]Item, []float64, error) {
	items, scores := []Item{}, []float64{}
	embedded, s, err := v.embed(ctx, v.cfg.EmbeddingProfile, []string{query})
	if err != nil {
		return items, scores, err
	}
	if version, err := v.version(ctx); err != nil || version < 0 {
		return items, scores, err
	}
	if err := v.agree(ctx, s); err != nil {
		return items, scores, err
	}
	q := store.MemoryNearest{Scope: v.scope.ID, Sort: sortItem, Vector: embedded[0], Space: s.String(), Min: v.cfg.threshold(),
		Now: v.millis(), Limit: limit}
	if len(f) > 0 {
		q.Keep = func(r store.MemoryRecord) bool {
			var i Item
			return read(r, &i) == nil && f.holds(i.Metadata)
		}
	}
	matches, err := v.o.Records.Nearest(ctx, v.principal(), q)
	if err != nil {
		return items, scores, err
	}
	if len(matches) == 0 {
		return items, scores, v.explain(ctx, q)
	}
	for _, m := range matches {
		var i Item
		if err := read(m.MemoryRecord, &i); err != nil {
			return items, scores, err
		}
		items, scores = append(items, i), append(scores, math.Round(m.Score*1e6)/1e6)
	}
	return items, scores, nil
}

// LocalThreshold is the least similarity that counts when words are compared and no embedding model is asked. LocalLikeness is what texts
// about the same seldom reach then; only those that share most of their words do.
const (
	LocalThreshold = 0.3
	LocalLikeness  = 0.5
)

// explain warns when a search finds nothing only because its threshold is meant for an embedding model.
func (v *vectors) explain(ctx context.Context, q store.MemoryNearest) error {
	if v.cfg.EmbeddingProfile != "" || q.Min <= LocalThreshold {
		return nil
	}
	wanted := q.Min
	q.Min, q.Limit = LocalThreshold, 1
	near, err := v.o.Records.Nearest(ctx, v.principal(), q)
	if err != nil || len(near) == 0 {
		return err
	}
	v.warn("nothing is as similar as similarity_threshold asks for, though something is close: without an embedding_profile only words are compared",
		fmt.Errorf("the most similar has %.2f, and %g is asked for; leave the threshold out, or set embedding_profile", near[0].Score, wanted))
	return nil
}

// embedBatch is how many texts are embedded at once.
const embedBatch = 64

// put stores items in the place of those that a filter finds. An update keeps the metadata of an item that brings none.
func (v *vectors) put(ctx context.Context, items []Item, update bool, replaced filter) ([]Item, error) {
	stored := make([]Item, len(items))
	texts := make([]string, len(items))
	for i, item := range items {
		if item.Content == "" {
			return nil, fault.Newf(fault.InvalidInput, "%q has no content", fmt.Sprintf("items[%d]", i)).With("path",
				fmt.Sprintf("items[%d].content", i))
		}
		if _, err := body(fmt.Sprintf("items[%d]", i), item); err != nil {
			return nil, err
		}
		stored[i], texts[i] = item, item.Content
	}
	embedded, s, err := v.embedAll(ctx, texts)
	if err != nil {
		return nil, err
	}
	_, err = v.change(ctx, func(ctx context.Context, version int64) (d draft, err error) {
		if err := v.agree(ctx, s); err != nil {
			return d, err
		}
		raw, err := body("space", s)
		if err != nil {
			return d, err
		}
		d.Put = []store.MemoryRecord{{Sort: sortSpace, ID: sortSpace, Body: raw}}
		for i := range stored {
			if items[i].ID == "" {
				stored[i].ID = v.recordID(version, i)
			}
			if update && len(stored[i].Metadata) == 0 {
				var old Item
				if _, _, err := v.getRecord(ctx, sortItem, stored[i].ID, &old); err != nil {
					return d, err
				}
				stored[i].Metadata = old.Metadata
			}
			raw, err := body(fmt.Sprintf("items[%d]", i), stored[i])
			if err != nil {
				return d, err
			}
			d.Put = append(d.Put, store.MemoryRecord{Sort: sortItem, ID: stored[i].ID, Body: raw, Vector: embedded[i],
				Space: s.String(), At: v.millis()})
		}
		d.Delete, err = v.others(ctx, replaced, stored)
		return d, err
	})
	return stored, err
}

// others are the items that a filter finds and that are not among those given.
func (v *vectors) others(ctx context.Context, f filter, but []Item) (keys []store.MemoryKey, err error) {
	if len(f) == 0 {
		return nil, nil
	}
	records, err := v.list(ctx, store.MemoryQuery{Sort: sortItem})
	if err != nil {
		return nil, err
	}
	kept := map[string]bool{}
	for _, i := range but {
		kept[i.ID] = true
	}
	for _, r := range records {
		var i Item
		if err := read(r, &i); err != nil {
			return nil, err
		}
		if !kept[r.ID] && f.holds(i.Metadata) {
			keys = append(keys, store.MemoryKey{Sort: sortItem, ID: r.ID})
		}
	}
	return keys, nil
}

// embedAll embeds any number of texts.
func (v *vectors) embedAll(ctx context.Context, texts []string) (all [][]float32, s space, err error) {
	for at := 0; at < len(texts); at += embedBatch {
		part, other, err := v.embed(ctx, v.cfg.EmbeddingProfile, texts[at:min(at+embedBatch, len(texts))])
		if err != nil {
			return nil, s, err
		}
		if at > 0 && other != s {
			return nil, s, fault.New(fault.OutputInvalid, "the vectors of one request have different dimensions")
		}
		all, s = append(all, part...), other
	}
	return all, s, nil
}

func (v *vectors) drop(ctx context.Context, ids []string, f filter) (int, error) {
	if len(f) > 0 {
		q := store.MemoryQuery{Sort: sortItem}
		if len(ids) > 0 {
			q.IDs = ids
		}
		records, err := v.list(ctx, q)
		if err != nil {
			return 0, err
		}
		ids = nil
		for _, r := range records {
			var i Item
			if err := read(r, &i); err != nil {
				return 0, err
			}
			if f.holds(i.Metadata) {
				ids = append(ids, r.ID)
			}
		}
	}
	return v.remove(ctx, sortItem, ids...)
}

// reindex makes all vectors anew. It goes on where it was broken off, and the memory is asked with the new vectors only when
// all are there.
func (v *vectors) reindex(ctx context.Context) (int, error) {
	_, s, err := v.embed(ctx, v.cfg.EmbeddingProfile, []string{"reindex"})
	if err != nil {
		return 0, err
	}
	page, err := v.page(ctx, store.MemoryQuery{Sort: sortItem, Count: true, Limit: 1})
	if err != nil || page.Total == 0 {
		return 0, err
	}
	for offset := 0; ; offset += embedBatch {
		records, err := v.list(ctx, store.MemoryQuery{Sort: sortItem, Limit: embedBatch, Offset: offset})
		if err != nil {
			return 0, err
		}
		if len(records) == 0 {
			break
		}
		if err := v.reindexSome(ctx, records, s); err != nil {
			return 0, err
		}
	}
	raw, err := body("space", s)
	if err != nil {
		return 0, err
	}
	_, err = v.o.Records.Change(ctx, v.principal(), store.MemoryChange{Scope: v.scope, Time: v.millis(),
		Put: []store.MemoryRecord{{Sort: sortSpace, ID: sortSpace, Body: raw}}})
	return page.Total, err
}

// reindexSome makes the vectors of some records anew, of those that were not made so already. What somebody changes
// meanwhile is read again.
func (v *vectors) reindexSome(ctx context.Context, records []store.MemoryRecord, s space) error {
	var ids []string
	for _, r := range records {
		if r.Space != s.String() {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	unmarked := *v.session
	unmarked.Once = "" // its parts are harmless to repeat, and each has to be made
	_, err := unmarked.change(ctx, func(ctx context.Context, _ int64) (d draft, err error) {
		now, err := v.list(ctx, store.MemoryQuery{Sort: sortItem, IDs: ids})
		if err != nil {
			return d, err
		}
		items, err := readAll[Item](now)
		if err != nil {
			return d, err
		}
		texts := make([]string, len(items))
		for i := range items {
			texts[i] = items[i].Content
		}
		embedded, _, err := v.embedAll(ctx, texts)
		if err != nil {
			return d, err
		}
		for i, r := range now {
			r.Vector, r.Space = embedded[i], s.String()
			d.Put = append(d.Put, r)
		}
		d.idle = len(d.Put) == 0
		return d, nil
	})
	return err
}

func (v *vectors) context(ctx context.Context, query string) (Context, error) {
	var told Context
	if query == "" {
		return told, nil
	}
	items, _, err := v.search(ctx, query, nil, v.cfg.MaxResults)
	if err != nil {
		return told, err
	}
	return v.write(items), nil
}

// write tells items, one to a line; of the first at least its beginning. Those that name their source are told with it.
func (v *vectors) write(items []Item) Context {
	var told Context
	w := writing{room: v.cfg.MaxContextChars}
	if list := sourcesOf(items); len(list) > 0 {
		w.line("%s", v.citing(list[0]))
	}
	head := func(i Item) string {
		if _, ok := SourceOf(i); ok {
			return "- [" + i.ID + "] "
		}
		return "- "
	}
	for _, i := range items {
		if w.line("%s%s", head(i), i.Content) {
			told.Items++
			told.Sources = append(told.Sources, sourcesOf([]Item{i})...)
		}
	}
	if told.Items == 0 && len(items) > 0 {
		mark := head(items[0])
		w.line("%s%s", mark, cut(items[0].Content, max(0, w.room-len([]rune(mark)))))
		told.Items, told.Sources = 1, sourcesOf(items[:1])
	}
	told.Text = w.String()
	return told
}

func (v *vectors) remember(ctx context.Context, e Exchange) (bool, error) {
	if !v.cfg.AutoCaptureFromAI {
		return false, nil
	}
	meta, err := json.Marshal(map[string]any{"source": "conversation", "timestamp": v.millis()})
	if err != nil {
		return false, err
	}
	_, err = v.put(ctx, []Item{{Content: e.text(), Metadata: meta}}, false, nil)
	return err == nil, err
}

// text is an exchange as one text.
func (e Exchange) text() string {
	text := ""
	for i, m := range e.messages() {
		if i > 0 {
			text += "\n"
		}
		text += m.Role + ": " + m.Content
	}
	return text
}
