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
	TimeoutSeconds int    `json:"timeout_seconds,omitempty" minimum:"0" maximum:"600" doc:"how long a call may be silent, 60; if it is more, its start may take as long, otherwise 20 s"`
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
	Hash         string          `json:"hash" doc:"of its definition as it is now"`
	PinnedHash   string          `json:"pinned_hash,omitempty" doc:"of the definition that the user has accepted"`
	Drift        string          `json:"drift,omitempty" enum:"added,changed,removed" doc:"how it differs from what the user has accepted; calls of it wait until somebody accepts that"`
	Class        string          `json:"class" enum:"read_only,additive,destructive,unclassed" doc:"what the server says that it does; an unclassed tool counts as destructive"`
	// Decision is what happens to calls in general, DecisionFrom where that is decided.
	Decision        string         `json:"decision" enum:"read_only,judged,destructive,ask,never,by_argument" doc:"what calls of it meet. read_only: they need no confirmation where calls run by themselves; judged: their risk decides; destructive: it does, and is medium at least; ask: each is confirmed; never: none is made; by_argument: rules decide first"`
	DecisionFrom    string         `json:"decision_from" enum:"policy,workspace_policy,annotation,nobody" doc:"the user's own policy, an admin's for everybody, what the server says, or nobody"`
	Policy          *MCPToolPolicy `json:"policy,omitempty" doc:"the user's own"`
	WorkspacePolicy *MCPToolPolicy `json:"workspace_policy,omitempty" doc:"an admin's, for everybody; a user's own can make ask and never stricter, and not looser"`
	Suggestion      MCPSuggestion  `json:"suggestion"`
}

// MCPToolPolicy is what a person has decided about a tool.
type MCPToolPolicy struct {
	Policy      string    `json:"policy,omitempty" enum:"read_only,ask,never" doc:"holds where no rule matches; it may be left out where there are rules"`
	Rules       []MCPRule `json:"rules,omitempty" maxItems:"50" doc:"the first that matches decides; what is unclear about an argument is asked"`
	Hash        string    `json:"hash,omitempty" doc:"of the definition that it is about; when it is sent, 409 if the tool is not as it was shown"`
	SetBy       string    `json:"set_by,omitempty" readOnly:"true"`
	TokenMadeBy string    `json:"token_made_by,omitempty" readOnly:"true" doc:"who made the token that it was set with, if it was somebody else than set_by"`
	SetTime     int64     `json:"set_time,omitempty" readOnly:"true"`
	Lapsed      bool      `json:"lapsed,omitempty" readOnly:"true" doc:"it is about the tool as it was: it grants nothing, and forbids as before"`
}

// MCPRule decides by an argument. Exactly one of equals, pattern, under and absent is given.
type MCPRule struct {
	Argument string          `json:"argument" doc:"one that the tool declares"`
	Equals   json.RawMessage `json:"equals,omitempty" doc:"a text, a number, true or false"`
	Pattern  string          `json:"pattern,omitempty" maxLength:"500" doc:"a regular expression (RE2) for the whole text"`
	Under    string          `json:"under,omitempty" maxLength:"500" doc:"a directory that begins with a slash, or an address with its host"`
	Absent   bool            `json:"absent,omitempty"`
	Policy   string          `json:"policy" enum:"read_only,ask,never"`
}

// MCPSuggestion is a policy that a tool's name and description suggest. It has no effect until a person sets it.
type MCPSuggestion struct {
	Policy string `json:"policy" enum:"read_only,ask"`
	Reason string `json:"reason"`
}

// MCPActivate says with which policies a user begins to use a server.
type MCPActivate struct {
	Policies map[string]MCPToolPolicy `json:"policies,omitempty" doc:"by the names of tools"`
	// WorkspacePolicies are set by admins.
	WorkspacePolicies map[string]MCPToolPolicy `json:"workspace_policies,omitempty" doc:"for everybody; set by admins only"`
}

// MCPPolicies sets policies.
type MCPPolicies struct {
	Scope    string                   `json:"scope,omitempty" enum:"user,workspace" doc:"user (the default): one's own; workspace: for everybody, set by admins only"`
	Policies map[string]MCPToolPolicy `json:"policies,omitempty" doc:"by the names of tools; the others stay as they are"`
	Remove   []string                 `json:"remove,omitempty" doc:"the names of tools whose policies are taken away"`
}

// MCPPolicyList has the policies that apply to a user.
type MCPPolicyList struct {
	Policies          map[string]MCPToolPolicy `json:"policies"`
	WorkspacePolicies map[string]MCPToolPolicy `json:"workspace_policies"`
}

// MCPAcceptance is the record of a change that somebody has accepted.
type MCPAcceptance struct {
	Tool    string `json:"tool"`
	Kind    string `json:"kind" enum:"added,changed,removed"`
	Summary string `json:"summary"`
	// Difference is readable: the parts that differ, before and after.
	Difference  []string        `json:"difference"`
	Before      json.RawMessage `json:"before,omitempty"`
	After       json.RawMessage `json:"after,omitempty"`
	Scope       string          `json:"scope" enum:"user,workspace"`
	User        string          `json:"user,omitempty" doc:"for whom it was accepted; left out where it was for everybody"`
	AcceptedBy  string          `json:"accepted_by"`
	TokenMadeBy string          `json:"token_made_by,omitempty" doc:"who made the token that it was accepted with, if it was somebody else than accepted_by"`
	ExecutionID string          `json:"execution_id,omitempty" doc:"the execution whose question was answered"`
	Time        int64           `json:"time"`
}

// MCPAcceptances lists them, the newest first.
type MCPAcceptances struct {
	Acceptances []MCPAcceptance `json:"acceptances"`
}

// MCPTools lists the tools of a server.
type MCPTools struct {
	Activated bool      `json:"activated"`
	Tools     []MCPTool `json:"tools"`
	// Changes are what has to be accepted.
	Changes []MCPChange `json:"changes"`
}

// MCPAccept accepts changes, as they were shown to the caller.
type MCPAccept struct {
	Scope   string              `json:"scope,omitempty" enum:"user,workspace" doc:"for whom it counts: an admin accepts for everybody unless it says user, others for themselves"`
	Changes []MCPAcceptedChange `json:"changes" minItems:"1" maxItems:"1000"`
}

// MCPAcceptedChange is a change as the one who accepts it has seen it.
type MCPAcceptedChange struct {
	Tool string `json:"tool"`
	// After is the definition that was shown; without one, the removal of the tool is accepted.
	After json.RawMessage `json:"after,omitempty" doc:"as it was shown; left out for a tool that is gone"`
}

// MCPAuthorization is the address that a person has to open.
type MCPAuthorization struct {
	URL string `json:"url"`
}

// MCPChange is a difference between what was accepted and what the server offers now.
type MCPChange struct {
	Tool    string          `json:"tool"`
	Kind    string          `json:"kind" enum:"added,changed,removed"`
	Summary string          `json:"summary"`
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
}
