package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/node"
	"tandem/workflow"
)

// inventory is every kind that runs. A kind that disappears breaks the workflows that use it.
const inventory = `
	TRIGGER.MANUAL TRIGGER.WEBHOOK TRIGGER.CRON TRIGGER.EMAIL TRIGGER.GITHUB TRIGGER.SLACK TRIGGER.TELEGRAM TRIGGER.DISCORD TRIGGER.FORM TRIGGER.CHAT

	AI_AGENT.OPENAI_CHATGPT AI_AGENT.ANTHROPIC_CLAUDE AI_AGENT.GOOGLE_GEMINI AI_AGENT.LLM AI_AGENT.MCP_AGENT

	ACTION.RUN_CODE ACTION.EXECUTE_SCRIPT ACTION.DATA_TRANSFORMATION ACTION.EDIT_FIELDS ACTION.JINJA_TEMPLATE ACTION.DATA_VALIDATION ACTION.DATA_FORMATTING
	ACTION.FILE_OPERATION ACTION.FILE_UPLOAD ACTION.FILE_DOWNLOAD ACTION.DOCUMENT_LOADER ACTION.TEXT_SPLITTER ACTION.HTTP_REQUEST ACTION.WEBHOOK_CALL
	ACTION.DATABASE_QUERY ACTION.DATABASE_OPERATION ACTION.WEB_SEARCH ACTION.HTML_EXTRACTION ACTION.RSS_READ

	FLOW.IF FLOW.SWITCH FLOW.LOOP FLOW.FOR_EACH FLOW.WHILE FLOW.MERGE FLOW.SPLIT FLOW.FILTER FLOW.SORT FLOW.RESPOND FLOW.WAIT FLOW.DELAY
	FLOW.TIMEOUT FLOW.SUB_WORKFLOW

	HUMAN_IN_THE_LOOP.GMAIL_INTERACTION HUMAN_IN_THE_LOOP.OUTLOOK_INTERACTION HUMAN_IN_THE_LOOP.SLACK_INTERACTION
	HUMAN_IN_THE_LOOP.DISCORD_INTERACTION HUMAN_IN_THE_LOOP.TELEGRAM_INTERACTION HUMAN_IN_THE_LOOP.TEAMS_INTERACTION
	HUMAN_IN_THE_LOOP.IN_APP_APPROVAL HUMAN_IN_THE_LOOP.FORM_SUBMISSION HUMAN_IN_THE_LOOP.MANUAL_REVIEW

	TOOL.MCP_TOOL TOOL.HTTP_CLIENT TOOL.FILE_PROCESSOR TOOL.IMAGE_PROCESSOR TOOL.CODE_TOOL TOOL.EMAIL_TOOL
	TOOL.GOOGLE_CALENDAR_TOOL TOOL.OUTLOOK_CALENDAR_TOOL TOOL.CALENDAR_GENERIC_TOOL TOOL.GMAIL_TOOL
	TOOL.WORKFLOW_TOOL TOOL.DATABASE_TOOL TOOL.MEMORY_TOOL

	MEMORY.CONVERSATION_BUFFER MEMORY.CONVERSATION_SUMMARY MEMORY.VECTOR_DATABASE MEMORY.KEY_VALUE_STORE
	MEMORY.DOCUMENT_STORE MEMORY.ENTITY_MEMORY MEMORY.EPISODIC_MEMORY MEMORY.KNOWLEDGE_BASE MEMORY.GRAPH_MEMORY
	MEMORY.WORKING_MEMORY

	EXTERNAL_ACTION.SLACK EXTERNAL_ACTION.WEBHOOK EXTERNAL_ACTION.EMAIL
	EXTERNAL_ACTION.DISCORD_ACTION EXTERNAL_ACTION.TELEGRAM_ACTION EXTERNAL_ACTION.NOTIFICATION
	EXTERNAL_ACTION.GITHUB EXTERNAL_ACTION.GITLAB_ACTION EXTERNAL_ACTION.JIRA_ACTION EXTERNAL_ACTION.TRELLO
	EXTERNAL_ACTION.AWS_ACTION EXTERNAL_ACTION.GCP_ACTION EXTERNAL_ACTION.AZURE_ACTION
	EXTERNAL_ACTION.AIRTABLE EXTERNAL_ACTION.GOOGLE_SHEETS EXTERNAL_ACTION.GOOGLE_DRIVE
	EXTERNAL_ACTION.GOOGLE_CALENDAR EXTERNAL_ACTION.API_CALL EXTERNAL_ACTION.NOTION

	CALL.EMPTY CALL.SUMMARY CALL.TASK CALL.FACTS CALL.SLOT`

var sharedKinds = sync.OnceValue(Kinds)

// planOf plans a node of a kind with these configurations.
func planOf(t *testing.T, kind, configurations string) (workflow.Plan, []workflow.Problem) {
	t.Helper()
	k, ok := sharedKinds().Kind(kind)
	if !ok {
		t.Fatalf("no kind %q", kind)
	}
	typ, subtype, _ := strings.Cut(kind, ".")
	return k.Plan(&workflow.Node{ID: "n", Name: "n", Type: typ, Subtype: subtype, Configurations: json.RawMessage(configurations)})
}

// told reduces problems to "code path", which is what programs rely on.
func told(problems []workflow.Problem) []string {
	var lines []string
	for _, p := range problems {
		line := p.Code + " " + p.Path
		if p.Severity == workflow.SeverityWarning {
			line = "warning " + line
		}
		lines = append(lines, line)
	}
	return lines
}

func TestKinds_Inventory(t *testing.T) {
	t.Parallel()
	want := strings.Fields(inventory)
	slices.Sort(want)
	kinds := Kinds()
	if diff := cmp.Diff(want, kinds.Names()); diff != "" {
		t.Fatalf("registered kinds (-want +got):\n%s", diff)
	}
	for _, name := range want {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, ok := kinds.Kind(name)
			if !ok || k.Name != name {
				t.Fatalf("Kind(%q) = %q, %v", name, k.Name, ok)
			}
			p, _ := planOf(t, name, `{}`)
			if len(p.Keys) == 0 {
				t.Errorf("no output keys")
			}
			if slices.Contains(p.Keys, workflow.ErrorKey) {
				t.Errorf("keys %q must not name %q, which every kind has", p.Keys, workflow.ErrorKey)
			}
			for _, key := range p.KeyAliases {
				if name != "FLOW.IF" && !slices.Contains(p.Keys, key) {
					t.Errorf("an alias means %q, which is not among the keys %q", key, p.Keys)
				}
			}
			if k.Scope != nil && !slices.Contains(p.Keys, k.Scope.Entry) {
				t.Errorf("the entry key %q is not among the keys %q", k.Scope.Entry, p.Keys)
			}
			if !slices.Contains([]workflow.Effect{workflow.Pure, workflow.Idempotent, workflow.Once}, p.Effect) {
				t.Errorf("effect %q", p.Effect)
			}
			if p.TimeoutMS != 420_000 || p.OnError != workflow.OnErrorFail || p.Disabled {
				t.Errorf("defaults: timeout %d ms, on_error %q, disabled %v", p.TimeoutMS, p.OnError, p.Disabled)
			}
			wantRetries, wantUnknown := 3, workflow.OnUnknownAsk
			if strings.HasPrefix(name, "TRIGGER.") || k.Scope != nil {
				wantRetries = 0
			}
			if strings.HasPrefix(name, "HUMAN_IN_THE_LOOP.") {
				wantUnknown = workflow.OnUnknownRetry
			}
			if p.MaxRetries != wantRetries || p.OnUnknown != wantUnknown {
				t.Errorf("max_retries %d, on_unknown %q; want %d, %q", p.MaxRetries, p.OnUnknown, wantRetries, wantUnknown)
			}
			_, problems := planOf(t, name, `{"surely_no_such_field": 1}`)
			if !slices.Contains(told(problems), "unknown_configuration configurations.surely_no_such_field") {
				t.Errorf("an unknown field passed: %q", told(problems))
			}
		})
	}
}

// namesRecord recognises fields that name records of the workspace by what they are called.
func namesRecord(field string) bool {
	return strings.HasSuffix(field, "profile") || strings.HasSuffix(field, "profiles") || slices.Contains([]string{"profile_id", "agent_id", "workflow_id", "template_id", "approvers", "reviewers", "mcp_servers"}, field)
}

// Every field says in both languages what it means, every key what comes out under it, and every default passes the check that a written
// value has to pass: leaving a field out must not be better than writing down what it is anyway.
func TestKinds_FieldsAreDescribed(t *testing.T) {
	t.Parallel()
	checked := 0
	var look func(kind, at string, fields []node.Field)
	look = func(kind, at string, fields []node.Field) {
		for _, f := range fields {
			if checked++; f.Meaning.Words("en") == "" || f.Meaning.Words("zh") == "" {
				t.Errorf("%s does not say what %s%s means, in English (doc) and Chinese (zh)", kind, at, f.Name)
			}
			if namesRecord(f.Name) && f.Names == "" {
				t.Errorf("%s: %s%s names a record, and no tag names says of which sort", kind, at, f.Name)
			}
			look(kind, at+f.Name+".", f.Fields)
		}
	}
	look("every kind", "", node.CommonFields())
	for _, k := range theKinds().List() {
		look(k.About.Name, "", k.Fields())
		for _, key := range k.About.Keys {
			if key.Meaning.Words("en") == "" || key.Meaning.Words("zh") == "" {
				t.Errorf("%s does not say what comes out under %s, in English and Chinese", k.About.Name, key.Name)
			}
		}
		if k.About.Name != agent.TaskKind {
			valuesAreDescribed(t, k)
		}
		var defaults struct {
			Properties map[string]struct {
				Default json.RawMessage `json:"default"`
			} `json:"properties"`
		}
		if err := json.Unmarshal(k.ConfigSchema.JSON(), &defaults); err != nil {
			t.Fatal(err)
		}
		for name, p := range defaults.Properties {
			if p.Default == nil {
				continue
			}
			_, problems := planOf(t, k.About.Name, fmt.Sprintf(`{%q: %s}`, name, p.Default))
			for _, problem := range problems {
				if problem.Path == "configurations."+name && problem.Severity == workflow.SeverityError {
					t.Errorf("%s: the default of %q is refused: %v", k.About.Name, name, problem)
				}
			}
		}
	}
	if checked < 600 {
		t.Errorf("only %d fields were looked at", checked)
	}
}

// valuesAreDescribed says that every field that a kind reads of its input and puts out is told in both languages. That what it tells of its
// outputs is what comes out is seen by [TestKinds_Examples].
func valuesAreDescribed(t *testing.T, k node.Kind) {
	t.Helper()
	check := func(what string, list []node.Value, schema json.RawMessage) {
		for _, v := range list {
			if v.Name == "" || v.Meaning.Words("en") == "" || v.Meaning.Words("zh") == "" {
				t.Errorf("%s: %s has the field %q, which is not told in English and Chinese", k.About.Name, what, v.Name)
			}
		}
		gjson.GetBytes(schema, "properties").ForEach(func(name, _ gjson.Result) bool {
			if !slices.ContainsFunc(list, func(v node.Value) bool { return v.Name == name.Str }) {
				t.Errorf("%s does not say what %s of %s means; add the tags doc and zh to it", k.About.Name, name.Str, what)
			}
			return true
		})
	}
	if len(k.About.Inputs) == 0 {
		t.Errorf("%s does not say what it reads of its input", k.About.Name)
	}
	check("the input", k.About.Inputs, k.InputSchema.JSON())
	if len(k.About.Keys) == 0 {
		t.Errorf("%s does not say what comes out of it", k.About.Name)
	}
	for _, key := range k.About.Keys {
		var schema json.RawMessage
		if key.Name == workflow.DefaultKey {
			schema = k.OutputSchema.JSON()
		}
		check(key.Name, key.Fields, schema)
	}
	for _, also := range k.About.Needs.Also {
		if also.Words("en") == "" || also.Words("zh") == "" {
			t.Errorf("%s does not say in both languages what it needs", k.About.Name)
		}
	}
}

func TestKinds_Alias(t *testing.T) {
	t.Parallel()
	kinds := Kinds()
	for _, c := range []struct{ typ, subtype, want string }{
		{"flow", "if", "FLOW.IF"},
		{"Start", "", "TRIGGER.MANUAL"},
		{"END", "", "CALL.EMPTY"},
		{"llm", "", "AI_AGENT.LLM"},
		{"API", "", "EXTERNAL_ACTION.API_CALL"},
		{"SQL", "", "ACTION.DATABASE_QUERY"},
		{"CHOICE", "", "FLOW.SWITCH"},
		{"loop", "", "FLOW.LOOP"},
		{"AGENT", "", "AI_AGENT.MCP_AGENT"},
		{"slot", "", "CALL.SLOT"},
		{"TOOL", "NOTION_MCP_TOOL", "TOOL.MCP_TOOL"},
		{"TOOL", "GOOGLE_CALENDAR", "TOOL.GOOGLE_CALENDAR_TOOL"},
		{"UNKNOWN", "", ""},
		{"FLOW", "", ""},
		{"FLOW", "GOTO", ""},
	} {
		if got, ok := kinds.Alias(c.typ, c.subtype); got != c.want || ok != (c.want != "") {
			t.Errorf("Alias(%q, %q) = %q, %v; want %q", c.typ, c.subtype, got, ok, c.want)
		}
	}
}
