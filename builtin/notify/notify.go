// Package notify is the kind that tells people and programs something on several channels at once (EXTERNAL_ACTION.NOTIFICATION).
//
// Each delivery is a step of its own, led by a program of the engine. What leaves the program is delivered by the kinds of vendors, in the
// ways that they bring ([notice.Way]), so that a notification promises what they promise. What goes to the inbox is a question that nobody
// waits for.
//
// The package that puts a program together imports it.
package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/notice"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// Deps are what the kind needs of the program that it is part of.
type Deps struct {
	// Ways are those of the vendors, by name.
	Ways map[string]notice.Way
	// Kind finds the kind of a vendor by its name. It is asked when something is sent.
	Kind func(name string) (node.Kind, bool)
	// Tell puts a notice into the inbox and returns its id; telling the same again changes nothing. Nil: there is no inbox.
	Tell func(ctx context.Context, n Notice) (id string, err error)
}

// Notice is what somebody reads in the inbox.
type Notice struct {
	Call *node.Call
	// To is who gets it, as approvers are written; empty: the user who has started the execution.
	To             string
	Title, Message string
	// Content is what came along: data and a link.
	Content json.RawMessage
	At      time.Time
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind { return []node.Kind{notification(d)} }

type channel struct {
	Type       string        `json:"type" required:"true" doc:"How it is delivered." zh:"投递方式。"`
	To         string        `json:"to" doc:"Whom it is for. In the inbox: a user, a mail address or role:NAME, the user of the execution if it is empty; by mail: the address; in Slack: the channel; webhook: the address that is called." zh:"接收者：收件箱为用户、邮箱或 role:名称，默认为执行的发起人；邮件为地址；Slack 为频道；Webhook 为被调用的地址。"`
	Credential string        `json:"credential_id" doc:"The name or the id of the credential that it is sent with; none for the inbox." zh:"凭据：发送所用凭据的名称或编号，收件箱不需要。"`
	Settings   node.Settings `json:"-"`
}

type config struct {
	Channels []channel `json:"channels" required:"true" doc:"Where it is told, in each place once." zh:"渠道：通知的去处，每处一次。"`
	Title    string    `json:"title" doc:"What stands above the message." zh:"标题。"`
	Message  string    `json:"message" doc:"What is told." zh:"通知内容。"`
	Require  string    `json:"require" enum:"any|all|none" doc:"How many deliveries must succeed for the node to: one, all or none." zh:"成功条件：至少一处、全部或不要求投递成功。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *config) Defaults() { c.Require = "any" }

type input struct {
	Title   string          `json:"title,omitempty" doc:"What stands above the message, if the configuration does not say." zh:"未配置时的标题。"`
	Message string          `json:"message,omitempty" doc:"What is told, if the configuration does not say." zh:"未配置时的通知内容。"`
	Data    json.RawMessage `json:"data,omitempty" doc:"What goes along: programs and the inbox are given it." zh:"附带的数据，提供给程序与收件箱。"`
	Link    string          `json:"link,omitempty" doc:"An address that goes along." zh:"附带的链接。"`
}

// told is a delivery as the result lists it.
type told struct {
	Channel string `json:"channel"`
	To      string `json:"to"`
	OK      bool   `json:"ok"`
	ID      string `json:"id"`
	Error   string `json:"error"`
}

type result struct {
	Deliveries []told `json:"deliveries" doc:"What became of each delivery: channel, to, ok, id and error, in the order of the channels." zh:"投递结果：各渠道的 channel、to、ok、id 与 error，顺序同渠道。"`
	Delivered  int    `json:"delivered" doc:"How many were delivered." zh:"成功的数量。"`
	Failed     int    `json:"failed" doc:"How many were not." zh:"失败的数量。"`
}

// inApp is the inbox, which no vendor brings.
const inApp = "in_app"

// keeps is the channel as the state keeps it: its texts, as they are named in the configuration.
func (c *channel) keeps() map[string]string {
	all := map[string]string{"type": c.Type, "to": c.To, "credential_id": c.Credential}
	maps.Copy(all, c.Settings)
	return all
}

// keptChannel is the channel that a state has kept.
func keptChannel(all map[string]string) channel {
	c := channel{Type: all["type"], To: all["to"], Credential: all["credential_id"], Settings: maps.Clone(all)}
	maps.DeleteFunc(c.Settings, func(name, _ string) bool { return name == "type" || name == "to" || name == "credential_id" })
	return c
}

// settings are what the ways read of a channel besides to and credential_id. What several of them read stands there once.
func (d Deps) settings() []node.Setting {
	var list []node.Setting
	for _, name := range slices.Sorted(maps.Keys(d.Ways)) {
		for _, s := range d.Ways[name].Settings {
			if !slices.ContainsFunc(list, func(o node.Setting) bool { return o.Name == s.Name }) {
				list = append(list, node.Setting(s))
			}
		}
	}
	return list
}

// maxChannels is how many places one node may tell, maxSubject how long a subject is that is made of the message, in bytes.
const (
	maxChannels = 20
	maxSubject  = 100
)

// state is what the deliveries share.
type state struct {
	Channels []map[string]string `json:"channels"`
	Title    string              `json:"title,omitempty"`
	Message  string              `json:"message"`
	Data     json.RawMessage     `json:"data,omitempty"`
	Link     string              `json:"link,omitempty"`
}

func notification(d Deps) node.Kind {
	return node.Lead(node.About{
		Name: "EXTERNAL_ACTION.NOTIFICATION", Title: node.Says("Notification", "通知"),
		Description: node.Says("Tells people and programs something on several channels: the inbox, mail, Slack and webhooks.", "通过收件箱、邮件、Slack 与 Webhook 等多个渠道发送通知。"),
		Effect:      workflow.Idempotent, // each delivery has an effect of its own
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What became of each delivery.", "各渠道的投递结果。"), Fields: node.ValuesOf[result]()}},
		Examples: []node.Example{{
			Shows:  node.Says("Tells the inbox and a customer that an order has come in.", "在收件箱并以邮件通知有新订单。"),
			Config: `{"channels": [{"type": "in_app"}, {"type": "email", "to": "ann@example.org", "credential_id": "team_mailbox"}], "title": "Order {{order}}", "message": "Order {{order}} has come in."}`,
			Input:  `{"order": 7}`,
			Output: `{"result": {"deliveries": [{"channel": "in_app", "to": "", "ok": true, "id": "…", "error": ""}, {"channel": "email", "to": "ann@example.org", "ok": true, "id": "…", "error": ""}], "delivered": 2, "failed": 0}}`,
		}},
		Values:   map[string][]string{"channels.type": append([]string{inApp}, slices.Sorted(maps.Keys(d.Ways))...)},
		Settings: map[string][]node.Setting{"channels": d.settings()},
		Inputs:   []node.Value{node.Meaning("*", "Whatever the placeholders of the configurations name.", "配置中占位符所引用的内容。")},
	}, node.Leader[config, input]{
		Program: programName, Open: d.open, Step: d.step, Inquire: d.inquire, Given: given, Close: closed,
	}, d.plan)
}

// plan checks what each channel needs.
func (d Deps) plan(p *node.Planning, _ *config) {
	for i, item := range p.Items("channels") {
		at := fmt.Sprintf("%s[%d]", p.At("channels"), i)
		set := func(name string) bool { return item.Get(name).String() != "" }
		name := item.Get("type").Str
		way, known := d.Ways[name]
		if known && !set("to") {
			p.Invalid(at+".to", "is missing; a delivery by %s needs one", name)
		}
		if known && !set("credential_id") {
			p.Warn(node.ProblemCredentialMissing, at+".credential_id", "a delivery by %s needs a credential; set credential_id before deploying", name)
		}
		for _, s := range d.settings() {
			if set(s.Name) && name != "" && !way.Reads(s.Name) {
				p.Warn(workflow.ProblemConfig, at+"."+s.Name, "does nothing here: only a delivery by %s reads it; remove it", d.readers(s.Name))
			}
		}
	}
}

// readers are the ways that read a setting of a channel.
func (d Deps) readers(setting string) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.Ways)) {
		if way := d.Ways[name]; way.Reads(setting) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func (d Deps) open(_ context.Context, call *node.Call, cfg config, in input) (node.Led, error) {
	s := state{Title: cmp.Or(cfg.Title, in.Title), Message: cmp.Or(cfg.Message, in.Message), Data: in.Data, Link: in.Link}
	switch {
	case strings.TrimSpace(s.Message) == "":
		return node.Led{}, fault.New(fault.InvalidInput, "message: there is nothing to tell; set it in the configurations, or let the input bring it").With("path", "message")
	case len(cfg.Channels) == 0:
		return node.Led{}, fault.New(fault.InvalidConfig, "channels: there is nowhere to tell it").With("path", "configurations.channels")
	case len(cfg.Channels) > maxChannels:
		return node.Led{}, fault.Newf(fault.InvalidConfig, "channels: there are %d, and %d at most", len(cfg.Channels), maxChannels).With("path", "configurations.channels")
	}
	c := programConfig{}
	for i, one := range cfg.Channels {
		if one.Type != inApp && one.To == "" {
			return node.Led{}, fault.Newf(fault.InvalidConfig, "channels[%d].to: a delivery by %s needs one", i, one.Type).With("path", fmt.Sprintf("configurations.channels[%d].to", i))
		}
		effect := workflow.Idempotent
		if way, ok := d.Ways[one.Type]; ok {
			effect = cmp.Or(way.Effect, workflow.Once)
		}
		s.Channels = append(s.Channels, one.keeps())
		c.Deliveries = append(c.Deliveries, delivery{Effect: effect, MaxRetries: call.MaxRetries, TimeoutMS: call.TimeoutMS,
			OnUnknown: onUnknown(call)})
	}
	program, err := json.Marshal(c)
	if err != nil {
		return node.Led{}, fault.New(fault.Internal, "the deliveries cannot be written").WithCause(err)
	}
	raw, err := payload.Encode(s)
	if err != nil {
		return node.Led{}, fault.New(fault.InvalidInput, "what is to be told cannot be kept").WithCause(err)
	}
	return node.Led{Config: program, State: raw}, nil
}

// onUnknown is what the node says about a delivery whose outcome is not known.
func onUnknown(call *node.Call) workflow.OnUnknown {
	return workflow.OnUnknown(strings.ToLower(gjson.GetBytes(call.Config, "on_unknown").Str))
}

// step makes one delivery.
func (d Deps) step(ctx context.Context, call *node.Call, s node.Step) (node.Outcome, error) {
	return d.do(ctx, call, s, func(k node.Kind) runs { return k.Run })
}

// inquire asks the service whether a delivery has arrived.
func (d Deps) inquire(ctx context.Context, call *node.Call, s node.Step) (node.Outcome, error) {
	return d.do(ctx, call, s, func(k node.Kind) runs { return k.Inquire })
}

// runs is what a kind of a vendor does with a delivery: it makes it, or looks whether it was made.
type runs = func(ctx context.Context, call *node.Call) (node.Outcome, error)

func (d Deps) do(ctx context.Context, call *node.Call, s node.Step, by func(node.Kind) runs) (node.Outcome, error) {
	var shared state
	var n int
	if err := json.Unmarshal(s.State, &shared); err != nil {
		return nil, fault.New(fault.Internal, "what is to be told cannot be read").WithCause(err)
	}
	if err := json.Unmarshal(s.Config, &n); err != nil || n < 0 || n >= len(shared.Channels) {
		return nil, fault.New(fault.Internal, "there is no such delivery").WithCause(err)
	}
	id, made, err := d.deliver(ctx, call, &shared, keptChannel(shared.Channels[n]), by)
	if err != nil || !made {
		return nil, err
	}
	out, err := payload.Encode(map[string]string{"id": id})
	return node.Replied{Result: out, Reply: id}, err
}

// given is a delivery of which a person has said that it was made.
func given(_ *node.Call, _ node.Step, output json.RawMessage) (node.Replied, error) {
	return node.Replied{Result: output, Reply: gjson.GetBytes(output, "id").String()}, nil
}

// deliver sends to one place, and says whether it was sent.
func (d Deps) deliver(ctx context.Context, call *node.Call, s *state, c channel,
	how func(node.Kind) runs) (id string, made bool, err error) {
	content := map[string]any{}
	if !payload.IsNull(s.Data) {
		content["data"] = s.Data
	}
	if s.Link != "" {
		content["link"] = s.Link
	}
	if c.Type == inApp {
		if d.Tell == nil {
			return "", false, fault.New(fault.Unsupported, "there is no inbox here")
		}
		raw, err := payload.Encode(content)
		if err != nil {
			return "", false, err
		}
		id, err := d.Tell(ctx, Notice{Call: call, To: c.To, Title: s.subject(), Message: s.Message, Content: raw, At: call.Time()})
		return id, true, err
	}
	way, ok := d.Ways[c.Type]
	if !ok {
		return "", false, fault.Newf(fault.Unsupported, "%s is not part of this program, or cannot be asked", c.Type)
	}
	return d.by(ctx, call, how, way, notice.Notice{To: c.To, Credential: c.Credential, Settings: c.Settings, Title: s.Title,
		Subject: s.subject(), Message: s.Message, Text: strings.TrimSpace(s.Message + "\n\n" + s.Link), Content: content})
}

// subject is the title, or the beginning of the message.
func (s *state) subject() string {
	first, _, _ := strings.Cut(strings.TrimSpace(s.Message), "\n")
	return strings.Join(strings.Fields(cmp.Or(s.Title, text.Head(first, maxSubject))), " ")
}

// by lets the kind of a vendor do it, and returns what its result calls the message; false: the vendor has no such message.
func (d Deps) by(ctx context.Context, call *node.Call, how func(node.Kind) runs, way notice.Way,
	n notice.Notice) (string, bool, error) {
	kind, ok := d.Kind(way.Kind)
	if !ok || how(kind) == nil {
		return "", false, fault.Newf(fault.Unsupported, "%s is not part of this program, or cannot be asked", way.Kind)
	}
	raw, err := payload.Encode(way.Configure(n))
	if err != nil {
		return "", false, err
	}
	inner := *call
	inner.Kind, inner.Config, inner.Input = way.Kind, raw, json.RawMessage("{}")
	out, err := how(kind)(ctx, &inner)
	if err != nil || out == nil {
		return "", false, err
	}
	done, _ := out.(node.Done)
	return gjson.GetBytes(done["result"], way.ID).String(), true, nil
}

func closed(_ context.Context, call *node.Call, cfg config, e node.Ending) (node.Done, error) {
	var ended []outcome
	if err := json.Unmarshal(e.Result, &ended); err != nil {
		return nil, fault.New(fault.Internal, "what became of the deliveries cannot be read").WithCause(err)
	}
	slices.SortFunc(ended, func(a, b outcome) int { return cmp.Compare(a.N, b.N) })
	out := result{Deliveries: []told{}}
	for _, o := range ended {
		c := cfg.Channels[o.N]
		out.Deliveries = append(out.Deliveries, told{Channel: c.Type, To: c.To, OK: o.OK, ID: o.ID, Error: o.Error})
		if o.OK {
			out.Delivered++
		}
	}
	out.Failed = len(cfg.Channels) - out.Delivered
	if cfg.Require == "any" && out.Delivered == 0 || cfg.Require == "all" && out.Failed > 0 {
		raw, err := payload.Encode(out.Deliveries)
		if err != nil {
			return nil, err
		}
		return nil, fault.Newf(fault.DeliveryFailed, "%d of %d deliveries succeeded, and require is %q; see deliveries", out.Delivered, len(cfg.Channels), cfg.Require).With("deliveries", json.RawMessage(raw)).Final()
	}
	raw, err := payload.Encode(out)
	return node.Done{"result": raw}, err
}
