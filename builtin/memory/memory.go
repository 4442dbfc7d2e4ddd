// Package memory holds the ten memories as kinds of nodes (MEMORY). What they keep and find is in package tandem/memory; a node says for
// whom, and names what it does, so that doing it again changes nothing.
//
// The package that puts a program together imports it; nothing else does.
package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/document"
	"tandem/builtin/fileref"
	"tandem/builtin/models"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/files"
	"tandem/llm"
	"tandem/memory"
	"tandem/node"
	"tandem/workflow"
)

// Deps are what the kinds of this package need of the program that they are part of.
type Deps struct {
	// Memories are what the nodes keep their records in; nil: there are no such kinds.
	Memories *memory.Store
	// Models are how language models are reached; nil: there are none, and memories do what they can without.
	Models *models.Models
	// Files are the files of the workspaces; nil: there are none, and a document cannot be given as a file.
	Files *files.Store
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
	m := d.Memories
	if m == nil {
		return nil
	}
	call := memoryCalls{d.Models}.of
	return []node.Kind{
		memoryKind(call, node.About{
			Name: "MEMORY.CONVERSATION_BUFFER", Title: node.Says("Conversation buffer", "对话缓冲"),
			Description: node.Says("Keeps the last messages and summarises older ones.", "保存最近的消息，并把较早的消息归入摘要。"),
			Examples: []node.Example{
				{
					Shows:  node.Says("Adds a message.", "添加一条消息。"),
					Config: `{"session_id": "ann", "operation": "add"}`,
					Input:  `{"message": "I moved to Bern.", "role": "user"}`,
					Output: `{"result": {"success": true, "operation": "add", "context": "user: I moved to Bern.", "stored": true, "messages": [{"role": "user", "content": "I moved to Bern.", "timestamp": "…"}], "total_messages": 1, "buffer_full": false, "summary": ""}}`,
				},
			},
		}, m.Buffer, nil),
		memoryKind(call, node.About{
			Name: "MEMORY.CONVERSATION_SUMMARY", Title: node.Says("Conversation summary", "对话摘要"),
			Description: node.Says("Keeps one running summary of a conversation.", "维护一份持续更新的对话摘要。"),
			Examples: []node.Example{
				{
					Shows:   node.Says("Keeps a summary, which a model writes anew with every message.", "维护由模型逐条更新的摘要。"),
					Config:  `{"session_id": "ann", "operation": "update", "update_every": 1, "llm_profile": "writer"}`,
					Input:   `{"messages": [{"role": "user", "content": "I moved to Bern."}]}`,
					Replies: []string{`The user has moved to Bern.`},
					Output:  `{"result": {"success": true, "operation": "update", "context": "Summary of the conversation so far: The user has moved to Bern.", "stored": true, "summary": "The user has moved to Bern.", "covered_messages": 1, "pending_messages": 0, "updated_at": "…"}}`,
				},
			},
		}, m.Summary, nil),
		memoryKind(call, node.About{
			Name: "MEMORY.VECTOR_DATABASE", Title: node.Says("Vector database", "向量数据库"),
			Description: node.Says("Keeps texts and finds them by meaning.", "保存文本，并按语义查找。"),
			Examples: []node.Example{
				{
					Shows:  node.Says("Keeps a text that can be found by its meaning.", "保存可按语义查找的文本。"),
					Config: `{"session_id": "ann", "operation": "store", "embedding_profile": "writer"}`,
					Input:  `{"items": [{"id": "a", "content": "Apples are red."}]}`,
					Output: `{"result": {"success": true, "operation": "store", "context": "- Apples are red.", "stored": true, "results": [{"id": "a", "content": "Apples are red."}], "scores": [], "total_results": 1}}`,
				},
			},
		}, m.Vectors, planVectors),
		memoryKind(call, node.About{
			Name: "MEMORY.KEY_VALUE_STORE", Title: node.Says("Key-value store", "键值存储"),
			Description: node.Says("Keeps values by key, with versions and expiry.", "按键保存值，支持版本和过期时间。"),
			Examples: []node.Example{
				{
					Shows:  node.Says("Keeps a value by its key.", "按键保存值。"),
					Config: `{"session_id": "ann", "operation": "set"}`,
					Input:  `{"key": "city", "value": "Bern"}`,
					Output: `{"result": {"success": true, "operation": "set", "context": "city = \"Bern\"", "stored": true, "value": "Bern", "exists": true, "keys": [], "version": 1}}`,
				},
			},
		}, m.KeyValues, planModelless),
		memoryKind(call, node.About{
			Name: "MEMORY.DOCUMENT_STORE", Title: node.Says("Document store", "文档存储"),
			Description: node.Says("Keeps documents and finds them by their words.", "保存文档，并支持全文检索。"),
			Examples: []node.Example{
				{
					Shows:  node.Says("Keeps a document.", "保存文档。"),
					Config: `{"session_id": "ann", "operation": "store"}`,
					Input:  `{"document_id": "lease", "title": "Lease", "content": "The lease ends in May.", "tags": ["home"]}`,
					Output: `{"result": {"success": true, "operation": "store", "context": "[Lease]\nThe lease ends in May.", "stored": true, "documents": [{"document_id": "lease", "title": "Lease", "content": "The lease ends in May.", "tags": ["home"]}], "total_count": 1, "relevance_scores": [], "search_metadata": {"collection": "documents"}}}`,
				},
			},
		}, m.Documents, planModelless, fileContent(d.Files)),
		memoryKind(call, node.About{
			Name: "MEMORY.ENTITY_MEMORY", Title: node.Says("Entity memory", "实体记忆"),
			Description: node.Says("Keeps people, things and how they are related.", "记住人、事物及其关系。"),
			Examples: []node.Example{
				{
					Shows:  node.Says("Remembers who a text is about.", "记住文本涉及的人和事物。"),
					Config: `{"session_id": "ann", "operation": "extract"}`,
					Input:  `{"content": "Ada Lovelace works at Acme Corp."}`,
					Output: `{"result": {"success": true, "operation": "extract", "context": "Ada Lovelace (person); works_at Acme Corp\nAcme Corp (organization)", "stored": true, "entities": [{"id": "…", "name": "Ada Lovelace", "type": "person", "confidence": 0.85, "mentions": 1}, {"id": "…", "name": "Acme Corp", "type": "organization", "confidence": 0.9, "mentions": 1}], "relationships": [{"source": "…", "target": "…", "source_name": "Ada Lovelace", "target_name": "Acme Corp", "type": "works_at", "confidence": 0.85}], "entity_summary": "Ada Lovelace (person); works_at Acme Corp\nAcme Corp (organization)"}}`,
				},
			},
		}, m.Entities, planEntities),
		memoryKind(call, node.About{
			Name: "MEMORY.EPISODIC_MEMORY", Title: node.Says("Episodic memory", "情景记忆"),
			Description: node.Says("Keeps what happened, when, and with what outcome.", "记住发生了什么、何时发生、结果如何。"),
			Examples: []node.Example{
				{
					Shows:  node.Says("Remembers what happened.", "记住发生的事情。"),
					Config: `{"session_id": "ann", "operation": "store", "retention_period": "100 years"}`,
					Input:  `{"actor": "Ann", "action": "moved", "object": "to Bern", "timestamp": "2026-05-01T10:00:00Z", "importance": 0.9}`,
					Output: `{"result": {"success": true, "operation": "store", "context": "2026-05-01T10:00:00Z Ann moved to Bern", "stored": true, "episodes": [{"id": "…", "actor": "Ann", "action": "moved", "object": "to Bern", "importance": 0.9, "timestamp": "2026-05-01T10:00:00Z"}], "timeline": [{"timestamp": "2026-05-01T10:00:00Z", "text": "Ann moved to Bern"}], "context_summary": "2026-05-01T10:00:00Z Ann moved to Bern"}}`,
				},
			},
		}, m.Episodes, planEpisodes),
		memoryKind(call, node.About{
			Name: "MEMORY.KNOWLEDGE_BASE", Title: node.Says("Knowledge base", "知识库"),
			Description: node.Says("Keeps facts with how sure they are.", "保存带有置信度的事实。"),
			Examples: []node.Example{
				{
					Shows:  node.Says("Keeps a fact.", "保存事实。"),
					Config: `{"session_id": "ann", "operation": "store"}`,
					Input:  `{"facts": [{"subject": "Bern", "predicate": "is the capital of", "object": "Switzerland", "domain": "general", "confidence": 0.9}]}`,
					Output: `{"result": {"success": true, "operation": "store", "context": "- Bern is the capital of Switzerland (0.90)", "stored": true, "facts": [{"id": "…", "subject": "Bern", "predicate": "is the capital of", "object": "Switzerland", "confidence": 0.9, "domain": "general"}], "knowledge_summary": "- Bern is the capital of Switzerland (0.90)", "related_concepts": ["Bern", "Switzerland"]}}`,
				},
			},
		}, m.Knowledge, planKnowledge),
		memoryKind(call, node.About{
			Name: "MEMORY.GRAPH_MEMORY", Title: node.Says("Graph memory", "图记忆"),
			Description: node.Says("Keeps nodes and weighted relationships and walks through them.", "保存节点和带权关系，并在其中遍历。"),
			Examples: []node.Example{
				{
					Shows:  node.Says("Adds a relationship and walks through it.", "添加关系并遍历。"),
					Config: `{"session_id": "ann", "operation": "add_and_query"}`,
					Input:  `{"relationships": [{"source": "bern", "target": "switzerland", "type": "part_of", "weight": 0.9}], "start_node": "bern"}`,
					Output: `{"result": {"success": true, "operation": "add_and_query", "context": "bern -part_of- switzerland (0.90)", "stored": true, "paths": [{"nodes": ["bern", "switzerland"], "relationships": ["part_of"], "strength": 0.9}], "connected_nodes": [{"node_id": "switzerland", "type": "concept", "distance": 1, "connection_strength": 0.9}], "relationship_summary": "bern -part_of- switzerland (0.90)"}}`,
				},
			},
		}, m.Graph, nil),
		memoryKind(call, node.About{
			Name: "MEMORY.WORKING_MEMORY", Title: node.Says("Working memory", "工作记忆"),
			Description: node.Says("Is the scratch space of one execution.", "一次执行的临时空间。"),
			Examples: []node.Example{
				{
					Shows:  node.Says("Notes something for later nodes of the same execution.", "为同一次执行中的后续节点做记录。"),
					Config: `{"operation": "store"}`,
					Input:  `{"key": "city", "value": "Bern", "importance": 0.9}`,
					Output: `{"result": {"success": true, "operation": "store", "context": "city = \"Bern\"", "stored": true, "current_state": {"city": "Bern"}, "recent_items": [{"key": "city", "value": "Bern", "importance": 0.9, "updated": "…"}], "operation_result": {"key": "city", "stored": true}, "memory_stats": {"items": 1, "capacity": 100, "evicted": 0}}}`,
				},
			},
		}, m.Working, planModelless),
		memoryTool(m, call),
	}
}

// memoryKind makes a kind of a memory's operations. What is in before, if anything, sees the input first.
func memoryKind[C, I, O any](of func(*node.Call) memory.Call, about node.About,
	do func(ctx context.Context, c memory.Call, cfg C, in I) (O, error), plan func(p *node.Planning, cfg *C),
	before ...func(ctx context.Context, call *node.Call, in *I) error) node.Kind {
	var plans []func(p *node.Planning, cfg *C)
	if plan != nil {
		plans = append(plans, plan)
	}
	about.Effect, about.Keys = workflow.Idempotent, memoryKeys() // record ids are derived, so storing twice stores once
	k := node.Define(about, func(ctx context.Context, call *node.Call, cfg C, in I) (out O, err error) {
		for _, f := range before {
			if err := f(ctx, call, &in); err != nil {
				return out, err
			}
		}
		return do(ctx, of(call), cfg, in)
	}, plans...)
	run := k.Run
	k.Run = func(ctx context.Context, call *node.Call) (node.Outcome, error) {
		plain := *call
		if !node.IsDirected(ctx) && gjson.GetBytes(plain.Config, "operation").Str != "" {
			// What comes from the node before may have an operation of its own, which is not meant.
			plain.Input = values.Object(slices.DeleteFunc(values.Members(plain.Input),
				func(m values.Member) bool { return m.Key == "operation" }))
		}
		plain.Input = ownFields(about.Name, plain.Config, plain.Input)
		return run(ctx, &plain)
	}
	return k
}

// memoryCalls tell memories who calls, and lend them the models that the caller may use.
type memoryCalls struct{ models *models.Models }

func (x memoryCalls) of(call *node.Call) memory.Call {
	c := memory.Call{
		Workspace: call.Workspace, User: call.UserID, Workflow: call.WorkflowID, Node: call.NodeID, Execution: call.ExecutionID,
		Once: call.EffectKey(), Now: call.Time(), Language: call.Language,
		Warn: func(message string, err error) {
			if call.Log != nil {
				call.Log(node.Warn, message, map[string]any{"error": fault.From(err).Message})
			}
		},
	}
	if x.models == nil {
		return c
	}
	c.Model = func(ctx context.Context, profile string, p memory.Prompt) (string, error) {
		done, err := x.models.Ask(ctx, call, profile, llm.Request{JSON: p.JSON,
			Messages: []llm.Message{{Role: llm.System, Content: p.System}, {Role: llm.User, Content: p.User}}})
		return done.Message.Content, err
	}
	c.Embed = func(ctx context.Context, profile string, texts []string) ([][]float32, error) {
		return x.models.Embed(ctx, call, profile, texts)
	}
	return c
}

// ownFields leaves of an input what the operation reads: the rest belongs to other nodes, and may have the same names.
func ownFields(kind string, config, input json.RawMessage) json.RawMessage {
	op := memory.Operation(gjson.GetBytes(config, "operation").Str, gjson.GetBytes(input, "operation").Str)
	names, known := memory.Fields(strings.TrimPrefix(kind, "MEMORY."), op)
	if !known {
		return input
	}
	return values.Object(slices.DeleteFunc(values.Members(input), func(m values.Member) bool { return !slices.Contains(names, m.Key) }))
}

// maxDocumentFile is how large a file may be whose text becomes a document; the text itself has a limit of its own.
const maxDocumentFile = 32 << 20

// fileContent makes the content of a document that is given as a file.
func fileContent(store *files.Store) func(ctx context.Context, call *node.Call, in *memory.DocumentInput) error {
	return func(ctx context.Context, call *node.Call, in *memory.DocumentInput) error {
		if values.IsNull(in.File) || in.Content != nil {
			return nil
		}
		source, err := fileref.Open(ctx, store, call, in.File, "file", maxDocumentFile)
		if err != nil {
			return err
		}
		data, err := source.ReadAll(ctx, maxDocumentFile)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, document.TextTime)
		defer cancel()
		text, _, cut, err := document.Text(ctx, document.FormatOf(source.Name), data)
		if err != nil {
			return err
		}
		if cut {
			return fault.Newf(fault.TooLarge, "the text of %q is too long to be kept as one document", source.Name).With("path", "file")
		}
		in.Content = &text
		if in.Title == nil {
			in.Title = &source.Name
		}
		return nil
	}
}

func memoryKeys() []node.Key {
	return []node.Key{{Name: "result", Meaning: node.Says("What was found, stored or removed; the fields depend on the operation.", "查到、保存或删除的内容；字段取决于操作。")}}
}

// planModelless is for memories that have no use for a model.
func planModelless[C any](p *node.Planning, _ *C) {
	if p.Has("llm_profile") {
		p.Warn(workflow.ProblemConfig, p.At("llm_profile"), "llm_profile does nothing here: %s asks no model; remove it", p.Kind())
	}
}

func planVectors(p *node.Planning, c *memory.VectorConfig) {
	planModelless(p, c)
	if c.SimilarityThreshold != nil && *c.SimilarityThreshold > memory.LocalLikeness && !p.Has("embedding_profile") && !p.Templated() {
		p.Warn(node.ProblemNeedsModel, p.At("similarity_threshold"), "similarity_threshold %g is for an embedding model: without embedding_profile only words are compared, and texts about the same seldom reach %g; leave it out (%g), or set embedding_profile to a profile with an embedding_model",
			*c.SimilarityThreshold, memory.LocalLikeness, memory.LocalThreshold)
	}
}

// planConfidence warns of a threshold that nothing reaches without a model.
func planConfidence(p *node.Planning, threshold float64) {
	if threshold > memory.RuleConfidence && !p.Has("llm_profile") && !p.Templated() {
		p.Warn(node.ProblemNeedsModel, p.At("confidence_threshold"), "confidence_threshold %g is more than the rules are sure of, which is %g at most; lower it, or set llm_profile to have a model look", threshold, memory.RuleConfidence)
	}
}

func planKnowledge(p *node.Planning, c *memory.KnowledgeConfig) {
	planConfidence(p, c.ConfidenceThreshold)
}

func planEntities(p *node.Planning, c *memory.EntityConfig) {
	planConfidence(p, c.ConfidenceThreshold)
	if p.Has("llm_profile") || p.Templated() {
		return
	}
	for i, item := range p.Items("entity_types") {
		if item.Type == gjson.String && !node.Dynamic(item) && !memory.RulesFind(item.Str) {
			p.Warn(node.ProblemNeedsModel, fmt.Sprintf("%s[%d]", p.At("entity_types"), i), "without a model no entities of the type %q are found; set llm_profile, or use person, organization, location, product, project, milestone or concept", item.Str)
		}
	}
}

func planEpisodes(p *node.Planning, c *memory.EpisodicConfig) {
	planModelless(p, c)
	for _, period := range []struct{ name, text string }{{"retention_period", c.RetentionPeriod},
		{"temporal_context_window", c.TemporalContextWindow}} {
		if period.text == "" {
			continue
		}
		if err := memory.CheckPeriod(period.name, period.text); err != nil {
			p.Refuse(workflow.ProblemConfig, p.At(period.name), "%s", strings.TrimSpace(fault.From(err).Message))
		}
	}
}
