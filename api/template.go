package api

// WorkflowTemplate is a workflow to begin with, which comes with Tandem.
type WorkflowTemplate struct {
	Name        string         `json:"name"`
	Title       Text           `json:"title"`
	Description Text           `json:"description" doc:"what it does"`
	Needs       []TemplateNeed `json:"needs" doc:"what the workspace must have before it runs"`
	Definition  string         `json:"definition,omitempty" doc:"the workflow as YAML; only when one template is asked for"`
}

// TemplateNeed is something that a template names and that must be made.
type TemplateNeed struct {
	Sort string `json:"sort" enum:"credential,profile,server" doc:"credential, profile of a model, or tool server"`
	Name string `json:"name"`
	Type string `json:"type,omitempty" doc:"the type of a credential"`
}

// WorkflowTemplates lists them.
type WorkflowTemplates struct {
	Templates []WorkflowTemplate `json:"templates"`
}
