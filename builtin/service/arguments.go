package service

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/httpcall"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node/slot"
	"tandem/payload"
)

// sending are the parts of a call.
type sending struct {
	path     string
	query    url.Values
	header   map[string]string
	body     json.RawMessage
	bodyType string
}

// groups are where parameters of a place stand in the input.
func groups() map[string]string {
	return map[string]string{"path": "path_params", "query": "query_params", "header": "header_params", "cookie": "header_params"}
}

// arguments makes the parts of a call of the input: what is missing is reported at once, what does not fit where it stands.
func (a *calling) arguments() (*sending, error) {
	input := gjson.ParseBytes(a.call.Input)
	if inner := input.Get("data"); inner.IsObject() && len(values.Members(a.call.Input)) == 1 {
		input = inner // older files
	}
	out := &sending{path: a.operation.Path, query: url.Values{}, header: map[string]string{}, bodyType: "none"}
	var missing []string
	for _, p := range a.operation.Parameters {
		value, at := a.value(input, p)
		if payload.IsNull(value) {
			if p.Required && p.Name != a.operation.Idempotency {
				missing = append(missing, p.Name)
			}
			continue
		}
		value, err := typed(p.Name, at, p.Schema, value)
		if err != nil {
			return nil, err
		}
		if err := out.put(p, at, value); err != nil {
			return nil, err
		}
	}
	lacks, err := a.fill(input, out)
	if err != nil {
		return nil, err
	}
	if missing = append(missing, lacks...); len(missing) > 0 {
		return nil, slot.Missing(missing, "the operation %q needs %s; let the input bring it", a.operation.name(),
			strings.Join(missing, ", ")).With("path", missing[0])
	}
	return out, a.strangers(input)
}

// value is what the input has for a parameter: in its group, or by its own name.
func (a *calling) value(input gjson.Result, p parameter) (json.RawMessage, string) {
	if text, ok := a.fixed[p.Name]; ok && p.In == "path" {
		return values.Encode(text), p.Name
	}
	group := groups()[p.In]
	if v := input.Get(group + "." + gjson.Escape(p.Name)); v.Exists() {
		return json.RawMessage(v.Raw), group + "." + p.Name
	}
	if v := input.Get(gjson.Escape(p.Name)); v.Exists() && !(p.Name == "body" && a.operation.Body != nil) {
		return json.RawMessage(v.Raw), p.Name
	}
	return nil, p.Name
}

// typed is a value as its schema wants it: a text that is a number is one where a number is wanted, and the other way round.
func typed(name, at string, schema, value json.RawMessage) (json.RawMessage, error) {
	problems := check(schema, value)
	if len(problems) == 0 {
		return value, nil
	}
	if text, ok := values.Scalar(value); ok {
		other := values.Encode(text)
		if gjson.ParseBytes(value).Type == gjson.String {
			if _, err := strconv.ParseFloat(text, 64); err == nil && gjson.Valid(text) || text == "true" || text == "false" {
				other = json.RawMessage(text)
			}
		}
		if len(check(schema, other)) == 0 {
			return other, nil
		}
	}
	return nil, fault.Newf(fault.InvalidInput, "%s: %s does not fit: %s", name, values.Short(value), problems[0]).With("path", at)
}

// put writes a parameter into its place.
func (s *sending) put(p parameter, at string, value json.RawMessage) error {
	list, object := values.IsList(value), values.IsObject(value)
	var texts []string
	plain := func(one json.RawMessage) error {
		text, ok := values.Scalar(one)
		if !ok {
			return fault.Newf(fault.InvalidInput, "%s: %s cannot be written into a %s", p.Name, values.Short(one), p.In).With("path", at)
		}
		texts = append(texts, text)
		return nil
	}
	switch {
	case list:
		for _, one := range values.Elements(value) {
			if err := plain(one); err != nil {
				return err
			}
		}
	case object:
		for _, m := range values.Members(value) {
			if err := plain(m.Value); err != nil {
				return err
			}
			switch last := texts[len(texts)-1]; {
			case p.In == "query" && p.Deep:
				s.query.Add(p.Name+"["+m.Key+"]", last)
			case p.In == "query" && !p.Together:
				s.query.Add(m.Key, last)
			default:
				texts = append(texts[:len(texts)-1], m.Key, last)
			}
		}
		if p.In == "query" && (p.Deep || !p.Together) {
			return nil
		}
	default:
		if err := plain(value); err != nil {
			return err
		}
	}
	return s.place(p, at, texts)
}

// place writes texts into the place of a parameter.
func (s *sending) place(p parameter, at string, texts []string) error {
	joined := strings.Join(texts, cmp.Or(p.Separator, ","))
	switch p.In {
	case "path":
		if joined == "" || joined == "." || joined == ".." {
			return fault.Newf(fault.InvalidInput, "%s: %q cannot be part of a path", p.Name, joined).With("path", at)
		}
		s.path = strings.ReplaceAll(s.path, "{"+p.Name+"}", httpcall.EscapeAll(joined))
	case "header":
		s.header[p.Name] = joined
	case "cookie":
		if s.header["Cookie"] != "" {
			s.header["Cookie"] += "; "
		}
		s.header["Cookie"] += p.Name + "=" + httpcall.EscapeAll(joined)
	default:
		if p.Together {
			texts = []string{joined}
		}
		for _, text := range texts {
			s.query.Add(p.Name, text)
		}
	}
	return nil
}

// fill makes the body: that of the input, or of the fields that the definition has, by their own names.
func (a *calling) fill(input gjson.Result, out *sending) (missing []string, err error) {
	b := a.operation.Body
	given := json.RawMessage(input.Get("body").Raw)
	if b == nil {
		if !payload.IsNull(given) && httpcall.OnceMethod(a.operation.Method) {
			out.body, out.bodyType = given, "json"
		}
		return nil, nil
	}
	if payload.IsNull(given) {
		given = a.flat(input, b)
	}
	if payload.IsNull(given) {
		if b.Required {
			missing = []string{"body"}
			if needs := gjson.GetBytes(b.Schema, "required").Array(); len(needs) > 0 {
				missing = nil
				for _, name := range needs {
					missing = append(missing, name.Str)
				}
			}
		}
		return missing, nil
	}
	if problems := check(b.Schema, given); len(problems) > 0 {
		problem := problems[0]
		if problem.Rule != "required" || problem.Path != "" {
			return nil, fault.Newf(fault.InvalidInput, "the body is not as the definition says: %s", problem).With("path",
				strings.TrimSuffix("body."+strings.TrimPrefix(problem.Path, "."), "."))
		}
		for _, name := range gjson.GetBytes(b.Schema, "required").Array() {
			if !gjson.GetBytes(given, gjson.Escape(name.Str)).Exists() {
				missing = append(missing, name.Str)
			}
		}
		return slices.Compact(missing), nil
	}
	out.body = given
	switch kind := strings.ToLower(b.Type); {
	case strings.Contains(kind, "json") || kind == "":
		out.bodyType = "json"
	case kind == "application/x-www-form-urlencoded":
		out.bodyType = "form"
	case b.multipart():
		out.bodyType = httpcall.Multipart
	case strings.HasPrefix(kind, "text/"):
		out.bodyType = "raw"
		out.header["Content-Type"] = b.Type
	default:
		return nil, fault.Newf(fault.Unsupported, "the operation %q wants a body of the type %s, which cannot be written; use ACTION.HTTP_REQUEST", a.operation.name(), b.Type)
	}
	return nil, nil
}

// flat is a body of those fields of the input that the definition has.
func (a *calling) flat(input gjson.Result, b *body) json.RawMessage {
	var fields []values.Member
	gjson.GetBytes(b.Schema, "properties").ForEach(func(name, schema gjson.Result) bool {
		v := input.Get(gjson.Escape(name.Str))
		if v.Exists() && !slices.ContainsFunc(a.operation.Parameters, func(p parameter) bool { return p.Name == name.Str }) {
			value, err := typed(name.Str, name.Str, json.RawMessage(schema.Raw), json.RawMessage(v.Raw))
			if err != nil {
				value = json.RawMessage(v.Raw) // the whole is checked, and says where it is wrong
			}
			fields = append(fields, values.Member{Key: name.Str, Value: value})
		}
		return true
	})
	if len(fields) == 0 {
		return nil
	}
	return values.Object(fields)
}

// strangers refuses parameters in groups that the operation does not have: they would be lost.
func (a *calling) strangers(input gjson.Result) error {
	for _, group := range []string{"path_params", "query_params", "header_params"} {
		for _, m := range values.Members(json.RawMessage(input.Get(group).Raw)) {
			var names []string
			for _, p := range a.operation.Parameters {
				if groups()[p.In] == group {
					names = append(names, p.Name)
				}
			}
			if slices.Contains(names, m.Key) {
				continue
			}
			hint := ""
			if near := fault.Nearest(m.Key, names); near != "" {
				hint = "; did you mean \"" + near + "\"?"
			}
			return fault.Newf(fault.InvalidInput, "the operation %q has no parameter %q%s", a.operation.name(), m.Key,
				hint).With("path", group+"."+m.Key)
		}
	}
	return nil
}
