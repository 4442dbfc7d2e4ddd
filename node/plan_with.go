package node

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"tandem/text"
	"tandem/workflow"
)

// Condition says that a field is only looked at when another one has one of some values.
type Condition struct {
	Field  string
	Values []string
}

// conditions reads the tag "with".
func conditions(tag string) []Condition {
	if tag == "" {
		return nil
	}
	var list []Condition
	for _, one := range strings.Split(tag, ",") {
		field, values, _ := strings.Cut(one, "=")
		list = append(list, Condition{Field: field, Values: strings.Split(values, "|")})
	}
	return list
}

// checkConditions finds tags that name a field, or a value of one, that there is not. It is a defect and panics. Of a text whose values the kind says
// elsewhere ([About.Values]) nothing is known yet.
func (s *shape) checkConditions(t reflect.Type) {
	for i := range s.fields {
		for _, c := range s.fields[i].with {
			by := &s.fields[s.index(t, c.Field)]
			if by.enum == nil && by.typ.Kind() == reflect.String {
				continue
			}
			for _, value := range c.Values {
				if _, ok := by.known(value); !ok && !(value == "true" && by.typ.Kind() == reflect.Bool) {
					panic(fmt.Sprintf("node: a tag of %s names the value %q of %s, which it cannot have", t, value, c.Field))
				}
			}
		}
	}
}

// Otherwise tells what a field without a default is when it is not written, for those that only work beside some of its values.
func (p *Planning) Otherwise(name, value string) {
	if p.otherwise == nil {
		p.otherwise = map[string]string{}
	}
	p.otherwise[name] = value
}

// checkIdle warns of configurations that do nothing beside the others. Where a template brings the others nothing is known.
func (p *Planning) checkIdle() {
	if p.Templated() {
		return
	}
	for i := range p.shape.fields {
		f := &p.shape.fields[i]
		if !p.Written(f.name) {
			continue
		}
		for _, c := range f.with {
			value := p.chosen(&p.shape.fields[p.shape.field(c.Field)])
			if value != "" && !slices.Contains(c.Values, value) {
				p.Idle(f.name, "it is for %s %s, not for %q", c.Field, either(quoteAll(c.Values)), value)
			}
		}
	}
}

// Idle warns of a configuration that does nothing. Why is a format.
func (p *Planning) Idle(name, why string, args ...any) {
	p.Warn(workflow.ProblemConfig, p.At(name), "%s does nothing here: %s; remove it", name, text.Formatted(why, args...))
}

// chosen is the value of a field as it will count, as text; empty: it is not known yet, or there is none.
func (p *Planning) chosen(f *shapeField) string {
	usual := f.usual
	if usual == "" && f.typ.Kind() == reflect.Bool {
		usual = "false"
	}
	if usual == "" {
		usual = p.otherwise[f.name]
	}
	value, set := p.values[f.name]
	switch {
	case !set:
		return usual
	case dynamic(value):
		return ""
	}
	if known, ok := f.known(value.String()); ok {
		return known
	}
	if f.enum != nil && f.fixed {
		return usual
	}
	return value.String()
}
