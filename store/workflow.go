package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/workflow"
)

// DeploymentStatus is the status of a workflow's deployment.
type DeploymentStatus string

// The deployment statuses.
const (
	DeploymentDraft      DeploymentStatus = "draft"
	DeploymentPending    DeploymentStatus = "pending"
	DeploymentDeployed   DeploymentStatus = "deployed"
	DeploymentFailed     DeploymentStatus = "failed"
	DeploymentUndeployed DeploymentStatus = "undeployed"
)

// Workflow describes a workflow without its definition. The first group of fields comes from the newest definition, the
// rest from the server.
type Workflow struct {
	Workspace   string
	ID          string
	Name        string
	Description string
	IconURL     string
	Tags        []string
	Version     string
	Parent      string

	Revision         int64
	RevisionHash     string
	DeploymentStatus DeploymentStatus
	DeploymentError  string
	// DeployedRevision is the revision in force, even if a later deployment has failed; zero: none.
	DeployedRevision int64
	CreatedBy        string
	UpdatedBy        string
	// TokenMadeBy is who made the token that it was last saved with, if it was somebody else than UpdatedBy.
	TokenMadeBy   string
	Created       int64
	Updated       int64
	LastStatus    engine.Status
	LastExecution int64
	Statistics    Statistics
}

// Statistics are kept as executions begin and end. One that was revived after its end counts once, with its last end.
type Statistics struct {
	TotalRuns         int64
	AverageDurationMS int64
	TotalCredits      float64
	LastSuccess       int64
}

// Revision is an immutable definition.
type Revision struct {
	Workspace  string
	WorkflowID string
	// Number counts from 1.
	Number     int64
	Hash       string
	Definition []byte
	CreatedBy  string
	// TokenMadeBy is who made the token that it was saved with, if it was somebody else than CreatedBy.
	TokenMadeBy string
	Created     int64
}

// Source is the text of a revision as its author wrote it, with comments and the order of its fields. The zero value: none was kept.
type Source struct {
	// Format is yaml or json.
	Format string
	Text   []byte
}

// SourceOf is a text as it is stored beside the definition that was read from it. JSON on one line was written by a program and adds
// nothing to the definition: it is not stored.
func SourceOf(text []byte) Source {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	format := workflow.FormatOf(string(text))
	if format == workflow.JSON && !bytes.ContainsRune(bytes.TrimSpace(text), '\n') {
		return Source{}
	}
	return Source{Format: string(format), Text: text}
}

// Draft is a definition without a revision. It is kept for as long as the execution that tests it.
type Draft struct {
	WorkflowID string
	Execution  string
	Hash       string
	Definition []byte
	Time       int64
}

// WorkflowHeading is what a start has to know about a workflow: its name, its newest revision, and which one is deployed.
type WorkflowHeading struct {
	Name             string
	Description      string
	Version          string
	Revision         int64
	RevisionHash     string
	DeploymentStatus DeploymentStatus
	// DeployedRevision and DeployedHash are those of the revision that is in force; zero and empty: none is.
	DeployedRevision int64
	DeployedHash     string
}

// SaveWorkflow is a definition to be stored, with what listings show.
type SaveWorkflow struct {
	ID          string
	Name        string
	Description string
	IconURL     string
	Tags        []string
	Version     string
	Parent      string
	// Hash shows whether the content is new. The store does not interpret the definition.
	Hash       string
	Definition []byte
	// Source is the text that the definition was read from.
	Source Source
	Time   int64
	// Expect, when not zero, is the revision the author has seen: [ErrConflict] if there is a newer one. -1: there must be
	// no such workflow yet.
	Expect int64
}

// WorkflowQuery narrows a listing. Empty fields do not narrow it.
type WorkflowQuery struct {
	// Text is looked for in id, name and description, without regard to case.
	Text string
	// Name is the exact name.
	Name string
	// Prefix is what ids begin with, NotPrefix what they do not begin with.
	Prefix, NotPrefix string
	// Tags must all be there.
	Tags             []string
	DeploymentStatus DeploymentStatus
	// Deployed keeps those that have a revision in force.
	Deployed bool
	Page     Page
}

// WorkflowPage is a part of a listing, last saved first, and the size of the whole.
type WorkflowPage struct {
	Workflows []Workflow
	Total     int
}

// RevisionPage is a part of a workflow's past, newest first, and the size of the whole. The definitions are left out.
type RevisionPage struct {
	Revisions []Revision
	Total     int
}

// Workflows keeps definitions. A revision never changes and is never removed: executions are pinned to it.
type Workflows interface {
	// Save makes a new revision, or none when the content is that of the newest one. Another YAML text of the same content, which may
	// have other comments, is a new revision too, unless the newest one has no text yet: then it takes this one.
	Save(ctx context.Context, p identity.Principal, w SaveWorkflow) (w2 Workflow, created bool, err error)
	Get(ctx context.Context, p identity.Principal, id string) (Workflow, error)
	// Heading reads what a start has to know; it is cheaper than Get.
	Heading(ctx context.Context, p identity.Principal, id string) (WorkflowHeading, error)
	List(ctx context.Context, p identity.Principal, q WorkflowQuery) (WorkflowPage, error)
	// Revision reads one by number; zero is the newest. Those of a deleted workflow can still be read by number and hash.
	Revision(ctx context.Context, p identity.Principal, id string, number int64) (Revision, error)
	// RevisionByHash reads one by its content, or else a draft, whose number is zero.
	RevisionByHash(ctx context.Context, p identity.Principal, id, hash string) (Revision, error)
	// KeepDraft keeps a definition for an execution that is about to be started.
	KeepDraft(ctx context.Context, p identity.Principal, d Draft) error
	// DropDraft removes it again, if the execution was not started.
	DropDraft(ctx context.Context, p identity.Principal, execution string) error
	Revisions(ctx context.Context, p identity.Principal, id string, page Page) (RevisionPage, error)
	// Source reads the text of a revision; the zero value if none was kept.
	Source(ctx context.Context, p identity.Principal, id string, number int64) (Source, error)
	// Delete hides a workflow and removes its triggers. [ErrConflict] while executions of it are unfinished. Saving it again brings it
	// back, with its revisions, not deployed.
	Delete(ctx context.Context, p identity.Principal, id string, at int64) error
}

// Template is a stored set of values and schema overrides that nodes refer to.
type Template struct {
	Workspace      string
	ID             string
	Kind           string
	Name           string
	KnownParams    json.RawMessage
	OverrideInput  json.RawMessage
	OverrideOutput json.RawMessage
	Created        int64
	Updated        int64
}

// Templates keeps node templates.
type Templates interface {
	// Put makes one or replaces what is there, except for when it was made.
	Put(ctx context.Context, p identity.Principal, t Template) error
	Get(ctx context.Context, p identity.Principal, id string) (Template, error)
	// List returns all, in order of id.
	List(ctx context.Context, p identity.Principal) ([]Template, error)
	Delete(ctx context.Context, p identity.Principal, id string) error
}

// Blob names a large value by its content.
type Blob struct {
	// Hash is the SHA-256 of the content in lower-case hex.
	Hash string
	Size int64
}

// CheckBlob refuses what is not the hash of a large value.
func CheckBlob(hash string) error {
	if raw, err := hex.DecodeString(hash); err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != hash {
		return fault.Newf(fault.Invalid, "%q is not a blob hash: 64 lower-case hexadecimal digits are", hash)
	}
	return nil
}

// Blobs keeps large values, each once per workspace. The caller limits their size.
type Blobs interface {
	// Put stores a value and returns when it is on disk, so that a row may name it.
	Put(ctx context.Context, p identity.Principal, r io.Reader) (Blob, error)
	// Get opens a value. The caller closes it.
	Get(ctx context.Context, p identity.Principal, hash string) (io.ReadCloser, Blob, error)
	Stat(ctx context.Context, p identity.Principal, hash string) (Blob, error)
}
