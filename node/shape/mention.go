package shape

import (
	"github.com/tidwall/gjson"

	"tandem/payload"
)

// RecordSort is a sort of records of a workspace that configurations name.
type RecordSort string

// The sorts. A credential is named under one name everywhere (see credential.References), so it has none.
const (
	NamesProfile    RecordSort = "profile"     // a profile of a model
	NamesToolServer RecordSort = "tool_server" // a registered tool server
	NamesTool       RecordSort = "tool"        // a tool of one, as server/tool
	NamesWorkflow   RecordSort = "workflow"
	NamesAgent      RecordSort = "agent"
	NamesTemplate   RecordSort = "template"
	NamesPerson     RecordSort = "person" // a user, a role or an address
)

// recordSorts lists them; a tag with another one is a defect of its kind.
func recordSorts() []RecordSort {
	return []RecordSort{NamesProfile, NamesToolServer, NamesTool, NamesWorkflow, NamesAgent, NamesTemplate, NamesPerson}
}

// Mention is a text in a configuration that names a record, and where it stands.
type Mention struct{ Text, Path string }

// Mentions finds the records of a sort that an object of the shape names, alone or in lists, without those that only a run can know.
func (s *Shape) Mentions(at gjson.Result, path string, sort RecordSort) (list []Mention) {
	if s == nil || !at.IsObject() {
		return nil
	}
	at.ForEach(func(key, value gjson.Result) bool {
		if i := s.Find(key.Str); i >= 0 {
			list = append(list, s.Fields[i].Mentions(value, payload.JoinKey(path, key.Str), sort)...)
		}
		return true
	})
	return list
}

// Mentions finds those that a value of the field names.
func (f *Field) Mentions(value gjson.Result, path string, sort RecordSort) (list []Mention) {
	if value.IsArray() {
		for i, item := range value.Array() {
			list = append(list, f.Mentions(item, payload.JoinIndex(path, i), sort)...)
		}
		return list
	}
	if f.Names == sort && value.Type == gjson.String && value.Str != "" && !Dynamic(value) {
		return []Mention{{value.Str, path}}
	}
	return f.Inner.Mentions(value, path, sort)
}
