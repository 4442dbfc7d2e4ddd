// Package early lets kinds find out when a workflow is saved what their runs would refuse: a value that is written out is read as
// a run reads it. Revisions that are stored already are run nevertheless, and their runs refuse it.
package early

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// Read refuses what is written in a field, or in a field of an object ("options.date_format"), if it cannot be read. What a
// placeholder decides is left to the run, and so is what is empty.
func Read(p *node.Planning, name string, read func(raw json.RawMessage) error) {
	field, below, _ := strings.Cut(name, ".")
	v, at := p.Value(field), p.At(field)
	if below != "" {
		v, at = v.Get(below), node.Under(at, below)
	}
	try(p, at, v, read)
}

// Text is [Read] for a field with a text. Anything else there is refused for what it is.
func Text(p *node.Planning, name string, read func(text string) error) {
	Read(p, name, texts(read))
}

// Paths refuses fields that hold a path, or a list of paths, which cannot be read. A field of the objects of a list is named
// behind a star: sort_fields.*.field.
func Paths(p *node.Planning, names ...string) { paths(p, "", names) }

// Keys is [Paths] for what items are ordered by: "." is the item itself.
func Keys(p *node.Planning, names ...string) { paths(p, ".", names) }

// paths refuses paths that cannot be read. Besides these there is one text that says something else.
func paths(p *node.Planning, besides string, names []string) {
	read := texts(func(path string) error {
		if path == besides {
			return nil
		}
		if _, err := payload.ParsePath(strings.TrimSpace(path)); err != nil {
			return fault.Say(fault.InvalidConfig, text.Of(`%q is not a path; write it like a.b, a[0].b or a["odd key"]`, path))
		}
		return nil
	})
	for _, name := range names {
		field, below, listed := strings.Cut(name, ".*.")
		items := p.Items(field)
		if !listed && len(items) == 0 {
			Read(p, name, read)
			continue
		}
		for i, item := range items {
			at := fmt.Sprintf("%s[%d]", p.At(field), i)
			if listed {
				item, at = item.Get(below), node.Under(at, below)
			}
			try(p, at, item, read)
		}
	}
}

func texts(read func(text string) error) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		if v := gjson.ParseBytes(raw); v.Type == gjson.String {
			return read(v.Str)
		}
		return nil
	}
}

func try(p *node.Planning, at string, v gjson.Result, read func(json.RawMessage) error) {
	if v.Type == gjson.Null || v.Type == gjson.String && strings.TrimSpace(v.Str) == "" || strings.Contains(v.Raw, "{{") ||
		strings.Contains(v.Raw, "${") {
		return
	}
	if err := read(json.RawMessage(v.Raw)); err != nil {
		p.Saving(func() { p.Refuse(workflow.ProblemConfig, at, "%s", said(fault.From(err))) })
	}
}

// said is what an error says, in every language that it has words in.
func said(f *fault.Error) any {
	if words, err := text.Read(f.Words()); err == nil {
		return words
	}
	return f.Message
}
