package form

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"tandem/payload"
)

// Every kind of error that the validator has is told in Chinese. Its kinds are read from its source, so that a new one without words is
// found.
func TestSchemaWords_EveryKind(t *testing.T) {
	t.Parallel()
	one, reason := big.NewRat(3, 2), errors.New("why")
	samples := map[string]jsonschema.ErrorKind{
		"InvalidJsonValue": &kind.InvalidJsonValue{}, "Schema": &kind.Schema{}, "Group": &kind.Group{}, "Not": &kind.Not{}, "AllOf": &kind.AllOf{}, "AnyOf": &kind.AnyOf{}, "OneOf": &kind.OneOf{}, "FalseSchema": &kind.FalseSchema{},
		"RefCycle": &kind.RefCycle{}, "Type": &kind.Type{Got: "string", Want: []string{"integer", "null"}}, "Enum": &kind.Enum{Want: []any{"a", json.Number("2"), nil}}, "Const": &kind.Const{Want: "a"}, "Format": &kind.Format{Want: "email", Err: reason},
		"Reference": &kind.Reference{}, "MinProperties": &kind.MinProperties{}, "MaxProperties": &kind.MaxProperties{}, "MinItems": &kind.MinItems{}, "MaxItems": &kind.MaxItems{}, "AdditionalItems": &kind.AdditionalItems{},
		"Required": &kind.Required{Missing: []string{"a", "b"}}, "Dependency": &kind.Dependency{}, "DependentRequired": &kind.DependentRequired{}, "AdditionalProperties": &kind.AdditionalProperties{}, "PropertyNames": &kind.PropertyNames{},
		"UniqueItems": &kind.UniqueItems{}, "Contains": &kind.Contains{}, "MinContains": &kind.MinContains{}, "MaxContains": &kind.MaxContains{}, "MinLength": &kind.MinLength{}, "MaxLength": &kind.MaxLength{}, "Pattern": &kind.Pattern{},
		"ContentEncoding": &kind.ContentEncoding{Err: reason}, "ContentMediaType": &kind.ContentMediaType{Err: reason}, "ContentSchema": &kind.ContentSchema{},
		"Minimum": &kind.Minimum{Got: one, Want: one}, "Maximum": &kind.Maximum{Got: one, Want: one}, "ExclusiveMinimum": &kind.ExclusiveMinimum{Got: one, Want: one}, "ExclusiveMaximum": &kind.ExclusiveMaximum{Got: one, Want: one}, "MultipleOf": &kind.MultipleOf{Got: one, Want: one},
	}
	for _, name := range kindsOfValidator(t) {
		sample, ok := samples[name]
		if !ok {
			t.Errorf("the validator has the kind %s, which this test does not know", name)
			continue
		}
		got := SchemaWords(payload.SchemaProblem{Kind: sample}).In("zh")
		if got == unlike().In("zh") || !strings.ContainsFunc(got, func(r rune) bool { return unicode.Is(unicode.Han, r) }) || strings.Contains(got, "why") {
			t.Errorf("%s has no Chinese: %q", name, got)
		}
		delete(samples, name)
	}
	for name := range samples {
		t.Errorf("the validator has no kind %s", name)
	}
}

// kindsOfValidator are the types of the validator that say what is wrong.
func kindsOfValidator(t *testing.T) (names []string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/santhosh-tekuri/jsonschema/v6/kind").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the source of the validator is not in %q: %v", dir, err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil || method.Name.Name != "LocalizedString" {
				continue
			}
			of, ok := method.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				t.Fatalf("%s: a receiver that is not a pointer", file)
			}
			names = append(names, of.X.(*ast.Ident).Name)
		}
	}
	return names
}

// What people read names what the schema wants, in both languages.
func TestSchemaWords(t *testing.T) {
	t.Parallel()
	s, err := payload.CompileSchema(json.RawMessage(`{"type":"object","additionalProperties":false,"minProperties":1,"dependentRequired":{"a":["b"]},
		"properties":{"a":{"type":["integer","string"]},"b":{"exclusiveMinimum":1.5},"c":{"enum":["x",2]},"d":{"const":"y"},"e":{"uniqueItems":true},"f":{"multipleOf":5},"g":{"not":{}},"h":{"type":"array","contains":{"const":1}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ value, zh, en string }{
		"Type":     {`{"a":true,"b":2}`, "类型不符：应为整数或文字。", "got boolean, want integer or string"},
		"Depends":  {`{"a":1}`, "填写了“a”时，还需要 “b”。", "properties 'b' required, if 'a' exists"},
		"Over":     {`{"b":1.5}`, "数值过小，必须大于 1.5。", "it is not more than 1.5"},
		"Enum":     {`{"c":"z"}`, "请从以下内容中选择：x、2。", "value must be one of 'x', 2"},
		"Const":    {`{"d":"z"}`, "必须是 y。", "value must be 'y'"},
		"Unique":   {`{"e":[1,2,1]}`, "第 1 项与第 3 项重复。", "items at 0 and 2 are equal"},
		"Multiple": {`{"f":7}`, "必须是 5 的倍数。", "it is not a multiple of 5"},
		"Not":      {`{"g":7}`, "这样的内容是不允许的。", "'not' failed"},
		"Contains": {`{"h":[]}`, "没有一项符合要求。", "no items match contains schema"},
		"Extra":    {`{"z":7}`, "不能有 “z”。", "additional properties 'z' not allowed"},
		"Empty":    {`{}`, "至少需要 1 个字段。", "minProperties: got 0, want 1"},
		"Wild":     {`{"b":1e999}`, "数字 1e999 超出范围。", "the number 1e999 is out of range"},
	} {
		value, err := payload.Decode(json.RawMessage(c.value))
		if err != nil {
			t.Fatal(err)
		}
		list := s.Problems("", value)
		if len(list) != 1 || SchemaWords(list[0]).In("zh") != c.zh || SchemaWords(list[0]).In("en") != c.en {
			t.Errorf("%s: %+v", name, list)
			for _, p := range list {
				t.Logf("%q %q", SchemaWords(p).In("zh"), SchemaWords(p).In("en"))
			}
		}
	}
}
