package builtin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/fault"
)

func TestTransformation(t *testing.T) {
	t.Parallel()
	out := func(data string) map[string]string {
		return map[string]string{"result": `{"transformed_data": ` + data + `}`}
	}
	const staff = `{"data": [{"d": "a", "salary": 10}, {"d": "b", "salary": 20}, {"d": "a", "salary": 31}, {"d": "b", "salary": null}, {"d": null, "salary": 1}, {"d": null, "salary": 2}]}`
	checkCases(t, "ACTION.DATA_TRANSFORMATION", []keyCase{
		{name: "Map", config: `{"field_mapping": {"name": "user.name", "double": "n * 2", "all": "item", "at": "index", "const": 5, "none": "user.age"}}`,
			input: `{"data": [{"user": {"name": "Ada"}, "n": 2, "_id": 7}]}`, want: out(`[{"_id": 7, "name": "Ada", "double": 4, "all": {"n": 2}, "at": 0, "const": 5, "none": null}]`)},
		{name: "MapReadsTheInput", config: `{"field_mapping": {"x": "n + context.rate"}}`, input: `{"data": [{"n": 2}], "context": {"rate": 3}}`, want: out(`[{"x": 5}]`)},
		{name: "MapWithoutMapping", config: `{}`, input: `{"data": [1, 2]}`, want: map[string]string{"result": `{"transformed_data": [1, 2], "original_count": 2, "output_count": 2, "transformation_stats": {"operation": "map"}}`}},
		{name: "OneRecord", config: `{"operation": "extract_fields", "field_mapping": {"x": "a"}}`, input: `{"a": 1}`, want: out(`[{"x": 1}]`)},
		{name: "MapFails", config: `{"field_mapping": {"x": "a < 'b'"}}`, input: `{"data": [{"a": 1}]}`, code: fault.ExpressionError},
		{name: "Filter", config: `{"operation": "filter", "filter_conditions": [{"field": "salary", "operator": "greater_than", "value": 10}, {"expression": "d != 'b'"}]}`, input: staff, want: out(`[{"d": "a", "salary": 31}]`)},
		{name: "FilterByOtherTypes", config: `{"operation": "filter", "filter_conditions": [{"field": "salary", "min_value": 15}, {"field": "d", "pattern": "b"}, {"field": "d", "type": "string"}, {"field": "d", "exists": true}]}`, input: staff, want: out(`[{"d": "b", "salary": 20}]`)},
		{name: "FilterNoConditions", config: `{"operation": "filter"}`, input: staff, code: fault.InvalidConfig},
		{name: "Sort", config: `{"operation": "sort", "sort_config": {"field": "n", "direction": "desc"}}`, input: `{"data": [{"n": 1}, {}, {"n": 2}]}`, want: out(`[{"n": 2}, {"n": 1}, {}]`)},
		{name: "SortNoField", config: `{"operation": "sort"}`, input: staff, code: fault.InvalidConfig},
		{name: "GroupBy", config: `{"operation": "group_by", "group_by_fields": ["d"], "aggregation_functions": {"salary": "avg", "max_salary": "max", "people": "count", "count_salary": "count"}}`, input: staff,
			want: out(`[{"d": "a", "salary": 20.5, "max_salary": 31, "people": 2, "count_salary": 2}, {"d": "b", "salary": 20, "max_salary": 20, "people": 2, "count_salary": 1}, {"d": null, "salary": 1, "max_salary": 1, "people": 1, "count_salary": 1}, {"d": null, "salary": 2, "max_salary": 2, "people": 1, "count_salary": 1}]`)},
		{name: "GroupByWithoutFunctions", config: `{"operation": "group_by", "group_by_fields": ["d"]}`, input: `{"data": [{"d": 1}, {"d": 1.0}]}`, want: out(`[{"d": 1, "count": 2, "items": [{"d": 1}, {"d": 1.0}]}]`)},
		{name: "GroupByNoFields", config: `{"operation": "group_by"}`, input: staff, code: fault.InvalidConfig},
		{name: "Aggregate", config: `{"operation": "aggregate", "aggregation_functions": {"sum_v": "sum", "min_v": "min", "first_v": "first", "last_v": "last", "list_v": "list", "count_distinct_v": "count_distinct", "v": "avg"}}`,
			input: `{"data": [{"v": 3}, {"v": null}, {"v": 1}, {"v": 3}]}`, want: out(`[{"sum_v": 7, "min_v": 1, "first_v": 3, "last_v": 3, "list_v": [3, 1, 3], "count_distinct_v": 2, "v": 2.3333333333333335}]`)},
		{name: "AggregateNothing", config: `{"operation": "aggregate", "aggregation_functions": {"v": "avg", "n": "count", "sum_v": "sum", "max_v": "max", "list_v": "list"}}`, input: `{"data": []}`,
			want: out(`[{"v": null, "n": 0, "sum_v": 0, "max_v": null, "list_v": []}]`)},
		{name: "AggregateExactly", config: `{"operation": "aggregate", "aggregation_functions": {"v": "sum"}}`, input: `{"data": [{"v": 9007199254740993}, {"v": 1}]}`, want: out(`[{"v": 9007199254740994}]`)},
		{name: "AggregateText", config: `{"operation": "aggregate", "aggregation_functions": {"v": "sum"}}`, input: `{"data": [{"v": "x"}]}`, code: fault.InvalidInput, part: `"v"`},
		{name: "AggregateUnknown", config: `{"operation": "aggregate", "aggregation_functions": {"v": "median"}}`, input: `{"data": []}`, code: fault.InvalidConfig, part: "aggregation_functions.v"},
		{name: "AggregateMixed", config: `{"operation": "aggregate", "aggregation_functions": {"v": "max"}}`, input: `{"data": [{"v": "x"}, {"v": 1}]}`, code: fault.InvalidInput},
		{name: "AggregateNoFunctions", config: `{"operation": "aggregate"}`, input: staff, code: fault.InvalidConfig},
		{name: "JoinInner", config: `{"operation": "join", "join_config": {"left_key": "id", "right_key": "ref"}}`, input: joined, want: out(`[{"id": 1, "ref": 1, "x": "a"}, {"id": 1, "ref": 1, "x": "b"}]`)},
		{name: "JoinLeft", config: `{"operation": "join", "join_config": {"left_key": "id", "right_key": "ref", "type": "left"}}`, input: joined, want: out(`[{"x": "a"}, {"x": "b"}, {"id": 2}, {"id": null}]`)},
		{name: "JoinRight", config: `{"operation": "join", "join_config": {"left_key": "id", "right_key": "ref", "type": "right"}}`, input: joined, want: out(`[{"x": "a"}, {"x": "b"}, {"ref": null}, {"ref": 9}]`)},
		{name: "JoinFull", config: `{"operation": "join", "join_config": {"left_key": "id", "right_key": "ref", "type": "full"}}`, input: joined, want: out(`[{"x": "a"}, {"x": "b"}, {"id": 2}, {"id": null}, {"ref": null}, {"ref": 9}]`)},
		{name: "JoinSameKey", config: `{"operation": "join", "join_config": {"left_key": "id", "right_path": "other.rows"}}`, input: `{"data": [{"id": 1}], "other": {"rows": [{"id": 1, "v": 2}]}}`, want: out(`[{"id": 1, "v": 2}]`)},
		{name: "JoinNoKey", config: `{"operation": "join"}`, input: joined, code: fault.InvalidConfig, part: "left_key"},
		{name: "JoinNoObject", config: `{"operation": "join", "join_config": {"left_key": "id"}}`, input: `{"data": [1]}`, code: fault.InvalidInput},
		{name: "Flatten", config: `{"operation": "flatten"}`, input: `{"data": [1, [2, [3]], []]}`, want: out(`[1, 2, [3]]`)},
		{name: "FlattenDeep", config: `{"operation": "flatten", "flatten_config": {"depth": 2}}`, input: `{"data": [1, [2, [3]]]}`, want: out(`[1, 2, 3]`)},
		{name: "FlattenAtAPath", config: `{"operation": "flatten", "flatten_config": {"path": "lines"}}`, input: `{"data": [{"o": 1, "lines": [{"p": 2}, 3]}, {"o": 2, "lines": []}, {"o": 3}]}`, want: out(`[{"o": 1, "p": 2}, {"o": 1, "lines": 3}]`)},
		{name: "Pivot", config: `{"operation": "pivot", "pivot_config": {"index": "m", "columns": "c", "values": "v", "function": "sum"}}`,
			input: `{"data": [{"m": 1, "c": "x", "v": 2}, {"m": 1, "c": "y", "v": 3}, {"m": 2, "c": "x", "v": 4}, {"m": 1, "c": "x", "v": 5}]}`, want: out(`[{"m": 1, "x": 7, "y": 3}, {"m": 2, "x": 4, "y": null}]`)},
		{name: "PivotIncomplete", config: `{"operation": "pivot", "pivot_config": {"index": "m"}}`, input: staff, code: fault.InvalidConfig},
		{name: "CSV", config: `{"output_format": "csv"}`, input: `{"data": [{"a": 1, "b": "x,y"}, {"a": "=1"}]}`, want: map[string]string{"result": `{"formatted": "a,b\n1,\"x,y\"\n\"'=1\",\n"}`}},
		{name: "XML", config: `{"output_format": "xml"}`, input: `{"data": [{"a": "<"}]}`, want: map[string]string{"result": `{"formatted": "<root><item><a>&lt;</a></item></root>"}`}},
		{name: "Script", config: `{"operation": "custom", "transformation_script": "x => x.data.map(y => y.a * 2)"}`, input: `{"data": [{"a": 1}, {"a": 2}]}`, want: out(`[2, 4]`)},
		{name: "ScriptInPython", config: `{"operation": "custom", "transformation_script": "def f(x):\n    return [y['a'] for y in x['data'] if y['a'] > 1]"}`, input: `{"data": [{"a": 1}, {"a": 2}]}`, want: out(`[2]`)},
		{name: "ScriptThatRaises", config: `{"operation": "custom", "transformation_script": "lambda x: x['nothing']"}`, input: staff, code: fault.CodeError},
	})
	got := done(t, "ACTION.DATA_TRANSFORMATION", newCall(t, `{"field_mapping": {"x": "a"}, "preserve_metadata": false}`, `{"data": [{"a": 1, "_id": 2}]}`))
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
	list := []keyCase{
		{name: "SchemaHolds", config: schema + `}`, input: `{"data": {"n": 1}}`, want: valid(`{"valid": true, "errors": [], "data": {"n": 1}, "valid_items": [{"n": 1}], "invalid_items": []}`)},
		{name: "WholeInput", config: schema + `}`, input: `{"n": 1}`, want: valid(`{"data": {"n": 1}}`)},
		{name: "AtAPath", config: schema + `, "items_path": "a.b"}`, input: `{"a": {"b": {"n": 1}}}`, want: valid(`{"data": {"n": 1}}`)},
		{name: "AllProblems", config: schema + `, "rules": [{"field": "m", "rule": "required", "message": "say m"}]}`, input: `{"data": {"n": "x", "l": ["ok", "a"]}}`,
			want: invalid(`{"valid": false, "errors": [{"path": "l[1]", "rule": "minLength"}, {"path": "n", "rule": "type"}, {"path": "m", "rule": "required", "message": "say m"}], "valid_items": [], "invalid_items": [{"n": "x"}]}`)},
		{name: "Fails", config: schema + `, "on_invalid": "fail"}`, input: `{"data": {}}`, code: fault.ValidationFailed, part: "n"},
		{name: "FailsNotWhenValid", config: schema + `, "on_invalid": "fail"}`, input: `{"data": {"n": 1}}`, want: valid(`{"valid": true}`)},
		{name: "NothingToCheck", config: `{}`, input: `{}`, code: fault.InvalidConfig},
		{name: "BadSchema", config: `{"schema": {"type": "colour"}}`, input: `{}`, code: fault.InvalidConfig, part: "schema"},
		{name: "RemoteSchema", config: `{"schema": {"$ref": "file:///etc/passwd"}}`, input: `{}`, code: fault.InvalidConfig, part: "$defs"},
		{name: "LocalReference", config: `{"schema": {"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}}`, input: `{"data": 5}`, want: valid(`{"valid": true}`)},
		{name: "WildNumber", config: `{"schema": {"minimum": 1}}`, input: `{"data": 1e999999999}`, want: invalid(`{"errors": [{"rule": "number"}]}`)},
		{name: "Each", config: `{"each": true, "rules": [{"field": "n", "rule": "min", "value": 2}]}`, input: `{"data": [{"n": 1}, {"n": 2}]}`,
			want: map[string]string{"result": `{"valid": false, "errors": [{"path": "[0].n", "rule": "min"}], "data": [{"n": 1}, {"n": 2}], "valid_items": [{"n": 2}], "invalid_items": [{"n": 1}]}`, "valid": `[{"n": 2}]`, "invalid": `[{"n": 1}]`}},
		{name: "EachAllValid", config: `{"each": true, "rules": [{"field": ".", "rule": "type", "value": "number"}]}`, input: `{"data": [1]}`, want: map[string]string{"result": `{"valid": true}`, "valid": `[1]`}},
		{name: "EachOfNothing", config: `{"each": true, "rules": [{"field": ".", "rule": "required"}]}`, input: `{"data": []}`, want: map[string]string{"result": `{"valid": true, "errors": []}`}},
		{name: "EachUnique", config: `{"each": true, "rules": [{"field": "id", "rule": "unique"}]}`, input: `{"data": [{"id": 1}, {"id": 1.0}, {}, {}]}`,
			want: map[string]string{"result": `{"errors": [{"path": "[1].id", "rule": "unique"}]}`, "valid": `[{"id": 1}, {}, {}]`, "invalid": `[{"id": 1.0}]`}},
		{name: "RuleNeedsValue", config: `{"rules": [{"field": "a", "rule": "min"}]}`, input: `{}`, code: fault.InvalidConfig, part: "rules[0].value"},
		{name: "RuleUnknown", config: `{"rules": [{"field": "a", "rule": "nice"}]}`, input: `{}`, code: fault.InvalidConfig, part: "rules[0].rule"},
		{name: "RuleWithoutField", config: `{"rules": [{"rule": "required"}]}`, input: `{}`, code: fault.InvalidConfig, part: "rules[0].field"},
		{name: "BadPattern", config: `{"rules": [{"field": "a", "rule": "pattern", "value": "("}]}`, input: `{}`, code: fault.InvalidConfig},
		{name: "ExpressionFails", config: `{"rules": [{"field": "a", "rule": "expression", "value": "value < 'x'"}]}`, input: `{"a": 1}`, code: fault.ExpressionError},
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
		list = append(list, keyCase{name: c.rule + c.value + c.data, config: `{"rules": [{"field": "f", "rule": "` + c.rule + `", "value": ` + c.value + `}]}`, input: `{"data": {"f": ` + c.data + `}}`, want: want})
	}
	checkCases(t, "ACTION.DATA_VALIDATION", list)
}

func TestValidation_TellsAHundredProblems(t *testing.T) {
	t.Parallel()
	input := `{"data": [` + strings.TrimSuffix(strings.Repeat(`null,`, 150), ",") + `]}`
	got := done(t, "ACTION.DATA_VALIDATION", newCall(t, `{"each": true, "rules": [{"field": ".", "rule": "required"}]}`, input))
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
	checkCases(t, "ACTION.DATA_FORMATTING", []keyCase{
		{name: "Template", config: `{"format_type": "template", "template": "Dear Ada"}`, want: formatted("Dear Ada")},
		{name: "NoTemplate", config: `{"format_type": "template"}`, code: fault.InvalidConfig, part: "template"},
		{name: "NoType", config: `{}`, code: fault.InvalidConfig, part: "format_type"},
		{name: "UnknownOption", config: format("json", `{"indentt": 2}`), code: fault.InvalidConfig, part: `"indent"`},
		{name: "JSON", config: format("json", `{}`), input: `{"data": {"b": 1, "a": "<&"}}`, want: formatted(`{"b":1,"a":"<&"}`)},
		{name: "JSONIndented", config: format("json", `{"indent": 2}`), input: `{"data": {"b": 1}}`, want: formatted("{\n  \"b\": 1\n}")},
		{name: "JSONParsed", config: parse("json", `{}`), input: `{"data": "{\"a\": [1.50]}"}`, want: parsed(`{"a": [1.50]}`)},
		{name: "JSONBroken", config: parse("json", `{}`), input: `{"data": "{\n \"a\" 1}"}`, code: fault.InvalidInput, part: "line 2, column 6"},
		{name: "JSONCut", config: parse("json", `{}`), input: `{"data": "[1,"}`, code: fault.InvalidInput, part: "line 1, column"},
		{name: "ParseNoText", config: parse("json", `{}`), input: `{"data": 5}`, code: fault.InvalidInput, part: "number"},
		{name: "CSVFormulas", config: format("csv", `{}`), input: `{"data": [{"a": "=1", "b": -5, "c": "@x"}, {"a": "+1", "b": "-1", "c": "it's"}]}`, want: formatted("a,b,c\n\"'=1\",-5,\"'@x\"\n\"'+1\",\"'-1\",\"it's\"\n")},
		{name: "CSVOptions", config: format("csv", `{"delimiter": ";", "header": false, "columns": ["b", "a"]}`), input: `{"data": [{"a": "x;y", "b": null}]}`, want: formatted(";\"x;y\"\n")},
		{name: "CSVRows", config: format("csv", `{}`), input: `{"data": [[1, "a"], ["b\"c", true]]}`, want: formatted("1,a\n\"b\"\"c\",true\n")},
		{name: "CSVDelimiter", config: format("csv", `{"delimiter": "ab"}`), input: `{"data": []}`, code: fault.InvalidConfig, part: "delimiter"},
		{name: "CSVParsed", config: parse("csv", `{}`), input: `{"data": "a,b\n1,\"x\ny\"\n'=1,z\n"}`, want: parsed(`[{"a": "1", "b": "x\ny"}, {"a": "=1", "b": "z"}]`)},
		{name: "CSVParsedRows", config: parse("csv", `{"header": false}`), input: `{"data": "1,2\n"}`, want: parsed(`[["1", "2"]]`)},
		{name: "CSVBroken", config: parse("csv", `{}`), input: `{"data": "a\n\"x"}`, code: fault.InvalidInput, part: "line 2"},
		{name: "CSVRowTooLong", config: parse("csv", `{}`), input: `{"data": "a\n1,2\n"}`, code: fault.InvalidInput, part: "line 2, column 3"},
		{name: "XML", config: format("xml", `{"root": "order"}`), input: `{"data": {"id": 1, "line": ["a", "b"], "odd key": "&", "none": null}}`, want: formatted(`<order><id>1</id><line>a</line><line>b</line><field name="odd key">&amp;</field><none></none></order>`)},
		{name: "XMLParsed", config: parse("xml", `{}`), input: `{"data": "<o v=\"1\"><id>1</id><l>a</l><l>b</l><field name=\"odd key\">&amp;</field></o>"}`, want: parsed(`{"@v": "1", "id": "1", "l": ["a", "b"], "odd key": "&"}`)},
		{name: "XMLText", config: parse("xml", `{}`), input: `{"data": "<o a=\"1\">hi<b/></o>"}`, want: parsed(`{"@a": "1", "b": "", "#text": "hi"}`)},
		{name: "XMLEntities", config: parse("xml", `{}`), input: `{"data": "<!DOCTYPE o [<!ENTITY x \"y\">]><o>&x;</o>"}`, code: fault.InvalidInput, part: "document types"},
		{name: "XMLUnknownEntity", config: parse("xml", `{}`), input: `{"data": "<o>\n&x;</o>"}`, code: fault.InvalidInput, part: "line 2"},
		{name: "XMLBroken", config: parse("xml", `{}`), input: `{"data": "<a>\n</b>"}`, code: fault.InvalidInput, part: "line 2"},
		{name: "XMLTwoRoots", config: parse("xml", `{}`), input: `{"data": "<a/><b/>"}`, code: fault.InvalidInput, part: "second root"},
		{name: "XMLNothing", config: parse("xml", `{}`), input: `{"data": " "}`, code: fault.InvalidInput, part: "no element"},
		{name: "YAML", config: format("yaml", `{}`), input: `{"data": {"b": [1, "1"], "a": null}}`, want: formatted("b:\n    - 1\n    - \"1\"\na: null\n")},
		{name: "YAMLParsed", config: parse("yaml", `{}`), input: `{"data": "a: [1, x]\n2: yes\n"}`, want: parsed(`{"a": [1, "x"], "2": "yes"}`)},
		{name: "YAMLBroken", config: parse("yaml", `{}`), input: `{"data": "a: 1\n  b: [\n"}`, code: fault.InvalidInput, part: "line 2"},
		{name: "YAMLNotFinite", config: parse("yaml", `{}`), input: `{"data": ".inf"}`, code: fault.InvalidInput, part: "finite"},
		{name: "MarkdownTable", config: format("markdown", `{}`), input: `{"data": [{"a": "x|y", "b": 1}, {"a": "l\nm"}]}`, want: formatted("| a | b |\n| --- | --- |\n| x\\|y | 1 |\n| l<br>m |  |\n")},
		{name: "MarkdownObject", config: format("markdown", `{}`), input: `{"data": {"a": 1}}`, want: formatted("- **a**: 1\n")},
		{name: "MarkdownList", config: format("markdown", `{}`), input: `{"data": [1, "x"]}`, want: formatted("- 1\n- x\n")},
		{name: "MarkdownParsed", config: parse("markdown", `{}`), input: `{"data": "# x"}`, code: fault.Unsupported},
		{name: "HTMLEscapes", config: format("html", `{}`), input: `{"data": [{"<b>": "<script>\"'&"}]}`, want: formatted("<table><thead><tr><th>&lt;b&gt;</th></tr></thead><tbody><tr><td>&lt;script&gt;&#34;&#39;&amp;</td></tr></tbody></table>")},
		{name: "HTMLObject", config: format("html", `{}`), input: `{"data": {"a": "<"}}`, want: formatted("<dl><dt>a</dt><dd>&lt;</dd></dl>")},
		{name: "HTMLList", config: format("html", `{}`), input: `{"data": ["<", 1]}`, want: formatted("<ul><li>&lt;</li><li>1</li></ul>")},
		{name: "HTMLText", config: format("html", `{}`), input: `{"data": "<i>"}`, want: formatted("&lt;i&gt;")},
		{name: "Date", config: format("date", `{"date_format": "%d.%m.%Y %H:%M %z", "timezone": "Asia/Shanghai"}`), input: `{"data": "2030-01-31T20:00:00Z"}`, want: formatted("01.02.2030 04:00 +0800")},
		{name: "DateLetters", config: format("date", `{"date_format": "YYYY年MM月DD日 HH:mm", "timezone": "Asia/Shanghai"}`), input: `{"data": "2030-01-31T20:00:00Z"}`, want: formatted("2030年02月01日 04:00")},
		{name: "DateLettersParsed", config: parse("date", `{"date_format": "YYYY年M月D日", "timezone": "Asia/Shanghai"}`), input: `{"data": "2030年2月1日"}`, want: parsed(`"2030-01-31T16:00:00Z"`)},
		{name: "DateNoLayout", config: format("date", `{"date_format": "年月日"}`), input: `{"data": 0}`, code: fault.InvalidConfig, part: "no part of a date"},
		{name: "DateUnknownLetters", config: format("date", `{"date_format": "YYYY-QQ"}`), input: `{"data": 0}`, code: fault.InvalidConfig, part: `"QQ"`},
		{name: "JSONReadable", config: format("json", `{}`), input: `{"data": {"\u540d": "\u5f20\u003cb\u003e"}}`, want: formatted(`{"名":"张<b>"}`)},
		{name: "JSONReadableIndented", config: format("json", `{"indent": 1}`), input: `{"data": ["\u5f20\u003c"]}`, want: formatted("[\n \"张<\"\n]")},
		{name: "TextReadable", config: format("text", `{}`), input: `{"data": {"b": "\u5f20\u003c", "a": 1}}`, want: formatted(`{"b":"张<","a":1}`)},
		{name: "MarkdownReadable", config: format("markdown", `{}`), input: `{"data": {"a": {"b": "\u5f20"}}}`, want: formatted("- **a**: {\"b\":\"张\"}\n")},
		{name: "DateDefault", config: format("date", `{}`), input: `{"data": 0}`, want: formatted("1970-01-01T00:00:00Z")},
		{name: "DateBad", config: format("date", `{}`), input: `{"data": "soon"}`, code: fault.InvalidInput, part: "line 1, column 1"},
		{name: "DateBadZone", config: format("date", `{"timezone": "Moon"}`), input: `{"data": 0}`, code: fault.InvalidConfig, part: "Moon"},
		{name: "DateParsed", config: parse("date", `{"date_format": "%d.%m.%Y %H:%M", "timezone": "Asia/Shanghai"}`), input: `{"data": "01.02.2030 04:00"}`, want: parsed(`"2030-01-31T20:00:00Z"`)},
		{name: "DateParsedPlain", config: parse("date", `{}`), input: `{"data": "2030-01-31"}`, want: parsed(`"2030-01-31T00:00:00Z"`)},
		{name: "DateParsedBad", config: parse("date", `{"date_format": "%Y"}`), input: `{"data": "x"}`, code: fault.InvalidInput},
		{name: "DateLayoutBad", config: parse("date", `{"date_format": "%Q"}`), input: `{"data": "x"}`, code: fault.InvalidConfig},
		{name: "Number", config: format("number", `{"decimals": 2, "thousands_separator": ".", "decimal_separator": ","}`), input: `{"data": -1234567.005}`, want: formatted("-1.234.567,01")},
		{name: "NumberExact", config: format("number", `{}`), input: `{"data": 9007199254740993}`, want: formatted("9007199254740993")},
		{name: "NumberZero", config: format("number", `{"decimals": 1}`), input: `{"data": -0.04}`, want: formatted("0.0")},
		{name: "NumberBad", config: format("number", `{}`), input: `{"data": "x"}`, code: fault.InvalidInput},
		{name: "NumberParsed", config: parse("number", `{"thousands_separator": ".", "decimal_separator": ","}`), input: `{"data": " -1.234,5 "}`, want: parsed(`-1234.5`)},
		{name: "NumberParsedBad", config: parse("number", `{}`), input: `{"data": "true"}`, code: fault.InvalidInput},
		{name: "Text", config: format("text", `{"case": "upper", "trim": true}`), input: `{"data": " a "}`, want: formatted("A")},
		{name: "TextOfObject", config: format("text", `{}`), input: `{"data": {"a": 1}}`, want: formatted(`{"a":1}`)},
		{name: "TextParsed", config: parse("text", `{"case": "lower"}`), input: `{"data": "A"}`, want: parsed(`"a"`)},
		{name: "Base64", config: format("base64", `{}`), input: `{"data": "ÿ?>"}`, want: formatted("w78/Pg==")},
		{name: "Base64URLSafe", config: format("base64", `{"url_safe": true}`), input: `{"data": "ÿ?>"}`, want: formatted("w78_Pg==")},
		{name: "Base64Parsed", config: parse("base64", `{}`), input: `{"data": "w78_Pg"}`, want: parsed(`"ÿ?>"`)},
		{name: "Base64Bad", config: parse("base64", `{}`), input: `{"data": "w7!"}`, code: fault.InvalidInput, part: "column 3"},
		{name: "Base64NotText", config: parse("base64", `{}`), input: `{"data": "/w=="}`, code: fault.InvalidInput, part: "UTF-8"},
		{name: "URL", config: format("url", `{}`), input: `{"data": "a b&c"}`, want: formatted("a+b%26c")},
		{name: "URLQuery", config: format("url", `{}`), input: `{"data": {"b": "x y", "a": [1, 2]}}`, want: formatted("b=x+y&a=1&a=2")},
		{name: "URLParsed", config: parse("url", `{}`), input: `{"data": "a+b%26c"}`, want: parsed(`"a b&c"`)},
		{name: "URLQueryParsed", config: parse("url", `{"query": true}`), input: `{"data": "?b=x+y&a=1&a=2"}`, want: parsed(`{"b": "x y", "a": ["1", "2"]}`)},
		{name: "URLBad", config: parse("url", `{}`), input: `{"data": "%zz"}`, code: fault.InvalidInput},
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
	checkCases(t, "ACTION.DATA_TRANSFORMATION", []keyCase{
		{name: "Join", config: `{"operation": "join", "join_config": {"left_key": "k"}}`, input: `{"data": ` + list(300, `{"k": 1, "a": "`+strings.Repeat("x", 1000)+`"}`) + `, "right": ` + list(300, `{"k": 1}`) + `}`, code: fault.TooLarge, part: "filter"},
		{name: "Pivot", config: `{"operation": "pivot", "pivot_config": {"index": "m", "columns": "m", "values": "m"}}`, input: `{"data": ` + counted(2000, `{"m": "`+strings.Repeat("x", 100)+`%d"}`) + `}`, code: fault.TooLarge, part: "filter"},
		{name: "Flatten", config: `{"operation": "flatten", "flatten_config": {"path": "l"}}`, input: `{"data": [{"l": ` + list(10_000, "1") + `, "rest": "` + strings.Repeat("x", 10_000) + `"}]}`, code: fault.TooLarge, part: "filter"},
	})
	checkCases(t, "ACTION.DATA_FORMATTING", []keyCase{
		{name: "Aliases", config: `{"format_type": "yaml", "direction": "parse"}`, input: `{"data": ` + quoted(aliases) + `}`, code: fault.TooLarge, part: "aliases"},
		// Looking each of them up among all the others would take minutes.
		{name: "Columns", config: `{"format_type": "csv", "direction": "parse"}`, input: `{"data": ` + quoted(numbered(100_000, "c%d,")+"c\n"+strings.Repeat(",", 100_000)+"\n") + `}`, want: map[string]string{"result": `{"data": [{"c": ""}]}`}},
	})
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // no text fails to encode
	}
	return string(raw)
}
