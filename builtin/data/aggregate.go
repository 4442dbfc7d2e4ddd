package data

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strings"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/text"
)

// aggregation computes one field of a group.
type aggregation struct {
	name     string
	function string
	field    values.Path
	// records says that no record has the field, so that counting it counts the records.
	records bool
}

// group makes one record of each group: its fields and what was computed over it. Without fields to group by, all
// records are one group, also when there are none.
func (t *transformation) group() ([]json.RawMessage, error) {
	operation := t.cfg.Operation
	if operation == "group_by" && len(t.cfg.GroupBy) == 0 {
		return nil, fault.Newf(fault.InvalidConfig, "%q is required when operation is %q", "group_by_fields", operation)
	}
	if operation == "aggregate" && t.cfg.Aggregations == nil {
		return nil, fault.Newf(fault.InvalidConfig, "%q is required when operation is %q", "aggregation_functions", operation)
	}
	aggregations, err := t.aggregations()
	if err != nil {
		return nil, err
	}
	groups, err := groupsOf(t.records, t.cfg.GroupBy)
	if err != nil {
		return nil, err
	}
	var out []json.RawMessage
	for _, g := range groups {
		made := g.fields
		if aggregations == nil {
			made = values.Overlay(made, values.Field("count", len(g.records)), values.Member{Key: "items", Value: values.Array(g.records)})
		}
		for _, a := range aggregations {
			value, err := a.compute(g.records)
			if err != nil {
				return nil, err
			}
			made = values.Overlay(made, values.Member{Key: a.name, Value: value})
		}
		out = append(out, values.Object(made))
	}
	return out, nil
}

// recordGroup are the records with the same values in some fields.
type recordGroup struct {
	fields  []values.Member
	records []json.RawMessage
}

// groupsOf groups records in the order in which the groups are first seen. A record with a null among its keys is equal
// to no other, so it is a group of its own.
func groupsOf(records []json.RawMessage, names []string) ([]*recordGroup, error) {
	if len(names) == 0 {
		return []*recordGroup{{records: records}}, nil
	}
	paths := make([]values.Path, len(names))
	for i, name := range names {
		var err error
		if paths[i], err = values.ParsePath(name); err != nil {
			return nil, err
		}
	}
	var groups []*recordGroup
	byKey := map[string]*recordGroup{}
	for _, record := range records {
		var key strings.Builder
		var fields []values.Member
		matchable := true
		for i, p := range paths {
			value, ok := p.At(record)
			if !ok || values.IsNull(value) {
				value, matchable = json.RawMessage("null"), false
			}
			fields = append(fields, values.Member{Key: names[i], Value: value})
			key.WriteString(values.Canonical(values.Decode(value)))
			key.WriteByte(0)
		}
		g := byKey[key.String()]
		if g == nil || !matchable {
			g = &recordGroup{fields: fields}
			groups = append(groups, g)
			if matchable {
				byKey[key.String()] = g
			}
		}
		g.records = append(g.records, record)
	}
	return groups, nil
}

func aggregateFunctions() []string {
	return []string{"count_distinct", "count", "sum", "avg", "min", "max", "first", "last", "list"}
}

// aggregateFunction is the function that sums a field up.
func aggregateFunction(name string, raw json.RawMessage) (string, error) {
	function, _ := values.Decode(raw).(string)
	if function = strings.ToLower(function); !slices.Contains(aggregateFunctions(), function) {
		return "", fault.Say(fault.InvalidConfig, text.Of("%q must be one of %s", "aggregation_functions."+name,
			strings.Join(aggregateFunctions(), ", ")))
	}
	return function, nil
}

// checkAggregations says what is wrong with functions and fields that are written out.
func checkAggregations(raw json.RawMessage) error {
	return node.Object(raw).Each(func(name string, raw json.RawMessage) error {
		if _, err := values.ParsePath(name); err != nil {
			return err
		}
		_, err := aggregateFunction(name, raw)
		return err
	})
}

// aggregations reads what is to be computed. "salary": "avg" is the average of salary; where no record has the field
// "max_salary", "max_salary": "max" is the maximum of salary.
func (t *transformation) aggregations() ([]aggregation, error) {
	var list []aggregation
	err := t.cfg.Aggregations.Each(func(name string, raw json.RawMessage) error {
		function, err := aggregateFunction(name, raw)
		if err != nil {
			return err
		}
		a := aggregation{name: name, function: function}
		if a.field, err = values.ParsePath(name); err != nil {
			return err
		}
		if !t.has(a.field) {
			if rest, ok := strings.CutPrefix(name, function+"_"); ok && rest != "" {
				if a.field, err = values.ParsePath(rest); err != nil {
					return err
				}
			}
			a.records = !t.has(a.field)
		}
		list = append(list, a)
		return nil
	})
	return list, err
}

func (t *transformation) has(p values.Path) bool {
	return slices.ContainsFunc(t.records, func(record json.RawMessage) bool { _, ok := p.At(record); return ok })
}

// compute applies the function to the field's values; nulls are skipped.
func (a *aggregation) compute(records []json.RawMessage) (json.RawMessage, error) {
	if a.function == "count" && a.records {
		return values.Encode(len(records)), nil
	}
	var raws []json.RawMessage
	for _, record := range records {
		if value, ok := a.field.At(record); ok && !values.IsNull(value) {
			raws = append(raws, value)
		}
	}
	return aggregate(a.function, a.name, raws)
}

// aggregate computes over values none of which is null. The average, the extremes and the ends of nothing are null.
func aggregate(function, name string, raws []json.RawMessage) (json.RawMessage, error) {
	switch function {
	case "count":
		return values.Encode(len(raws)), nil
	case "list":
		return values.Array(raws), nil
	case "count_distinct":
		seen := map[string]bool{}
		for _, raw := range raws {
			seen[values.Canonical(values.Decode(raw))] = true
		}
		return values.Encode(len(seen)), nil
	case "sum":
		return sum(name, raws)
	}
	if len(raws) == 0 {
		return json.RawMessage("null"), nil
	}
	switch function {
	case "first":
		return raws[0], nil
	case "last":
		return raws[len(raws)-1], nil
	case "avg":
		total := 0.0
		for _, raw := range raws {
			n, ok := values.NumberOf(values.Decode(raw))
			if !ok {
				return nil, notANumber(name, raw)
			}
			total += n.Float
		}
		return computed(name, total/float64(len(raws)))
	}
	best := raws[0]
	for _, raw := range raws[1:] {
		c, ok := values.Order(values.Decode(raw), values.Decode(best))
		if !ok {
			return nil, fault.Newf(fault.InvalidInput, "%q has values of different types, which have no %s", name, function)
		}
		if c != 0 && (c < 0) == (function == "min") {
			best = raw
		}
	}
	return best, nil
}

// sum adds whole numbers exactly, others as floats.
func sum(name string, raws []json.RawMessage) (json.RawMessage, error) {
	whole, total, exact := new(big.Int), 0.0, true
	for _, raw := range raws {
		v := values.Decode(raw)
		n, ok := values.NumberOf(v)
		if !ok {
			return nil, notANumber(name, raw)
		}
		total += n.Float
		term, ok := new(big.Int).SetString(n.Text(), 10)
		if exact = exact && ok; exact {
			whole.Add(whole, term)
		}
	}
	if exact {
		return json.RawMessage(whole.String()), nil
	}
	return computed(name, total)
}

func computed(name string, f float64) (json.RawMessage, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, fault.Newf(fault.InvalidInput, "the numbers of %q are too large to compute with", name)
	}
	return values.Encode(f), nil
}

func notANumber(name string, raw json.RawMessage) error {
	return fault.Newf(fault.InvalidInput, "%q must be a number, not %s", name, values.TypeOf(values.Decode(raw)))
}

// readPivot are the fields that a row stands for, and the function that sums up the values of a cell.
func (c transformPivot) readPivot() (index []string, function string, err error) {
	switch x := c.Index.(type) {
	case string:
		index = []string{x}
	case []any:
		for _, name := range x {
			text, ok := name.(string)
			if !ok {
				return nil, "", fault.Newf(fault.InvalidConfig, "%q must be the name of a field, or a list of names", "pivot_config.index")
			}
			index = append(index, text)
		}
	}
	if len(index) == 0 || c.Columns == "" || c.Values == "" {
		return nil, "", fault.Newf(fault.InvalidConfig, "%q needs index, columns and values", "pivot_config")
	}
	if function = strings.ToLower(c.Function); function == "" {
		function = "first"
	}
	if !slices.Contains(aggregateFunctions(), function) {
		return nil, "", fault.Newf(fault.InvalidConfig, "%q must be one of %s", "pivot_config.function",
			strings.Join(aggregateFunctions(), ", "))
	}
	return index, function, nil
}

// pivot turns the values of one field into columns, with one record per index.
func (t *transformation) pivot() ([]json.RawMessage, error) {
	c := t.cfg.Pivot
	index, function, err := c.readPivot()
	if err != nil {
		return nil, err
	}
	columns, err := values.ParsePath(c.Columns)
	if err != nil {
		return nil, err
	}
	content, err := values.ParsePath(c.Values)
	if err != nil {
		return nil, err
	}
	groups, err := groupsOf(t.records, index)
	if err != nil {
		return nil, err
	}
	var names []string
	seen := map[string]bool{}
	column := func(record json.RawMessage) (string, bool) {
		value, ok := columns.At(record)
		if !ok || values.IsNull(value) {
			return "", false
		}
		return values.Text(value), true
	}
	for _, record := range t.records {
		if name, ok := column(record); ok && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	var out []json.RawMessage
	for _, g := range groups {
		cells := map[string][]json.RawMessage{}
		for _, record := range g.records {
			name, ok := column(record)
			if value, has := content.At(record); ok && has && !values.IsNull(value) {
				cells[name] = append(cells[name], value)
			}
		}
		made := make([]values.Member, 0, len(names))
		for _, name := range names {
			cell := json.RawMessage("null")
			if len(cells[name]) > 0 {
				if cell, err = aggregate(function, c.Values, cells[name]); err != nil {
					return nil, err
				}
			}
			made = append(made, values.Member{Key: name, Value: cell})
		}
		if out, err = t.addRecord(out, values.Object(values.Overlay(g.fields, made...))); err != nil {
			return nil, err
		}
	}
	return out, nil
}
