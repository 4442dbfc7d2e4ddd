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

	"tandem/workflow"
)

// inventory is every kind a workflow can name. A kind that disappears breaks the workflows that use it.
const inventory = `
	TRIGGER.MANUAL TRIGGER.WEBHOOK TRIGGER.CRON TRIGGER.EMAIL TRIGGER.GITHUB TRIGGER.SLACK

	AI_AGENT.OPENAI_CHATGPT AI_AGENT.ANTHROPIC_CLAUDE AI_AGENT.GOOGLE_GEMINI AI_AGENT.LLM AI_AGENT.MCP_AGENT

	EXTERNAL_ACTION.API_CALL EXTERNAL_ACTION.WEBHOOK EXTERNAL_ACTION.NOTIFICATION EXTERNAL_ACTION.SLACK
	EXTERNAL_ACTION.DISCORD_ACTION EXTERNAL_ACTION.TELEGRAM_ACTION EXTERNAL_ACTION.EMAIL EXTERNAL_ACTION.GITHUB
	EXTERNAL_ACTION.GITLAB_ACTION EXTERNAL_ACTION.JIRA_ACTION EXTERNAL_ACTION.GOOGLE_CALENDAR EXTERNAL_ACTION.TRELLO
	EXTERNAL_ACTION.NOTION EXTERNAL_ACTION.AWS_ACTION EXTERNAL_ACTION.GCP_ACTION EXTERNAL_ACTION.AZURE_ACTION

	ACTION.RUN_CODE ACTION.EXECUTE_SCRIPT ACTION.DATA_TRANSFORMATION ACTION.DATA_VALIDATION ACTION.DATA_FORMATTING
	ACTION.FILE_OPERATION ACTION.FILE_UPLOAD ACTION.FILE_DOWNLOAD ACTION.HTTP_REQUEST ACTION.WEBHOOK_CALL
	ACTION.DATABASE_QUERY ACTION.DATABASE_OPERATION ACTION.WEB_SEARCH

	FLOW.IF FLOW.SWITCH FLOW.LOOP FLOW.FOR_EACH FLOW.WHILE FLOW.MERGE FLOW.SPLIT FLOW.FILTER FLOW.SORT FLOW.WAIT FLOW.DELAY
	FLOW.TIMEOUT FLOW.SUB_WORKFLOW

	HUMAN_IN_THE_LOOP.GMAIL_INTERACTION HUMAN_IN_THE_LOOP.OUTLOOK_INTERACTION HUMAN_IN_THE_LOOP.SLACK_INTERACTION
	HUMAN_IN_THE_LOOP.DISCORD_INTERACTION HUMAN_IN_THE_LOOP.TELEGRAM_INTERACTION HUMAN_IN_THE_LOOP.TEAMS_INTERACTION
	HUMAN_IN_THE_LOOP.IN_APP_APPROVAL HUMAN_IN_THE_LOOP.FORM_SUBMISSION HUMAN_IN_THE_LOOP.MANUAL_REVIEW

	TOOL.MCP_TOOL TOOL.GOOGLE_CALENDAR_TOOL TOOL.OUTLOOK_CALENDAR_TOOL TOOL.CALENDAR_GENERIC_TOOL TOOL.EMAIL_TOOL
	TOOL.GMAIL_TOOL TOOL.HTTP_CLIENT TOOL.FILE_PROCESSOR TOOL.IMAGE_PROCESSOR TOOL.CODE_TOOL

	MEMORY.CONVERSATION_BUFFER MEMORY.CONVERSATION_SUMMARY MEMORY.VECTOR_DATABASE MEMORY.KEY_VALUE_STORE
	MEMORY.DOCUMENT_STORE MEMORY.ENTITY_MEMORY MEMORY.EPISODIC_MEMORY MEMORY.KNOWLEDGE_BASE MEMORY.GRAPH_MEMORY
	MEMORY.WORKING_MEMORY

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
				if name != "FLOW.IF" && name != "FLOW.SWITCH" && !slices.Contains(p.Keys, key) {
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

// Every default must pass the check that a written value has to pass, or leaving a field out would be better than
// writing down what it is anyway.
func TestKinds_DefaultsAreValid(t *testing.T) {
	t.Parallel()
	families := map[string]string{"TRIGGER": triggerCommon, "HUMAN_IN_THE_LOOP": humanCommon, "TOOL": toolCommon, "MEMORY": memoryCommon}
	checked := 0
	for typ, kinds := range map[string][]kind{
		"TRIGGER": triggerKinds(), "AI_AGENT": agentKinds(), "EXTERNAL_ACTION": externalKinds(), "ACTION": actionKinds(), "FLOW": flowKinds(),
		"HUMAN_IN_THE_LOOP": humanKinds(), "TOOL": toolKinds(), "MEMORY": memoryKinds(), "CALL": callKinds(),
	} {
		for _, k := range kinds {
			s := parseShape(commonConfig, families[typ], k.config, k.operations.notation())
			for _, f := range s.fields {
				if !f.hasDef {
					continue
				}
				checked++
				raw := f.def
				switch {
				case strings.HasPrefix(raw, "["):
					list, _ := json.Marshal(strings.FieldsFunc(raw[1:len(raw)-1], func(r rune) bool { return r == ',' }))
					raw = string(list)
				case !slices.ContainsFunc(f.types, func(t string) bool { return t == "int" || t == "num" || t == "bool" }) || !json.Valid([]byte(raw)):
					quoted, _ := json.Marshal(raw)
					raw = string(quoted)
				}
				c := &config{node: &workflow.Node{}, shape: s}
				c.checkField(f.name, &f, gjson.Parse(raw))
				if len(c.problems) > 0 {
					t.Errorf("%s.%s: the default of %q is refused: %v", typ, k.subtype, f.name, c.problems[0])
				}
			}
		}
	}
	if checked < 300 {
		t.Errorf("only %d defaults were checked", checked)
	}
}

func TestKinds_DuplicatePanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), `"CALL.EMPTY" is registered twice`) {
			t.Errorf("recovered %v, want a panic that names the kind", r)
		}
	}()
	newCatalogue(family{"CALL", callKinds(), ""}, family{"CALL", callKinds(), ""})
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

func TestParseShape_RejectsBadNotation(t *testing.T) {
	t.Parallel()
	for _, notation := range []string{`a:strange`, `a{x|y`, `a[1-2]`, `a="x`, `old -> missing`, `a)`} {
		t.Run(notation, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Errorf("notation %q was accepted", notation)
				}
			}()
			parseShape(notation)
		})
	}
}

func TestParseShape_ReadsEveryPart(t *testing.T) {
	t.Parallel()
	s := parseShape(`a, b*!:list/obj{x|~y}=[x][1..5](in:int; ...); old -> a; need a|b; drop gone, lost; cred* smtp/imap`)
	f, ok := s.field("b")
	if !ok {
		t.Fatal("no field b")
	}
	if !f.required || !f.fixed || f.def != "[x]" || *f.lo != 1 || *f.hi != 5 || !f.inner.open {
		t.Errorf("field %+v", f)
	}
	got := []any{f.types, f.enum, f.older, s.older, s.needs, s.dropped, s.cred, s.credRequired, f.inner.names()}
	want := []any{[]string{"list", "obj"}, []string{"x"}, []string{"y"}, map[string]string{"old": "a"}, [][]string{{"a", "b"}},
		[]string{"gone", "lost"}, []string{"smtp", "imap"}, true, []string{"in"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
