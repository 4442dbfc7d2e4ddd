package app

import (
	"regexp"
	"slices"
	"strings"

	"tandem/workflow"
)

const triggerCommon = `description`

// triggerKinds start executions. They take no input and are never retried.
func triggerKinds() []kind {
	return []kind{
		{subtype: "MANUAL", effect: workflow.Pure,
			config: `trigger_name="Manual Trigger"; input_schema:obj`},
		{subtype: "WEBHOOK", effect: workflow.Pure, rules: webhookTriggerRules,
			config: `webhook_path!*="/webhook"; allowed_methods:list{GET|POST|PUT|PATCH|DELETE}=[POST];
				authentication{none|header_token|query_param|signature}=none; response_mode{async|sync}=async;
				response_format{json|text|html}=json; response_timeout_seconds=30[1..300]; cred webhook_secret`},
		{subtype: "CRON", effect: workflow.Pure, rules: cronTriggerRules,
			config: `cron_expression!*="0 9 * * *"; timezone!=UTC; max_missed_runs=3[1..10];
				misfire_policy{skip|run_once|run_all}=run_once; jitter_seconds=0[0..]`},
		{subtype: "EMAIL", effect: workflow.Pure,
			config: `email_provider*{imap|gmail_api|outlook_api|webhook}=imap; mailbox=INBOX; filter_criteria:obj;
				subject_keywords, sender_whitelist:list; process_attachments=true;
				attachment_types:list=[pdf,doc,docx,txt,csv,xlsx]; max_attachment_size=10485760[1024..52428800];
				polling_interval=300[30..3600]; mark_seen=true; cred* imap/google_oauth/microsoft_oauth/webhook_secret`},
		{subtype: "GITHUB", effect: workflow.Pure, rules: githubTriggerRules,
			config: `repository!*; branches:list; filter_conditions:obj; include_payload=true; cred* github_token;
				events*:list{push|pull_request|issues|issue_comment|pull_request_review|release|workflow_run|repository|star|watch|fork}=[push,pull_request]`},
		{subtype: "SLACK", effect: workflow.Pure,
			config: `workspace_id!*; channels, keywords:list; filter_bot_messages=true; include_thread_replies=true; cred* slack_bot;
				events*:list{message|app_mention|reaction_added|reaction_removed|channel_created|channel_deleted|member_joined_channel|member_left_channel|user_change|team_join|file_shared}=[message,app_mention]`},
	}
}

func webhookTriggerRules(c *config) {
	if p := c.text("webhook_path"); p != "" && !strings.HasPrefix(p, "/") {
		c.invalid(c.at("webhook_path"), `must begin with "/"`)
	}
	if auth := c.text("authentication"); auth != "none" && auth != "" && !c.has("credential_id") && !c.has("template_id") {
		c.warnf(problemCredentialMissing, "configurations.credential_id", "authentication %q needs a credential of type \"webhook_secret\"; set credential_id before deploying", auth)
	}
}

var cronField = regexp.MustCompile(`^[0-9A-Za-z*,/?#-]+$`)

func cronTriggerRules(c *config) {
	text := strings.TrimSpace(c.text("cron_expression"))
	if text == "" && c.isDynamic("cron_expression") {
		return
	}
	if strings.HasPrefix(text, "@") {
		if macros := []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}; !slices.Contains(macros, text) {
			c.invalid(c.at("cron_expression"), "must be five or six fields or one of %s%s", strings.Join(macros, " "), suggest(text, macros))
		}
		return
	}
	fields := strings.Fields(text)
	if len(fields) != 5 && len(fields) != 6 {
		c.invalid(c.at("cron_expression"), "must have five fields (minute hour day month weekday), or six with seconds first; it has %d", len(fields))
		return
	}
	for _, f := range fields {
		if !cronField.MatchString(f) {
			c.invalid(c.at("cron_expression"), "has the field %q, which is no cron field", f)
		}
	}
}

var repositoryName = regexp.MustCompile(`^[\w.-]+/[\w.-]+$`)

func githubTriggerRules(c *config) {
	if name := c.text("repository"); name != "" && !repositoryName.MatchString(name) {
		c.invalid(c.at("repository"), `must be "owner/name"`)
	}
}
