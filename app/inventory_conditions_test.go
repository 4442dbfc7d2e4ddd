package app

import (
	"fmt"
	"maps"
)

// conditionProofs are the proofs of the fields of conditions, which FLOW.FILTER and ACTION.DATA_TRANSFORMATION share. Name is the field
// that the conditions are in, with the rest of the configuration; typed says that a filter_type goes with them.
func conditionProofs(name, with string, typed bool) map[string]proof {
	const input = `{"items": [{"k": "abc", "n": 1, "t": ["x", "y"]}, {"k": "abd", "n": 3, "t": ["x"]}, {"k": "zzz", "n": 5, "t": ["z"], "more": 1}]}`
	proofs := map[string]proof{}
	add := func(field, typ, one, other string) {
		config := func(condition string) string {
			if typed {
				return fmt.Sprintf(`@"filter_type": %q, %q: [{%s}]`, typ, name, condition)
			}
			return fmt.Sprintf(`@%q: [{%s}]`, name, condition)
		}
		proofs[name+"."+field] = proof{with: with, one: config(one), other: config(other), input: input}
	}
	add("field", "simple_condition", `"field": "n", "operator": "equals", "value": 1`, `"field": "k", "operator": "equals", "value": 1`)
	add("operator", "simple_condition", `"field": "n", "operator": "equals", "value": 1`, `"field": "n", "operator": "not_equals", "value": 1`)
	add("value", "simple_condition", `"field": "n", "operator": "equals", "value": 1`, `"field": "n", "operator": "equals", "value": 3`)
	add("expression", "complex_expression", `"expression": "item.n > 1"`, `"expression": "item.n > 3"`)
	add("pattern", "regex_pattern", `"field": "k", "pattern": "^ab"`, `"field": "k", "pattern": "^z"`)
	add("min_value", "range_filter", `"field": "n", "min_value": 2`, `"field": "n", "min_value": 4`)
	add("max_value", "range_filter", `"field": "n", "max_value": 2`, `"field": "n", "max_value": 4`)
	add("inclusive", "range_filter", `"field": "n", "min_value": 3, "inclusive": true`, `"field": "n", "min_value": 3, "inclusive": false`)
	add("exists", "exists_filter", `"field": "more", "exists": true`, `"field": "more", "exists": false`)
	add("type", "type_filter", `"field": "n", "type": "number"`, `"field": "n", "type": "string"`)
	if typed {
		add("mode", "array_contains", `"field": "t", "value": ["x", "y"], "mode": "any"`, `"field": "t", "value": ["x", "y"], "mode": "all"`)
		add("threshold", "fuzzy_match", `"field": "k", "value": "abx", "threshold": 0.5`, `"field": "k", "value": "abx", "threshold": 1`)
	} else { // nothing but a filter_type asks for them
		for field, value := range map[string]string{"mode": `"any"`, "threshold": `0.5`} { // order does not matter
			proofs[name+"."+field] = proof{with: with, other: fmt.Sprintf(`@%q: [{"field": "k", %q: %s}]`, name, field, value), told: "does nothing here"}
		}
	}
	return proofs
}

// also adds proofs to others.
func also(proofs, more map[string]proof) map[string]proof {
	maps.Copy(proofs, more)
	return proofs
}
