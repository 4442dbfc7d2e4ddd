package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/httpcall"
	"tandem/builtin/values"
	"tandem/engine"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/text"
	"tandem/workflow"
)

type waitConfig struct {
	_ struct{} `either:"for_seconds|until"`

	Type       string        `json:"wait_type" enum:"timer|webhook|signal|event|condition|api_response|file|database_change" legacy:"approval|resource|queue_message" doc:"What is waited for: a time, a call, a signal or event, a condition, the answer of a service, a file, or a change in a database." zh:"等待的对象：时间、外部调用、信号或事件、条件、服务的响应、文件或数据库的变化。"`
	ForSeconds *float64      `json:"for_seconds" range:"0.." with:"wait_type=timer" doc:"How long to wait, in seconds, for timer." zh:"timer 时等待多久（秒）。"`
	Until      node.Template `json:"until" with:"wait_type=timer" doc:"The point in time to wait for, for timer." zh:"timer 时等待到的时刻。"`
	Timezone   string        `json:"timezone" with:"wait_type=timer" doc:"The time zone of until, if it names none." zh:"时区：until 未注明时采用的时区。"`
	SignalName node.Template `json:"signal_name" with:"wait_type=signal|event" doc:"The name of the signal that ends the wait." zh:"结束等待的信号名称。"`
	Condition  node.Expr     `json:"wait_condition" with:"wait_type=condition|api_response|file|database_change" doc:"The condition that is tested at every check. For api_response, file and database_change it is optional, reads what the source has just answered as poll, and takes the place of what would end the wait without it: a status of success, that the file is there, that the rows have changed." zh:"每次检查时判断的条件。用于 api_response、file、database_change 时可省略；它以 poll 读取来源刚给出的内容，并代替默认的结束条件（成功的状态码、文件存在、行有变化）。"`

	CheckSeconds float64 `json:"check_interval_seconds" range:"0.1..3600" with:"wait_type=condition|api_response|file|database_change" doc:"How long to wait between two checks, in seconds." zh:"两次检查的间隔（秒）。"`
	Backoff      bool    `json:"exponential_backoff" with:"wait_type=condition|api_response|file|database_change" doc:"Whether the interval grows with every check." zh:"间隔是否逐次增长。"`
	Multiplier   float64 `json:"backoff_multiplier" range:"1.1..3" with:"wait_type=condition|api_response|file|database_change,exponential_backoff=true" doc:"By how much the interval grows, up to an hour." zh:"间隔的增长倍数，最长一小时。"`
	MaxAttempts  int64   `json:"max_attempts" range:"-1.." with:"wait_type=condition|api_response|file|database_change" doc:"The most checks; -1 for no limit." zh:"最多检查次数；-1 表示不限。"`
	Timeout      float64 `json:"timeout_seconds" range:"0..31536000" doc:"When to give up, in seconds; 0 for never." zh:"多久后放弃（秒）；0 表示不放弃。"`

	Webhook  *waitWebhook  `json:"webhook_config" with:"wait_type=webhook" doc:"The call that ends a wait of the type webhook." zh:"等待的调用：webhook 等待中结束等待的调用。"`
	API      *waitAPI      `json:"api_config" with:"wait_type=api_response" doc:"What a wait of the type api_response asks. The credential of the node is an http_auth." zh:"查询的服务：api_response 等待所查询的服务；节点凭据的类型为 http_auth。"`
	File     *waitFile     `json:"file_config" with:"wait_type=file" doc:"The file that a wait of the type file looks for." zh:"file 等待所查找的文件。"`
	Database *waitDatabase `json:"database_config" with:"wait_type=database_change" doc:"What a wait of the type database_change asks. The credential of the node is an sql." zh:"数据库查询：database_change 等待所执行的查询；节点凭据的类型为 sql。"`
}

func (c *waitConfig) Defaults() {
	c.Type, c.CheckSeconds, c.Multiplier, c.MaxAttempts, c.Timeout = "condition", 5, 1.5, -1, 300
}

// waited are the fields of all payloads.
func waited() []node.Value {
	return []node.Value{
		node.Meaning("wait_result", "How the wait has ended, and how many checks were made.", "等待如何结束及检查次数。"),
		node.Meaning("trigger_data", "What the signal has brought, or the call, or what the source has answered at last; null if there was none.", "信号或调用带来的内容，或来源最后给出的内容；没有时为 null。"), node.HandedOn(),
	}
}

type waitResult struct {
	ConditionMet    bool  `json:"condition_met" doc:"Whether what was waited for has come." zh:"是否等到。"`
	AttemptsMade    int64 `json:"attempts_made" doc:"How many checks were made; 1 for a signal or a call." zh:"检查的次数；信号或调用为 1。"`
	TimeoutOccurred bool  `json:"timeout_occurred" doc:"Whether the time was over before." zh:"是否超时。"`
	WasCancelled    bool  `json:"was_cancelled" doc:"Whether the wait was cancelled." zh:"是否被取消。"`
}

// waitCredentials are the types of credentials that fit what is waited for.
func waitCredentials(config json.RawMessage) []string {
	switch gjson.GetBytes(config, "wait_type").Str {
	case "api_response":
		return []string{"http_auth", "oauth2"}
	case "database_change":
		return []string{"sql"}
	case "webhook":
		return []string{"webhook_secret"}
	}
	return nil
}

// flowWait waits for a time, a call, a signal, a condition or a source outside. Between checks nothing is held: each is a durable timer.
func flowWait(d Deps) node.Kind {
	sources := &waitSources{http: d.HTTP, tokens: &httpcall.Tokens{Client: d.HTTP}, files: d.Files, databases: d.Databases}
	kind := node.Raw(
		node.About{
			Name: "FLOW.WAIT", Title: node.Says("Wait", "等待"),
			Traits:      workflow.Traits{Signals: workflow.SignalsNamed},
			Description: node.Says("Waits for a time, a call, a signal, a condition, a file, or what a service or a database answers.", "等待某个时间、外部调用、信号、条件、文件，或服务与数据库给出的内容。"),
			Effect:      workflow.Pure, // as wait_type says
			Keys: []node.Key{
				{Name: "completed", Meaning: node.Says("The input with wait_result, when what was waited for has come.", "等到之后的输入及 wait_result。"), Fields: waited()},
				{Name: "timeout", Instead: true, Meaning: node.Says("The same, when it did not come in time.", "超时后的输入及 wait_result。"),
					Fields: waited()},
				{Name: "cancelled", Instead: true, Meaning: node.Says("The same, when the wait was cancelled.", "等待被取消后的输入及 wait_result。"),
					Fields: waited()},
			},
			Aliases: map[string]string{workflow.DefaultKey: "completed", "canceled": "cancelled"},
			Needs: node.Needs{Credential: []string{"http_auth", "sql", "webhook_secret"}, Optional: true,
				CredentialOf: waitCredentials, Also: []node.Text{
					node.Says("For database_change a credential of the type sql.", "用于 database_change 时需要 sql 类型的凭据。"),
					node.Says("For webhook a server that is running.", "用于 webhook 时需要正在运行的服务器。"),
				}},
			Inputs: node.HandsOn(),
			Examples: []node.Example{
				{
					Shows:  node.Says("Waits for a tenth of a second.", "等待十分之一秒。"),
					Config: `{"wait_type": "timer", "for_seconds": 0.1}`,
					Input:  `{"order": 7}`,
					Output: `{"completed": {"order": 7, "wait_result": {"condition_met": true, "attempts_made": 0, "timeout_occurred": false, "was_cancelled": false}, "trigger_data": null}}`,
				},
				{
					Shows:   node.Says("Asks a service every ten seconds whether a job is done.", "每十秒查询一次任务是否完成。"),
					Config:  `{"wait_type": "api_response", "api_config": {"url": "https://api.example.com/jobs/7", "expected_response": {"state": "done"}}, "check_interval_seconds": 10, "timeout_seconds": 3600}`,
					Input:   `{"order": 7}`,
					Replies: []string{`{"state": "done", "sum": 120}`},
					Output:  `{"completed": {"order": 7, "wait_result": {"condition_met": true, "attempts_made": 1, "timeout_occurred": false, "was_cancelled": false}, "trigger_data": {"status_code": 200, "headers": {"content-length": "29", "content-type": "application/json"}, "body": "{\"state\": \"done\", \"sum\": 120}", "json": {"state": "done", "sum": 120}, "success": true, "response_time": "…", "url": "https://api.example.com/jobs/7"}}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg waitConfig, in json.RawMessage) (node.Outcome, error) {
			w := waiting{ctx: ctx, call: call, cfg: cfg, in: in}
			switch cfg.Type {
			case "timer":
				return w.timer()
			case "signal", "event":
				return w.signal()
			case "condition", "api_response", "file", "database_change":
				return w.checks(sources)
			case "webhook":
				return w.webhook(d.Listens)
			case "approval":
				return nil, fault.New(fault.Unsupported, "waiting for an approval is done by a HUMAN_IN_THE_LOOP node")
			}
			return nil, fault.Newf(fault.Unsupported, "waiting for %q is not supported; use wait_type %q", cfg.Type, "signal")
		}, planWait)
	kind.Hands = func(json.RawMessage) bool { return true }
	kind.Fresh = true // a condition waits for what other nodes write meanwhile
	return kind
}

// waiting is one run of a wait.
type waiting struct {
	ctx  context.Context
	call *node.Call
	cfg  waitConfig
	in   json.RawMessage
}

func (w *waiting) timer() (node.Outcome, error) {
	var end time.Time
	switch {
	case w.cfg.Until != "":
		var err error
		if end, err = parseTime(string(w.cfg.Until), w.cfg.Timezone); err != nil {
			return nil, err
		}
	case w.cfg.ForSeconds != nil:
		end = w.call.Now.Add(seconds(*w.cfg.ForSeconds))
	default:
		return nil, fault.Newf(fault.InvalidConfig, "%q or %q is required when wait_type is %q", "for_seconds", "until", "timer")
	}
	wake := w.call.Wake
	switch {
	case !end.After(w.call.Now), wake != nil && wake.By == engine.WakeTimer:
		return w.done("completed", waitResult{ConditionMet: true}, nil), nil
	case wake != nil && cancels(wake):
		return w.done("cancelled", waitResult{WasCancelled: true}, wake.Payload), nil
	}
	return node.Wait{Until: end, Signal: cancelSignal}, nil
}

func (w *waiting) signal() (node.Outcome, error) {
	name := string(w.cfg.SignalName)
	if name == "" {
		return nil, fault.Newf(fault.InvalidConfig, "%q is required when wait_type is %q", "signal_name", w.cfg.Type)
	}
	wake := w.call.Wake
	switch {
	case wake == nil:
		return node.Wait{Until: w.deadline(), Signal: name}, nil
	case wake.By != engine.WakeSignal:
		return w.timeout(0, nil)
	case values.IsObject(wake.Payload) && isTrue(wake.Payload, "cancel"):
		return w.done("cancelled", waitResult{AttemptsMade: 1, WasCancelled: true}, wake.Payload), nil
	}
	return w.done("completed", waitResult{ConditionMet: true, AttemptsMade: 1}, wake.Payload), nil
}

// deadline is when the wait gives up, zero for never.
func (w *waiting) deadline() time.Time {
	if w.cfg.Timeout == 0 {
		return time.Time{}
	}
	return w.call.Now.Add(seconds(w.cfg.Timeout))
}

// timeout ends the wait along its key, or as an error when nobody is there to take it.
// The reason is why the last check could not be made, nil if it could.
func (w *waiting) timeout(attempts int64, reason *checkError) (node.Outcome, error) {
	if !w.call.Connected("timeout") {
		why, raise := "", "timeout_seconds"
		if reason != nil {
			why = fmt.Sprintf(" (the last check could not be made: %s)", reason.Message)
		}
		if w.cfg.MaxAttempts >= 0 && attempts >= w.cfg.MaxAttempts {
			raise = "max_attempts"
		}
		return nil, fault.Newf(fault.Timeout, "what the node waited for did not come in time%s; raise %q or connect %q", why, raise, "timeout").Final()
	}
	return w.done("timeout", waitResult{AttemptsMade: attempts, TimeoutOccurred: true}, nil), nil
}

func (w *waiting) done(key string, r waitResult, brought json.RawMessage) node.Done {
	if len(brought) == 0 {
		brought = json.RawMessage("null")
	}
	return node.Done{key: values.HandOn(w.in, values.Field("wait_result", r), values.Member{Key: "trigger_data", Value: brought})}
}

func isTrue(raw json.RawMessage, name string) bool {
	v, ok := values.Path{name}.Walk(raw)
	return ok && expr.Truth(values.Decode(v))
}

// parseTime reads a time with its offset, or one that is local to a zone (UTC if none is named).
func parseTime(at, zone string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
		return t, nil
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}, fault.Newf(fault.InvalidConfig, "%q is not a time zone; write one like %q", zone,
			"Europe/Berlin").WithCause(err)
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04",
		"2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, at, location); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.Say(fault.InvalidConfig, text.Of("%q is not a time; write it like %q, or local with a timezone", at, "2030-01-31T09:00:00Z"))
}
