package app

import (
	"runtime"
	"testing"
)

// TestInventory_Actions: see inventory_test.go.
func TestInventory_Actions(t *testing.T) {
	t.Parallel()
	scripts, err := ParseScripts("bash,sh=/bin/cat", "echo=/bin/echo,cat=/bin/cat")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkbench(t, func(o *Options) { o.Scripts = scripts })
	const (
		rows = `{"items": [{"k": "b", "n": 2, "_id": 7}, {"k": "a", "n": 3}, {"k": "b", "n": 1}], "right": [{"k": "b", "m": 7}], "other": [{"k": "b", "m": 8}, {"j": "b", "m": 9}]}`
		get  = `"url": "$U/page", "max_retries": 0`
		sort = `"operation": "sort", "items_path": "items"`
		join = `"operation": "join", "items_path": "items"`
		flat = `{"data": [{"o": 1, "lines": [[1, [2]], 3], "notes": [4, 5]}]}`

		word   = `{"base64": "YWJj", "name": "a.txt"}`
		up     = `"url": "$U/up", "file": ` + word
		list   = `"url": "$U/list"`
		sql    = `"credential_id": "$SQL"`
		find   = `"credential_id": "$FIND", "query": "q"`
		mapped = `"credential_id": "$MAPPED", "query": "q"`
	)
	pages := func(inner string) string { return `@"url": "$U/list", "pagination": {` + inner + `}` }
	mapping := func(inner string) string {
		return `@"credential_id": "$MAPPED", "query": "q", "mapping": {"url": "a?q={query}", ` + inner + `}`
	}
	extract := func(field string) string {
		return `@"html": "<p id='i' class='k'>a</p><b>c</b>", "fields": [{` + field + `}]`
	}
	writes := func(path string) string {
		return nodeOf("ACTION.FILE_OPERATION", `{"operation": "write", "path": "$KEY/`+path+`", "content": "x"}`)
	}
	tree := []string{writes("a.txt"), writes("b.md"), writes("deep/c.txt")}
	table := []string{nodeOf("ACTION.DATABASE_OPERATION", `{"credential_id": "$SQL", "operation": "transaction", "statements": ["create table item (name text primary key, n int)", "create table other (name text primary key, n int)", "insert into item values ('a', 1), ('b', 2)"]}`)}
	rule := func(inner string) string { return `@"items_path": "items", "each": true, "rules": [` + inner + `]` }
	const long = `{"text": "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda my"}`
	fieldInventory{
		family: "ACTION",
		kinds: map[string]map[string]proof{
			"ACTION.RUN_CODE": {
				"code":          {with: `"language": "javascript"`, one: `"function main(i) { return {a: 1} }"`, other: `"function main(i) { return {a: 2} }"`},
				"language":      {with: `"code": "main = 1", "max_retries": 0`, one: `"javascript"`, other: `"python"`},
				"entry":         {with: `"language": "javascript", "code": "function a() { return {x: 1} } function b() { return {x: 2} }"`, one: `"a"`, other: `"b"`},
				"time_limit_ms": {with: `"language": "javascript", "max_retries": 0, "code": "function main() { for (;;) {} }"`, one: `20`, other: `40`},
				"memory_mb":     {with: `"language": "javascript", "max_retries": 0, "code": "function main(i) { let a = []; for (let n = 0; n < 40; n++) { a.push('x'.repeat(1 << 20)) }; return a.length }"`, one: `16`, other: `512`},
			},
			"ACTION.EXECUTE_SCRIPT": {
				"interpreter":   {with: `"script": "echo a"`, one: `"bash"`, other: `"sh"`},
				"script":        {one: `"echo a"`, other: `"echo b"`},
				"command":       {with: `"stdin": "x"`, one: `"echo"`, other: `"cat"`},
				"args":          {with: `"command": "echo"`, one: `["a"]`, other: `["b"]`},
				"env":           {with: `"script": "echo $A"`, one: `{"A": "a"}`, other: `{"A": "b"}`},
				"stdin":         {with: `"command": "cat"`, one: `"a"`, other: `"b"`},
				"working_dir":   {with: `"script": "basename $PWD"`, one: `"."`, other: `"none"`},
				"success_codes": {with: `"script": "exit 3"`, one: `[0]`, other: `[0, 3]`},
			},
			"ACTION.EDIT_FIELDS": {
				"include":     {with: `"set": {"x": 1}`, one: `"all"`, other: `"none"`, input: rows},
				"selected":    {with: `"include": "selected"`, one: `["items"]`, other: `["right"]`, input: rows},
				"rename":      {one: `{"items": "a"}`, other: `{"items": "b"}`, input: rows},
				"remove":      {one: `["items"]`, other: `["right"]`, input: rows},
				"set":         {one: `{"x": 1}`, other: `{"x": 2}`, input: rows},
				"expressions": {one: `{"x": "len(items)"}`, other: `{"x": "len(items) + 1"}`, input: rows},
				"each":        {with: `"set": {"x": 1}, "items_path": "items"`, one: `true`, other: `false`, input: rows},
				"items_path":  {with: `"set": {"x": 1}, "each": true`, one: `"items"`, other: `"right"`, input: rows},
			},
			"ACTION.DATA_TRANSFORMATION": also(conditionProofs("filter_conditions", `"operation": "filter", "items_path": "items"`, false), map[string]proof{
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
			}),
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
				"format_type":                 {one: `"json"`, other: `"yaml"`, input: `{"data": {"a": 1}}`},
				"direction":                   {with: `"format_type": "json"`, one: `"format"`, other: `"parse"`, input: `{"data": "{\"a\": 1}"}`},
				"template":                    {with: `"format_type": "template"`, one: `"a {{x}}"`, other: `"b {{x}}"`, input: `{"x": 1}`},
				"options":                     {with: `"format_type": "json"`, one: `{"indent": 0}`, other: `{"indent": 4}`, input: `{"data": {"a": 1}}`},
				"options.indent":              {with: `"format_type": "json"`, one: `0`, other: `4`, input: `{"data": {"a": 1}}`},
				"options.delimiter":           {with: `"format_type": "csv"`, one: `";"`, other: `"|"`, input: `{"data": [{"a": 1, "b": 2}]}`},
				"options.header":              {with: `"format_type": "csv"`, one: `true`, other: `false`, input: `{"data": [{"a": 1, "b": 2}]}`},
				"options.columns":             {with: `"format_type": "csv"`, one: `["a"]`, other: `["b"]`, input: `{"data": [{"a": 1, "b": 2}]}`},
				"options.root":                {with: `"format_type": "xml"`, one: `"r"`, other: `"s"`, input: `{"data": {"a": 1}}`},
				"options.item":                {with: `"format_type": "xml"`, one: `"r"`, other: `"s"`, input: `{"data": [1, 2]}`},
				"options.date_format":         {with: `"format_type": "date"`, one: `"YYYY"`, other: `"MM"`, input: `{"data": "2026-01-02T03:04:05Z"}`},
				"options.timezone":            {with: `"format_type": "date"`, one: `"UTC"`, other: `"Asia/Shanghai"`, input: `{"data": "2026-01-02T20:04:05Z"}`},
				"options.decimals":            {with: `"format_type": "number"`, one: `0`, other: `2`, input: `{"data": 1234.567}`},
				"options.thousands_separator": {with: `"format_type": "number"`, one: `","`, other: `"_"`, input: `{"data": 1234.567}`},
				"options.decimal_separator":   {with: `"format_type": "number"`, one: `"."`, other: `"~"`, input: `{"data": 1234.567}`},
				"options.case":                {with: `"format_type": "text"`, one: `"upper"`, other: `"lower"`, input: `{"data": " aB "}`},
				"options.trim":                {with: `"format_type": "text"`, one: `true`, other: `false`, input: `{"data": " aB "}`},
				"options.url_safe":            {with: `"format_type": "base64"`, one: `true`, other: `false`, input: `{"data": "ûÿþ"}`},
				"options.query":               {with: `"format_type": "url", "direction": "parse"`, one: `true`, other: `false`, input: `{"data": "a=1&b=2"}`},
			},
			"ACTION.FILE_OPERATION": {
				"operation":   {with: `"path": "$KEY/a.txt", "content": "x"`, one: `"write"`, other: `"exists"`},
				"path":        {with: `"operation": "write", "content": "x"`, one: `"$KEY/a.txt"`, other: `"$KEY/b.txt"`},
				"destination": {with: `"operation": "archive", "path": "shared.txt"`, one: `"a-$KEY.zip"`, other: `"b-$KEY.zip"`},
				"content":     {with: `"operation": "write", "path": "$KEY/a.txt"`, one: `"x"`, other: `"xy"`},
				"encoding":    {with: `"operation": "write", "path": "$KEY/a.txt", "content": "YWJj"`, one: `"utf8"`, other: `"base64"`},
				"overwrite":   {with: `"operation": "write", "path": "shared.txt", "content": "x"`, one: `true`, other: `false`},
				"recursive":   {before: tree, with: `"operation": "list", "path": "$KEY"`, one: `false`, other: `true`},
				"pattern":     {before: tree, with: `"operation": "list", "path": "$KEY", "recursive": true`, one: `"*.txt"`, other: `"*.md"`},
				"max_bytes":   {with: `"operation": "write", "path": "$KEY/a.txt", "content": "xyz"`, one: `10`, other: `1`},
			},
			"ACTION.DOCUMENT_LOADER": {
				"document":  {one: `"a"`, other: `"b"`, input: `{"file": ` + word + `}`},
				"title":     {one: `"a"`, other: `"b"`, input: `{"file": ` + word + `}`},
				"format":    {one: `"txt"`, other: `"md"`, input: `{"file": ` + word + `}`},
				"max_bytes": {one: `10`, other: `1`, input: `{"file": ` + word + `}`},
			},
			"ACTION.TEXT_SPLITTER": {
				"unit":       {with: `"chunk_size": 20, "overlap": 0`, one: `"characters"`, other: `"tokens"`, input: long},
				"chunk_size": {with: `"overlap": 0`, one: `20`, other: `30`, input: long},
				"overlap":    {with: `"chunk_size": 20`, one: `0`, other: `10`, input: long},
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
				"target":     {with: `"url": "$U/up", "bucket": "b", "credential_id": "$BUCKET", "file": ` + word, one: `"http"`, other: `"s3"`},
				"url":        {with: `"file": ` + word, one: `"$U/a"`, other: `"$U/b"`},
				"method":     {with: up, one: `"POST"`, other: `"PUT"`},
				"field_name": {with: up, one: `"a"`, other: `"b"`},
				"headers":    {with: up, one: `{"Authorization": "{{a}}"}`, other: `{"Authorization": "{{b}}"}`, input: `{"a": "one", "b": "two"}`},
				"bucket":     {with: `"target": "s3", "key": "k", "credential_id": "$BUCKET", "file": ` + word, one: `"bucket-a"`, other: `"bucket-b"`},
				"key":        {with: `"target": "s3", "bucket": "bucket-a", "credential_id": "$BUCKET", "file": ` + word, one: `"a"`, other: `"b"`},
				"file":       {with: `"url": "$U/up"`, one: word, other: `{"base64": "eHl6", "name": "a.txt"}`},
				"max_bytes":  {with: up, one: `10`, other: `1`},
			},
			"ACTION.HTTP_REQUEST": {
				"method":                  {with: get, one: `"GET"`, other: `"PUT"`},
				"url":                     {one: `"$U/a"`, other: `"$U/b"`},
				"headers":                 {with: get, one: `{"Authorization": "{{a}}"}`, other: `{"Authorization": "{{b}}"}`, input: `{"a": "one", "b": "two"}`},
				"query_params":            {with: get, one: `{"q": 1}`, other: `{"q": 2}`},
				"body":                    {with: get + `, "method": "PUT"`, one: `{"a": 1}`, other: `{"a": 2}`},
				"body_type":               {with: get + `, "method": "PUT", "body": {"a": 1}`, one: `"json"`, other: `"form"`},
				"follow_redirects":        {with: `"url": "$U/hop/2"`, one: `true`, other: `false`},
				"max_redirects":           {with: `"url": "$U/hop/2", "max_retries": 0`, one: `2`, other: `1`},
				"response_type":           {with: get, one: `"json"`, other: `"text"`},
				"fail_on_status":          {with: `"url": "$U/status/404"`, one: `true`, other: `false`},
				"idempotency_header":      {with: get + `, "method": "POST"`, one: `"X-Own-A"`, other: `"X-Own-B"`},
				"pagination":              {with: list, other: `{"mode": "page", "page_param": "p"}`},
				"pagination.mode":         {with: list, one: `"page"`, other: `"offset"`},
				"pagination.items_path":   {one: pages(`"mode": "page", "items_path": "items"`), other: pages(`"mode": "page", "items_path": "rows", "max_pages": 2`)},
				"pagination.max_pages":    {one: pages(`"mode": "page", "items_path": "items", "max_pages": 1`), other: pages(`"mode": "page", "items_path": "items", "max_pages": 2`)},
				"pagination.next_path":    {one: pages(`"mode": "link", "items_path": "items", "next_path": "next"`), other: pages(`"mode": "link", "items_path": "items", "next_path": "later"`)},
				"pagination.cursor_path":  {one: pages(`"mode": "cursor", "items_path": "items", "cursor_path": "after"`), other: pages(`"mode": "cursor", "items_path": "items", "cursor_path": "since"`)},
				"pagination.cursor_param": {one: pages(`"mode": "cursor", "items_path": "items", "cursor_path": "after"`), other: pages(`"mode": "cursor", "items_path": "items", "cursor_path": "after", "cursor_param": "c"`)},
				"pagination.page_param":   {one: pages(`"mode": "page", "items_path": "items"`), other: pages(`"mode": "page", "items_path": "items", "page_param": "p"`)},
				"pagination.start_page":   {one: pages(`"mode": "page", "items_path": "items"`), other: pages(`"mode": "page", "items_path": "items", "start_page": 0`)},
				"pagination.offset_param": {one: pages(`"mode": "offset", "items_path": "items"`), other: pages(`"mode": "offset", "items_path": "items", "offset_param": "o"`)},
				"pagination.limit_param":  {one: pages(`"mode": "page", "items_path": "items", "page_size": 1`), other: pages(`"mode": "page", "items_path": "items", "page_size": 1, "limit_param": "size"`)},
				"pagination.page_size":    {one: pages(`"mode": "page", "items_path": "items", "page_size": 1`), other: pages(`"mode": "page", "items_path": "items", "page_size": 2`)},
			},
			"ACTION.WEBHOOK_CALL": {
				"url":                      {one: `"$U/a"`, other: `"$U/b"`},
				"method":                   {with: `"url": "$U/a"`, one: `"POST"`, other: `"PUT"`},
				"headers":                  {with: `"url": "$U/a"`, one: `{"Authorization": "{{a}}"}`, other: `{"Authorization": "{{b}}"}`, input: `{"a": "one", "b": "two"}`},
				"payload":                  {with: `"url": "$U/a"`, one: `{"a": 1}`, other: `{"a": 2}`},
				"wait_for_callback":        {with: `"url": "$U/a", "payload": {}`, one: `true`, other: `false`, waits: true},
				"callback_timeout_seconds": {with: `"url": "$U/a", "payload": {}, "wait_for_callback": true`, one: `600`, other: `900`, waits: true},
			},
			"ACTION.DATABASE_QUERY": {
				"query":       {before: table, with: sql, one: `"select name from item"`, other: `"select n from item"`},
				"question":    {before: table, with: sql + `, "llm_profile": "$P"`, one: `"How many?"`, other: `"How much?"`, scene: "sql"},
				"llm_profile": {before: table, with: sql + `, "question": "How many?"`, one: `"$P"`, other: `"$Q"`, scene: "sql"},
				"tables":      {before: table, with: sql + `, "llm_profile": "$P", "question": "How many?"`, one: `["item"]`, other: `["other"]`, scene: "sql"},
				"parameters":  {before: table, with: sql + `, "query": "select name from item where n = ?"`, one: `[1]`, other: `[2]`},
				"max_rows":    {before: table, with: sql + `, "query": "select name from item"`, one: `1`, other: `2`},
				"row_format":  {before: table, with: sql + `, "query": "select name from item"`, one: `"objects"`, other: `"arrays"`},
			},
			"ACTION.DATABASE_OPERATION": {
				"operation":      {before: table, with: sql + `, "table": "item", "values": {"name": "a", "n": 5}, "conflict_keys": ["name"]`, one: `"insert"`, other: `"upsert"`},
				"table":          {before: table, with: sql + `, "operation": "insert", "values": {"name": "a", "n": 5}`, one: `"item"`, other: `"other"`},
				"rows":           {before: table, with: sql + `, "operation": "insert", "table": "item"`, one: `[{"name": "x"}]`, other: `[{"name": "x"}, {"name": "y"}]`},
				"values":         {before: table, with: sql + `, "operation": "update", "table": "item", "where": {"name": "a"}, "returning": ["n"]`, one: `{"n": 7}`, other: `{"n": 8}`},
				"where":          {before: table, with: sql + `, "operation": "delete", "table": "item"`, one: `{"name": "a"}`, other: `{"name": "none"}`},
				"conflict_keys":  {before: table, with: sql + `, "operation": "upsert", "table": "item", "values": {"name": "a", "n": 5}`, one: `["name"]`, other: `["n"]`},
				"returning":      {before: table, with: sql + `, "operation": "update", "table": "item", "where": {"name": "a"}, "values": {"n": 7}`, one: `["n"]`, other: `["name"]`},
				"statement":      {before: table, with: sql + `, "operation": "execute"`, one: `"delete from item where name = 'a'"`, other: `"delete from item"`},
				"statements":     {before: table, with: sql + `, "operation": "transaction"`, one: `["delete from item where name = 'a'"]`, other: `["delete from item"]`},
				"parameters":     {before: table, with: sql + `, "operation": "execute", "statement": "delete from item where name = ?"`, one: `["a"]`, other: `["none"]`},
				"allow_all_rows": {before: table, with: sql + `, "operation": "delete", "table": "item", "where": "{{start.outputs.which}}"`, one: `true`, other: `false`, input: `{"which": {}}`},
			},
			"ACTION.JINJA_TEMPLATE": {
				"template":      {one: `"{{ a }}"`, other: `"{{ b }}"`, input: `{"a": 1, "b": 2}`},
				"variables":     {with: `"template": "{{ a }}"`, one: `{"a": 1}`, other: `{"a": 2}`},
				"strip":         {with: `"template": " a "`, one: `true`, other: `false`},
				"time_limit_ms": {with: `"template": "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "max_retries": 0`, one: `20`, other: `40`},
			},
			"ACTION.HTML_EXTRACTION": {
				"html":             {with: `"fields": [{"name": "t", "selector": "p"}]`, one: `"<p>a</p>"`, other: `"<p>b</p>"`},
				"fields":           {with: `"html": "<p>a</p><b>c</b>"`, one: `[{"name": "t", "selector": "p"}]`, other: `[{"name": "t", "selector": "b"}]`},
				"fields.name":      {one: extract(`"name": "t", "selector": "p"`), other: extract(`"name": "u", "selector": "p"`)},
				"fields.selector":  {one: extract(`"name": "t", "selector": "p"`), other: extract(`"name": "t", "selector": "b"`)},
				"fields.value":     {one: extract(`"name": "t", "selector": "p", "value": "text"`), other: extract(`"name": "t", "selector": "p", "value": "html"`)},
				"fields.attribute": {one: extract(`"name": "t", "selector": "p", "value": "attribute", "attribute": "id"`), other: extract(`"name": "t", "selector": "p", "value": "attribute", "attribute": "class"`)},
				"fields.all":       {one: extract(`"name": "t", "selector": "p", "all": false`), other: extract(`"name": "t", "selector": "p", "all": true`)},
			},
			"ACTION.RSS_READ": {
				"url":       {shown: "builtin/web.TestFeed", why: "the feed is served there"},
				"max_items": {shown: "builtin/web.TestFeed", why: "the feed is served there"},
				"since":     {shown: "builtin/web.TestFeed", why: "the feed is served there"},
			},
			"ACTION.WEB_SEARCH": {
				"provider":             {with: find, one: `"searxng"`, other: `"brave"`},
				"query":                {with: `"credential_id": "$FIND"`, one: `"a"`, other: `"b"`},
				"max_results":          {with: find, one: `1`, other: `2`},
				"language":             {with: find, one: `"en"`, other: `"de"`},
				"time_range":           {with: find, one: `"day"`, other: `"week"`},
				"include_domains":      {with: find, one: `["a.example"]`, other: `["127.0.0.1"]`},
				"exclude_domains":      {with: find, one: `["a.example"]`, other: `["127.0.0.1"]`},
				"fetch_content":        {with: find + `, "include_domains": ["127.0.0.1"]`, one: `false`, other: `true`},
				"mapping":              {with: mapped, one: `{"url": "a?q={query}"}`, other: `{"url": "b?q={query}"}`},
				"mapping.url":          {with: mapped, one: `"a?q={query}"`, other: `"b?q={query}"`},
				"mapping.results_path": {one: mapping(`"results_path": "results"`), other: mapping(`"results_path": "hits"`)},
				"mapping.total_path":   {one: mapping(`"results_path": "results", "total_path": "count"`), other: mapping(`"results_path": "results", "total_path": "number_of_results"`)},
				"mapping.fields":       {one: mapping(`"results_path": "results", "fields": {"title": "title"}`), other: mapping(`"results_path": "results", "fields": {"title": "name"}`)},
				"mapping.key_header":   {one: mapping(`"results_path": "results", "key_header": "X-Own-A"`), other: mapping(`"results_path": "results", "key_header": "X-Own-B"`)},
				"mapping.key_param":    {one: mapping(`"results_path": "results", "key_param": "a"`), other: mapping(`"results_path": "results", "key_param": "b"`)},
			},
		},
		bench: func(t *testing.T, kind, config string, p proof) string {
			if kind == "ACTION.EXECUTE_SCRIPT" && runtime.GOOS != "linux" {
				t.Skip("host processes run on Linux only")
			}
			return w.run(t, kind, config, p, benchRun{provider: "openai"})
		},
	}.check(t)
}

func pivot(inner string) string {
	return `@"operation": "pivot", "items_path": "items", "pivot_config": {` + inner + `}`
}
