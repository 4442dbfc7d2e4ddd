package app

import (
	"testing"
)

// TestInventory_Actions: see inventory_test.go.
func TestInventory_Actions(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t)
	const (
		rows = `{"items": [{"k": "b", "n": 2, "_id": 7}, {"k": "a", "n": 3}, {"k": "b", "n": 1}], "right": [{"k": "b", "m": 7}], "other": [{"k": "b", "m": 8}, {"j": "b", "m": 9}]}`
		get  = `"url": "$U/page", "max_retries": 0`
		sort = `"operation": "sort", "items_path": "items"`
		join = `"operation": "join", "items_path": "items"`
		flat = `{"data": [{"o": 1, "lines": [[1, [2]], 3], "notes": [4, 5]}]}`
	)
	rule := func(inner string) string { return `@"items_path": "items", "each": true, "rules": [` + inner + `]` }
	fieldInventory{
		family: "ACTION",
		kinds: map[string]map[string]proof{
			"ACTION.RUN_CODE": {
				"code":          {with: `"language": "javascript"`, one: `"function main(i) { return {a: 1} }"`, other: `"function main(i) { return {a: 2} }"`},
				"language":      {with: `"code": "x = 1", "max_retries": 0`, one: `"javascript"`, other: `"python"`},
				"entry":         {with: `"language": "javascript", "code": "function a() { return {x: 1} } function b() { return {x: 2} }"`, one: `"a"`, other: `"b"`},
				"time_limit_ms": {with: `"language": "javascript", "max_retries": 0, "code": "function main() { for (;;) {} }"`, one: `20`, other: `40`},
				"memory_mb":     {shown: "sandbox.TestPython"},
			},
			"ACTION.EXECUTE_SCRIPT": {
				"interpreter":   {shown: "builtin.TestExecuteScript_Interpreters"},
				"script":        {shown: "builtin.TestExecuteScript_Runs"},
				"command":       {shown: "builtin.TestExecuteScript_Runs"},
				"args":          {shown: "builtin.TestExecuteScript_Runs"},
				"env":           {shown: "builtin.TestExecuteScript_Environment"},
				"stdin":         {shown: "builtin.TestExecuteScript_Runs"},
				"working_dir":   {shown: "builtin.TestExecuteScript_Runs"},
				"success_codes": {shown: "builtin.TestExecuteScript_Runs"},
			},
			"ACTION.DATA_TRANSFORMATION": {
				"operation":              {with: `"items_path": "items", "sort_config": {"field": "n"}, "group_by_fields": ["k"]`, one: `"sort"`, other: `"group_by"`, input: rows},
				"field_mapping":          {with: `"operation": "map", "items_path": "items"`, one: `{"x": "k"}`, other: `{"x": "n"}`, input: rows},
				"items_path":             {with: `"operation": "sort", "sort_config": {"field": "k"}`, one: `"items"`, other: `"right"`, input: rows},
				"filter_conditions":      {with: `"operation": "filter", "items_path": "items"`, one: `[{"expression": "item.n > 1"}]`, other: `[{"expression": "item.n > 2"}]`, input: rows},
				"sort_config":            {with: sort, one: `{"field": "n"}`, other: `{"field": "k"}`, input: rows},
				"sort_config.field":      {with: sort, one: `"n"`, other: `"k"`, input: rows},
				"sort_config.direction":  {one: `@"operation": "sort", "items_path": "items", "sort_config": {"field": "n"}`, other: `@"operation": "sort", "items_path": "items", "sort_config": {"field": "n", "direction": "desc"}`, input: rows},
				"group_by_fields":        {with: `"operation": "group_by", "items_path": "items"`, one: `["k"]`, other: `["n"]`, input: rows},
				"aggregation_functions":  {with: `"operation": "aggregate", "items_path": "items"`, one: `{"n": "sum"}`, other: `{"n": "max"}`, input: rows},
				"join_config":            {with: join, one: `{"left_key": "k", "right_key": "k"}`, other: `{"left_key": "k", "right_key": "k", "type": "left"}`, input: rows},
				"join_config.right_path": {one: `@` + join + `, "join_config": {"left_key": "k", "right_key": "k", "right_path": "right"}`, other: `@` + join + `, "join_config": {"left_key": "k", "right_key": "k", "right_path": "other"}`, input: rows},
				"join_config.left_key":   {one: `@` + join + `, "join_config": {"left_key": "k", "right_key": "k"}`, other: `@` + join + `, "join_config": {"left_key": "n", "right_key": "k"}`, input: rows},
				"join_config.right_key":  {one: `@` + join + `, "join_config": {"right_path": "other", "left_key": "k", "right_key": "k"}`, other: `@` + join + `, "join_config": {"right_path": "other", "left_key": "k", "right_key": "j"}`, input: rows},
				"join_config.type":       {one: `@` + join + `, "join_config": {"left_key": "k", "right_key": "k", "type": "inner"}`, other: `@` + join + `, "join_config": {"left_key": "k", "right_key": "k", "type": "left"}`, input: rows},
				"flatten_config":         {with: `"operation": "flatten"`, one: `{"path": "lines"}`, other: `{"path": "lines", "depth": 2}`, input: flat},
				"flatten_config.path":    {with: `"operation": "flatten"`, one: `"lines"`, other: `"notes"`, input: flat},
				"flatten_config.depth":   {one: `@"operation": "flatten", "flatten_config": {"path": "lines", "depth": 1}`, other: `@"operation": "flatten", "flatten_config": {"path": "lines", "depth": 2}`, input: flat},
				"pivot_config":           {with: `"operation": "pivot", "items_path": "items"`, one: `{"index": "k", "columns": "n", "values": "n", "function": "sum"}`, other: `{"index": "n", "columns": "k", "values": "n", "function": "sum"}`, input: rows},
				"pivot_config.index":     {one: pivot(`"index": "k", "columns": "k", "values": "n"`), other: pivot(`"index": "n", "columns": "k", "values": "n"`), input: rows},
				"pivot_config.columns":   {one: pivot(`"index": "k", "columns": "k", "values": "n"`), other: pivot(`"index": "k", "columns": "n", "values": "n"`), input: rows},
				"pivot_config.values":    {one: pivot(`"index": "k", "columns": "k", "values": "n", "function": "count"`), other: pivot(`"index": "k", "columns": "k", "values": "none", "function": "sum"`), input: rows},
				"pivot_config.function":  {one: pivot(`"index": "k", "columns": "k", "values": "n", "function": "sum"`), other: pivot(`"index": "k", "columns": "k", "values": "n", "function": "max"`), input: rows},
				"transformation_script":  {with: `"operation": "custom"`, one: `"def transform(data):\n    return {'a': 1}"`, other: `"def transform(data):\n    return {'a': 2}"`, input: rows},
				"output_format":          {with: `"operation": "sort", "items_path": "items", "sort_config": {"field": "n"}`, one: `"json"`, other: `"csv"`, input: rows},
				"preserve_metadata":      {with: `"operation": "map", "items_path": "items", "field_mapping": {"x": "k"}`, one: `true`, other: `false`, input: rows},
			},
			"ACTION.DATA_VALIDATION": {
				"schema":        {one: `{"required": ["items"]}`, other: `{"required": ["none"]}`, input: rows},
				"each":          {with: `"items_path": "items", "schema": {"required": ["k"]}`, one: `true`, other: `false`, input: rows},
				"on_invalid":    {with: `"schema": {"required": ["none"]}`, one: `"route"`, other: `"fail"`, input: rows},
				"items_path":    {with: `"each": true, "schema": {"required": ["m"]}`, one: `"items"`, other: `"right"`, input: rows},
				"rules":         {with: `"items_path": "items", "each": true`, one: `[{"field": "n", "rule": "min", "value": 1}]`, other: `[{"field": "n", "rule": "min", "value": 2}]`, input: rows},
				"rules.field":   {one: rule(`{"field": "n", "rule": "required"}`), other: rule(`{"field": "none", "rule": "required"}`), input: rows},
				"rules.rule":    {one: rule(`{"field": "n", "rule": "min", "value": 2}`), other: rule(`{"field": "n", "rule": "max", "value": 2}`), input: rows},
				"rules.value":   {one: rule(`{"field": "n", "rule": "min", "value": 1}`), other: rule(`{"field": "n", "rule": "min", "value": 2}`), input: rows},
				"rules.message": {one: rule(`{"field": "n", "rule": "min", "value": 3, "message": "one"}`), other: rule(`{"field": "n", "rule": "min", "value": 3, "message": "two"}`), input: rows},
			},
			"ACTION.DATA_FORMATTING": {
				"format_type": {one: `"json"`, other: `"yaml"`, input: `{"data": {"a": 1}}`},
				"direction":   {with: `"format_type": "json"`, one: `"format"`, other: `"parse"`, input: `{"data": "{\"a\": 1}"}`},
				"template":    {with: `"format_type": "template"`, one: `"a {{x}}"`, other: `"b {{x}}"`, input: `{"x": 1}`},
				"options":     {with: `"format_type": "json"`, one: `{"indent": 0}`, other: `{"indent": 4}`, input: `{"data": {"a": 1}}`},
			},
			"ACTION.FILE_OPERATION": {
				"operation":   {with: `"path": "$KEY/a.txt", "content": "x"`, one: `"write"`, other: `"exists"`},
				"path":        {with: `"operation": "write", "content": "x"`, one: `"$KEY/a.txt"`, other: `"$KEY/b.txt"`},
				"destination": {with: `"operation": "archive", "path": "shared.txt"`, one: `"a-$KEY.zip"`, other: `"b-$KEY.zip"`},
				"content":     {with: `"operation": "write", "path": "$KEY/a.txt"`, one: `"x"`, other: `"xy"`},
				"encoding":    {with: `"operation": "write", "path": "$KEY/a.txt", "content": "YWJj"`, one: `"utf8"`, other: `"base64"`},
				"overwrite":   {with: `"operation": "write", "path": "shared.txt", "content": "x"`, one: `true`, other: `false`},
				"recursive":   {shown: "builtin.TestFileOperation"},
				"pattern":     {shown: "builtin.TestFileOperation"},
				"max_bytes":   {with: `"operation": "write", "path": "$KEY/a.txt", "content": "xyz"`, one: `10`, other: `1`},
			},
			"ACTION.FILE_DOWNLOAD": {
				"url":           {with: `"max_retries": 0`, one: `"$U/a"`, other: `"$U/b"`},
				"headers":       {with: get, one: `{"Authorization": "{{a}}"}`, other: `{"Authorization": "{{b}}"}`, input: `{"a": "one", "b": "two"}`},
				"save_path":     {with: get, one: `"$KEY/a.json"`, other: `"$KEY/b.json"`},
				"overwrite":     {with: get + `, "save_path": "shared.json"`, one: `true`, other: `false`},
				"max_bytes":     {with: get, one: `100000`, other: `10`},
				"allowed_types": {with: get, one: `["application/json"]`, other: `["image/png"]`},
				"sha256":        {with: get, other: `"0000000000000000000000000000000000000000000000000000000000000000"`},
			},
			"ACTION.FILE_UPLOAD": {
				"target":     {shown: "builtin.TestFileUpload_Store"},
				"url":        {shown: "builtin.TestFileUpload"},
				"method":     {shown: "builtin.TestFileUpload"},
				"field_name": {shown: "builtin.TestFileUpload"},
				"headers":    {shown: "builtin.TestFileUpload"},
				"bucket":     {shown: "builtin.TestFileUpload_Store"},
				"key":        {shown: "builtin.TestFileUpload_Store"},
				"file":       {shown: "builtin.TestFileUpload"},
				"max_bytes":  {shown: "builtin.TestFileUpload"},
			},
			"ACTION.HTTP_REQUEST": {
				"method":                  {with: get, one: `"GET"`, other: `"PUT"`},
				"url":                     {one: `"$U/a"`, other: `"$U/b"`},
				"headers":                 {with: get, one: `{"Authorization": "{{a}}"}`, other: `{"Authorization": "{{b}}"}`, input: `{"a": "one", "b": "two"}`},
				"query_params":            {with: get, one: `{"q": 1}`, other: `{"q": 2}`},
				"body":                    {with: get + `, "method": "PUT"`, one: `{"a": 1}`, other: `{"a": 2}`},
				"body_type":               {with: get + `, "method": "PUT", "body": {"a": 1}`, one: `"json"`, other: `"form"`},
				"follow_redirects":        {shown: "builtin.TestHTTPRequest_Redirects"},
				"max_redirects":           {shown: "builtin.TestHTTPRequest_Redirects"},
				"response_type":           {with: get, one: `"json"`, other: `"text"`},
				"fail_on_status":          {shown: "builtin.TestHTTPRequest_Statuses"},
				"idempotency_header":      {shown: "builtin.TestHTTPRequest_IdempotencyKey"},
				"pagination":              {shown: "builtin.TestHTTPRequest_Pages"},
				"pagination.mode":         {shown: "builtin.TestHTTPRequest_Pages"},
				"pagination.items_path":   {shown: "builtin.TestHTTPRequest_Pages"},
				"pagination.max_pages":    {shown: "builtin.TestHTTPRequest_Pages"},
				"pagination.next_path":    {shown: "builtin.TestHTTPRequest_Pages"},
				"pagination.cursor_path":  {shown: "builtin.TestHTTPRequest_Pages"},
				"pagination.cursor_param": {shown: "builtin.TestHTTPRequest_Pages"},
				"pagination.page_param":   {shown: "builtin.TestHTTPRequest_Pages"},
				"pagination.start_page":   {shown: "builtin.TestHTTPRequest_Pages"},
				"pagination.offset_param": {shown: "builtin.TestHTTPRequest_Pages"},
				"pagination.limit_param":  {shown: "builtin.TestHTTPRequest_Pages"},
				"pagination.page_size":    {shown: "builtin.TestHTTPRequest_Pages"},
			},
			"ACTION.WEBHOOK_CALL": {
				"url":                      {one: `"$U/a"`, other: `"$U/b"`},
				"method":                   {with: `"url": "$U/a"`, one: `"POST"`, other: `"PUT"`},
				"headers":                  {with: `"url": "$U/a"`, one: `{"Authorization": "{{a}}"}`, other: `{"Authorization": "{{b}}"}`, input: `{"a": "one", "b": "two"}`},
				"payload":                  {with: `"url": "$U/a"`, one: `{"a": 1}`, other: `{"a": 2}`},
				"wait_for_callback":        {shown: "builtin.TestWebhookCall_Waits"},
				"callback_timeout_seconds": {shown: "builtin.TestWebhookCall_Waits"},
			},
			"ACTION.DATABASE_QUERY": {
				"query":       {shown: "builtin.TestDatabase"},
				"question":    {shown: "builtin.TestDatabaseQuery_AnswersAQuestion"},
				"llm_profile": {shown: "builtin.TestDatabaseQuery_AnswersAQuestion"},
				"tables":      {shown: "builtin.TestDatabaseQuery_AnswersAQuestion"},
				"parameters":  {shown: "builtin.TestDatabase"},
				"max_rows":    {shown: "builtin.TestDatabase"},
				"row_format":  {shown: "builtin.TestDatabase"},
			},
			"ACTION.DATABASE_OPERATION": {
				"operation":      {shown: "builtin.TestDatabase"},
				"table":          {shown: "builtin.TestDatabase"},
				"rows":           {shown: "builtin.TestDatabase"},
				"values":         {shown: "builtin.TestDatabase"},
				"where":          {shown: "builtin.TestDatabase"},
				"conflict_keys":  {shown: "builtin.TestDatabase"},
				"returning":      {shown: "builtin.TestDatabase"},
				"statement":      {shown: "builtin.TestDatabase"},
				"statements":     {shown: "builtin.TestDatabase"},
				"parameters":     {shown: "builtin.TestDatabase"},
				"allow_all_rows": {shown: "builtin.TestDatabase"},
			},
			"ACTION.WEB_SEARCH": {
				"provider":             {shown: "builtin.TestWebSearch_Providers"},
				"query":                {shown: "builtin.TestWebSearch_Providers"},
				"max_results":          {shown: "builtin.TestWebSearch_FiltersAndPages"},
				"language":             {shown: "builtin.TestWebSearch_Providers"},
				"time_range":           {shown: "builtin.TestWebSearch_Providers"},
				"include_domains":      {shown: "builtin.TestWebSearch_FiltersAndPages"},
				"exclude_domains":      {shown: "builtin.TestWebSearch_FiltersAndPages"},
				"fetch_content":        {shown: "builtin.TestWebSearch_FetchesPages"},
				"mapping":              {shown: "builtin.TestWebSearch_Providers"},
				"mapping.url":          {shown: "builtin.TestWebSearch_Providers"},
				"mapping.results_path": {shown: "builtin.TestWebSearch_Providers"},
				"mapping.total_path":   {shown: "builtin.TestWebSearch_Providers"},
				"mapping.fields":       {shown: "builtin.TestWebSearch_Providers"},
				"mapping.key_header":   {shown: "builtin.TestWebSearch_Providers"},
				"mapping.key_param":    {shown: "builtin.TestWebSearch_Providers"},
			},
		},
		bench: func(t *testing.T, kind, config string, p proof) string {
			return w.run(t, kind, config, p, benchRun{provider: "openai"})
		},
	}.check(t)
}

func pivot(inner string) string {
	return `@"operation": "pivot", "items_path": "items", "pivot_config": {` + inner + `}`
}
