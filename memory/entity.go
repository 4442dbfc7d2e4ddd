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
)

// EntityConfig are the configurations of a memory of entities.
type EntityConfig struct {
	Operation string `json:"operation" enum:"extract|get|search|merge|delete" legacy:"load_context|remember" doc:"What is done; without it the input says so." zh:"执行的操作；省略时由输入决定。"`
	Common
	EntityTypes         []string `json:"entity_types" doc:"The types of things that are remembered." zh:"记住哪些类型的事物。"`
	ConfidenceThreshold float64  `json:"confidence_threshold" range:"0..1" doc:"How sure a find must be, from 0 to 1." zh:"置信度下限（0 到 1）。"`
}

// Defaults sets what is not configured.
func (c *EntityConfig) Defaults() {
	c.Common, c.ConfidenceThreshold = common(), 0.7
	c.EntityTypes = []string{"person", "organization", "location", "product", "concept"}
}

// EntityInput is what a memory of entities is asked.
type EntityInput struct {
	Ask
	Content string   `json:"content,omitempty" doc:"The text to read." zh:"要读取的文本。"`
	Name    string   `json:"name,omitempty" doc:"The name of what is looked for." zh:"要查找的名称。"`
	IDs     []string `json:"ids,omitempty" doc:"The entities that are the same, for merge." zh:"相同的实体：merge 时指同一事物的实体。"`
	ID      string   `json:"id,omitempty" doc:"The entity to remove." zh:"要删除的实体。"`
}

// EntityOutput is what a memory of entities answers.
type EntityOutput struct {
	Answer
	Entities      []Entity       `json:"entities" doc:"People and things, with how sure it is." zh:"人和事物及其置信度。"`
	Relationships []Relationship `json:"relationships" doc:"How they are related." zh:"它们之间的关系。"`
	EntitySummary string         `json:"entity_summary" doc:"All of it as text." zh:"以上内容的文本。"`
}

// Entity is a person, a place, a thing.
type Entity struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Type       string            `json:"type"`
	Confidence float64           `json:"confidence"`
	Aliases    []string          `json:"aliases,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	// Mentions is how many texts it was found in.
	Mentions int `json:"mentions"`
}

// Relationship joins two entities.
type Relationship struct {
	Source     string  `json:"source"`
	Target     string  `json:"target"`
	SourceName string  `json:"source_name"`
	TargetName string  `json:"target_name"`
	Type       string  `json:"type"`
	Confidence float64 `json:"confidence"`
}

// Sorts of records of entities. A name leads to the entity that it means.
const (
	sortEntity   = "entity"
	sortName     = "name"
	sortRelation = "relation"
)

type entities struct {
	*session
	cfg EntityConfig
}

func (s *Store) openEntities(call Call, c EntityConfig) *entities {
	return &entities{s.open(call, "ENTITY_MEMORY", c.Common, ""), c}
}

func (c EntityConfig) open(s *Store, call Call) (keeper, error) { return s.openEntities(call, c), nil }

// Entities keeps people, things and how they are related.
func (s *Store) Entities(ctx context.Context, c Call, cfg EntityConfig, in EntityInput) (out EntityOutput, err error) {
	op := operation(cfg.Operation, in.Operation, "")
	e := s.openEntities(c, cfg)
	out.Entities, out.Relationships = []Entity{}, []Relationship{}
	if done, err := attached(ctx, e, op, in.Ask, &out.Answer); done || err != nil {
		return out, err
	}
	var ids []string
	switch op {
	case "extract":
		if in.Content == "" {
			return out, required(op, "content")
		}
		if ids, err = e.takeContent(ctx, in.Content); err == nil {
			out.Stored = yes(len(ids) > 0)
		}
	case "get":
		if in.Name == "" {
			return out, required(op, "name")
		}
		var id string
		var found bool
		if _, found, err = e.getRecord(ctx, sortName, nameKey(in.Name), &id); found {
			ids = []string{id}
		}
	case "search":
		if in.Query == "" {
			return out, required(op, "query")
		}
		ids, err = e.search(ctx, in.Query, 20)
	case "merge":
		if len(in.IDs) < 2 {
			return out, fault.New(fault.InvalidInput, `"ids" must have at least two entities; the first is the one that stays`).With("path", "ids")
		}
		ids, err = e.merge(ctx, in.IDs)
	case "delete":
		if in.ID == "" {
			return out, required(op, "id")
		}
		err = e.drop(ctx, in.ID)
	default:
		return out, unknown(op, "extract", "get", "search", "merge", "delete", LoadContext, Remember)
	}
	if err != nil || len(ids) == 0 {
		return out, err
	}
	return out, e.tellEntities(ctx, &out, ids)
}

// nameKey is a name without what does not tell names apart.
func nameKey(name string) string { return strings.ToLower(strings.Join(strings.Fields(name), " ")) }

func entityRecord(e Entity) (store.MemoryRecord, error) {
	raw, err := body("entity", e)
	text := strings.Join(e.Aliases, "\n")
	for _, key := range sortedKeys(e.Attributes) {
		text += "\n" + e.Attributes[key]
	}
	return store.MemoryRecord{Sort: sortEntity, ID: e.ID, Body: raw, Weight: e.Confidence,
		Text: &store.MemoryText{Title: e.Name, Content: text, Extra: e.Type}}, err
}

func nameRecord(name, id string) (store.MemoryRecord, error) {
	raw, err := body("name", id)
	return store.MemoryRecord{Sort: sortName, ID: nameKey(name), Body: raw, Source: id}, err
}

func relationRecord(r Relationship) (store.MemoryRecord, error) {
	raw, err := body("relationship", r)
	return store.MemoryRecord{Sort: sortRelation, ID: digest(r.Source, r.Type, r.Target), Body: raw, Source: r.Source,
		Target: r.Target, Weight: r.Confidence}, err
}

// findEntities asks a model for the entities of a text, or the rules, also when the model fails.
func (x *session) findEntities(ctx context.Context, content string, types []string) foundEntities {
	if x.profile != "" && x.Model != nil {
		var found foundEntities
		text, err := x.Model(ctx, x.profile, entityPrompt(content, types))
		if err == nil {
			err = answer(text, &found)
		}
		if err == nil {
			return found
		}
		x.warn("the model found no entities; rules take its place", err)
	}
	found := ruleEntities(content)
	for i := range found.Entities {
		found.Entities[i].Type = wantedType(found.Entities[i].Type, types)
	}
	return found
}

// takeContent finds the entities of a text and stores those that are sure enough. It returns their ids.
func (e *entities) takeContent(ctx context.Context, content string) ([]string, error) {
	if len(content) > maxBytes {
		return nil, fault.Newf(fault.TooLarge, `"content" has %d bytes; a memory takes up to %d at once`, len(content), maxBytes).With("path", "content")
	}
	found := e.findEntities(ctx, content, e.cfg.EntityTypes)
	receipt, err := e.change(ctx, func(ctx context.Context, _ int64) (d draft, err error) {
		known := map[string]Entity{} // by name
		var ids []string
		for _, f := range found.Entities {
			kind := strings.ToLower(strings.TrimSpace(f.Type))
			if strings.TrimSpace(f.Name) == "" || f.Confidence < e.cfg.ConfidenceThreshold || f.Confidence > 1 ||
				!slices.Contains(e.cfg.EntityTypes, kind) {
				continue
			}
			if _, twice := known[nameKey(f.Name)]; twice {
				continue
			}
			entity := Entity{ID: "ent_" + digest(nameKey(f.Name)), Name: strings.TrimSpace(f.Name), Type: kind, Confidence: f.Confidence,
				Attributes: map[string]string{}}
			var id string
			if _, there, err := e.getRecord(ctx, sortName, nameKey(f.Name), &id); err != nil {
				return d, err
			} else if there {
				if _, _, err := e.getRecord(ctx, sortEntity, id, &entity); err != nil {
					return d, err
				}
				if f.Confidence > entity.Confidence {
					entity.Type, entity.Confidence = kind, f.Confidence
				}
			}
			if entity.Attributes == nil {
				entity.Attributes = map[string]string{}
			}
			for key, value := range f.Attributes { // order does not matter: each key by itself
				entity.Attributes[key] = value
			}
			entity.Mentions++
			known[nameKey(f.Name)] = entity
			if slices.Contains(ids, entity.ID) {
				continue
			}
			ids = append(ids, entity.ID)
			record, err := entityRecord(entity)
			if err != nil {
				return d, err
			}
			name, err := nameRecord(f.Name, entity.ID)
			if err != nil {
				return d, err
			}
			d.Put = append(d.Put, record, name)
		}
		for _, r := range found.Relationships {
			a, ok := known[nameKey(r.Source)]
			b, both := known[nameKey(r.Target)]
			if !ok || !both || a.ID == b.ID || r.Confidence < e.cfg.ConfidenceThreshold {
				continue
			}
			record, err := relationRecord(Relationship{Source: a.ID, Target: b.ID, SourceName: a.Name, TargetName: b.Name,
				Type: cmp.Or(strings.TrimSpace(r.Type), "related_to"), Confidence: min(r.Confidence, 1)})
			if err != nil {
				return d, err
			}
			d.Put = append(d.Put, record)
		}
		d.idle = len(d.Put) == 0
		d.Result, err = json.Marshal(ids)
		return d, err
	})
	if err != nil || receipt.Result == nil {
		return nil, err
	}
	var ids []string
	return ids, json.Unmarshal(receipt.Result, &ids)
}

// tellEntities fills the answer with entities and what relates them.
func (e *entities) tellEntities(ctx context.Context, out *EntityOutput, ids []string) error {
	records, err := e.list(ctx, store.MemoryQuery{Sort: sortEntity, IDs: ids})
	if err != nil {
		return err
	}
	all, err := readAll[Entity](records)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b Entity) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	out.Entities = append(out.Entities, all...)
	relations, err := e.list(ctx, store.MemoryQuery{Sort: sortRelation, Sources: ids, Targets: ids, Order: store.HeaviestFirst, Limit: 200})
	if err != nil {
		return err
	}
	related, err := readAll[Relationship](relations)
	out.Relationships = append(out.Relationships, related...)
	out.EntitySummary = e.summary(out.Entities, out.Relationships, 2000).Text
	out.Context = e.summary(out.Entities, out.Relationships, e.cfg.MaxContextChars).Text
	return err
}

// summary says what is known of entities, one to a line.
func (e *entities) summary(list []Entity, relations []Relationship, room int) Context {
	var told Context
	w := writing{room: room}
	for _, one := range list {
		text := fmt.Sprintf("%s (%s)", one.Name, one.Type)
		for _, key := range sortedKeys(one.Attributes) {
			text += fmt.Sprintf("; %s: %s", key, one.Attributes[key])
		}
		for _, r := range relations {
			if r.Source == one.ID {
				text += fmt.Sprintf("; %s %s", r.Type, r.TargetName)
			}
		}
		if w.line("%s", text) {
			told.Items++
		}
	}
	told.Text = w.String()
	return told
}

func (e *entities) search(ctx context.Context, query string, limit int) ([]string, error) {
	if version, err := e.version(ctx); err != nil || version < 0 {
		return nil, err
	}
	found, err := e.o.Records.Search(ctx, e.principal(),
		store.MemorySearch{Scope: e.scope.ID, Sort: sortEntity, Words: store.Query(query, maxTerms), Now: e.millis(), Limit: limit})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, r := range found.Records {
		ids = append(ids, r.ID)
	}
	return ids, nil
}

// merge makes one entity of several: the first, with the names, attributes and relations of all.
func (e *entities) merge(ctx context.Context, ids []string) ([]string, error) {
	_, err := e.change(ctx, func(ctx context.Context, _ int64) (d draft, err error) {
		records, err := e.list(ctx, store.MemoryQuery{Sort: sortEntity, IDs: ids})
		if err != nil {
			return d, err
		}
		all, err := readAll[Entity](records)
		if err != nil {
			return d, err
		}
		slices.SortStableFunc(all, func(a, b Entity) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
		if len(all) < 2 || all[0].ID != ids[0] {
			d.idle = true // a missing one leaves nothing to merge
			return d, nil
		}
		into := all[0]
		if into.Attributes == nil {
			into.Attributes = map[string]string{}
		}
		gone := map[string]bool{}
		for _, other := range all[1:] {
			gone[other.ID] = true
			into.Mentions += other.Mentions
			into.Confidence = max(into.Confidence, other.Confidence)
			into.Aliases = append(append(into.Aliases, other.Name), other.Aliases...)
			for key, value := range other.Attributes { // order does not matter: each key by itself
				if into.Attributes[key] == "" {
					into.Attributes[key] = value
				}
			}
			d.Delete = append(d.Delete, store.MemoryKey{Sort: sortEntity, ID: other.ID})
		}
		slices.Sort(into.Aliases)
		into.Aliases = slices.DeleteFunc(slices.Compact(into.Aliases), func(n string) bool { return nameKey(n) == nameKey(into.Name) })
		record, err := entityRecord(into)
		if err != nil {
			return d, err
		}
		d.Put = append(d.Put, record)
		for _, alias := range into.Aliases {
			name, err := nameRecord(alias, into.ID)
			if err != nil {
				return d, err
			}
			d.Put = append(d.Put, name)
		}
		return d, e.rejoin(ctx, &d, into, gone)
	})
	return ids[:1], err
}

// rejoin makes the relations of entities that are gone those of another.
func (e *entities) rejoin(ctx context.Context, d *draft, into Entity, gone map[string]bool) error {
	ids := sortedKeys(gone)
	relations, err := e.list(ctx, store.MemoryQuery{Sort: sortRelation, Sources: ids, Targets: ids})
	if err != nil {
		return err
	}
	for _, record := range relations {
		var r Relationship
		if err := read(record, &r); err != nil {
			return err
		}
		d.Delete = append(d.Delete, store.MemoryKey{Sort: sortRelation, ID: record.ID})
		if gone[r.Source] {
			r.Source, r.SourceName = into.ID, into.Name
		}
		if gone[r.Target] {
			r.Target, r.TargetName = into.ID, into.Name
		}
		if r.Source == r.Target {
			continue
		}
		moved, err := relationRecord(r)
		if err != nil {
			return err
		}
		d.Put = append(d.Put, moved)
	}
	return nil
}

// drop removes an entity with its names and relations.
func (e *entities) drop(ctx context.Context, id string) error {
	_, err := e.change(ctx, func(ctx context.Context, _ int64) (d draft, err error) {
		for _, q := range []store.MemoryQuery{{Sort: sortEntity, IDs: []string{id}}, {Sort: sortName, Sources: []string{id}},
			{Sort: sortRelation, Sources: []string{id}, Targets: []string{id}}} {
			records, err := e.list(ctx, q)
			if err != nil {
				return d, err
			}
			for _, r := range records {
				d.Delete = append(d.Delete, store.MemoryKey{Sort: r.Sort, ID: r.ID})
			}
		}
		d.idle = len(d.Delete) == 0
		return d, nil
	})
	return err
}

func (e *entities) context(ctx context.Context, query string) (Context, error) {
	var ids []string
	var err error
	if query != "" {
		ids, err = e.search(ctx, query, 20)
	}
	if err == nil && len(ids) == 0 {
		var records []store.MemoryRecord
		records, err = e.list(ctx, store.MemoryQuery{Sort: sortEntity, Order: store.NewestFirst, Limit: 20})
		for _, r := range records {
			ids = append(ids, r.ID)
		}
	}
	if err != nil || len(ids) == 0 {
		return Context{}, err
	}
	var out EntityOutput
	if err := e.tellEntities(ctx, &out, ids); err != nil {
		return Context{}, err
	}
	return e.summary(out.Entities, out.Relationships, e.cfg.MaxContextChars), nil
}

func (e *entities) remember(ctx context.Context, x Exchange) (bool, error) {
	ids, err := e.takeContent(ctx, x.text())
	return len(ids) > 0, err
}
