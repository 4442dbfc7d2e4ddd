package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tandem/human"
	"tandem/workflow"
)

// idleField is a configuration that is only looked at when another one has one of some values. Beside any other value it does nothing, and its
// author is told so.
type idleField struct {
	names []string
	by    string
	works []string
	// otherwise is what the other one is when it is not set and the catalogue has no default for it.
	otherwise string
}

// idleFields are those of a kind. What needs no other field, or is refused elsewhere, is not among them.
func idleFields(kind string) []idleField {
	only := func(by, works, names string) idleField {
		return idleField{names: strings.Fields(names), by: by, works: strings.Fields(works)}
	}
	switch kind {
	case "FLOW.WAIT":
		return []idleField{
			only("wait_type", "timer", "for_seconds until timezone"),
			only("wait_type", "signal event", "signal_name"),
			only("wait_type", "condition", "wait_condition check_interval_seconds exponential_backoff backoff_multiplier max_attempts"),
			only("exponential_backoff", "true", "backoff_multiplier"),
			only("wait_type", "webhook", "webhook_config"), only("wait_type", "api_response", "api_config"),
			only("wait_type", "file", "file_config"), only("wait_type", "database_change", "database_config"),
		}
	case "FLOW.LOOP":
		return []idleField{
			only("loop_type", "for_range", "start_value end_value step"), only("loop_type", "for_each", "array_path"), only("loop_type", "while", "loop_condition"),
		}
	case "FLOW.MERGE":
		return []idleField{
			only("merge_strategy", "zip", "zip_length"), only("merge_strategy", "by_key", "join"),
			only("merge_strategy", "first first_complete", "cancel_losers"), only("merge_strategy", "concatenate union by_key zip", "timeout_seconds"),
		}
	case "FLOW.SPLIT":
		return []idleField{
			only("split_mode", "predicate", "predicate_paths match"), only("split_mode", "by_key", "by_key"),
			only("split_mode", "items", "batch_size max_concurrency break_on_error"),
		}
	case "FLOW.FILTER":
		return []idleField{
			only("filter_type", "custom_function", "custom_filter_function"), only("sort_filtered_results", "true", "sort_field sort_order"),
		}
	case "ACTION.DATA_TRANSFORMATION":
		return []idleField{
			only("operation", "filter", "filter_conditions"), only("operation", "sort", "sort_config"), only("operation", "join", "join_config"),
			only("operation", "flatten", "flatten_config"), only("operation", "pivot", "pivot_config"), only("operation", "custom", "transformation_script"),
		}
	case "ACTION.DATA_FORMATTING":
		return []idleField{only("format_type", "template", "template")}
	case "ACTION.FILE_OPERATION":
		return []idleField{only("operation", "copy move archive extract", "destination"), only("operation", "write append", "content")}
	case "ACTION.FILE_UPLOAD":
		return []idleField{only("target", "http", "url method field_name"), only("target", "s3 gcs azure_blob", "bucket key")}
	case "ACTION.HTTP_REQUEST":
		return []idleField{only("follow_redirects", "true", "max_redirects")}
	case "ACTION.WEBHOOK_CALL":
		return []idleField{only("wait_for_callback", "true", "callback_timeout_seconds")}
	case "ACTION.WEB_SEARCH":
		return []idleField{only("provider", "json", "mapping")}
	}
	if !strings.HasPrefix(kind, "HUMAN_IN_THE_LOOP.") {
		return nil
	}
	medium := map[string]string{
		"GMAIL_INTERACTION": human.Email, "OUTLOOK_INTERACTION": human.Email, "SLACK_INTERACTION": human.Slack, "DISCORD_INTERACTION": human.Discord,
		"TELEGRAM_INTERACTION": human.Telegram, "TEAMS_INTERACTION": human.Teams,
	}[strings.TrimPrefix(kind, "HUMAN_IN_THE_LOOP.")]
	list := []idleField{
		only("interaction_type", human.Approval, "approval_options"), only("interaction_type", human.Input, "input_fields"),
		only("interaction_type", human.Selection, "selection_options allow_multiple"), only("interaction_type", human.Review, "review_criteria"),
		{names: []string{"timeout_default_response"}, by: "timeout_action", works: []string{human.TimeoutDefault}, otherwise: human.TimeoutFail},
		{names: []string{"webhook_url"}, by: "channel_type", works: []string{human.Webhook, human.Teams}, otherwise: cmp.Or(medium, human.InApp)},
	}
	if kind == "HUMAN_IN_THE_LOOP.FORM_SUBMISSION" {
		list = append(list, only("interaction_type", human.Input, "form_schema"))
	}
	return list
}

// checkIdle warns of configurations that do nothing beside the others. Where a template brings the others nothing is known.
func (c *config) checkIdle(kind string) {
	if c.has("template_id") {
		return
	}
	for _, f := range idleFields(kind) {
		value := cmp.Or(c.text(f.by), f.otherwise)
		if value == "" || c.isDynamic(f.by) || slices.Contains(f.works, value) {
			continue
		}
		for _, name := range f.names {
			if c.has(name) {
				c.idle(name, fmt.Sprintf("it is for %s %s, not for %q", f.by, strings.Join(quoteAll(f.works), " or "), value))
			}
		}
	}
}

// idle warns of one configuration.
func (c *config) idle(name, why string) {
	c.warnf(workflow.ProblemConfig, c.at(name), "%s does nothing here: %s; remove it", name, why)
}
