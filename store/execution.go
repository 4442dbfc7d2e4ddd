package store

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
)

// Execution is the summary of an execution: what listings show, and what a host must know to take it up again. Times
// are in Unix milliseconds; zero: not yet.
type Execution struct {
	Workspace    string
	ID           string
	WorkflowID   string
	WorkflowName string
	// WorkflowVersion is the author's label; Revision and RevisionHash are what it is pinned to.
	WorkflowVersion string
	Revision        int64
	RevisionHash    string
	Status          engine.Status
	// Priority orders waiting starts: 1 first, 5 last.
	Priority int
	// Parent is the execution that started it and waits for it.
	Parent string
	// ForkedFrom is the execution whose past it shares.
	ForkedFrom  string
	TriggerType string
	// User is who started it.
	User string
	// TokenMadeBy is who made the token that it was started with, if it was somebody else than User.
	TokenMadeBy string
	// Conversation is the conversation that it belongs to, together with other executions; empty: none.
	Conversation string
	// Started is when its first node was dispatched.
	Started int64
	Ended   int64
	// DurationMS is the run time without waiting for people.
	DurationMS int64
	Credits    float64
	// Error is one line about why it failed.
	Error   string
	Created int64
	Updated int64
}

// TriggerTest is the trigger type of tests. They do not count in the statistics of their workflow.
const TriggerTest = "TEST"

// Change is what an append changes in a summary. Every field is replaced: the owner knows them all.
type Change struct {
	Status     engine.Status
	Started    int64
	Ended      int64
	DurationMS int64
	Credits    float64
	Error      string
	// ErrorCode and ErrorNode say what failed; executions that failed with the same ones failed alike.
	ErrorCode string
	ErrorNode string
}

// Unfinished is an execution that a starting process has to take up: it runs, or is to begin.
type Unfinished struct {
	Ref
	WorkflowID string
	Status     engine.Status
	Priority   int
	Created    int64
	// User is who started it.
	User string
	// Place is where it stands among those of its status and priority. It is the store's, and never zero.
	Place int64
}

// ExecutionQuery narrows a listing. Empty fields do not narrow it.
type ExecutionQuery struct {
	WorkflowID string
	Statuses   []engine.Status
	Parent     string
	// User is who started them, Conversation what they have in common.
	User         string
	Conversation string
	// ForkedFrom is the execution that they were forked from.
	ForkedFrom string
	// BelowRevision keeps those pinned to an older revision.
	BelowRevision int64
	// Since and Until bound when they were started, in Unix milliseconds; zero: no bound. They are as exact as the clocks of the processes
	// that started the executions.
	Since, Until int64
	// Older and Newer are ids of executions, of which one may be given: the page is counted from there, and is found in the same time
	// wherever that is. The first page after Older begins with the next older one; the first before Newer ends with the next newer one.
	// The total stays that of the whole.
	Older, Newer string
	Page         Page
}

// ExecutionPage is a part of a listing, newest first, and the size of the whole.
type ExecutionPage struct {
	Executions []Execution
	Total      int
}

// Executions reads the summaries; appends to the journal write them.
type Executions interface {
	Get(ctx context.Context, p identity.Principal, id string) (Execution, error)
	// GetWithRows is Get with all rows of the execution's journal, if these are few, both as of the same moment. Whole says that
	// the rows are included; otherwise read them from the journal.
	GetWithRows(ctx context.Context, p identity.Principal, id string) (e Execution, rows []Row, whole bool, err error)
	List(ctx context.Context, p identity.Principal, q ExecutionQuery) (ExecutionPage, error)
	// Unfinished runs through what runs, then what is to begin: each by priority, then age. What waits is not among them: timers, the inbox
	// and people bring it back. It begins behind the one that is given: with none of its fields set at the beginning, and with the status
	// alone at the first that has it. The loop may call the store. Tandem itself may ask for all workspaces.
	Unfinished(ctx context.Context, p identity.Principal, after Unfinished) iter.Seq2[Unfinished, error]
}

// IdempotencyKey makes two starts with the same key start one execution. Each user of a workspace has keys of their own: a key
// belongs to the user who starts the execution.
type IdempotencyKey struct {
	Key string
	// RequestHash distinguishes a repeated request from a different one with the same key.
	RequestHash string
	// Execution and Created are set by the store.
	Execution string
	Created   int64
}

// KeyUsedError says that a start with this key has been accepted before. With the same request hash it is a repetition
// and Execution is its answer; with another hash the caller has used the key for two different requests.
type KeyUsedError struct {
	IdempotencyKey
	// Same says whether the request was the same.
	Same bool
}

// Error names which of the two cases it is.
func (e *KeyUsedError) Error() string { return e.conflict().Message }

// Unwrap makes it a conflict.
func (e *KeyUsedError) Unwrap() error { return e.conflict() }

func (e *KeyUsedError) conflict() *fault.Error {
	if e.Same {
		return fault.Newf(fault.Conflict, "idempotency key %q has already started execution %q", e.Key, e.Execution)
	}
	return fault.Newf(fault.Conflict, "idempotency key %q was used for another request; use a new key", e.Key)
}

// IdempotencyKeys reads and removes keys; appends claim them.
type IdempotencyKeys interface {
	// Find looks among the keys of the principal's user.
	Find(ctx context.Context, p identity.Principal, key string) (IdempotencyKey, error)
	// Expire removes the keys that were claimed before a time and returns how many. Tandem itself may do it for all
	// workspaces.
	Expire(ctx context.Context, p identity.Principal, before int64) (int, error)
}

// Level is the level of a log line.
type Level int

// The levels. Their numbers are those of slog, and are stored.
const (
	LevelDebug Level = -4
	LevelInfo  Level = 0
	LevelWarn  Level = 4
	LevelError Level = 8
)

// MaxLogLines is how many lines an activation keeps; more are counted only.
const MaxLogLines = 1000

// LogInnerStep is the field of the context of a line that names the step inside the node which the line is about.
const LogInnerStep = "inner_step"

// LogLine is a line that a node wrote.
type LogLine struct {
	// ID is set by the store and grows.
	ID         int64
	Activation string
	NodeID     string
	Time       int64
	Level      Level
	Message    string
	// Context is a JSON object, or empty.
	Context json.RawMessage
}

// LogQuery says which lines of an execution are wanted. Empty fields do not narrow.
type LogQuery struct {
	Execution  string
	Activation string
	NodeID     string
	// MinLevel leaves out what is less; nil: nothing is left out.
	MinLevel *Level
	// After is the id of the last line seen.
	After int64
	// Limit is 100 when zero, and 1000 at most.
	Limit int
}

// Size is the limit that applies.
func (q LogQuery) Size() int {
	if q.Limit <= 0 {
		return 100
	}
	return min(q.Limit, 1000)
}

// LogPage is lines in the order they were stored.
type LogPage struct {
	Lines []LogLine
	// More says that there are lines after the last one here.
	More bool
	// Dropped is how many lines of the execution, or of the activation asked for, were counted but not kept.
	Dropped int64
}

// Logs keeps the lines that nodes write. Appends bring the lines of activations that end; Write those of long ones.
type Logs interface {
	// Write stores lines. [ErrNotFound]: there is no such execution.
	Write(ctx context.Context, p identity.Principal, execution string, lines []LogLine) error
	Lines(ctx context.Context, p identity.Principal, q LogQuery) (LogPage, error)
}

// LedgerEntry is what a call has reserved from its budgets, and later what it has used.
type LedgerEntry struct {
	// ID names the call: opening it again changes nothing.
	ID        string
	Execution string
	Workflow  string
	// Profile is the profile of the model that is called.
	Profile string
	// Day is the calendar day it counts for, as the budget's time zone has it.
	Day    string
	Tokens int64
	// Cost is in millionths of the currency.
	Cost int64
	// Open says that the call has not ended, as far as is known. It is set by the store.
	Open bool
}

// Settlement is what a call has really used.
type Settlement struct {
	ID     string
	Tokens int64
	Cost   int64
}

// LedgerQuery says which calls are summed. Empty fields do not narrow.
type LedgerQuery struct {
	Execution string
	Workflow  string
	Profile   string
	Day       string
}

// LedgerSum is what was used and what is still reserved. What an interrupted call had reserved counts as used until it is
// settled, so a budget is checked against both together.
type LedgerSum struct {
	Tokens, Cost         int64
	OpenTokens, OpenCost int64
	OpenCalls            int
}

// SpenderQuery asks for the executions or workflows that have used something through a profile.
type SpenderQuery struct {
	Profile string
	// Workflows asks for workflows; otherwise executions are meant.
	Workflows bool
	// Limit is how many at most.
	Limit int
}

// Spender is an execution or a workflow, with what it has used.
type Spender struct {
	ID string
	LedgerSum
}

// OverError says that a call does not fit into a budget.
type OverError struct {
	Limit
	LedgerSum
}

// Error implements error.
func (e *OverError) Error() string {
	return fmt.Sprintf("the budget %q has no room: of %d tokens %d are used and %d reserved", e.Budget, e.Limit.Tokens, e.LedgerSum.Tokens, e.OpenTokens)
}

// Ledger is the account that budgets are checked against. An open entry belongs to the process that opened it: when a
// driver finds that process gone, what it had reserved counts as used.
type Ledger interface {
	// Reserve opens an entry if it fits into all limits, together with what was used and what others have reserved. If it
	// does not, the error is an [*OverError].
	Reserve(ctx context.Context, p identity.Principal, e LedgerEntry, limits ...Limit) error
	// Open reserves. An entry that is there already stays as it is.
	Open(ctx context.Context, p identity.Principal, e LedgerEntry) error
	// Settle replaces what was reserved by what was used. The first settlement counts: another one is [ErrConflict],
	// and one of an unknown call [ErrNotFound].
	Settle(ctx context.Context, p identity.Principal, s Settlement) error
	Sum(ctx context.Context, p identity.Principal, q LedgerQuery) (LedgerSum, error)
	// Spenders lists executions or workflows that have used something, those of the last day first, then those with the most tokens.
	Spenders(ctx context.Context, p identity.Principal, q SpenderQuery) ([]Spender, error)
}
