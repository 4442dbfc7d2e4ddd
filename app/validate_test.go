package app

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/node"
	"tandem/validation"
	"tandem/workflow"
)

// The examples are what people copy, so they must be flawless: no warning either.
func TestExamples(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"*.yaml", "*.json"} {
		found, err := filepath.Glob(filepath.Join("..", "examples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 6 {
		t.Fatalf("found only %q", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			drawing, report := Draw(file, data)
			for _, p := range report.Problems {
				t.Errorf("%s:%d: %v", file, p.Line, p)
			}
			if !strings.HasPrefix(drawing, "flowchart") {
				t.Errorf("drawing %q", drawing)
			}
			source, _ := workflow.Parse(data, workflow.Options{Kinds: Kinds()})
			graph, problems := workflow.Compile(source.Definition, Kinds())
			if graph == nil {
				t.Fatalf("does not compile: %v", problems)
			}
			if name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)); source.Definition.Metadata.Name != name {
				t.Errorf("the workflow in %s is called %q", filepath.Base(file), source.Definition.Metadata.Name)
			}
		})
	}
}

// oneNode is a workflow of a trigger and a node, which gets the rest of its fields.
func oneNode(fields string) []byte {
	return []byte(`{"nodes": [{"id": "t", "description": "T.", "type": "TRIGGER", "subtype": "MANUAL"}, {"id": "n", "description": "N.", ` + fields +
		`}], "connections": [{"id": "c", "from_node": "t", "to_node": "n"}]}`)
}

func TestValidate_JoinsTheParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, fields string
		want         []string
	}{
		{"Valid", `"type": "CALL", "subtype": "EMPTY"`, nil},
		{"Expression", `"type": "FLOW", "subtype": "IF", "configurations": {"condition": "data.x >"}`,
			[]string{"invalid_expression nodes[1].configurations.condition"}},
		{"ExpressionWithPlaceholder", `"type": "FLOW", "subtype": "IF", "configurations": {"condition": "data.x > {{t.outputs.limit}}"}`, nil},
		{"OlderSpelling", `"type": "FLOW", "subtype": "IF", "configurations": {"condition": "data.x === 3 && !data.tags.includes('a')"}`, nil},
		{"UnknownNode", `"type": "CALL", "subtype": "EMPTY", "input_params": {"a": ["{{q.outputs.x}}"]}`,
			[]string{"warning unknown_reference nodes[1].input_params.a[0]"}},
		{"UnknownNodeInExpression", `"type": "FLOW", "subtype": "IF", "configurations": {"condition": "{{q.outputs.x}} == 1"}`,
			[]string{"warning unknown_reference nodes[1].configurations.condition"}},
		{"PlainNamesMayBeAnything", `"type": "CALL", "subtype": "EMPTY", "input_params": {"a": "{{name}} {{order.id}} {{trigger.body}} {{env.HOME}}"}`, nil},
		{"OddPlaceholder", `"type": "CALL", "subtype": "EMPTY", "input_params": {"a": "{{not a path}}"}`,
			[]string{"warning invalid_placeholder nodes[1].input_params.a"}},
		{"CodeIsNotSearched", `"type": "ACTION", "subtype": "RUN_CODE", "configurations": {"code": "def main(x): return '{{not a path}} {{q.outputs.x}}'"}`, nil},
		{"CredentialToBeChosen", `"type": "ACTION", "subtype": "DATABASE_QUERY", "configurations": {"query": "select 1", "credential_id": "{{$placeholder}}"}`,
			[]string{"warning credential_missing nodes[1].configurations.credential_id"}},
		{"StepType", `"type": "end"`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			report := Validate("f.json", oneNode(c.fields))
			if diff := cmp.Diff(c.want, told(report.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s%v", diff, report.Problems)
			}
			for _, p := range report.Problems {
				if p.Line == 0 || p.Column == 0 {
					t.Errorf("%v has no place", p)
				}
			}
			if want := !slices.ContainsFunc(c.want, func(s string) bool { return !strings.HasPrefix(s, "warning ") }); report.Valid != want {
				t.Errorf("valid is %v", report.Valid)
			}
		})
	}
}

func TestReport_JSONHasNoNull(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(Validate("f.json", oneNode(`"type": "CALL", "subtype": "EMPTY"`)))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"file":"f.json","valid":true,"problems":[]}`; string(data) != want {
		t.Errorf("got %s, want %s", data, want)
	}
}

// FuzzPlan gives kinds arbitrary configurations: they must answer with a usable plan and problems, never with a panic.
func FuzzPlan(f *testing.F) {
	f.Add(uint8(3), `{"condition_expression": "a", "timeout": 3}`)
	f.Add(uint8(40), `{"branches": [{"branch_id": "a", "conditions": [{"operate": "equal"}]}], "cases": [[]], "choices": {}}`)
	f.Add(uint8(50), `{"approval_options": ["a", {"value": null}, 3], "interaction_type": "selection"}`)
	f.Add(uint8(60), `{"predicate_paths": {"a": 1, "": "x"}, "by_key": [null], "split_mode": "predicate"}`)
	f.Add(uint8(0), `{"on_error": "{{x}}", "on_unknown": "never", "timeout": 1e99, "max_retries": -1e300}`)
	kinds := Kinds()
	names := kinds.Names()
	f.Fuzz(func(t *testing.T, which uint8, configurations string) {
		if !json.Valid([]byte(configurations)) {
			return // it never gets so far: parsing has refused it
		}
		k, _ := kinds.Kind(names[int(which)%len(names)])
		typ, subtype, _ := strings.Cut(k.Name, ".")
		plan, problems := k.Plan(&workflow.Node{ID: "n", Type: typ, Subtype: subtype, Configurations: json.RawMessage(configurations)})
		handling := slices.Contains([]workflow.OnError{workflow.OnErrorFail, workflow.OnErrorContinue, workflow.OnErrorDefault}, plan.OnError) &&
			slices.Contains([]workflow.OnUnknown{workflow.OnUnknownAsk, workflow.OnUnknownRetry, workflow.OnUnknownFail}, plan.OnUnknown)
		if plan.TimeoutMS < 1000 || plan.MaxRetries < 0 || plan.MaxRetries > 10 || plan.Effect == "" || !handling {
			t.Errorf("%s %s: plan %+v", k.Name, configurations, plan)
		}
		for _, p := range problems {
			if p.Code == "" || p.Message == "" || !strings.HasPrefix(p.Path, "configurations") {
				t.Errorf("%s %s: problem %+v", k.Name, configurations, p)
			}
		}
	})
}

// Codes are a promise to programs, so each one is documented.
func TestDocs_NameEveryCode(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile(filepath.Join("..", "docs", "workflow-format.md"))
	if err != nil {
		t.Fatal(err)
	}
	codes := []string{
		node.ProblemUnknownConfiguration, node.ProblemInlineSecret, node.ProblemDropped, node.ProblemNeverChanges, node.ProblemDuplicateCase,
		node.ProblemCredentialMissing, node.ProblemUnsupported, validation.ProblemUnreadable,
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "workflow", "problem_code.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Problem") {
			return true
		}
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, code)
		return true
	})
	if len(codes) < 30 {
		t.Fatalf("found only %q", codes)
	}
	for _, code := range codes {
		if !strings.Contains(string(docs), "`"+code+"`") {
			t.Errorf("docs/workflow-format.md does not explain %q", code)
		}
	}
}

func BenchmarkKinds(b *testing.B) {
	for b.Loop() {
		Kinds()
	}
}

func BenchmarkValidate(b *testing.B) {
	data, err := os.ReadFile(filepath.Join("..", "examples", "order_triage.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r := Validate("order_triage.yaml", data); !r.Valid {
			b.Fatal(r.Problems)
		}
	}
}
