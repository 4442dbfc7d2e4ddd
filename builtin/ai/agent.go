package ai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/fileref"
	"tandem/builtin/models"
	"tandem/builtin/toolset"
	"tandem/builtin/turn"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/fault"
	"tandem/files"
	"tandem/llm"
	"tandem/mcp"
	"tandem/node"
	"tandem/node/slot"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// anyModel is the kind that speaks with the model of any profile.
const anyModel = "AI_AGENT.LLM"

// agents are the kinds that have a turn with a model: those that providers bring, by the names of these, and the one for any.
func agents(d Deps) []node.Kind {
	if d.Models == nil {
		return nil
	}
	t := turns{models: d.Models, files: d.Files, tools: d.Tools}
	var list []node.Kind
	for _, provider := range slices.Sorted(maps.Keys(d.Turns)) {
		list = append(list, t.make(provider, d.Turns[provider]))
	}
	return append(list, t.make("", turn.Of[llmConfig](turn.Kind{
		Name: anyModel, Title: node.Says("Language model", "大语言模型"),
		Description: node.Says("A turn with the model of any profile.", "与任意配置档的模型对话。"),
	})))
}

// aboutTurn is what a kind says of itself that has a turn with a model of a provider, or of any.
func aboutTurn(provider string, kind turn.Kind) node.About {
	about := node.About{
		Name: kind.Name, Title: kind.Title, Description: kind.Description,
		Effect: workflow.Idempotent, // the calls of its tools have classes of their own
		Keys:   turnKeys(),
		Needs:  node.Needs{Credential: []string{provider}, Optional: true, Provider: provider, Also: []node.Text{node.Says("A model profile, or a credential and the name of a model.", "模型配置档，或凭据与模型名称。")}},
		Inputs: []node.Value{node.Meaning("*", "Whatever the placeholders of the prompts name.", "提示词中占位符所引用的值。")},
	}
	oldNames := ""
	if provider == "" {
		about.Older, oldNames = []string{"LLM"}, `, "finishReason": "stop", "toolCalls": [], "toolResults": []`
		about.Needs = node.Needs{Also: []node.Text{node.Says("A model profile.", "模型配置档。")}}
	}
	about.Examples = []node.Example{{
		Shows:   node.Says("Asks for a value in JSON.", "要求以 JSON 回答。"),
		Config:  `{"profile_id": "writer", "user_prompt": "In which country is {{city}}?", "response_format": "json", "stream": false}`,
		Input:   `{"city": "Bern"}`,
		Replies: []string{`{"country": "Switzerland"}`},
		Output:  `{"result": {"content": {"country": "Switzerland"}, "response": "{\"country\": \"Switzerland\"}", "extracted_data": {"country": "Switzerland"}, "metadata": {"model": "m", "profile_id": "writer", "completions": 1, "cost": 0}, "token_usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}, "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}, "finish_reason": "stop", "function_calls": [], "tool_calls": [], "tool_results": [], "context": {"conversation": [{"role": "user", "content": "In which country is Bern?"}, {"role": "assistant", "content": "{\"country\": \"Switzerland\"}"}], "appended": 2}` + oldNames + `}, "structured_data": "same as result"}`,
	}}
	return about
}

// make makes a kind that has turns with the models of a provider; empty: of any.
func (t turns) make(provider string, kind turn.Kind) node.Kind {
	t.kind, t.provider = kind, provider
	k := kind.Make(aboutTurn(provider, kind), turn.Runner{
		Open: t.open, Step: t.step, Inquire: t.inquire, Given: t.given, Shows: shows, Close: t.close, Plan: planTurn,
	})
	k.Own = promptNames()
	return k
}

// turns are the turns of one kind.
type turns struct {
	models *models.Models
	files  *files.Store
	tools  *mcp.Pool
	kind   turn.Kind
	// provider is which one a node means that names a model and no profile; empty: none.
	provider string
}

// turnState is what the steps of a turn share: everything that was known when it began.
type turnState struct {
	Profiles []turnProfile `json:"profiles"`
	Request  llm.Request   `json:"request"`
	// System is how many of the messages come before those of memories.
	System   int        `json:"system"`
	Query    string     `json:"query"`
	Memories []string   `json:"memories,omitempty"`
	Tools    []turnTool `json:"tools,omitempty"`
	// History are the messages of earlier rounds that the request begins with, after the system's. Before are those of the
	// conversation that came before them and are not sent.
	History      int             `json:"history,omitempty"`
	Before       []llm.Message   `json:"before,omitempty"`
	Snapshot     json.RawMessage `json:"snapshot,omitempty"`
	FirstTokenMS int64           `json:"first_token_ms"`
	// ToUser says that what is answered is for the user.
	ToUser   bool   `json:"to_user,omitempty"`
	TotalMS  int64  `json:"total_ms"`
	Language string `json:"language,omitempty"`
}

// turnProfile is a model of a turn. What a stored profile says is read for each completion, so that one that was mended is
// used as it is.
type turnProfile struct {
	ID    string `json:"id"`
	Model string `json:"model,omitempty"`
	// Own is that of a node that names its model itself.
	Own *llm.Profile `json:"own,omitempty"`
}

// turnTool is a tool and who does it.
type turnTool struct {
	Name string `json:"name"`
	// Node is the attached node, Server the tool server of a tool that the node lists by itself. Both are empty for a tool that
	// only the workflow knows, whose calls end the turn.
	Node   string `json:"node,omitempty"`
	Server string `json:"server,omitempty"`
	// Tool is its name there.
	Tool   string          `json:"tool,omitempty"`
	Effect workflow.Effect `json:"effect,omitempty"`
	// Approve says which calls a person decides about.
	Approve string `json:"approve,omitempty"`
	// EffectBy is the argument that decides about the effect, see [node.Tool].
	EffectBy  string                     `json:"effect_by,omitempty"`
	Effects   map[string]workflow.Effect `json:"effects,omitempty"`
	TimeoutMS int64                      `json:"timeout_ms,omitempty"`
	// Policy is what people have decided about the tool; of tools of tool servers only. Unsaid says that the author of the workflow has not
	// said which of its calls are approved.
	Policy *toolset.Policy `json:"policy,omitempty"`
	Unsaid bool            `json:"unsaid,omitempty"`
	// Acts and Sources are those of [node.Tool].
	Acts    workflow.Effect `json:"acts,omitempty"`
	Sources bool            `json:"sources,omitempty"`
}

// asked says that a person decides about a call that a model wants.
func (t turnTool) asked(c llm.ToolCall) bool {
	if t.Policy == nil {
		return t.approved(t.effect(c))
	}
	return t.asks(t.effect(c), t.Policy.Meets(c.Arguments))
}

// approved says that a person decides about a call first.
func (t turnTool) approved(e workflow.Effect) bool {
	return t.Approve == toolset.ApproveAlways || t.Approve == toolset.ApproveOnce && cmp.Or(t.Acts, e) == workflow.Once
}

// effect is what a call does to the world.
func (t turnTool) effect(c llm.ToolCall) workflow.Effect {
	if t.EffectBy == "" {
		return t.Effect
	}
	value := gjson.Get(c.Arguments, t.EffectBy)
	if e, ok := t.Effects[strings.ToUpper(value.Str)]; ok {
		return e
	}
	return t.Effect
}

// toolTimeoutMS is how long a tool call may take.
const toolTimeoutMS = 60_000

func (t *turns) open(ctx context.Context, call *node.Call, cfg turn.Config, in turn.Input) (node.Led, error) {
	state := turnState{Language: call.Language, FirstTokenMS: int64(cfg.FirstToken * 1000), TotalMS: int64(cfg.Total * 1000),
		ToUser: gjson.GetBytes(call.Config, "to_user").Bool()}
	if gjson.GetBytes(call.Config, "timeout").Exists() {
		state.TotalMS = call.TimeoutMS // the one limit that a node names is that of the whole completion
	}
	var err error
	if state.Profiles, err = t.profiles(ctx, call, &cfg); err != nil {
		return node.Led{}, err
	}
	if err := t.request(ctx, call, &cfg, &in, &state); err != nil {
		return node.Led{}, err
	}
	if wait, err := t.equip(ctx, call, &cfg, &state); err != nil || wait != nil {
		return node.Led{Wait: wait}, err
	}
	config, err := json.Marshal(engine.LoopConfig{
		Loads: len(state.Memories), Stores: len(state.Memories), Profiles: len(state.Profiles), Rounds: cfg.MaxIterations, Tries: 3,
		OneByOne: !cfg.Parallel, MaxRetries: call.MaxRetries, TimeoutMS: state.TotalMS + 60_000, ToolTimeoutMS: toolTimeoutMS,
	})
	if err != nil {
		return node.Led{}, err
	}
	raw, err := payload.Encode(state)
	if err != nil {
		return node.Led{}, err
	}
	return node.Led{Config: config, State: raw}, nil
}

// profiles are the models that the turn may use, in order.
func (t *turns) profiles(ctx context.Context, call *node.Call, cfg *turn.Config) ([]turnProfile, error) {
	ids := cfg.Fallbacks
	var list []turnProfile
	if cfg.ProfileID != "" {
		p, err := t.models.ProfileFor(ctx, call, cfg.ProfileID)
		if err != nil {
			return nil, err
		}
		if t.provider != "" && p.Provider != t.provider && p.Provider != "scripted" {
			return nil, fault.Newf(fault.InvalidConfig, "profile %q is of the provider %q; %s speaks with %q, use AI_AGENT.LLM for any other", p.ID, p.Provider, t.kind.Name, t.provider).
				With("path", "configurations.profile_id")
		}
		list, ids = append(list, turnProfile{ID: p.ID, Model: cfg.Model}), append(slices.Clone(ids), p.Fallbacks...)
	} else {
		if t.provider == "" || cfg.Model == "" {
			return nil, fault.New(fault.InvalidConfig, `"profile_id" is missing; name a profile, "tandem profiles" lists them`).With("path", "configurations.profile_id")
		}
		credential, err := credentialOf(call)
		if err != nil {
			return nil, err
		}
		own := llm.Profile{ID: t.provider + "/" + cfg.Model, Provider: t.provider, Model: cfg.Model, CredentialID: credential}
		list = append(list, turnProfile{ID: own.ID, Own: &own})
	}
	for _, id := range ids {
		if slices.ContainsFunc(list, func(p turnProfile) bool { return p.ID == id }) {
			continue
		}
		if _, err := t.models.ProfileFor(ctx, call, id); err != nil {
			return nil, err
		}
		list = append(list, turnProfile{ID: id})
	}
	return list, nil
}

// credentialOf is the credential that the node names.
func credentialOf(call *node.Call) (string, error) {
	var config struct {
		Credential string `json:"credential_id"`
	}
	if err := json.Unmarshal(call.Config, &config); err != nil {
		return "", fault.New(fault.InvalidConfig, `"credential_id" must be a text`).With("path", "configurations.credential_id")
	}
	return config.Credential, nil
}

// request builds what the first completion asks: system, history, the person's words.
func (t *turns) request(ctx context.Context, call *node.Call, cfg *turn.Config, in *turn.Input, state *turnState) error {
	r := &state.Request
	r.Stream, r.OneTool, r.User = cfg.Stream, !cfg.Parallel, call.UserID
	r.Params = cfg.Params
	if state.Profiles[0].Own != nil { // a stored profile has defaults of its own
		r.Temperature, r.TopP = cmp.Or(r.Temperature, t.kind.Temperature), cmp.Or(r.TopP, t.kind.TopP)
	}
	switch cfg.ResponseFormat {
	case "json":
		r.JSON = true
	case "schema":
		r.Schema = &llm.Schema{Name: "answer", JSON: json.RawMessage(cfg.OutputSchema)}
		if _, err := r.Schema.Compile(); err != nil {
			return fault.Newf(fault.InvalidConfig, `"output_schema" is not a usable JSON Schema: %s`, fault.From(err).Message).With("path", "configurations.output_schema")
		}
	}
	if !values.IsNull(in.Variables) && !values.IsObject(in.Variables) {
		return fault.New(fault.InvalidInput, `"variables" must be an object: the names that placeholders of the prompts may have, and their values`).With("path", "variables")
	}
	given, err := givenMessages(cfg.Messages)
	if err != nil {
		return err
	}
	system, user := prompts(cfg, in, len(given) > 0)
	if user == "" && len(given) == 0 {
		return slot.Missing([]string{"user_prompt"}, `there is nothing to ask; set "user_prompt", or connect what brings "user_prompt", "message" or "question"`).With("path", "user_prompt")
	}
	if system != "" {
		r.Messages = append(r.Messages, llm.Message{Role: llm.System, Content: system})
	}
	state.System = len(r.Messages)
	before, history, snapshot, err := conversation(call, cfg.HistorySize)
	if err != nil {
		return err
	}
	state.Snapshot, state.Before, state.History = snapshot, before, len(history)
	r.Messages = append(append(r.Messages, history...), given...)
	images, err := t.images(ctx, call, in.Images)
	if err != nil {
		return err
	}
	if user != "" {
		r.Messages = append(r.Messages, llm.Message{Role: llm.User, Content: user, Images: images})
	}
	state.Query = user
	if state.Query == "" {
		state.Query = given[len(given)-1].Content
	}
	return nil
}

// prompts are what the model is told before the conversation, and what it is asked. What is configured wins over what the input brings; the
// older "prompt" is a question only where there is no other.
func prompts(c *turn.Config, in *turn.Input, listed bool) (system, user string) {
	system, user = string(c.SystemPrompt), string(c.UserPrompt)
	brought := in.Prompt()
	if prompt := string(c.Prompt); prompt != "" {
		if brought != "" || user != "" || listed {
			system = values.JoinTexts(system, prompt)
		} else {
			user = prompt
		}
	}
	if user == "" {
		user = brought
	}
	if text := values.Text(in.Context); text != "" && !isTurnContext(in.Context) {
		system = values.JoinTexts(system, text)
	}
	return system, user
}

// givenMessages reads messages that a node lists by itself.
func givenMessages(raw json.RawMessage) ([]llm.Message, error) {
	if values.IsNull(raw) {
		return nil, nil
	}
	var list []struct {
		Role    llm.Role        `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	wrong := fault.Say(fault.InvalidConfig, text.Of(`"messages" must be a list of {role, content}, the role one of system, user and assistant`)).With("path", "configurations.messages")
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, wrong
	}
	messages := make([]llm.Message, len(list))
	for i, m := range list {
		if m.Role != llm.System && m.Role != llm.User && m.Role != llm.Assistant {
			return nil, wrong.With("path", fmt.Sprintf("configurations.messages[%d].role", i))
		}
		messages[i] = llm.Message{Role: m.Role, Content: values.Text(m.Content)}
	}
	return messages, nil
}

// Images of a turn, in all.
const (
	maxImages = 16
)

func (t *turns) images(ctx context.Context, call *node.Call, list []json.RawMessage) ([]llm.Image, error) {
	if len(list) > maxImages {
		return nil, fault.Newf(fault.TooLarge, "%d images are too many; a model is shown at most %d", len(list), maxImages).With("path", "images")
	}
	images := make([]llm.Image, len(list))
	for i, raw := range list {
		at := fmt.Sprintf("images[%d]", i)
		file, err := fileref.Open(ctx, t.files, call, raw, at, models.MaxImageBytes)
		if err != nil {
			return nil, err
		}
		content, err := file.ReadAll(ctx, models.MaxImageBytes)
		if err != nil {
			return nil, err
		}
		images[i] = llm.Image{MediaType: http.DetectContentType(content), Data: content}
		if !strings.HasPrefix(images[i].MediaType, "image/") {
			return nil, fault.Newf(fault.InvalidInput, "%q is not a picture but %s", at, images[i].MediaType).With("path", at)
		}
	}
	return images, nil
}

// asks says that a person decides about a call first: because the author of the workflow or somebody's policy wants that, or because the
// tool may destroy and the author has said nothing.
func (t turnTool) asks(e workflow.Effect, d mcp.Decision) bool {
	return t.approved(e) || d == mcp.Asks || d == mcp.Destroys && t.Unsaid
}
