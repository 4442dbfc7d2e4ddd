package gcp

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
)

const (
	// firstWait is how long BigQuery may take before the node waits, and pollEvery how long it waits then.
	firstWait = 10 * time.Second
	pollEvery = 5 * time.Second
	// pageRows is how many rows are read at once.
	pageRows = 10_000
)

// job is a query that runs: what the node remembers while it waits.
type job struct {
	Project  string `json:"project"`
	ID       string `json:"id"`
	Location string `json:"location"`
}

func (a *acting) query() (out actionResult, err error) {
	api := a.service("bigquery")
	if a.call.Wake != nil && len(a.call.Memo) > 0 {
		var j job
		if err := json.Unmarshal(a.call.Memo, &j); err != nil {
			return out, fault.New(fault.Internal, "what the node has remembered cannot be read").WithCause(err)
		}
		return a.results(api, j, rest.Answer{})
	}
	project, err := a.project()
	if err != nil {
		return out, err
	}
	statement, err := a.statement()
	if err != nil {
		return out, err
	}
	if err := a.reads(api, project, statement); err != nil {
		return out, err
	}
	body := rest.Fields{
		"requestId": action.Marker(a.call, "bigquery"), "timeoutMs": firstWait.Milliseconds(), "maxResults": min(a.cfg.MaxRows, pageRows),
		"formatOptions": map[string]bool{"useInt64Timestamp": true},
	}.Text("location", a.cfg.Location)
	for name, value := range statement { // order does not matter: they are named
		body[name] = value
	}
	answer, err := api.Do(a.ctx, rest.Call{Method: http.MethodPost, Path: rest.Path("bigquery", "v2", "projects", project, "queries"),
		Body: body, Repeatable: true, Fields: []string{"jobComplete"}})
	if err != nil {
		return out, err
	}
	j := job{Project: project, ID: answer.Get("jobReference.jobId").Str, Location: answer.Get("jobReference.location").Str}
	return a.results(api, j, answer)
}

// reads sees by a dry run that a statement changes nothing. It costs nothing.
func (a *acting) reads(api *rest.API, project string, statement rest.Fields) error {
	body := rest.Fields{"configuration": rest.Fields{"dryRun": true, "query": statement}}
	if a.cfg.Location != "" {
		body["jobReference"] = map[string]string{"projectId": project, "location": a.cfg.Location}
	}
	answer, err := api.Do(a.ctx, rest.Call{Method: http.MethodPost, Path: rest.Path("bigquery", "v2", "projects", project, "jobs"),
		Body: body, Repeatable: true, Fields: []string{"statistics"}})
	if err != nil {
		return err
	}
	if kind := answer.Get("statistics.query.statementType").Str; kind != "SELECT" {
		return fault.Newf(fault.Unsupported, "the statement is one of %s; only those that read are run here", cmp.Or(kind, "an unknown sort")).With("path", "query")
	}
	return nil
}

// statement is the query with its parameters, as BigQuery takes them.
func (a *acting) statement() (rest.Fields, error) {
	text, named := string(a.cfg.Query), []any{}
	if a.call.Bind != nil {
		bound, err := a.call.Bind(text)
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		for i, words := range bound.Text {
			b.WriteString(words)
			if i >= len(bound.Values) {
				break
			}
			if quoted(b.String()) {
				return nil, fault.New(fault.InvalidConfig, "a placeholder of the query stands inside of quotes; write it without them: it becomes a value").With("path", "configurations.query")
			}
			name := "tandem_" + strconv.Itoa(i)
			b.WriteString("@" + name)
			named = append(named, parameter(name, bound.Values[i]))
		}
		text = b.String()
	}
	out := rest.Fields{"query": text, "useLegacySql": false}
	switch {
	case values.IsList(a.cfg.Parameters) && len(named) > 0:
		return nil, fault.New(fault.InvalidInput, "a query with placeholders takes parameters by name; write @name into it, and an object").With("path", "parameters")
	case values.IsList(a.cfg.Parameters):
		list := []any{}
		for _, value := range values.Elements(a.cfg.Parameters) {
			list = append(list, parameter("", value))
		}
		out["parameterMode"], out["queryParameters"] = "POSITIONAL", list
		return out, nil
	case values.IsObject(a.cfg.Parameters):
		for _, m := range values.Members(a.cfg.Parameters) {
			named = append(named, parameter(m.Key, m.Value))
		}
	}
	if len(named) > 0 {
		out["parameterMode"], out["queryParameters"] = "NAMED", named
	}
	return out, nil
}

// quoted says that a text ends inside of quotes.
func quoted(text string) bool {
	var open rune
	escaped := false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case open != 0 && c == '\\':
			escaped = true
		case open == c:
			open = 0
		case open == 0 && (c == '\'' || c == '"' || c == '`'):
			open = c
		}
	}
	return open != 0
}

// parameter is a value with its type.
func parameter(name string, raw json.RawMessage) rest.Fields {
	kind, value := typed(gjson.ParseBytes(raw))
	return rest.Fields{"parameterType": kind, "parameterValue": value}.Text("name", name)
}

// typed is the type of a value and the value, as BigQuery writes both.
func typed(v gjson.Result) (kind, value map[string]any) {
	plain := func(name, text string) (map[string]any, map[string]any) {
		return map[string]any{"type": name}, map[string]any{"value": text}
	}
	switch {
	case v.Type == gjson.String:
		return plain("STRING", v.Str)
	case v.IsBool():
		return plain("BOOL", v.Raw)
	case v.Type == gjson.Number && !strings.ContainsAny(v.Raw, ".eE"):
		return plain("INT64", v.Raw)
	case v.Type == gjson.Number:
		return plain("FLOAT64", v.Raw)
	case v.IsArray():
		kind, list := map[string]any{"type": "STRING"}, []any{}
		for _, one := range v.Array() {
			var inner map[string]any
			kind, inner = typed(one)
			list = append(list, inner)
		}
		return map[string]any{"type": "ARRAY", "arrayType": kind}, map[string]any{"arrayValues": list}
	case v.IsObject():
		return plain("JSON", v.Raw)
	}
	return map[string]any{"type": "STRING"}, map[string]any{"value": nil}
}

// results reads the rows of a query, or waits until it has some. First is what has been answered already, perhaps nothing.
func (a *acting) results(api *rest.API, j job, first rest.Answer) (out actionResult, err error) {
	answer := first
	for token := ""; ; {
		if answer.Body == nil || token != "" {
			query := url.Values{"maxResults": {strconv.Itoa(min(a.cfg.MaxRows, pageRows))}, "timeoutMs": {"0"}, "formatOptions.useInt64Timestamp": {"true"}}
			for name, text := range map[string]string{"location": j.Location, "pageToken": token} { // order does not matter: they are named
				if text != "" {
					query.Set(name, text)
				}
			}
			answer, err = api.Do(a.ctx, rest.Call{Method: http.MethodGet,
				Path: rest.Path("bigquery", "v2", "projects", j.Project, "queries", j.ID), Query: query, Fields: []string{"jobComplete"}})
			if err != nil {
				return out, err
			}
		}
		if !answer.Get("jobComplete").Bool() {
			memo, err := payload.Encode(j)
			if err != nil {
				return out, err
			}
			return out, &action.Pause{Wait: node.Wait{Until: a.call.Time().Add(pollEvery), Memo: memo}}
		}
		fields := answer.Get("schema.fields").Array()
		for _, row := range answer.Get("rows").Array() {
			if len(out.Rows) == a.cfg.MaxRows {
				out.Truncated = true
				break
			}
			encoded, err := payload.Encode(record(fields, row))
			if err != nil {
				return out, err
			}
			out.Rows = append(out.Rows, encoded)
		}
		if token = answer.Get("pageToken").Str; token == "" || len(out.Rows) >= a.cfg.MaxRows {
			out.Truncated = out.Truncated || token != ""
			break
		}
	}
	out.ResourceID = j.ID
	out.Response, err = payload.Encode(rest.Fields{"jobId": j.ID}.Text("location", j.Location).Text("totalRows", answer.Get("totalRows").String()).
		Text("totalBytesProcessed", answer.Get("totalBytesProcessed").String()))
	return out, err
}

// record is a row, or a record in one, as an object.
func record(fields []gjson.Result, row gjson.Result) map[string]any {
	out := map[string]any{}
	for i, cell := range row.Get("f").Array() {
		if i >= len(fields) {
			break
		}
		field, v := fields[i], cell.Get("v")
		if field.Get("mode").Str != "REPEATED" {
			out[field.Get("name").Str] = value(field, v)
			continue
		}
		list := []any{}
		for _, one := range v.Array() {
			list = append(list, value(field, one.Get("v")))
		}
		out[field.Get("name").Str] = list
	}
	return out
}

// value is a cell as a value: BigQuery writes everything as text.
func value(field, v gjson.Result) any {
	if v.Type == gjson.Null {
		return nil
	}
	switch field.Get("type").Str {
	case "INTEGER", "INT64", "FLOAT", "FLOAT64", "NUMERIC", "BIGNUMERIC":
		if raw := json.RawMessage(v.String()); gjson.ParseBytes(raw).Type == gjson.Number && payload.Check(raw, payload.Limits{}) == nil {
			return raw
		}
	case "BOOLEAN", "BOOL":
		return v.String() == "true"
	case "RECORD", "STRUCT":
		return record(field.Get("fields").Array(), v)
	case "TIMESTAMP":
		if micros, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano)
		}
	case "JSON":
		if raw := json.RawMessage(v.String()); payload.Check(raw, payload.Limits{}) == nil {
			return raw
		}
	}
	return v.String()
}
