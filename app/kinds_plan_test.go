package app

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/node"
	"tandem/workflow"
)

// TestPlan_Problems feeds single configurations to kinds and compares every problem, so that a check that reports too
// much is found as well as one that reports too little.
func TestPlan_Problems(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, kind, config string
		want               []string
	}{
		{"MailFilters", "TRIGGER.EMAIL", `{"credential_id": "c", "filter_criteria": {"from": ["a", "b"], "subject": "x", "headers": {"List-Id": "news"}, "has_attachments": true}}`, nil},
		{"MailFilterWrong", "TRIGGER.EMAIL", `{"credential_id": "c", "filter_criteria": {"from": [""], "subject": [], "headers": {"List-Id": 7}}}`,
			[]string{"invalid_config configurations.filter_criteria.from", "invalid_config configurations.filter_criteria.subject", "invalid_config configurations.filter_criteria.headers.List-Id"}},
		{"MailFilterUnknown", "TRIGGER.EMAIL", `{"credential_id": "c", "filter_criteria": {"sender": "a"}}`, []string{"unknown_configuration configurations.filter_criteria.sender"}},
		{"MailFilterPlaceholder", "TRIGGER.EMAIL", `{"credential_id": "c", "filter_criteria": {"from": "{{a}}"}}`, []string{"invalid_config configurations.filter_criteria.from"}},
		{"MailNothing", "TRIGGER.EMAIL", `{"mailbox": "", "attachment_types": []}`, []string{"invalid_config configurations.mailbox", "warning credential_missing configurations.credential_id", "invalid_config configurations.attachment_types"}},
		{"GitHub", "TRIGGER.GITHUB", `{"credential_id": "c", "repository": "acme/shop.go", "branches": ["release/**"], "filter_conditions": {"pull_request.labels[0].name": ["a", "b"], "comment_contains": ["x"]}}`, nil},
		{"GitHubWrong", "TRIGGER.GITHUB", `{"credential_id": "c", "repository": "https://github.com/acme/shop", "events": [], "branches": [" "], "filter_conditions": {"a..b": 1, "c": {"d": 1}, "comment_contains": [7]}, "webhook_path": "/a b"}`,
			[]string{"invalid_config configurations.repository", "invalid_config configurations.events", "invalid_config configurations.webhook_path", "invalid_config configurations.branches", "invalid_config configurations.filter_conditions.a..b", "invalid_config configurations.filter_conditions.c", "invalid_config configurations.filter_conditions.comment_contains"}},
		{"GitHubMissing", "TRIGGER.GITHUB", `{"events": ["merge"]}`, []string{"invalid_config configurations.events[0]", "invalid_config configurations.repository", "warning credential_missing configurations.credential_id"}},

		// What all kinds have in common.
		{"Empty", "CALL.EMPTY", ``, nil},
		{"Null", "CALL.EMPTY", `null`, nil},
		{"DefaultUnused", "CALL.EMPTY", `{"default_output": {"a": 1}}`, []string{"warning invalid_config configurations.default_output"}},
		{"DefaultUnusedContinue", "CALL.EMPTY", `{"default_output": {"a": 1}, "on_error": "continue"}`, []string{"warning invalid_config configurations.default_output"}},
		{"DefaultUsed", "CALL.EMPTY", `{"default_output": {"a": 1}, "on_error": "default_output"}`, nil},
		{"NotAnObject", "CALL.EMPTY", `[]`, []string{"invalid_config configurations"}},
		{"UnknownName", "CALL.EMPTY", `{"pass_thru": true}`, []string{"unknown_configuration configurations.pass_thru"}},
		{"OddName", "CALL.EMPTY", `{"a b": true}`, []string{`unknown_configuration configurations["a b"]`}},
		{"NullIsAbsent", "FLOW.IF", `{"condition_expression": null}`, []string{"invalid_config configurations.condition_expression"}},
		{"WrongType", "CALL.EMPTY", `{"timeout": "soon"}`, []string{"invalid_config configurations.timeout"}},
		{"NotWhole", "CALL.EMPTY", `{"max_retries": 1.5}`, []string{"invalid_config configurations.max_retries"}},
		{"WholeAsFloat", "CALL.EMPTY", `{"max_retries": 2.0}`, nil},
		{"OutOfRange", "CALL.EMPTY", `{"timeout": 0, "max_retries": 11}`, []string{"invalid_config configurations.timeout", "invalid_config configurations.max_retries"}},
		{"NotInEnum", "CALL.EMPTY", `{"on_error": "ignore"}`, []string{"invalid_config configurations.on_error"}},
		{"EnumInAnyCase", "CALL.EMPTY", `{"on_error": "FAIL"}`, nil},
		{"DefaultOutputMissing", "CALL.EMPTY", `{"on_error": "default_output"}`, []string{"invalid_config configurations.default_output"}},
		{"OlderName", "CALL.EMPTY", `{"retry_attempts": 1}`, nil},
		{"BothSpellings", "CALL.EMPTY", `{"retry_attempts": 1, "max_retries": 1}`, []string{"invalid_config configurations.max_retries"}},
		{"CamelCase", "CALL.SLOT", `{"schema": {}, "profileId": "p", "overrideInput": {}}`, nil},
		{"DateOfLetters", "ACTION.DATA_FORMATTING", `{"format_type": "date", "options": {"date_format": "YYYY年MM月DD日"}}`, nil},
		{"DateFromData", "ACTION.DATA_FORMATTING", `{"format_type": "date", "options": {"date_format": "{{layout}}"}}`, nil},
		{"DateThatNeverChanges", "ACTION.DATA_FORMATTING", `{"format_type": "date", "options": {"date_format": "2006-01-02"}}`, []string{"invalid_config configurations.options.date_format"}},
		{"PlaceholderForAnything", "ACTION.HTTP_REQUEST", `{"url": "{{u}}", "method": "${m}", "max_redirects": "{{n}}", "headers": "{{h}}"}`, nil},
		{"PlaceholderWhereFixed", "CALL.EMPTY", `{"timeout": "{{t}}"}`, []string{"invalid_config configurations.timeout"}},
		{"TemplateBringsTheRest", "FLOW.IF", `{"template_id": "t"}`, nil},

		// Secrets and credentials.
		{"InlineKey", "AI_AGENT.LLM", `{"profile_id": "p", "prompt": "hi", "openai_api_key": "sk"}`, []string{"inline_secret configurations.openai_api_key"}},
		{"InlineConnection", "ACTION.DATABASE_QUERY", `{"query": "select 1", "connection_string": "postgres://u:p@h/d", "credential_id": "c"}`, []string{"inline_secret configurations.connection_string"}},
		{"CredentialOptional", "ACTION.HTTP_REQUEST", `{"url": "https://example.com"}`, nil},
		{"InlineToken", "ACTION.DATABASE_QUERY", `{"query": "select 1", "bot_token": "xoxb-1", "credential_id": "c"}`, []string{"inline_secret configurations.bot_token"}},
		{"SecretToBeChosen", "ACTION.DATABASE_QUERY", `{"query": "select 1", "bot_token": "{{$placeholder}}", "credential_id": "c"}`, []string{"warning credential_missing configurations.bot_token"}},
		{"CredentialToBeChosen", "ACTION.DATABASE_QUERY", `{"query": "select 1", "credential_id": "{{$placeholder}}"}`, []string{"warning credential_missing configurations.credential_id"}},
		{"CredentialMissing", "ACTION.DATABASE_QUERY", `{"query": "select 1"}`, []string{"warning credential_missing configurations.credential_id"}},
		{"DroppedInMemory", "MEMORY.VECTOR_DATABASE", `{"database_url": "x", "storage_backend": "y"}`, []string{"warning dropped_configuration configurations.database_url", "warning dropped_configuration configurations.storage_backend"}},

		// Triggers.

		// What would fail every run, or do nothing, is told when it is saved.
		{"RuleWithoutValue", "ACTION.DATA_VALIDATION", `{"rules": [{"field": "a", "rule": "min"}, {"field": "a", "rule": "enum", "value": 3}, {"field": "a", "rule": "max", "value": 3}, {"field": "a", "rule": "pattern", "value": "{{p}}"}]}`,
			[]string{"invalid_config configurations.rules[0].value", "invalid_config configurations.rules[1].value"}},
		{"SortedTwice", "FLOW.SORT", `{"sort_field": "a", "sort_fields": [{"field": "b"}]}`, []string{"invalid_config configurations.sort_fields"}},
		{"TwoTimes", "FLOW.WAIT", `{"wait_type": "timer", "for_seconds": 1, "until": "2030-01-01T00:00:00Z"}`, []string{"invalid_config configurations.until"}},
		{"FieldRuleTypo", "HUMAN_IN_THE_LOOP.FORM_SUBMISSION", `{"title": "t", "input_fields": [{"name": "a", "type": "number", "validation": {"minimun": 3}}]}`, []string{"invalid_config configurations.input_fields[0].validation"}},
		{"FieldRuleOfNumbers", "HUMAN_IN_THE_LOOP.FORM_SUBMISSION", `{"title": "t", "input_fields": [{"name": "a", "validation": {"min": 3}}]}`, []string{"invalid_config configurations.input_fields[0].validation"}},
		{"FieldOptionsOfText", "HUMAN_IN_THE_LOOP.FORM_SUBMISSION", `{"title": "t", "input_fields": [{"name": "a", "options": ["x"]}]}`, []string{"invalid_config configurations.input_fields[0].options"}},
		{"TooFewApprovers", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "t", "approvers": ["ann"], "min_approvals": 2}`, []string{"invalid_config configurations.min_approvals"}},
		{"EnoughApprovers", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "t", "approvers": ["role:approver"], "min_approvals": 2}`, nil},
		{"LateReminder", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "t", "timeout_seconds": 60, "reminder_seconds": 60}`, []string{"warning invalid_config configurations.reminder_seconds"}},
		{"PatternOfRead", "ACTION.FILE_OPERATION", `{"operation": "read", "path": "a", "pattern": "*.csv"}`, []string{"warning invalid_config configurations.pattern"}},
		{"DelimiterOfJSON", "ACTION.DATA_FORMATTING", `{"format_type": "json", "options": {"delimiter": ";"}}`, []string{"warning invalid_config configurations.options.delimiter"}},

		// Agents.
		{"AgentWithoutModel", "AI_AGENT.OPENAI_CHATGPT", `{"prompt": "hi"}`, []string{"invalid_config configurations"}},
		{"AgentWithProfile", "AI_AGENT.ANTHROPIC_CLAUDE", `{"llm_profile": "p", "tool_approval": ["server/tool"]}`, nil},
		{"AgentApproval", "AI_AGENT.ANTHROPIC_CLAUDE", `{"model": "m", "tool_approval": "sometimes"}`, []string{"invalid_config configurations.tool_approval"}},
		{"AgentSchemaMissing", "AI_AGENT.GOOGLE_GEMINI", `{"model": "m", "response_format": "schema"}`, []string{"invalid_config configurations.output_schema"}},
		{"AgentTemperature", "AI_AGENT.ANTHROPIC_CLAUDE", `{"model": "m", "temperature": 1.5}`, []string{"invalid_config configurations.temperature"}},
		{"AgentInner", "AI_AGENT.LLM", `{"profile_id": "p", "prompt": "hi", "parameters": {"maxTokens": "many", "seed": 1, "stop": ["END"], "maxOutputTokens": 7}}`, []string{"invalid_config configurations.parameters.maxTokens", "unknown_configuration configurations.parameters.seed", "invalid_config configurations.parameters.maxOutputTokens"}},
		{"AgentOlderBlocks", "AI_AGENT.GOOGLE_GEMINI", `{"model": "m", "temperature": 1, "generation_config": {"temperature": 0, "maxOutputTokens": 7, "candidateCount": 2}, "output_processing": {"parse_json": true, "retries": 2}}`,
			[]string{"warning dropped_configuration configurations.generation_config.candidateCount", "warning dropped_configuration configurations.output_processing.retries", "warning invalid_config configurations.generation_config.temperature"}},
		{"AgentSchemaOfText", "AI_AGENT.LLM", `{"profile_id": "p", "prompt": "hi", "response_format": "text", "output_schema": {}}`, []string{"warning invalid_config configurations.output_schema"}},
		{"AgentCredentialBesideProfile", "AI_AGENT.OPENAI_CHATGPT", `{"profile_id": "p", "credential_id": "c"}`, []string{"warning invalid_config configurations.credential_id"}},
		{"AgentTools", "AI_AGENT.LLM", `{"profile_id": "p", "prompt": "hi", "tools": ["box/put", {"type": "function", "function": {"name": "box/get"}}, "put", {"description": "d"}, {"type": "web_search", "name": "x"}, 7, {"name": "own"}]}`,
			[]string{"invalid_config configurations.tools[2]", "invalid_config configurations.tools[3].name", "invalid_config configurations.tools[4].type", "invalid_config configurations.tools[5]", "warning tool_ends_turn configurations.tools[6]"}},
		{"StoredAgentIsDescribedToo", "AI_AGENT.MCP_AGENT", `{"agent_id": "a", "llm_profile": "p", "limits": {}, "language": "zh"}`, []string{"warning invalid_config configurations.llm_profile", "warning invalid_config configurations.limits"}},
		{"DocumentSearchFields", "MEMORY.DOCUMENT_STORE", `{"search_fields": ["title", "summary"]}`, []string{"invalid_config configurations.search_fields[1]"}},
		{"VectorThresholdOfAModel", "MEMORY.VECTOR_DATABASE", `{"similarity_threshold": 0.75, "llm_profile": "p"}`, []string{"warning invalid_config configurations.llm_profile", "warning needs_model configurations.similarity_threshold"}},
		{"VectorThresholdWithAModel", "MEMORY.VECTOR_DATABASE", `{"similarity_threshold": 0.75, "embedding_profile": "p"}`, nil},
		{"EntitiesOfRules", "MEMORY.ENTITY_MEMORY", `{"entity_types": ["person", "company", "issue"], "confidence_threshold": 0.95}`, []string{"warning needs_model configurations.confidence_threshold", "warning needs_model configurations.entity_types[2]"}},
		{"EntitiesOfAModel", "MEMORY.ENTITY_MEMORY", `{"entity_types": ["issue"], "confidence_threshold": 0.95, "llm_profile": "p"}`, nil},
		{"FactsOfRules", "MEMORY.KNOWLEDGE_BASE", `{"confidence_threshold": 0.95}`, []string{"warning needs_model configurations.confidence_threshold"}},
		{"EpisodePeriods", "MEMORY.EPISODIC_MEMORY", `{"retention_period": "for ever", "temporal_context_window": "2 weeks"}`, []string{"invalid_config configurations.retention_period"}},
		{"CredentialOfNobody", "MEMORY.KEY_VALUE_STORE", `{"credential_id": "c", "on_unknown": "ask"}`, []string{"warning invalid_config configurations.on_unknown", "warning invalid_config configurations.credential_id"}},

		// Operations.

		// Actions.
		{"TransformSort", "ACTION.DATA_TRANSFORMATION", `{"operation": "sort"}`, []string{"invalid_config configurations.sort_config"}},
		{"TransformOlder", "ACTION.DATA_TRANSFORMATION", `{"operation": "extract_fields", "field_mapping": {"a": "b"}}`, nil},
		{"ValidationEmpty", "ACTION.DATA_VALIDATION", `{}`, []string{"invalid_config configurations"}},
		{"QueryAndQuestion", "ACTION.DATABASE_QUERY", `{"query": "select 1", "question": "?", "credential_id": "c"}`, []string{"invalid_config configurations.question"}},
		{"DeleteEverything", "ACTION.DATABASE_OPERATION", `{"operation": "delete", "table": "t", "where": {}, "credential_id": "c"}`, []string{"invalid_config configurations.where"}},
		{"DeleteEverythingMeant", "ACTION.DATABASE_OPERATION", `{"operation": "delete", "table": "t", "allow_all_rows": true, "credential_id": "c"}`, nil},
		{"FileCopy", "ACTION.FILE_OPERATION", `{"operation": "copy", "path": "a"}`, []string{"invalid_config configurations.destination"}},

		// Flow.
		{"IfOlderName", "FLOW.IF", `{"condition": "data.x > 3"}`, nil},
		{"LoopStepZero", "FLOW.LOOP", `{"step": 0}`, []string{"invalid_config configurations.step"}},
		{"LoopStepNotWhole", "FLOW.LOOP", `{"start_value": 0.5, "end_value": 2.0, "step": 0.5}`, []string{"invalid_config configurations.start_value", "invalid_config configurations.step"}},
		{"LoopWhile", "FLOW.LOOP", `{"loop_type": "while"}`, []string{"invalid_config configurations.loop_condition"}},
		{"LoopTooMany", "FLOW.LOOP", `{"max_iterations": 10000001}`, []string{"invalid_config configurations.max_iterations"}},
		{"MergeByKey", "FLOW.MERGE", `{"merge_strategy": "by_key"}`, []string{"invalid_config configurations.merge_key"}},
		{"MergeDynamic", "FLOW.MERGE", `{"merge_strategy": "{{s}}"}`, []string{"invalid_config configurations.merge_strategy"}},
		{"SwitchEmpty", "FLOW.SWITCH", `{}`, []string{"invalid_config configurations"}},
		{"SwitchTwoForms", "FLOW.SWITCH", `{"switch_value": "data.x", "cases": [{"case": 1, "output_key": "a"}], "branches": [{"branch_id": "b", "condition": "true"}]}`, []string{"invalid_config configurations.branches"}},
		{"SwitchEqualIDs", "FLOW.SWITCH", `{"branches": [{"branch_id": "b", "condition": "true"}, {"branch_id": "b", "condition": "false"}]}`, []string{"invalid_config configurations.branches[1].branch_id"}},
		{"SwitchTwoDefaults", "FLOW.SWITCH", `{"branches": [{"branch_id": "b", "is_default": true}, {"branch_id": "c", "is_default": true}]}`, []string{"invalid_config configurations.branches[1].is_default"}},
		{"SwitchReserved", "FLOW.SWITCH", `{"switch_value": "data.x", "cases": [{"case": 1, "output_key": "error"}, {"case": 2, "output_key": "b"}]}`, []string{"invalid_config configurations.cases[0]"}},
		{"SwitchReservedDefault", "FLOW.SWITCH", `{"switch_value": "data.x", "cases": [{"case": 2, "output_key": "b"}], "default_output_key": "error"}`, []string{"invalid_config configurations.default_output_key"}},
		{"SwitchOperator", "FLOW.SWITCH", `{"branches": [{"branch_id": "b", "conditions": [{"left": "{{x}}", "operate": "string_equals", "right": "y"}]}]}`, []string{"invalid_config configurations.branches[0].conditions[0].operate"}},
		{"SwitchOperatorPrefix", "FLOW.SWITCH", `{"branches": [{"branch_id": "b", "conditions": [{"left": "{{x}}", "operate": "number_greater", "right": 1}]}]}`, nil},
		{"SwitchDuplicateCase", "FLOW.SWITCH", `{"switch_value": "data.x", "cases": [{"case": 1, "output_key": "a"}, {"case": 1, "output_key": "b"}]}`, []string{"warning duplicate_case configurations.cases[1].case"}},
		{"SwitchModel", "FLOW.SWITCH", `{"choices": [{"branch": "a", "description": "x"}]}`, []string{"invalid_config configurations.propose", "invalid_config configurations.llm_profile"}},
		{"SplitPredicateEmpty", "FLOW.SPLIT", `{"split_mode": "predicate"}`, []string{"invalid_config configurations.predicate_paths"}},
		{"SplitReserved", "FLOW.SPLIT", `{"split_mode": "predicate", "predicate_paths": {"unmatched": "item.a", "ok": "item.b > 1"}}`, []string{"invalid_config configurations.predicate_paths.unmatched"}},
		{"SplitByKeyReserved", "FLOW.SPLIT", `{"split_mode": "by_key", "by_key": ["result", "b", "b"]}`, []string{"invalid_config configurations.by_key[0]", "invalid_config configurations.by_key[2]"}},
		{"FilterWithoutConditions", "FLOW.FILTER", `{}`, []string{"invalid_config configurations.conditions"}},
		{"FilterEmptyConditions", "FLOW.FILTER", `{"conditions": []}`, []string{"invalid_config configurations.conditions"}},
		{"FilterOperator", "FLOW.FILTER", `{"conditions": [{"field": "a", "operator": "equal", "value": 1}]}`, []string{"invalid_config configurations.conditions[0].operator"}},
		{"FilterPatternTooLarge", "FLOW.FILTER", `{"filter_type": "regex_pattern", "conditions": [{"field": "a", "pattern": "\\pL{1000}"}, {"field": "a", "pattern": 5}]}`,
			[]string{"invalid_config configurations.conditions[1].pattern", "invalid_config configurations.conditions[0].pattern"}},
		{"FilterPattern", "FLOW.FILTER", `{"filter_type": "regex_pattern", "conditions": [{"field": "a", "pattern": "("}]}`, []string{"invalid_config configurations.conditions[0].pattern"}},
		{"FilterFunction", "FLOW.FILTER", `{"filter_type": "custom_function"}`, []string{"invalid_config configurations.custom_filter_function"}},
		{"SortNothing", "FLOW.SORT", `{}`, []string{"invalid_config configurations"}},
		{"WaitCondition", "FLOW.WAIT", `{}`, []string{"invalid_config configurations.wait_condition"}},
		{"WaitOnData", "FLOW.WAIT", `{"wait_condition": "data.ready"}`, []string{"warning condition_never_changes configurations.wait_condition"}},
		{"WaitOnSteps", "FLOW.WAIT", `{"wait_condition": "steps.build.ready"}`, nil},
		{"WaitTimer", "FLOW.WAIT", `{"wait_type": "timer", "until": "2030-01-01T00:00:00Z"}`, nil},
		{"WaitTimerEmpty", "FLOW.WAIT", `{"wait_type": "timer"}`, []string{"invalid_config configurations.for_seconds"}},
		{"WaitOlder", "FLOW.WAIT", `{"wait_type": "approval"}`, []string{"unsupported configurations.wait_type"}},
		{"WaitAPI", "FLOW.WAIT", `{"wait_type": "api_response", "api_config": {"url": "https://example.com/{{x}}"}, "credential_id": "c"}`, nil},
		{"WaitAPINothing", "FLOW.WAIT", `{"wait_type": "api_response"}`, []string{"invalid_config configurations.api_config"}},
		{"WaitAPINoURL", "FLOW.WAIT", `{"wait_type": "api_response", "api_config": {}}`, []string{"invalid_config configurations.api_config.url"}},
		{"WaitAPIEmptyURL", "FLOW.WAIT", `{"wait_type": "api_response", "api_config": {"url": " "}}`, []string{"invalid_config configurations.api_config.url"}},
		{"WaitAPIScheme", "FLOW.WAIT", `{"wait_type": "api_response", "api_config": {"url": "ftp://example.com/x"}}`, []string{"invalid_config configurations.api_config.url"}},
		{"WaitAPIPath", "FLOW.WAIT", `{"wait_type": "api_response", "api_config": {"url": "/jobs/7"}}`, []string{"invalid_config configurations.api_config.url"}},
		{"WaitAPIPathOfCredential", "FLOW.WAIT", `{"wait_type": "api_response", "credential_id": "c", "api_config": {"url": "/jobs/7"}}`, nil},
		{"WaitAPIMethod", "FLOW.WAIT", `{"wait_type": "api_response", "api_config": {"url": "https://example.com", "method": "DELETE"}}`, []string{"invalid_config configurations.api_config.method"}},
		{"WaitFile", "FLOW.WAIT", `{"wait_type": "file", "file_config": {"file_path": "in/a.csv"}, "wait_condition": "poll.size > 5"}`, nil},
		{"WaitFileNothing", "FLOW.WAIT", `{"wait_type": "file"}`, []string{"invalid_config configurations.file_config"}},
		{"WaitFileNoPath", "FLOW.WAIT", `{"wait_type": "file", "file_config": {"expected_content": "x"}}`, []string{"invalid_config configurations.file_config.file_path"}},
		{"WaitFileOutside", "FLOW.WAIT", `{"wait_type": "file", "file_config": {"file_path": "../secret"}}`, []string{"invalid_config configurations.file_config.file_path"}},
		{"WaitFileCredential", "FLOW.WAIT", `{"wait_type": "file", "credential_id": "c", "file_config": {"file_path": "a"}}`, []string{"warning invalid_config configurations.credential_id"}},
		{"WaitDatabase", "FLOW.WAIT", `{"wait_type": "database_change", "credential_id": "c", "database_config": {"query": "select 1"}}`, nil},
		{"WaitDatabaseNothing", "FLOW.WAIT", `{"wait_type": "database_change", "credential_id": "c"}`, []string{"invalid_config configurations.database_config"}},
		{"WaitDatabaseEmpty", "FLOW.WAIT", `{"wait_type": "database_change", "credential_id": "c", "database_config": {"query": ""}}`, []string{"invalid_config configurations.database_config.query"}},
		{"WaitDatabaseWrites", "FLOW.WAIT", `{"wait_type": "database_change", "credential_id": "c", "database_config": {"query": "delete from t where id = {{id}}"}}`, []string{"invalid_config configurations.database_config.query"}},
		{"WaitDatabaseUnknown", "FLOW.WAIT", `{"wait_type": "database_change", "credential_id": "c", "database_config": {"query": "{{query}}"}}`, nil},
		{"WaitDatabaseReads", "FLOW.WAIT", `{"wait_type": "database_change", "credential_id": "c", "database_config": {"query": "with x as (select '{{name}}' as n) select n from x where n <> 'delete'"}}`, nil},
		{"WaitDatabaseNoCredential", "FLOW.WAIT", `{"wait_type": "database_change", "database_config": {"query": "select 1"}}`, []string{"warning credential_missing configurations.credential_id"}},
		{"WaitWebhook", "FLOW.WAIT", `{"wait_type": "webhook"}`, nil},
		{"WaitWebhookMethod", "FLOW.WAIT", `{"wait_type": "webhook", "webhook_config": {"method": "TRACE"}}`, []string{"invalid_config configurations.webhook_config.method"}},
		{"WaitWebhookIdleCredential", "FLOW.WAIT", `{"wait_type": "webhook", "credential_id": "c", "webhook_config": {"authentication_required": false}}`, []string{"warning invalid_config configurations.credential_id"}},
		{"WaitWebhookChecks", "FLOW.WAIT", `{"wait_type": "webhook", "check_interval_seconds": 5}`, []string{"warning invalid_config configurations.check_interval_seconds"}},
		{"WaitIntervalTooLong", "FLOW.WAIT", `{"wait_condition": "now() > 1", "check_interval_seconds": 60, "timeout_seconds": 30}`, []string{"warning invalid_config configurations.check_interval_seconds"}},
		{"WaitIntervalForEver", "FLOW.WAIT", `{"wait_condition": "now() > 1", "check_interval_seconds": 60, "timeout_seconds": 0}`, nil},
		{"WaitOtherSource", "FLOW.WAIT", `{"wait_type": "timer", "for_seconds": 1, "api_config": {"url": "https://example.com"}}`, []string{"warning invalid_config configurations.api_config"}},
		{"WaitUnknown", "FLOW.WAIT", `{"wait_type": "sunrise"}`, []string{"invalid_config configurations.wait_type"}},
		{"TimeoutTooShort", "FLOW.TIMEOUT", `{"timeout_seconds": 0.01}`, []string{"invalid_config configurations.timeout_seconds"}},
		{"SubWorkflowRevision", "FLOW.SUB_WORKFLOW", `{"workflow_id": "w", "revision": "newest"}`, []string{"invalid_config configurations.revision"}},
		{"SubWorkflowNumber", "FLOW.SUB_WORKFLOW", `{"workflow_id": "w", "revision": 3}`, nil},

		// People.
		{"HumanUntitled", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{}`, []string{"invalid_config configurations"}},
		{"HumanOlderTitle", "HUMAN_IN_THE_LOOP.MANUAL_REVIEW", `{"review_title": "Check", "reviewers": ["a"], "review_criteria": ["b"], "review_deadline": 3600}`, nil},
		{"HumanOtherChannel", "HUMAN_IN_THE_LOOP.SLACK_INTERACTION", `{"title": "?", "channel": "#a", "channel_type": "email", "credential_id": "c"}`, []string{"invalid_config configurations.channel_type"}},
		{"HumanAnyChannel", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "?", "channel_type": "email"}`, []string{"warning credential_missing configurations.credential_id"}},
		{"HumanReservedOption", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "?", "approval_options": ["later", "timeout", {"value": "approved"}]}`, []string{"invalid_config configurations.approval_options[1]", "invalid_config configurations.approval_options[2].value"}},
		{"HumanTimeoutTooShort", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "?", "timeout_seconds": 5}`, []string{"invalid_config configurations.timeout_seconds"}},
		{"HumanSelection", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "?", "interaction_type": "selection"}`, []string{"invalid_config configurations.selection_options"}},
		{"HumanDefaultResponse", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "?", "timeout_action": "default_response"}`, []string{"invalid_config configurations.timeout_default_response"}},

		// Tools.
		{"ToolUnknown", "TOOL.FILE_PROCESSOR", `{"available_tools": ["file_reed"]}`, []string{"invalid_config configurations.available_tools[0]"}},
		{"ToolServerURL", "TOOL.MCP_TOOL", `{"server_id": "s", "mcp_server_url": "http://x"}`, []string{"warning dropped_configuration configurations.mcp_server_url"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, problems := planOf(t, c.kind, c.config)
			if diff := cmp.Diff(c.want, told(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s%v", diff, problems)
			}
			for _, p := range problems {
				if p.Message == "" || strings.Contains(p.Message, "%!") {
					t.Errorf("message %q", p.Message)
				}
			}
		})
	}
}

func TestPlan_MessagesNameTheRemedy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, config, want string }{
		{"FLOW.FOR_EACH", `{"batch_sise": 2}`, `did you mean "batch_size"?`},
		{"CALL.EMPTY", `{"timeout": 0}`, `"timeout" must be a whole number from 1 to 86400, not 0`},
		{"FLOW.MERGE", `{"merge_strategy": "concat"}`, `must be one of "concatenate", "union", "by_key", "first", "zip", not "concat"`},
		{"FLOW.IF", `{}`, `"condition_expression" is required; set it to an expression`},
	} {
		_, problems := planOf(t, c.kind, c.config)
		if len(problems) != 1 || !strings.Contains(problems[0].Message, c.want) {
			t.Errorf("%s %s: problems %v, want one with %q", c.kind, c.config, problems, c.want)
		}
	}
}

func TestPlan_Secrets(t *testing.T) {
	t.Parallel()
	_, problems := planOf(t, "ACTION.DATABASE_QUERY", `{"query": "select 1", "credential_id": "c", "bot_token": "canary-4711"}`)
	for _, p := range problems {
		if strings.Contains(p.Message, "canary") || strings.Contains(p.Path, "canary") {
			t.Errorf("problem %v shows the secret", p)
		}
	}
	if len(problems) != 1 {
		t.Errorf("%d problems, want 1", len(problems))
	}
}

func TestPlan_Keys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kind, config string
		want               []string
		unscoped           bool
	}{
		{"If", "FLOW.IF", `{"condition": "true"}`, []string{"true", "false"}, false},
		{"Cases", "FLOW.SWITCH", `{"switch_value": "data.x", "cases": [{"case": "a", "output_port": "k"}, {"case": 2, "output_key": "k"}, {"case": "z"}], "default_output_port": "rest"}`, []string{"k", "z", "rest"}, false},
		{"Branches", "FLOW.SWITCH", `{"branches": [{"branch_id": "other", "is_default": true}, {"branch_id": "big", "condition": "data.x > 1"}]}`, []string{"other", "big"}, false},
		{"Choices", "FLOW.SWITCH", `{"propose": "?", "llm_profile": "p", "choices": [{"branch": "b"}, {"branch": "a"}]}`, []string{"b", "a", "default"}, false},
		{"SplitItems", "FLOW.SPLIT", `{}`, []string{"branch", "result"}, false},
		{"SplitPredicate", "FLOW.SPLIT", `{"split_mode": "predicate", "predicate_paths": {"z": "a", "a": "b"}}`, []string{"z", "a", "unmatched", "result"}, true},
		{"SplitByKey", "FLOW.SPLIT", `{"split_mode": "by_key", "by_key": ["n", "m"]}`, []string{"n", "m", "result"}, true},
		{"Approval", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "?"}`, []string{"result", "confirmed", "rejected", "unrelated", "timeout", "approve", "reject"}, false},
		{"Options", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "?", "approval_options": ["now", {"value": "later"}]}`, []string{"result", "confirmed", "rejected", "unrelated", "timeout", "now", "later"}, false},
		{"OptionsOfTemplate", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"template_id": "t"}`, nil, false},
		{"OptionsAtRunTime", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "?", "interaction_type": "selection", "selection_options": "{{list}}"}`, nil, false},
		{"Input", "HUMAN_IN_THE_LOOP.FORM_SUBMISSION", `{"title": "?", "form_schema": {}}`, []string{"result", "confirmed", "rejected", "unrelated", "timeout"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, problems := planOf(t, c.kind, c.config)
			if len(problems) > 0 {
				t.Errorf("problems %v", problems)
			}
			if diff := cmp.Diff(c.want, p.Keys); diff != "" || p.Unscoped != c.unscoped {
				t.Errorf("unscoped %v, keys (-want +got):\n%s", p.Unscoped, diff)
			}
		})
	}
}

func TestPlan_KeyAliases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, alias, want string }{
		{"CALL.EMPTY", "main", "result"},
		{"ACTION.HTTP_REQUEST", "success", "result"},
		{"TOOL.CODE_TOOL", "response", "result"},
		{"CALL.EMPTY", "success", ""},
		{"FLOW.LOOP", "result", "completed"},
		{"FLOW.LOOP", "main", "completed"},
		{"FLOW.WAIT", "result", "completed"},
		{"FLOW.DELAY", "delayed", "result"},
		{"HUMAN_IN_THE_LOOP.SLACK_INTERACTION", "approved", "confirmed"},
		{"HUMAN_IN_THE_LOOP.SLACK_INTERACTION", "completed", "result"},
		{"HUMAN_IN_THE_LOOP.SLACK_INTERACTION", "filtered", "unrelated"},
	} {
		p, _ := planOf(t, c.kind, `{}`)
		if got := p.KeyAliases[c.alias]; got != c.want {
			t.Errorf("%s: %q means %q, want %q", c.kind, c.alias, got, c.want)
		}
	}
}

func TestPlan_Effects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, config string
		want         workflow.Effect
	}{
		{"ACTION.HTTP_REQUEST", `{}`, workflow.Idempotent},
		{"ACTION.HTTP_REQUEST", `{"method": "post"}`, workflow.Once},
		{"ACTION.HTTP_REQUEST", `{"method": "{{m}}"}`, workflow.Once},
		{"ACTION.HTTP_REQUEST", `{"method": "POST", "idempotency_header": "Idempotency-Key"}`, workflow.Idempotent},
		{"ACTION.FILE_OPERATION", `{"operation": "write"}`, workflow.Idempotent},
		{"ACTION.FILE_OPERATION", `{"operation": "append"}`, workflow.Once},
		{"ACTION.FILE_UPLOAD", `{}`, workflow.Once},
		{"ACTION.FILE_UPLOAD", `{"target": "s3"}`, workflow.Idempotent},
		{"ACTION.DATABASE_OPERATION", `{"operation": "insert"}`, workflow.Once},
		{"ACTION.DATABASE_OPERATION", `{"operation": "upsert"}`, workflow.Idempotent},
		{"FLOW.SWITCH", `{"choices": []}`, workflow.Idempotent},
		{"FLOW.SWITCH", `{"cases": []}`, workflow.Pure},
		{"FLOW.WAIT", `{"wait_type": "api_response"}`, workflow.Idempotent},
		{"FLOW.WAIT", `{"wait_type": "{{t}}"}`, workflow.Idempotent},
		{"FLOW.WAIT", `{"template_id": "t"}`, workflow.Idempotent},
		{"FLOW.WAIT", `{"wait_type": "webhook"}`, workflow.Pure},
		{"FLOW.WAIT", `{"wait_type": "webhook", "credential_id": "c"}`, workflow.Idempotent},
		{"TOOL.FILE_PROCESSOR", `{}`, workflow.Idempotent},
		{"TOOL.HTTP_CLIENT", `{"allowed_methods": ["GET", "POST"]}`, workflow.Once},
		{"TOOL.HTTP_CLIENT", `{}`, workflow.Idempotent},
		{"HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{}`, workflow.Once},

		// What is only known when it runs is never taken for the harmless default.
		{"TOOL.FILE_PROCESSOR", `{"available_tools": "{{t}}"}`, workflow.Idempotent},
		{"TOOL.HTTP_CLIENT", `{"allowed_methods": "{{m}}"}`, workflow.Once},
		{"TOOL.HTTP_CLIENT", `{"allowed_methods": ["{{m}}"]}`, workflow.Once},
		{"TOOL.HTTP_CLIENT", `{"template_id": "t"}`, workflow.Once},
		{"ACTION.HTTP_REQUEST", `{"template_id": "t"}`, workflow.Once},
		{"ACTION.HTTP_REQUEST", `{"template_id": "t", "method": "GET"}`, workflow.Idempotent},
		{"ACTION.FILE_UPLOAD", `{"template_id": "t", "target": "http"}`, workflow.Once},
	} {
		if p, _ := planOf(t, c.kind, c.config); p.Effect != c.want {
			t.Errorf("%s %s: effect %q, want %q", c.kind, c.config, p.Effect, c.want)
		}
	}
}

func TestPlan_Common(t *testing.T) {
	t.Parallel()
	p, problems := planOf(t, "ACTION.WEBHOOK_CALL", `{"url": "https://example.com", "timeout": 30, "retry_attempts": 5, "on_error": "Continue", "on_unknown": "fail", "enabled": false}`)
	if len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
	if p.TimeoutMS != 30_000 || p.MaxRetries != 5 || p.OnError != workflow.OnErrorContinue || p.OnUnknown != workflow.OnUnknownFail || !p.Disabled || p.SkipDisabled {
		t.Errorf("plan %+v", p)
	}
	if p, _ := planOf(t, "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "?", "enabled": false}`); !p.Disabled || !p.SkipDisabled {
		t.Errorf("a question that is switched off: disabled %v, skipped %v; want both", p.Disabled, p.SkipDisabled)
	}
	if p, _ := planOf(t, "TRIGGER.MANUAL", `{"max_retries": 5}`); p.MaxRetries != 0 {
		t.Errorf("a trigger has %d retries, want 0", p.MaxRetries)
	}
	// What is wrong is reported; the plan stays usable all the same.
	if p, _ := planOf(t, "CALL.EMPTY", `{"timeout": -1, "max_retries": 99, "enabled": "no", "on_error": "ignore", "on_unknown": "{{x}}"}`); p.TimeoutMS != 420_000 || p.MaxRetries != 10 ||
		p.Disabled || p.OnError != workflow.OnErrorFail || p.OnUnknown != workflow.OnUnknownAsk {
		t.Errorf("plan of a wrong configuration: %+v", p)
	}
}

func TestPlan_Join(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]workflow.Join{
		`{}`:                                   {},
		`{"timeout_seconds": 1.5}`:             {TimeoutMS: 1500},
		`{"merge_strategy": "first"}`:          {First: true},
		`{"merge_strategy": "FIRST_COMPLETE"}`: {First: true},
		`{"merge_strategy": "first", "cancel_losers": true}`: {First: true, CancelLosers: true},
	} {
		if p, problems := planOf(t, "FLOW.MERGE", config); p.Join != want || len(problems) > 0 {
			t.Errorf("%s: join %+v, want %+v; problems %v", config, p.Join, want, problems)
		}
	}
	// Who takes the first has nobody to wait for, and is told so.
	p, problems := planOf(t, "FLOW.MERGE", `{"merge_strategy": "first", "timeout_seconds": 9}`)
	if want := (workflow.Join{First: true}); p.Join != want || len(problems) != 1 || problems[0].Path != "configurations.timeout_seconds" {
		t.Errorf("join %+v, want %+v; problems %v", p.Join, want, problems)
	}
}

func TestPlan_ExpressionsAndCode(t *testing.T) {
	t.Parallel()
	expressions := func(kind, config string) []string {
		p, _ := planOf(t, kind, config)
		var found []string
		for _, e := range p.Expressions {
			found = append(found, e.Path+" = "+e.Source)
		}
		slices.Sort(found)
		return found
	}
	for _, c := range []struct {
		kind, config string
		want         []string
	}{
		{"FLOW.IF", `{"condition": "data.x > {{limit}}"}`, []string{"configurations.condition = data.x > {{limit}}"}},
		{"FLOW.IF", `{"condition": true}`, nil},
		{"FLOW.SWITCH", `{"branches": [{"branch_id": "b", "condition": "data.x"}]}`, []string{"configurations.branches[0].condition = data.x"}},
		{"FLOW.FOR_EACH", `{"break_condition": "index > 3"}`, []string{"configurations.break_condition = index > 3"}},
		{"FLOW.FILTER", `{"filter_type": "complex_expression", "conditions": [{"expression": "item.a > 1"}]}`, []string{"configurations.conditions[0].expression = item.a > 1"}},
		{"ACTION.DATA_VALIDATION", `{"rules": [{"field": "a", "rule": "expression", "value": "value > 1"}, {"field": "a", "rule": "min", "value": 1}]}`, []string{"configurations.rules[0].value = value > 1"}},
		{"FLOW.SPLIT", `{"split_mode": "predicate", "predicate_paths": {"a": "item.x", "b": "item.x > 1"}}`, []string{"configurations.predicate_paths.b = item.x > 1"}},
	} {
		if diff := cmp.Diff(c.want, expressions(c.kind, c.config)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.kind, c.config, diff)
		}
	}
	p, problems := planOf(t, "ACTION.RUN_CODE", `{"code": "def main(x): return f'{{x}}'"}`)
	if diff := cmp.Diff([]string{"configurations.code"}, p.Shielded); diff != "" || len(problems) > 0 {
		t.Errorf("problems %v, shielded (-want +got):\n%s", problems, diff)
	}
}

// A hostile file may have as many entries as fit into it, so nothing here may cost more than linear time; with this many
// entries a quadratic check is plainly felt.
func TestPlan_ManyEntries(t *testing.T) {
	t.Parallel()
	const n = 30_000
	list := func(format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = strings.ReplaceAll(format, "#", strconv.Itoa(i))
		}
		return strings.Join(parts, ",")
	}
	for _, c := range []struct {
		name, kind, config string
		keys, problems     int
	}{
		{"Cases", "FLOW.SWITCH", `{"switch_value": "1", "cases": [` + list(`{"case": #, "output_key": "k#"}`) + `]}`, n + 1, 0},
		{"Branches", "FLOW.SWITCH", `{"branches": [` + list(`{"branch_id": "k#", "condition": "true"}`) + `]}`, n + 1, 0},
		{"Predicates", "FLOW.SPLIT", `{"split_mode": "predicate", "predicate_paths": {` + list(`"k#": "item.a > #"`) + `}}`, n + 2, 0},
		{"Options", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", `{"title": "?", "approval_options": [` + list(`"k#"`) + `]}`, n + 5, 0},
		{"UnknownNames", "CALL.EMPTY", `{` + list(`"timeou#": 1`) + `}`, 1, node.MaxProblems},
		{"WrongValues", "TOOL.HTTP_CLIENT", `{"allowed_domains": ["a"], "allowed_methods": [` + list(`"POS#"`) + `]}`, 1, node.MaxProblems},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, problems := planOf(t, c.kind, c.config)
			if len(p.Keys) != c.keys || len(problems) != c.problems {
				t.Errorf("%d keys, %d problems; want %d, %d", len(p.Keys), len(problems), c.keys, c.problems)
			}
		})
	}
}
