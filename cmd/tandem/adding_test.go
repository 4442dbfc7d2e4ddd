package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// echoKind is a kind that somebody adds.
const echoKind = `package flow

import (
	"context"
	"encoding/json"

	"tandem/node"
	"tandem/workflow"
)

type echoConfig struct {
	Loud bool ` + "`" + `json:"loud" doc:"Whether it answers at all." zh:"是否应答。"` + "`" + `
}

func flowEcho() node.Kind {
	return node.Define(node.About{
		Name: "FLOW.ECHO", Title: node.Says("Echo", "回声"), Description: node.Says("Says what it is told.", "原样应答。"), Effect: workflow.Pure,
		Keys:   []node.Key{{Name: "result", Meaning: node.Says("What it is told.", "所听到的内容。"), Fields: []node.Value{node.HandedOn()}}},
		Inputs: node.HandsOn(),
		Examples: []node.Example{{
			Shows: node.Says("Answers.", "应答。"), Config: "{\"loud\": true}", Input: "{\"said\": \"hello\"}", Output: "{\"result\": {\"said\": \"hello\"}}",
		}},
	}, func(_ context.Context, _ *node.Call, cfg echoConfig, in json.RawMessage) (json.RawMessage, error) {
		if !cfg.Loud {
			return json.RawMessage("{}"), nil
		}
		return in, nil
	})
}
`

// pigeonChannel is a channel that somebody adds, parrotProvider a provider of models.
const (
	pigeonChannel = `package pigeon

import (
	"context"

	"tandem/human"
	"tandem/plug"
)

type channel struct{}

func (channel) Name() string { return "pigeon" }

func (channel) Send(context.Context, human.Message) (human.Receipt, error) { return human.Receipt{}, nil }

// Extension is what this package brings.
func Extension(plug.Deps) plug.Extension {
	return plug.Extension{Name: "pigeon", Channels: []human.Channel{channel{}}}
}
`
	parrotProvider = `package parrot

import (
	"context"

	"tandem/llm"
	"tandem/plug"
)

type provider struct{}

func (provider) Complete(context.Context, llm.Request, func(llm.Delta)) (llm.Completion, error) {
	return llm.Completion{Message: llm.Message{Role: llm.Assistant, Content: "Pieces of eight!"}, Finish: llm.FinishStop}, nil
}

// Extension is what this package brings.
func Extension(plug.Deps) plug.Extension {
	return plug.Extension{Name: "parrot", Providers: []plug.Provider{{Name: "parrot", New: func(llm.Settings) (llm.Provider, error) { return provider{}, nil }}}}
}
`
)

// macawProvider is a provider of models that has a kind of node of its own.
const macawProvider = `package macaw

import (
	"tandem/builtin/turn"
	"tandem/credential"
	"tandem/llm"
	"tandem/llm/openai"
	"tandem/node"
	"tandem/plug"
	"tandem/text"
)

type config struct {
	_ struct{} ` + "`" + `need:"model|profile_id"` + "`" + `
	turn.Common
	Temperature *float64 ` + "`" + `json:"temperature" range:"0..2" doc:"How freely it speaks." zh:"说话的自由度。"` + "`" + `
}

func (c config) Turn(call *node.Call) (turn.Config, error) {
	return c.With(call, llm.Params{Temperature: c.Temperature})
}

// Extension is what this package brings.
func Extension(plug.Deps) plug.Extension {
	turns := turn.Of[config](turn.Kind{Name: "AI_AGENT.MACAW", Title: node.Says("Macaw", "金刚鹦鹉"), Description: node.Says("A turn with a macaw.", "与金刚鹦鹉对话。")})
	return plug.Extension{
		Name: "macaw", Providers: []plug.Provider{{Name: "macaw", New: openai.New, Turns: turns}},
		Credentials: []credential.Type{{Name: "macaw", Label: text.Beside("Macaw", "金刚鹦鹉"), Fields: []credential.Field{credential.APIKey().Needed()}, Untried: text.Beside("It speaks.", "它会说话。")}},
	}
}
`

// doorbellSource is a kind of trigger that somebody adds, with its source.
const doorbellSource = `package doorbell

import (
	"context"
	"encoding/json"
	"net/http"

	"tandem/node"
	"tandem/plug"
	"tandem/trigger"
	"tandem/workflow"
)

type config struct {
	Name string ` + "`" + `json:"name_plate" doc:"Whose bell it is." zh:"铃的主人。"` + "`" + `
}

func kind() node.Kind {
	return node.Define(node.About{
		Name: "TRIGGER.DOORBELL", Title: node.Says("Doorbell", "门铃"), Description: node.Says("Starts when somebody rings.", "有人按铃时启动。"), Effect: workflow.Pure,
		Keys:     []node.Key{{Name: "result", Meaning: node.Says("Who rings.", "按铃的人。"), Fields: []node.Value{node.HandedOn(), node.Meaning("bell", "Whose bell it is.", "铃的主人。")}}},
		Inputs:   node.HandsOn(),
		Examples: []node.Example{{Shows: node.Says("Rings.", "按铃。"), Config: "{\"name_plate\": \"Ann\"}", Input: "{}", Output: "{\"result\": {\"bell\": \"Ann\"}}"}},
	}, func(_ context.Context, _ *node.Call, cfg config, _ json.RawMessage) (map[string]string, error) {
		return map[string]string{"bell": cfg.Name}, nil
	})
}

type source struct{}

func (source) Kind() string                                    { return "TRIGGER.DOORBELL" }
func (source) Register(context.Context, trigger.Trigger) error { return nil }
func (source) Route(trigger.Trigger) (trigger.Route, error) {
	return trigger.Route{Path: "/ring", Methods: []string{http.MethodPost}}, nil
}
func (source) Receive(_ context.Context, _ trigger.Trigger, r *trigger.Request) (trigger.Verdict, error) {
	return trigger.Verdict{Event: trigger.Event{Payload: json.RawMessage("{}")}, Reply: trigger.ReplyAtOnce}, nil
}

// Extension is what this package brings.
func Extension(plug.Deps) plug.Extension {
	return plug.Extension{Name: "doorbell", Kinds: []node.Kind{kind()}, Sources: []trigger.Source{source{}}}
}
`

// TestAdding adds a kind, a channel, two providers of models and a source of triggers to a copy of the files that CONTRIBUTING names for each, and to no others. The tests of package
// app are built with them once: an instance tells of all of them and uses them (testdata/added_test.go), and the tests that look at all kinds pass. What the
// copy differs in from the repository is what is named there, file by file.
func TestAdding(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the tests of package app, which -short is to spare")
	}
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	touches := map[string][]string{} // by what is added; pages that are made anew are not among them
	edit := func(what, file, before, after string) {
		t.Helper()
		raw, err := os.ReadFile(filepath.Join(copied, file))
		if err != nil {
			raw, err = os.ReadFile(filepath.Join(root, file))
		}
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(raw), before, after, 1)
		if before != "" && text == string(raw) {
			t.Fatalf("%s has no %q", file, before)
		}
		write(t, filepath.Join(copied, file), text)
		if before != "" && !slices.Contains(touches[what], file) {
			touches[what] = append(touches[what], file)
		}
	}
	add := func(what, file, text string) {
		t.Helper()
		write(t, filepath.Join(copied, file), text)
		touches[what] = append(touches[what], file)
	}
	add("Kind", "builtin/flow/echo.go", echoKind)
	edit("Kind", "builtin/flow/flow.go", "\t\tbrief(flowDelay()),\n", "\t\tbrief(flowDelay()),\n\t\tflowEcho(),\n")
	edit("Kind", "app/kinds_test.go", " FLOW.DELAY\n", " FLOW.DELAY FLOW.ECHO\n")
	edit("Kind", "app/inventory_flow_test.go", "\t\t\t\"FLOW.DELAY\": {", "\t\t\t\"FLOW.ECHO\": {\"loud\": {one: `true`, other: `false`, input: `{\"said\": 1}`}},\n\t\t\t\"FLOW.DELAY\": {")
	add("Channel", "integration/pigeon/pigeon.go", pigeonChannel)
	edit("Channel", "app/extensions.go", "\t\"tandem/integration/slack\"\n", "\t\"tandem/integration/pigeon\"\n\t\"tandem/integration/slack\"\n")
	edit("Channel", "app/extensions.go", "\t\tteams.Extension,\n", "\t\tteams.Extension,\n\t\tpigeon.Extension,\n")
	add("Provider", "llm/parrot/parrot.go", parrotProvider)
	edit("Provider", "app/extensions.go", "\t\"tandem/llm/scripted\"\n", "\t\"tandem/llm/parrot\"\n\t\"tandem/llm/scripted\"\n")
	edit("Provider", "app/extensions.go", "\t\tscripted.Extension,\n", "\t\tparrot.Extension,\n\t\tscripted.Extension,\n")
	add("Turns", "llm/macaw/macaw.go", macawProvider)
	edit("Turns", "app/extensions.go", "\t\"tandem/llm/openai\"\n", "\t\"tandem/llm/macaw\"\n\t\"tandem/llm/openai\"\n")
	edit("Turns", "app/extensions.go", "\t\tscripted.Extension,\n", "\t\tmacaw.Extension,\n\t\tscripted.Extension,\n")
	edit("Turns", "app/credential_types_test.go", "\t\t\"slack_bot\": ", "\t\t\"macaw\": {`{\"api_key\":\"k\"}`},\n\t\t\"slack_bot\": ")
	edit("Turns", "app/kinds_test.go", " AI_AGENT.LLM ", " AI_AGENT.LLM AI_AGENT.MACAW ")
	edit("Turns", "app/inventory_ai_test.go", "\t\t\t\"AI_AGENT.LLM\": kind(", "\t\t\t\"AI_AGENT.MACAW\": kind(nil),\n\t\t\t\"AI_AGENT.LLM\": kind(")
	add("Source", "integration/doorbell/doorbell.go", doorbellSource)
	edit("Source", "app/extensions.go", "\t\"tandem/integration/gcp\"\n", "\t\"tandem/integration/doorbell\"\n\t\"tandem/integration/gcp\"\n")
	edit("Source", "app/extensions.go", "\t\tgithub.Extension,\n", "\t\tdoorbell.Extension,\n\t\tgithub.Extension,\n")
	edit("Source", "app/kinds_test.go", " TRIGGER.CHAT\n", " TRIGGER.CHAT TRIGGER.DOORBELL\n")
	edit("Source", "app/inventory_call_test.go", "\t\t\t\"TRIGGER.CRON\": {", "\t\t\t\"TRIGGER.DOORBELL\": {\"name_plate\": {one: `\"Ann\"`, other: `\"Bob\"`}},\n\t\t\t\"TRIGGER.CRON\": {")
	overlay := map[string]string{ // what is built is the repository with these files over it
		filepath.Join(root, "app/added_test.go"): filepath.Join(root, "cmd/tandem/testdata/added_test.go"),
	}
	for _, file := range files(t, copied) {
		overlay[filepath.Join(root, file)] = filepath.Join(copied, file)
	}
	raw, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	write(t, filepath.Join(bin, "overlay.json"), string(raw))
	pages, err := filepath.Glob(filepath.Join(root, "docs/nodes/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		edit("", filepath.Join("docs/nodes", filepath.Base(page)), "", "")
	}
	tests := filepath.Join(bin, "app.test")
	command(t, root, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", filepath.Join(bin, "overlay.json"), "-o", tests, "./app")
	command(t, filepath.Join(copied, "app"), tests, "-test.run", "^TestNodesReference$", "-update")
	told := command(t, filepath.Join(copied, "app"), tests, "-test.v", "-test.run", "^(TestAdded|TestNodesReference|TestNodeKinds|TestKinds_Inventory|TestKinds_FieldsAreDescribed|TestKinds_Examples|TestInventory_Flow|TestInventory_Triggers|TestCredentialTypes)$/^((FLOW.)?ECHO|(TRIGGER.)?DOORBELL|(AI_AGENT.)?MACAW)")
	if !strings.Contains(told, "--- PASS: TestAdded ") {
		t.Errorf("what is added was not used:\n%s", told)
	}

	var touched []string
	for _, file := range files(t, copied) {
		before, err := os.ReadFile(filepath.Join(root, file))
		after, wrong := os.ReadFile(filepath.Join(copied, file))
		if wrong != nil {
			t.Fatal(wrong)
		}
		if err != nil || string(before) != string(after) {
			touched = append(touched, file)
		}
	}
	guide, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for what, made := range touches { // order does not matter: each is compared with its own list
		_, list, _ := strings.Cut(string(guide), "`TestAdding/"+what+"`")
		_, list, _ = strings.Cut(list, "```text\n")
		list, _, _ = strings.Cut(list, "```")
		named := strings.Fields(list)
		all = append(all, named...)
		named = slices.DeleteFunc(named, func(file string) bool { return strings.HasPrefix(file, "docs/nodes/") })
		slices.Sort(named)
		slices.Sort(made)
		if !slices.Equal(made, named) {
			t.Errorf("a %s touches %q, and CONTRIBUTING says %q, pages of the reference apart", strings.ToLower(what), made, named)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); !slices.Equal(touched, all) {
		t.Errorf("all together touch %q, and CONTRIBUTING says %q", touched, all)
	}
}

// write writes a file and the directories that it is in.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// files are those of a directory, sorted, with slashes.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := filepath.Rel(dir, path)
		list = append(list, filepath.ToSlash(file))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// command runs a program in a directory and returns what it prints.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, out)
	}
	return string(out)
}
