package start

import (
	"context"
	"encoding/json"
	"time"
	_ "time/tzdata" // time zones are known on every machine

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/trigger"
	"tandem/workflow"
)

type cronConfig struct {
	Expression string `json:"cron_expression" fixed:"true" doc:"When it starts: 5 fields (minute, hour, day of the month, month, day of the week), 6 with seconds first, or @hourly, @daily, @weekly, @monthly, @yearly." zh:"启动时间：5 个字段（分、时、日、月、星期），6 个字段时首位为秒，或 @hourly、@daily、@weekly、@monthly、@yearly。"`
	Timezone   string `json:"timezone" fixed:"true" doc:"The time zone of the expression, such as Europe/Berlin." zh:"表达式所用的时区，例如 Asia/Shanghai。"`
	MaxMissed  int    `json:"max_missed_runs" range:"1..10" fixed:"true" with:"misfire_policy=run_all" doc:"How many missed times are started afterwards, for run_all." zh:"最多补几次：run_all 时最多补启动多少次。"`
	Misfire    string `json:"misfire_policy" enum:"skip|run_once|run_all" fixed:"true" doc:"What is done about times that were missed because nothing was running: nothing, the newest of them once, or the newest few in order." zh:"因停机错过的时间如何处理：跳过、补最近一次，或按顺序补最近几次。"`
	Jitter     int    `json:"jitter_seconds" range:"0..3600" fixed:"true" doc:"By how many seconds a start is put off at most, so that many do not begin at once." zh:"启动最多随机推迟多少秒，以免同时启动。"`
}

func (c *cronConfig) Defaults() {
	c.Expression, c.Timezone, c.MaxMissed, c.Misfire = "0 9 * * *", "UTC", 3, string(trigger.MissedRunOnce)
}

// times reads the expression and the time zone.
func (c *cronConfig) times() (cronTimes, *time.Location, error) {
	times, err := parseCron(c.Expression)
	if err != nil {
		return times, nil, err
	}
	place, err := time.LoadLocation(c.Timezone)
	if err != nil || c.Timezone == "" || c.Timezone == "Local" {
		return times, nil, fault.Newf(fault.InvalidConfig, "there is no time zone %q; write it like Europe/Berlin or UTC", c.Timezone)
	}
	return times, place, nil
}

// triggerCron is where an execution begins that the clock has started.
func triggerCron() node.Kind {
	return node.Define(
		node.About{
			Name: "TRIGGER.CRON", Title: node.Says("Schedule", "定时触发"),
			Description: node.Says("Starts at times that a cron expression says, once the workflow is deployed.", "工作流部署后，按 cron 表达式指定的时间启动。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The scheduled time, with trigger_time, execution_id and trigger_message.", "计划时间，附 trigger_time、execution_id 和 trigger_message。"), Fields: append([]node.Value{
				node.Meaning("scheduled_time", "The time that it was started for.", "计划的启动时间。"),
				node.Meaning("timezone", "The time zone.", "时区。"), node.Meaning("cron_expression", "The expression.", "cron 表达式。"),
			}, startedMeanings()...)}},
			Inputs: []node.Value{node.Meaning("scheduled_time", "The scheduled time; when somebody starts it by hand, the time of the start.", "计划时间；手动启动时为启动时间。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Starts on weekdays at nine in Berlin.", "柏林时间工作日九点启动。"),
					Config: `{"cron_expression": "0 9 * * mon-fri", "timezone": "Europe/Berlin"}`,
					Input:  `{"scheduled_time": "2026-11-16T08:00:00Z"}`,
					Output: `{"result": {"scheduled_time": "2026-11-16T08:00:00Z", "timezone": "Europe/Berlin", "cron_expression": "0 9 * * mon-fri", "trigger_time": "…", "execution_id": "…", "trigger_message": "scheduled for 2026-11-16T08:00:00Z"}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg cronConfig, in json.RawMessage) (json.RawMessage, error) {
			at := gjson.GetBytes(in, "scheduled_time").String()
			if at == "" {
				at = call.Now.UTC().Format(time.RFC3339)
			}
			fields := []values.Member{values.Field("scheduled_time", at), values.Field("timezone", cfg.Timezone),
				values.Field("cron_expression", cfg.Expression)}
			return values.HandOn(in, append(fields, startedFields(call, "scheduled for "+at)...)...), nil
		}, planCron)
}

// planCron refuses what is not a schedule before anything is deployed.
func planCron(p *node.Planning, cfg *cronConfig) {
	if _, err := parseCron(cfg.Expression); err != nil {
		p.Invalid(p.At("cron_expression"), "%s", fault.From(err).Message)
		return
	}
	if _, _, err := cfg.times(); err != nil {
		p.Invalid(p.At("timezone"), "%s", fault.From(err).Message)
	}
}

// cronSource starts executions at the times of an expression.
type cronSource struct{}

// Kind implements [trigger.Source].
func (cronSource) Kind() string { return "TRIGGER.CRON" }

// Register implements [trigger.Source]: there is nothing outside, and the schedule is looked at by the service.
func (cronSource) Register(context.Context, trigger.Trigger) error { return nil }

// Schedule implements [trigger.Scheduler].
func (cronSource) Schedule(t trigger.Trigger) (trigger.Schedule, error) {
	cfg, err := node.Configuration[cronConfig](t.Config)
	if err != nil {
		return trigger.Schedule{}, err
	}
	times, place, err := cfg.times()
	if err != nil {
		return trigger.Schedule{}, err
	}
	return trigger.Schedule{
		Next: func(after time.Time) (time.Time, bool) { return times.next(after, place) },
		Event: func(at time.Time) (trigger.Event, error) {
			return trigger.Event{Payload: values.Object([]values.Member{
				values.Field("scheduled_time", at.UTC().Format(time.RFC3339)), values.Field("timezone", cfg.Timezone),
				values.Field("cron_expression", cfg.Expression),
			})}, nil
		},
		Missed: trigger.Missed(cfg.Misfire), MaxMissed: cfg.MaxMissed, Jitter: time.Duration(cfg.Jitter) * time.Second,
	}, nil
}
