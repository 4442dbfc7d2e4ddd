package builtin_test

import (
	"encoding/json"
	"slices"
	"testing"

	"tandem/fault"
	"tandem/node"
)

func TestManual(t *testing.T) {
	t.Parallel()
	checkCases(t, "TRIGGER.MANUAL", []keyCase{
		{name: "HandsInputsOn", config: `{"trigger_name": "Go"}`, input: `{"n": 1, "user_id": "eve"}`,
			want: map[string]string{"result": `{"n": 1, "user_id": "ada", "execution_id": "exec_1", "trigger_time": "2030-01-31T09:00:00Z", "trigger_message": "Go"}`}},
		{name: "InputsFit", config: `{"input_schema": {"required": ["n"]}}`, input: `{"n": 1}`, want: map[string]string{"result": `{"n": 1}`}},
		{name: "InputsDoNotFit", config: `{"input_schema": {"required": ["n"]}}`, input: `{}`, code: fault.InvalidInput, part: "n"},
	})
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	checkCases(t, "CALL.EMPTY", []keyCase{
		{name: "Nothing", input: `{"a": 1}`, want: map[string]string{"result": `{}`}},
		{name: "PassesThrough", config: `{"pass_through": true, "timeout": 5}`, input: `{"a": 1}`, want: map[string]string{"result": `{"a": 1}`}},
		{name: "UnknownField", config: `{"pass_trough": true}`, code: fault.InvalidConfig, part: `did you mean "pass_through"`},
	})
	if got := done(t, "CALL.EMPTY", newCall(t, "", `{"a": 1}`))["result"]; string(got) != "{}" {
		t.Errorf("got %s", got)
	}
}

func TestIf(t *testing.T) {
	t.Parallel()
	yes, no := map[string]string{"true": `{"condition_result": true}`}, map[string]string{"false": `{"condition_result": false}`}
	checkCases(t, "FLOW.IF", []keyCase{
		{name: "True", config: `{"condition_expression": "x > 3"}`, input: `{"x": 4}`, want: map[string]string{"true": `{"x": 4, "condition_result": true}`}},
		{name: "False", config: `{"condition_expression": "x > 3"}`, input: `{"x": 2}`, want: map[string]string{"false": `{"x": 2, "condition_result": false}`}},
		{name: "OlderName", config: `{"condition": "true"}`, want: yes},
		{name: "Boolean", config: `{"condition_expression": true}`, want: yes},
		{name: "NullIsFalse", config: `{"condition_expression": "x"}`, input: `{"x": null}`, want: no},
		{name: "MissingIsFalse", config: `{"condition_expression": "data.y.z"}`, input: `{}`, want: no},
		{name: "EmptyListIsTrue", config: `{"condition_expression": "data"}`, input: `{"data": []}`, want: yes},
		{name: "ListAsAWhole", config: `{"condition_expression": "data.length == 2"}`, input: `{"data": [1, 2]}`, want: yes},
		{name: "JavaScript", config: `{"condition_expression": "data.x > 3 && !data.tags.includes('a')"}`, input: `{"x": 4, "tags": ["b"]}`, want: yes},
		{name: "ErrorFails", config: `{"condition_expression": "x > 'a'"}`, input: `{"x": 1}`, code: fault.ExpressionError},
		{name: "UnknownName", config: `{"condition_expression": "y"}`, code: fault.ExpressionError},
		{name: "Missing", config: `{}`, code: fault.InvalidConfig, part: "condition_expression"},
	})
}

func TestSwitch(t *testing.T) {
	t.Parallel()
	const cases = `"switch_value": "x", "cases": [{"case": 1, "output_key": "one"}, {"case": "1", "output_port": "text"}, {"case": "two"}, {"case": 1, "output_key": "late"}]`
	branch := func(operate, left, right string) string {
		return `{"branches": [{"branch_id": "hit", "conditions": [{"left": ` + left + `, "operate": "` + operate + `", "right": ` + right + `}]}]}`
	}
	hit, miss := map[string]string{"hit": `{"branch_id": "hit"}`}, map[string]string{"default": `{"branch_id": "default"}`}
	list := []keyCase{
		{name: "FirstCase", config: `{` + cases + `}`, input: `{"x": 1.0}`, want: map[string]string{"one": `{"x": 1.0, "branch_id": "one"}`}},
		{name: "NoConversion", config: `{` + cases + `}`, input: `{"x": "1"}`, want: map[string]string{"text": `{"branch_id": "text"}`}},
		{name: "OwnKey", config: `{` + cases + `}`, input: `{"x": "two"}`, want: map[string]string{"two": `{"branch_id": "two"}`}},
		{name: "Default", config: `{` + cases + `}`, input: `{"x": null}`, want: miss},
		{name: "NamedDefault", config: `{` + cases + `, "default_output_port": "other"}`, input: `{"x": 9}`, want: map[string]string{"other": `{"branch_id": "other"}`}},
		{name: "DeepCase", config: `{"switch_value": "data.l", "cases": [{"case": [1, {"a": 2}], "output_key": "deep"}]}`, input: `{"l": [1, {"a": 2}]}`, want: map[string]string{"deep": `{}`}},
		{name: "NoValue", config: `{"cases": [{"case": 1}]}`, code: fault.InvalidConfig, part: "switch_value"},
		{name: "NoForm", config: `{}`, code: fault.InvalidConfig},
		{name: "TwoForms", config: `{` + cases + `, "branches": []}`, input: `{"x": 1}`, code: fault.InvalidConfig},
		{name: "ReservedCase", config: `{"switch_value": "1", "cases": [{"case": 1, "output_key": "result"}]}`, code: fault.InvalidConfig, part: "reserved"},
		{name: "ReservedDefault", config: `{"switch_value": "1", "cases": [{"case": 1, "output_key": "a"}], "default_output_key": "error"}`, code: fault.InvalidConfig, part: "reserved"},
		{name: "Choices", config: `{"propose": "?", "choices": [{"branch": "a"}]}`, code: fault.InvalidConfig, part: "llm_profile"},
		{name: "WrittenOrder", config: `{"branches": [{"branch_id": "d", "is_default": true}, {"branch_id": "a", "condition": "x > 1"}, {"branch_id": "b", "condition": "x > 0"}]}`,
			input: `{"x": 2}`, want: map[string]string{"a": `{"branch_id": "a"}`}},
		{name: "DefaultLast", config: `{"branches": [{"branch_id": "d", "is_default": true}, {"branch_id": "a", "condition": "x > 1"}]}`, input: `{"x": 1}`, want: map[string]string{"d": `{}`}},
		{name: "EqualIDs", config: `{"branches": [{"branch_id": "a", "condition": "true"}, {"branch_id": "a", "condition": "true"}]}`, code: fault.InvalidConfig},
		{name: "TwoDefaults", config: `{"branches": [{"branch_id": "a", "is_default": true}, {"branch_id": "b", "is_default": true}]}`, code: fault.InvalidConfig},
		{name: "ReservedBranch", config: `{"branches": [{"branch_id": "main", "condition": "true"}]}`, code: fault.InvalidConfig, part: "reserved"},
		{name: "NoCondition", config: `{"branches": [{"branch_id": "a"}]}`, code: fault.InvalidConfig},
		{name: "UnknownOperator", config: branch("same", "1", "1"), code: fault.InvalidConfig, part: "same"},
		{name: "BrokenCondition", config: `{"branches": [{"branch_id": "a", "condition": "1 < 'a'"}]}`, code: fault.ExpressionError},
		{name: "And", config: `{"branches": [{"branch_id": "hit", "conditions": [{"left": 1, "operate": "equal", "right": 1}, {"left": 1, "operate": "less", "right": 0}]}]}`, want: miss},
		{name: "Or", config: `{"branches": [{"branch_id": "hit", "logic": "OR", "conditions": [{"left": 1, "operate": "equal", "right": 1}, {"left": 1, "operate": "less", "right": 0}]}]}`, want: hit},
	}
	for _, c := range []struct {
		operate, left, right string
		holds                bool
	}{
		{"equal", `1`, `1.0`, true}, {"equal", `1`, `"1"`, false}, {"not_equal", `1`, `"1"`, true}, {"string_equal", `"a"`, `"a"`, true},
		{"string_equal", `1`, `1`, false}, {"string_not_equal", `1`, `"a"`, false}, {"number_greater", `2`, `1`, true}, {"greater", `"2"`, `1`, false},
		{"greater_equal", `1`, `1`, true}, {"less", `1`, `2`, true}, {"less_equal", `3`, `2`, false}, {"greater", `null`, `1`, false},
		{"contain", `[1, 2]`, `2.0`, true}, {"list_contain", `"abc"`, `"b"`, false}, {"string_contain", `"abc"`, `"b"`, true}, {"dict_contain", `{"a": 1}`, `"a"`, true},
		{"not_contain", `[1]`, `2`, true}, {"not_contain", `5`, `2`, false}, {"starts_with", `"abc"`, `"ab"`, true}, {"ends_with", `"abc"`, `"bc"`, true},
		{"starts_with", `["a"]`, `"a"`, false}, {"in", `2`, `[1, 2]`, true}, {"number_in", `"a"`, `["a"]`, false}, {"in", `"a"`, `5`, false},
		{"empty", `null`, `null`, true}, {"empty", `""`, `null`, true}, {"empty", `[]`, `null`, true}, {"empty", `0`, `null`, false},
		{"string_empty", `[]`, `null`, false}, {"not_empty", `"a"`, `null`, true}, {"not_empty", `null`, `null`, false}, {"list_not_empty", `"a"`, `null`, false},
		{"bool_equal", `true`, `true`, true}, {"bool_equal", `1`, `true`, false},
	} {
		want := miss
		if c.holds {
			want = hit
		}
		list = append(list, keyCase{name: c.operate + c.left + c.right, config: branch(c.operate, c.left, c.right), want: want})
	}
	checkCases(t, "FLOW.SWITCH", list)
}

func TestSort(t *testing.T) {
	t.Parallel()
	people := `{"data": [{"n": "b", "a": 2}, {"n": "a", "a": 1}, {"n": "c"}, {"n": "B", "a": 2}]}`
	result := func(sorted, indices string) map[string]string {
		return map[string]string{"result": `{"sorted_data": ` + sorted + `, "original_indices": ` + indices + `}`, "sorted": sorted, "metadata": `{"original_indices": ` + indices + `}`}
	}
	checkCases(t, "FLOW.SORT", []keyCase{
		{name: "Ascending", config: `{"sort_field": "a"}`, input: people, want: result(`[{"n": "a"}, {"n": "b"}, {"n": "B"}, {"n": "c"}]`, `[1, 0, 3, 2]`)},
		{name: "DescendingIsStable", config: `{"sort_field": "a", "order": "DESC"}`, input: people, want: result(`[{"n": "b"}, {"n": "B"}, {"n": "a"}, {"n": "c"}]`, `[0, 3, 1, 2]`)},
		{name: "NullsFirst", config: `{"sort_field": "a", "nulls": "first"}`, input: people, want: result(`[{"n": "c"}, {"n": "a"}, {"n": "b"}, {"n": "B"}]`, `[2, 1, 0, 3]`)},
		{name: "CodePoints", config: `{"sort_field": "n"}`, input: people, want: result(`[{"n": "B"}, {"n": "a"}, {"n": "b"}, {"n": "c"}]`, `[3, 1, 0, 2]`)},
		{name: "CaseIgnored", config: `{"sort_field": "n", "case_sensitive": false}`, input: people, want: result(`[{"n": "a"}, {"n": "b"}, {"n": "B"}, {"n": "c"}]`, `[1, 0, 3, 2]`)},
		{name: "SeveralFields", config: `{"sort_fields": [{"field": "a", "order": "desc"}, {"field": "n", "order": "desc"}]}`, input: people,
			want: result(`[{"n": "b"}, {"n": "B"}, {"n": "a"}, {"n": "c"}]`, `[0, 3, 1, 2]`)},
		{name: "TheItem", config: `{"sort_field": "."}`, input: `{"data": [3, 1, 2]}`, want: result(`[1, 2, 3]`, `[1, 2, 0]`)},
		{name: "MixedTypes", config: `{"sort_field": "."}`, input: `{"data": [{"a": 1}, "b", null, 2, true, [1], false, "a"]}`,
			want: result(`[false, true, 2, "a", "b", [1], {"a": 1}, null]`, `[6, 4, 3, 7, 1, 5, 0, 2]`)},
		{name: "LargeWholeNumbers", config: `{"sort_field": "."}`, input: `{"data": [9007199254740993, 9007199254740992]}`, want: result(`[9007199254740992, 9007199254740993]`, `[1, 0]`)},
		{name: "Override", config: `{"sort_field": "a"}`, input: `{"data": [{"b": 1}, {"b": 2}], "sort_override": {"sort_field": "b", "order": "desc"}}`, want: result(`[{"b": 2}, {"b": 1}]`, `[1, 0]`)},
		{name: "EmptyList", config: `{"sort_field": "a"}`, input: `{"data": []}`, want: result(`[]`, `[]`)},
		{name: "DataPrefix", config: `{"sort_field": "data.a"}`, input: `{"data": [{"a": 2}, {"a": 1}]}`, want: result(`[{"a": 1}, {"a": 2}]`, `[1, 0]`)},
		{name: "NoField", config: `{}`, input: people, code: fault.InvalidConfig, part: "sort_field"},
		{name: "BadOverride", config: `{"sort_field": "a"}`, input: `{"data": [], "sort_override": 5}`, code: fault.InvalidInput, part: "sort_override"},
	})
}

func TestListInput(t *testing.T) {
	t.Parallel()
	sorted := func(list string) map[string]string {
		return map[string]string{"result": `{"sorted_data": ` + list + `}`, "sorted": list, "metadata": `{}`}
	}
	const plain = `{"sort_field": "."}`
	checkCases(t, "FLOW.SORT", []keyCase{
		{name: "Data", config: plain, input: `{"rows": [9], "data": [1]}`, want: sorted(`[1]`)},
		{name: "UsualNameInOrder", config: plain, input: `{"rows": [9], "merged_data": [1]}`, want: sorted(`[1]`)},
		{name: "NotAListIsPassedOver", config: plain, input: `{"data": {"a": 1}, "results": [1]}`, want: sorted(`[1]`)},
		{name: "OnlyList", config: plain, input: `{"orders": [1], "n": 2}`, want: sorted(`[1]`)},
		{name: "OneValue", config: plain, input: `{"data": {"a": 1}}`, want: sorted(`[{"a": 1}]`)},
		{name: "Null", config: plain, input: `{"data": null}`, want: sorted(`[]`)},
		{name: "ItemsAfterData", config: plain, input: `{"items": 5, "x": [1], "y": [2]}`, want: sorted(`[5]`)},
		{name: "Path", config: `{"sort_field": ".", "items_path": "a[0][\"odd key\"].b"}`, input: `{"data": [9], "a": [{"odd key": {"b": [1]}}]}`, want: sorted(`[1]`)},
		{name: "PathLeavesDataOut", config: `{"sort_field": ".", "items_path": "b"}`, input: `{"data": {"b": [1]}}`, want: sorted(`[1]`)},
		{name: "PathMissing", config: `{"sort_field": ".", "items_path": "nope"}`, input: `{"data": [1]}`, want: sorted(`[]`)},
		{name: "TwoLists", config: plain, input: `{"a": [1], "b": [2]}`, code: fault.InvalidInput, part: "a, b"},
		{name: "Nothing", config: plain, input: `{"a": 1}`, code: fault.InvalidInput, part: "a"},
		{name: "BadPath", config: `{"sort_field": ".", "items_path": "a..b"}`, input: `{}`, code: fault.InvalidConfig, part: "a..b"},
	})
}

func TestMerge(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, config string
		from         []string
		want         string
		code         fault.Code
	}{
		{name: "Concatenate", from: []string{`[1, 2]`, `null`, `2`, `{"a": 1}`, `[]`}, want: `[1, 2, 2, {"a": 1}]`},
		{name: "AllEmpty", from: []string{`[]`, `null`}, want: `[]`},
		{name: "Nothing", want: `[]`},
		{name: "ConcatenateKeepFirst", config: `{"handle_duplicates": "keep_first"}`, from: []string{`[1, 2]`, `[2.0, 1]`}, want: `[1, 2]`},
		{name: "UnionPutsTheLastAtTheFirstPlace", config: `{"merge_strategy": "union", "merge_key": "id"}`,
			from: []string{`[{"id": 1, "v": "a"}, {"id": 2}]`, `[{"id": 1, "v": "b"}]`}, want: `[{"id": 1, "v": "b"}, {"id": 2}]`},
		{name: "UnionKeepLast", config: `{"merge_strategy": "union", "merge_key": "id", "handle_duplicates": "keep_last"}`, from: []string{`[{"id": 1, "v": "a"}]`, `[{"id": 1, "v": "b"}]`}, want: `[{"id": 1, "v": "b"}]`},
		{name: "UnionKeepFirst", config: `{"merge_strategy": "union", "merge_key": "id", "handle_duplicates": "keep_first"}`, from: []string{`[{"id": 1, "v": "a"}]`, `[{"id": 1, "v": "b"}]`}, want: `[{"id": 1, "v": "a"}]`},
		{name: "UnionKeepAll", config: `{"merge_strategy": "union", "handle_duplicates": "keep_all"}`, from: []string{`[1]`, `[1]`}, want: `[1, 1]`},
		{name: "UnionDeep", config: `{"merge_strategy": "union"}`, from: []string{`[{"a": [1], "b": 2}, "1"]`, `[{"b": 2.0, "a": [1]}, 1]`}, want: `[{"a": [1], "b": 2.0}, "1", 1]`},
		{name: "UnionWithoutTheKey", config: `{"merge_strategy": "union", "merge_key": "id"}`, from: []string{`[{"a": 1}, {"a": 1}, 5]`}, want: `[{"a": 1}, {"a": 1}, 5]`},
		{name: "ByKeyOuter", config: `{"merge_strategy": "by_key", "merge_key": "id"}`,
			from: []string{`[{"id": 1, "a": 1}, {"x": 0}]`, `[{"id": 2}, {"id": 1, "a": 2, "b": 3}]`}, want: `[{"id": 1, "a": 2, "b": 3}, {"id": 2}, {"x": 0}]`},
		{name: "ByKeyInner", config: `{"merge_strategy": "by_key", "merge_key": "id", "join": "inner"}`,
			from: []string{`[{"id": 1}, {"id": 3}]`, `[{"id": 2}, {"id": 1, "b": 3}]`}, want: `[{"id": 1, "b": 3}]`},
		{name: "ByKeyInnerWithAnEmptyBranch", config: `{"merge_strategy": "by_key", "merge_key": "id", "join": "inner"}`, from: []string{`[{"id": 1}]`, `null`}, want: `[]`},
		{name: "ByKeyLeft", config: `{"merge_strategy": "by_key", "merge_key": "id", "join": "left"}`,
			from: []string{`[{"id": 1}, {"id": 3}]`, `[{"id": 2}, {"id": 1, "b": 3}]`}, want: `[{"id": 1, "b": 3}, {"id": 3}]`},
		{name: "ByKeyNotAnObject", config: `{"merge_strategy": "by_key", "merge_key": "id"}`, from: []string{`[5]`}, code: fault.InvalidInput},
		{name: "ByKeyNoKey", config: `{"merge_strategy": "by_key"}`, from: []string{`[]`}, code: fault.InvalidConfig},
		{name: "ZipLongest", config: `{"merge_strategy": "zip"}`, from: []string{`[{"a": 1}, {"a": 2}]`, `[{"b": 1}]`}, want: `[{"a": 1, "b": 1}, [{"a": 2}, null]]`},
		{name: "ZipShortest", config: `{"merge_strategy": "zip", "zip_length": "shortest"}`, from: []string{`[1, 2]`, `["x"]`, `[true, false]`}, want: `[[1, "x", true]]`},
		{name: "First", config: `{"merge_strategy": "first_complete"}`, from: []string{`{"a": 1}`}, want: `[{"a": 1}]`},
		{name: "ItemsPath", config: `{"items_path": "rows"}`, from: []string{`{"rows": [1]}`, `{"rows": 2}`, `{}`}, want: `[1, 2]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			call := newCall(t, c.config, "")
			call.TimedOut = true
			for i, payload := range c.from {
				call.Contributions = append(call.Contributions, node.Contribution{Node: string(rune('a' + i)), Payload: json.RawMessage(payload)})
			}
			if c.code != "" {
				_, err := run(t, "FLOW.MERGE", call)
				wantError(t, err, c.code, "")
				return
			}
			checkDone(t, done(t, "FLOW.MERGE", call), map[string]string{"result": `{"timed_out": true, "merged_data": ` + c.want + `}`})
		})
	}
	for _, c := range []struct{ config, mapping string }{
		{`{"merge_strategy": "union"}`, `[{"source": "a", "range": [0, 2]}, {"source": "b", "range": [2, 2]}, {"source": "c", "range": [2, 3]}]`},
		{`{"merge_strategy": "by_key", "merge_key": "k"}`, `[{"source": "a", "range": [0, 2]}, {"source": "b", "range": [2, 2]}, {"source": "c", "range": [2, 3]}]`},
		{`{"merge_strategy": "by_key", "merge_key": "only"}`, `[{"source": "a", "range": [0, 2]}, {"source": "b", "range": [2, 4]}, {"source": "c", "range": [4, 5]}]`},
		{`{"merge_strategy": "zip"}`, `[{"source": "a", "range": [0, 2]}, {"source": "b", "range": [0, 2]}, {"source": "c", "range": [0, 1]}]`},
		{`{"merge_strategy": "zip", "zip_length": "shortest"}`, `[{"source": "a", "range": [0, 1]}, {"source": "b", "range": [0, 1]}, {"source": "c", "range": [0, 1]}]`},
		{`{"merge_strategy": "concatenate", "merge_key": "k", "handle_duplicates": "keep_last"}`, `[{"source": "a", "range": [0, 2]}, {"source": "b", "range": [2, 2]}, {"source": "c", "range": [2, 3]}]`},
	} {
		call := newCall(t, c.config, "")
		for i, payload := range []string{`[{"k": 1}, {"k": 2}]`, `[{"k": 2}, {"k": 1}]`, `[{"k": 3}]`} {
			call.Contributions = append(call.Contributions, node.Contribution{Node: string(rune('a' + i)), Payload: json.RawMessage(payload)})
		}
		checkDone(t, done(t, "FLOW.MERGE", call), map[string]string{"result": `{"source_mapping": ` + c.mapping + `}`})
	}
	call := newCall(t, "", "")
	call.Contributions = []node.Contribution{{Node: "a", Payload: json.RawMessage(`[1, 2]`)}, {Node: "b", Payload: json.RawMessage(`3`)}}
	checkDone(t, done(t, "FLOW.MERGE", call), map[string]string{
		"result": `{"timed_out": false, "source_mapping": [{"source": "a", "range": [0, 2]}, {"source": "b", "range": [2, 3]}], "merge_stats": {"source_count": 2, "input_count": 3, "merged_count": 3}}`})
}

func TestSplit(t *testing.T) {
	t.Parallel()
	const predicates = `{"split_mode": "predicate", "predicate_paths": {"vip": "customer.vip", "large": "item.total > limit"}`
	checkCases(t, "FLOW.SPLIT", []keyCase{
		{name: "FirstInWrittenOrder", config: predicates + `}`, input: `{"limit": 10, "data": [{"customer": {"vip": true}, "total": 50}, {"total": 50}, {"total": 1}]}`,
			want: map[string]string{"vip": `[{"customer": {"vip": true}}]`, "large": `[{"total": 50}]`, "unmatched": `[{"total": 1}]`, "result": `{"counts": {"vip": 1, "large": 1, "unmatched": 1}}`}},
		{name: "All", config: predicates + `, "match": "all"}`, input: `{"limit": 10, "data": [{"customer": {"vip": true}, "total": 50}]}`,
			want: map[string]string{"vip": `[{}]`, "large": `[{}]`, "result": `{"counts": {"vip": 1, "large": 1, "unmatched": 0}}`}},
		{name: "EmptyList", config: predicates + `}`, input: `{"limit": 10, "data": []}`, want: map[string]string{"result": `{"counts": {"vip": 0}}`}},
		{name: "OneValue", config: predicates + `}`, input: `{"limit": 10, "data": {"customer": {"vip": 1}}}`, want: map[string]string{"vip": `{"customer": {"vip": 1}}`, "result": `{}`}},
		{name: "TheRecordItself", config: `{"split_mode": "predicate", "predicate_paths": {"big": "total > 3"}}`, input: `{"total": 5}`, want: map[string]string{"big": `{"total": 5}`, "result": `{}`}},
		{name: "MissingFieldIsNull", config: `{"split_mode": "predicate", "predicate_paths": {"big": "total > 3"}}`, input: `{"data": [{"total": 5}, {}]}`, want: map[string]string{"big": `[{"total": 5}]`, "unmatched": `[{}]`, "result": `{}`}},
		{name: "ReservedPredicate", config: `{"split_mode": "predicate", "predicate_paths": {"unmatched": "a"}}`, input: `{"data": []}`, code: fault.InvalidConfig, part: "reserved"},
		{name: "NoPredicates", config: `{"split_mode": "predicate"}`, input: `{"data": []}`, code: fault.InvalidConfig, part: "predicate_paths"},
		{name: "PredicateNotAText", config: `{"split_mode": "predicate", "predicate_paths": {"a": 5}}`, input: `{"data": []}`, code: fault.InvalidConfig, part: "predicate_paths.a"},
		{name: "PredicateFails", config: `{"split_mode": "predicate", "predicate_paths": {"a": "item < 'x'"}}`, input: `{"data": [1]}`, code: fault.ExpressionError},
		{name: "ByKey", config: `{"split_mode": "by_key", "by_key": ["a", "b", "c"]}`, input: `{"a": {"x": 1}, "b": null}`, want: map[string]string{"a": `{"x": 1}`, "result": `{"counts": {"a": 1, "b": 0, "c": 0}}`}},
		{name: "ByKeyTwice", config: `{"split_mode": "by_key", "by_key": ["a", "a"]}`, input: `{"a": 1}`, code: fault.InvalidConfig, part: "twice"},
		{name: "ByKeyReserved", config: `{"split_mode": "by_key", "by_key": ["branch"]}`, input: `{"branch": 1}`, code: fault.InvalidConfig, part: "reserved"},
		{name: "ByKeyNotAnObject", config: `{"split_mode": "by_key", "by_key": ["a"], "items_path": "l"}`, input: `{"l": [1]}`, code: fault.InvalidInput},
		{name: "ByKeyNone", config: `{"split_mode": "by_key"}`, code: fault.InvalidConfig, part: "by_key"},
		{name: "NoItems", config: `{}`, input: `{"data": []}`, want: map[string]string{"result": `{"results": [], "successful_iterations": 0, "failed_iterations": 0, "errors": []}`}},
	})
}

func TestFilter(t *testing.T) {
	t.Parallel()
	filter := func(more string) string { return `{"conditions": [` + more }
	result := func(kept, excluded string) map[string]string {
		w := map[string]string{"result": `{"filtered_data": ` + kept + `, "excluded_data": ` + excluded + `}`, "statistics": `{}`}
		if kept != `[]` {
			w["passed"] = kept
		}
		return w
	}
	partition := func(kept, excluded string) map[string]string {
		w := result(kept, excluded)
		w["filtered"] = excluded
		return w
	}
	const numbers, adults = `{"data": [{"a": 1}, {"a": 5}, {"a": null}, {}, {"a": "x"}]}`, `{"field": "a", "operator": "greater_than", "value": 3}]`
	checkCases(t, "FLOW.FILTER", []keyCase{
		{name: "Include", config: filter(adults + `}`), input: numbers, want: result(`[{"a": 5}]`, `[{"a": 1}, {"a": null}, {}, {"a": "x"}]`)},
		{name: "ExcludeKeepsTheOthers", config: filter(adults + `, "filter_mode": "exclude"}`), input: numbers, want: result(`[{"a": 1}]`, `[{"a": 5}, {"a": null}, {}, {"a": "x"}]`)},
		{name: "Partition", config: filter(adults + `, "filter_mode": "partition"}`), input: numbers, want: partition(`[{"a": 5}]`, `[{"a": 1}, {"a": null}, {}, {"a": "x"}]`)},
		{name: "NullsIncluded", config: filter(adults + `, "filter_mode": "exclude", "null_handling": "include"}`), input: numbers, want: result(`[{"a": 1}, {"a": null}, {}]`, `[{"a": 5}, {"a": "x"}]`)},
		{name: "NullsAreEmpty", config: filter(`{"field": "a", "operator": "less_than", "value": 3}], "null_handling": "treat_as_empty"}`), input: numbers, want: result(`[{"a": 1}, {"a": null}, {}]`, `[{"a": 5}, {"a": "x"}]`)},
		{name: "ErrorsIncluded", config: filter(adults + `, "error_handling": "include_with_warning"}`), input: numbers, want: result(`[{"a": 5}, {"a": "x"}]`, `[{"a": 1}, {"a": null}, {}]`)},
		{name: "ErrorsFail", config: filter(adults + `, "error_handling": "fail_on_error"}`), input: numbers, code: fault.InvalidInput, part: "item 4"},
		{name: "Or", config: filter(`{"field": "a", "operator": "equals", "value": 1}, {"field": "a", "operator": "equals", "value": 2}], "logical_operator": "or"}`), input: `{"data": [{"a": 1}, {"a": 2}, {"a": 3}]}`, want: result(`[{"a": 1}, {"a": 2}]`, `[{"a": 3}]`)},
		{name: "Not", config: filter(`{"field": "a", "operator": "equals", "value": 1}, {"field": "a", "operator": "equals", "value": 2}], "logical_operator": "NOT"}`), input: `{"data": [{"a": 1}, {"a": 2}, {"a": 3}]}`, want: result(`[{"a": 3}]`, `[{"a": 1}, {"a": 2}]`)},
		{name: "SortThenLimit", config: filter(`{"field": "a", "operator": "greater_than", "value": 0}], "sort_filtered_results": true, "sort_field": "a", "sort_order": "desc", "max_results": 2}`), input: `{"data": [{"a": 1}, {"a": 3}, {"a": 2}]}`, want: result(`[{"a": 3}, {"a": 2}]`, `[{"a": 1}]`)},
		{name: "NoResultsAllowed", config: filter(adults + `, "max_results": 0}`), input: `{"data": [{"a": 5}]}`, want: result(`[]`, `[{"a": 5}]`)},
		{name: "EmptyList", config: filter(adults + `, "filter_mode": "partition"}`), input: `{"data": []}`, want: result(`[]`, `[]`)},
		{name: "CustomFunction", config: `{"filter_type": "custom_function", "custom_filter_function": "x => x.a > 1"}`, input: numbers, want: result(`[{"a": 5}]`, `[{"a": 1}, {"a": null}, {}, {"a": "x"}]`)},
		{name: "CustomFunctionInPython", config: `{"filter_type": "custom_function", "custom_filter_function": "lambda x: (x.get('a') or 0) == 5", "error_handling": "fail_on_error"}`, input: `{"data": [{"a": 5}, {}]}`, want: result(`[{"a": 5}]`, `[{}]`)},
		{name: "CustomExpression", config: `{"filter_type": "custom_function", "custom_filter_function": "a > 1"}`, input: numbers, code: fault.InvalidConfig, part: "custom_filter_function"},
		{name: "NoConditions", config: `{}`, input: numbers, code: fault.InvalidConfig, part: "conditions"},
		{name: "Expression", config: filter(`{"expression": "item.a > 1 && b"}], "filter_type": "complex_expression"}`), input: `{"data": [{"a": 2, "b": true}, {"a": 2}]}`, want: result(`[{"a": 2, "b": true}]`, `[{"a": 2}]`)},
		{name: "ExpressionOnValues", config: filter(`{"expression": "item > 1"}], "filter_type": "complex_expression"}`), input: `{"data": [1, 2]}`, want: result(`[2]`, `[1]`)},
		{name: "ExpressionErrorIsTheItems", config: filter(`{"expression": "item > 1"}], "filter_type": "complex_expression"}`), input: `{"data": [2, "x"]}`, want: result(`[2]`, `["x"]`)},
		{name: "Regex", config: filter(`{"field": "a", "pattern": "^x"}], "filter_type": "regex_pattern", "case_sensitive": false}`), input: `{"data": [{"a": "Xy"}, {"a": "yx"}, {"a": 1}]}`, want: result(`[{"a": "Xy"}]`, `[{"a": "yx"}, {"a": 1}]`)},
		{name: "RegexBad", config: filter(`{"field": "a", "pattern": "("}], "filter_type": "regex_pattern"}`), input: numbers, code: fault.InvalidConfig},
		{name: "Range", config: filter(`{"field": "a", "min_value": 1, "max_value": 5}], "filter_type": "range_filter"}`), input: `{"data": [{"a": 1}, {"a": 5}, {"a": 6}]}`, want: result(`[{"a": 1}, {"a": 5}]`, `[{"a": 6}]`)},
		{name: "RangeOpen", config: filter(`{"field": "a", "min_value": 1, "inclusive": false}], "filter_type": "range_filter"}`), input: `{"data": [{"a": 1}, {"a": 5}]}`, want: result(`[{"a": 5}]`, `[{"a": 1}]`)},
		{name: "RangeWithoutBounds", config: filter(`{"field": "a"}], "filter_type": "range_filter"}`), input: numbers, code: fault.InvalidConfig},
		{name: "Exists", config: filter(`{"field": "a"}], "filter_type": "exists_filter"}`), input: numbers, want: result(`[{"a": 1}, {"a": 5}, {"a": null}, {"a": "x"}]`, `[{}]`)},
		{name: "DoesNotExist", config: filter(`{"field": "a", "exists": false}], "filter_type": "exists_filter"}`), input: numbers, want: result(`[{}]`, `[{"a": 1}, {"a": 5}, {"a": null}, {"a": "x"}]`)},
		{name: "Type", config: filter(`{"field": "a", "type": "string"}], "filter_type": "type_filter"}`), input: numbers, want: result(`[{"a": "x"}]`, `[{"a": 1}, {"a": 5}, {"a": null}, {}]`)},
		{name: "TypeInteger", config: filter(`{"field": ".", "type": "integer"}], "filter_type": "type_filter"}`), input: `{"data": [1, 1.5, 2.0]}`, want: result(`[1, 2.0]`, `[1.5]`)},
		{name: "TypeNull", config: filter(`{"field": "a", "type": "null"}], "filter_type": "type_filter"}`), input: numbers, want: result(`[{"a": null}, {}]`, `[{"a": 1}, {"a": 5}, {"a": "x"}]`)},
		{name: "TypeUnknown", config: filter(`{"field": "a", "type": "color"}], "filter_type": "type_filter"}`), input: numbers, code: fault.InvalidConfig},
		{name: "ArrayContains", config: filter(`{"field": "t", "value": "x"}], "filter_type": "array_contains"}`), input: `{"data": [{"t": ["x", "y"]}, {"t": ["y"]}, {"t": "x"}]}`, want: result(`[{"t": ["x", "y"]}]`, `[{"t": ["y"]}, {"t": "x"}]`)},
		{name: "ArrayContainsAny", config: filter(`{"field": "t", "value": ["x", "z"]}], "filter_type": "array_contains"}`), input: `{"data": [{"t": ["x"]}, {"t": ["y"]}]}`, want: result(`[{"t": ["x"]}]`, `[{"t": ["y"]}]`)},
		{name: "ArrayContainsAll", config: filter(`{"field": "t", "value": ["x", "z"], "mode": "all"}], "filter_type": "array_contains"}`), input: `{"data": [{"t": ["z", "x"]}, {"t": ["x"]}]}`, want: result(`[{"t": ["z", "x"]}]`, `[{"t": ["x"]}]`)},
		{name: "Fuzzy", config: filter(`{"field": ".", "value": "kitten"}], "filter_type": "fuzzy_match"}`), input: `{"data": ["kitten", "kittem", "sitting", 5]}`, want: result(`["kitten", "kittem"]`, `["sitting", 5]`)},
		{name: "FuzzyThreshold", config: filter(`{"field": ".", "value": "kitten", "threshold": 0.5}], "filter_type": "fuzzy_match"}`), input: `{"data": ["sitting", "dog"]}`, want: result(`["sitting"]`, `["dog"]`)},
		{name: "IsNull", config: filter(`{"field": "a", "operator": "is_null"}]}`), input: numbers, want: result(`[{"a": null}, {}]`, `[{"a": 1}, {"a": 5}, {"a": "x"}]`)},
		{name: "IsNotNull", config: filter(`{"field": "a", "operator": "is_not_null"}]}`), input: numbers, want: result(`[{"a": 1}, {"a": 5}, {"a": "x"}]`, `[{"a": null}, {}]`)},
		{name: "In", config: filter(`{"field": ".", "operator": "in", "value": [1, "A"]}], "case_sensitive": false}`), input: `{"data": [1, "a", "b"]}`, want: result(`[1, "a"]`, `["b"]`)},
		{name: "NotIn", config: filter(`{"field": ".", "operator": "not_in", "value": [1]}]}`), input: `{"data": [1, 2]}`, want: result(`[2]`, `[1]`)},
		{name: "InNoList", config: filter(`{"field": ".", "operator": "in", "value": 1}]}`), input: `{"data": [1, 2]}`, code: fault.InvalidConfig},
		{name: "Contains", config: filter(`{"field": ".", "operator": "contains", "value": "a"}]}`), input: `{"data": ["xay", ["a"], {"a": 1}, "b", 5]}`, want: result(`["xay", ["a"], {"a": 1}]`, `["b", 5]`)},
		{name: "NotContains", config: filter(`{"field": ".", "operator": "not_contains", "value": "a"}]}`), input: `{"data": ["a", "b", 5]}`, want: result(`["b"]`, `["a", 5]`)},
		{name: "StartsWith", config: filter(`{"field": ".", "operator": "starts_with", "value": "a"}]}`), input: `{"data": ["ab", "ba"]}`, want: result(`["ab"]`, `["ba"]`)},
		{name: "EndsWith", config: filter(`{"field": ".", "operator": "ends_with", "value": "a"}]}`), input: `{"data": ["ab", "ba"]}`, want: result(`["ba"]`, `["ab"]`)},
		{name: "Equals", config: filter(`{"field": ".", "operator": "equals", "value": 1}]}`), input: `{"data": [1.0, "1", true]}`, want: result(`[1.0]`, `["1", true]`)},
		{name: "NotEquals", config: filter(`{"field": ".", "operator": "not_equals", "value": "A"}], "case_sensitive": false}`), input: `{"data": ["a", "b"]}`, want: result(`["b"]`, `["a"]`)},
		{name: "GreaterOrEqual", config: filter(`{"field": ".", "operator": "greater_or_equal", "value": 2}]}`), input: `{"data": [1, 2]}`, want: result(`[2]`, `[1]`)},
		{name: "LessOrEqual", config: filter(`{"field": ".", "operator": "less_or_equal", "value": 1}]}`), input: `{"data": [1, 2]}`, want: result(`[1]`, `[2]`)},
		{name: "NoOperator", config: filter(`{"field": "a"}]}`), input: numbers, code: fault.InvalidConfig, part: "operator"},
	})
	got := done(t, "FLOW.FILTER", newCall(t, filter(adults+`}`), numbers))
	checkDone(t, node.Done{"result": got["result"], "statistics": got["statistics"]}, map[string]string{
		"result":     `{"validation_errors": [{"index": 4, "error": "\"a\" must be of the type of the value it is compared with, not string"}]}`,
		"statistics": `{"total_count": 5, "kept_count": 1, "excluded_count": 4, "error_count": 1}`})
}

func TestFilter_WarnsAboutWhatItKeeps(t *testing.T) {
	t.Parallel()
	call := newCall(t, `{"conditions": [{"field": ".", "operator": "less_than", "value": 1}], "error_handling": "include_with_warning"}`, `{"data": ["x", 0]}`)
	var levels []node.Level
	call.Log = func(level node.Level, _ string, _ map[string]any) { levels = append(levels, level) }
	done(t, "FLOW.FILTER", call)
	if !slices.Equal(levels, []node.Level{node.Warn}) {
		t.Errorf("logged %v", levels)
	}
}

func TestPassThrough_KeepsTheInputAsItCame(t *testing.T) {
	t.Parallel()
	input := `{"z":1.50,"odd \"key\"":"<&>","a":12345678901234567890,"é":null,"condition_result":"old"}`
	got := done(t, "FLOW.IF", newCall(t, `{"condition": true}`, input))["true"]
	if want := `{"z":1.50,"odd \"key\"":"<&>","a":12345678901234567890,"é":null,"condition_result":true}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
