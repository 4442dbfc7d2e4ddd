package builtin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/files"
	"tandem/llm"
	"tandem/memory"
	"tandem/node"
)

// memoryKinds are the ten memories as nodes of their own. What they do is in package memory; a node says for whom, and
// names what it does, so that doing it again changes nothing.
func memoryKinds(m *memory.Store, models *Models, files *files.Store) []node.Kind {
	if m == nil {
		return nil
	}
	call := memoryCalls{models}.of
	return []node.Kind{
		memoryKind(call, info("MEMORY.CONVERSATION_BUFFER", "Conversation buffer", "对话缓冲", "Keeps the last messages and summarises older ones.", "保存最近的消息，并把较早的消息归入摘要。"), m.Buffer),
		memoryKind(call, info("MEMORY.CONVERSATION_SUMMARY", "Conversation summary", "对话摘要", "Keeps one running summary of a conversation.", "维护一份持续更新的对话摘要。"), m.Summary),
		memoryKind(call, info("MEMORY.VECTOR_DATABASE", "Vector database", "向量数据库", "Keeps texts and finds them by meaning.", "保存文本，并按语义查找。"), m.Vectors),
		memoryKind(call, info("MEMORY.KEY_VALUE_STORE", "Key-value store", "键值存储", "Keeps values by key, with versions and expiry.", "按键保存值，支持版本和过期时间。"), m.KeyValues),
		memoryKind(call, info("MEMORY.DOCUMENT_STORE", "Document store", "文档存储", "Keeps documents and finds them by their words.", "保存文档，并支持全文检索。"), m.Documents, fileContent(files)),
		memoryKind(call, info("MEMORY.ENTITY_MEMORY", "Entity memory", "实体记忆", "Keeps people, things and how they are related.", "记住人、事物及其关系。"), m.Entities),
		memoryKind(call, info("MEMORY.EPISODIC_MEMORY", "Episodic memory", "情景记忆", "Keeps what happened, when, and with what outcome.", "记住发生了什么、何时发生、结果如何。"), m.Episodes),
		memoryKind(call, info("MEMORY.KNOWLEDGE_BASE", "Knowledge base", "知识库", "Keeps facts with how sure they are.", "保存带有置信度的事实。"), m.Knowledge),
		memoryKind(call, info("MEMORY.GRAPH_MEMORY", "Graph memory", "图记忆", "Keeps nodes and weighted relationships and walks through them.", "保存节点和带权关系，并在其中遍历。"), m.Graph),
		memoryKind(call, info("MEMORY.WORKING_MEMORY", "Working memory", "工作记忆", "Is the scratch space of one execution.", "一次执行的临时空间。"), m.Working),
	}
}

// memoryKind makes a kind of a memory's operations. What is in before, if anything, sees the input first.
func memoryKind[C, I, O any](of func(*node.Call) memory.Call, info node.About, do func(ctx context.Context, c memory.Call, cfg C, in I) (O, error), before ...func(ctx context.Context, call *node.Call, in *I) error) node.Kind {
	k := node.Define(info, func(ctx context.Context, call *node.Call, cfg C, in I) (out O, err error) {
		for _, f := range before {
			if err := f(ctx, call, &in); err != nil {
				return out, err
			}
		}
		return do(ctx, of(call), cfg, in)
	})
	run := k.Run
	k.Run = func(ctx context.Context, call *node.Call) (node.Outcome, error) {
		plain := *withoutFields(call, storageFields)
		if ctx.Value(usedKey{}) == nil && gjson.GetBytes(plain.Config, "operation").Str != "" {
			// What comes from the node before may have an operation of its own, which is not meant.
			plain.Input = object(slices.DeleteFunc(members(plain.Input), func(m member) bool { return m.key == "operation" }))
		}
		plain.Input = ownFields(info.Name, plain.Config, plain.Input)
		return run(ctx, &plain)
	}
	return k
}

// usedKey marks the runs of an attached node: the node that it is attached to says what it does, whatever it does on its own.
type usedKey struct{}

// memoryCalls tell memories who calls, and lend them the models that the caller may use.
type memoryCalls struct{ models *Models }

func (x memoryCalls) of(call *node.Call) memory.Call {
	c := memory.Call{
		Workspace: call.Workspace, User: call.UserID, Workflow: call.WorkflowID, Node: call.NodeID, Execution: call.ExecutionID,
		Once: effectKey(call), Now: call.Now, Language: call.Language,
		Warn: func(message string, err error) {
			if call.Log != nil {
				call.Log(node.Warn, message, map[string]any{"error": fault.From(err).Message})
			}
		},
	}
	if call.Clock != nil {
		c.Now = call.Clock()
	}
	if x.models == nil {
		return c
	}
	c.Model = func(ctx context.Context, profile string, p memory.Prompt) (string, error) {
		done, err := x.models.ask(ctx, call, profile, llm.Request{JSON: p.JSON, Messages: []llm.Message{{Role: llm.System, Content: p.System}, {Role: llm.User, Content: p.User}}})
		return done.Message.Content, err
	}
	c.Embed = func(ctx context.Context, profile string, texts []string) ([][]float32, error) {
		return x.models.embed(ctx, call, profile, texts)
	}
	return c
}

// embed turns texts into vectors with the embedding model of a profile, and counts what that has used.
func (m *Models) embed(ctx context.Context, call *node.Call, id string, texts []string) ([][]float32, error) {
	profile, err := m.profile(ctx, call, id)
	if err != nil {
		return nil, err
	}
	provider, err := m.provider(ctx, call, profile)
	if err != nil {
		return nil, err
	}
	embedder, ok := provider.(llm.Embedder)
	if !ok || profile.EmbeddingModel == "" {
		return nil, fault.Newf(fault.Unsupported, `the profile %q cannot turn texts into vectors; choose one with an "embedding_model", or none`, id).With("path", "configurations.embedding_profile")
	}
	vectors, used, err := embedder.Embed(ctx, profile.EmbeddingModel, texts)
	if err != nil {
		return nil, failedCall(err)
	}
	if call.Used != nil {
		call.Used(node.Usage{InputTokens: used.InputTokens, OutputTokens: used.OutputTokens, CachedTokens: used.CachedTokens, Credits: float64(profile.Price.Cost(used)) / 1e6})
	}
	return vectors, nil
}

// storageFields are configurations of older files that say where a memory is kept. It is kept here. read-only
var storageFields = []string{"storage_backend", "connection_config", "database_provider", "database_url", "table_name", "graph_database"}

// withoutFields is a call without configurations that are of no use any more.
func withoutFields(call *node.Call, names []string) *node.Call {
	all := members(call.Config)
	kept := slices.DeleteFunc(slices.Clone(all), func(m member) bool { return slices.Contains(names, m.key) })
	if len(kept) == len(all) {
		return call
	}
	plain := *call
	plain.Config = object(kept)
	return &plain
}

// ownFields leaves of an input what the operation reads: the rest belongs to other nodes, and may have the same names.
func ownFields(kind string, config, input json.RawMessage) json.RawMessage {
	op := memory.Operation(gjson.GetBytes(config, "operation").Str, gjson.GetBytes(input, "operation").Str)
	names, known := memory.Fields(strings.TrimPrefix(kind, "MEMORY."), op)
	if !known {
		return input
	}
	return object(slices.DeleteFunc(members(input), func(m member) bool { return !slices.Contains(names, m.key) }))
}

// maxDocumentFile is how large a file may be whose text becomes a document; the text itself has a limit of its own.
const maxDocumentFile = 32 << 20

// fileContent makes the content of a document that is given as a file.
func fileContent(store *files.Store) func(ctx context.Context, call *node.Call, in *memory.DocumentInput) error {
	return func(ctx context.Context, call *node.Call, in *memory.DocumentInput) error {
		if isNull(in.File) || in.Content != nil {
			return nil
		}
		source, err := openFile(ctx, store, call, in.File, "file", maxDocumentFile)
		if err != nil {
			return err
		}
		data, err := source.readAll(ctx, maxDocumentFile)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, textTime)
		defer cancel()
		text, _, cut, err := documentText(ctx, formatOf(source.name), data)
		if err != nil {
			return err
		}
		if cut {
			return fault.Newf(fault.TooLarge, "the text of %q is too long to be kept as one document", source.name).With("path", "file")
		}
		in.Content = &text
		if in.Title == nil {
			in.Title = &source.name
		}
		return nil
	}
}
