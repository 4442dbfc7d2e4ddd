package flow_test

import (
	"encoding/json"
	"slices"
	"testing"

	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

func TestEmpty(t *testing.T) {
	t.Parallel()
	kinds().Check(t, "CALL.EMPTY", []nodetest.Case{
		{Name: "Nothing", Input: `{"a": 1}`, Want: map[string]string{"result": `{}`}},
		{Name: "PassesThrough", Config: `{"pass_through": true, "timeout": 5}`, Input: `{"a": 1}`, Want: map[string]string{"result": `{"a": 1}`}},
		{Name: "UnknownField", Config: `{"pass_trough": true}`, Code: fault.InvalidConfig, Part: `did you mean "pass_through"`},
	})
	if got := kinds().Done(t, "CALL.EMPTY", nodetest.NewCall(t, "", `{"a": 1}`))["result"]; string(got) != "{}" {
		t.Errorf("got %s", got)
	}
}

func TestIf(t *testing.T) {
	t.Parallel()
	yes, no := map[string]string{"true": `{"condition_result": true}`}, map[string]string{"false": `{"condition_result": false}`}
	kinds().Check(t, "FLOW.IF", []nodetest.Case{
		{Name: "True", Config: `{"condition_expression": "x > 3"}`, Input: `{"x": 4}`, Want: map[string]string{"true": `{"x": 4, "condition_result": true}`}},
		{Name: "False", Config: `{"condition_expression": "x > 3"}`, Input: `{"x": 2}`, Want: map[string]string{"false": `{"x": 2, "condition_result": false}`}},
		{Name: "OlderName", Config: `{"condition": "true"}`, Want: yes},
		{Name: "Boolean", Config: `{"condition_expression": true}`, Want: yes},
		{Name: "NullIsFalse", Config: `{"condition_expression": "x"}`, Input: `{"x": null}`, Want: no},
		{Name: "MissingIsFalse", Config: `{"condition_expression": "data.y.z"}`, Input: `{}`, Want: no},
		{Name: "EmptyListIsTrue", Config: `{"condition_expression": "data"}`, Input: `{"data": []}`, Want: yes},
		{Name: "ListAsAWhole", Config: `{"condition_expression": "data.length == 2"}`, Input: `{"data": [1, 2]}`, Want: yes},
		{Name: "JavaScript", Config: `{"condition_expression": "data.x > 3 && !data.tags.includes('a')"}`, Input: `{"x": 4, "tags": ["b"]}`, Want: yes},
		{Name: "ErrorFails", Config: `{"condition_expression": "x > 'a'"}`, Input: `{"x": 1}`, Code: fault.ExpressionError},
		{Name: "UnknownName", Config: `{"condition_expression": "y"}`, Code: fault.ExpressionError},
		{Name: "Missing", Config: `{}`, Code: fault.InvalidConfig, Part: "condition_expression"},
	})
}

func TestSwitch(t *testing.T) {
	t.Parallel()
	const cases = `"switch_value": "x", "cases": [{"case": 1, "output_key": "one"}, {"case": "1", "output_port": "text"}, {"case": "two"}, {"case": 1, "output_key": "late"}]`
	branch := func(operate, left, right string) string {
		return `{"branches": [{"branch_id": "hit", "conditions": [{"left": ` + left + `, "operate": "` + operate + `", "right": ` + right + `}]}]}`
	}
	hit, miss := map[string]string{"hit": `{"branch_id": "hit"}`}, map[string]string{"default": `{"branch_id": "default"}`}
	list := []nodetest.Case{
		{Name: "FirstCase", Config: `{` + cases + `}`, Input: `{"x": 1.0}`, Want: map[string]string{"one": `{"x": 1.0, "branch_id": "one"}`}},
		{Name: "NoConversion", Config: `{` + cases + `}`, Input: `{"x": "1"}`, Want: map[string]string{"text": `{"branch_id": "text"}`}},
		{Name: "OwnKey", Config: `{` + cases + `}`, Input: `{"x": "two"}`, Want: map[string]string{"two": `{"branch_id": "two"}`}},
		{Name: "Default", Config: `{` + cases + `}`, Input: `{"x": null}`, Want: miss},
		{Name: "NamedDefault", Config: `{` + cases + `, "default_output_port": "other"}`, Input: `{"x": 9}`, Want: map[string]string{"other": `{"branch_id": "other"}`}},
		{Name: "DeepCase", Config: `{"switch_value": "data.l", "cases": [{"case": [1, {"a": 2}], "output_key": "deep"}]}`, Input: `{"l": [1, {"a": 2}]}`, Want: map[string]string{"deep": `{}`}},
		{Name: "NoValue", Config: `{"cases": [{"case": 1}]}`, Code: fault.InvalidConfig, Part: "switch_value"},
		{Name: "NoForm", Config: `{}`, Code: fault.InvalidConfig},
		{Name: "TwoForms", Config: `{` + cases + `, "branches": []}`, Input: `{"x": 1}`, Code: fault.InvalidConfig},
		{Name: "ReservedCase", Config: `{"switch_value": "1", "cases": [{"case": 1, "output_key": "result"}]}`, Code: fault.InvalidConfig, Part: "reserved"},
		{Name: "ReservedDefault", Config: `{"switch_value": "1", "cases": [{"case": 1, "output_key": "a"}], "default_output_key": "error"}`, Code: fault.InvalidConfig, Part: "reserved"},
		{Name: "Choices", Config: `{"propose": "?", "choices": [{"branch": "a"}]}`, Code: fault.InvalidConfig, Part: "llm_profile"},
		{Name: "WrittenOrder", Config: `{"branches": [{"branch_id": "d", "is_default": true}, {"branch_id": "a", "condition": "x > 1"}, {"branch_id": "b", "condition": "x > 0"}]}`,
			Input: `{"x": 2}`, Want: map[string]string{"a": `{"branch_id": "a"}`}},
		{Name: "DefaultLast", Config: `{"branches": [{"branch_id": "d", "is_default": true}, {"branch_id": "a", "condition": "x > 1"}]}`, Input: `{"x": 1}`, Want: map[string]string{"d": `{}`}},
		{Name: "EqualIDs", Config: `{"branches": [{"branch_id": "a", "condition": "true"}, {"branch_id": "a", "condition": "true"}]}`, Code: fault.InvalidConfig},
		{Name: "TwoDefaults", Config: `{"branches": [{"branch_id": "a", "is_default": true}, {"branch_id": "b", "is_default": true}]}`, Code: fault.InvalidConfig},
		{Name: "ReservedBranch", Config: `{"branches": [{"branch_id": "main", "condition": "true"}]}`, Code: fault.InvalidConfig, Part: "reserved"},
		{Name: "NoCondition", Config: `{"branches": [{"branch_id": "a"}]}`, Code: fault.InvalidConfig},
		{Name: "UnknownOperator", Config: branch("same", "1", "1"), Code: fault.InvalidConfig, Part: "same"},
		{Name: "BrokenCondition", Config: `{"branches": [{"branch_id": "a", "condition": "1 < 'a'"}]}`, Code: fault.ExpressionError},
		{Name: "And", Config: `{"branches": [{"branch_id": "hit", "conditions": [{"left": 1, "operate": "equal", "right": 1}, {"left": 1, "operate": "less", "right": 0}]}]}`, Want: miss},
		{Name: "Or", Config: `{"branches": [{"branch_id": "hit", "logic": "OR", "conditions": [{"left": 1, "operate": "equal", "right": 1}, {"left": 1, "operate": "less", "right": 0}]}]}`, Want: hit},
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
		list = append(list, nodetest.Case{Name: c.operate + c.left + c.right, Config: branch(c.operate, c.left, c.right), Want: want})
	}
	kinds().Check(t, "FLOW.SWITCH", list)
}

func TestSort(t *testing.T) {
	t.Parallel()
	people := `{"data": [{"n": "b", "a": 2}, {"n": "a", "a": 1}, {"n": "c"}, {"n": "B", "a": 2}]}`
	result := func(sorted, indices string) map[string]string {
		return map[string]string{"result": `{"sorted_data": ` + sorted + `, "original_indices": ` + indices + `}`, "sorted": sorted, "metadata": `{"original_indices": ` + indices + `}`}
	}
	kinds().Check(t, "FLOW.SORT", []nodetest.Case{
		{Name: "Ascending", Config: `{"sort_field": "a"}`, Input: people, Want: result(`[{"n": "a"}, {"n": "b"}, {"n": "B"}, {"n": "c"}]`, `[1, 0, 3, 2]`)},
		{Name: "DescendingIsStable", Config: `{"sort_field": "a", "order": "DESC"}`, Input: people, Want: result(`[{"n": "b"}, {"n": "B"}, {"n": "a"}, {"n": "c"}]`, `[0, 3, 1, 2]`)},
		{Name: "NullsFirst", Config: `{"sort_field": "a", "nulls": "first"}`, Input: people, Want: result(`[{"n": "c"}, {"n": "a"}, {"n": "b"}, {"n": "B"}]`, `[2, 1, 0, 3]`)},
		{Name: "CodePoints", Config: `{"sort_field": "n"}`, Input: people, Want: result(`[{"n": "B"}, {"n": "a"}, {"n": "b"}, {"n": "c"}]`, `[3, 1, 0, 2]`)},
		{Name: "CaseIgnored", Config: `{"sort_field": "n", "case_sensitive": false}`, Input: people, Want: result(`[{"n": "a"}, {"n": "b"}, {"n": "B"}, {"n": "c"}]`, `[1, 0, 3, 2]`)},
		{Name: "SeveralFields", Config: `{"sort_fields": [{"field": "a", "order": "desc"}, {"field": "n", "order": "desc"}]}`, Input: people,
			Want: result(`[{"n": "b"}, {"n": "B"}, {"n": "a"}, {"n": "c"}]`, `[0, 3, 1, 2]`)},
		{Name: "TheItem", Config: `{"sort_field": "."}`, Input: `{"data": [3, 1, 2]}`, Want: result(`[1, 2, 3]`, `[1, 2, 0]`)},
		{Name: "MixedTypes", Config: `{"sort_field": "."}`, Input: `{"data": [{"a": 1}, "b", null, 2, true, [1], false, "a"]}`,
			Want: result(`[false, true, 2, "a", "b", [1], {"a": 1}, null]`, `[6, 4, 3, 7, 1, 5, 0, 2]`)},
		{Name: "LargeWholeNumbers", Config: `{"sort_field": "."}`, Input: `{"data": [9007199254740993, 9007199254740992]}`, Want: result(`[9007199254740992, 9007199254740993]`, `[1, 0]`)},
		{Name: "Override", Config: `{"sort_field": "a"}`, Input: `{"data": [{"b": 1}, {"b": 2}], "sort_override": {"sort_field": "b", "order": "desc"}}`, Want: result(`[{"b": 2}, {"b": 1}]`, `[1, 0]`)},
		{Name: "EmptyList", Config: `{"sort_field": "a"}`, Input: `{"data": []}`, Want: result(`[]`, `[]`)},
		{Name: "DataPrefix", Config: `{"sort_field": "data.a"}`, Input: `{"data": [{"a": 2}, {"a": 1}]}`, Want: result(`[{"a": 1}, {"a": 2}]`, `[1, 0]`)},
		{Name: "NoField", Config: `{}`, Input: people, Code: fault.InvalidConfig, Part: "sort_field"},
		{Name: "BadOverride", Config: `{"sort_field": "a"}`, Input: `{"data": [], "sort_override": 5}`, Code: fault.InvalidInput, Part: "sort_override"},
	})
}

func TestListInput(t *testing.T) {
	t.Parallel()
	sorted := func(list string) map[string]string {
		return map[string]string{"result": `{"sorted_data": ` + list + `}`, "sorted": list, "metadata": `{}`}
	}
	const plain = `{"sort_field": "."}`
	kinds().Check(t, "FLOW.SORT", []nodetest.Case{
		{Name: "Data", Config: plain, Input: `{"rows": [9], "data": [1]}`, Want: sorted(`[1]`)},
		{Name: "UsualNameInOrder", Config: plain, Input: `{"rows": [9], "merged_data": [1]}`, Want: sorted(`[1]`)},
		{Name: "NotAListIsPassedOver", Config: plain, Input: `{"data": {"a": 1}, "results": [1]}`, Want: sorted(`[1]`)},
		{Name: "OnlyList", Config: plain, Input: `{"orders": [1], "n": 2}`, Want: sorted(`[1]`)},
		{Name: "OneValue", Config: plain, Input: `{"data": {"a": 1}}`, Want: sorted(`[{"a": 1}]`)},
		{Name: "Null", Config: plain, Input: `{"data": null}`, Want: sorted(`[]`)},
		{Name: "ItemsAfterData", Config: plain, Input: `{"items": 5, "x": [1], "y": [2]}`, Want: sorted(`[5]`)},
		{Name: "Path", Config: `{"sort_field": ".", "items_path": "a[0][\"odd key\"].b"}`, Input: `{"data": [9], "a": [{"odd key": {"b": [1]}}]}`, Want: sorted(`[1]`)},
		{Name: "PathLeavesDataOut", Config: `{"sort_field": ".", "items_path": "b"}`, Input: `{"data": {"b": [1]}}`, Want: sorted(`[1]`)},
		{Name: "PathMissing", Config: `{"sort_field": ".", "items_path": "nope"}`, Input: `{"data": [1]}`, Want: sorted(`[]`)},
		{Name: "TwoLists", Config: plain, Input: `{"a": [1], "b": [2]}`, Code: fault.InvalidInput, Part: "a, b"},
		{Name: "Nothing", Config: plain, Input: `{"a": 1}`, Code: fault.InvalidInput, Part: "a"},
		{Name: "BadPath", Config: `{"sort_field": ".", "items_path": "a..b"}`, Input: `{}`, Code: fault.InvalidConfig, Part: "a..b"},
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
			call := nodetest.NewCall(t, c.config, "")
			call.TimedOut = true
			for i, payload := range c.from {
				call.Contributions = append(call.Contributions, node.Contribution{Node: string(rune('a' + i)), Payload: json.RawMessage(payload)})
			}
			if c.code != "" {
				_, err := kinds().Run(t, "FLOW.MERGE", call)
				nodetest.WantError(t, err, c.code, "")
				return
			}
			nodetest.CheckDone(t, kinds().Done(t, "FLOW.MERGE", call), map[string]string{"result": `{"timed_out": true, "merged_data": ` + c.want + `}`})
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
		call := nodetest.NewCall(t, c.config, "")
		for i, payload := range []string{`[{"k": 1}, {"k": 2}]`, `[{"k": 2}, {"k": 1}]`, `[{"k": 3}]`} {
			call.Contributions = append(call.Contributions, node.Contribution{Node: string(rune('a' + i)), Payload: json.RawMessage(payload)})
		}
		nodetest.CheckDone(t, kinds().Done(t, "FLOW.MERGE", call), map[string]string{"result": `{"source_mapping": ` + c.mapping + `}`})
	}
	call := nodetest.NewCall(t, "", "")
	call.Contributions = []node.Contribution{{Node: "a", Payload: json.RawMessage(`[1, 2]`)}, {Node: "b", Payload: json.RawMessage(`3`)}}
	nodetest.CheckDone(t, kinds().Done(t, "FLOW.MERGE", call), map[string]string{
		"result": `{"timed_out": false, "source_mapping": [{"source": "a", "range": [0, 2]}, {"source": "b", "range": [2, 3]}], "merge_stats": {"source_count": 2, "input_count": 3, "merged_count": 3}}`})
}

func TestSplit(t *testing.T) {
	t.Parallel()
	const predicates = `{"split_mode": "predicate", "predicate_paths": {"vip": "customer.vip", "large": "item.total > limit"}`
	kinds().Check(t, "FLOW.SPLIT", []nodetest.Case{
		{Name: "FirstInWrittenOrder", Config: predicates + `}`, Input: `{"limit": 10, "data": [{"customer": {"vip": true}, "total": 50}, {"total": 50}, {"total": 1}]}`,
			Want: map[string]string{"vip": `[{"customer": {"vip": true}}]`, "large": `[{"total": 50}]`, "unmatched": `[{"total": 1}]`, "result": `{"counts": {"vip": 1, "large": 1, "unmatched": 1}}`}},
		{Name: "All", Config: predicates + `, "match": "all"}`, Input: `{"limit": 10, "data": [{"customer": {"vip": true}, "total": 50}]}`,
			Want: map[string]string{"vip": `[{}]`, "large": `[{}]`, "result": `{"counts": {"vip": 1, "large": 1, "unmatched": 0}}`}},
		{Name: "EmptyList", Config: predicates + `}`, Input: `{"limit": 10, "data": []}`, Want: map[string]string{"result": `{"counts": {"vip": 0}}`}},
		{Name: "OneValue", Config: predicates + `}`, Input: `{"limit": 10, "data": {"customer": {"vip": 1}}}`, Want: map[string]string{"vip": `{"customer": {"vip": 1}}`, "result": `{}`}},
		{Name: "TheRecordItself", Config: `{"split_mode": "predicate", "predicate_paths": {"big": "total > 3"}}`, Input: `{"total": 5}`, Want: map[string]string{"big": `{"total": 5}`, "result": `{}`}},
		{Name: "MissingFieldIsNull", Config: `{"split_mode": "predicate", "predicate_paths": {"big": "total > 3"}}`, Input: `{"data": [{"total": 5}, {}]}`, Want: map[string]string{"big": `[{"total": 5}]`, "unmatched": `[{}]`, "result": `{}`}},
		{Name: "ReservedPredicate", Config: `{"split_mode": "predicate", "predicate_paths": {"unmatched": "a"}}`, Input: `{"data": []}`, Code: fault.InvalidConfig, Part: "reserved"},
		{Name: "NoPredicates", Config: `{"split_mode": "predicate"}`, Input: `{"data": []}`, Code: fault.InvalidConfig, Part: "predicate_paths"},
		{Name: "PredicateNotAText", Config: `{"split_mode": "predicate", "predicate_paths": {"a": 5}}`, Input: `{"data": []}`, Code: fault.InvalidConfig, Part: "predicate_paths.a"},
		{Name: "PredicateFails", Config: `{"split_mode": "predicate", "predicate_paths": {"a": "item < 'x'"}}`, Input: `{"data": [1]}`, Code: fault.ExpressionError},
		{Name: "ByKey", Config: `{"split_mode": "by_key", "by_key": ["a", "b", "c"]}`, Input: `{"a": {"x": 1}, "b": null}`, Want: map[string]string{"a": `{"x": 1}`, "result": `{"counts": {"a": 1, "b": 0, "c": 0}}`}},
		{Name: "ByKeyTwice", Config: `{"split_mode": "by_key", "by_key": ["a", "a"]}`, Input: `{"a": 1}`, Code: fault.InvalidConfig, Part: "twice"},
		{Name: "ByKeyReserved", Config: `{"split_mode": "by_key", "by_key": ["branch"]}`, Input: `{"branch": 1}`, Code: fault.InvalidConfig, Part: "reserved"},
		{Name: "ByKeyNotAnObject", Config: `{"split_mode": "by_key", "by_key": ["a"], "items_path": "l"}`, Input: `{"l": [1]}`, Code: fault.InvalidInput},
		{Name: "ByKeyNone", Config: `{"split_mode": "by_key"}`, Code: fault.InvalidConfig, Part: "by_key"},
		{Name: "NoItems", Config: `{}`, Input: `{"data": []}`, Want: map[string]string{"result": `{"results": [], "successful_iterations": 0, "failed_iterations": 0, "errors": []}`}},
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
	kinds().Check(t, "FLOW.FILTER", []nodetest.Case{
		{Name: "Include", Config: filter(adults + `}`), Input: numbers, Want: result(`[{"a": 5}]`, `[{"a": 1}, {"a": null}, {}, {"a": "x"}]`)},
		{Name: "ExcludeKeepsTheOthers", Config: filter(adults + `, "filter_mode": "exclude"}`), Input: numbers, Want: result(`[{"a": 1}]`, `[{"a": 5}, {"a": null}, {}, {"a": "x"}]`)},
		{Name: "Partition", Config: filter(adults + `, "filter_mode": "partition"}`), Input: numbers, Want: partition(`[{"a": 5}]`, `[{"a": 1}, {"a": null}, {}, {"a": "x"}]`)},
		{Name: "NullsIncluded", Config: filter(adults + `, "filter_mode": "exclude", "null_handling": "include"}`), Input: numbers, Want: result(`[{"a": 1}, {"a": null}, {}]`, `[{"a": 5}, {"a": "x"}]`)},
		{Name: "NullsAreEmpty", Config: filter(`{"field": "a", "operator": "less_than", "value": 3}], "null_handling": "treat_as_empty"}`), Input: numbers, Want: result(`[{"a": 1}, {"a": null}, {}]`, `[{"a": 5}, {"a": "x"}]`)},
		{Name: "ErrorsIncluded", Config: filter(adults + `, "error_handling": "include_with_warning"}`), Input: numbers, Want: result(`[{"a": 5}, {"a": "x"}]`, `[{"a": 1}, {"a": null}, {}]`)},
		{Name: "ErrorsFail", Config: filter(adults + `, "error_handling": "fail_on_error"}`), Input: numbers, Code: fault.InvalidInput, Part: "item 4"},
		{Name: "Or", Config: filter(`{"field": "a", "operator": "equals", "value": 1}, {"field": "a", "operator": "equals", "value": 2}], "logical_operator": "or"}`), Input: `{"data": [{"a": 1}, {"a": 2}, {"a": 3}]}`, Want: result(`[{"a": 1}, {"a": 2}]`, `[{"a": 3}]`)},
		{Name: "Not", Config: filter(`{"field": "a", "operator": "equals", "value": 1}, {"field": "a", "operator": "equals", "value": 2}], "logical_operator": "NOT"}`), Input: `{"data": [{"a": 1}, {"a": 2}, {"a": 3}]}`, Want: result(`[{"a": 3}]`, `[{"a": 1}, {"a": 2}]`)},
		{Name: "SortThenLimit", Config: filter(`{"field": "a", "operator": "greater_than", "value": 0}], "sort_filtered_results": true, "sort_field": "a", "sort_order": "desc", "max_results": 2}`), Input: `{"data": [{"a": 1}, {"a": 3}, {"a": 2}]}`, Want: result(`[{"a": 3}, {"a": 2}]`, `[{"a": 1}]`)},
		{Name: "NoResultsAllowed", Config: filter(adults + `, "max_results": 0}`), Input: `{"data": [{"a": 5}]}`, Want: result(`[]`, `[{"a": 5}]`)},
		{Name: "EmptyList", Config: filter(adults + `, "filter_mode": "partition"}`), Input: `{"data": []}`, Want: result(`[]`, `[]`)},
		{Name: "CustomFunction", Config: `{"filter_type": "custom_function", "custom_filter_function": "x => x.a > 1"}`, Input: numbers, Want: result(`[{"a": 5}]`, `[{"a": 1}, {"a": null}, {}, {"a": "x"}]`)},
		{Name: "CustomFunctionInPython", Config: `{"filter_type": "custom_function", "custom_filter_function": "lambda x: (x.get('a') or 0) == 5", "error_handling": "fail_on_error"}`, Input: `{"data": [{"a": 5}, {}]}`, Want: result(`[{"a": 5}]`, `[{}]`)},
		{Name: "CustomExpression", Config: `{"filter_type": "custom_function", "custom_filter_function": "a > 1"}`, Input: numbers, Code: fault.InvalidConfig, Part: "custom_filter_function"},
		{Name: "NoConditions", Config: `{}`, Input: numbers, Code: fault.InvalidConfig, Part: "conditions"},
		{Name: "Expression", Config: filter(`{"expression": "item.a > 1 && b"}], "filter_type": "complex_expression"}`), Input: `{"data": [{"a": 2, "b": true}, {"a": 2}]}`, Want: result(`[{"a": 2, "b": true}]`, `[{"a": 2}]`)},
		{Name: "ExpressionOnValues", Config: filter(`{"expression": "item > 1"}], "filter_type": "complex_expression"}`), Input: `{"data": [1, 2]}`, Want: result(`[2]`, `[1]`)},
		{Name: "ExpressionErrorIsTheItems", Config: filter(`{"expression": "item > 1"}], "filter_type": "complex_expression"}`), Input: `{"data": [2, "x"]}`, Want: result(`[2]`, `["x"]`)},
		{Name: "Regex", Config: filter(`{"field": "a", "pattern": "^x"}], "filter_type": "regex_pattern", "case_sensitive": false}`), Input: `{"data": [{"a": "Xy"}, {"a": "yx"}, {"a": 1}]}`, Want: result(`[{"a": "Xy"}]`, `[{"a": "yx"}, {"a": 1}]`)},
		{Name: "RegexBad", Config: filter(`{"field": "a", "pattern": "("}], "filter_type": "regex_pattern"}`), Input: numbers, Code: fault.InvalidConfig},
		{Name: "Range", Config: filter(`{"field": "a", "min_value": 1, "max_value": 5}], "filter_type": "range_filter"}`), Input: `{"data": [{"a": 1}, {"a": 5}, {"a": 6}]}`, Want: result(`[{"a": 1}, {"a": 5}]`, `[{"a": 6}]`)},
		{Name: "RangeOpen", Config: filter(`{"field": "a", "min_value": 1, "inclusive": false}], "filter_type": "range_filter"}`), Input: `{"data": [{"a": 1}, {"a": 5}]}`, Want: result(`[{"a": 5}]`, `[{"a": 1}]`)},
		{Name: "RangeWithoutBounds", Config: filter(`{"field": "a"}], "filter_type": "range_filter"}`), Input: numbers, Code: fault.InvalidConfig},
		{Name: "Exists", Config: filter(`{"field": "a"}], "filter_type": "exists_filter"}`), Input: numbers, Want: result(`[{"a": 1}, {"a": 5}, {"a": null}, {"a": "x"}]`, `[{}]`)},
		{Name: "DoesNotExist", Config: filter(`{"field": "a", "exists": false}], "filter_type": "exists_filter"}`), Input: numbers, Want: result(`[{}]`, `[{"a": 1}, {"a": 5}, {"a": null}, {"a": "x"}]`)},
		{Name: "Type", Config: filter(`{"field": "a", "type": "string"}], "filter_type": "type_filter"}`), Input: numbers, Want: result(`[{"a": "x"}]`, `[{"a": 1}, {"a": 5}, {"a": null}, {}]`)},
		{Name: "TypeInteger", Config: filter(`{"field": ".", "type": "integer"}], "filter_type": "type_filter"}`), Input: `{"data": [1, 1.5, 2.0]}`, Want: result(`[1, 2.0]`, `[1.5]`)},
		{Name: "TypeNull", Config: filter(`{"field": "a", "type": "null"}], "filter_type": "type_filter"}`), Input: numbers, Want: result(`[{"a": null}, {}]`, `[{"a": 1}, {"a": 5}, {"a": "x"}]`)},
		{Name: "TypeUnknown", Config: filter(`{"field": "a", "type": "color"}], "filter_type": "type_filter"}`), Input: numbers, Code: fault.InvalidConfig},
		{Name: "ArrayContains", Config: filter(`{"field": "t", "value": "x"}], "filter_type": "array_contains"}`), Input: `{"data": [{"t": ["x", "y"]}, {"t": ["y"]}, {"t": "x"}]}`, Want: result(`[{"t": ["x", "y"]}]`, `[{"t": ["y"]}, {"t": "x"}]`)},
		{Name: "ArrayContainsAny", Config: filter(`{"field": "t", "value": ["x", "z"]}], "filter_type": "array_contains"}`), Input: `{"data": [{"t": ["x"]}, {"t": ["y"]}]}`, Want: result(`[{"t": ["x"]}]`, `[{"t": ["y"]}]`)},
		{Name: "ArrayContainsAll", Config: filter(`{"field": "t", "value": ["x", "z"], "mode": "all"}], "filter_type": "array_contains"}`), Input: `{"data": [{"t": ["z", "x"]}, {"t": ["x"]}]}`, Want: result(`[{"t": ["z", "x"]}]`, `[{"t": ["x"]}]`)},
		{Name: "Fuzzy", Config: filter(`{"field": ".", "value": "kitten"}], "filter_type": "fuzzy_match"}`), Input: `{"data": ["kitten", "kittem", "sitting", 5]}`, Want: result(`["kitten", "kittem"]`, `["sitting", 5]`)},
		{Name: "FuzzyThreshold", Config: filter(`{"field": ".", "value": "kitten", "threshold": 0.5}], "filter_type": "fuzzy_match"}`), Input: `{"data": ["sitting", "dog"]}`, Want: result(`["sitting"]`, `["dog"]`)},
		{Name: "IsNull", Config: filter(`{"field": "a", "operator": "is_null"}]}`), Input: numbers, Want: result(`[{"a": null}, {}]`, `[{"a": 1}, {"a": 5}, {"a": "x"}]`)},
		{Name: "IsNotNull", Config: filter(`{"field": "a", "operator": "is_not_null"}]}`), Input: numbers, Want: result(`[{"a": 1}, {"a": 5}, {"a": "x"}]`, `[{"a": null}, {}]`)},
		{Name: "In", Config: filter(`{"field": ".", "operator": "in", "value": [1, "A"]}], "case_sensitive": false}`), Input: `{"data": [1, "a", "b"]}`, Want: result(`[1, "a"]`, `["b"]`)},
		{Name: "NotIn", Config: filter(`{"field": ".", "operator": "not_in", "value": [1]}]}`), Input: `{"data": [1, 2]}`, Want: result(`[2]`, `[1]`)},
		{Name: "InNoList", Config: filter(`{"field": ".", "operator": "in", "value": 1}]}`), Input: `{"data": [1, 2]}`, Code: fault.InvalidConfig},
		{Name: "Contains", Config: filter(`{"field": ".", "operator": "contains", "value": "a"}]}`), Input: `{"data": ["xay", ["a"], {"a": 1}, "b", 5]}`, Want: result(`["xay", ["a"], {"a": 1}]`, `["b", 5]`)},
		{Name: "NotContains", Config: filter(`{"field": ".", "operator": "not_contains", "value": "a"}]}`), Input: `{"data": ["a", "b", 5]}`, Want: result(`["b"]`, `["a", 5]`)},
		{Name: "StartsWith", Config: filter(`{"field": ".", "operator": "starts_with", "value": "a"}]}`), Input: `{"data": ["ab", "ba"]}`, Want: result(`["ab"]`, `["ba"]`)},
		{Name: "EndsWith", Config: filter(`{"field": ".", "operator": "ends_with", "value": "a"}]}`), Input: `{"data": ["ab", "ba"]}`, Want: result(`["ba"]`, `["ab"]`)},
		{Name: "Equals", Config: filter(`{"field": ".", "operator": "equals", "value": 1}]}`), Input: `{"data": [1.0, "1", true]}`, Want: result(`[1.0]`, `["1", true]`)},
		{Name: "NotEquals", Config: filter(`{"field": ".", "operator": "not_equals", "value": "A"}], "case_sensitive": false}`), Input: `{"data": ["a", "b"]}`, Want: result(`["b"]`, `["a"]`)},
		{Name: "GreaterOrEqual", Config: filter(`{"field": ".", "operator": "greater_or_equal", "value": 2}]}`), Input: `{"data": [1, 2]}`, Want: result(`[2]`, `[1]`)},
		{Name: "LessOrEqual", Config: filter(`{"field": ".", "operator": "less_or_equal", "value": 1}]}`), Input: `{"data": [1, 2]}`, Want: result(`[1]`, `[2]`)},
		{Name: "NoOperator", Config: filter(`{"field": "a"}]}`), Input: numbers, Code: fault.InvalidConfig, Part: "operator"},
	})
	got := kinds().Done(t, "FLOW.FILTER", nodetest.NewCall(t, filter(adults+`}`), numbers))
	nodetest.CheckDone(t, node.Done{"result": got["result"], "statistics": got["statistics"]}, map[string]string{
		"result":     `{"validation_errors": [{"index": 4, "error": "\"a\" must be of the type of the value it is compared with, not string"}]}`,
		"statistics": `{"total_count": 5, "kept_count": 1, "excluded_count": 4, "error_count": 1}`})
}

func TestFilter_WarnsAboutWhatItKeeps(t *testing.T) {
	t.Parallel()
	call := nodetest.NewCall(t, `{"conditions": [{"field": ".", "operator": "less_than", "value": 1}], "error_handling": "include_with_warning"}`, `{"data": ["x", 0]}`)
	var levels []node.Level
	call.Log = func(level node.Level, _ string, _ map[string]any) { levels = append(levels, level) }
	kinds().Done(t, "FLOW.FILTER", call)
	if !slices.Equal(levels, []node.Level{node.Warn}) {
		t.Errorf("logged %v", levels)
	}
}

func TestPassThrough_KeepsTheInputAsItCame(t *testing.T) {
	t.Parallel()
	input := `{"z":1.50,"odd \"key\"":"<&>","a":12345678901234567890,"é":null,"condition_result":"old"}`
	got := kinds().Done(t, "FLOW.IF", nodetest.NewCall(t, `{"condition": true}`, input))["true"]
	if want := `{"z":1.50,"odd \"key\"":"<&>","a":12345678901234567890,"é":null,"condition_result":true}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
