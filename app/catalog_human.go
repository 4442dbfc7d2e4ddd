package app

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/human"
	"tandem/workflow"
)

// humanCommon is the configuration of every question to a person. A second copy of a question leads to the same
// interaction, so on_unknown is retry unless the author says otherwise.
const humanCommon = `on_unknown!{ask|retry|fail}=retry; interaction_type!{approval|input|selection|review}=approval; title, description:tmpl;
	email_subject, review_title -> title;
	message_template, clarification_question_template, email_template, review_description -> description;
	timeout_seconds:int=3600[60..604800]; response_timeout, review_deadline -> timeout_seconds; timeout_minutes:num[1..10080];
	timeout_action{fail|continue|default_response}; timeout_default_response:obj;
	approval_options:list/any=[approve,reject](value*; label; outcome{confirmed|rejected|none});
	input_fields:list(name*; label; type{text|number|email|date|select|boolean|file}=text; required=false; options:list; validation:any);
	selection_options:list/any(value*; label; outcome{confirmed|rejected|none}); allow_multiple=false; review_criteria:list; approvers:list;
	min_approvals=1[1..]; min_rejections=1[1..]; exclude_requester, allow_delegation, advisory=false; escalation:obj(after_seconds*:num[1..]; to*:any);
	reminder_seconds=0[0..]; risk{low|medium|high}=low; ai_analysis_model; response_analysis_prompt:tmpl;
	custom_analysis_prompt -> response_analysis_prompt; unrelated_action{ignore|route};
	channel_type{in_app|webhook|email|slack|discord|telegram|teams}; webhook_url:tmpl; priority=1[1..5]; content:any; user_mention:tmpl;
	need title|description`

// humanAliases are the keys of older files.
func humanAliases() map[string]string {
	return map[string]string{"approved": "confirmed", "completed": workflow.DefaultKey, "filtered": "unrelated"}
}

// humanKinds ask people. The six messaging kinds speak in their own medium only.
func humanKinds() []kind {
	ask := func(subtype, medium, notation string) kind {
		return kind{subtype: subtype, effect: workflow.Once, config: notation, aliases: humanAliases(),
			keys:  []string{workflow.DefaultKey, "confirmed", "rejected", "unrelated", "timeout"},
			rules: func(c *config) { humanRules(c, medium) }}
	}
	return []kind{
		ask("GMAIL_INTERACTION", "email", `recipient_emails*:list; sender_email; timeout_seconds:int=86400[60..604800]; cred* google_oauth/smtp; imap_credential_id`),
		ask("OUTLOOK_INTERACTION", "email", `recipient_emails*:list; sender_email; timeout_seconds:int=86400[60..604800]; priority_level{low|normal|high}=normal; cred* microsoft_oauth/smtp; imap_credential_id`),
		ask("SLACK_INTERACTION", "slack", `channel*:tmpl; auto_thread=true; cred* slack_bot`),
		ask("DISCORD_INTERACTION", "discord", `server_id, channel_id*; cred* discord_bot`),
		ask("TELEGRAM_INTERACTION", "telegram", `chat_id*:str/int; target_users, inline_keyboard:list; allow_text_responses=true; allowed_response_patterns:list; cred* telegram_bot`),
		ask("TEAMS_INTERACTION", "teams", `channel_id, user; cred* teams_bot`),
		ask("IN_APP_APPROVAL", "", ``),
		ask("FORM_SUBMISSION", "", `interaction_type!{approval|input|selection|review}=input; form_schema:obj; access{users|link|public}=users;
			timeout_seconds:int=86400[60..604800]; need input_fields|form_schema`),
		ask("MANUAL_REVIEW", "", `interaction_type!{approval|input|selection|review}=review; reviewers*:list; review_criteria*:list;
			review_type*{quality_assurance|security_review|compliance_check|code_review|content_moderation|financial_audit|legal_review|medical_review|safety_inspection}=quality_assurance;
			scoring_system{pass_fail|numeric_scale|letter_grade|checklist|custom}=pass_fail; score_range:obj(min:num=1; max:num=5);
			passing_threshold:num=3; require_evidence=true; consensus_required=false; timeout_seconds:int=86400[60..604800]`),
	}
}

func humanRules(c *config, medium string) {
	channel := cmp.Or(medium, c.text("channel_type"))
	if !c.flag("advisory") {
		c.plan.Asks = human.Confirmed
	}
	if c.isDynamic("advisory") {
		c.invalid(c.at("advisory"), "must be true or false: whether a question can be passed over is decided when the workflow is saved")
	}
	if t := c.text("channel_type"); medium != "" && t != "" && t != medium {
		c.invalid(c.at("channel_type"), "must be %q for %s, or left out", medium, c.node.Kind())
	}
	if c.text("timeout_action") == human.TimeoutDefault {
		c.requireFor("timeout_default_response", `when timeout_action is "default_response"`)
	}
	if c.has("timeout_seconds") && c.has("timeout_minutes") {
		c.invalid(c.at("timeout_minutes"), "sets the same as timeout_seconds; keep one of them")
	}
	if channel == human.Webhook {
		c.requireFor("webhook_url", `when channel_type is "webhook"`)
	}
	if types := channelCredentials(channel); medium == "" && types != "" && !c.has("credential_id") && !c.has("template_id") {
		c.warnf(problemCredentialMissing, c.at("credential_id"), "asking by %q needs a credential of type %s; set credential_id before deploying", channel, types)
	}
	switch c.text("interaction_type") {
	case human.Approval:
		if c.has("approval_options") || c.has("template_id") {
			optionKeys(c, "approval_options")
		} else {
			c.plan.Keys = append(c.plan.Keys, "approve", "reject")
		}
	case human.Selection:
		c.requireFor("selection_options", `when interaction_type is "selection"`)
		optionKeys(c, "selection_options")
	}
	// What a template brings is not known here, and what is wrong already need not be said twice.
	if !c.has("template_id") && !workflow.HasErrors(c.problems) {
		newHumanDraft(c, channel).check()
	}
}

// channelCredentials are the types of credential that a channel asks with; empty: none.
func channelCredentials(channel string) string {
	return map[string]string{
		human.Webhook: `"webhook_secret"`, human.Email: `"smtp", "google_oauth" or "microsoft_oauth"`, human.Slack: `"slack_bot"`, human.Discord: `"discord_bot"`,
		human.Telegram: `"telegram_bot"`, human.Teams: `"teams_bot"`,
	}[channel]
}

// optionKeys adds an output key for each option a person can choose. Options that are only known at run time make any
// key possible.
func optionKeys(c *config, name string) {
	options := c.items(name)
	if c.isDynamic(name) || c.has("template_id") || slices.ContainsFunc(options, func(o gjson.Result) bool { return dynamic(o) || dynamic(o.Get("value")) }) {
		c.plan.Keys = nil
		return
	}
	if c.has(name) && len(options) == 0 {
		c.invalid(c.at(name), "must be a list with at least one option")
	}
	reserved := append(slices.Collect(maps.Keys(humanAliases())), c.plan.Keys...)
	seen := map[string]bool{}
	for i, option := range options {
		at := fmt.Sprintf("%s[%d]", c.at(name), i)
		key := option.String()
		if option.IsObject() {
			at, key = at+".value", option.Get("value").String()
		}
		switch {
		case strings.TrimSpace(key) == "":
			c.invalid(at, "must not be empty")
		case reservedKey(key, reserved...):
			c.invalid(at, "cannot be %q, which is a reserved output key; call the option differently and set its outcome", key)
		case seen[key]:
			c.invalid(at, "is the second option called %q; keep one", key)
		default:
			seen[key] = true
			c.plan.Keys = append(c.plan.Keys, key)
		}
	}
}
