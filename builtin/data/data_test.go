package data_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

func TestTransformation(t *testing.T) {
	t.Parallel()
	out := func(data string) map[string]string {
		return map[string]string{"result": `{"transformed_data": ` + data + `}`}
	}
	const staff = `{"data": [{"d": "a", "salary": 10}, {"d": "b", "salary": 20}, {"d": "a", "salary": 31}, {"d": "b", "salary": null}, {"d": null, "salary": 1}, {"d": null, "salary": 2}]}`
	kinds().Check(t, "ACTION.DATA_TRANSFORMATION", []nodetest.Case{
		{Name: "Map", Config: `{"field_mapping": {"name": "user.name", "double": "n * 2", "all": "item", "at": "index", "const": 5, "none": "user.age"}}`,
			Input: `{"data": [{"user": {"name": "Ada"}, "n": 2, "_id": 7}]}`, Want: out(`[{"_id": 7, "name": "Ada", "double": 4, "all": {"n": 2}, "at": 0, "const": 5, "none": null}]`)},
		{Name: "MapReadsTheInput", Config: `{"field_mapping": {"x": "n + context.rate"}}`, Input: `{"data": [{"n": 2}], "context": {"rate": 3}}`, Want: out(`[{"x": 5}]`)},
		{Name: "MapWithoutMapping", Config: `{}`, Input: `{"data": [1, 2]}`, Want: map[string]string{"result": `{"transformed_data": [1, 2], "original_count": 2, "output_count": 2, "transformation_stats": {"operation": "map"}}`}},
		{Name: "OneRecord", Config: `{"operation": "extract_fields", "field_mapping": {"x": "a"}}`, Input: `{"a": 1}`, Want: out(`[{"x": 1}]`)},
		{Name: "MapFails", Config: `{"field_mapping": {"x": "a < 'b'"}}`, Input: `{"data": [{"a": 1}]}`, Code: fault.ExpressionError},
		{Name: "Filter", Config: `{"operation": "filter", "filter_conditions": [{"field": "salary", "operator": "greater_than", "value": 10}, {"expression": "d != 'b'"}]}`, Input: staff, Want: out(`[{"d": "a", "salary": 31}]`)},
		{Name: "FilterByOtherTypes", Config: `{"operation": "filter", "filter_conditions": [{"field": "salary", "min_value": 15}, {"field": "d", "pattern": "b"}, {"field": "d", "type": "string"}, {"field": "d", "exists": true}]}`, Input: staff, Want: out(`[{"d": "b", "salary": 20}]`)},
		{Name: "FilterNoConditions", Config: `{"operation": "filter"}`, Input: staff, Code: fault.InvalidConfig},
		{Name: "Sort", Config: `{"operation": "sort", "sort_config": {"field": "n", "direction": "desc"}}`, Input: `{"data": [{"n": 1}, {}, {"n": 2}]}`, Want: out(`[{"n": 2}, {"n": 1}, {}]`)},
		{Name: "SortNoField", Config: `{"operation": "sort"}`, Input: staff, Code: fault.InvalidConfig},
		{Name: "GroupBy", Config: `{"operation": "group_by", "group_by_fields": ["d"], "aggregation_functions": {"salary": "avg", "max_salary": "max", "people": "count", "count_salary": "count"}}`, Input: staff,
			Want: out(`[{"d": "a", "salary": 20.5, "max_salary": 31, "people": 2, "count_salary": 2}, {"d": "b", "salary": 20, "max_salary": 20, "people": 2, "count_salary": 1}, {"d": null, "salary": 1, "max_salary": 1, "people": 1, "count_salary": 1}, {"d": null, "salary": 2, "max_salary": 2, "people": 1, "count_salary": 1}]`)},
		{Name: "GroupByWithoutFunctions", Config: `{"operation": "group_by", "group_by_fields": ["d"]}`, Input: `{"data": [{"d": 1}, {"d": 1.0}]}`, Want: out(`[{"d": 1, "count": 2, "items": [{"d": 1}, {"d": 1.0}]}]`)},
		{Name: "GroupByNoFields", Config: `{"operation": "group_by"}`, Input: staff, Code: fault.InvalidConfig},
		{Name: "Aggregate", Config: `{"operation": "aggregate", "aggregation_functions": {"sum_v": "sum", "min_v": "min", "first_v": "first", "last_v": "last", "list_v": "list", "count_distinct_v": "count_distinct", "v": "avg"}}`,
			Input: `{"data": [{"v": 3}, {"v": null}, {"v": 1}, {"v": 3}]}`, Want: out(`[{"sum_v": 7, "min_v": 1, "first_v": 3, "last_v": 3, "list_v": [3, 1, 3], "count_distinct_v": 2, "v": 2.3333333333333335}]`)},
		{Name: "AggregateNothing", Config: `{"operation": "aggregate", "aggregation_functions": {"v": "avg", "n": "count", "sum_v": "sum", "max_v": "max", "list_v": "list"}}`, Input: `{"data": []}`,
			Want: out(`[{"v": null, "n": 0, "sum_v": 0, "max_v": null, "list_v": []}]`)},
		{Name: "AggregateExactly", Config: `{"operation": "aggregate", "aggregation_functions": {"v": "sum"}}`, Input: `{"data": [{"v": 9007199254740993}, {"v": 1}]}`, Want: out(`[{"v": 9007199254740994}]`)},
		{Name: "AggregateText", Config: `{"operation": "aggregate", "aggregation_functions": {"v": "sum"}}`, Input: `{"data": [{"v": "x"}]}`, Code: fault.InvalidInput, Part: `"v"`},
		{Name: "AggregateUnknown", Config: `{"operation": "aggregate", "aggregation_functions": {"v": "median"}}`, Input: `{"data": []}`, Code: fault.InvalidConfig, Part: "aggregation_functions.v"},
		{Name: "AggregateMixed", Config: `{"operation": "aggregate", "aggregation_functions": {"v": "max"}}`, Input: `{"data": [{"v": "x"}, {"v": 1}]}`, Code: fault.InvalidInput},
		{Name: "AggregateNoFunctions", Config: `{"operation": "aggregate"}`, Input: staff, Code: fault.InvalidConfig},
		{Name: "JoinInner", Config: `{"operation": "join", "join_config": {"left_key": "id", "right_key": "ref"}}`, Input: joined, Want: out(`[{"id": 1, "ref": 1, "x": "a"}, {"id": 1, "ref": 1, "x": "b"}]`)},
		{Name: "JoinLeft", Config: `{"operation": "join", "join_config": {"left_key": "id", "right_key": "ref", "type": "left"}}`, Input: joined, Want: out(`[{"x": "a"}, {"x": "b"}, {"id": 2}, {"id": null}]`)},
		{Name: "JoinRight", Config: `{"operation": "join", "join_config": {"left_key": "id", "right_key": "ref", "type": "right"}}`, Input: joined, Want: out(`[{"x": "a"}, {"x": "b"}, {"ref": null}, {"ref": 9}]`)},
		{Name: "JoinFull", Config: `{"operation": "join", "join_config": {"left_key": "id", "right_key": "ref", "type": "full"}}`, Input: joined, Want: out(`[{"x": "a"}, {"x": "b"}, {"id": 2}, {"id": null}, {"ref": null}, {"ref": 9}]`)},
		{Name: "JoinSameKey", Config: `{"operation": "join", "join_config": {"left_key": "id", "right_path": "other.rows"}}`, Input: `{"data": [{"id": 1}], "other": {"rows": [{"id": 1, "v": 2}]}}`, Want: out(`[{"id": 1, "v": 2}]`)},
		{Name: "JoinNoKey", Config: `{"operation": "join"}`, Input: joined, Code: fault.InvalidConfig, Part: "left_key"},
		{Name: "JoinNoObject", Config: `{"operation": "join", "join_config": {"left_key": "id"}}`, Input: `{"data": [1]}`, Code: fault.InvalidInput},
		{Name: "Flatten", Config: `{"operation": "flatten"}`, Input: `{"data": [1, [2, [3]], []]}`, Want: out(`[1, 2, [3]]`)},
		{Name: "FlattenDeep", Config: `{"operation": "flatten", "flatten_config": {"depth": 2}}`, Input: `{"data": [1, [2, [3]]]}`, Want: out(`[1, 2, 3]`)},
		{Name: "FlattenAtAPath", Config: `{"operation": "flatten", "flatten_config": {"path": "lines"}}`, Input: `{"data": [{"o": 1, "lines": [{"p": 2}, 3]}, {"o": 2, "lines": []}, {"o": 3}]}`, Want: out(`[{"o": 1, "p": 2}, {"o": 1, "lines": 3}]`)},
		{Name: "Pivot", Config: `{"operation": "pivot", "pivot_config": {"index": "m", "columns": "c", "values": "v", "function": "sum"}}`,
			Input: `{"data": [{"m": 1, "c": "x", "v": 2}, {"m": 1, "c": "y", "v": 3}, {"m": 2, "c": "x", "v": 4}, {"m": 1, "c": "x", "v": 5}]}`, Want: out(`[{"m": 1, "x": 7, "y": 3}, {"m": 2, "x": 4, "y": null}]`)},
		{Name: "PivotIncomplete", Config: `{"operation": "pivot", "pivot_config": {"index": "m"}}`, Input: staff, Code: fault.InvalidConfig},
		{Name: "CSV", Config: `{"output_format": "csv"}`, Input: `{"data": [{"a": 1, "b": "x,y"}, {"a": "=1"}]}`, Want: map[string]string{"result": `{"formatted": "a,b\n1,\"x,y\"\n\"'=1\",\n"}`}},
		{Name: "XML", Config: `{"output_format": "xml"}`, Input: `{"data": [{"a": "<"}]}`, Want: map[string]string{"result": `{"formatted": "<root><item><a>&lt;</a></item></root>"}`}},
		{Name: "Script", Config: `{"operation": "custom", "transformation_script": "x => x.data.map(y => y.a * 2)"}`, Input: `{"data": [{"a": 1}, {"a": 2}]}`, Want: out(`[2, 4]`)},
		{Name: "ScriptInPython", Config: `{"operation": "custom", "transformation_script": "def f(x):\n    return [y['a'] for y in x['data'] if y['a'] > 1]"}`, Input: `{"data": [{"a": 1}, {"a": 2}]}`, Want: out(`[2]`)},
		{Name: "ScriptThatRaises", Config: `{"operation": "custom", "transformation_script": "lambda x: x['nothing']"}`, Input: staff, Code: fault.CodeError},
	})
	got := kinds().Done(t, "ACTION.DATA_TRANSFORMATION", nodetest.NewCall(t, `{"field_mapping": {"x": "a"}, "preserve_metadata": false}`, `{"data": [{"a": 1, "_id": 2}]}`))
	if !strings.Contains(string(got["result"]), `"transformed_data":[{"x":1}]`) {
		t.Errorf("metadata was kept, or the order of fields was not: %s", got["result"])
	}
}

const joined = `{"data": [{"id": 1}, {"id": 2}, {"id": null}], "right": [{"ref": 1, "x": "a"}, {"ref": null}, {"ref": 1, "x": "b"}, {"ref": 9}]}`

func TestValidation(t *testing.T) {
	t.Parallel()
	valid := func(result string) map[string]string { return map[string]string{"result": result, "valid": result} }
	invalid := func(result string) map[string]string { return map[string]string{"result": result, "invalid": result} }
	const schema = `{"schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}, "l": {"items": {"minLength": 2}}}}`
	list := []nodetest.Case{
		{Name: "SchemaHolds", Config: schema + `}`, Input: `{"data": {"n": 1}}`, Want: valid(`{"valid": true, "errors": [], "data": {"n": 1}, "valid_items": [{"n": 1}], "invalid_items": []}`)},
		{Name: "WholeInput", Config: schema + `}`, Input: `{"n": 1}`, Want: valid(`{"data": {"n": 1}}`)},
		{Name: "AtAPath", Config: schema + `, "items_path": "a.b"}`, Input: `{"a": {"b": {"n": 1}}}`, Want: valid(`{"data": {"n": 1}}`)},
		{Name: "AllProblems", Config: schema + `, "rules": [{"field": "m", "rule": "required", "message": "say m"}]}`, Input: `{"data": {"n": "x", "l": ["ok", "a"]}}`,
			Want: invalid(`{"valid": false, "errors": [{"path": "l[1]", "rule": "minLength"}, {"path": "n", "rule": "type"}, {"path": "m", "rule": "required", "message": "say m"}], "valid_items": [], "invalid_items": [{"n": "x"}]}`)},
		{Name: "Fails", Config: schema + `, "on_invalid": "fail"}`, Input: `{"data": {}}`, Code: fault.ValidationFailed, Part: "n"},
		{Name: "FailsNotWhenValid", Config: schema + `, "on_invalid": "fail"}`, Input: `{"data": {"n": 1}}`, Want: valid(`{"valid": true}`)},
		{Name: "NothingToCheck", Config: `{}`, Input: `{}`, Code: fault.InvalidConfig},
		{Name: "BadSchema", Config: `{"schema": {"type": "colour"}}`, Input: `{}`, Code: fault.InvalidConfig, Part: "schema"},
		{Name: "RemoteSchema", Config: `{"schema": {"$ref": "file:///etc/passwd"}}`, Input: `{}`, Code: fault.InvalidConfig, Part: "$defs"},
		{Name: "LocalReference", Config: `{"schema": {"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}}`, Input: `{"data": 5}`, Want: valid(`{"valid": true}`)},
		{Name: "WildNumber", Config: `{"schema": {"minimum": 1}}`, Input: `{"data": 1e999999999}`, Want: invalid(`{"errors": [{"rule": "number"}]}`)},
		{Name: "Each", Config: `{"each": true, "rules": [{"field": "n", "rule": "min", "value": 2}]}`, Input: `{"data": [{"n": 1}, {"n": 2}]}`,
			Want: map[string]string{"result": `{"valid": false, "errors": [{"path": "[0].n", "rule": "min"}], "data": [{"n": 1}, {"n": 2}], "valid_items": [{"n": 2}], "invalid_items": [{"n": 1}]}`, "valid": `[{"n": 2}]`, "invalid": `[{"n": 1}]`}},
		{Name: "EachAllValid", Config: `{"each": true, "rules": [{"field": ".", "rule": "type", "value": "number"}]}`, Input: `{"data": [1]}`, Want: map[string]string{"result": `{"valid": true}`, "valid": `[1]`}},
		{Name: "EachOfNothing", Config: `{"each": true, "rules": [{"field": ".", "rule": "required"}]}`, Input: `{"data": []}`, Want: map[string]string{"result": `{"valid": true, "errors": []}`}},
		{Name: "EachUnique", Config: `{"each": true, "rules": [{"field": "id", "rule": "unique"}]}`, Input: `{"data": [{"id": 1}, {"id": 1.0}, {}, {}]}`,
			Want: map[string]string{"result": `{"errors": [{"path": "[1].id", "rule": "unique"}]}`, "valid": `[{"id": 1}, {}, {}]`, "invalid": `[{"id": 1.0}]`}},
		{Name: "RuleNeedsValue", Config: `{"rules": [{"field": "a", "rule": "min"}]}`, Input: `{}`, Code: fault.InvalidConfig, Part: "rules[0].value"},
		{Name: "RuleUnknown", Config: `{"rules": [{"field": "a", "rule": "nice"}]}`, Input: `{}`, Code: fault.InvalidConfig, Part: "rules[0].rule"},
		{Name: "RuleWithoutField", Config: `{"rules": [{"rule": "required"}]}`, Input: `{}`, Code: fault.InvalidConfig, Part: "rules[0].field"},
		{Name: "BadPattern", Config: `{"rules": [{"field": "a", "rule": "pattern", "value": "("}]}`, Input: `{}`, Code: fault.InvalidConfig},
		{Name: "ExpressionFails", Config: `{"rules": [{"field": "a", "rule": "expression", "value": "value < 'x'"}]}`, Input: `{"a": 1}`, Code: fault.ExpressionError},
	}
	for _, c := range []struct {
		rule, value, data string
		holds             bool
	}{
		{"required", `null`, `1`, true}, {"required", `null`, `null`, false}, {"type", `"integer"`, `2.0`, true}, {"type", `"integer"`, `2.5`, false}, {"type", `"null"`, `null`, true},
		{"type", `"string"`, `null`, true}, {"min", `2`, `2`, true}, {"min", `2`, `1`, false}, {"min", `2`, `"x"`, false}, {"max", `2`, `3`, false}, {"max", `2`, `null`, true},
		{"length", `2`, `"ab"`, true}, {"length", `2`, `"日本語"`, false}, {"length", `[1, 3]`, `[1]`, true}, {"length", `{"min": 2}`, `[1]`, false}, {"length", `{"max": 2}`, `{"a": 1}`, true}, {"length", `1`, `5`, false},
		{"pattern", `"^a"`, `"ab"`, true}, {"pattern", `"^a"`, `"ba"`, false}, {"pattern", `"^a"`, `5`, false}, {"enum", `[1, "a"]`, `1.0`, true}, {"enum", `[1, "a"]`, `"1"`, false},
		{"email", `null`, `"ada@example.com"`, true}, {"email", `null`, `"ada@localhost"`, false}, {"email", `null`, `"Ada <ada@example.com>"`, false}, {"url", `null`, `"https://example.com/x"`, true},
		{"url", `null`, `"example.com"`, false}, {"date", `null`, `"2030-01-31"`, true}, {"date", `null`, `"2030-01-31T09:00:00Z"`, true}, {"date", `null`, `"31.1.2030"`, false},
		{"unique", `null`, `[1, 2]`, true}, {"unique", `null`, `[1, 1.0]`, false}, {"unique", `null`, `5`, false}, {"expression", `"value > 1 && f == value"`, `2`, true}, {"expression", `"value > 1"`, `1`, false},
	} {
		want := invalid(`{"valid": false, "errors": [{"path": "f", "rule": "` + c.rule + `"}]}`)
		if c.holds {
			want = valid(`{"valid": true}`)
		}
		list = append(list, nodetest.Case{Name: c.rule + c.value + c.data, Config: `{"rules": [{"field": "f", "rule": "` + c.rule + `", "value": ` + c.value + `}]}`, Input: `{"data": {"f": ` + c.data + `}}`, Want: want})
	}
	kinds().Check(t, "ACTION.DATA_VALIDATION", list)
}

func TestValidation_TellsAHundredProblems(t *testing.T) {
	t.Parallel()
	input := `{"data": [` + strings.TrimSuffix(strings.Repeat(`null,`, 150), ",") + `]}`
	got := kinds().Done(t, "ACTION.DATA_VALIDATION", nodetest.NewCall(t, `{"each": true, "rules": [{"field": ".", "rule": "required"}]}`, input))
	var result struct {
		Errors       []any `json:"errors"`
		InvalidItems []any `json:"invalid_items"`
	}
	if err := json.Unmarshal(got["result"], &result); err != nil || len(result.Errors) != 100 || len(result.InvalidItems) != 150 {
		t.Errorf("%d errors, %d invalid items, %v", len(result.Errors), len(result.InvalidItems), err)
	}
}

func TestFormatting(t *testing.T) {
	t.Parallel()
	formatted := func(text string) map[string]string {
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"result": `{"formatted": ` + string(raw) + `}`}
	}
	parsed := func(data string) map[string]string { return map[string]string{"result": `{"data": ` + data + `}`} }
	format := func(typ, options string) string {
		return `{"format_type": "` + typ + `", "options": ` + options + `}`
	}
	parse := func(typ, options string) string {
		return `{"format_type": "` + typ + `", "direction": "parse", "options": ` + options + `}`
	}
	kinds().Check(t, "ACTION.DATA_FORMATTING", []nodetest.Case{
		{Name: "Template", Config: `{"format_type": "template", "template": "Dear Ada"}`, Want: formatted("Dear Ada")},
		{Name: "NoTemplate", Config: `{"format_type": "template"}`, Code: fault.InvalidConfig, Part: "template"},
		{Name: "NoType", Config: `{}`, Code: fault.InvalidConfig, Part: "format_type"},
		{Name: "UnknownOption", Config: format("json", `{"indentt": 2}`), Code: fault.InvalidConfig, Part: `"indent"`},
		{Name: "JSON", Config: format("json", `{}`), Input: `{"data": {"b": 1, "a": "<&"}}`, Want: formatted(`{"b":1,"a":"<&"}`)},
		{Name: "JSONIndented", Config: format("json", `{"indent": 2}`), Input: `{"data": {"b": 1}}`, Want: formatted("{\n  \"b\": 1\n}")},
		{Name: "JSONParsed", Config: parse("json", `{}`), Input: `{"data": "{\"a\": [1.50]}"}`, Want: parsed(`{"a": [1.50]}`)},
		{Name: "JSONBroken", Config: parse("json", `{}`), Input: `{"data": "{\n \"a\" 1}"}`, Code: fault.InvalidInput, Part: "line 2, column 6"},
		{Name: "JSONCut", Config: parse("json", `{}`), Input: `{"data": "[1,"}`, Code: fault.InvalidInput, Part: "line 1, column"},
		{Name: "ParseNoText", Config: parse("json", `{}`), Input: `{"data": 5}`, Code: fault.InvalidInput, Part: "number"},
		{Name: "CSVFormulas", Config: format("csv", `{}`), Input: `{"data": [{"a": "=1", "b": -5, "c": "@x"}, {"a": "+1", "b": "-1", "c": "it's"}]}`, Want: formatted("a,b,c\n\"'=1\",-5,\"'@x\"\n\"'+1\",\"'-1\",\"it's\"\n")},
		{Name: "CSVOptions", Config: format("csv", `{"delimiter": ";", "header": false, "columns": ["b", "a"]}`), Input: `{"data": [{"a": "x;y", "b": null}]}`, Want: formatted(";\"x;y\"\n")},
		{Name: "CSVRows", Config: format("csv", `{}`), Input: `{"data": [[1, "a"], ["b\"c", true]]}`, Want: formatted("1,a\n\"b\"\"c\",true\n")},
		{Name: "CSVDelimiter", Config: format("csv", `{"delimiter": "ab"}`), Input: `{"data": []}`, Code: fault.InvalidConfig, Part: "delimiter"},
		{Name: "CSVParsed", Config: parse("csv", `{}`), Input: `{"data": "a,b\n1,\"x\ny\"\n'=1,z\n"}`, Want: parsed(`[{"a": "1", "b": "x\ny"}, {"a": "=1", "b": "z"}]`)},
		{Name: "CSVParsedRows", Config: parse("csv", `{"header": false}`), Input: `{"data": "1,2\n"}`, Want: parsed(`[["1", "2"]]`)},
		{Name: "CSVBroken", Config: parse("csv", `{}`), Input: `{"data": "a\n\"x"}`, Code: fault.InvalidInput, Part: "line 2"},
		{Name: "CSVRowTooLong", Config: parse("csv", `{}`), Input: `{"data": "a\n1,2\n"}`, Code: fault.InvalidInput, Part: "line 2, column 3"},
		{Name: "XML", Config: format("xml", `{"root": "order"}`), Input: `{"data": {"id": 1, "line": ["a", "b"], "odd key": "&", "none": null}}`, Want: formatted(`<order><id>1</id><line>a</line><line>b</line><field name="odd key">&amp;</field><none></none></order>`)},
		{Name: "XMLParsed", Config: parse("xml", `{}`), Input: `{"data": "<o v=\"1\"><id>1</id><l>a</l><l>b</l><field name=\"odd key\">&amp;</field></o>"}`, Want: parsed(`{"@v": "1", "id": "1", "l": ["a", "b"], "odd key": "&"}`)},
		{Name: "XMLText", Config: parse("xml", `{}`), Input: `{"data": "<o a=\"1\">hi<b/></o>"}`, Want: parsed(`{"@a": "1", "b": "", "#text": "hi"}`)},
		{Name: "XMLEntities", Config: parse("xml", `{}`), Input: `{"data": "<!DOCTYPE o [<!ENTITY x \"y\">]><o>&x;</o>"}`, Code: fault.InvalidInput, Part: "document types"},
		{Name: "XMLUnknownEntity", Config: parse("xml", `{}`), Input: `{"data": "<o>\n&x;</o>"}`, Code: fault.InvalidInput, Part: "line 2"},
		{Name: "XMLBroken", Config: parse("xml", `{}`), Input: `{"data": "<a>\n</b>"}`, Code: fault.InvalidInput, Part: "line 2"},
		{Name: "XMLTwoRoots", Config: parse("xml", `{}`), Input: `{"data": "<a/><b/>"}`, Code: fault.InvalidInput, Part: "second root"},
		{Name: "XMLNothing", Config: parse("xml", `{}`), Input: `{"data": " "}`, Code: fault.InvalidInput, Part: "no element"},
		{Name: "YAML", Config: format("yaml", `{}`), Input: `{"data": {"b": [1, "1"], "a": null}}`, Want: formatted("b:\n    - 1\n    - \"1\"\na: null\n")},
		{Name: "YAMLParsed", Config: parse("yaml", `{}`), Input: `{"data": "a: [1, x]\n2: yes\n"}`, Want: parsed(`{"a": [1, "x"], "2": "yes"}`)},
		{Name: "YAMLBroken", Config: parse("yaml", `{}`), Input: `{"data": "a: 1\n  b: [\n"}`, Code: fault.InvalidInput, Part: "line 2"},
		{Name: "YAMLNotFinite", Config: parse("yaml", `{}`), Input: `{"data": ".inf"}`, Code: fault.InvalidInput, Part: "finite"},
		{Name: "MarkdownTable", Config: format("markdown", `{}`), Input: `{"data": [{"a": "x|y", "b": 1}, {"a": "l\nm"}]}`, Want: formatted("| a | b |\n| --- | --- |\n| x\\|y | 1 |\n| l<br>m |  |\n")},
		{Name: "MarkdownObject", Config: format("markdown", `{}`), Input: `{"data": {"a": 1}}`, Want: formatted("- **a**: 1\n")},
		{Name: "MarkdownList", Config: format("markdown", `{}`), Input: `{"data": [1, "x"]}`, Want: formatted("- 1\n- x\n")},
		{Name: "MarkdownParsed", Config: parse("markdown", `{}`), Input: `{"data": "# x"}`, Code: fault.Unsupported},
		{Name: "HTMLEscapes", Config: format("html", `{}`), Input: `{"data": [{"<b>": "<script>\"'&"}]}`, Want: formatted("<table><thead><tr><th>&lt;b&gt;</th></tr></thead><tbody><tr><td>&lt;script&gt;&#34;&#39;&amp;</td></tr></tbody></table>")},
		{Name: "HTMLObject", Config: format("html", `{}`), Input: `{"data": {"a": "<"}}`, Want: formatted("<dl><dt>a</dt><dd>&lt;</dd></dl>")},
		{Name: "HTMLList", Config: format("html", `{}`), Input: `{"data": ["<", 1]}`, Want: formatted("<ul><li>&lt;</li><li>1</li></ul>")},
		{Name: "HTMLText", Config: format("html", `{}`), Input: `{"data": "<i>"}`, Want: formatted("&lt;i&gt;")},
		{Name: "Date", Config: format("date", `{"date_format": "%d.%m.%Y %H:%M %z", "timezone": "Asia/Shanghai"}`), Input: `{"data": "2030-01-31T20:00:00Z"}`, Want: formatted("01.02.2030 04:00 +0800")},
		{Name: "DateLetters", Config: format("date", `{"date_format": "YYYY年MM月DD日 HH:mm", "timezone": "Asia/Shanghai"}`), Input: `{"data": "2030-01-31T20:00:00Z"}`, Want: formatted("2030年02月01日 04:00")},
		{Name: "DateLettersParsed", Config: parse("date", `{"date_format": "YYYY年M月D日", "timezone": "Asia/Shanghai"}`), Input: `{"data": "2030年2月1日"}`, Want: parsed(`"2030-01-31T16:00:00Z"`)},
		{Name: "DateNoLayout", Config: format("date", `{"date_format": "年月日"}`), Input: `{"data": 0}`, Code: fault.InvalidConfig, Part: "no part of a date"},
		{Name: "DateUnknownLetters", Config: format("date", `{"date_format": "YYYY-QQ"}`), Input: `{"data": 0}`, Code: fault.InvalidConfig, Part: `"QQ"`},
		{Name: "JSONReadable", Config: format("json", `{}`), Input: `{"data": {"\u540d": "\u5f20\u003cb\u003e"}}`, Want: formatted(`{"名":"张<b>"}`)},
		{Name: "JSONReadableIndented", Config: format("json", `{"indent": 1}`), Input: `{"data": ["\u5f20\u003c"]}`, Want: formatted("[\n \"张<\"\n]")},
		{Name: "TextReadable", Config: format("text", `{}`), Input: `{"data": {"b": "\u5f20\u003c", "a": 1}}`, Want: formatted(`{"b":"张<","a":1}`)},
		{Name: "MarkdownReadable", Config: format("markdown", `{}`), Input: `{"data": {"a": {"b": "\u5f20"}}}`, Want: formatted("- **a**: {\"b\":\"张\"}\n")},
		{Name: "DateDefault", Config: format("date", `{}`), Input: `{"data": 0}`, Want: formatted("1970-01-01T00:00:00Z")},
		{Name: "DateBad", Config: format("date", `{}`), Input: `{"data": "soon"}`, Code: fault.InvalidInput, Part: "line 1, column 1"},
		{Name: "DateBadZone", Config: format("date", `{"timezone": "Moon"}`), Input: `{"data": 0}`, Code: fault.InvalidConfig, Part: "Moon"},
		{Name: "DateParsed", Config: parse("date", `{"date_format": "%d.%m.%Y %H:%M", "timezone": "Asia/Shanghai"}`), Input: `{"data": "01.02.2030 04:00"}`, Want: parsed(`"2030-01-31T20:00:00Z"`)},
		{Name: "DateParsedPlain", Config: parse("date", `{}`), Input: `{"data": "2030-01-31"}`, Want: parsed(`"2030-01-31T00:00:00Z"`)},
		{Name: "DateParsedBad", Config: parse("date", `{"date_format": "%Y"}`), Input: `{"data": "x"}`, Code: fault.InvalidInput},
		{Name: "DateLayoutBad", Config: parse("date", `{"date_format": "%Q"}`), Input: `{"data": "x"}`, Code: fault.InvalidConfig},
		{Name: "Number", Config: format("number", `{"decimals": 2, "thousands_separator": ".", "decimal_separator": ","}`), Input: `{"data": -1234567.005}`, Want: formatted("-1.234.567,01")},
		{Name: "NumberExact", Config: format("number", `{}`), Input: `{"data": 9007199254740993}`, Want: formatted("9007199254740993")},
		{Name: "NumberZero", Config: format("number", `{"decimals": 1}`), Input: `{"data": -0.04}`, Want: formatted("0.0")},
		{Name: "NumberBad", Config: format("number", `{}`), Input: `{"data": "x"}`, Code: fault.InvalidInput},
		{Name: "NumberParsed", Config: parse("number", `{"thousands_separator": ".", "decimal_separator": ","}`), Input: `{"data": " -1.234,5 "}`, Want: parsed(`-1234.5`)},
		{Name: "NumberParsedBad", Config: parse("number", `{}`), Input: `{"data": "true"}`, Code: fault.InvalidInput},
		{Name: "Text", Config: format("text", `{"case": "upper", "trim": true}`), Input: `{"data": " a "}`, Want: formatted("A")},
		{Name: "TextOfObject", Config: format("text", `{}`), Input: `{"data": {"a": 1}}`, Want: formatted(`{"a":1}`)},
		{Name: "TextParsed", Config: parse("text", `{"case": "lower"}`), Input: `{"data": "A"}`, Want: parsed(`"a"`)},
		{Name: "Base64", Config: format("base64", `{}`), Input: `{"data": "ÿ?>"}`, Want: formatted("w78/Pg==")},
		{Name: "Base64URLSafe", Config: format("base64", `{"url_safe": true}`), Input: `{"data": "ÿ?>"}`, Want: formatted("w78_Pg==")},
		{Name: "Base64Parsed", Config: parse("base64", `{}`), Input: `{"data": "w78_Pg"}`, Want: parsed(`"ÿ?>"`)},
		{Name: "Base64Bad", Config: parse("base64", `{}`), Input: `{"data": "w7!"}`, Code: fault.InvalidInput, Part: "column 3"},
		{Name: "Base64NotText", Config: parse("base64", `{}`), Input: `{"data": "/w=="}`, Code: fault.InvalidInput, Part: "UTF-8"},
		{Name: "URL", Config: format("url", `{}`), Input: `{"data": "a b&c"}`, Want: formatted("a+b%26c")},
		{Name: "URLQuery", Config: format("url", `{}`), Input: `{"data": {"b": "x y", "a": [1, 2]}}`, Want: formatted("b=x+y&a=1&a=2")},
		{Name: "URLParsed", Config: parse("url", `{}`), Input: `{"data": "a+b%26c"}`, Want: parsed(`"a b&c"`)},
		{Name: "URLQueryParsed", Config: parse("url", `{"query": true}`), Input: `{"data": "?b=x+y&a=1&a=2"}`, Want: parsed(`{"b": "x y", "a": ["1", "2"]}`)},
		{Name: "URLBad", Config: parse("url", `{}`), Input: `{"data": "%zz"}`, Code: fault.InvalidInput},
	})
}

// TestData_Bombs gives data of a few hundred kilobytes that would become gigabytes, or take hours.
func TestData_Bombs(t *testing.T) {
	t.Parallel()
	list := func(n int, record string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(record+",", n), ",") + "]"
	}
	counted := func(n int, format string) string {
		return "[" + strings.TrimSuffix(numbered(n, format+","), ",") + "]"
	}
	aliases := `a: &a ` + strings.Repeat("x", 100_000) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", 10_000), ",") + "]\n"
	kinds().Check(t, "ACTION.DATA_TRANSFORMATION", []nodetest.Case{
		{Name: "Join", Config: `{"operation": "join", "join_config": {"left_key": "k"}}`, Input: `{"data": ` + list(300, `{"k": 1, "a": "`+strings.Repeat("x", 1000)+`"}`) + `, "right": ` + list(300, `{"k": 1}`) + `}`, Code: fault.TooLarge, Part: "filter"},
		{Name: "Pivot", Config: `{"operation": "pivot", "pivot_config": {"index": "m", "columns": "m", "values": "m"}}`, Input: `{"data": ` + counted(2000, `{"m": "`+strings.Repeat("x", 100)+`%d"}`) + `}`, Code: fault.TooLarge, Part: "filter"},
		{Name: "Flatten", Config: `{"operation": "flatten", "flatten_config": {"path": "l"}}`, Input: `{"data": [{"l": ` + list(10_000, "1") + `, "rest": "` + strings.Repeat("x", 10_000) + `"}]}`, Code: fault.TooLarge, Part: "filter"},
	})
	kinds().Check(t, "ACTION.DATA_FORMATTING", []nodetest.Case{
		{Name: "Aliases", Config: `{"format_type": "yaml", "direction": "parse"}`, Input: `{"data": ` + quoted(aliases) + `}`, Code: fault.TooLarge, Part: "aliases"},
		// Looking each of them up among all the others would take minutes.
		{Name: "Columns", Config: `{"format_type": "csv", "direction": "parse"}`, Input: `{"data": ` + quoted(numbered(100_000, "c%d,")+"c\n"+strings.Repeat(",", 100_000)+"\n") + `}`, Want: map[string]string{"result": `{"data": [{"c": ""}]}`}},
	})
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // no text fails to encode
	}
	return string(raw)
}

// The script of a transformation is read as a conversion function is: three languages, told by their form.
func TestDataTransformation_Scripts(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"Python":     "def convert(x):\n    return [{'n': r['a'] + 1} for r in x['data']]",
		"Lambda":     "lambda x: [{'n': r['a'] + 1} for r in x['items']]",
		"JavaScript": "x => x.value.map(r => ({n: r.a + 1}))",
		"Expression": "map(data, r => {'n': r.a + 1})",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome, err := kinds().Run(t, "ACTION.DATA_TRANSFORMATION", nodetest.NewCall(t, nodetest.Text(map[string]any{"operation": "custom", "transformation_script": script}), `{"items":[{"a":1},{"a":2}]}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(outcome.(node.Done)["result"]); !strings.Contains(got, `"transformed_data":[{"n":2},{"n":3}]`) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}
