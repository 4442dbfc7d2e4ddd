package workflow

import "slices"

// Kinds tells validation and compilation what they have to know about kinds of nodes; this package knows none itself.
type Kinds interface {
	// Kind returns the kind called TYPE.SUBTYPE.
	Kind(name string) (Kind, bool)
	// Names lists every kind, sorted, for suggestions.
	Names() []string
	// Alias returns the kind that an older spelling stands for (a step type without a subtype, a renamed subtype).
	Alias(typ, subtype string) (name string, ok bool)
}

// Kind is what a graph has to know about a kind of node.
type Kind struct {
	// Name is TYPE.SUBTYPE.
	Name string
	// Scope is set for kinds that run a body.
	Scope *ScopeKeys
	// Plan reads a node's configurations: how the node behaves in a graph, and every problem of its configurations.
	// Problem paths are relative to the node ("configurations.condition_expression"). Never nil.
	Plan func(n *Node) (Plan, []Problem)
}

// ScopeKeys are the output keys of a kind that runs a body: Entry starts it, the Exits settle when it has closed.
type ScopeKeys struct {
	Entry string
	Exits []string
	// Once says that the body runs exactly once, and that the first of the Exits means that it has ended.
	Once bool
}

// Effect says what repeating an attempt means.
type Effect string

// The effect classes.
const (
	Pure       Effect = "pure"       // same input, same output, nothing outside notices
	Idempotent Effect = "idempotent" // may be repeated
	Once       Effect = "once"       // journaled before it starts, never repeated without knowledge
)

// OnError says what becomes of a failure after the retries.
type OnError string

// The ways to handle a failure.
const (
	OnErrorFail     OnError = "fail"           // it goes to the next scope outwards
	OnErrorContinue OnError = "continue"       // it becomes the output key "error"
	OnErrorDefault  OnError = "default_output" // the configured default becomes the node's main key
)

// OnUnknown says what becomes of a once attempt whose outcome nobody knows.
type OnUnknown string

// The ways to decide an unknown outcome.
const (
	OnUnknownAsk   OnUnknown = "ask"
	OnUnknownRetry OnUnknown = "retry"
	OnUnknownFail  OnUnknown = "fail"
)

// What a person who is asked about an unknown outcome can choose: the attempt has done its work, has not, or nothing more is to happen.
const (
	ChoiceDone    = "done"
	ChoiceNotDone = "not_done"
	ChoiceStop    = "stop"
)

// Traits are what the parts around the engine have to know of a kind, so that none of them knows it by its name.
type Traits struct {
	// ByHand says that the kind is a trigger that people start.
	ByHand bool
	// Signals says which signals its nodes take.
	Signals Signals
	// Chooses says what the key means that one of its nodes has produced.
	Chooses Choice
	// GivesTasks says that its nodes give tasks to agents.
	GivesTasks bool
	// BySource says that its nodes are given the payloads of their connections once more, by their sources.
	BySource bool
	// AsksIn is the channel in which its nodes ask people, unless their configuration names another one; empty: they ask nobody.
	AsksIn string
	// Names says what the plain names in its conditions are.
	Names ConditionNames
	// Code says how the language of the code in its configurations is known.
	Code CodeLanguage
}

// ConditionNames say what the plain names in the conditions of a kind are; the zero value: only the names that all expressions have.
type ConditionNames string

// What plain names are.
const (
	NamesOfInput   ConditionNames = "input"   // the fields of the node's input
	NamesOfCarried ConditionNames = "carried" // those of the data that one iteration hands to the next
)

// CodeLanguage is how the language of code in configurations is known; the zero value: the form of the code tells it.
type CodeLanguage string

// How languages are known.
const (
	CodeNamed  CodeLanguage = "named" // the configuration "language" names it; without one it is Python
	CodeOfHost CodeLanguage = "host"  // it is for an interpreter of the host, which alone can read it
)

// Signals are those that a node takes; the zero value: none.
type Signals string

// Which signals nodes take.
const (
	SignalsCancel Signals = "cancel" // one that ends it early
	SignalsNamed  Signals = "named"  // that, and the one that its configuration names
)

// Choice is what the key means that a node has produced.
type Choice string

// What keys mean. Keys that mean nothing in particular are the zero Choice.
const (
	ChoosesTruth Choice = "truth" // "true" or "false": whether its condition holds
	ChoosesCase  Choice = "case"  // the case that fits
)

// Plan is how one node behaves in a graph, read from its configurations once, when a revision is compiled.
type Plan struct {
	// Traits are those of the kind.
	Traits Traits
	// Keys are the output keys the node can produce, besides "error". Nil means any key.
	Keys []string
	// KeyAliases maps accepted spellings of output keys to the key: "main" to "result".
	KeyAliases map[string]string
	// Instead are the keys that the node produces in the place of its main key, such as "timeout".
	Instead []string
	// StandIn are the keys that default_output has payloads for, where it has to name keys and what it names is known.
	StandIn    []string
	Effect     Effect
	MaxRetries int
	// TimeoutMS limits one attempt.
	TimeoutMS int64
	OnError   OnError
	OnUnknown OnUnknown
	// Credits is what a success costs, besides tokens.
	Credits float64
	// Disabled nodes hand their input on under their main key; with SkipDisabled they are SKIPPED instead, so that switching
	// a question off never means it was approved.
	Disabled     bool
	SkipDisabled bool
	// Asks is set for a node that puts a binding question to people: the output key that a confirmation produces. Nobody
	// gets behind such a question without an answer to it.
	Asks string
	// Child is the other workflow that the node runs and waits for; nil if it runs none, or does not wait.
	Child *ChildWorkflow
	// Unscoped is set for a node of a scope kind whose configurations ask for no body (a split by predicate): its keys
	// are then ordinary ones.
	Unscoped bool
	// Drops says that the node hands nothing of its input on: what it produces is made of something else.
	Drops bool
	// Whole says that the node is all there is to its workflow: a program leads it, and its steps go by their own names.
	Whole bool
	// Join is how the node waits for its incoming connections.
	Join Join
	// Expressions are the conditions among the configurations, to be parsed by validation.
	Expressions []Expression
	// Shielded are the configuration paths whose text is never searched for placeholders (code).
	Shielded []string
	// Bound are the configuration paths of texts that are never spliced into: a placeholder in them is a value beside the
	// text (SQL).
	Bound []string
}

// MainKey is the key under which a node hands on what stands for its result when it did not do its work: "result", or what the
// kind has instead of it. Not every kind has one: a node that chooses between keys produces only what it has chosen.
func (p *Plan) MainKey() (key string, ok bool) {
	if p.Keys == nil || slices.Contains(p.Keys, DefaultKey) {
		return DefaultKey, true
	}
	key, ok = p.KeyAliases[DefaultKey]
	return key, ok
}

// ChildWorkflow names a workflow that a node runs: by its id, of a revision that is "deployed", "latest" or a number.
type ChildWorkflow struct {
	Workflow string
	Revision string
	// Computed says that only a run tells which one it is; the others are what it is computed from. It may be one that asks people.
	Computed bool
}

// Join is how a node with several incoming connections waits for them. The zero Join waits for all.
type Join struct {
	// First fires on the first live arrival; later ones are ignored.
	First bool `json:"first,omitempty"`
	// TimeoutMS fires with what has arrived so long after the first live arrival. Zero waits for all.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// CancelLosers cancels, when the join fires, the work that leads nowhere else.
	CancelLosers bool `json:"cancel_losers,omitempty"`
}

// Expression is a condition at a path inside a node.
type Expression struct {
	Path   string
	Source string
}
