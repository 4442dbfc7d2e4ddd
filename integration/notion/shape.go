package notion

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
)

const (
	// maxText is how many characters a piece of text has at most.
	maxText = 2000
	// maxBlocks is how many blocks Notion takes at once, and how many entries a page of a list has.
	maxBlocks = 100
)

func sortedNames(known map[string]string) []string { return slices.Sorted(maps.Keys(known)) }

// richText is a text in pieces that Notion takes.
func richText(text string) []any {
	list := []any{}
	for runes := []rune(text); len(runes) > 0; {
		n := min(len(runes), maxText)
		list = append(list, rest.Fields{"type": "text", "text": rest.Fields{"content": string(runes[:n])}})
		runes = runes[n:]
	}
	return list
}

// shaped are properties in the form of their types.
func shaped(given node.Object, known map[string]string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	err := given.Each(func(name string, value json.RawMessage) error {
		kind, ok := known[name]
		if !ok {
			for title, k := range known { // order does not matter: there is one title
				if k == "title" && strings.EqualFold(name, "title") {
					name, kind, ok = title, k, true
				}
			}
		}
		if !ok {
			hint := ""
			if near := fault.Nearest(name, sortedNames(known)); near != "" {
				hint = "; did you mean \"" + near + "\"?"
			}
			return fault.Newf(fault.InvalidInput, "there is no property %q; there are %s%s", name, strings.Join(sortedNames(known), ", "),
				hint).With("path", "properties."+name)
		}
		shape, err := property(name, kind, value)
		out[name] = shape
		return err
	})
	return out, err
}

// property is a value in the form of a type. What has that form already stays as it is.
func property(name, kind string, value json.RawMessage) (json.RawMessage, error) {
	v := gjson.ParseBytes(value)
	if v.IsObject() && (v.Get(gjson.Escape(kind)).Exists() || v.Get("id").Exists() && v.Get("type").Exists()) {
		return value, nil
	}
	text, plain := values.Scalar(value)
	wrong := fault.Newf(fault.InvalidInput, "the property %q is of the type %s, which %s does not fit", name, kind, values.Short(value)).With("path", "properties."+name)
	shape := func(inner any) (json.RawMessage, error) { return values.Encode(rest.Fields{kind: inner}), nil }
	if v.Type == gjson.Null {
		if slices.Contains([]string{"title", "rich_text", "multi_select", "people", "relation", "files"}, kind) {
			return shape([]any{})
		}
		return shape(nil)
	}
	switch kind {
	case "title", "rich_text":
		if plain {
			return shape(richText(text))
		}
	case "url", "email", "phone_number":
		if plain {
			return shape(text)
		}
	case "number":
		if n := gjson.Parse(text); plain && n.Type == gjson.Number {
			return shape(json.RawMessage(n.Raw))
		}
	case "checkbox":
		if v.IsBool() || text == "true" || text == "false" {
			return shape(text == "true")
		}
	case "select", "status":
		if plain {
			return shape(rest.Fields{"name": text})
		}
	case "date":
		if plain {
			return shape(rest.Fields{"start": text})
		}
		if v.Get("start").Exists() {
			return shape(value)
		}
	case "multi_select", "people", "relation", "files":
		if list, ok := entries(kind, v); ok {
			return shape(list)
		}
	}
	return nil, wrong
}

// entries are the values of a property that has several: texts, or objects as Notion writes them. A text may have commas between them.
func entries(kind string, v gjson.Result) (list []any, ok bool) {
	parts := v.Array()
	if v.Type == gjson.String {
		parts = nil
		for one := range strings.SplitSeq(v.Str, ",") {
			if one = strings.TrimSpace(one); one != "" {
				parts = append(parts, gjson.Result{Type: gjson.String, Str: one})
			}
		}
	} else if !v.IsArray() {
		return nil, false
	}
	list = []any{}
	for _, one := range parts {
		switch {
		case one.IsObject():
			list = append(list, json.RawMessage(one.Raw))
		case one.Type != gjson.String:
			return nil, false
		case kind == "multi_select":
			list = append(list, rest.Fields{"name": one.Str})
		case kind == "files":
			list = append(list, rest.Fields{"name": one.Str[strings.LastIndexByte(one.Str, '/')+1:], "type": "external", "external": rest.Fields{"url": one.Str}})
		default:
			list = append(list, rest.Fields{"id": one.Str})
		}
	}
	return list, true
}

// numbered begins a line of a numbered list.
var numbered = regexp.MustCompile(`^\d+[.)] +`) // read-only

// blocksOf are the blocks of a text in Markdown. Marks inside of lines stay as they are.
func blocksOf(markdown string) (blocks []json.RawMessage) {
	var paragraph, code []string
	fence, language := false, ""
	add := func(kind, text string, more rest.Fields) {
		inner := rest.Fields{"rich_text": richText(text)}
		maps.Copy(inner, more)
		blocks = append(blocks, values.Encode(rest.Fields{"object": "block", "type": kind, kind: inner}))
	}
	end := func() {
		if len(paragraph) > 0 {
			add("paragraph", strings.Join(paragraph, "\n"), nil)
			paragraph = nil
		}
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(markdown, "\r\n", "\n"), "\n") {
		trimmed := strings.TrimSpace(line)
		if mark, is := strings.CutPrefix(trimmed, "```"); is {
			if fence {
				add("code", strings.Join(code, "\n"), rest.Fields{"language": language})
				code = nil
			} else {
				end()
				language = orElse(mark, "plain text")
			}
			fence = !fence
			continue
		}
		if fence {
			code = append(code, line)
			continue
		}
		if kind, text, more := blockOf(trimmed); kind != "" {
			end()
			if kind == "divider" {
				blocks = append(blocks, json.RawMessage(`{"object":"block","type":"divider","divider":{}}`))
				continue
			}
			add(kind, text, more)
			continue
		}
		if trimmed == "" {
			end()
			continue
		}
		paragraph = append(paragraph, line)
	}
	if fence {
		add("code", strings.Join(code, "\n"), rest.Fields{"language": language})
	}
	end()
	return blocks
}

// blockOf is the block that one line makes by itself; empty: it is part of a paragraph.
func blockOf(line string) (kind, text string, more rest.Fields) {
	for _, b := range []struct {
		mark, kind string
		more       rest.Fields
	}{
		{"# ", "heading_1", nil}, {"## ", "heading_2", nil}, {"### ", "heading_3", nil}, {"#### ", "heading_3", nil}, {"> ", "quote", nil},
		{"- [ ] ", "to_do", rest.Fields{"checked": false}}, {"- [x] ", "to_do", rest.Fields{"checked": true}}, {"- ", "bulleted_list_item", nil}, {"* ", "bulleted_list_item", nil},
	} {
		if text, is := strings.CutPrefix(line, b.mark); is {
			return b.kind, strings.TrimSpace(text), b.more
		}
	}
	if line == "---" || line == "***" {
		return "divider", "", nil
	}
	if mark := numbered.FindString(line); mark != "" {
		return "numbered_list_item", line[len(mark):], nil
	}
	return "", "", nil
}
