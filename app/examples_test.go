package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/llm"
	"tandem/llm/scripted"
	"tandem/store/sqlite/sqlitetest"
)

// exampleRun is one run of an example.
type exampleRun struct {
	inputs string
	// answers are given to questions, in order.
	answers []string
	// says is what the outputs of the last nodes must have in them.
	says []string
}

// The examples with models run to success as they are: without a key, a network, a server or anything that was set up.
func TestExamples_RunOffline(t *testing.T) {
	t.Parallel()
	runs := map[string][]exampleRun{
		"ai_support_reply": {
			{inputs: `{"message":"My drill arrived broken, I want to return it"}`, says: []string{"My drill arrived broken", "within 30 days"}},
			{inputs: `{"message":"我的快递还没到"}`, says: []string{"two to four working days"}},
			{inputs: `{"message":"Do you sell paint?"}`, says: []string{"A colleague reads your message"}},
		},
		"ai_agent_tools": {
			{answers: []string{`{"approved":true}`}, says: []string{`"path":"report.md"`, `report.md`}},
			{answers: []string{`{"approved":false}`}, says: []string{"refused"}},
		},
		"ai_memory_chat": { // one data directory: a run knows those before
			{inputs: `{"message":"What is my name?"}`, says: []string{"We have not spoken before"}},
			{inputs: `{"message":"My name is Ada"}`, says: []string{"Nice to meet you, Ada"}},
			{inputs: `{"message":"What is my name?"}`, says: []string{"user: My name is Ada"}},
			{inputs: `{"message":"How long may I return a tool?"}`, says: []string{"The handbook says that tools may be returned within 30 days"}},
		},
		"ai_writer_critic": {{inputs: `{"topic":"五金店周年庆"}`, says: []string{"好消息！五金店周年庆", "缺少地点和联系方式"}}},
		"ai_extract_facts": {
			{inputs: `{"text":"The roof leaks since Monday. Bo has called a roofer."}`, says: []string{"In short: The roof leaks since Monday.", `\"Bo has called a roofer.\"`}},
			{inputs: `{"text":"no sentence"}`, says: []string{`\"no sentence\"`}},
		},
		"ai_fill_slots": {
			{inputs: `{"question":"A ticket to Bern on Friday","travellers":2}`, says: []string{"Ticket to Bern on Friday for 2"}},
			{inputs: `{"question":"A ticket to Bern on Friday"}`, answers: []string{`{"content":{"travellers":3}}`}, says: []string{"Ticket to Bern on Friday for 3"}},
			{inputs: `{"question":"Away!"}`, answers: []string{`{"content":{"to":"Ulm","day":"Monday","travellers":1}}`}, says: []string{"Ticket to Ulm on Monday for 1"}},
		},
	}
	files, err := filepath.Glob(filepath.Join("..", "examples", "ai_*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		if len(runs[name]) == 0 {
			t.Errorf("%s is never run", file)
		}
	}
	for name, list := range runs { // order does not matter: each has a directory of its own
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := sqlitetest.Dir(t)
			for _, one := range list {
				one.check(t, dir, filepath.Join("..", "examples", name+".yaml"))
			}
		})
	}
}

func (r exampleRun) check(t *testing.T, dir, file string) {
	t.Helper()
	answers := r.answers
	report, e, err := RunFile(t.Context(), Run{
		File: file, Dir: dir, Inputs: json.RawMessage(r.inputs),
		Ask: func(_ context.Context, q api.Interaction, answer func(json.RawMessage) error) error {
			if len(answers) == 0 {
				t.Errorf("%s asks %+v", r.inputs, q)
				return ErrAsked
			}
			given := answers[0]
			answers = answers[1:]
			return answer(json.RawMessage(given))
		},
	})
	if err != nil || !report.Valid || engine.Status(e.Status) != engine.StatusSuccess {
		t.Fatalf("%s: %+v, %s, %+v, %v", r.inputs, report.Problems, e.Status, e.Error, err)
	}
	if len(answers) > 0 {
		t.Errorf("%s: nobody has asked for %q", r.inputs, answers)
	}
	outputs, err := json.Marshal(e.Outputs)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range r.says {
		if !strings.Contains(string(outputs), text) {
			t.Errorf("%s: the outputs do not say %s:\n%s", r.inputs, text, outputs)
		}
	}
}

// What the model of the tools example was allowed to write is there, and what it was not is not.
func TestExamples_ToolsWriteWhenApproved(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "examples", "ai_agent_tools.yaml")
	for _, approved := range []bool{true, false} {
		dir := sqlitetest.Dir(t)
		exampleRun{answers: []string{map[bool]string{true: `{"approved":true}`, false: `{"approved":false}`}[approved]}}.check(t, dir, file)
		text, err := os.ReadFile(filepath.Join(dir, "files", defaultWorkspace, "books", "report.md"))
		if approved && (err != nil || !strings.Contains(string(text), "123 pieces, 343 euros")) {
			t.Errorf("the report is %q, %v", text, err)
		}
		if !approved && !os.IsNotExist(err) {
			t.Errorf("the report was written without consent: %q, %v", text, err)
		}
	}
}

func TestDemoProfile(t *testing.T) {
	t.Parallel()
	demo, err := readDemo()
	if err != nil {
		t.Fatal(err)
	}
	if demo.ID != demoProfile || demo.Provider != "scripted" || demo.CredentialID != "" || demo.BaseURL != "" {
		t.Errorf("the built-in profile is %+v", demo)
	}
	model, err := scripted.New(llm.Settings{Script: demo.Script})
	if err != nil {
		t.Fatal(err)
	}
	for said, says := range map[string]string{
		"Hello there":       "I am the demo model",
		"你好":                "我是演示模型",
		"Sort these":        `I have heard: "Sort these"`,
		"天气怎么样":             "听到的是：“天气怎么样”",
		"high is the tower": "I have heard",
	} {
		c, err := model.Complete(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Content: said}}}, nil)
		if err != nil || !strings.Contains(c.Message.Content, says) {
			t.Errorf("%q: %q, %v", said, c.Message.Content, err)
		}
	}

	i := openInstance(t, sqlitetest.Dir(t))
	closeAfter(t, i)
	for _, workspace := range []string{defaultWorkspace, "another"} {
		if p, err := i.Profile(t.Context(), workspace, demoProfile); err != nil || len(p.Script.Rules) < 10 {
			t.Errorf("workspace %q has %+v, %v", workspace, p, err)
		}
	}
	own := llm.Profile{ID: demoProfile, Provider: "scripted", Model: "mine", Script: llm.Script{Rules: []llm.Rule{{Reply: "mine"}}}}
	if err := i.SaveProfile(t.Context(), identity.System(defaultWorkspace), own); err != nil {
		t.Fatal(err)
	}
	if p, err := i.Profile(t.Context(), defaultWorkspace, demoProfile); err != nil || p.Model != "mine" {
		t.Errorf("what was kept under its id is not used: %+v, %v", p, err)
	}
}

// A server keeps the profiles beside its workflows, and never replaces one.
func TestServe_KeepsProfiles(t *testing.T) {
	t.Parallel()
	o := ServeOptions{Dir: sqlitetest.Dir(t), Token: "tdm_of_the_tests_0123456789", Workflows: filepath.Join("..", "examples")}
	s := startServer(t, o)
	if !slices.Equal(s.Profiles, []string{demoProfile}) {
		t.Errorf("kept %q", s.Profiles)
	}
	if p := s.want(200, "GET", "/api/v1/llm/profiles/demo", ""); p["provider"] != "scripted" || p["embedding_model"] == nil {
		t.Errorf("profile %v", p)
	}
	e := s.want(200, "POST", "/api/v1/workflows/ai_support_reply/execute", `{"inputs":{"message":"It is broken"},"wait_seconds":30}`)
	if e["status"] != "SUCCESS" {
		t.Errorf("execution %v", e)
	}
	s.want(200, "PUT", "/api/v1/llm/profiles/demo", `{"provider":"scripted","name":"mine","script":{"rules":[{"reply":"mine"}]}}`)
	s.stopAndWait()
	s = startServer(t, o)
	if p := s.want(200, "GET", "/api/v1/llm/profiles/demo", ""); len(s.Profiles) != 0 || p["name"] != "mine" {
		t.Errorf("kept %q over %v", s.Profiles, p)
	}
	s.stopAndWait()
}

func TestServe_RefusesAWrongProfile(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"provider: nobody":                 "provider",
		"provider: scripted\nsurprise: 1":  "surprise",
		"- a list":                         "object",
		"id: x\n  provider: [":             "YAML",
		"{provider: openai, api_key: abc}": "api_key",
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, profilesDir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, profilesDir, "wrong.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Serve(t.Context(), ServeOptions{Addr: "127.0.0.1:0", Dir: t.TempDir(), Token: "tdm_of_the_tests_0123456789", Workflows: dir})
		if err == nil || !strings.Contains(err.Error(), "wrong.yaml") || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want it to name the file and %s", text, err, says)
		}
	}
}
