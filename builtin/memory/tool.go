package memory

import (
	"context"
	"encoding/json"

	"tandem/builtin/toolset"
	"tandem/memory"
	"tandem/node"
	"tandem/workflow"
)

type memoryToolConfig struct {
	Memory              string   `json:"memory" enum:"vector|documents|knowledge" doc:"What is searched: a vector database, a document store, or a knowledge base." zh:"检索的对象：向量数据库、文档存储或知识库。"`
	SessionID           string   `json:"session_id" required:"true" doc:"Whose memory it is: the session_id of the nodes that fill it." zh:"会话编号：与写入该记忆的节点的 session_id 相同。"`
	CollectionName      string   `json:"collection_name" with:"memory=documents" doc:"The collection that the documents are in." zh:"文档所在的集合。"`
	EmbeddingProfile    string   `json:"embedding_profile" names:"profile" with:"memory=vector" doc:"The profile whose embedding model makes vectors; without one words are compared." zh:"生成向量的配置档；省略时按词语比较。"`
	SimilarityThreshold *float64 `json:"similarity_threshold" range:"0..1" with:"memory=vector" doc:"How alike a text must be to be found, from 0 to 1." zh:"相似度下限（0 到 1）。"`
	MaxResults          int      `json:"max_results" range:"1..50" doc:"The most that one search finds." zh:"每次检索的最多结果数。"`
	toolset.Single
}

func (c *memoryToolConfig) Defaults() {
	c.Memory, c.CollectionName, c.MaxResults, c.ToolName, c.Approval = "vector", "documents", 5, "memory_search", "inherit"
	c.Description = "Searches what is remembered. Say in a few words what is looked for. Name what you use of it in square brackets by its id."
}

type memorySearchArgs struct {
	Query    string `json:"query" required:"true" doc:"What is looked for." zh:"查找的内容。"`
	Document string `json:"document" doc:"The document that is looked at; without it all." zh:"限定的文档；省略时为全部。"`
}

// found is what a search has found.
type found struct {
	ID      string  `json:"id,omitempty"`
	Content string  `json:"content"`
	Score   float64 `json:"score,omitempty"`
}

type memoryFinds struct {
	Results   []found         `json:"results"`
	Sources   []memory.Source `json:"sources"`
	Truncated bool            `json:"truncated"`
}

// memoryTool gives a model the search of a memory.
func memoryTool(m *memory.Store, of func(*node.Call) memory.Call) node.Kind {
	k := node.Define(
		node.About{
			Name: "TOOL.MEMORY_TOOL", Title: node.Says("Memory search tool", "记忆检索工具"),
			Description: node.Says("Lets a model search a memory: by meaning, by words, or for facts.", "让模型检索记忆：按语义、按词语或查找事实。"),
			Effect:      workflow.Idempotent,
			Keys:        toolset.Keys(),
			Examples: []node.Example{{
				Shows:  node.Says("Searches a memory in which nothing is kept yet.", "检索尚无内容的记忆。"),
				Config: `{"session_id": "handbook"}`,
				Input:  `{"function_args": {"query": "annual leave"}}`,
				Output: `{"result": {"result": {"results": [], "sources": [], "truncated": false}, "success": true, "error_message": "", "execution_time": "…", "cached": false, "results": [], "sources": [], "truncated": false}}`,
			}},
		},
		func(ctx context.Context, call *node.Call, cfg memoryToolConfig, in toolset.Input) (toolset.Output, error) {
			return toolset.Run(ctx, call, cfg.Fields(in), in, []toolset.Tool{cfg.tool(m, of(call))})
		}, func(p *node.Planning, c *memoryToolConfig) {
			if p.Has("embedding_profile") && c.Memory != "vector" && !p.Templated() {
				p.Warn(workflow.ProblemConfig, p.At("embedding_profile"), "embedding_profile does nothing here: only a vector database has vectors; remove it")
			}
		})
	k.Tools = func(_ context.Context, call *node.Call) ([]node.Tool, error) {
		cfg, err := node.Configuration[memoryToolConfig](call.Config)
		if err != nil {
			return nil, err
		}
		list := toolset.Offered(cfg.Fields(toolset.Input{}), []toolset.Tool{cfg.tool(m, memory.Call{})})
		for i := range list {
			list[i].Sources = true
		}
		return list, nil
	}
	return toolset.Kind(k)
}

func (c *memoryToolConfig) tool(m *memory.Store, call memory.Call) toolset.Tool {
	return toolset.New(c.ToolName, toolset.Reads, c.Description, func(ctx context.Context, args memorySearchArgs) (any, error) {
		items, scores, err := c.search(ctx, m, call, args)
		if err != nil {
			return nil, err
		}
		out := memoryFinds{Results: []found{}, Sources: []memory.Source{}}
		room := toolset.MaxResult / 2 // sources take room, too
		for i, item := range items {
			text, cut := toolset.FitJSON(item.Content, room/max(1, len(items)))
			out.Results = append(out.Results, found{ID: item.ID, Content: text, Score: scores[i]})
			out.Truncated = out.Truncated || cut
			if s, ok := memory.SourceOf(item); ok {
				out.Sources = append(out.Sources, s)
			}
		}
		return out, nil
	})
}

// search asks the memory, and tells its finds as items, whatever it keeps.
func (c *memoryToolConfig) search(ctx context.Context, m *memory.Store, call memory.Call, args memorySearchArgs) (items []memory.Item,
	scores []float64, err error) {
	ask, shared := memory.Ask{Operation: "search", Query: args.Query}, memory.Common{SessionID: c.SessionID, MaxContextChars: 1}
	switch c.Memory {
	case "documents":
		cfg := memory.DocumentConfig{}
		cfg.Defaults()
		cfg.Common, cfg.CollectionName, cfg.MaxResults = shared, c.CollectionName, c.MaxResults
		in := memory.DocumentInput{Ask: ask}
		if args.Document != "" {
			in.Filters, err = json.Marshal(map[string]string{"document_id": args.Document})
		}
		if err != nil {
			return nil, nil, err
		}
		out, err := m.Documents(ctx, call, cfg, in)
		for _, d := range out.Documents {
			source, err := json.Marshal(memory.Source{Document: d.DocumentID, Title: d.Title, End: len([]rune(d.Content))})
			if err != nil {
				return nil, nil, err
			}
			items = append(items, memory.Item{ID: d.DocumentID, Content: d.Content, Metadata: source})
		}
		return items, out.RelevanceScores, err
	case "knowledge":
		cfg := memory.KnowledgeConfig{}
		cfg.Defaults()
		cfg.Common = shared
		ask.Operation = "query"
		out, err := m.Knowledge(ctx, call, cfg, memory.KnowledgeInput{Ask: ask})
		for _, f := range out.Facts[:min(len(out.Facts), c.MaxResults)] {
			items, scores = append(items, memory.Item{ID: f.ID, Content: f.Subject + " " + f.Predicate + " " + f.Object}),
				append(scores, f.Confidence)
		}
		return items, scores, err
	}
	cfg := memory.VectorConfig{}
	cfg.Defaults()
	cfg.Common, cfg.EmbeddingProfile, cfg.SimilarityThreshold, cfg.MaxResults = shared, c.EmbeddingProfile,
		c.SimilarityThreshold, c.MaxResults
	in := memory.VectorInput{Ask: ask}
	if args.Document != "" {
		in.Filters, err = json.Marshal(map[string]string{"document": args.Document})
	}
	if err != nil {
		return nil, nil, err
	}
	out, err := m.Vectors(ctx, call, cfg, in)
	return out.Results, out.Scores, err
}
