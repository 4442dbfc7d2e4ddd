package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/payload"
	"tandem/store"
)

// DocumentConfig are the configurations of a document store.
type DocumentConfig struct {
	Operation string `json:"operation" enum:"search|store|update|delete|get" legacy:"load_context|remember" doc:"What is done; without it the input says so." zh:"执行的操作；省略时由输入决定。"`
	Common
	CollectionName    string   `json:"collection_name" required:"true" doc:"The collection that the documents are in." zh:"文档所在的集合。"`
	SearchFields      []string `json:"search_fields" enum:"content|title|description|tags|metadata" doc:"The fields that are searched." zh:"检索的字段。"`
	MaxResults        int      `json:"max_results" range:"1.." doc:"The most documents that are found." zh:"最多返回的文档数。"`
	RelevanceScoring  string   `json:"relevance_scoring" enum:"bm25|tf_idf|hybrid" doc:"How documents are ranked." zh:"相关度的计算方式。"`
	AutoCaptureFromAI bool     `json:"auto_capture_from_ai" doc:"Whether what a model says is stored when the memory is attached to it." zh:"附加到模型时是否保存其回答。"`
}

// Defaults sets what is not configured.
func (c *DocumentConfig) Defaults() {
	c.Common, c.CollectionName, c.SearchFields = common(), "documents", []string{"content", "title", "description"}
	c.MaxResults, c.RelevanceScoring, c.AutoCaptureFromAI = 10, "bm25", true
}

// Document is a text with a title.
type Document struct {
	DocumentID  string          `json:"document_id"`
	Title       string          `json:"title,omitempty"`
	Content     string          `json:"content"`
	Description string          `json:"description,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Created     int64           `json:"created,omitempty"`
	Updated     int64           `json:"updated,omitempty"`
}

// DocumentInput is what a document store is asked. A file has become content before.
type DocumentInput struct {
	Ask
	Filters     json.RawMessage `json:"filters,omitempty" doc:"What the metadata of a find must have." zh:"结果的元数据须满足的条件。"`
	Content     *string         `json:"content,omitempty" doc:"The text." zh:"正文。"`
	File        json.RawMessage `json:"file,omitempty" doc:"A file whose text is kept, in the place of content." zh:"代替 content 的文件。"`
	DocumentID  string          `json:"document_id,omitempty" doc:"The document; without it a new one." zh:"文档编号；省略时新建。"`
	Title       *string         `json:"title,omitempty" doc:"Its title." zh:"标题。"`
	Description *string         `json:"description,omitempty" doc:"Its description." zh:"说明。"`
	Tags        []string        `json:"tags,omitempty" doc:"Words to find it by." zh:"标签。"`
	Metadata    json.RawMessage `json:"metadata,omitempty" doc:"What is kept with it." zh:"随文档保存的内容。"`
}

// DocumentOutput is what a document store answers.
type DocumentOutput struct {
	Answer
	Documents       []Document     `json:"documents" doc:"The documents that were found, kept or removed." zh:"查到、保存或删除的文档。"`
	TotalCount      int            `json:"total_count" doc:"How many there are." zh:"数量。"`
	RelevanceScores []float64      `json:"relevance_scores" doc:"How well each fits the query." zh:"各文档的相关度。"`
	SearchMetadata  SearchMetadata `json:"search_metadata" doc:"Where and how was searched." zh:"检索的集合与方式。"`
}

// SearchMetadata says how a search was made.
type SearchMetadata struct {
	Collection string   `json:"collection"`
	Scoring    string   `json:"scoring,omitempty"`
	Terms      []string `json:"terms,omitempty"`
	Searched   int      `json:"searched_documents,omitempty"`
}

const sortDocument = "document"

type documents struct {
	*session
	cfg DocumentConfig
}

func (s *Store) openDocuments(call Call, c DocumentConfig) *documents {
	return &documents{s.open(call, "DOCUMENT_STORE", c.Common, c.CollectionName), c}
}

func (c DocumentConfig) open(s *Store, call Call) (keeper, error) {
	return s.openDocuments(call, c), nil
}

// Documents keeps documents and finds them by their words.
func (s *Store) Documents(ctx context.Context, c Call, cfg DocumentConfig, in DocumentInput) (out DocumentOutput, err error) {
	op := operation(cfg.Operation, in.Operation, "")
	d := s.openDocuments(c, cfg)
	out.Documents, out.RelevanceScores, out.SearchMetadata.Collection = []Document{}, []float64{}, cfg.CollectionName
	if done, err := attached(ctx, d, op, in.Ask, &out.Answer); done || err != nil {
		return out, err
	}
	if op != "search" && op != "store" && in.DocumentID == "" && slices.Contains([]string{"update", "delete", "get"}, op) {
		return out, required(op, "document_id")
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
		err = d.search(ctx, &out, in.Query, f, cfg.MaxResults)
		out.Context = d.write(out.Documents).Text
		return out, err
	case "store", "update":
		if op == "store" && (in.Content == nil || *in.Content == "") {
			return out, required(op, "content")
		}
		doc, stored, err := d.put(ctx, in, op == "update")
		if stored && err == nil {
			out.Documents, out.TotalCount = []Document{doc}, 1
			out.Context = d.write(out.Documents).Text
		}
		out.Stored = yes(stored && err == nil)
		return out, err
	case "delete":
		out.TotalCount, err = d.remove(ctx, sortDocument, in.DocumentID)
		return out, err
	case "get":
		records, err := d.list(ctx, store.MemoryQuery{Sort: sortDocument, IDs: []string{in.DocumentID}})
		if err != nil {
			return out, err
		}
		out.Documents, err = documentsOf(records)
		out.TotalCount, out.Context = len(out.Documents), d.write(out.Documents).Text
		return out, err
	}
	return out, unknown(op, "search", "store", "update", "delete", "get", LoadContext, Remember)
}

func documentsOf(records []store.MemoryRecord) ([]Document, error) {
	list := []Document{}
	for _, r := range records {
		var doc Document
		if err := read(r, &doc); err != nil {
			return nil, err
		}
		doc.DocumentID, doc.Created, doc.Updated = r.ID, r.Created, r.Updated
		list = append(list, doc)
	}
	return list, nil
}

// put stores a document in the place of the one with its id. An update changes what it brings of one that is there.
func (d *documents) put(ctx context.Context, in DocumentInput, update bool) (doc Document, stored bool, err error) {
	receipt, err := d.change(ctx, func(ctx context.Context, version int64) (c draft, err error) {
		doc = Document{}
		id := in.DocumentID
		if id == "" {
			id = d.recordID(version, 0)
		}
		if update {
			_, found, err := d.getRecord(ctx, sortDocument, id, &doc)
			if err != nil || !found {
				return draft{idle: true}, err
			}
		}
		doc.DocumentID = id
		for _, f := range []struct{ from, to *string }{{in.Content, &doc.Content}, {in.Title, &doc.Title},
			{in.Description, &doc.Description}} {
			if f.from != nil {
				*f.to = *f.from
			}
		}
		if in.Tags != nil {
			doc.Tags = in.Tags
		}
		if len(in.Metadata) > 0 {
			doc.Metadata = in.Metadata
		}
		raw, err := body("content", doc)
		if err != nil {
			return c, err
		}
		c.Put = []store.MemoryRecord{{Sort: sortDocument, ID: id, Body: raw, At: d.millis(),
			Text: &store.MemoryText{Title: doc.Title, Content: doc.Content, Extra: doc.extra()}}}
		c.Result, err = json.Marshal(id)
		return c, err
	})
	if err != nil {
		return doc, false, err
	}
	if receipt.Repeated {
		var id string
		if err := json.Unmarshal(receipt.Result, &id); err != nil {
			return doc, false, err
		}
		_, _, err = d.getRecord(ctx, sortDocument, id, &doc)
		return doc, true, err
	}
	return doc, receipt.Version > 0, nil
}

// extra is the text beside title and content that is searched as the description.
func (d Document) extra() string {
	text := d.Description + "\n" + strings.Join(d.Tags, "\n")
	var fields map[string]any
	if payload.Read(d.Metadata, &fields) == nil {
		for _, key := range sortedKeys(fields) {
			if s, ok := fields[key].(string); ok {
				text += "\n" + s
			}
		}
	}
	return text
}

// fields is what filters look at: the metadata, and the document's own fields.
func (d Document) fields() json.RawMessage {
	tags, err := payload.Encode(d.Tags)
	if err != nil {
		return nil
	}
	all := payload.WithField(d.Metadata, "document_id", payload.Quote(d.DocumentID)) // what is not an object has no fields
	return payload.WithField(payload.WithField(all, "title", payload.Quote(d.Title)), "tags", tags)
}

// SearchFields are the fields of a document that a search can look at.
func SearchFields() []string { return []string{"content", "title", "description", "tags", "metadata"} }

// Bounds of a search: how many words it looks for, how many documents it scores, and how much of each it looks at.
const (
	maxTerms      = 32
	maxCandidates = 200
	maxScored     = 64 << 10
)

func (d *documents) search(ctx context.Context, out *DocumentOutput, query string, f filter, limit int) error {
	words := store.Query(query, maxTerms)
	out.SearchMetadata = SearchMetadata{Collection: d.cfg.CollectionName, Scoring: d.cfg.RelevanceScoring, Terms: words}
	q := store.MemorySearch{Scope: d.scope.ID, Sort: sortDocument, Words: words, Now: d.millis(), Limit: max(4*limit, 50)}
	if len(f) > 0 {
		q.Limit *= 10
	}
	q.Limit = min(q.Limit, max(maxCandidates, limit))
	for _, field := range d.cfg.SearchFields {
		switch field {
		case "content":
			q.Content = true
		case "title":
			q.Title = true
		case "description", "tags", "metadata":
			q.Extra = true
		default:
			return fault.Newf(fault.InvalidConfig, `"search_fields" has %q; there are %s`, field, strings.Join(SearchFields(), ", ")).With("path", "configurations.search_fields")
		}
	}
	if version, err := d.version(ctx); err != nil || version < 0 || len(words) == 0 {
		return err
	}
	found, err := d.o.Records.Search(ctx, d.principal(), q)
	if err != nil {
		return err
	}
	docs, err := documentsOf(found.Records)
	if err != nil {
		return err
	}
	docs = slices.DeleteFunc(docs, func(doc Document) bool { return !f.holds(doc.fields()) })
	scores := d.score(docs, q, found, query)
	order := make([]int, len(docs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), strings.Compare(docs[a].DocumentID, docs[b].DocumentID))
	})
	for _, i := range order[:min(len(order), limit)] {
		out.Documents = append(out.Documents, docs[i])
		out.RelevanceScores = append(out.RelevanceScores, math.Round(scores[i]*1e6)/1e6)
	}
	out.SearchMetadata.Searched, out.TotalCount = found.Documents, found.Total
	if len(f) > 0 {
		out.TotalCount = len(docs)
	}
	return nil
}

// score says how well documents fit, by the frequency of the words in them and in all of them.
func (d *documents) score(docs []Document, q store.MemorySearch, found store.MemoryFound, query string) []float64 {
	counts := make([]map[string]float64, len(docs))
	lengths, total := make([]float64, len(docs)), 0.0
	for i, doc := range docs {
		counts[i] = map[string]float64{}
		// A word in the title says more about a document than one in its text.
		for _, part := range []struct {
			wanted bool
			text   string
			weight float64
		}{{q.Title, doc.Title, 2}, {q.Content, doc.Content, 1}, {q.Extra, doc.extra(), 1}} {
			if !part.wanted && (q.Title || q.Content || q.Extra) {
				continue
			}
			have := store.Words(part.text[:min(len(part.text), maxScored)])
			lengths[i] += float64(len(have))
			for _, w := range have {
				for _, wanted := range q.Words {
					if w == wanted || store.LoneCharacter(wanted) && strings.HasPrefix(w, wanted) {
						counts[i][wanted] += part.weight
					}
				}
			}
		}
		total += lengths[i]
	}
	average := max(total/max(float64(len(docs)), 1), 1)
	n := max(float64(found.Documents), 1)
	scores := make([]float64, len(docs))
	for i := range docs {
		for _, w := range q.Words {
			tf, df := counts[i][w], float64(found.Frequency[w])
			if tf == 0 {
				continue
			}
			switch d.cfg.RelevanceScoring {
			case "tf_idf":
				scores[i] += (1 + math.Log(tf)) * math.Log(1+n/max(df, 1))
			default:
				idf := math.Log(1 + (n-min(df, n)+0.5)/(df+0.5))
				scores[i] += idf * tf * 2.2 / (tf + 1.2*(0.25+0.75*lengths[i]/average))
			}
		}
	}
	if d.cfg.RelevanceScoring == "hybrid" && d.o.Local != nil {
		d.blend(docs, scores, query)
	}
	return scores
}

// blend takes the likeness of the whole texts into account as well, each for one half.
func (d *documents) blend(docs []Document, scores []float64, query string) {
	best := 0.0
	for _, s := range scores {
		best = max(best, s)
	}
	wanted := normal(d.o.Local(query))
	for i, doc := range docs {
		text := doc.Title + "\n" + doc.Content
		v, like := normal(d.o.Local(text[:min(len(text), maxScored)])), 0.0
		for j := range min(len(v), len(wanted)) {
			like += float64(v[j]) * float64(wanted[j])
		}
		if best > 0 {
			scores[i] /= best
		}
		scores[i] = scores[i]/2 + max(like, 0)/2
	}
}

func (d *documents) context(ctx context.Context, query string) (Context, error) {
	var told Context
	if query == "" {
		return told, nil
	}
	var out DocumentOutput
	if err := d.search(ctx, &out, query, nil, d.cfg.MaxResults); err != nil {
		return told, err
	}
	return d.write(out.Documents), nil
}

// write tells documents, each under its title.
func (d *documents) write(list []Document) Context {
	var told Context
	w := writing{room: d.cfg.MaxContextChars}
	for _, doc := range list {
		head := doc.Title
		if head == "" {
			head = doc.DocumentID
		}
		if w.line("[%s]\n%s", head, cut(doc.Content, max(0, min(2000, w.room-len([]rune(head))-4)))) {
			told.Items++
		}
	}
	told.Text = w.String()
	return told
}

func (d *documents) remember(ctx context.Context, e Exchange) (bool, error) {
	if !d.cfg.AutoCaptureFromAI || strings.TrimSpace(e.Assistant) == "" {
		return false, nil
	}
	title := cut(strings.Join(strings.Fields(e.User), " "), 100)
	meta := json.RawMessage(`{"source":"conversation"}`)
	_, stored, err := d.put(ctx, DocumentInput{Content: &e.Assistant, Title: &title, Metadata: meta}, false)
	return stored, err
}
