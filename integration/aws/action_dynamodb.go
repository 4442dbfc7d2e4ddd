package aws

import (
	"encoding/base64"
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
)

// typed writes a plain value as DynamoDB has it, with its type: texts, numbers, yes and no, nothing, lists and objects; what is binary is
// an object with the one field base64.
func typed(v gjson.Result) map[string]any {
	switch {
	case v.Type == gjson.String:
		return map[string]any{"S": v.Str}
	case v.Type == gjson.Number:
		return map[string]any{"N": v.Raw}
	case v.IsBool():
		return map[string]any{"BOOL": v.Bool()}
	case v.IsArray():
		list := []any{}
		for _, one := range v.Array() {
			list = append(list, typed(one))
		}
		return map[string]any{"L": list}
	case v.IsObject():
		fields := v.Map()
		if data, ok := fields["base64"]; ok && len(fields) == 1 && data.Type == gjson.String {
			return map[string]any{"B": data.Str}
		}
		out := map[string]any{}
		for name, one := range fields { // order does not matter: they are named
			out[name] = typed(one)
		}
		return map[string]any{"M": out}
	}
	return map[string]any{"NULL": true}
}

// item writes an object as DynamoDB has one.
func item(o node.Object) map[string]any {
	out := map[string]any{}
	for name, v := range gjson.ParseBytes(o).Map() { // order does not matter: they are named
		out[name] = typed(v)
	}
	return out
}

// untyped is a value of DynamoDB as a plain one. Sets become lists.
func untyped(v gjson.Result) any {
	var kind string
	var value gjson.Result
	v.ForEach(func(name, inner gjson.Result) bool {
		kind, value = name.Str, inner
		return false
	})
	list := func(make func(gjson.Result) any) []any {
		out := []any{}
		for _, one := range value.Array() {
			out = append(out, make(one))
		}
		return out
	}
	switch kind {
	case "S":
		return value.Str
	case "N":
		return number(value)
	case "BOOL":
		return value.Bool()
	case "B":
		return map[string]any{"base64": value.Str}
	case "L":
		return list(untyped)
	case "M":
		return plainItem(value)
	case "SS":
		return list(func(one gjson.Result) any { return one.Str })
	case "NS":
		return list(number)
	case "BS":
		return list(func(one gjson.Result) any { return map[string]any{"base64": one.Str} })
	}
	return nil
}

// number is a number that came as a text; all of its digits are kept.
func number(text gjson.Result) any {
	if raw := json.RawMessage(text.Str); gjson.Parse(text.Str).Type == gjson.Number && payload.Check(raw, payload.Limits{}) == nil {
		return raw
	}
	return text.Str
}

// plainItem is an item as a plain object.
func plainItem(v gjson.Result) map[string]any {
	out := map[string]any{}
	for name, one := range v.Map() { // order does not matter: they are named
		out[name] = untyped(one)
	}
	return out
}

// expressions adds what expressions refer to.
func (a *acting) expressions(body rest.Fields) (rest.Fields, error) {
	if list := item(a.cfg.Values); len(list) > 0 {
		body["ExpressionAttributeValues"] = list
	}
	names := map[string]string{}
	err := a.cfg.Names.Each(func(name string, value json.RawMessage) error {
		text, ok := values.Scalar(value)
		if !ok {
			return fault.Newf(fault.InvalidInput, "names: %q must be the name of an attribute", name).With("path", "names")
		}
		names[name] = text
		return nil
	})
	if len(names) > 0 {
		body["ExpressionAttributeNames"] = names
	}
	return body, err
}

const dynamo = "DynamoDB_20120810."

func (a *acting) getItem() (out actionResult, err error) {
	a.at(a.cfg.Table)
	if !values.IsObject(a.cfg.Key) {
		return out, fault.New(fault.InvalidInput, `key must be an object with the primary key of the item, such as {"id": 7}`).With("path", "key")
	}
	answer, err := a.target("dynamodb", dynamo+"GetItem", true,
		rest.Fields{"TableName": a.cfg.Table, "Key": item(node.Object(a.cfg.Key)), "ConsistentRead": true})
	if err != nil {
		return out, err
	}
	if found := answer.Get("Item"); found.IsObject() {
		out.Payload, err = payload.Encode(plainItem(found))
	}
	out.Response = answer.Raw()
	return out, err
}

func (a *acting) query() (out actionResult, err error) {
	a.at(a.cfg.Table)
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor,
		func(cursor string) (items []json.RawMessage, next string, err error) {
			body, err := a.expressions(rest.Fields{"TableName": a.cfg.Table, "KeyConditionExpression": a.cfg.KeyCondition}.
				Text("IndexName", a.cfg.Index).Text("FilterExpression", a.cfg.Filter))
			if err != nil {
				return nil, "", err
			}
			if a.cfg.Filter == "" { // the service counts what it leaves out
				body["Limit"] = min(a.cfg.Limit, 1000)
			}
			if cursor != "" {
				from, err := base64.RawURLEncoding.DecodeString(cursor)
				if err != nil || !gjson.ValidBytes(from) {
					return nil, "", fault.Newf(fault.InvalidInput, "%q is not a cursor; give next_cursor of an earlier run", cursor).With("path", "cursor")
				}
				body["ExclusiveStartKey"] = json.RawMessage(from)
			}
			answer, err := a.target("dynamodb", dynamo+"Query", true, body, "Items")
			if err != nil {
				return nil, "", err
			}
			for _, one := range answer.Get("Items").Array() {
				encoded, err := payload.Encode(plainItem(one))
				if err != nil {
					return nil, "", err
				}
				items = append(items, encoded)
			}
			if last := answer.Get("LastEvaluatedKey"); last.IsObject() {
				next = base64.RawURLEncoding.EncodeToString([]byte(last.Raw))
			}
			return items, next, nil
		})
	return out, err
}

// putItem stores an item. When it is tried again, a condition may fail because the item is there already, by the attempt before: that is a
// success.
func (a *acting) putItem() (out actionResult, err error) {
	a.at(a.cfg.Table)
	body, err := a.expressions(rest.Fields{"TableName": a.cfg.Table, "Item": item(a.cfg.Item)}.Text("ConditionExpression", a.cfg.Condition))
	if err != nil {
		return out, err
	}
	if a.cfg.Condition != "" {
		body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
	}
	answer, err := a.target("dynamodb", dynamo+"PutItem", true, body)
	if there := gjson.GetBytes(a.said, "Item"); err != nil && a.call.Attempt > 1 && rest.IsCode(err, fault.Conflict) && there.IsObject() &&
		values.Equal(values.Decode(values.Encode(plainItem(there))), values.Decode(json.RawMessage(a.cfg.Item))) {
		err = nil
	}
	out.Response = answer.Raw()
	return out, err
}
