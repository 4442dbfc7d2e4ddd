package builtin

import (
	"context"
	"encoding/json"

	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

// languageOf is the language of a function that is given without saying which: as for conversions, its form tells it. An
// expression is no function.
func languageOf(source, path string) (string, error) {
	switch l := workflow.LanguageOf(source); l {
	case workflow.LanguagePython, workflow.LanguageJavaScript:
		return string(l), nil
	}
	return "", fault.Newf(fault.InvalidConfig, "%q must be a function in Python (def or lambda) or JavaScript (=> or function)", path).With("path", "configurations."+path)
}

// custom keeps the items for which a function says so. It is given the item, and is asked once for each.
func (c *filterConfig) custom(ctx context.Context, call *node.Call, items []json.RawMessage) (node.Outcome, error) {
	language, err := languageOf(string(c.CustomFunction), "custom_filter_function")
	if err != nil {
		return nil, err
	}
	f := &filter{custom: func(item json.RawMessage) (bool, error) {
		result, err := call.Code(ctx, node.Code{Language: language, Source: string(c.CustomFunction), Input: item})
		if err != nil {
			return false, err
		}
		return expr.Truth(decode(result.Value)), nil
	}}
	return c.run(call, f, items)
}

// custom hands all records to a function, which returns the new ones. As with conversions, what is no function is an
// expression.
func (t *transformation) custom() ([]json.RawMessage, error) {
	if workflow.LanguageOf(string(t.cfg.Script)) == workflow.LanguageExpression {
		records := decode(array(t.records))
		value, err := t.call.Eval(string(t.cfg.Script), map[string]any{"data": records, "items": records, "value": records, "output": records})
		if err != nil {
			return nil, err
		}
		result, err := finite(value)
		return listOf(result).items, err
	}
	language, err := languageOf(string(t.cfg.Script), "transformation_script")
	if err != nil {
		return nil, err
	}
	input := object([]member{{"data", array(t.records)}, {"items", array(t.records)}, {"value", array(t.records)}, {"output", array(t.records)}, {"input", t.in}})
	result, err := t.call.Code(t.ctx, node.Code{Language: language, Source: string(t.cfg.Script), Entry: node.ConversionEntry, Input: input})
	if err != nil {
		return nil, err
	}
	return listOf(result.Value).items, nil
}
