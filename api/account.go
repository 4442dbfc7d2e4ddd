package api

import (
	"encoding/json"

	"tandem/text"
)

// Text is a text in both languages.
type Text struct {
	Zh string `json:"zh"`
	En string `json:"en"`
}

// TextOf returns a text as the API shows it, in every language.
func TextOf(t text.Text) Text { return Text{En: t.In(text.English), Zh: t.In(text.Chinese)} }

// In is the text in a language; those that it has no words in read it in English.
func (t Text) In(language string) string {
	if text.Language(language) == text.Chinese {
		return t.Zh
	}
	return t.En
}

// NodeKind is a kind of node that can be run here.
type NodeKind struct {
	Name         string          `json:"name" doc:"TYPE.SUBTYPE"`
	Type         string          `json:"type"`
	Subtype      string          `json:"subtype"`
	Title        Text            `json:"title"`
	Description  Text            `json:"description"`
	ConfigSchema json.RawMessage `json:"config_schema"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema"`
	OutputKeys   []string        `json:"output_keys"`
	// OlderNames and KeyAliases are what files of older versions write for the kind and for its output keys.
	OlderNames []string          `json:"older_names,omitempty" doc:"further names that files may have for the kind: TYPE.SUBTYPE, or a type without a subtype"`
	KeyAliases map[string]string `json:"key_aliases,omitempty" doc:"further names that connections may have for output keys, and the key that each of them means"`
	Body       *NodeBody         `json:"body,omitempty" doc:"of a kind that runs a body: the output keys that begin and end it"`
	// Inputs and Keys say what goes in and what comes out.
	Inputs   []NodeValue   `json:"inputs,omitempty" doc:"the fields of the input that the kind reads; * stands for whatever else there is"`
	Keys     []NodeKey     `json:"keys,omitempty" doc:"what comes out under the output keys that every node of the kind has; * stands for those that come from the configuration"`
	Needs    *NodeNeeds    `json:"needs,omitempty" doc:"what must be there besides the configuration"`
	Examples []NodeExample `json:"examples,omitempty" doc:"nodes to copy, each with what it is given and what comes of it"`
	Effect   string        `json:"effect" doc:"of the default configuration"`
	// EffectBy has the fields that change the effect, and the effect that each such value gives.
	EffectBy   map[string]map[string]string `json:"effect_by,omitempty" doc:"fields of the configuration whose values change the effect: which effect a value gives"`
	Timeout    float64                      `json:"timeout" doc:"seconds"`
	MaxRetries int                          `json:"max_retries"`
	OnUnknown  string                       `json:"on_unknown,omitempty" enum:"ask,retry,fail" doc:"what becomes of a run whose outcome is not known, unless the node says so"`
	PlainNames string                       `json:"plain_names,omitempty" enum:"input,carried" doc:"what the plain names in its conditions are: input (fields of the input) or carried (what one iteration hands to the next); absent: only the names that all expressions have"`
}

// NodeBody are the output keys around the nodes that a kind runs as its body.
type NodeBody struct {
	Entry string   `json:"entry" doc:"what is connected to this key is the body; a node that does not have the key runs none"`
	Exits []string `json:"exits" doc:"the keys that follow when it has ended"`
	Once  bool     `json:"once,omitempty" doc:"it runs exactly once"`
}

// NodeKey is an output key and what comes out under it.
type NodeKey struct {
	Name    string      `json:"name"`
	Meaning Text        `json:"meaning"`
	Fields  []NodeValue `json:"fields,omitempty" doc:"the fields of the payload; * stands for whatever else there is"`
	// With and From say which nodes have the key.
	With map[string][]string `json:"with,omitempty" doc:"the values of configuration fields beside which a node has the key; absent: it always has it"`
	From []NodeKeySource     `json:"from,omitempty" doc:"of the key *: the configuration fields that name the keys"`
}

// NodeKeySource is a configuration field that names output keys.
type NodeKeySource struct {
	Field  string   `json:"field" doc:"its texts, the names of its fields, or its text are the keys; none while x-with says that it is ignored"`
	Of     []string `json:"of,omitempty" doc:"fields of the objects in the list; the first of them that is set is the key"`
	Usual  []string `json:"usual,omitempty" doc:"the keys while the field is not set; absent: its default, if it has one"`
	Unless string   `json:"unless,omitempty" doc:"a flag of the objects in another list, as list.flag: where one of them has it, the field names no key"`
}

// NodeValue is a field of what goes into a node or comes out of it.
type NodeValue struct {
	Name    string `json:"name" doc:"a path: results[].title"`
	Meaning Text   `json:"meaning"`
}

// NodeNeeds is what a kind cannot do without, besides its configuration.
type NodeNeeds struct {
	Credential []string `json:"credential,omitempty" doc:"the types of credential that fit credential_id"`
	Optional   bool     `json:"optional,omitempty" doc:"it also works without a credential"`
	Also       []Text   `json:"also,omitempty" doc:"what else must be there"`
}

// NodeExample is a node to copy, with its input and its output.
type NodeExample struct {
	Shows          Text              `json:"shows" doc:"what it is an example of"`
	Configurations json.RawMessage   `json:"configurations"`
	Inputs         []json.RawMessage `json:"inputs,omitempty" doc:"what each of its connections brings"`
	Replies        []string          `json:"replies,omitempty" doc:"what those who are asked reply, in turn: a model, a service, a person"`
	Output         json.RawMessage   `json:"output" doc:"the payloads by output key; … stands for what differs from run to run, and a text \"same as KEY\" for the payload of another key"`
}

// NodeKinds lists kinds of nodes, by name.
type NodeKinds struct {
	NodeKinds []NodeKind `json:"node_kinds"`
	// CommonFields is the schema of what every node can be configured with besides the fields of its kind.
	CommonFields json.RawMessage `json:"common_fields" doc:"the JSON Schema of the configurations that nodes of every kind have, in the form of config_schema"`
}

// NodeTemplate is a stored set of values and schema overrides that nodes refer to.
type NodeTemplate struct {
	ID             string          `json:"id" required:"false" pattern:"^[A-Za-z0-9_.-]{1,128}$"`
	Kind           string          `json:"kind"`
	Name           string          `json:"name"`
	KnownParams    json.RawMessage `json:"known_params,omitempty"`
	OverrideInput  json.RawMessage `json:"override_input,omitempty"`
	OverrideOutput json.RawMessage `json:"override_output,omitempty"`
	CreatedTime    int64           `json:"created_time,omitempty" readOnly:"true"`
	UpdatedTime    int64           `json:"updated_time,omitempty" readOnly:"true"`
}

// NodeTemplates lists templates of nodes, by id.
type NodeTemplates struct {
	NodeTemplates []NodeTemplate `json:"node_templates"`
}

// User is somebody who may use the workspace.
type User struct {
	ID          string   `json:"id"`
	Workspace   string   `json:"workspace"`
	Name        string   `json:"name"`
	Email       string   `json:"email,omitempty"`
	Addresses   []string `json:"addresses,omitempty" doc:"where else they write from: slack:U024BE7LH, telegram:@ann, another mail address"`
	Roles       []string `json:"roles" enum:"admin,editor,operator,approver,viewer"`
	AutoExecute bool     `json:"auto_execute" doc:"calls of low risk run without a confirmation, for agents that allow it, too"`
	Language    string   `json:"language,omitempty" enum:"zh,en" doc:"the language of the pages and messages that they read; absent: they have not said"`
	Disabled    bool     `json:"disabled,omitempty"`
	CreatedTime int64    `json:"created_time"`
	// AddressOrigins and TokensMadeByOthers show what others could have used to act in the user's name.
	AddressOrigins     map[string]AddressOrigin `json:"address_origins,omitempty" doc:"who entered which address, and when: mail:ADDRESS is the email"`
	TokensMadeByOthers []Token                  `json:"tokens_made_by_others,omitempty" doc:"tokens of the user whose secret somebody else has seen, in listings"`
}

// AddressOrigin is who entered an address in a user's record.
type AddressOrigin struct {
	SetBy       string `json:"set_by"`
	TokenMadeBy string `json:"token_made_by,omitempty" doc:"who made the token that it was entered with, if it was somebody else"`
	SetTime     int64  `json:"set_time"`
}

// Users lists users, by id.
type Users struct {
	Users []User `json:"users"`
}

// UserRequest makes or changes a user.
type UserRequest struct {
	ID    string `json:"id,omitempty" pattern:"^[A-Za-z0-9_.@-]{0,128}$"`
	Name  string `json:"name"`
	Email string `json:"email,omitempty"`
	// Addresses are left as they are when they are not given.
	Addresses []string `json:"addresses,omitempty" maxItems:"50" doc:"where else they write from, as channel:address; what is answered from there is theirs. Left out, they stay as they are"`
	Roles     []string `json:"roles"`
	Language  *string  `json:"language,omitempty" enum:"zh,en," doc:"the language of the pages and messages that they read; empty: whatever their browser or the workflow says. Left out, it stays as it is"`
	Disabled  bool     `json:"disabled,omitempty"`
}

// MeRequest changes settings that are a user's own. What is left out stays as it is.
type MeRequest struct {
	Language    *string `json:"language,omitempty" enum:"zh,en," doc:"the language of the pages and messages that you read; empty: whatever your browser or the workflow says"`
	AutoExecute *bool   `json:"auto_execute,omitempty" doc:"calls of low risk run without a confirmation, for agents that allow it, too"`
}

// Token is an API token without its secret.
type Token struct {
	ID          string `json:"id"`
	UserID      string `json:"user_id"`
	Name        string `json:"name"`
	MadeBy      string `json:"made_by,omitempty" doc:"who made it, and so has seen its secret; one that was made with a token of somebody else's making is theirs. Not there: it was made before this was recorded"`
	CreatedTime int64  `json:"created_time"`
	ExpiresTime int64  `json:"expires_time,omitempty"`
	// Scopes and LastUsedTime say what the token may be used for and when it was used last.
	Scopes       []string `json:"scopes,omitempty" enum:"read,execute,answer,edit,admin,login" doc:"what it may be used for; absent: whatever its user may do"`
	LastUsedTime int64    `json:"last_used_time,omitempty" doc:"when it was last used, to a minute; absent: not yet"`
}

// Tokens lists tokens, oldest first.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name      string `json:"name"`
	ExpiresIn int64  `json:"expires_in,omitempty" minimum:"0" doc:"seconds; 0: never"`
	// Scopes narrow what the user may do; they never add to it.
	Scopes []string `json:"scopes,omitempty" maxItems:"5" doc:"what it may be used for: read, execute, answer, edit, admin; left out: whatever the user may do. A scope never gives more than the user's roles. login, alone: the secret is the code of a link, /login#code=SECRET, which logs a browser in once, within an hour"`
}

// NewToken is a token with its secret, which is shown this once.
type NewToken struct {
	Token  Token  `json:"token"`
	Secret string `json:"secret"`
}

// Credential is a stored secret, without the secret.
type Credential struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Type        string `json:"type"`
	CreatedBy   string `json:"created_by"`
	TokenMadeBy string `json:"token_made_by,omitempty" doc:"who made the token that it was made with, if it was somebody else than created_by"`
	CreatedTime int64  `json:"created_time"`
	UpdatedTime int64  `json:"updated_time"`
	// Problem is set where a service no longer accepts it.
	Problem string `json:"problem,omitempty" doc:"why it cannot be used until a person authorizes it again"`
}

// CredentialUse is a record that names a credential.
type CredentialUse struct {
	Kind     string   `json:"kind" enum:"workflow,node_template,profile,mcp_server,channel,contact_channel"`
	ID       string   `json:"id" doc:"of the record; of a channel its name"`
	Name     string   `json:"name,omitempty"`
	Revision int64    `json:"revision,omitempty" doc:"of a workflow"`
	Deployed bool     `json:"deployed,omitempty" doc:"the revision is deployed"`
	Paths    []string `json:"paths" doc:"where in the record"`
	ByName   bool     `json:"by_name,omitempty" doc:"it is named by its name, which therefore must not change"`
}

// CredentialTest is the result of trying a credential.
type CredentialTest struct {
	OK          bool   `json:"ok" doc:"the service takes the credential"`
	Testable    bool   `json:"testable" doc:"false: it could not be tried at all, and detail says why"`
	Detail      string `json:"detail" doc:"what was found, or what is wrong and what to do about it; it holds no secret"`
	ErrorCode   string `json:"error_code,omitempty" doc:"the code of what is wrong: credential_invalid, network_error, timeout"`
	CheckedTime int64  `json:"checked_time"`
}

// CredentialUses lists what names a credential.
type CredentialUses struct {
	Uses []CredentialUse `json:"uses"`
}

// Credentials lists credentials, by name.
type Credentials struct {
	Credentials []Credential `json:"credentials"`
}

// CredentialRequest makes or changes a credential. Data is written and never read back.
type CredentialRequest struct {
	Name string          `json:"name" minLength:"1" maxLength:"200"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data,omitempty" doc:"object with the fields of the type; left out in a change, it stays"`
}

// CredentialTypes lists the types and their fields.
type CredentialTypes struct {
	Types []CredentialType `json:"types"`
}

// CredentialType is a type of credential.
type CredentialType struct {
	Name   string            `json:"name"`
	Title  Text              `json:"title"`
	Fields []CredentialField `json:"fields"`
}

// CredentialField is a field of a type of credential.
type CredentialField struct {
	Name     string   `json:"name"`
	Title    Text     `json:"title"`
	Format   string   `json:"format"`
	Secret   bool     `json:"secret"`
	Required bool     `json:"required"`
	Default  string   `json:"default,omitempty"`
	Choices  []string `json:"choices,omitempty"`
}

// CallerHeader is the header in which the gateway names the address of its caller. In a request from outside it is ignored.
const CallerHeader = "Tandem-Caller"

// Fault is a problem document: what went wrong with a request.
type Fault struct {
	Type   string       `json:"type,omitempty"`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail"`
	Code   string       `json:"code" doc:"what programs act on"`
	Errors []FaultField `json:"errors,omitempty" doc:"what is wrong with single fields"`
	// Details are facts for programs, such as the names that would have been accepted.
	Details map[string]any `json:"details,omitempty"`
	// OperatorDetail is sent to admins and operators only.
	OperatorDetail string `json:"operator_detail,omitempty" doc:"sent to admins and operators only"`
}

// FaultField says what is wrong with one field.
type FaultField struct {
	Path    string `json:"path"`
	Message string `json:"message"`
	// MessageZH is the same for people who read Chinese.
	MessageZH string `json:"message_zh,omitempty" doc:"the same in Chinese, where it is known"`
	// The rest is there when the field is one of a definition.
	Code     string `json:"code,omitempty"`
	Severity string `json:"severity,omitempty" enum:"error,warning"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
}

// Text is what is wrong, for readers of every language.
func (f FaultField) Text() text.Text {
	if f.MessageZH == "" {
		return text.As(f.Message)
	}
	return text.Beside(f.Message, f.MessageZH)
}

// Workspace is a tenant: its users, workflows, executions and secrets are its own.
type Workspace struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	CreatedTime int64  `json:"created_time"`
}

// Workspaces lists the workspaces that the caller may see.
type Workspaces struct {
	Workspaces []Workspace `json:"workspaces"`
}

// WorkspaceRequest makes a workspace with its first user.
type WorkspaceRequest struct {
	ID    string         `json:"id" maxLength:"63" doc:"lower-case letters, digits, - and _; it never changes"`
	Name  string         `json:"name,omitempty" doc:"by default the id"`
	Admin WorkspaceAdmin `json:"admin,omitempty" doc:"its first user"`
}

// WorkspaceChange changes a workspace.
type WorkspaceChange struct {
	Name string `json:"name" minLength:"1" maxLength:"200" doc:"what people call it; its id stays"`
}

// WorkspaceAdmin is the first user of a new workspace.
type WorkspaceAdmin struct {
	ID    string `json:"id,omitempty" pattern:"^[A-Za-z0-9_.@-]{0,128}$" doc:"by default admin"`
	Name  string `json:"name,omitempty" doc:"by default the id"`
	Email string `json:"email,omitempty"`
}

// WorkspaceTokenRequest asks for a token for the admin of a workspace.
type WorkspaceTokenRequest struct {
	ExpiresIn int64 `json:"expires_in,omitempty" minimum:"0" doc:"seconds; by default a day"`
}

// NewWorkspace is a workspace with its admin and a token of theirs, whose secret is shown this once.
type NewWorkspace struct {
	Workspace Workspace `json:"workspace"`
	User      User      `json:"user"`
	Token     Token     `json:"token"`
	Secret    string    `json:"secret"`
}
