package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/store"
	"tandem/text"
)

// KnowledgeConfig are the configurations of a knowledge base.
type KnowledgeConfig struct {
	Operation string `json:"operation" enum:"store|query|update|delete" legacy:"extract_and_store|load_context|remember" doc:"What is done; without it the input says so." zh:"执行的操作；省略时由输入决定。"`
	Common
	ConfidenceThreshold float64  `json:"confidence_threshold" range:"0..1" doc:"How sure a fact must be, from 0 to 1." zh:"置信度下限（0 到 1）。"`
	KnowledgeDomains    []string `json:"knowledge_domains" doc:"The domains that facts belong to." zh:"事实所属的领域。"`
}

// Defaults sets what is not configured.
func (c *KnowledgeConfig) Defaults() {
	c.Common, c.ConfidenceThreshold, c.KnowledgeDomains = common(), 0.8, []string{"general", "technical", "business"}
}

// Fact says something of something.
type Fact struct {
	ID         string  `json:"id,omitempty"`
	Subject    string  `json:"subject"`
	Predicate  string  `json:"predicate"`
	Object     string  `json:"object"`
	Confidence float64 `json:"confidence"`
	Domain     string  `json:"domain,omitempty"`
	// Contradicted says that another fact says otherwise; Contradicts are the ids of those.
	Contradicted bool     `json:"contradicted,omitempty"`
	Contradicts  []string `json:"contradicts,omitempty"`
}

// GivenFact is a fact as it comes in. A text alone is taken apart by rules.
type GivenFact struct {
	Subject    string   `json:"subject,omitempty"`
	Predicate  string   `json:"predicate,omitempty"`
	Object     string   `json:"object,omitempty"`
	Confidence *float64 `json:"confidence,omitempty"`
	Domain     string   `json:"domain,omitempty"`
}

// KnowledgeInput is what a knowledge base is asked.
type KnowledgeInput struct {
	Ask
	Facts      []GivenFact `json:"facts,omitempty" doc:"The facts to keep." zh:"要保存的事实。"`
	Content    string      `json:"content,omitempty" doc:"A text from which facts are read." zh:"从中提取事实的文本。"`
	Domain     string      `json:"domain,omitempty" doc:"What they are about." zh:"所属领域。"`
	ID         string      `json:"id,omitempty" doc:"The fact to change or remove." zh:"要更改或删除的事实。"`
	Subject    string      `json:"subject,omitempty" doc:"What the fact is about." zh:"主语。"`
	Predicate  string      `json:"predicate,omitempty" doc:"How it is related to the object." zh:"谓语。"`
	Object     string      `json:"object,omitempty" doc:"What it is related to." zh:"宾语。"`
	Confidence *float64    `json:"confidence,omitempty" doc:"How sure it is, from 0 to 1." zh:"置信度（0 到 1）。"`
}

// KnowledgeOutput is what a knowledge base answers.
type KnowledgeOutput struct {
	Answer
	Facts            []Fact   `json:"facts" doc:"The facts that were found, kept or removed." zh:"查到、保存或删除的事实。"`
	KnowledgeSummary string   `json:"knowledge_summary" doc:"All of it as text." zh:"以上内容的文本。"`
	RelatedConcepts  []string `json:"related_concepts" doc:"What the facts are about." zh:"事实涉及的概念。"`
	Deleted          int      `json:"deleted,omitempty" doc:"How many were removed." zh:"删除的数量。"`
}

const sortFact = "fact"

type knowledge struct {
	*session
	cfg KnowledgeConfig
}

func (s *Store) openKnowledge(call Call, c KnowledgeConfig) *knowledge {
	return &knowledge{s.open(call, "KNOWLEDGE_BASE", c.Common, ""), c}
}

func (c KnowledgeConfig) open(s *Store, call Call) (keeper, error) {
	return s.openKnowledge(call, c), nil
}

// Knowledge keeps facts with how sure they are.
func (s *Store) Knowledge(ctx context.Context, c Call, cfg KnowledgeConfig, in KnowledgeInput) (out KnowledgeOutput, err error) {
	op := operation(cfg.Operation, in.Operation, "")
	k := s.openKnowledge(c, cfg)
	out.Facts, out.RelatedConcepts = []Fact{}, []string{}
	if done, err := attached(ctx, k, op, in.Ask, &out.Answer); done || err != nil {
		return out, err
	}
	var facts []Fact
	switch op {
	case "store", "extract_and_store":
		if len(in.Facts) == 0 && in.Content == "" {
			return out, required(op, "facts")
		}
		given, err := k.given(ctx, in)
		if err != nil {
			return out, err
		}
		if facts, err = k.put(ctx, given); err != nil {
			return out, err
		}
		out.Stored = yes(len(facts) > 0)
	case "query":
		if in.Query == "" {
			return out, required(op, "query")
		}
		if facts, err = k.query(ctx, in.Query, in.Domain, 50); err != nil {
			return out, err
		}
	case "update":
		if in.ID == "" {
			return out, required(op, "id")
		}
		if facts, err = k.update(ctx, in); err != nil {
			return out, err
		}
		out.Stored = yes(len(facts) > 0)
	case "delete":
		if in.ID == "" {
			return out, required(op, "id")
		}
		if out.Deleted, err = k.drop(ctx, in.ID); err != nil {
			return out, err
		}
	default:
		return out, unknown(op, "store", "extract_and_store", "query", "update", "delete", LoadContext, Remember)
	}
	out.Facts = append(out.Facts, facts...)
	out.KnowledgeSummary = k.write(facts, 2000).Text
	out.Context = k.write(k.sure(facts), cfg.MaxContextChars).Text
	for _, f := range facts {
		for _, name := range []string{f.Subject, f.Object} {
			if !slices.Contains(out.RelatedConcepts, name) && len(out.RelatedConcepts) < 50 {
				out.RelatedConcepts = append(out.RelatedConcepts, name)
			}
		}
	}
	return out, nil
}

// domain refuses what is not configured; empty is the first.
func (k *knowledge) domain(name string) (string, error) {
	if name == "" && len(k.cfg.KnowledgeDomains) > 0 {
		return k.cfg.KnowledgeDomains[0], nil
	}
	for _, d := range k.cfg.KnowledgeDomains {
		if strings.EqualFold(d, name) {
			return d, nil
		}
	}
	return "", fault.Newf(fault.InvalidInput, `there is no domain %q; there are "%s"`, name, strings.Join(k.cfg.KnowledgeDomains, `", "`)).With("path", "domain")
}

// given are the facts of an input: those that it lists, or those of its content.
func (k *knowledge) given(ctx context.Context, in KnowledgeInput) ([]Fact, error) {
	if len(in.Content) > maxBytes {
		return nil, fault.Newf(fault.TooLarge, `"content" has %d bytes; a memory takes up to %d at once`, len(in.Content), maxBytes).With("path", "content")
	}
	var list []Fact
	for i, g := range in.Facts {
		at := fmt.Sprintf("facts[%d]", i)
		if strings.TrimSpace(g.Subject) == "" || strings.TrimSpace(g.Predicate) == "" || strings.TrimSpace(g.Object) == "" {
			return nil, fault.Newf(fault.InvalidInput, "%q needs a subject, a predicate and an object", at).With("path", at)
		}
		f := Fact{Subject: g.Subject, Predicate: g.Predicate, Object: g.Object, Confidence: 1, Domain: cmp.Or(g.Domain, in.Domain)}
		if g.Confidence != nil {
			f.Confidence = *g.Confidence
		}
		if f.Confidence < 0 || f.Confidence > 1 {
			return nil, fault.Newf(fault.InvalidInput, "%q must be a number from 0 to 1", at+".confidence").With("path", at+".confidence")
		}
		list = append(list, f)
	}
	if len(in.Facts) == 0 {
		list = k.find(ctx, in.Content)
		for i := range list {
			list[i].Domain = cmp.Or(list[i].Domain, in.Domain)
		}
	}
	for i := range list {
		var err error
		if list[i].Domain, err = k.domain(list[i].Domain); err != nil && len(in.Facts) > 0 {
			return nil, err
		}
		if err != nil { // a model's fancy
			list[i].Domain, err = k.domain(in.Domain)
			if err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// find asks a model for the facts of a text, or the rules, also when the model fails.
func (k *knowledge) find(ctx context.Context, content string) []Fact {
	if k.profile != "" && k.Model != nil {
		var found struct {
			Facts []Fact `json:"facts"`
		}
		text, err := k.Model(ctx, k.profile, factPrompt(content, k.cfg.KnowledgeDomains))
		if err == nil {
			err = answer(text, &found)
		}
		if err == nil {
			return slices.DeleteFunc(found.Facts, func(f Fact) bool {
				return strings.TrimSpace(f.Subject) == "" || strings.TrimSpace(f.Predicate) == "" || strings.TrimSpace(f.Object) == "" ||
					f.Confidence < 0 || f.Confidence > 1
			})
		}
		k.warn("the model found no facts; rules take its place", err)
	}
	return ruleFacts(content)
}

// about names what facts must have in common to contradict each other: the subject and the predicate, whether it is
// denied or not.
func (f Fact) about() string { return digest(nameKey(f.Subject), affirmed(f.Predicate)) }

// affirmed is a predicate without its denial.
func affirmed(predicate string) string {
	p := nameKey(predicate)
	for _, no := range []string{" not", "n't"} {
		p = strings.ReplaceAll(p, no, "")
	}
	return strings.TrimPrefix(p, "不")
}

func (f Fact) id() string {
	return "fact_" + digest(nameKey(f.Subject), nameKey(f.Predicate), nameKey(f.Object))
}

// against says that two facts about the same cannot both be true: they name different objects, or one denies what the
// other says.
func (f Fact) against(g Fact) bool {
	denied := affirmed(f.Predicate) != nameKey(f.Predicate)
	other := affirmed(g.Predicate) != nameKey(g.Predicate)
	same := nameKey(f.Object) == nameKey(g.Object)
	if denied || other {
		return denied != other && same
	}
	return !same
}

func factRecord(f Fact) (store.MemoryRecord, error) {
	raw, err := body("fact", f)
	return store.MemoryRecord{Sort: sortFact, ID: f.ID, Body: raw, Source: f.about(), Target: f.Domain, Weight: f.Confidence,
		Text: &store.MemoryText{Title: f.Subject, Content: f.Predicate + "\n" + f.Object, Extra: f.Domain}}, err
}

// put stores facts. One that is known already keeps the greater confidence.
func (k *knowledge) put(ctx context.Context, facts []Fact) ([]Fact, error) {
	if len(facts) == 0 {
		return nil, nil
	}
	var ids []string
	for i := range facts {
		facts[i].ID = facts[i].id()
		ids = append(ids, facts[i].ID)
	}
	if _, err := k.change(ctx, func(ctx context.Context, _ int64) (draft, error) { return k.settle(ctx, facts, nil) }); err != nil {
		return nil, err
	}
	return k.facts(ctx, ids)
}

// settle prepares a change that adds and removes facts, and marks anew what contradicts what among all that are about the
// same.
func (k *knowledge) settle(ctx context.Context, add []Fact, remove []Fact) (d draft, err error) {
	var about []string
	for _, f := range slices.Concat(add, remove) {
		about = append(about, f.about())
	}
	records, err := k.list(ctx, store.MemoryQuery{Sort: sortFact, Sources: append([]string{}, about...)})
	if err != nil {
		return d, err
	}
	there, err := readAll[Fact](records)
	if err != nil {
		return d, err
	}
	all := map[string]Fact{}
	for _, f := range there {
		all[f.ID] = f
	}
	for _, f := range remove {
		if _, ok := all[f.ID]; ok {
			d.Delete = append(d.Delete, store.MemoryKey{Sort: sortFact, ID: f.ID})
			delete(all, f.ID)
		}
	}
	for _, f := range add {
		if old, ok := all[f.ID]; ok {
			f.Confidence = max(f.Confidence, old.Confidence)
		}
		all[f.ID] = f
	}
	for _, id := range sortedKeys(all) {
		f := all[id]
		f.Contradicts = nil
		for _, other := range sortedKeys(all) {
			if g := all[other]; other != id && g.about() == f.about() && f.against(g) {
				f.Contradicts = append(f.Contradicts, other)
			}
		}
		f.Contradicted = len(f.Contradicts) > 0
		record, err := factRecord(f)
		if err != nil {
			return d, err
		}
		d.Put = append(d.Put, record)
	}
	d.idle = len(d.Put) == 0 && len(d.Delete) == 0
	return d, nil
}

// facts reads facts in the order of their ids as given.
func (k *knowledge) facts(ctx context.Context, ids []string) ([]Fact, error) {
	records, err := k.list(ctx, store.MemoryQuery{Sort: sortFact, IDs: append([]string{}, ids...)})
	if err != nil {
		return nil, err
	}
	list, err := readAll[Fact](records)
	slices.SortStableFunc(list, func(a, b Fact) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return list, err
}

// query finds facts by their words. What is about the same stands together, the surer first.
func (k *knowledge) query(ctx context.Context, query, domain string, limit int) ([]Fact, error) {
	if version, err := k.version(ctx); err != nil || version < 0 {
		return nil, err
	}
	found, err := k.o.Records.Search(ctx, k.principal(),
		store.MemorySearch{Scope: k.scope.ID, Sort: sortFact, Words: store.Query(query, maxTerms), Title: true, Content: true,
			Now: k.millis(), Limit: maxCandidates})
	if err != nil {
		return nil, err
	}
	list, err := readAll[Fact](found.Records)
	if err != nil {
		return nil, err
	}
	first := map[string]int{}
	var kept []Fact
	for _, f := range list {
		if domain != "" && !strings.EqualFold(domain, f.Domain) {
			continue
		}
		if _, ok := first[f.about()]; !ok {
			first[f.about()] = len(first)
		}
		kept = append(kept, f)
	}
	slices.SortStableFunc(kept, func(a, b Fact) int {
		return cmp.Or(cmp.Compare(first[a.about()], first[b.about()]), cmp.Compare(b.Confidence, a.Confidence))
	})
	return kept[:min(len(kept), limit)], nil
}

// update changes what it brings of a fact. A fact that then says something else has another id.
func (k *knowledge) update(ctx context.Context, in KnowledgeInput) ([]Fact, error) {
	if in.Confidence != nil && (*in.Confidence < 0 || *in.Confidence > 1) {
		return nil, fault.New(fault.InvalidInput, `"confidence" must be a number from 0 to 1`).With("path", "confidence")
	}
	receipt, err := k.change(ctx, func(ctx context.Context, _ int64) (d draft, err error) {
		old, err := k.facts(ctx, []string{in.ID})
		if err != nil || len(old) == 0 {
			return draft{idle: true}, err
		}
		f := old[0]
		f.Subject, f.Predicate, f.Object = cmp.Or(in.Subject, f.Subject), cmp.Or(in.Predicate, f.Predicate), cmp.Or(in.Object, f.Object)
		if in.Domain != "" {
			if f.Domain, err = k.domain(in.Domain); err != nil {
				return d, err
			}
		}
		if in.Confidence != nil {
			f.Confidence = *in.Confidence
		}
		f.ID = f.id()
		if d, err = k.settle(ctx, []Fact{f}, old); err != nil {
			return d, err
		}
		// Removed and put in one change: only what is not put again is removed.
		d.Delete = slices.DeleteFunc(d.Delete, func(key store.MemoryKey) bool { return key.ID == f.ID })
		d.Result, err = json.Marshal(f.ID)
		return d, err
	})
	if err != nil || receipt.Result == nil {
		return nil, err
	}
	var id string
	if err := json.Unmarshal(receipt.Result, &id); err != nil {
		return nil, err
	}
	return k.facts(ctx, []string{id})
}

func (k *knowledge) drop(ctx context.Context, id string) (int, error) {
	receipt, err := k.change(ctx, func(ctx context.Context, _ int64) (d draft, err error) {
		old, err := k.facts(ctx, []string{id})
		if err != nil || len(old) == 0 {
			return draft{idle: true}, err
		}
		if d, err = k.settle(ctx, nil, old); err != nil {
			return d, err
		}
		d.Result = json.RawMessage("1")
		return d, nil
	})
	if err != nil || receipt.Result == nil {
		return 0, err
	}
	return 1, nil
}

// write tells facts, one to a line.
func (k *knowledge) write(facts []Fact, room int) Context {
	var told Context
	w := writing{room: room}
	for _, f := range facts {
		note := ""
		if f.Contradicted {
			note = k.in(text.Of(", contradicted"))
		}
		if w.line("- %s %s %s (%.2f%s)", f.Subject, f.Predicate, f.Object, f.Confidence, note) {
			told.Items++
		}
	}
	told.Text = w.String()
	return told
}

// context is the facts that are sure enough.
func (k *knowledge) context(ctx context.Context, query string) (Context, error) {
	var facts []Fact
	var err error
	if query != "" {
		facts, err = k.query(ctx, query, "", maxCandidates)
	} else {
		var records []store.MemoryRecord
		if records, err = k.list(ctx, store.MemoryQuery{Sort: sortFact, Order: store.HeaviestFirst, Limit: maxCandidates}); err == nil {
			facts, err = readAll[Fact](records)
		}
	}
	if err != nil {
		return Context{}, err
	}
	return k.write(k.sure(facts), k.cfg.MaxContextChars), nil
}

// sure are the facts that a model may be told.
func (k *knowledge) sure(facts []Fact) []Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f Fact) bool { return f.Confidence < k.cfg.ConfidenceThreshold })
}

func (k *knowledge) remember(ctx context.Context, e Exchange) (bool, error) {
	// What the user says is taken for a fact; what a model says is not.
	if strings.TrimSpace(e.User) == "" {
		return false, nil
	}
	facts, err := k.given(ctx, KnowledgeInput{Content: e.User})
	if err != nil {
		return false, err
	}
	stored, err := k.put(ctx, facts)
	return len(stored) > 0, err
}
