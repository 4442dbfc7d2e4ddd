package app

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/expr"
	"tandem/workflow"
)

// actionKinds work on data, files, databases and plain HTTP.
func actionKinds() []kind {
	return []kind{
		{subtype: "RUN_CODE", effect: workflow.Pure,
			config: `code*:code; language{python|javascript}=python; entry=main; time_limit_ms=10000[10..120000]; memory_mb=128[16..1024]`},
		{subtype: "EXECUTE_SCRIPT", effect: workflow.Once,
			config: `interpreter{bash|sh|python|node|pwsh}=bash; script:code; command; args:list; env:obj; stdin:tmpl; working_dir=".";
				success_codes:list=[0]; need script|command`},
		{subtype: "DATA_TRANSFORMATION", effect: workflow.Pure, rules: transformationRules,
			config: `operation*{map|filter|aggregate|sort|group_by|join|flatten|pivot|custom|~extract_fields}=map; field_mapping:obj; items_path;
				filter_conditions:list; sort_config:obj(field; direction{asc|desc}=asc); group_by_fields:list; aggregation_functions:obj;
				join_config:obj(right_path=right; left_key; right_key; type{inner|left|right|full}=inner);
				flatten_config:obj(path; depth=1[1..]); pivot_config:obj(index:str/list; columns; values; function);
				transformation_script:code; output_format{json|array|csv|xml}=json; preserve_metadata=true`},
		{subtype: "DATA_VALIDATION", effect: workflow.Pure, keys: []string{"result", "valid", "invalid"}, rules: validationRules,
			config: `schema:obj; each=false; on_invalid{route|fail}=route; items_path; need schema|rules;
				rules:list(field*; rule*{required|type|min|max|length|pattern|enum|email|url|date|unique|expression}; value:any; message)`},
		{subtype: "DATA_FORMATTING", effect: workflow.Pure, rules: formattingRules,
			config: `format_type*{template|json|csv|xml|yaml|markdown|html|date|number|text|base64|url}; direction{format|parse}=format;
				template:tmpl; options:obj`},
		{subtype: "FILE_OPERATION", effectOf: fileEffect, rules: fileRules,
			config: `operation*{read|write|append|copy|move|delete|list|exists|stat|mkdir|hash|archive|extract}; path*:tmpl;
				destination, content:tmpl; encoding{utf8|base64}=utf8; overwrite, recursive=false; pattern; max_bytes=10485760[1..]`},
		{subtype: "FILE_UPLOAD", effectOf: uploadEffect, rules: uploadRules,
			config: `target*{http|s3|gcs|azure_blob}=http; url:tmpl; method{POST|PUT}=POST; field_name=file; headers:obj; bucket, key:tmpl;
				file:file; max_bytes=104857600[1..]; cred http_auth/aws_keys/gcp_service_account/azure`},
		{subtype: "FILE_DOWNLOAD", effect: workflow.Idempotent,
			config: `url*:tmpl; headers:obj; save_path:tmpl; overwrite=false; max_bytes=104857600[1..]; allowed_types:list; sha256; cred http_auth`},
		{subtype: "HTTP_REQUEST", effectOf: httpEffect,
			config: `method*{GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS}=GET; url*:tmpl; headers, query_params:obj; body:any;
				body_type{json|form|raw|none}=json; follow_redirects=true; max_redirects=5[0..20]; response_type{auto|json|text|file}=auto;
				fail_on_status=true; idempotency_header; cred http_auth;
				pagination:obj(mode*{link|cursor|page|offset}; items_path; max_pages=10[1..]; next_path; cursor_path; cursor_param=cursor;
					page_param=page; start_page=1[0..]; offset_param=offset; limit_param=limit; page_size=0[0..])`},
		{subtype: "WEBHOOK_CALL", keys: []string{"result", "timeout"},
			effectOf: func(c *config) workflow.Effect { return byMethod(c.choice("method")) },
			config: `url*:tmpl; method{POST|PUT|GET}=POST; headers:obj; payload:any; wait_for_callback=false;
				callback_timeout_seconds=3600[1..2592000]; cred http_auth`},
		{subtype: "DATABASE_QUERY", effect: workflow.Idempotent, rules: queryRules,
			config: `query:sql; question:tmpl; llm_profile; profile_id -> llm_profile; tables:list; parameters:list/obj;
				max_rows=1000[1..100000]; row_format{objects|arrays}=objects; cred* sql; need query|question`},
		{subtype: "DATABASE_OPERATION", effectOf: databaseEffect, rules: databaseRules,
			config: `operation*{insert|update|delete|upsert|execute|transaction}; table; rows:list; values:obj; where:obj;
				conflict_keys, returning:list; statement:sql; statements:list; parameters:list/obj; allow_all_rows=false; cred* sql`},
		{subtype: "WEB_SEARCH", effect: workflow.Idempotent,
			config: `provider{searxng|brave|tavily|bing|json}; query:tmpl; max_results=10[1..50]; language;
				time_range{any|day|week|month|year}=any; include_domains, exclude_domains:list; fetch_content=false; cred* search;
				mapping:obj(url*; results_path; total_path; fields:obj; key_header; key_param)`},
	}
}

// requireFor reports a field that another field's value makes necessary.
func (c *config) requireFor(name, because string) {
	if !c.has(name) && !c.has("template_id") {
		c.invalid(join("configurations", name), "is required %s", because)
	}
}

func transformationRules(c *config) {
	operation := c.text("operation")
	field := map[string]string{
		"filter": "filter_conditions", "sort": "sort_config", "group_by": "group_by_fields", "join": "join_config",
		"flatten": "flatten_config", "pivot": "pivot_config", "custom": "transformation_script", "aggregate": "aggregation_functions",
	}[operation]
	// Flattening and joining have usable defaults.
	if field != "" && operation != "flatten" && operation != "join" {
		c.requireFor(field, `when operation is "`+operation+`"`)
	}
	// Both are written in the expression language, which binds placeholders as values.
	if c.has("field_mapping") {
		c.plan.Shielded = append(c.plan.Shielded, c.at("field_mapping"))
	}
	for i, item := range c.items("filter_conditions") {
		if e := item.Get("expression"); e.Type == gjson.String {
			path := fmt.Sprintf("%s[%d].expression", c.at("filter_conditions"), i)
			c.plan.Expressions = append(c.plan.Expressions, workflow.Expression{Path: path, Source: e.Str})
		}
	}
}

// validationRules: the value of a rule of the sort "expression" is one.
func validationRules(c *config) {
	for i, item := range c.items("rules") {
		if value := item.Get("value"); strings.EqualFold(item.Get("rule").Str, "expression") && value.Type == gjson.String {
			path := fmt.Sprintf("%s[%d].value", c.at("rules"), i)
			c.plan.Expressions = append(c.plan.Expressions, workflow.Expression{Path: path, Source: value.Str})
		}
	}
}

func formattingRules(c *config) {
	if c.text("format_type") == "template" {
		c.requireFor("template", `when format_type is "template"`)
	}
	if layout := c.values["options"].Get("date_format"); layout.Type == gjson.String && layout.Str != "" && !dynamic(layout) {
		if _, err := expr.ReadDateLayout(layout.Str); err != nil {
			c.invalid(c.at("options")+".date_format", "is not a layout of a date: it %s", err.Error())
		}
	}
}

func fileEffect(c *config) workflow.Effect {
	if operation := c.choice("operation"); operation == "append" || operation == "" {
		return workflow.Once
	}
	return workflow.Idempotent // a write is a temporary file and a rename
}

func fileRules(c *config) {
	switch operation := c.text("operation"); operation {
	case "copy", "move", "archive", "extract":
		c.requireFor("destination", `when operation is "`+operation+`"`)
	}
}

func uploadEffect(c *config) workflow.Effect {
	switch c.choice("target") {
	case "s3", "gcs", "azure_blob":
		return workflow.Idempotent
	}
	return byMethod(c.choice("method"))
}

func uploadRules(c *config) {
	switch target := c.text("target"); target {
	case "http":
		c.requireFor("url", `when target is "http"`)
	case "s3", "gcs", "azure_blob":
		c.requireFor("bucket", `when target is "`+target+`"`)
	}
}

func httpEffect(c *config) workflow.Effect {
	if c.has("idempotency_header") {
		return workflow.Idempotent
	}
	return byMethod(c.choice("method"))
}

func queryRules(c *config) {
	if c.has("question") && !c.has("query") {
		c.requireFor("llm_profile", "when a question takes the place of the query")
	}
	if c.has("query") && c.has("question") {
		c.invalid(c.at("question"), "and query exclude each other; keep one of them")
	}
}

func databaseEffect(c *config) workflow.Effect {
	if c.text("operation") == "upsert" {
		return workflow.Idempotent
	}
	return workflow.Once
}

func databaseRules(c *config) {
	operation := c.text("operation")
	because := `when operation is "` + operation + `"`
	switch operation {
	case "insert", "upsert", "update", "delete":
		c.requireFor("table", because)
	case "execute":
		c.requireFor("statement", because)
	case "transaction":
		c.requireFor("statements", because)
	}
	switch {
	case operation == "upsert":
		c.requireFor("conflict_keys", because)
		fallthrough
	case operation == "insert":
		if !c.has("rows") {
			c.requireFor("values", because+" and rows is not set")
		}
	case operation == "update":
		c.requireFor("values", because)
	}
	statementTexts(c)
	where := strings.TrimSpace(c.values["where"].Raw)
	if (operation == "update" || operation == "delete") && (where == "" || where == "{}") && !c.flag("allow_all_rows") && !c.has("template_id") {
		c.invalid(c.at("where"), "is required %s; set allow_all_rows to true if every row is meant", because)
	}
}

// statementTexts: the statements of a transaction are SQL, alone or with parameters of their own.
func statementTexts(c *config) {
	if c.has("statements") && c.values["statements"].Type == gjson.String {
		c.plan.Bound = append(c.plan.Bound, c.at("statements")) // a placeholder is a value and never SQL, also not a list of it
	}
	for i, item := range c.items("statements") {
		at := fmt.Sprintf("%s[%d]", c.at("statements"), i)
		switch {
		case item.IsObject():
			c.plan.Bound = append(c.plan.Bound, at+".statement")
		case item.Type == gjson.String:
			c.plan.Bound = append(c.plan.Bound, at)
		default:
			c.invalid(at, `must be an SQL text, or an object with "statement" and "parameters", not %s`, excerpt(item))
		}
	}
}
