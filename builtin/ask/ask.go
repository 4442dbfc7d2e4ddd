// Package ask holds the kinds that ask people (HUMAN_IN_THE_LOOP): what is asked, of whom, in which medium, and under which keys the
// answers are handed on. The asking itself, the answers and the votes are in package human.
//
// The kinds that belong to no medium are here; a vendor makes that of its own medium with [Kind]. Vendors import the package, and so does
// the one that puts a program together.
package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
)

// Config is what every question to a person says. The configuration of a kind that asks embeds it. A question is put by returning a wait:
// the record of it, the messages and their answers are package human's, and nothing is held meanwhile.
type Config struct {
	_ struct{} `need:"title|description"`

	Type        string          `json:"interaction_type" enum:"approval|input|selection|review" fixed:"true" doc:"What is asked for: a decision, values, a choice, or a judgement." zh:"询问的类型：审批、填写、选择或评审。"`
	Title       node.Words      `json:"title" older:"email_subject,review_title" doc:"The question in one line." zh:"问题标题。"`
	Description node.Words      `json:"description" older:"message_template,clarification_question_template,email_template,review_description" doc:"The question in full." zh:"问题的详细说明。"`
	Content     json.RawMessage `json:"content" doc:"What the question is about; without it the input." zh:"问题所涉及的内容；省略时为输入。"`
	UserMention node.Template   `json:"user_mention" doc:"Who is mentioned in the message." zh:"消息中提及的人。"`

	TimeoutSeconds  int64       `json:"timeout_seconds" older:"response_timeout,review_deadline" range:"60..604800" doc:"How long to wait for an answer, in seconds." zh:"等待答复的时间（秒）。"`
	TimeoutMinutes  float64     `json:"timeout_minutes" range:"1..10080" doc:"The same in minutes, in the place of timeout_seconds." zh:"以分钟计的等待时间，代替 timeout_seconds。"`
	TimeoutAction   string      `json:"timeout_action" enum:"fail|continue|default_response" doc:"What happens when nobody answers in time." zh:"超时后的处理。"`
	TimeoutResponse node.Object `json:"timeout_default_response" with:"timeout_action=default_response" doc:"The answer that is taken then, for default_response." zh:"超时答复：default_response 时采用的答复。"`

	// Options are texts, or objects with a value.
	ApprovalOptions  []node.Of[humanOption] `json:"approval_options" takes:"list|any" with:"interaction_type=approval" doc:"What can be chosen in an approval: texts, or objects." zh:"审批的选项：文本或对象。"`
	InputFields      []humanField           `json:"input_fields" with:"interaction_type=input" doc:"The values that are asked for." zh:"要填写的字段。"`
	SelectionOptions []node.Of[humanOption] `json:"selection_options" takes:"list|any" with:"interaction_type=selection" doc:"What can be chosen in a selection: texts, or objects." zh:"选择题的选项：文本或对象。"`
	AllowMultiple    bool                   `json:"allow_multiple" with:"interaction_type=selection" doc:"Whether several options can be chosen." zh:"是否可多选。"`
	Criteria         []string               `json:"review_criteria" with:"interaction_type=review" doc:"What a review judges by." zh:"评审标准。"`

	Approvers        []node.Scalar    `json:"approvers" names:"person" doc:"Who is asked: users, roles such as role:approver, or addresses." zh:"询问的对象：用户、角色（如 role:approver）或地址。"`
	MinApprovals     int64            `json:"min_approvals" range:"1.." doc:"How many must approve." zh:"需要几人同意。"`
	MinRejections    int64            `json:"min_rejections" range:"1.." doc:"How many must reject." zh:"需要几人拒绝。"`
	ExcludeRequester bool             `json:"exclude_requester" doc:"Whether who has started the execution may not answer." zh:"是否排除发起人。"`
	AllowDelegation  bool             `json:"allow_delegation" doc:"Whether the question can be handed to somebody else." zh:"是否允许转交。"`
	Advisory         bool             `json:"advisory" doc:"Whether the question only informs, so that it can be passed over." zh:"是否仅供参考，可以跳过。"`
	Escalation       *humanEscalation `json:"escalation" doc:"Who is asked as well after some time." zh:"一段时间后追加询问的对象。"`
	ReminderSeconds  int64            `json:"reminder_seconds" range:"0.." doc:"After how many seconds people are reminded; 0 for never." zh:"多少秒后提醒；0 表示不提醒。"`
	Risk             string           `json:"risk" enum:"low|medium|high" doc:"How much depends on the answer." zh:"风险级别。"`
	Priority         int64            `json:"priority" range:"1..5" doc:"How urgent it is, from 1 to 5." zh:"紧急程度（1 到 5）。"`

	AnalysisModel   string     `json:"ai_analysis_model" names:"profile" doc:"The model profile that reads answers in prose." zh:"解读文字答复的模型配置档。"`
	AnalysisPrompt  node.Words `json:"response_analysis_prompt" older:"custom_analysis_prompt" prompt:"true" doc:"What that model is told besides." zh:"给该模型的补充说明。"`
	UnrelatedAction string     `json:"unrelated_action" enum:"ignore|route" doc:"What becomes of answers that are about something else." zh:"无关答复的处理。"`

	Channel    string        `json:"channel_type" doc:"Where people are asked besides the inbox." zh:"除收件箱外的询问渠道。"`
	WebhookURL node.Template `json:"webhook_url" doc:"The address that the question is sent to, for webhook." zh:"webhook 渠道的地址。"`
}

// humanOption is an option that is written as an object; most are only a text.
type humanOption struct {
	Value   any    `json:"value" required:"true" takes:"text" doc:"The option, which is an output key of the node." zh:"选项，也是节点的输出键。"`
	Label   string `json:"label" doc:"What people see." zh:"显示的名称。"`
	Outcome string `json:"outcome" enum:"confirmed|rejected|none" doc:"Whether choosing it confirms or rejects." zh:"选择它表示确认还是拒绝。"`
}

type humanField struct {
	Name       string `json:"name" required:"true" doc:"The name of the value in the answer." zh:"答复中的字段名。"`
	Label      string `json:"label" doc:"What people see." zh:"显示的名称。"`
	Type       string `json:"type" enum:"text|number|email|date|select|boolean|file" doc:"What kind of value it is." zh:"值的类型。"`
	Required   bool   `json:"required" doc:"Whether it must be filled in." zh:"是否必填。"`
	Options    []any  `json:"options" doc:"What can be chosen, for select." zh:"select 的选项。"`
	Validation any    `json:"validation" doc:"Bounds and patterns that the value must fit." zh:"值须满足的界限或模式。"`
}

func (f *humanField) Defaults() { f.Type = "text" }

type humanEscalation struct {
	AfterSeconds float64 `json:"after_seconds" range:"1.." required:"true" doc:"After how many seconds." zh:"多少秒后。"`
	To           any     `json:"to" names:"person" required:"true" doc:"Who is asked: one, or a list." zh:"询问的对象：一个或列表。"`
}

// asks finds the configuration inside that of a kind, which embeds it.
func (c *Config) asks() *Config { return c }

// Defaults sets what holds when the configuration does not say otherwise. A kind with defaults of its own calls it first.
func (c *Config) Defaults() {
	c.Type, c.TimeoutSeconds, c.MinApprovals, c.MinRejections, c.Risk, c.Priority = human.Approval, 3600, 1, 1, "low", 1
	c.ApprovalOptions = []node.Of[humanOption]{node.Of[humanOption](`"approve"`), node.Of[humanOption](`"reject"`)}
}

// humanAsking is a question with what its kind does differently.
type humanAsking struct {
	Config
	// media are the channels that there are, medium is that of a messaging kind, settings what its channel needs.
	media    human.Media
	medium   string
	settings map[string]any
	// approvers are who is asked when the configuration names nobody.
	approvers []string
	schema    json.RawMessage
	review    *human.ReviewRules
	access    string
	// in is the credential that replies are read with, if it is another than that of the node.
	in string
}

// ask puts the question; woken, it hands on what came of it.
func (a *humanAsking) ask(call *node.Call, in json.RawMessage) (node.Outcome, error) {
	content := a.content(in)
	shown := content
	if !a.shows() {
		shown = chosenContent(call, content)
	}
	request, err := a.request(call, shown)
	if err != nil {
		return nil, err
	}
	detail := humanDetail{Prompt: cmp.Or(request.Description, request.Title), Type: request.Type, Channel: request.Channel}
	if call.Wake != nil {
		return a.answered(call, request, content, detail)
	}
	raw, err := payload.Encode(request)
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "the question cannot be asked: %w", err)
	}
	// What is wrong with it is the node's failure, before anybody is asked.
	opened, err := a.media.Open(human.Question{
		User: call.UserID, Requesters: call.Requesters, Language: call.Language, Node: call.NodeID, Activation: call.ActivationID,
		Purpose: human.PurposeNode, Request: raw, Time: call.Time().UnixMilli(),
	})
	if err != nil {
		return nil, err
	}
	detail.Since, detail.Until = opened.Created, opened.TimeoutAt
	memo, err := payload.Encode(detail)
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "the question cannot be asked: %w", err)
	}
	detail.note(call, "waiting_for_human", nil)
	return node.Wait{Ask: &node.Question{Purpose: human.PurposeNode, Request: raw}, Memo: memo}, nil
}

// humanDetail is what the record of the activation says about a question. Since and Until are known when it is asked and come back
// with the answer as the memo: a later note replaces the earlier one.
type humanDetail struct {
	Prompt  string `json:"-"`
	Type    string `json:"-"`
	Channel string `json:"-"`
	Since   int64  `json:"waiting_since"`
	Until   int64  `json:"timeout_at"`
}

// note writes the details. While it waits the server adds which question it is.
func (d humanDetail) note(call *node.Call, status string, response any) {
	if call.Detail == nil {
		return
	}
	fields := map[string]any{
		"status": status, "user_prompt": d.Prompt, "interaction_type": d.Type, "channel_type": d.Channel,
		"waiting_since": d.Since, "timeout_at": d.Until,
	}
	if response != nil {
		fields["user_response"] = response
	}
	call.Detail(fields)
}

// shows says that the configuration has what the question is about.
func (a *humanAsking) shows() bool { return len(a.Content) > 0 && string(a.Content) != "null" }

func (a *humanAsking) request(call *node.Call, content json.RawMessage) (human.Request, error) {
	r := human.Request{
		Type: a.Type, Channel: cmp.Or(a.medium, a.Channel, human.InApp), Title: string(a.Title),
		Description: string(a.Description), Content: content,
		AllowMultiple: a.AllowMultiple, Schema: a.schema, Review: a.review,
		Approvers: a.approvers, MinApprovals: int(a.MinApprovals), MinRejections: int(a.MinRejections),
		ExcludeRequester: a.ExcludeRequester, AllowDelegation: a.AllowDelegation, Advisory: a.Advisory,
		ReminderSeconds: a.ReminderSeconds, Risk: a.Risk, Priority: int(a.Priority), TimeoutSeconds: a.TimeoutSeconds,
		TimeoutAction: a.TimeoutAction, TimeoutResponse: json.RawMessage(a.TimeoutResponse),
		UnrelatedAction: a.UnrelatedAction, AnalysisModel: a.AnalysisModel, AnalysisPrompt: string(a.AnalysisPrompt),
		Access: a.access, Language: call.Language,
		UserMention: string(a.UserMention), Credential: gjson.GetBytes(call.Config, "credential_id").Str, InCredential: a.in,
	}
	if a.TimeoutMinutes > 0 {
		r.TimeoutSeconds = int64(60 * a.TimeoutMinutes)
	}
	if r.UserMention == "" {
		r.UserMention = gjson.GetBytes(call.Input, "user_mention").String()
	}
	if len(a.Approvers) > 0 {
		r.Approvers = texts(a.Approvers)
	}
	if r.Title == "" && r.Description == "" {
		return r, fault.New(fault.InvalidConfig, "title: the question says nothing; set title or description").With("path", "configurations.title")
	}
	r.TimeoutAction = cmp.Or(r.TimeoutAction, connected(call, "timeout", human.TimeoutContinue, human.TimeoutFail))
	r.UnrelatedAction = cmp.Or(r.UnrelatedAction, connected(call, "unrelated", "route", "ignore"))
	if err := a.shape(&r); err != nil {
		return r, err
	}
	if e := a.Escalation; e != nil {
		to, err := escalateTo(e.To)
		if err != nil {
			return r, err
		}
		r.Escalation = &human.Escalation{AfterSeconds: int64(e.AfterSeconds), To: to}
	}
	toVisitor := human.NamesVisitor(r.Approvers) || r.Escalation != nil && human.NamesVisitor(r.Escalation.To)
	if !a.shows() && (a.access == "link" || a.access == "public" || toVisitor) {
		r.Content = nil // strangers see what the author shows them, and not whatever came in
	}
	if a.media[r.Channel].NeedsURL && a.WebhookURL == "" {
		return r, fault.New(fault.InvalidConfig, "webhook_url: it is empty; say where the question is sent to").With("path", "configurations.webhook_url")
	}
	settings := maps.Clone(a.settings)
	if takes := a.media[r.Channel].TakesURL; takes && a.WebhookURL != "" {
		if settings == nil {
			settings = map[string]any{}
		}
		settings["webhook_url"] = string(a.WebhookURL)
	}
	if len(settings) > 0 {
		var err error
		if r.Settings, err = payload.Encode(settings); err != nil {
			return r, fault.Newf(fault.InvalidConfig, "the settings of the channel cannot be kept: %w", err)
		}
	}
	return r, nil
}

// shape fills in what the answer must look like.
func (a *humanAsking) shape(r *human.Request) error {
	switch a.Type {
	case human.Approval:
		return readOptions("approval_options", a.ApprovalOptions, &r.Options)
	case human.Selection:
		return readOptions("selection_options", a.SelectionOptions, &r.Options)
	case human.Input:
		return readAs("input_fields", a.InputFields, &r.Fields)
	}
	if r.Review == nil {
		r.Review = &human.ReviewRules{Criteria: a.Criteria, Min: 1, Max: 5, Threshold: 3}
	}
	return nil
}

// reservedOptions are the output keys of every question, as they are and as older files call them. Options that come from a placeholder are
// known only now, and one that is called like them would be taken for what it is not. read-only
var reservedOptions = []string{
	dataflow.DefaultKey, "main", "error", human.Confirmed, human.Rejected, human.Unrelated, human.TimedOut, "approved", "completed", "filtered",
}

// readOptions reads options, each of which is an output key.
func readOptions(name string, from []node.Of[humanOption], to *[]human.Option) error {
	if err := readAs(name, from, to); err != nil {
		return err
	}
	for n, o := range *to {
		if slices.Contains(reservedOptions, o.Value) {
			at := fmt.Sprintf("%s[%d]", name, n)
			return fault.Newf(fault.InvalidConfig, "%s: %q is a reserved output key; call the option differently and set its outcome", at, o.Value).With("path", "configurations."+at)
		}
	}
	return nil
}

// readAs reads a part of the configuration as what a question has there.
func readAs(name string, from, to any) error {
	raw, err := payload.Encode(from)
	if err == nil {
		err = json.Unmarshal(raw, to)
	}
	if err != nil {
		return fault.Newf(fault.InvalidConfig, "%s: %s", name, fault.From(err).Message).With("path", "configurations."+name)
	}
	return nil
}

// connected chooses by whether something follows an output key.
func connected(call *node.Call, key, yes, no string) string {
	if call.Connected != nil && call.Connected(key) {
		return yes
	}
	return no
}

func texts(list []node.Scalar) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		if s != "" {
			out = append(out, string(s))
		}
	}
	return out
}

// escalateTo reads one name or a list of names.
func escalateTo(v any) ([]string, error) {
	raw, err := payload.Encode(v)
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "escalation.to: %w", err)
	}
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}, nil
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 || slices.Contains(list, "") {
		return nil, fault.New(fault.InvalidConfig, "escalation.to: name somebody, or a list of them").With("path",
			"configurations.escalation.to")
	}
	return list, nil
}

// humanOutput is the payload of an answered question.
type humanOutput struct {
	human.Result
	Content json.RawMessage `json:"content" doc:"What the question was about." zh:"问题所涉及的内容。"`
	// Scores are those of a review.
	Scores json.RawMessage `json:"scores,omitempty" doc:"The scores of a review." zh:"评审的分数。"`
}

// answered makes the outputs of what came of the question.
func (a *humanAsking) answered(call *node.Call, r human.Request, content json.RawMessage, detail humanDetail) (node.Outcome, error) {
	var result human.Result
	if len(call.Memo) > 0 { // a question that is older than the memo has none
		if err := json.Unmarshal(call.Memo, &detail); err != nil {
			return nil, fault.Newf(fault.Internal, "what was noted of the question cannot be read: %w", err)
		}
	}
	if len(call.Wake.Payload) > 0 {
		if err := json.Unmarshal(call.Wake.Payload, &result); err != nil {
			return nil, fault.Newf(fault.Internal, "what came of the question cannot be read: %w", err)
		}
	}
	if call.Wake.Outcome == engine.AskCanceled {
		detail.note(call, "cancelled", nil)
		return nil, fault.Say(fault.Canceled, takenBack(result))
	}
	timedOut := call.Wake.Outcome == engine.AskTimeout
	if timedOut && r.TimeoutAction == human.TimeoutFail {
		detail.note(call, human.TimedOut, nil)
		return nil, fault.Say(fault.HILTimeout, text.Of("nobody has answered within %s", time.Duration(r.TimeoutSeconds)*time.Second))
	}
	if len(result.ResponseData) == 0 || string(result.ResponseData) == "null" {
		result.ResponseData = json.RawMessage(`{}`)
	}
	if result.Approvals == nil {
		result.Approvals = []human.Vote{}
	}
	out := humanOutput{Result: result, Content: content}
	if r.Type == human.Review {
		out.Scores = json.RawMessage(gjson.GetBytes(result.ResponseData, "scores").Raw)
	}
	payload, err := payload.Encode(out)
	if err != nil {
		return nil, fault.Newf(fault.OutputInvalid, "the answer cannot be handed on: %w", err)
	}
	var said any = result.ResponseData
	switch {
	case result.UserResponse != "":
		said = result.UserResponse
	case timedOut && r.TimeoutAction == human.TimeoutContinue:
		said = nil
	}
	detail.note(call, result.Status, said)
	done := node.Done{"result": payload}
	if timedOut && r.TimeoutAction == human.TimeoutContinue {
		done["timeout"] = payload
		return done, nil
	}
	switch result.Classification {
	case human.Confirmed, human.Rejected, human.Unrelated:
		done[result.Classification] = payload
	}
	for _, option := range result.Options {
		done[option] = payload
	}
	return done, nil
}

// takenBack says who has taken a question back and why, as far as that is known.
func takenBack(result human.Result) text.Text {
	if result.Responder == "" {
		return text.Of("the question was taken back before it was answered")
	}
	if why := gjson.GetBytes(result.ResponseData, "notes").Str; why != "" {
		return text.Of("%q has taken the question back before it was answered: %s", result.Responder, why)
	}
	return text.Of("%q has taken the question back before it was answered", result.Responder)
}

// inAppApproval asks in the inbox, and wherever channel_type says besides.
func inAppApproval(d Deps) node.Kind {
	return humanKind(d,
		node.About{
			Name: "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", Title: node.Says("Ask in the inbox", "站内审批"),
			Description: node.Says("Asks people in the inbox, on the command line and through the API.", "在收件箱、命令行和 API 中请人作答。"),
			Examples: []node.Example{
				{
					Shows:   node.Says("Asks two people, one of whom must agree.", "询问两个人，其中一人同意即可。"),
					Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "approvers": ["user:operator", "user:admin"]}`,
					Input:   `{"invoice": 7}`,
					Replies: []string{`{"action": "approve"}`},
					Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "user_id": "operator", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "operator", "approvals": [{"person": "operator", "outcome": "confirmed", "data": "…", "channel": "in_app", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
				},
			},
		},
		func(_ *node.Call, cfg Config) (*humanAsking, error) { return &humanAsking{Config: cfg}, nil },
		func(p *node.Planning, cfg *Config) { d.planHuman(p, cfg, Medium{}, nil) })
}

// humanKind makes a kind of what is particular to it.
func humanKind[C any](d Deps, about node.About, particular func(call *node.Call, cfg C) (*humanAsking, error),
	plan func(p *node.Planning, cfg *C)) node.Kind {
	media := human.MediaOf(d.Channels...)
	k := node.Raw(d.described(about), func(_ context.Context, call *node.Call, cfg C, in json.RawMessage) (node.Outcome, error) {
		a, err := particular(call, cfg)
		if err != nil {
			return nil, err
		}
		a.media = media
		return a.ask(call, in)
	}, plan)
	k.EffectFirst = true
	return knowsPeople(d.Users, k)
}

// Users lists the users of a workspace.
type Users func(ctx context.Context, workspace string) ([]identity.User, error)

// approverField is a configuration that names people.
type approverField struct {
	name   string
	people []string
}

// knowsPeople lets a kind that asks say who of those whom it names is not there. They may come to be while it waits, so that the
// question is put all the same.
func knowsPeople(users Users, k node.Kind) node.Kind {
	if users == nil {
		return k
	}
	run := k.Run
	k.Run = func(ctx context.Context, call *node.Call) (node.Outcome, error) {
		out, err := run(ctx, call)
		wait, waits := out.(node.Wait)
		if err != nil || !waits || wait.Ask == nil || call.Warn == nil {
			return out, err
		}
		var asked struct {
			Approvers  []string          `json:"approvers"`
			Escalation *human.Escalation `json:"escalation"`
			Channel    string            `json:"channel_type"`
		}
		if err := json.Unmarshal(wait.Ask.Request, &asked); err != nil {
			return nil, fault.Newf(fault.Internal, "the question of %q cannot be read: %w", call.NodeID, err)
		}
		named := []approverField{{"approvers", asked.Approvers}}
		if config := gjson.ParseBytes(call.Config); !config.Get("approvers").Exists() && config.Get("reviewers").Exists() {
			named[0].name = "reviewers"
		}
		if asked.Escalation != nil {
			named = append(named, approverField{"escalation.to", asked.Escalation.To})
		}
		if len(asked.Approvers) == 0 && asked.Escalation == nil {
			return out, nil
		}
		known, err := users(ctx, call.Workspace)
		if err != nil {
			return nil, err
		}
		for _, n := range named {
			for _, text := range n.people {
				if why := human.Absent(text, asked.Channel == human.InApp, known); !why.IsZero() {
					call.Warn("configurations."+n.name, fmt.Sprintf("%q cannot answer: %s", text, why))
				}
			}
		}
		return out, nil
	}
	return k
}
