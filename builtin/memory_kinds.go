package builtin

import (
	"context"
	"encoding/json"
	"slices"

	"tandem/fault"
	"tandem/files"
	"tandem/memory"
	"tandem/node"
)

// memoryKinds are the ten memories as nodes of their own. What they do is in package memory; a node says for whom, and
// names what it does, so that doing it again changes nothing.
func memoryKinds(m *memory.Store, files *files.Store) []node.Kind {
	if m == nil {
		return nil
	}
	return []node.Kind{
		memoryKind(info("MEMORY.CONVERSATION_BUFFER", "Conversation buffer", "对话缓冲", "Keeps the last messages and summarises older ones.", "保存最近的消息，并把较早的消息归入摘要。"), m.Buffer),
		memoryKind(info("MEMORY.CONVERSATION_SUMMARY", "Conversation summary", "对话摘要", "Keeps one running summary of a conversation.", "维护一份持续更新的对话摘要。"), m.Summary),
		memoryKind(info("MEMORY.VECTOR_DATABASE", "Vector database", "向量数据库", "Keeps texts and finds them by meaning.", "保存文本，并按语义查找。"), m.Vectors),
		memoryKind(info("MEMORY.KEY_VALUE_STORE", "Key-value store", "键值存储", "Keeps values by key, with versions and expiry.", "按键保存值，支持版本和过期时间。"), m.KeyValues),
		memoryKind(info("MEMORY.DOCUMENT_STORE", "Document store", "文档存储", "Keeps documents and finds them by their words.", "保存文档，并支持全文检索。"), m.Documents, fileContent(files)),
		memoryKind(info("MEMORY.ENTITY_MEMORY", "Entity memory", "实体记忆", "Keeps people, things and how they are related.", "记住人、事物及其关系。"), m.Entities),
		memoryKind(info("MEMORY.EPISODIC_MEMORY", "Episodic memory", "情景记忆", "Keeps what happened, when, and with what outcome.", "记住发生了什么、何时发生、结果如何。"), m.Episodes),
		memoryKind(info("MEMORY.KNOWLEDGE_BASE", "Knowledge base", "知识库", "Keeps facts with how sure they are.", "保存带有置信度的事实。"), m.Knowledge),
		memoryKind(info("MEMORY.GRAPH_MEMORY", "Graph memory", "图记忆", "Keeps nodes and weighted relationships and walks through them.", "保存节点和带权关系，并在其中遍历。"), m.Graph),
		memoryKind(info("MEMORY.WORKING_MEMORY", "Working memory", "工作记忆", "Is the scratch space of one execution.", "一次执行的临时空间。"), m.Working),
	}
}

// memoryKind makes a kind of a memory's operations. What is in before, if anything, sees the input first.
func memoryKind[C, I, O any](info node.Info, do func(ctx context.Context, c memory.Call, cfg C, in I) (O, error), before ...func(ctx context.Context, call *node.Call, in *I) error) node.Kind {
	k := node.Define(info, func(ctx context.Context, call *node.Call, cfg C, in I) (out O, err error) {
		for _, f := range before {
			if err := f(ctx, call, &in); err != nil {
				return out, err
			}
		}
		return do(ctx, memoryCall(call), cfg, in)
	})
	run := k.Run
	k.Run = func(ctx context.Context, call *node.Call) (node.Outcome, error) {
		plain := *call
		plain.Config = withoutStorage(call.Config)
		return run(ctx, &plain)
	}
	return k
}

func memoryCall(call *node.Call) memory.Call {
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
	return c
}

// storageFields are configurations of older files that say where a memory is kept. It is kept here. read-only
var storageFields = []string{"storage_backend", "connection_config", "database_provider", "database_url", "table_name", "graph_database"}

// withoutStorage leaves out what is of no use any more.
func withoutStorage(config json.RawMessage) json.RawMessage {
	all := members(config)
	kept := slices.DeleteFunc(slices.Clone(all), func(m member) bool { return slices.Contains(storageFields, m.key) })
	if len(kept) == len(all) {
		return config
	}
	return object(kept)
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
