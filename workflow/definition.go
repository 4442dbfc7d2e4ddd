package workflow

import (
	"encoding/json"
	"strings"
)

// Definition is a workflow as its author wrote it: the shape of the file, after older spellings were brought to
// today's. It is plain data; [Compile] makes a [Graph] of it.
type Definition struct {
	Metadata    Metadata     `json:"metadata"`
	Nodes       []Node       `json:"nodes"`
	Connections []Connection `json:"connections"`
	// Triggers names the TRIGGER nodes that can start the workflow. Empty means all enabled ones.
	Triggers []string `json:"triggers"`
	// Notes are what authors write beside the nodes. They change nothing in a run and are part of a revision.
	Notes []Note `json:"notes,omitempty"`
	// Tests are those that stand in the file ("tandem test"). They change nothing in a run and are part of a revision.
	Tests []Test `json:"tests,omitempty"`
}

// Note is a remark on the canvas of an editor.
type Note struct {
	ID       string    `json:"id"`
	Text     string    `json:"text"`
	Position *Position `json:"position,omitempty"`
	// Width and Height are those of its frame; zero leaves them to the editor.
	Width  float64 `json:"width,omitempty"`
	Height float64 `json:"height,omitempty"`
}

// Metadata describes a workflow. The fields that the server owns are read from files and ignored on write; they are
// not part of a revision.
type Metadata struct {
	ID          string   `json:"id,omitempty"`
	Name        string   `json:"name"`
	IconURL     string   `json:"icon_url,omitempty"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	// Version is the author's label; revisions are counted apart from it.
	Version        string   `json:"version"`
	ParentWorkflow string   `json:"parent_workflow,omitempty"`
	Settings       Settings `json:"settings"`
}

// Settings are the author's wishes for every execution of the workflow.
type Settings struct {
	// TimeoutSeconds limits an execution's wall time, waits included. Zero means no limit.
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty"`
	// ErrorWorkflow is started when an execution ends in ERROR or TIMEOUT.
	ErrorWorkflow string `json:"error_workflow,omitempty"`
	// MaxConcurrentActivations bounds the running activations of one execution. Zero means [DefaultConcurrentActivations].
	MaxConcurrentActivations int `json:"max_concurrent_activations,omitempty"`
	// OnUnresolved says what a placeholder in parameters becomes when nothing has its name: error, keep or null.
	OnUnresolved string `json:"on_unresolved,omitempty"`
	// Language is that of pages and messages whose reader has said nothing else: zh or en. Empty: that of the installation.
	Language string `json:"language,omitempty"`
}

// Node is one vertex. Its three parameter objects stay raw JSON, in the order they were written, since the order of
// keys can matter (the branches of a split) and numbers must not lose digits.
type Node struct {
	ID             string          `json:"id"`
	Name           string          `json:"name"`
	Description    string          `json:"description"`
	Type           string          `json:"type"`
	Subtype        string          `json:"subtype"`
	Configurations json.RawMessage `json:"configurations"`
	InputParams    json.RawMessage `json:"input_params"`
	OutputParams   json.RawMessage `json:"output_params"`
	AttachedNodes  []string        `json:"attached_nodes,omitempty"`
	Position       *Position       `json:"position,omitempty"`
	// Pinned, in the definition of a test, are outputs by key that the node has instead of running; an empty object says that it may not
	// run, and fails if it is reached. No other definition can have it.
	Pinned json.RawMessage `json:"pinned,omitempty"`
}

// Position is where an editor draws a node.
type Position struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Connection is an edge from one output key of a node to another node.
type Connection struct {
	ID                 string `json:"id"`
	FromNode           string `json:"from_node"`
	ToNode             string `json:"to_node"`
	OutputKey          string `json:"output_key"`
	ConversionFunction string `json:"conversion_function,omitempty"`
}

// Kind returns the node's kind, TYPE.SUBTYPE.
func (n *Node) Kind() string { return n.Type + "." + n.Subtype }

// DefaultKey is the output key of a connection that names none.
const DefaultKey = "result"

// ErrorKey is the output key that carries a handled error (on_error: continue).
const ErrorKey = "error"

// The types of nodes that the format itself gives a part to; all others are known to [Kinds] only.
const (
	TypeTrigger = "TRIGGER"
	TypeFlow    = "FLOW"
	TypeHuman   = "HUMAN_IN_THE_LOOP"
	TypeAgent   = "AI_AGENT"
	TypeTool    = "TOOL"
	TypeMemory  = "MEMORY"
)

// TypeOf is the type of a kind.
func TypeOf(kind string) string {
	typ, _, _ := strings.Cut(kind, ".")
	return typ
}

// DefaultConcurrentActivations is how much of one execution may run at once unless its workflow says otherwise.
const DefaultConcurrentActivations = 100
