package credential

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tandem/payload"
)

// Reference is a place in a document that names a credential, by its id or its name.
type Reference struct {
	// Path is where, from the root of the document: nodes[2].configurations.credential_id.
	Path string
	Name string
}

// References finds what names a credential in a JSON document: texts under credential_id and names that end with _credential_id, however
// they are spelled. Placeholders, which only a run can resolve, are left out.
func References(document json.RawMessage) []Reference {
	value, err := payload.Decode(document)
	if err != nil {
		return nil // its reader says so
	}
	var found []Reference
	walkReferences(value, "", func(path, name string) { found = append(found, Reference{path, name}) })
	return found
}

func walkReferences(value any, path string, each func(path, name string)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := payload.JoinKey(path, key)
			if text, ok := v[key].(string); ok && isReference(key) && text != "" && !strings.Contains(text, "{{") &&
				!strings.Contains(text, "${") {
				each(at, text)
			}
			walkReferences(v[key], at, each)
		}
	case []any:
		for i, item := range v {
			walkReferences(item, payload.JoinIndex(path, i), each)
		}
	}
}

// isReference recognises the names of fields that name a credential.
func isReference(key string) bool {
	key = foldedName(key)
	return key == "credential_id" || strings.HasSuffix(key, "_credential_id")
}

// Named is a document with every credential that it names by an id named by its name instead, so that it can be used where the ids are
// others. Names has the names by the ids; what is not in it stays as it is. Fields keep their order and numbers their digits.
func Named(document json.RawMessage, names map[string]string) json.RawMessage {
	if !slices.ContainsFunc(References(document), func(r Reference) bool { return names[r.Name] != "" }) {
		return document
	}
	return appendNamed(nil, "", document, names)
}

func appendNamed(out []byte, key string, value []byte, names map[string]string) []byte {
	value = bytes.TrimSpace(value)
	switch {
	case len(value) == 0:
		return out
	case value[0] == '{':
		out = append(out, '{')
		first := len(out)
		payload.EachField(value, func(written, inner []byte) bool {
			if len(out) > first {
				out = append(out, ',')
			}
			out = append(append(append(out, '"'), written...), '"', ':')
			out = appendNamed(out, string(written), inner, names)
			return true
		})
		return append(out, '}')
	case value[0] == '[':
		out = append(out, '[')
		first := len(out)
		payload.EachItem(value, func(inner []byte) bool {
			if len(out) > first {
				out = append(out, ',')
			}
			out = appendNamed(out, "", inner, names)
			return true
		})
		return append(out, ']')
	}
	var text string
	if isReference(key) && json.Unmarshal(value, &text) == nil && names[text] != "" {
		return append(out, payload.Quote(names[text])...)
	}
	return append(out, value...)
}
