package api

import "encoding/json"

// Profile describes a model in a workspace: how it is reached, what it costs, which profile replaces it when it fails. It
// holds no secret; the key is in the credential that it names.
type Profile struct {
	ID       string `json:"id" required:"false" pattern:"^[A-Za-z0-9_.-]{1,128}$" doc:"made from the name when it is left out"`
	Name     string `json:"name,omitempty" maxLength:"200"`
	Provider string `json:"provider" doc:"openai (and what speaks its API), anthropic, gemini or scripted"`
	Model    string `json:"model,omitempty" maxLength:"200" doc:"as the service calls it; scripted needs none"`
	// EmbeddingModel turns texts into vectors, for memories.
	EmbeddingModel string            `json:"embedding_model,omitempty" maxLength:"200"`
	BaseURL        string            `json:"base_url,omitempty" doc:"where the service is; left out, its public address"`
	CredentialID   string            `json:"credential_id,omitempty" doc:"id or name of a credential of the provider's type; answers have the id"`
	Parameters     ProfileParameters `json:"parameters,omitzero"`
	Price          ProfilePrice      `json:"price,omitzero"`
	Fallbacks      []string          `json:"fallback_profiles,omitempty" maxItems:"16" doc:"profiles that take its place when it fails, in order"`
	Budget         []ProfileBudget   `json:"budget,omitempty" maxItems:"3" doc:"limits; at most one per execution, workflow and day. One may also be sent without the list"`
	Script         ProfileScript     `json:"script,omitzero"`
	CreatedTime    int64             `json:"created_time,omitempty" readOnly:"true"`
	UpdatedTime    int64             `json:"updated_time,omitempty" readOnly:"true"`
}

// ProfileParameters are used where a request does not set them.
type ProfileParameters struct {
	Temperature      *float64        `json:"temperature,omitempty" minimum:"0" maximum:"2"`
	TopP             *float64        `json:"top_p,omitempty" minimum:"0" maximum:"1"`
	TopK             *int64          `json:"top_k,omitempty" minimum:"1"`
	MaxTokens        int64           `json:"max_tokens,omitempty" minimum:"0"`
	FrequencyPenalty *float64        `json:"frequency_penalty,omitempty" minimum:"-2" maximum:"2"`
	PresencePenalty  *float64        `json:"presence_penalty,omitempty" minimum:"-2" maximum:"2"`
	Stop             []string        `json:"stop,omitempty" maxItems:"16"`
	ReasoningEffort  string          `json:"reasoning_effort,omitempty" enum:"low,medium,high"`
	ThinkingBudget   int64           `json:"thinking_budget,omitempty" minimum:"0" doc:"tokens for thoughts"`
	Safety           json.RawMessage `json:"safety,omitempty" doc:"object of category to threshold, for services that have it"`
}

// ProfilePrice is in units of the currency per million tokens.
type ProfilePrice struct {
	Input  float64 `json:"input,omitempty" minimum:"0"`
	Output float64 `json:"output,omitempty" minimum:"0"`
	Cached float64 `json:"cached,omitempty" minimum:"0" doc:"of input that the service had kept; left out, the price of input"`
}

// ProfileBudget limits what is spent through a profile.
type ProfileBudget struct {
	Per      string  `json:"per" enum:"execution,workflow,day"`
	Tokens   int64   `json:"tokens,omitempty" minimum:"0"`
	Cost     float64 `json:"cost,omitempty" minimum:"0" doc:"in units of the currency"`
	TimeZone string  `json:"time_zone,omitempty" doc:"where a day begins, such as Asia/Shanghai; left out, UTC"`
}

// ProfileScript is what the scripted provider answers.
type ProfileScript struct {
	Rules    []ProfileRule              `json:"rules,omitempty" doc:"tried in order; the first that fits answers"`
	Recorded map[string]json.RawMessage `json:"recorded,omitempty" doc:"answers of a recorded run, by fingerprint; they come before the rules"`
}

// ProfileRule is one answer and when it is given. All conditions that are set must hold.
type ProfileRule struct {
	Contains     string            `json:"contains,omitempty" doc:"a text that the last message of a person has"`
	Matches      string            `json:"matches,omitempty" doc:"a regular expression on it"`
	System       string            `json:"system,omitempty" doc:"a text that a system message has"`
	Tool         string            `json:"tool,omitempty" doc:"the last message is the result of this tool"`
	Schema       string            `json:"schema,omitempty" doc:"the name of the shape that is asked for"`
	Reply        string            `json:"reply,omitempty" doc:"{{last}} is the last message, $1 what matches has found, {{tool}} the result of a tool"`
	JSON         json.RawMessage   `json:"json,omitempty"`
	Reasoning    string            `json:"reasoning,omitempty"`
	Calls        []ProfileRuleCall `json:"calls,omitempty"`
	FinishReason string            `json:"finish_reason,omitempty" enum:"stop,length,tool_calls"`
	Fail         string            `json:"fail,omitempty" doc:"answers with an error of this code instead"`
}

// ProfileRuleCall is a tool that the model wants called.
type ProfileRuleCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Profiles lists them, by id.
type Profiles struct {
	Profiles  []Profile         `json:"profiles"`
	Providers []ProfileProvider `json:"providers" doc:"the services that profiles can name here, the most usual first"`
}

// ProfileProvider is a service that models are reached through.
type ProfileProvider struct {
	Name     string `json:"name" doc:"what profiles call it; credentials of the type of this name have its key"`
	Label    Text   `json:"label" doc:"what people call it"`
	Scripted bool   `json:"scripted,omitempty" doc:"it answers from the script of the profile, and needs neither a model nor a credential"`
}

// ProfileTestRequest asks a model for a few words.
type ProfileTestRequest struct {
	Prompt string `json:"prompt,omitempty" maxLength:"2000" doc:"left out, it is asked to say ok"`
}

// ProfileTest is how a model answered. When the model could not answer, error says why; the request itself succeeds.
type ProfileTest struct {
	OK           bool           `json:"ok"`
	Model        string         `json:"model,omitempty" doc:"as the service calls it"`
	Reply        string         `json:"reply,omitempty" doc:"the beginning of what it said"`
	LatencyMS    int64          `json:"latency_ms"`
	FirstTokenMS int64          `json:"first_token_ms,omitempty"`
	Usage        *ProfileUsage  `json:"usage,omitempty"`
	Warnings     []string       `json:"warnings,omitempty" doc:"what was asked for and left out"`
	Error        *ProfileFailed `json:"error,omitempty"`
}

// ProfileUsage is what a call has used.
type ProfileUsage struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CachedTokens int64   `json:"cached_tokens,omitempty"`
	Estimated    bool    `json:"estimated,omitempty" doc:"the service did not tell; the numbers are guesses"`
	Cost         float64 `json:"cost" doc:"in units of the currency, by the profile's price"`
}

// ProfileFailed says why a model could not be asked.
type ProfileFailed struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Budget is one limit of a profile for one execution, workflow or day. Numbers are tokens, or units of the currency.
type Budget struct {
	Budget    string  `json:"budget" doc:"its name, for raising it"`
	ProfileID string  `json:"profile_id"`
	Per       string  `json:"per" enum:"execution,workflow,day"`
	Key       string  `json:"key" doc:"the execution, the workflow or the day"`
	Unit      string  `json:"unit" enum:"tokens,cost"`
	Limit     float64 `json:"limit" doc:"as the profile says; 0: it no longer limits this"`
	Raised    float64 `json:"raised" doc:"what people have added"`
	Spent     float64 `json:"spent"`
	Reserved  float64 `json:"reserved" doc:"what calls that are under way may use at most"`
	Remaining float64 `json:"remaining" doc:"limit and raises, less what is spent and reserved; never less than 0"`
	OpenCalls int     `json:"open_calls"`
	// Waiting are the activations that wait for it to be raised, the longest first.
	Waiting []BudgetWait `json:"waiting"`
}

// BudgetWait is an activation that waits for a budget.
type BudgetWait struct {
	ExecutionID  string `json:"execution_id"`
	NodeID       string `json:"node_id"`
	ActivationID string `json:"activation_id"`
	SinceTime    int64  `json:"since_time"`
	Asks         bool   `json:"asks,omitempty" doc:"it asks a person; the others wait for the same answer"`
}

// Budgets lists budgets by profile; those that nodes wait for come first.
type Budgets struct {
	Budgets []Budget `json:"budgets"`
	More    bool     `json:"more,omitempty" doc:"executions or workflows were left out; narrow the listing or raise the limit"`
}

// BudgetQuery narrows a listing of budgets. Empty fields do not narrow it.
type BudgetQuery struct {
	ProfileID string
	Per       string
	// Budget is the name of one.
	Budget string
	// Waiting leaves out budgets that no node waits for.
	Waiting bool
	// Limit is how many executions and workflows are listed per profile, of each.
	Limit int
}

// RaiseRequest adds to a budget.
type RaiseRequest struct {
	Budget    string  `json:"budget" maxLength:"400"`
	RaiseBy   float64 `json:"raise_by" doc:"tokens, or units of the currency for a budget of money"`
	RequestID string  `json:"request_id,omitempty" maxLength:"200" doc:"the same again for a budget adds nothing"`
}
