package ai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/memory"
)

// source is a part of a document that a turn was told, and whether its answer names it.
type source struct {
	memory.Source
	Cited bool `json:"cited"`
}

// sources are what memories and searches have told the turn, each once, in the order in which they were told. An answer names one by its id
// in square brackets.
func (p *progress) sources(answer string) (list []source, err error) {
	add := func(more []source) {
		for _, s := range more {
			if s.ID == "" || slices.ContainsFunc(list, func(o source) bool { return o.ID == s.ID }) {
				continue
			}
			s.Cited = strings.Contains(answer, "["+s.ID+"]")
			list = append(list, s)
		}
	}
	for _, e := range p.about.Log {
		switch {
		case e.Value < 0:
		case e.Kind == engine.StepLoad:
			m, err := read[memoryAnswer](p, e)
			if err != nil {
				return nil, err
			}
			add(m.Sources)
		case e.Kind == engine.StepCall && !e.Denied:
			a, err := read[toolAnswer](p, e)
			if err != nil {
				return nil, err
			}
			var found []source
			tool, _ := p.tool(a.Name)
			if told := gjson.GetBytes(a.Result, "sources"); tool.Sources && told.IsArray() &&
				json.Unmarshal([]byte(told.Raw), &found) == nil {
				add(found)
			}
		}
	}
	return list, nil
}
