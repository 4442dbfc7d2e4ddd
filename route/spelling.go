package route

import (
	"encoding/json"
	"strings"
	"unicode"
)

// Some fields go by other names in files and programs that are older than this API: in camel case, and a few by other words. They are taken
// by the operations that the server names, where a body describes an agent, a task or a template of nodes; the answers have the names of
// this API.

// olderNames are the names that are not only spelled in another way.
func olderNames() map[string]string {
	return map[string]string{"call_id": "kind", "user_input": "question", "filled_slot": "filled_slots",
		"document": "documents", "profile_id": "llm_profile"}
}

// newerNames is a body with the names of this API. A field that is there under both names stays as it was sent, and is refused as
// one that is not known.
func newerNames(body []byte) []byte {
	var fields map[string]json.RawMessage
	if !looksLikeJSON(body) || json.Unmarshal(body, &fields) != nil {
		return body // the code that expects an object says what is wrong
	}
	changed := false
	for name, value := range fields { // order does not matter: each name stands for itself
		now := name
		if strings.ToLower(name) != name {
			now = SnakeCase(name)
		}
		if other, ok := olderNames()[now]; ok {
			now = other
		}
		if _, taken := fields[now]; now == name || taken {
			continue
		}
		delete(fields, name)
		fields[now] = value
		changed = true
	}
	if !changed {
		return body
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return body // made of JSON, it always is JSON
	}
	return out
}

// SnakeCase turns camel case into snake case: baseURL and baseUrl are base_url.
func SnakeCase(name string) string {
	var b strings.Builder
	before := rune('A')
	for _, r := range name {
		if unicode.IsUpper(r) && !unicode.IsUpper(before) && before != '_' {
			b.WriteByte('_')
		}
		before = r
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
