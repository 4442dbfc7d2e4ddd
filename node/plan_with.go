package node

import (
	"reflect"
	"slices"

	"tandem/node/shape"
	"tandem/text"
	"tandem/workflow"
)

// Otherwise sets the value of a field that is not written, for fields that only work beside some of its values. It replaces a
// default; empty: the value is not known yet.
func (p *Planning) Otherwise(name, value string) {
	if p.otherwise == nil {
		p.otherwise = map[string]string{}
	}
	p.otherwise[name] = value
}

// checkIdle warns of configurations that do nothing beside the others. Where a template brings the others, it does not know and says
// nothing.
func (p *Planning) checkIdle() {
	if p.Templated() {
		return
	}
	for i := range p.shape.Fields {
		f := &p.shape.Fields[i]
		if !p.Written(f.Name) || commonShape.Has(f.Name) { // what all kinds have is judged by check
			continue
		}
		for _, c := range f.With {
			if p.unmet(c) {
				p.Idle(f.Name, "it is for %s %s, not for %q", c.Field, shape.Either(shape.QuoteAll(c.Values)), p.valueOf(c.Field))
			}
		}
	}
}

// unmet says that a field is known to have another value than a condition wants.
func (p *Planning) unmet(c Condition) bool {
	value := p.valueOf(c.Field)
	return value != "" && !slices.Contains(c.Values, value)
}

// valueOf is the value that a field will have, as text; empty: it is not known yet, or there is none.
func (p *Planning) valueOf(name string) string {
	return p.chosen(&p.shape.Fields[p.shape.Find(name)])
}

// Idle warns of a configuration that does nothing. Why is a format.
func (p *Planning) Idle(name, why string, args ...any) {
	p.Warn(workflow.ProblemConfig, p.At(name), "%s does nothing here: %s; remove it", name, text.Formatted(why, args...))
}

// chosen is the value that a field will have, as text; empty: it is not known yet, or there is none.
func (p *Planning) chosen(f *shape.Field) string {
	usual := f.Usual
	if usual == "" && f.Type.Kind() == reflect.Bool {
		usual = "false"
	}
	if told, ok := p.otherwise[f.Name]; ok {
		usual = told
	}
	value, set := p.values[f.Name]
	switch {
	case !set:
		return usual
	case shape.Dynamic(value):
		return ""
	}
	if known, ok := f.Known(value.String()); ok {
		return known
	}
	if f.Enum != nil && f.Fixed {
		return usual
	}
	return value.String()
}
