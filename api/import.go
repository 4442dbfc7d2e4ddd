package api

import "encoding/json"

// ImportRequest asks the server to make workflows from files of other systems.
type ImportRequest struct {
	Files  []ImportFile `json:"files" minItems:"1" maxItems:"100" doc:"the files, each with its whole content"`
	DryRun bool         `json:"dry_run,omitempty" doc:"only tell what would become of them; nothing is kept"`
}

// ImportFile is one file of another system.
type ImportFile struct {
	Name    string `json:"name" maxLength:"400" doc:"for people, and for the name of a workflow that has none"`
	Content string `json:"content" doc:"the text of the file: JSON or YAML"`
}

// ImportReport says what became of files.
type ImportReport struct {
	Files []ImportedFile `json:"files"`
}

// ImportedFile says what became of one file.
type ImportedFile struct {
	Name      string             `json:"name"`
	System    string             `json:"system,omitempty" doc:"what the file was read as: n8n, dify, steps or older"`
	Error     string             `json:"error,omitempty" doc:"why nothing was made of it"`
	Workflows []ImportedWorkflow `json:"workflows,omitempty"`
}

// ImportedWorkflow is one workflow that was made of a file.
type ImportedWorkflow struct {
	WorkflowID string `json:"workflow_id,omitempty" doc:"the workflow that was kept"`
	Name       string `json:"name"`
	Revision   int64  `json:"revision,omitempty"`
	Error      string `json:"error,omitempty" doc:"why it was not kept; with dry_run: why this caller could not keep it"`
	// Kept, Approximated and Missing count nodes.
	Kept         int            `json:"kept" doc:"how many nodes do what they did"`
	Approximated int            `json:"approximated" doc:"how many do nearly what they did; their notes say what is different"`
	Missing      int            `json:"missing" doc:"how many have no counterpart; a run that reaches one fails and says so"`
	Nodes        []ImportedNode `json:"nodes" doc:"every node of the file"`
	Notes        []string       `json:"notes,omitempty" doc:"what is to be told of the whole: settings that were left out, connections that lead nowhere"`
	// Credentials are those that the workflow names.
	Credentials []ImportedCredential `json:"credentials,omitempty" doc:"the credentials that the workflow needs"`
	Profiles    []string             `json:"profiles,omitempty" doc:"the model profiles that the workflow needs"`
	Valid       bool                 `json:"valid"`
	Problems    []Problem            `json:"problems,omitempty"`
	Definition  json.RawMessage      `json:"definition,omitempty" doc:"with dry_run: the workflow"`
}

// ImportedNode says what became of a node.
type ImportedNode struct {
	Name     string   `json:"name" doc:"as the other system has it"`
	Type     string   `json:"type" doc:"as the other system has it"`
	Fidelity string   `json:"fidelity" enum:"kept,approximated,missing"`
	Kind     string   `json:"kind,omitempty" doc:"the kind that it became; empty for what became a part of another node or a note"`
	NodeIDs  []string `json:"node_ids,omitempty" doc:"the nodes that were made of it"`
	Notes    []string `json:"notes,omitempty" doc:"what is different, and what is to be done"`
	Secrets  []string `json:"secrets,omitempty" doc:"the credentials that secrets of the node were moved to"`
}

// ImportedCredential is a credential that an imported workflow names.
type ImportedCredential struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Created bool   `json:"created,omitempty" doc:"it was made of a secret that stood in the file"`
	Known   bool   `json:"known,omitempty" doc:"the workspace has one of this name"`
	Note    string `json:"note,omitempty"`
}
