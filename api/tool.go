package api

import "encoding/json"

// MCPServer is a tool server that an administrator has registered.
type MCPServer struct {
	ID          string                     `json:"id" required:"false" pattern:"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$" doc:"made from the name when it is left out"`
	Name        string                     `json:"name,omitempty" maxLength:"200"`
	Description string                     `json:"description,omitempty" maxLength:"4000"`
	Transport   string                     `json:"transport" enum:"stdio,sse,http"`
	Command     string                     `json:"command,omitempty" doc:"stdio: the program; it is started when somebody uses a tool, and not before"`
	Args        []string                   `json:"args,omitempty"`
	Dir         string                     `json:"dir,omitempty"`
	Env         map[string]json.RawMessage `json:"env,omitempty" doc:"a text, or {credential_id, field, prefix?}"`
	URL         string                     `json:"url,omitempty"`
	Headers     map[string]json.RawMessage `json:"headers,omitempty" doc:"a text, or {credential_id, field, prefix?}"`
	// CredentialID is where the tokens of an OAuth authorization are kept.
	CredentialID   string `json:"credential_id,omitempty"`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty" minimum:"0" maximum:"600" doc:"60"`
	IdleSeconds    int    `json:"idle_seconds,omitempty" minimum:"0" maximum:"86400" doc:"300"`
	Disabled       bool   `json:"disabled,omitempty"`
	Activated      bool   `json:"activated,omitempty" readOnly:"true" doc:"by the user who asks"`
	CreatedTime    int64  `json:"created_time,omitempty" readOnly:"true"`
	UpdatedTime    int64  `json:"updated_time,omitempty" readOnly:"true"`
}

// MCPServers lists them, by id.
type MCPServers struct {
	Servers []MCPServer `json:"servers"`
}

// MCPTool is a tool of a server.
type MCPTool struct {
	ID           string          `json:"id" doc:"server/tool"`
	ServerID     string          `json:"server_id"`
	ToolName     string          `json:"tool_name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	Effect       string          `json:"effect" enum:"pure,idempotent,once"`
	PinnedHash   string          `json:"pinned_hash,omitempty" doc:"of the definition that the user has accepted"`
	Drift        string          `json:"drift,omitempty" enum:"added,changed,removed" doc:"how it differs from what the user has accepted; calls of it wait until somebody accepts that"`
}

// MCPTools lists the tools of a server.
type MCPTools struct {
	Activated bool      `json:"activated"`
	Tools     []MCPTool `json:"tools"`
	// Changes are what has to be accepted.
	Changes []MCPChange `json:"changes"`
}

// MCPAccept accepts changes, as they were shown.
type MCPAccept struct {
	Changes []MCPAcceptedChange `json:"changes" minItems:"1" maxItems:"1000"`
}

// MCPAcceptedChange is a change as the one who accepts it has seen it.
type MCPAcceptedChange struct {
	Tool string `json:"tool"`
	// After is the definition that was shown; without one, that the tool is gone is accepted.
	After json.RawMessage `json:"after,omitempty" doc:"as it was shown; left out for a tool that is gone"`
}

// MCPAuthorization is where a person has to go.
type MCPAuthorization struct {
	URL string `json:"url"`
}

// MCPChange is a difference between what was accepted and what is.
type MCPChange struct {
	Tool    string          `json:"tool"`
	Kind    string          `json:"kind" enum:"added,changed,removed"`
	Summary string          `json:"summary"`
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
}
