package node

import (
	"encoding/json"

	"tandem/text"
	"tandem/workflow"
)

// Text is a text in the languages that people read.
type Text = text.Text

// Says is a text of a kind's description, in English and in Chinese. Descriptions bring their words with them, so that a kind of an
// extension needs no catalogue; what a kind says while it runs is a [text.Of].
func Says(en, zh string) Text { return text.Beside(en, zh) }

// About describes a kind, without its code and its fields: validation, the compiler, the API, the command line and the reference all read
// it from here.
type About struct {
	// Name is TYPE.SUBTYPE.
	Name        string
	Title       Text
	Description Text
	// Effect says what repeating a run means. Without it the kind counts as [workflow.Once]. Where the configuration decides, the kind's
	// plan sets another.
	Effect workflow.Effect
	// Keys are the output keys besides "error"; none means "result" alone. Where the configuration decides, the kind's plan changes them.
	Keys []Key
	// Aliases are further spellings of output keys, for files of older versions.
	Aliases map[string]string
	// Body is set for kinds that run a body: which of the keys begin and end it.
	Body  *workflow.ScopeKeys
	Needs Needs
	// Traits are what the parts around the engine have to know about the kind.
	Traits workflow.Traits
	// OnUnknown says what follows a run whose outcome is not known, unless the node says so; empty: a person is asked.
	OnUnknown workflow.OnUnknown
	// Older are the names that files of older versions have for the kind: a step type without a subtype ("START"), or another
	// TYPE.SUBTYPE.
	Older []string
	// Values are the allowed values of fields where these depend on the parts of the program, by the name of the field, or by its path in a
	// list of objects (channels.type); they replace the tag enum. Legacy are further values, of older files; they replace the tag legacy.
	// Beside are the conditions of such fields; they replace the tag with.
	Values map[string][]string
	Legacy map[string][]string
	Beside map[string][]Condition
	// Settings are further texts of the objects in a field, by the name of the field, where parts of the program say which there are. Such
	// an object is read into a struct with a field of the type Settings, which has the name "-" in JSON.
	Settings map[string][]Setting
	// Inputs are the fields of the input that the kind reads. Fields of a Go type with tags that describe them need not be repeated here.
	Inputs []Value
	// Examples are shown by references; the first is the simplest.
	Examples []Example
	// Inner says that the program makes nodes of the kind by itself: no author can use it, and nothing lists it.
	Inner bool
}

// AnyKey is the name of a [Key] that stands for keys that come from the configuration.
const AnyKey = "*"

// Key is an output key and what comes out under it.
type Key struct {
	Name    string
	Meaning Text
	// Fields are the fields of the payload. For the result of [Define], the fields of its Go type need not be repeated here.
	Fields []Value
	// Instead says that the key is produced instead of the main one, such as "timeout", and not in addition to it.
	Instead bool
	// With are the values of configuration fields beside which a node has the key; none: it always has it.
	With []Condition
	// From are the configuration fields that name the keys which [AnyKey] stands for.
	From []KeySource
}

// KeySource is a configuration field that names output keys: the texts of a list, the names of an object's fields, or a text. While the
// field is ignored because of others (see [Field].With), it names none.
type KeySource struct {
	Field string
	// Of are fields of the objects in a list; the first of them that is set is the key.
	Of []string
	// Usual are the keys while the field is not set; none: its default is the key, if it has one.
	Usual []string
	// Unless is a flag of the objects in another list, as list.flag: where one of them has it, the field names no key.
	Unless string
}

// Needs is what a kind requires besides its configuration.
type Needs struct {
	// Credential are the types of credential that fit its credential_id; none: it opens no credential. With Optional it also works without
	// one.
	Credential []string
	Optional   bool
	// CredentialOf narrows the types to those that fit a configuration; nil: all of them do.
	CredentialOf func(config json.RawMessage) []string
	// Provider is the provider whose model profiles fit its profile_id; empty: all do.
	Provider string
	// ToolsOf are the tools of one tool server that a configuration names, as the server calls them; nil: the fields themselves say which
	// they are.
	ToolsOf func(config json.RawMessage) (server string, tools []Mention)
	// Also is what else must be there: a model profile, a server that is running, a permission of the operator.
	Also []Text
}

// commonConfig are the fields that every kind has. The runtime reads them, so a kind's own configuration passes over them.
type commonConfig struct {
	Timeout        int    `json:"timeout" range:"1..86400" fixed:"true" doc:"How long one attempt may take, in seconds." zh:"一次尝试最多允许的时间（秒）。"`
	MaxRetries     int    `json:"max_retries" older:"retry_attempts" range:"0..10" fixed:"true" doc:"How often a failure that may pass is tried again." zh:"可恢复的失败最多重试几次。"`
	OnError        string `json:"on_error" enum:"fail|continue|default_output" fixed:"true" doc:"What becomes of a failure: the execution fails, goes on under the key error, or goes on with default_output." zh:"失败时的处理：整个执行失败、经 error 键继续，或以 default_output 继续。"`
	DefaultOutput  any    `json:"default_output" with:"on_error=default_output" doc:"What stands for the result when on_error is default_output." zh:"失败后的输出：on_error 为 default_output 时代替结果的值。"`
	OnUnknown      string `json:"on_unknown" enum:"ask|retry|fail" fixed:"true" doc:"What becomes of a run whose outcome is not known after a crash: a person is asked, it is repeated, or it fails." zh:"崩溃后结果未知时的处理：询问人员、重试或判为失败。"`
	Enabled        bool   `json:"enabled" fixed:"true" doc:"Whether the node does its work; if not, it hands its input on." zh:"节点是否执行；关闭时原样传递输入。"`
	CredentialID   string `json:"credential_id" doc:"The name or the id of the stored credential that the node opens." zh:"节点所用凭据的名称或编号。"`
	TemplateID     string `json:"template_id" names:"template" doc:"The node template whose configurations come before those written here." zh:"节点模板的编号，其配置在此处配置之前生效。"`
	EnableFilling  bool   `json:"enable_filling" doc:"Whether inputs that are missing are filled from what the execution knows, by a model or by a person." zh:"补全输入：是否由执行上下文、模型或人员补全缺少的输入。"`
	FillingProfile string `json:"filling_profile" names:"profile" with:"enable_filling=true" doc:"The model profile that fills missing inputs." zh:"补全输入所用的模型配置档。"`
	ToUser         bool   `json:"to_user" doc:"Whether the output is shown to who follows the execution as an answer." zh:"是否将输出作为答复展示给用户。"`
	CreditCost     int    `json:"credit_cost" range:"0.." doc:"What a success costs, in credits, besides tokens." zh:"一次成功所计的点数（令牌费用除外）。"`
}

func (c *commonConfig) Defaults() {
	c.Timeout, c.MaxRetries, c.OnError, c.OnUnknown, c.Enabled = 420, 3, string(workflow.OnErrorFail), string(workflow.OnUnknownAsk), true
}
