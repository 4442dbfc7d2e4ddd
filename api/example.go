package api

import "encoding/json"

// Example is a workflow that comes with Tandem and can be added with one request.
type Example struct {
	Name        string          `json:"name"`
	Title       Text            `json:"title"`
	Description Text            `json:"description" doc:"what it shows"`
	First       bool            `json:"first" doc:"one of the three to begin with"`
	Needs       []string        `json:"needs" enum:"person,agent,deploy" doc:"person: it asks somebody; agent: a model works in it, on the built-in profile demo; deploy: it has a trigger of its own and is not run by hand"`
	Inputs      json.RawMessage `json:"inputs,omitempty" doc:"object: inputs to run it with"`
	InputsZH    json.RawMessage `json:"inputs_zh,omitempty" doc:"object: such inputs in Chinese, where they have words in them"`
	WorkflowID  string          `json:"workflow_id,omitempty" doc:"the workflow that it was added as, if it was"`
}

// Examples lists them.
type Examples struct {
	Examples []Example `json:"examples"`
}

// ExampleAdded answers an example that was added, or was there already.
type ExampleAdded struct {
	Workflow WorkflowMetadata `json:"workflow"`
	Inputs   json.RawMessage  `json:"inputs,omitempty" doc:"object: inputs to run it with"`
	InputsZH json.RawMessage  `json:"inputs_zh,omitempty" doc:"object: such inputs in Chinese, where they have words in them"`
}
