package flow

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/database"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/workflow"
)

// changing matches what can be different at the next check of a waiting condition. read-only
var changing = regexp.MustCompile(`\b(poll|runtime|steps|now|context|variables)\b|\{\{|\$\{`)

// planWait says what each wait_type needs.
func planWait(p *node.Planning, c *waitConfig) {
	typ := p.Choice("wait_type", c.Type)
	switch typ {
	case "timer", "signal", "event", "condition":
	case "webhook":
		if p.Has("credential_id") || p.Templated() {
			p.Effect = workflow.Idempotent // it opens the credential
		}
	default:
		p.Effect = workflow.Idempotent // it asks a source outside, again and again; or only the run knows
	}
	const because = "when %s is %q"
	switch typ {
	case "timer":
		if !p.Has("until") {
			p.Require("for_seconds", "when %s is %q and %s is not set", "wait_type", c.Type, "until")
		}
	case "signal", "event":
		p.Require("signal_name", because, "wait_type", c.Type)
	case "condition":
		p.Require("wait_condition", because, "wait_type", c.Type)
	case "webhook":
		if p.Has("credential_id") && c.Webhook != nil && !c.Webhook.Authentication {
			p.Idle("credential_id", "webhook_config.authentication_required is false, so that no call has to be signed")
		}
	case "api_response":
		p.Require("api_config", because, "wait_type", c.Type)
		planAddress(p)
	case "file":
		p.Require("file_config", because, "wait_type", c.Type)
		planPath(p)
	case "database_change":
		p.Require("database_config", because, "wait_type", c.Type)
		planQuery(p)
		if !p.Has("credential_id") && !p.Templated() {
			p.Warn(node.ProblemCredentialMissing, p.At("credential_id"), `a wait for a change in a database needs a credential of type "sql"; set credential_id before deploying`)
		}
	case "approval", "resource", "queue_message":
		p.Refuse(node.ProblemUnsupported, p.At("wait_type"), "waiting for %q is not supported; use a HUMAN_IN_THE_LOOP node for approvals, wait_type \"signal\" for the rest", c.Type)
	}
	planChecks(p, c, typ)
}

// planChecks looks at what the fields about checks say together.
func planChecks(p *node.Planning, c *waitConfig, typ string) {
	switch typ {
	case "condition":
		if v := p.Value("wait_condition"); v.Type == gjson.String && !changing.MatchString(v.Str) {
			p.Warn(node.ProblemNeverChanges, p.At("wait_condition"), "the condition reads nothing that changes while it waits; use steps, runtime or now()")
		}
		fallthrough
	case "api_response", "file", "database_change":
		if p.Has("check_interval_seconds") && c.Timeout > 0 && c.CheckSeconds > c.Timeout {
			p.Warn(workflow.ProblemConfig, p.At("check_interval_seconds"), "the wait gives up after %g seconds (timeout_seconds), before the second check after %g; lower check_interval_seconds or raise timeout_seconds", c.Timeout, c.CheckSeconds)
		}
	}
	if p.Has("credential_id") {
		switch typ {
		case "timer", "signal", "event", "condition", "file":
			p.Idle("credential_id", "a wait of the type %q opens no credential", typ)
		}
	}
}

// inConfig is a text of an object field and where it stands; not known while it is a placeholder.
func inConfig(p *node.Planning, object, name string) (value, at string, known bool) {
	p.Inside(object, func(field, key string, v gjson.Result) {
		if field == name && v.Type == gjson.String && !node.Dynamic(v) {
			value, at, known = v.Str, node.Under(p.At(object), key), true
		}
	})
	return value, at, known
}

// planQuery refuses a statement that writes: it would fail at its first check.
func planQuery(p *node.Planning) {
	p.Inside("database_config", func(field, key string, v gjson.Result) {
		if field != "query" || v.Type != gjson.String || strings.TrimSpace(v.Str) == "" {
			return
		}
		if err := database.CheckReading(v.Str); err != nil {
			p.Saving(func() { p.Invalid(node.Under(p.At("database_config"), key), "%s", fault.From(err).Message) })
		}
	})
}

func planAddress(p *node.Planning) {
	value, at, known := inConfig(p, "api_config", "url")
	if value = strings.TrimSpace(value); !known || value == "" {
		return
	}
	u, err := url.Parse(value)
	switch {
	case err != nil, u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https":
		p.Invalid(at, "is not an address of a service; write one like %q", "https://api.example.com/jobs/7")
	case u.Host == "" && !p.Has("credential_id") && !p.Templated():
		p.Invalid(at, "has no host, and there is no credential whose base_url could bring one; write the whole address, such as %q", "https://api.example.com/jobs/7")
	}
}

func planPath(p *node.Planning) {
	value, at, known := inConfig(p, "file_config", "file_path")
	if !known || strings.TrimSpace(value) == "" {
		return
	}
	if _, err := files.Clean(value); err != nil {
		p.Invalid(at, "cannot be looked for: %s", fault.From(err).Message)
	}
}
