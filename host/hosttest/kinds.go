package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// settings are the configurations of the suite's kinds. Each reads what it needs.
type settings struct {
	// Effect is the class of work: pure, idempotent or once.
	Effect string `json:"effect"`
	// Kill is how often work ends its process; Fail how often it fails, for good if Final is set; -1: always.
	Kill  int  `json:"kill"`
	Fail  int  `json:"fail"`
	Final bool `json:"final"`
	// FailItem fails the iteration of an item.
	FailItem int `json:"fail_item"`
	// Hold makes work wait until the case releases the node, Late after its effect; MS is how long it takes otherwise.
	Hold bool `json:"hold"`
	Late bool `json:"late"`
	MS   int  `json:"ms"`
	// Away says that the service cannot be asked what became of what was sent.
	Away bool `json:"away"`
	// Pad is the length of a text that is part of the result.
	Pad int `json:"pad"`
	// Lines is how many lines it logs.
	Lines int `json:"lines"`
	// Key is the output key of a choice.
	Key string `json:"key"`

	Seconds float64 `json:"seconds"`
	Signal  string  `json:"signal"`

	Workflow string `json:"workflow"`
	Detached bool   `json:"detached"`
	Children int    `json:"children"`

	Count       int64 `json:"count"`
	Concurrency int64 `json:"concurrency"`
	KeepGoing   bool  `json:"keep_going"`
	Turns       bool  `json:"turns"`
	// Whole hands the fields of the loop's input to every iteration; Share lets a node that hands its input on do so unseen.
	Whole bool `json:"whole"`
	Share bool `json:"share"`
}

// catalogue is the suite's own list of kinds.
type catalogue struct{}

func kindNames() []string {
	return []string{"TEST.ASK", "TEST.BRIEF", "TEST.CHILD", "TEST.CHOICE", "TEST.EACH", "TEST.HAND", "TEST.PANIC", "TEST.SEND", "TEST.WAIT", "TEST.WORK", "TRIGGER.MANUAL"}
}

// Kind implements [workflow.Kinds].
func (catalogue) Kind(name string) (workflow.Kind, bool) {
	if !slices.Contains(kindNames(), name) {
		return workflow.Kind{}, false
	}
	k := workflow.Kind{Name: name, Plan: plan}
	if name == "TEST.EACH" {
		k.Scope = &workflow.ScopeKeys{Entry: "iteration", Exits: []string{"completed"}}
	}
	return k, true
}

// Names implements [workflow.Kinds].
func (catalogue) Names() []string { return kindNames() }

// Alias implements [workflow.Kinds].
func (catalogue) Alias(string, string) (string, bool) { return "", false }

func plan(n *workflow.Node) (workflow.Plan, []workflow.Problem) {
	var c struct {
		Effect     workflow.Effect    `json:"effect"`
		MaxRetries *int               `json:"max_retries"`
		Timeout    float64            `json:"timeout"`
		OnError    workflow.OnError   `json:"on_error"`
		OnUnknown  workflow.OnUnknown `json:"on_unknown"`
	}
	c.Effect = workflow.Pure
	if len(n.Configurations) > 0 {
		if err := json.Unmarshal(n.Configurations, &c); err != nil {
			return workflow.Plan{}, []workflow.Problem{{Code: workflow.ProblemConfig, Path: "configurations", Message: err.Error()}}
		}
	}
	p := workflow.Plan{Effect: c.Effect, MaxRetries: 3, TimeoutMS: int64(c.Timeout * 1000), OnError: c.OnError, OnUnknown: c.OnUnknown}
	if c.MaxRetries != nil {
		p.MaxRetries = *c.MaxRetries
	}
	switch n.Subtype {
	case "EACH":
		p.Keys, p.KeyAliases = []string{"iteration", "completed"}, map[string]string{"result": "completed"}
	case "CHOICE":
		p.Keys = []string{"yes", "no"}
	}
	return p, nil
}

// registry makes the kinds of one process. They are made by hand, without schemas, since a simulation makes them thousands
// of times; only what panics needs what [node.Raw] does about it.
func (p *process) registry() *node.Registry {
	r := &node.Registry{}
	add := func(name string, run func(context.Context, *node.Call, settings, json.RawMessage) (node.Outcome, error)) {
		r.Register(node.Kind{About: kindInfo(name), Brief: name == "TEST.BRIEF", Run: func(ctx context.Context, c *node.Call) (node.Outcome, error) {
			s, err := settingsOf(c)
			if err != nil {
				return nil, err
			}
			return run(ctx, c, s, c.Input)
		}})
	}
	shares := func(config json.RawMessage) bool {
		s, err := settingsOf(&node.Call{Config: config})
		return err == nil && s.Share
	}
	r.Register(node.Kind{About: kindInfo("TRIGGER.MANUAL"), Hands: shares, Run: func(_ context.Context, c *node.Call) (node.Outcome, error) {
		return node.Done{"result": c.Input}, nil
	}})
	add("TEST.WORK", p.work)
	add("TEST.BRIEF", func(_ context.Context, c *node.Call, s settings, in json.RawMessage) (node.Outcome, error) {
		p.begin(c)
		return padded(c, s, result(c, in, nil))
	})
	add("TEST.CHOICE", func(_ context.Context, c *node.Call, s settings, in json.RawMessage) (node.Outcome, error) {
		p.begin(c)
		return node.Done{s.Key: result(c, in, nil)["result"]}, nil
	})
	add("TEST.WAIT", p.wait)
	add("TEST.ASK", p.ask)
	r.Register(node.Kind{About: kindInfo("TEST.SEND"), Inquire: p.inquire, Run: func(ctx context.Context, c *node.Call) (node.Outcome, error) {
		s, err := settingsOf(c)
		if err != nil {
			return nil, err
		}
		return p.work(ctx, c, s, c.Input)
	}})
	r.Register(node.Kind{About: kindInfo("TEST.CHILD"), Run: p.child, Needs: func(config json.RawMessage) *payload.Reads {
		if shares(config) {
			return payload.ReadsNamed()
		}
		return nil
	}})
	r.Register(node.Kind{About: kindInfo("TEST.HAND"), Run: p.hand, Hands: shares})
	r.Register(node.Raw(kindInfo("TEST.PANIC"), func(context.Context, *node.Call, struct{}, struct{}) (node.Outcome, error) { panic("on purpose") }))
	r.Register(node.Kind{About: kindInfo("TEST.EACH"), Scope: &node.Scope{Open: p.open, Iteration: iteration, Turn: turn, Close: closeLoop}})
	return r
}

func kindInfo(name string) node.About {
	return node.About{Name: name, Title: text.Beside(name, name), Description: text.Beside(name, name)}
}

func settingsOf(c *node.Call) (settings, error) {
	s := settings{FailItem: -1, Key: "yes", Children: 1}
	if len(c.Config) == 0 {
		return s, nil
	}
	err := json.Unmarshal(c.Config, &s)
	return s, err
}

// tally makes one number of a value, so that whatever is lost, repeated or mixed up on the way shows in the end.
func tally(v any) int64 {
	const limit = 1_000_003
	sum := int64(0)
	switch v := v.(type) {
	case float64:
		sum = int64(v)
	case string:
		sum = int64(len(v))
	case []any:
		for i, x := range v {
			sum += int64(i+1) * tally(x)
		}
	case map[string]any:
		for k, x := range v { // order does not matter: it is a sum
			sum += int64(len(k)) * tally(x)
		}
	}
	return sum % limit
}

// result is what a node makes of its input: a number under its own name.
func result(c *node.Call, in json.RawMessage, more any) node.Done {
	var v any
	if err := json.Unmarshal(in, &v); err != nil {
		panic(err) // an input is always JSON
	}
	out, err := json.Marshal(map[string]any{c.NodeID: 1 + tally(v) + tally(more)})
	if err != nil {
		panic(err)
	}
	return node.Done{"result": out}
}

// padded is a result as long as the settings want it.
func padded(c *node.Call, s settings, done node.Done) (node.Done, error) {
	if s.Pad == 0 {
		return done, nil
	}
	out, err := json.Marshal(map[string]any{c.NodeID: strings.Repeat("pad ", s.Pad/4)})
	return node.Done{"result": out}, err
}

// work is what most nodes do: it may end its process, fail, panic, be held, take its time, and has an effect.
func (p *process) work(ctx context.Context, c *node.Call, s settings, in json.RawMessage) (node.Outcome, error) {
	id := p.begin(c)
	done, err := padded(c, s, result(c, in, nil))
	if err != nil {
		return nil, err
	}
	for i := range s.Lines {
		c.Log(node.Notice, fmt.Sprintf("line %d", i), nil)
	}
	if s.Kill != 0 {
		kill := false
		p.do(func(w *world) {
			w.kills[id]++
			kill = s.Kill < 0 || w.kills[id] <= s.Kill
			if kill && p.beside {
				w.deaths++
			}
		})
		if kill {
			p.fuse.Kill()
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
	}
	if s.Fail != 0 || s.FailItem >= 0 {
		if err := p.fails(id, s, in); err != nil {
			return nil, err
		}
	}
	if s.MS > 0 {
		select {
		case <-time.After(time.Duration(s.MS) * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if s.Hold && !s.Late {
		if err := p.hold(ctx, id, c.NodeID); err != nil {
			return nil, err
		}
	}
	if !p.effect(id, s.Effect == "once", done["result"]) {
		return nil, errDead
	}
	if s.Hold && s.Late {
		if err := p.hold(ctx, id, c.NodeID); err != nil {
			return nil, err
		}
	}
	return done, nil
}

// inquire asks the world whether it has what a node has sent.
func (p *process) inquire(_ context.Context, c *node.Call) (node.Outcome, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	if s.Away {
		return nil, fault.New(fault.Unsupported, "the service cannot say")
	}
	var answer json.RawMessage
	if !p.do(func(w *world) { answer = w.answers[callOf(c)] }) {
		return nil, errDead
	}
	if answer == nil {
		return nil, nil
	}
	return node.Done{"result": answer}, nil
}

func (p *process) fails(id call, s settings, in json.RawMessage) error {
	var item struct{ Item int }
	if err := json.Unmarshal(in, &item); err != nil {
		return err
	}
	fail := false
	p.do(func(w *world) {
		w.failures[id]++
		fail = s.Fail < 0 || w.failures[id] <= s.Fail
	})
	if s.Final { // a person has the cause removed before the next generation
		fail = s.Fail < 0 || int(id.generation) < s.Fail
	}
	switch {
	case s.FailItem >= 0 && item.Item == s.FailItem:
		return fault.Newf(fault.RemoteRejected, "item %d is refused", item.Item)
	case fail && s.Final:
		return fault.New(fault.RemoteRejected, "refused for good")
	case fail:
		return fault.New(fault.NetworkError, "not this time")
	}
	return nil
}

func (p *process) wait(_ context.Context, c *node.Call, s settings, in json.RawMessage) (node.Outcome, error) {
	if c.Wake == nil {
		p.begin(c)
		w := node.Wait{Signal: s.Signal, Memo: json.RawMessage(`{"memo":7}`)}
		if s.Seconds > 0 {
			w.Until = c.Clock().Add(time.Duration(s.Seconds * float64(time.Second)))
		}
		return w, nil
	}
	return p.woken(c, in)
}

func (p *process) ask(_ context.Context, c *node.Call, _ settings, in json.RawMessage) (node.Outcome, error) {
	if c.Wake == nil {
		p.begin(c)
		return node.Wait{Ask: &node.Question{Purpose: "approval", Request: in}, Memo: json.RawMessage(`{"memo":7}`)}, nil
	}
	return p.woken(c, in)
}

// woken goes on after a wait with what the wait has brought.
func (p *process) woken(c *node.Call, in json.RawMessage) (node.Outcome, error) {
	if string(c.Memo) != `{"memo":7}` {
		return nil, fault.Newf(fault.Internal, "the memo is %s", c.Memo)
	}
	var brought any
	if len(c.Wake.Payload) > 0 {
		if err := json.Unmarshal(c.Wake.Payload, &brought); err != nil {
			return nil, err
		}
	}
	return result(c, in, brought), nil
}

// child starts so many children, one after the other.
func (p *process) child(_ context.Context, c *node.Call) (node.Outcome, error) {
	in := c.Input
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var memo struct {
		Started int   `json:"started"`
		Sum     int64 `json:"sum"`
	}
	if len(c.Memo) > 0 {
		if err := json.Unmarshal(c.Memo, &memo); err != nil {
			return nil, err
		}
	}
	if c.Wake == nil {
		p.begin(c)
	} else {
		if c.Wake.Error != nil {
			return nil, c.Wake.Error
		}
		if c.Wake.Status == engine.StatusCanceled {
			return nil, fault.New(fault.Canceled, "the child was canceled")
		}
		var brought any
		if len(c.Wake.Payload) > 0 {
			if err := json.Unmarshal(c.Wake.Payload, &brought); err != nil {
				return nil, err
			}
		}
		memo.Sum += tally(brought)
	}
	if memo.Started == s.Children {
		return result(c, in, float64(memo.Sum)), nil
	}
	memo.Started++
	kept, err := json.Marshal(memo)
	if err != nil {
		return nil, err
	}
	child := &node.Child{Workflow: s.Workflow, Revision: "latest", Input: in, HandsOn: s.Share, Detached: s.Detached}
	return node.Wait{Child: child, Memo: kept}, nil
}

func (p *process) open(_ context.Context, c *node.Call) (node.Opening, error) {
	s, err := settingsOf(c)
	if err != nil {
		return node.Opening{}, err
	}
	p.begin(c)
	if s.Count == 0 {
		return node.Opening{Done: node.Done{"completed": json.RawMessage(`{"results":[]}`)}}, nil
	}
	o := node.Opening{Count: s.Count, Concurrency: max(s.Concurrency, 1), KeepGoing: s.KeepGoing, Turns: s.Turns, State: json.RawMessage(`{"turns":0}`)}
	if s.Turns {
		o.Count = -1
	}
	return o, nil
}

// hand hands its input on, with its own name.
func (p *process) hand(_ context.Context, c *node.Call) (node.Outcome, error) {
	p.begin(c)
	out := payload.AppendObject(nil, append(payload.Members(c.Input), payload.Member{Key: c.NodeID, Value: json.RawMessage("1")}))
	return node.Done{"result": out}, nil
}

func iteration(c *node.Call, _ json.RawMessage, index int64) (node.Iteration, error) {
	if s, err := settingsOf(c); err != nil || s.Whole {
		item := payload.Member{Key: "item", Value: fmt.Appendf(nil, "%d", index)}
		return node.Iteration{Fields: append(payload.Members(c.Input), item), Vars: map[string]json.RawMessage{"item": item.Value}}, err
	}
	item, err := json.Marshal(map[string]any{"item": index})
	return node.Iteration{Payload: item, Vars: map[string]json.RawMessage{"item": fmt.Appendf(nil, "%d", index)}}, err
}

func turn(_ context.Context, c *node.Call, t node.Turn) (node.Advance, error) {
	s, err := settingsOf(c)
	return node.Advance{Open: t.Index < s.Count, State: fmt.Appendf(nil, `{"turns":%d}`, t.Index)}, err
}

func closeLoop(_ context.Context, _ *node.Call, t node.Closing) (node.Done, error) {
	results, err := t.Results()
	if err != nil {
		return nil, err
	}
	if t.Broken && int64(len(results)) != t.Iterations {
		return nil, errors.New("a loop does not know its results")
	}
	out, err := json.Marshal(map[string]any{"results": results, "succeeded": t.Succeeded, "failed": t.Failed})
	return node.Done{"completed": out}, err
}
