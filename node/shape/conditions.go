package shape

import (
	"fmt"
	"reflect"
	"strings"
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

// CheckConditions finds tags that name a field, or a value of one, that there is not. It is a defect and panics. Of a text whose values the
// kind says elsewhere ([About.Values]) nothing is known yet.
func (s *Shape) CheckConditions(t reflect.Type) {
	for i := range s.Fields {
		for _, c := range s.Fields[i].With {
			by := &s.Fields[s.Index(t, c.Field)]
			if by.Enum == nil && by.Type.Kind() == reflect.String {
				continue
			}
			for _, value := range c.Values {
				if _, ok := by.Known(value); !ok && !(value == "true" && by.Type.Kind() == reflect.Bool) {
					panic(fmt.Sprintf("node: a tag of %s names the value %q of %s, which it cannot have", t, value, c.Field))
				}
			}
		}
	}
}
