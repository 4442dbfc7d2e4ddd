package builtin_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"strings"
	"testing"

	"tandem/builtin"
	"tandem/credential"
	"tandem/database"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
)

// scriptedModels are models that answer by rules, under the profile "m".
func scriptedModels(rules ...llm.Rule) *builtin.Models {
	return &builtin.Models{
		Profile: func(_ context.Context, _, id string) (llm.Profile, error) {
			if id != "m" {
				return llm.Profile{}, fault.Newf(fault.NotFound, "there is no profile %q", id)
			}
			return llm.Profile{ID: "m", Provider: "scripted", Script: llm.Script{Rules: rules}}, nil
		},
		Providers: map[string]llm.Factory{"scripted": func(s llm.Settings) (llm.Provider, error) { return ruled(s.Script.Rules), nil }},
		Executor:  llm.NewExecutor(llm.Options{}),
	}
}

// ruled answers by the first rule that fits the system message and the last one.
type ruled []llm.Rule

func (rules ruled) Complete(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Completion, error) {
	system, last := r.Messages[0].Content, r.Messages[len(r.Messages)-1].Content
	for _, rule := range rules {
		if strings.Contains(system, rule.System) && strings.Contains(last, rule.Contains) {
			return llm.Completion{Message: llm.Message{Role: llm.Assistant, Content: rule.Reply + string(rule.JSON)}, Finish: llm.FinishStop}, nil
		}
	}
	return llm.Completion{}, fault.Newf(fault.NotFound, "no rule fits %q", last)
}

// kindWith returns a kind of a set with options.
func kindWith(t *testing.T, o builtin.Options, name string) node.Kind {
	t.Helper()
	for _, k := range builtin.Kinds(o) {
		if k.About.Name == name {
			return k
		}
	}
	t.Fatalf("there is no kind %q", name)
	return node.Kind{}
}

func TestDatabaseQuery_AnswersAQuestion(t *testing.T) {
	t.Parallel()
	pools := database.New(database.Options{Files: t.TempDir()})
	t.Cleanup(pools.Close)
	run := func(o builtin.Options, kind, config string) (json.RawMessage, error) {
		o.Databases = pools
		call := newCall(t, config, `{}`)
		call.Workspace = "default"
		call.Used, call.Detail = func(node.Usage) {}, func(map[string]any) {}
		call.Credential = func(context.Context, string, ...string) (credential.Opened, error) {
			return credential.Opened{ID: "shop", Type: "sql", Data: json.RawMessage(`{"driver": "sqlite", "dsn": "shop.db"}`)}, nil
		}
		out, err := kindWith(t, o, kind).Run(t.Context(), call)
		if err != nil {
			return nil, err
		}
		return out.(node.Done)["result"], nil
	}
	for _, s := range []string{"create table item (id integer primary key, name text)", "insert into item (name) values ('pen'), ('ink')"} {
		if _, err := run(builtin.Options{}, operationKind, `{"credential_id": "shop", "operation": "execute", "statement": "`+s+`"}`); err != nil {
			t.Fatal(err)
		}
	}
	const ask = `{"credential_id": "shop", "question": "how many items?", "llm_profile": "m"}`
	// The model is shown the tables; what the database refuses it is told, and it mends its statement.
	models := scriptedModels(
		llm.Rule{Contains: "no such column", JSON: json.RawMessage(`{"sql":"select count(*) as n from item"}`)},
		llm.Rule{System: "item: id integer, name text", Contains: "how many", JSON: json.RawMessage(`{"sql":"select count(nme) as n from item"}`)},
	)
	got, err := run(builtin.Options{Models: models}, queryKind, ask)
	if err != nil || !strings.Contains(string(got), `"rows":[{"n":2}]`) || !strings.Contains(string(got), `"sql":"select count(*) as n from item"`) {
		t.Errorf("got %s, %v", got, err)
	}
	// It is held to the rules of any query.
	writes := scriptedModels(llm.Rule{JSON: json.RawMessage(`{"sql":"delete from item"}`)})
	if _, err := run(builtin.Options{Models: writes}, queryKind, ask); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("a statement that writes: %v", err)
	}
	if _, err := run(builtin.Options{Models: models}, queryKind, `{"credential_id": "shop", "question": "q", "llm_profile": "m", "tables": ["itm"]}`); fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), `"item"`) {
		t.Errorf("a table that is not there: %v", err)
	}
	if _, err := run(builtin.Options{Models: models}, queryKind, `{"credential_id": "shop", "question": "q"}`); fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), "llm_profile") {
		t.Errorf("no profile: %v", err)
	}
	if got, err := run(builtin.Options{}, queryKind, `{"credential_id": "shop", "query": "select count(*) as n from item"}`); err != nil || !strings.Contains(string(got), `"n":2`) {
		t.Errorf("the rows are still there: %s, %v", got, err)
	}
}

func TestImageProcessor_Describes(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	models := scriptedModels(llm.Rule{Contains: "which colour", Reply: "black"})
	k := kindWith(t, builtin.Options{Models: models}, "TOOL.IMAGE_PROCESSOR")
	call := newCall(t, `{"vision_profile": "m", "tool_name": "image_describe"}`,
		`{"function_args": {"question": "which colour is it?", "file": {"name": "p.png", "base64": "`+base64.StdEncoding.EncodeToString(file.Bytes())+`"}}}`)
	call.Used, call.Detail = func(node.Usage) {}, func(map[string]any) {}
	out, err := k.Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(out.(node.Done)["result"]); !strings.Contains(got, `"description":"black"`) {
		t.Errorf("got %s", got)
	}
	// A model is offered the tool only when there is somebody to ask.
	for config, want := range map[string]bool{`{}`: false, `{"vision_profile": "m"}`: true} {
		offered, err := k.Tools(t.Context(), newCall(t, config, `{}`))
		if err != nil {
			t.Fatal(err)
		}
		has := false
		for _, o := range offered {
			has = has || o.Name == "image_describe"
		}
		if has != want {
			t.Errorf("%s offers %+v", config, offered)
		}
	}
}

func TestSwitch_LetsAModelChoose(t *testing.T) {
	t.Parallel()
	const config = `{"propose": "the printer is on fire", "llm_profile": "m", "choices": [{"branch": "urgent", "description": "at once"}, {"branch": "later", "description": "some day"}]}`
	choose := func(rules ...llm.Rule) (node.Outcome, error) {
		call := newCall(t, config, `{"id": 7}`)
		call.Used, call.Detail = func(node.Usage) {}, func(map[string]any) {}
		return kindWith(t, builtin.Options{Models: scriptedModels(rules...)}, "FLOW.SWITCH").Run(t.Context(), call)
	}
	out, err := choose(
		llm.Rule{Contains: "cannot be used", JSON: json.RawMessage(`{"branch":"urgent"}`)},
		llm.Rule{System: "urgent: at once", Contains: "on fire", Reply: "now!"},
	)
	if done, ok := out.(node.Done); err != nil || !ok || !strings.Contains(string(done["urgent"]), `"branch_id":"urgent"`) || !strings.Contains(string(done["urgent"]), `"id":7`) {
		t.Errorf("got %v, %v", out, err)
	}
	if out, err := choose(llm.Rule{JSON: json.RawMessage(`{"branch":"never"}`)}); err != nil || out.(node.Done)["default"] == nil {
		t.Errorf("no usable answer: %v, %v", out, err)
	}
	if _, err := choose(llm.Rule{Fail: string(fault.RateLimited)}); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("a model that cannot be reached: %v", err)
	}
}
