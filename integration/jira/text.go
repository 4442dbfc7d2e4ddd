package jira

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
)

// prose is a text as the version of the API takes it: version 3 wants its document format. What is a document already stays as it is.
func prose(version int, name string, raw json.RawMessage) (json.RawMessage, error) {
	if values.IsObject(raw) {
		return raw, nil
	}
	text, ok := values.Scalar(raw)
	if !ok {
		return nil, fault.Newf(fault.InvalidInput, "%s must be a text, or a document as Jira defines it", name).With("path", name)
	}
	if version != 3 {
		return values.Encode(text), nil
	}
	return values.Encode(document(text)), nil
}

// document is a text in the document format: a paragraph for each part between empty lines, its lines parted by breaks.
func document(text string) map[string]any {
	paragraphs := []any{}
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		content := []any{}
		for line := range strings.SplitSeq(strings.Trim(part, "\n"), "\n") {
			if len(content) > 0 {
				content = append(content, map[string]any{"type": "hardBreak"})
			}
			if line != "" { // the format has no empty text
				content = append(content, map[string]any{"type": "text", "text": line})
			}
		}
		if len(content) > 0 {
			paragraphs = append(paragraphs, map[string]any{"type": "paragraph", "content": content})
		}
	}
	return map[string]any{"type": "doc", "version": 1, "content": paragraphs}
}

// bound is a query of JQL with its parameters: a name after a colon stands for a value, which is quoted. Inside of quotation marks a colon
// is a colon.
func bound(jql string, params node.Object) (string, error) {
	given := gjson.ParseBytes(params)
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(jql); i++ {
		c := jql[i]
		switch {
		case quote != 0 && c == '\\' && i+1 < len(jql):
			out.WriteByte(c)
			i++
			c = jql[i]
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && c == ':':
			end := i + 1
			for end < len(jql) && (jql[end] == '_' || jql[end] >= '0' && jql[end] <= '9' || jql[end] >= 'a' && jql[end] <= 'z' ||
				jql[end] >= 'A' && jql[end] <= 'Z') {
				end++
			}
			name := jql[i+1 : end]
			value := given.Get(gjson.Escape(name))
			if name == "" || !value.Exists() {
				return "", fault.Newf(fault.InvalidInput, "jql_params has no %q, which jql names; a colon that is part of a value stands in quotation marks", name).
					With("path", "jql_params")
			}
			text, err := quoted(name, value)
			if err != nil {
				return "", err
			}
			out.WriteString(text)
			i = end - 1
			continue
		}
		out.WriteByte(c)
	}
	return out.String(), nil
}

// quoted is a value as JQL writes it.
func quoted(name string, v gjson.Result) (string, error) {
	switch {
	case v.IsArray():
		var list []string
		for _, item := range v.Array() {
			text, err := quoted(name, item)
			if err != nil {
				return "", err
			}
			list = append(list, text)
		}
		return "(" + strings.Join(list, ", ") + ")", nil
	case v.IsObject():
		return "", fault.Newf(fault.InvalidInput, "jql_params: %q must be a text, a number or a list of them", name).With("path", "jql_params")
	case v.Type == gjson.Null:
		return "EMPTY", nil
	case v.Type == gjson.Number:
		return v.Raw, nil
	case v.Type == gjson.String:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(v.Str) + `"`, nil
	}
	return `"` + strconv.FormatBool(v.Bool()) + `"`, nil
}

// proseFields are the fields of an issue with those texts as the version takes them that Jira always has.
func proseFields(version int, raw json.RawMessage) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	if payload.IsNull(raw) {
		return out, nil
	}
	if !values.IsObject(raw) {
		return nil, fault.New(fault.InvalidInput, "fields must be an object of fields and their values").With("path", "fields")
	}
	for _, m := range payload.Members(raw) {
		value := m.Value
		if (m.Key == "description" || m.Key == "environment") && gjson.ParseBytes(value).Type == gjson.String {
			var err error
			if value, err = prose(version, "fields."+m.Key, value); err != nil {
				return nil, err
			}
		}
		out[m.Key] = value
	}
	return out, nil
}
