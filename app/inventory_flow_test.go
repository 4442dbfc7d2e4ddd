package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/workflow"
)

// TestInventory_Flow: see inventory_test.go.
func TestInventory_Flow(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	sub := func(id, a string) {
		w.save(t, `{metadata: {id: `+id+`, name: `+id+`, description: d}, nodes: [{id: a, name: a, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {said: `+a+`}}, {id: b, name: b, description: d, type: CALL, subtype: EMPTY}], connections: [{from_node: a, to_node: b}]}`)
	}
	sub("sub_one", "one")
	sub("sub_two", "two")
	const (
		numbers = `{"items": [3, 1, 2], "other": [9, 8]}`
		rows    = `{"items": [{"k": "b", "n": 2}, {"k": "B", "n": 1}, {"k": "a", "n": null}, {"k": "b", "n": 4}], "other": [{"k": "z", "n": 0}]}`
		range3  = `"loop_type": "for_range", "start_value": 0, "end_value": 3`
		filter  = `"filter_mode": "include", "conditions": [{"field": "n", "operator": "greater_than", "value": 1}]`
		asks    = `"wait_type": "api_response", "max_attempts": 1`
		looks   = `"wait_type": "file", "max_attempts": 1`
		reads   = `"wait_type": "database_change", "credential_id": "$SQL", "max_attempts": 1, "wait_condition": "poll.row_count == 1"`
		checks  = `"wait_type": "condition", "check_interval_seconds": 1, "wait_condition": "now() == 1"`
		pass    = "type: CALL, subtype: EMPTY, configurations: {pass_through: true}"
		holds   = "type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 0}"
	)
	written := []string{nodeOf("ACTION.FILE_OPERATION", `{"operation": "write", "path": "$KEY/there", "content": "x"}`)}
	table := []string{nodeOf("ACTION.DATABASE_OPERATION", `{"credential_id": "$SQL", "operation": "execute", "statement": "create table item (n int)"}`)}
	loop := func(base, input string) map[string]proof {
		return map[string]proof{
			"break_on_error":     {with: base, one: `true`, other: `false`, input: input, scene: "fails"},
			"break_condition":    {with: base, one: `"false"`, other: `"true"`, input: input},
			"collect_results":    {with: base, one: `true`, other: `false`, input: input},
			"iteration_variable": {with: base, one: `"one"`, other: `"two"`, input: input},
		}
	}
	with := func(shared, own map[string]proof) map[string]proof {
		for name, p := range own {
			shared[name] = p
		}
		return shared
	}
	branches := func(inner string) string {
		return `@"branches": [{"branch_id": "a", ` + inner + `}, {"branch_id": "b", "is_default": true}]`
	}
	cases := func(inner string) string { return `@"switch_value": "input.x", "cases": [` + inner + `]` }
	fieldInventory{
		family: "FLOW",
		kinds: map[string]map[string]proof{
			"FLOW.IF": {"condition_expression": {one: `"true"`, other: `"false"`}},
			"FLOW.RESPOND": {
				"status_code":  {one: `200`, other: `201`},
				"headers":      {shown: "TestTriggers_NodeAnswers", why: "who sent the request sees it, a run by hand has nobody to answer"},
				"content_type": {shown: "TestTriggers_AnswerTypes", why: "who sent the request sees it, a run by hand has nobody to answer"},
				"body":         {shown: "TestTriggers_NodeAnswers", why: "who sent the request sees it, a run by hand has nobody to answer"},
				"file":         {shown: "TestTriggers_NodeAnswers", why: "who sent the request sees it, a run by hand has nobody to answer"},
			},
			"FLOW.DELAY": {"duration_seconds": {one: `600`, other: `900`, waits: true}},
			"FLOW.SWITCH": {
				"switch_value":                {with: `"cases": [{"case": 1, "output_key": "a"}, {"case": 2, "output_key": "b"}]`, one: `"input.x"`, other: `"input.y"`, input: `{"x": 1, "y": 2}`},
				"default_output_key":          {with: `"switch_value": "input.x", "cases": [{"case": 1, "output_key": "a"}]`, one: `"else"`, other: `"a"`, input: `{"x": 5}`},
				"cases":                       {with: `"switch_value": "input.x"`, one: `[{"case": 1, "output_key": "a"}]`, other: `[{"case": 2, "output_key": "a"}]`, input: `{"x": 1}`},
				"cases.case":                  {one: cases(`{"case": 1, "output_key": "a"}`), other: cases(`{"case": 2, "output_key": "a"}`), input: `{"x": 1}`},
				"cases.output_key":            {one: cases(`{"case": 1, "output_key": "a"}`), other: cases(`{"case": 1, "output_key": "b"}`), input: `{"x": 1}`},
				"branches":                    {one: `[{"branch_id": "a", "condition": "true"}]`, other: `[{"branch_id": "a", "condition": "false"}]`},
				"branches.branch_id":          {one: `@"branches": [{"branch_id": "a", "condition": "true"}]`, other: `@"branches": [{"branch_id": "c", "condition": "true"}]`},
				"branches.logic":              {one: branches(`"logic": "and", "conditions": [{"left": 1, "operate": "equal", "right": 1}, {"left": 1, "operate": "equal", "right": 2}]`), other: branches(`"logic": "or", "conditions": [{"left": 1, "operate": "equal", "right": 1}, {"left": 1, "operate": "equal", "right": 2}]`)},
				"branches.conditions":         {one: branches(`"conditions": [{"left": 1, "operate": "equal", "right": 1}]`), other: branches(`"conditions": [{"left": 1, "operate": "equal", "right": 2}]`)},
				"branches.conditions.left":    {one: branches(`"conditions": [{"left": "{{x}}", "operate": "equal", "right": 1}]`), other: branches(`"conditions": [{"left": 5, "operate": "equal", "right": 1}]`), input: `{"x": 1}`},
				"branches.conditions.operate": {one: branches(`"conditions": [{"left": 1, "operate": "equal", "right": 1}]`), other: branches(`"conditions": [{"left": 1, "operate": "not_equal", "right": 1}]`)},
				"branches.conditions.right":   {one: branches(`"conditions": [{"left": 1, "operate": "equal", "right": 1}]`), other: branches(`"conditions": [{"left": 1, "operate": "equal", "right": 2}]`)},
				"branches.condition":          {one: branches(`"condition": "true"`), other: branches(`"condition": "false"`)},
				"branches.is_default":         {one: `@"branches": [{"branch_id": "a", "condition": "false"}, {"branch_id": "b", "is_default": true}, {"branch_id": "c", "condition": "false"}]`, other: `@"branches": [{"branch_id": "a", "condition": "false"}, {"branch_id": "b", "condition": "false"}, {"branch_id": "c", "is_default": true}]`},
				"branches.name":               {label: true},
				"branches.description":        {label: true},
				"propose":                     {with: `"llm_profile": "$P", "choices": [{"branch": "a"}, {"branch": "b"}]`, one: `"Which?"`, other: `"What?"`},
				"choices":                     {with: `"llm_profile": "$P", "propose": "Which?"`, one: `[{"branch": "a"}, {"branch": "b"}]`, other: `[{"branch": "a"}, {"branch": "c"}]`},
				"choices.branch":              {one: `@"llm_profile": "$P", "propose": "Which?", "choices": [{"branch": "a"}, {"branch": "b"}]`, other: `@"llm_profile": "$P", "propose": "Which?", "choices": [{"branch": "a"}, {"branch": "c"}]`},
				"choices.description":         {one: `@"llm_profile": "$P", "propose": "Which?", "choices": [{"branch": "a", "description": "one"}]`, other: `@"llm_profile": "$P", "propose": "Which?", "choices": [{"branch": "a", "description": "two"}]`},
				"llm_profile":                 {with: `"propose": "Which?", "choices": [{"branch": "a"}, {"branch": "b"}]`, one: `"$P"`, other: `"$Q"`},
			},
			"FLOW.LOOP": with(loop(range3, ""), map[string]proof{
				"loop_type":      {with: `"end_value": 2, "array_path": "items"`, one: `"for_range"`, other: `"for_each"`, input: numbers},
				"start_value":    {with: `"end_value": 3`, one: `0`, other: `1`},
				"end_value":      {with: `"start_value": 0`, one: `2`, other: `3`},
				"step":           {with: range3, one: `1`, other: `2`},
				"array_path":     {with: `"loop_type": "for_each"`, one: `"items"`, other: `"other"`, input: numbers},
				"loop_condition": {with: `"loop_type": "while", "on_limit": "complete", "max_iterations": 2`, one: `"true"`, other: `"false"`},
				"max_iterations": {with: `"loop_type": "while", "loop_condition": "true", "on_limit": "complete"`, one: `1`, other: `2`},
				"on_limit":       {with: `"loop_type": "while", "loop_condition": "true", "max_iterations": 1`, one: `"complete"`, other: `"fail"`},
			}),
			"FLOW.FOR_EACH": with(loop(`"items_path": "items"`, numbers), map[string]proof{
				"items_path":      {one: `"items"`, other: `"other"`, input: numbers},
				"max_concurrency": {with: `"items_path": "items"`, one: `1`, other: `2`, input: `{"items": [1, 2]}`, scene: "meets"},
				"batch_size":      {with: `"items_path": "items"`, one: `1`, other: `2`, input: numbers},
				"max_iterations":  {with: `"items_path": "items"`, one: `3`, other: `2`, input: numbers},
			}),
			"FLOW.WHILE": with(loop(`"condition_expression": "true", "max_iterations": 2`, ""), map[string]proof{
				"condition_expression": {with: `"max_iterations": 2`, one: `"true"`, other: `"false"`},
				"check":                {with: `"condition_expression": "false"`, one: `"before"`, other: `"after"`},
				"delay_seconds":        {with: `"condition_expression": "true", "max_iterations": 2`, one: `600`, other: `900`, waits: true},
				"max_iterations":       {with: `"condition_expression": "true"`, one: `1`, other: `2`},
				"on_limit":             {with: `"condition_expression": "true", "max_iterations": 1`, one: `"complete"`, other: `"fail"`},
			}),
			"FLOW.MERGE": {
				"merge_strategy":    {one: `"concatenate"`, other: `"union"`, input: rows, scene: "two"},
				"merge_key":         {with: `"merge_strategy": "by_key", "items_path": "items"`, one: `"k"`, other: `"n"`, input: rows, scene: "two"},
				"items_path":        {with: `"merge_strategy": "concatenate"`, one: `"items"`, other: `"other"`, input: rows, scene: "two"},
				"handle_duplicates": {with: `"merge_strategy": "concatenate", "items_path": "items"`, one: `"keep_all"`, other: `"remove_duplicates"`, input: rows, scene: "two"},
				"join":              {with: `"merge_strategy": "by_key", "merge_key": "k", "items_path": "items"`, one: `"outer"`, other: `"inner"`, input: rows, scene: "halves"},
				"zip_length":        {with: `"merge_strategy": "zip", "items_path": "items"`, one: `"longest"`, other: `"shortest"`, input: rows, scene: "halves"},
				"timeout_seconds":   {one: `0`, other: `0.1`, input: rows, scene: "late", waits: true},
				"cancel_losers":     {with: `"merge_strategy": "first"`, one: `false`, other: `true`, input: rows, scene: "loser", waits: true},
			},
			"FLOW.SORT": {
				"sort_field":        {with: `"items_path": "items"`, one: `"k"`, other: `"n"`, input: rows},
				"sort_fields":       {with: `"items_path": "items"`, one: `[{"field": "k"}]`, other: `[{"field": "n"}]`, input: rows},
				"sort_fields.field": {one: `@"items_path": "items", "sort_fields": [{"field": "k"}]`, other: `@"items_path": "items", "sort_fields": [{"field": "n"}]`, input: rows},
				"sort_fields.order": {one: `@"items_path": "items", "sort_fields": [{"field": "n"}]`, other: `@"items_path": "items", "sort_fields": [{"field": "n", "order": "desc"}]`, input: rows},
				"sort_fields.nulls": {one: `@"items_path": "items", "sort_fields": [{"field": "n"}]`, other: `@"items_path": "items", "sort_fields": [{"field": "n", "nulls": "first"}]`, input: rows},
				"order":             {with: `"items_path": "items", "sort_field": "n"`, one: `"asc"`, other: `"desc"`, input: rows},
				"nulls":             {with: `"items_path": "items", "sort_field": "n"`, one: `"last"`, other: `"first"`, input: rows},
				"case_sensitive":    {with: `"items_path": "items", "sort_field": "k"`, one: `true`, other: `false`, input: rows},
				"items_path":        {with: `"sort_field": "n"`, one: `"items"`, other: `"other"`, input: rows},
			},
			"FLOW.FILTER": also(conditionProofs("conditions", `"items_path": "items", "filter_mode": "include"`, true), map[string]proof{
				"filter_mode":            {with: `"items_path": "items", "conditions": [{"field": "n", "operator": "greater_than", "value": 1}]`, one: `"include"`, other: `"exclude"`, input: rows},
				"filter_type":            {with: `"items_path": "items", "conditions": [{"field": "k", "value": "b"}]`, one: `"fuzzy_match"`, other: `"array_contains"`, input: rows},
				"conditions":             {with: `"items_path": "items", "filter_mode": "include"`, one: `[{"field": "n", "operator": "greater_than", "value": 1}]`, other: `[{"field": "n", "operator": "greater_than", "value": 3}]`, input: rows},
				"logical_operator":       {with: `"items_path": "items", "filter_mode": "include", "conditions": [{"field": "n", "operator": "greater_than", "value": 1}, {"field": "k", "operator": "equals", "value": "B"}]`, one: `"AND"`, other: `"OR"`, input: rows},
				"custom_filter_function": {with: `"items_path": "items", "filter_mode": "include", "filter_type": "custom_function"`, one: `"def filter(item):\n    return True"`, other: `"def filter(item):\n    return False"`, input: rows},
				"case_sensitive":         {with: `"items_path": "items", "filter_mode": "include", "conditions": [{"field": "k", "operator": "equals", "value": "B"}]`, one: `true`, other: `false`, input: rows},
				"null_handling":          {with: filter + `, "items_path": "items"`, one: `"exclude"`, other: `"include"`, input: rows},
				"max_results":            {with: filter + `, "items_path": "items"`, one: `-1`, other: `1`, input: rows},
				"sort_filtered_results":  {with: `"filter_mode": "include", "conditions": [{"field": "n", "operator": "greater_than", "value": 0}], "items_path": "items", "sort_field": "n"`, one: `false`, other: `true`, input: rows},
				"sort_field":             {with: `"filter_mode": "include", "conditions": [{"field": "n", "operator": "greater_than", "value": 0}], "items_path": "items", "sort_filtered_results": true, "sort_order": "desc"`, one: `"n"`, other: `"k"`, input: rows},
				"sort_order":             {with: filter + `, "items_path": "items", "sort_filtered_results": true, "sort_field": "n"`, one: `"asc"`, other: `"desc"`, input: rows},
				"error_handling":         {with: `"items_path": "items", "filter_mode": "include", "conditions": [{"field": "n", "operator": "greater_than", "value": "x"}]`, one: `"skip_invalid"`, other: `"fail_on_error"`, input: rows},
				"items_path":             {with: filter, one: `"items"`, other: `"other"`, input: rows},
			}),
			"FLOW.SPLIT": {
				"split_mode":      {with: `"items_path": "items", "predicate_paths": {"big": "item.n > 1"}`, one: `"items"`, other: `"predicate"`, input: rows},
				"items_path":      {one: `"items"`, other: `"other"`, input: rows},
				"predicate_paths": {with: `"items_path": "items", "split_mode": "predicate"`, one: `{"big": "item.k == 'b'"}`, other: `{"big": "item.k == 'a'"}`, input: rows},
				"match":           {with: `"items_path": "items", "split_mode": "predicate", "predicate_paths": {"one": "item.k == 'b'", "two": "item.k != 'z'"}`, one: `"first"`, other: `"all"`, input: rows},
				"by_key":          {with: `"split_mode": "by_key"`, one: `["items"]`, other: `["other"]`, input: rows},
				"batch_size":      {with: `"items_path": "items"`, one: `1`, other: `2`, input: rows},
				"max_concurrency": {with: `"items_path": "items"`, one: `1`, other: `2`, input: `{"items": [1, 2]}`, scene: "meets"},
				"break_on_error":  {with: `"items_path": "items", "max_concurrency": 1`, one: `true`, other: `false`, input: rows, scene: "fails"},
			},
			"FLOW.TIMEOUT": {
				"timeout_seconds":      {one: `600`, other: `900`, scene: "holds", waits: true},
				"deadline":             {one: `"2190-01-01T00:00:00Z"`, other: `"2191-01-01T00:00:00Z"`, scene: "holds", waits: true},
				"condition_expression": {one: `"true"`, other: `"false"`, scene: "holds", waits: true},
			},
			"FLOW.SUB_WORKFLOW": {
				"workflow_id":  {with: `"revision": "latest"`, one: `"sub_one"`, other: `"sub_two"`},
				"revision":     {with: `"workflow_id": "sub_two"`, one: `1`, other: `2`},
				"wait":         {with: `"workflow_id": "sub_one", "revision": "latest"`, one: `true`, other: `false`},
				"output_nodes": {with: `"workflow_id": "sub_one", "revision": "latest"`, one: `["a"]`, other: `["b"]`},
			},
			"FLOW.WAIT": {
				"wait_type":                              {with: `"for_seconds": 0, "wait_condition": "1 == 1"`, one: `"timer"`, other: `"condition"`},
				"wait_condition":                         {with: `"wait_type": "condition", "max_attempts": 1`, one: `"true"`, other: `"false"`},
				"max_attempts":                           {with: `"wait_type": "condition", "check_interval_seconds": 0.1, "wait_condition": "false"`, one: `1`, other: `2`},
				"for_seconds":                            {with: `"wait_type": "timer"`, one: `600`, other: `900`, waits: true},
				"until":                                  {with: `"wait_type": "timer"`, one: `"2190-01-01T00:00:00Z"`, other: `"2191-01-01T00:00:00Z"`, waits: true},
				"timezone":                               {with: `"wait_type": "timer", "until": "2190-01-01T00:00:00"`, one: `"UTC"`, other: `"Asia/Shanghai"`, waits: true},
				"webhook_config":                         {with: `"wait_type": "webhook"`, one: `{"authentication_required": false}`, other: `{"authentication_required": false, "method": "PUT"}`, scene: "called", waits: true},
				"webhook_config.method":                  {with: `"wait_type": "webhook"`, one: `@"webhook_config": {"authentication_required": false, "method": "POST"}`, other: `@"webhook_config": {"authentication_required": false, "method": "PUT"}`, scene: "called", waits: true},
				"webhook_config.expected_payload":        {with: `"wait_type": "webhook"`, one: `@"webhook_config": {"authentication_required": false, "expected_payload": {"ok": true}}`, other: `@"webhook_config": {"authentication_required": false, "expected_payload": {"ok": false}}`, scene: "called", waits: true},
				"webhook_config.authentication_required": {with: `"wait_type": "webhook"`, one: `false`, other: `true`, scene: "called", waits: true},
				"api_config":                             {with: asks, one: `{"url": "$U/a"}`, other: `{"url": "$U/b"}`},
				"api_config.url":                         {with: asks, one: `"$U/a"`, other: `"$U/b"`},
				"api_config.method":                      {with: asks, one: `@"api_config": {"url": "$U/a"}`, other: `@"api_config": {"url": "$U/a", "method": "HEAD"}`},
				"api_config.headers":                     {with: asks, one: `@"api_config": {"url": "$U/a"}`, other: `@"api_config": {"url": "$U/a", "headers": {"X-Own": "two"}}`},
				"api_config.expected_response":           {with: asks, one: `@"api_config": {"url": "$U/a", "expected_response": {"page": "a"}}`, other: `@"api_config": {"url": "$U/a", "expected_response": {"page": "b"}}`},
				"file_config":                            {with: looks, one: `{"file_path": "$KEY/there"}`, other: `{"file_path": "$KEY/gone"}`, before: written},
				"file_config.file_path":                  {with: looks, one: `"$KEY/there"`, other: `"$KEY/gone"`, before: written},
				"file_config.expected_content":           {with: looks, one: `@"file_config": {"file_path": "$KEY/there", "expected_content": "x"}`, other: `@"file_config": {"file_path": "$KEY/there", "expected_content": "y"}`, before: written},
				"database_config":                        {with: reads, one: `{"query": "select 1 as a"}`, other: `{"query": "select 2 as a"}`, before: table},
				"database_config.query":                  {with: reads, one: `"select 1 as a"`, other: `"select 2 as a"`, before: table},
				"signal_name":                            {with: `"wait_type": "signal"`, one: `"a"`, other: `"b"`, waits: true},
				"check_interval_seconds":                 {with: `"wait_type": "condition", "timeout_seconds": 0, "wait_condition": "now() == 1"`, one: `600`, other: `900`, waits: true},
				"exponential_backoff":                    {with: checks + `, "backoff_multiplier": 3`, one: `false`, other: `true`, scene: "again", waits: true},
				"backoff_multiplier":                     {with: checks + `, "exponential_backoff": true`, one: `1.1`, other: `3`, scene: "again", waits: true},
				"timeout_seconds":                        {with: `"wait_type": "signal", "signal_name": "a"`, one: `600`, other: `900`, waits: true},
			},
		},
		bench: func(t *testing.T, kind, config string, p proof) string {
			r := benchRun{provider: "openai"}
			body := pass
			switch p.scene {
			case "fails":
				body = `type: FLOW, subtype: IF, configurations: {condition_expression: "1 < 'x'"}`
			case "meets":
				body = "type: ACTION, subtype: HTTP_REQUEST, configurations: {url: $U/meet, response_type: text}"
			case "holds":
				body = holds
			case "two":
				r.before = []string{pass}
			case "halves":
				r.before = []string{pass + ", input_params: {items: [{k: b, m: 1}, {k: z, m: 2}]}"}
			case "loser":
				r.before = []string{holds}
			case "called":
				r.rest = func(_, id string) string { return w.callsWait(t, id) }
			case "again":
				r.rest = func(_, id string) string { return w.waitsAgain(t, id) }
			case "late":
				r.before, r.rest = []string{holds}, func(_, id string) string { return w.arrivesLate(t, id) }
			}
			if len(r.before) > 0 {
				r.behind = "  - {from_node: start, to_node: n}\n"
			}
			body = "{id: body, name: body, description: d, " + body + "}"
			known, _ := Kinds().Kind(kind)
			typ, subtype, _ := strings.Cut(kind, ".")
			plan, _ := known.Plan(&workflow.Node{ID: "n", Name: "n", Type: typ, Subtype: subtype, Configurations: []byte(config)})
			for i, key := range plan.Keys {
				to := fmt.Sprintf("to%d", i)
				if known.Scope != nil && !plan.Unscoped && key == known.Scope.Entry {
					r.nodes, to = r.nodes+"  - "+body+"\n", "body"
				} else {
					r.nodes += fmt.Sprintf("  - {id: %s, name: %s, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}\n", to, to)
				}
				r.behind += fmt.Sprintf("  - {from_node: n, to_node: %s, output_key: %s}\n", to, key)
			}
			return w.run(t, kind, config, p, r)
		},
	}.check(t)
}

// waitsAgain waits until the node n waits for the second time.
func (w *workbench) waitsAgain(t *testing.T, id string) string {
	t.Helper()
	if !w.comes(id, channelPatience, func() bool { return strings.Count(w.waitsFor(t, id), "waits n") > 1 }) {
		t.Fatalf("execution %q does not wait again", id)
	}
	return ""
}

// callsWait calls the address of the wait n without a token, and tells how it is answered.
func (w *workbench) callsWait(t *testing.T, id string) string {
	t.Helper()
	n := want[api.GetExecution](t, w.call(t, "operator", "GET", "/executions/"+id, nil), http.StatusOK).Execution.NodeExecutions["n"]
	response, err := http.Post(n.WaitURL, "application/json", strings.NewReader(`{"ok": true}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	if response.StatusCode == http.StatusOK {
		w.reaches(t, id, engine.StatusSuccess)
	}
	return fmt.Sprintln("called", response.StatusCode)
}

// arrivesLate lets the node n, which joins branches, fire without the one that is held, if it does, and then lets that one arrive.
func (w *workbench) arrivesLate(t *testing.T, id string) string {
	t.Helper()
	w.comes(id, 5*time.Second, func() bool { return w.read(t, id).NodeExecutions["n"].Status == "completed" }) // one that has no limit never does
	signal := api.InputRequest{NodeID: "before1", InputData: json.RawMessage(`{"signal":"go","payload":{"items":[]}}`)}
	want[api.ActionResponse](t, w.call(t, "operator", "POST", "/executions/"+id+"/input", signal), http.StatusOK)
	w.reaches(t, id, engine.StatusSuccess)
	return ""
}
