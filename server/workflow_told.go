package server

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/store"
)

// tellWorkflow describes a workflow without its definition.
func tellWorkflow(w *store.Workflow) api.WorkflowMetadata {
	tags := w.Tags
	if tags == nil {
		tags = []string{}
	}
	return api.WorkflowMetadata{
		ID: w.ID, Name: w.Name, IconURL: w.IconURL, Description: w.Description, DeploymentStatus: string(w.DeploymentStatus),
		DeploymentError: w.DeploymentError, DeployedRevision: w.DeployedRevision,
		LastExecutionStatus: string(w.LastStatus), LastExecutionTime: w.LastExecution, Tags: tags, CreatedTime: w.Created,
		UpdatedTime:    w.Updated,
		ParentWorkflow: w.Parent, Version: w.Version, CreatedBy: w.CreatedBy, UpdatedBy: w.UpdatedBy, TokenMadeBy: w.TokenMadeBy,
		Revision: w.Revision, RevisionHash: w.RevisionHash,
		Statistics: api.Statistics{
			TotalRuns: w.Statistics.TotalRuns, AverageDurationMS: w.Statistics.AverageDurationMS,
			TotalCredits: w.Statistics.TotalCredits, LastSuccessTime: w.Statistics.LastSuccess,
		},
	}
}

// storedDefinition has the fields of the canonical form of a definition that the API shows.
type storedDefinition struct {
	Metadata struct {
		Name        string          `json:"name"`
		IconURL     string          `json:"icon_url"`
		Description string          `json:"description"`
		Tags        []string        `json:"tags"`
		Version     string          `json:"version"`
		Parent      string          `json:"parent_workflow"`
		Settings    json.RawMessage `json:"settings"`
	} `json:"metadata"`
	Nodes       []json.RawMessage `json:"nodes"`
	Connections []json.RawMessage `json:"connections"`
	Triggers    []string          `json:"triggers"`
	Notes       []json.RawMessage `json:"notes"`
	Tests       []json.RawMessage `json:"tests"`
}

// tellDefinition describes a workflow with one of its revisions. What the author wrote comes from the revision.
func tellDefinition(w *store.Workflow, r *store.Revision) (*api.Workflow, error) {
	var d storedDefinition
	if err := json.Unmarshal(r.Definition, &d); err != nil {
		return nil, fault.Newf(fault.Internal, "revision %d of workflow %q cannot be read: %w", r.Number, r.WorkflowID, err)
	}
	m := tellWorkflow(w)
	m.Name, m.IconURL, m.Description = d.Metadata.Name, d.Metadata.IconURL, d.Metadata.Description
	m.Version, m.ParentWorkflow, m.Settings = d.Metadata.Version, d.Metadata.Parent, d.Metadata.Settings
	if m.Tags = d.Metadata.Tags; m.Tags == nil {
		m.Tags = []string{}
	}
	m.Revision, m.RevisionHash = r.Number, r.Hash
	return &api.Workflow{Metadata: m, Nodes: d.Nodes, Connections: d.Connections, Triggers: d.Triggers, Notes: d.Notes, Tests: d.Tests}, nil
}

// checkWorkflowID refuses ids that no workflow can have: ids are part of addresses.
func checkWorkflowID(id string) error {
	wrong := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_.~-", r)
	}
	if id == "" || len(id) > 128 || !utf8.ValidString(id) || strings.ContainsRune(".~-", rune(id[0])) || strings.ContainsFunc(id, wrong) {
		return api.WrongField("metadata.id", "%q is not the id of a workflow; use up to 128 letters, digits, dashes, dots and underscores", id)
	}
	return nil
}

// newExecutionID makes the id of an execution that begins now.
func newExecutionID() string { return host.NewExecutionID(time.Now()) }

// openStatuses are those of executions that have not ended.
func openStatuses() []engine.Status {
	return slices.DeleteFunc(engine.Statuses(), engine.Status.Final)
}
