package app

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/workflow"
)

// operations are what a kind's action_type chooses from, by effect class: "name(parameter, parameter) name()". A
// parameter may be configured or come with the input, so none is required here. "old->name" accepts an older name.
type operations struct {
	once, idempotent, read string
	// prefix may stand before the name of any operation.
	prefix string
	// raw adds request(method, path, query, body), a call by hand whose class is the method's.
	raw bool
	// refine adjusts the class an operation was given.
	refine func(c *config, operation string, e workflow.Effect) workflow.Effect
}

const rawRequest = "request(method{GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS}; path; query:any; body:any)"

// notation makes configuration fields of the parameters of all operations.
func (o *operations) notation() string {
	if o == nil {
		return ""
	}
	var entries []string
	for _, text := range []string{o.once, o.idempotent, o.read, o.request()} {
		for _, operation := range entriesIn(text) {
			open := strings.IndexByte(operation, '(')
			if open < 0 {
				continue
			}
			for _, parameter := range splitTop(strings.ReplaceAll(operation[open+1:len(operation)-1], ",", ";"), ';') {
				if !strings.ContainsAny(parameter, ":{=") {
					parameter += ":any"
				}
				entries = append(entries, parameter)
			}
		}
	}
	return strings.Join(append(entries, "limit=100[1..1000]", "cursor"), ";")
}

func (o *operations) request() string {
	if o.raw {
		return rawRequest
	}
	return ""
}

// entriesIn splits a list of operations, which may stand on several lines.
func entriesIn(text string) []string { return splitTop(strings.Join(strings.Fields(text), " "), ' ') }

// class finds an operation. Older names are resolved.
func (o *operations) class(name string) (operation string, e workflow.Effect, ok bool) {
	name = strings.ToLower(strings.TrimPrefix(name, o.prefix))
	for e, text := range o.classes() {
		for _, entry := range entriesIn(text) {
			if old, current, renamed := strings.Cut(entry, "->"); renamed && old == name {
				return current, e, true
			}
			if own, _, _ := strings.Cut(entry, "("); own == name {
				return name, e, true
			}
		}
	}
	return "", "", false
}

// classes yields the operations with their class; reading counts as idempotent.
func (o *operations) classes() func(yield func(workflow.Effect, string) bool) {
	return func(yield func(workflow.Effect, string) bool) {
		_ = yield(workflow.Once, o.once) && yield(workflow.Idempotent, o.idempotent) && yield(workflow.Idempotent, o.read) && yield(workflow.Once, o.request())
	}
}

func (o *operations) names() []string {
	var names []string
	for _, text := range o.classes() {
		for _, entry := range entriesIn(text) {
			if name, _, ok := strings.Cut(entry, "("); ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// effect is the class of the configured operation; once when it is only known at run time.
func (o *operations) effect(c *config) workflow.Effect {
	chosen := c.choice("action_type")
	if chosen == "" {
		return workflow.Once
	}
	operation, e, ok := o.class(chosen)
	if !ok {
		c.errorf(problemUnsupported, c.at("action_type"), "%s has no operation %q; it has %s%s", c.node.Kind(), chosen,
			strings.Join(o.names(), ", "), suggest(chosen, o.names()))
		return workflow.Once
	}
	if operation == "request" {
		return byMethod(c.choice("method"))
	}
	if o.refine != nil {
		e = o.refine(c, operation, e)
	}
	return e
}

// externalKinds act on services. A configured field wins over the input, which fills what is left empty.
func externalKinds() []kind {
	return []kind{
		{subtype: "API_CALL", effectOf: apiCallEffect,
			config: `operation_id; method{GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS}; path, endpoint:tmpl; headers:obj; validate_response=false;
				path_params, query_params, header_params:obj; body:any; cred* service; need operation_id|path|endpoint`},
		{subtype: "WEBHOOK", effect: workflow.Idempotent,
			config: `url*:tmpl; event*; method{POST|PUT}=POST; headers:obj; payload:any; cred* webhook_secret`},
		{subtype: "NOTIFICATION", effectOf: notificationEffect,
			config: `channels*:list(type*{in_app|email|slack|webhook}; to:any; credential_id); title:tmpl; message*:tmpl;
				require{any|all|none}=any; link:tmpl; data:any`},
		{subtype: "SLACK",
			config: `action_type*=send_message; channel*; message_format{text|mrkdwn|blocks}=text; thread_ts; unfurl_links, unfurl_media=true; cred* slack_bot`,
			operations: &operations{raw: true,
				once: `send_message(message:tmpl, blocks, attachments, channel_override, user_mentions) post_message->send_message
					send_file(file, title, message:tmpl) create_channel(name, is_private)`,
				idempotent: `update_message(message_ts, message:tmpl) delete_message(message_ts) invite_users(users) set_channel_topic(topic)
					archive_channel() add_reaction(message_ts, emoji)`,
				read: `get_user_info(user, email) get_channel_info() get_channel_history(oldest, latest)`}},
		{subtype: "DISCORD_ACTION",
			config: `action_type*=send_message; server_id*; channel_id; message_content:tmpl; embed_config:obj; reaction_emoji="👍"; cred* discord_bot`,
			operations: &operations{raw: true,
				once: `send_message(message_content:tmpl, embed_config:obj) send_file(file) send_dm(target_user_id, message_content:tmpl)
					create_channel(name, type) create_thread(name, message_id)`,
				idempotent: `react_to_message(message_id) pin_message(message_id) manage_roles(target_user_id, role_id, action)
					kick_member(target_user_id, reason) ban_member(target_user_id, reason)`,
				read: `read_messages(before, after) list_members()`}},
		{subtype: "TELEGRAM_ACTION",
			config: `action_type*=send_message; chat_id*:str/int; message_text:tmpl; parse_mode{Markdown|HTML|MarkdownV2}=Markdown; keyboard_config:obj; cred* telegram_bot`,
			operations: &operations{raw: true,
				once: `send_message(message_text:tmpl) send_photo(file, caption) send_document(file, caption) send_video(file, caption)
					send_poll(question, options) forward_message(from_chat_id, message_id)`,
				idempotent: `edit_message(message_id, message_text:tmpl) delete_message(message_id) pin_message(message_id) ban_user(user_id)`}},
		{subtype: "EMAIL",
			config: `action_type*=send; from:tmpl; imap_credential_id; cred* smtp`,
			operations: &operations{
				once: `send(to, subject:tmpl, body_text:tmpl, body_html:tmpl, cc, bcc, reply_to, attachments)
					reply(email_id, body:tmpl, reply_all)`,
				idempotent: `mark(email_id, seen, flagged) move(email_id, mailbox) delete(email_id)`,
				read:       `search(mailbox, from, subject:tmpl, since, unseen) get(email_id)`}},
		{subtype: "GITHUB",
			config: `action_type*=create_issue; repository_config*:obj(owner; repo; full_name); cred* github_token`,
			operations: &operations{raw: true,
				once: `create_issue(title, body, labels, assignees) add_issue_comment(issue_number, comment)
					create_pull_request(title, head, base, body) add_pr_comment(pr_number, comment) create_release(tag_name, body)
					trigger_workflow(workflow_file, ref, inputs)`,
				idempotent: `update_issue(issue_number) close_issue(issue_number) add_issue_labels(issue_number, labels)
					merge_pull_request(pr_number) create_file(path, content, commit_message, branch)
					update_file(path, content, commit_message, branch)`,
				read: `list_issues(state, labels) list_pull_requests(state, base) get_file_content(path, ref)`}},
		{subtype: "GITLAB_ACTION",
			config: `action_type*=create_issue; project*:str/int; cred* gitlab_token`,
			operations: &operations{raw: true,
				once: `create_issue(title, description, labels) add_issue_comment(issue_iid, body)
					create_merge_request(source_branch, target_branch, title) add_merge_request_comment(mr_iid, body)
					trigger_pipeline(ref, variables)`,
				idempotent: `update_issue(issue_iid) close_issue(issue_iid) merge_merge_request(mr_iid)
					create_file(path, content, branch, commit_message) update_file(path, content, branch, commit_message)`,
				read: `list_issues(state) list_merge_requests(state) get_file(path, ref)`}},
		{subtype: "JIRA_ACTION",
			config: `action_type*=create_issue; project_key; api_version:str/int{2|3}=3; cred* jira`,
			operations: &operations{raw: true,
				once: `create_issue(summary, issue_type, description, fields) add_comment(issue_key, body)
					transition_issue(issue_key, transition) add_attachment(issue_key, file)`,
				idempotent: `update_issue(issue_key, fields) assign_issue(issue_key, account_id)`,
				read:       `get_issue(issue_key) search_issues(jql, jql_params, fields) list_transitions(issue_key)`}},
		{subtype: "GOOGLE_CALENDAR",
			config: `action_type*=create_event; calendar_id=primary; max_results=250[1..]; single_events=true; order_by{startTime|updated}=startTime;
				timezone; cred* google_oauth`,
			operations: &operations{raw: true, prefix: "google_calendar_",
				idempotent: `create_event(summary, start, start_datetime, date, end, description, location, attendees, recurrence)
					update_event(event_id) delete_event(event_id) add_attendees(event_id, attendees)`,
				once: `quick_add(text)`,
				read: `list_events(time_min, time_max, q) search_events(query:any) get_event(event_id) list_calendars()`}},
		{subtype: "TRELLO",
			config: `action_type*=create_card; board_id, list_id; cred* trello`,
			operations: &operations{raw: true,
				once: `create_card(list_id, name, desc, due, labels, members) add_comment(card_id, text)`,
				idempotent: `update_card(card_id) archive_card(card_id) delete_card(card_id) move_card(card_id, list_id)
					add_label(card_id, label_id)`,
				read: `list_boards() list_lists(board_id) list_cards(list_id, board_id) get_card(card_id)`}},
		{subtype: "NOTION",
			config: `action_type; operation_type{database|page|both}=database; database_id, page_id; llm_profile; profile_id -> llm_profile;
				instruction:tmpl; context:any; cred* notion`,
			operations: &operations{raw: true,
				once: `create_page(parent, properties, children) create_database_item(database_id, properties)
					create_database_entry->create_database_item append_blocks(page_id, children, markdown) add_comment(page_id, text)`,
				idempotent: `update_page(page_id, properties) update_database_item(page_id, properties) archive_page(page_id)`,
				read:       `search(query:any) get_page(page_id) get_blocks(page_id) query_database(database_id, filter, sorts)`}},
		{subtype: "AWS_ACTION",
			config: `action_type*; region; cred* aws_keys`,
			operations: &operations{refine: awsEffect,
				read: `s3_get_object(bucket, key) s3_list_objects(bucket, prefix) dynamodb_get_item(table, key)
					dynamodb_query(table, key_condition, values, index, filter)`,
				idempotent: `s3_put_object(bucket, key, file, content) dynamodb_put_item(table, item, condition)`,
				once: `sqs_send_message(queue_url, body, attributes) sns_publish(topic_arn, message, subject)
					lambda_invoke(function, payload)`}},
		{subtype: "GCP_ACTION",
			config: `action_type*; project_id; cred* gcp_service_account`,
			operations: &operations{refine: invokeEffect,
				read:       `gcs_get_object(bucket, object) gcs_list_objects(bucket, prefix) bigquery_query(query:sql, parameters, max_rows=1000)`,
				idempotent: `gcs_put_object(bucket, object, file, content, if_generation_match)`,
				once:       `pubsub_publish(topic, messages) cloud_run_invoke(url, method=POST, body) function_invoke(url, method=POST, body)`}},
		{subtype: "AZURE_ACTION",
			config: `action_type*; cred* azure`,
			operations: &operations{refine: invokeEffect,
				read:       `blob_get(container, name) blob_list(container, prefix)`,
				idempotent: `blob_put(container, name, file, content, if_match)`,
				once:       `servicebus_send(queue, topic, body, properties) function_invoke(url, method=POST, body)`}},
	}
}

// apiCallEffect reads the method; an operation of a service definition is only known where the definition is.
func apiCallEffect(c *config) workflow.Effect {
	if m := c.text("method"); m != "" {
		return byMethod(m)
	}
	if m, _, ok := strings.Cut(c.text("endpoint"), " "); ok {
		return byMethod(m)
	}
	return workflow.Once
}

// notificationEffect: only Tandem's own inbox recognises a repeated notice.
func notificationEffect(c *config) workflow.Effect {
	channels := c.items("channels")
	if len(channels) > 0 && !slices.ContainsFunc(channels, func(ch gjson.Result) bool { return !strings.EqualFold(ch.Get("type").Str, "in_app") }) {
		return workflow.Idempotent
	}
	return workflow.Once
}

// awsEffect: a FIFO queue or topic drops a message that comes twice.
func awsEffect(c *config, operation string, e workflow.Effect) workflow.Effect {
	target := map[string]string{"sqs_send_message": "queue_url", "sns_publish": "topic_arn"}[operation]
	if target != "" && strings.HasSuffix(c.text(target), ".fifo") {
		return workflow.Idempotent
	}
	return e
}

// invokeEffect: calling a function is as repeatable as its method.
func invokeEffect(c *config, operation string, e workflow.Effect) workflow.Effect {
	if strings.HasSuffix(operation, "_invoke") {
		return byMethod(c.choice("method"))
	}
	return e
}
