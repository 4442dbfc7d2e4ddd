// Package builtin holds the kinds of nodes that need no vendor: the flow of a graph, the shape of data, models with their tools
// and memories, questions to people, tasks of agents, and the small calls that other parts are made of.
//
// A kind is one file: its texts, its configuration, what it does. Only two are led by a program and so have many steps, with files
// of their own: the turn of a model (ai_*.go) and the task of an agent (task*.go), of which package agent decides what is next. The
// value_*.go files are what kinds share: reading lists and paths, comparing values, handing an input on. What a definition may contain is checked
// before anything runs, by what a kind says of itself (its fields, and its plan); when it runs it checks again only what a placeholder or a
// template can still get wrong.
//
// Nothing here opens a connection or a file by itself: calls of services go through the guarded client, files through the
// call and the files directory. Time that decides anything comes with the call, and conditions are evaluated by it.
// The package that puts a program together imports builtin; nothing else does.
package builtin

import (
	"slices"

	"tandem/database"
	"tandem/files"
	"tandem/mcp"
	"tandem/memory"
	"tandem/node"
	"tandem/objectstore"
	"tandem/outbound"
	"tandem/text"
)

// Options are what kinds need of the program that they are part of.
type Options struct {
	// HTTP is how they call services; nil means a client that reaches public addresses only.
	HTTP *outbound.Client
	// Files are the files of the workspaces; nil: there are none, and kinds that need them say so.
	Files *files.Store
	// Databases are the connections to databases; nil: there are none, and kinds that need them say so.
	Databases *database.Pools
	// ObjectStores are where files can be put, by the name that a node gives as its target; the vendors' packages have them.
	ObjectStores map[string]objectstore.Store
	// Models are how language models are reached; nil: there are none, and no kinds that speak with one.
	Models *Models
	// Scripts is what the operator allows of host processes; nil: none.
	Scripts *Scripts
	// Callbacks makes the addresses that services call back; nil: nobody listens.
	Callbacks Callbacks
	// Memories are what memory nodes keep their records in; nil: there are no such nodes.
	Memories *memory.Store
	// Tools are the tools of MCP servers, Agents what tasks have to know; nil: there are none, and no kinds that use them.
	Tools  *mcp.Pool
	Agents Agents
	// Users are who can be asked; nil: nobody knows, and what questions name is taken as it is.
	Users Users
}

// Kinds lists every kind of this package.
func Kinds(o Options) []node.Kind {
	if o.HTTP == nil {
		o.HTTP = outbound.New(outbound.Options{})
	}
	return append(slices.Concat(agents(o.Models, o.Files, o.Tools), taskKinds(o), memoryKinds(o.Memories, o.Models, o.Files), mcpTools(o.Tools)),
		dataFormatting(),
		dataTransformation(),
		dataValidation(),
		databaseOperation(o.Databases),
		databaseQuery(o.Databases, o.Models),
		executeScript(o.Scripts),
		fileDownload(o.HTTP, o.Files),
		fileOperation(o.Files),
		fileUpload(o.HTTP, o.Files, o.ObjectStores),
		httpRequest(o.HTTP),
		runCode(),
		webhookCall(o.HTTP, o.Callbacks),
		webSearch(o.HTTP),
		brief(callEmpty()),
		callFacts(o.Models),
		callSlot(o.Models),
		callSummary(o.Models),
		brief(flowDelay()),
		flowFilter(),
		brief(flowForEach()),
		brief(flowIf()),
		brief(flowLoop()),
		flowMerge(),
		flowSort(),
		flowSplit(),
		brief(flowSubWorkflow()),
		brief(flowSwitch(o.Models)),
		brief(flowTimeout()),
		brief(flowWait()),
		brief(flowWhile()),
		knowsPeople(o.Users, discordInteraction()),
		knowsPeople(o.Users, formSubmission()),
		knowsPeople(o.Users, gmailInteraction()),
		knowsPeople(o.Users, inAppApproval()),
		knowsPeople(o.Users, manualReview()),
		knowsPeople(o.Users, outlookInteraction()),
		knowsPeople(o.Users, slackInteraction()),
		knowsPeople(o.Users, teamsInteraction()),
		knowsPeople(o.Users, telegramInteraction()),
		toolSet(askedAlone(codeTool())),
		toolSet(askedAlone(httpClient(o.HTTP))),
		toolSet(askedAlone(fileProcessor(o.Files))),
		toolSet(askedAlone(imageProcessor(o.Files, o.Models))),
		brief(triggerManual()),
	)
}

// toolSet marks a kind that calls tools: a node of it that stands alone has the fields of what the tool returned as its own.
func toolSet(k node.Kind) node.Kind {
	k.Publishes = "result"
	return k
}

// brief marks a kind whose runs are over at once.
func brief(k node.Kind) node.Kind {
	k.Brief = true
	return k
}

// says is a text in both languages.
func says(en, zh string) node.Text { return text.Beside(en, zh) }

// meaning is a field of an input or an output, and what it means.
func meaning(name, en, zh string) node.Value {
	return node.Value{Name: name, Meaning: says(en, zh)}
}

// handedOn are the fields of the input that a kind hands on.
func handedOn() node.Value {
	return meaning("*", "Whatever else the input has.", "输入的其余内容。")
}

// handsOn are the inputs of kinds that hand on whatever they are given.
func handsOn() []node.Value {
	return []node.Value{meaning("*", "Anything; it is handed on.", "任意内容，将原样传递。")}
}

// listInputs are the input of kinds that work on a list.
func listInputs() []node.Value {
	return []node.Value{meaning("*", "A list: at items_path, under a usual name such as data or items, or the only one there is.", "列表：位于 items_path、常用名称（如 data、items）之下，或唯一的列表。")}
}
