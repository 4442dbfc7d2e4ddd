package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/node"
	"tandem/route"
	"tandem/workflow"
)

type (
	nodeKindInput struct {
		Name string `path:"name" maxLength:"128" doc:"TYPE.SUBTYPE"`
	}
	nodeKindOutput  struct{ Body api.NodeKind }
	nodeKindsOutput struct{ Body api.NodeKinds }
)

// nodeKinds registers the kinds of nodes that can be run here.
func (s *Server) nodeKinds() {
	op := func(path, id, summary string) huma.Operation {
		return huma.Operation{Method: http.MethodGet, Path: path, OperationID: id, Summary: summary, Tags: []string{"node kinds"}}
	}
	route.Handle(s.Router, op("/node-kinds", "list-node-kinds", "List the kinds of nodes that can be run here"), route.Readers(), s.listNodeKinds)
	route.Handle(s.Router, op("/node-kinds/{name}", "get-node-kind", "Read a kind"), route.Readers(), s.getNodeKind)
}

func (s *Server) listNodeKinds(context.Context, identity.Principal, *struct{}) (*nodeKindsOutput, error) {
	out := &nodeKindsOutput{api.NodeKinds{NodeKinds: []api.NodeKind{}, CommonFields: node.CommonSchema()}}
	for _, k := range s.o.Registry.Offered() {
		out.Body.NodeKinds = append(out.Body.NodeKinds, s.tellKind(k))
	}
	return out, nil
}

func (s *Server) getNodeKind(_ context.Context, _ identity.Principal, in *nodeKindInput) (*nodeKindOutput, error) {
	k, ok := s.o.Registry.Get(in.Name)
	if !ok {
		if near := fault.Nearest(in.Name, s.o.Registry.Names()); near != "" {
			return nil, fault.Newf(fault.NotFound, "no kind %q can be run here; did you mean %q?", in.Name, near)
		}
		return nil, fault.Newf(fault.NotFound, "no kind %q can be run here; GET %s/node-kinds lists those that can", in.Name, route.Prefix)
	}
	return &nodeKindOutput{s.tellKind(k)}, nil
}

func (s *Server) tellKind(k node.Kind) api.NodeKind { return TellKind(s.o.Kinds, k) }

// TellKind describes a kind, with what the plan of a node without configurations says. What is wrong with such a node
// does not matter: its plan holds the defaults all the same.
func TellKind(kinds workflow.Kinds, k node.Kind) api.NodeKind {
	typ, subtype, _ := strings.Cut(k.About.Name, ".")
	out := api.NodeKind{
		Name: k.About.Name, Type: typ, Subtype: subtype, Title: api.TextOf(k.About.Title), Description: api.TextOf(k.About.Description),
		ConfigSchema: anySchema(k.ConfigSchema.JSON()), InputSchema: anySchema(k.InputSchema.JSON()),
		OutputSchema: anySchema(k.OutputSchema.JSON()), OutputKeys: []string{},
	}
	for _, key := range k.About.Keys {
		out.Keys = append(out.Keys, tellKey(key))
	}
	out.OlderNames, out.PlainNames = k.About.Older, string(k.About.Traits.Names)
	if b := k.About.Body; b != nil {
		out.Body = &api.NodeBody{Entry: b.Entry, Exits: b.Exits, Once: b.Once}
	}
	out.Inputs = tellValues(k.About.Inputs)
	if n := k.About.Needs; len(n.Credential)+len(n.Also) > 0 {
		out.Needs = &api.NodeNeeds{Credential: n.Credential, Optional: n.Optional}
		for _, also := range n.Also {
			out.Needs.Also = append(out.Needs.Also, api.TextOf(also))
		}
	}
	for _, e := range k.About.Examples {
		told := api.NodeExample{Shows: api.TextOf(e.Shows), Configurations: json.RawMessage(e.Config), Replies: e.Replies,
			Output: json.RawMessage(e.Output)}
		if e.Input != "" {
			told.Inputs = append(told.Inputs, json.RawMessage(e.Input))
		}
		for _, also := range e.Also {
			told.Inputs = append(told.Inputs, json.RawMessage(also))
		}
		out.Examples = append(out.Examples, told)
	}
	known, ok := kinds.Kind(k.About.Name)
	if !ok {
		return out // validation does not know the kind
	}
	plan, _ := known.Plan(&workflow.Node{ID: "n", Name: "n", Type: typ, Subtype: subtype, Configurations: json.RawMessage(`{}`)})
	out.OutputKeys = append(out.OutputKeys, plan.Keys...)
	out.KeyAliases, out.OnUnknown = plan.KeyAliases, string(plan.OnUnknown)
	out.Effect, out.Timeout, out.MaxRetries = string(plan.Effect), float64(plan.TimeoutMS)/1000, plan.MaxRetries
	out.EffectBy = effectBy(known, typ, subtype, k.ConfigSchema.JSON(), plan.Effect)
	return out
}

func tellKey(key node.Key) api.NodeKey {
	told := api.NodeKey{Name: key.Name, Meaning: api.TextOf(key.Meaning), Fields: tellValues(key.Fields)}
	for _, c := range key.With {
		if told.With == nil {
			told.With = map[string][]string{}
		}
		told.With[c.Field] = c.Values
	}
	for _, from := range key.From {
		told.From = append(told.From, api.NodeKeySource(from))
	}
	return told
}

func tellValues(list []node.Value) []api.NodeValue {
	var told []api.NodeValue
	for _, v := range list {
		told = append(told, api.NodeValue{Name: v.Name, Meaning: api.TextOf(v.Meaning)})
	}
	return told
}

// effectBy are the fields, of those with few values, that change the effect of a kind, and the effect that each of such values gives.
func effectBy(known workflow.Kind, typ, subtype string, schema json.RawMessage, usual workflow.Effect) map[string]map[string]string {
	var by map[string]map[string]string
	gjson.GetBytes(schema, "properties").ForEach(func(key, property gjson.Result) bool {
		name, values, list := key.Str, property.Get("enum").Array(), false
		if len(values) == 0 {
			values, list = property.Get("items.enum").Array(), true
		}
		for _, value := range values {
			var given any = json.RawMessage(value.Raw)
			if list {
				given = []any{given}
			}
			config, err := json.Marshal(map[string]any{name: given})
			if err != nil {
				continue // it came from JSON
			}
			plan, _ := known.Plan(&workflow.Node{ID: "n", Name: "n", Type: typ, Subtype: subtype, Configurations: config})
			if plan.Effect == usual {
				continue
			}
			if by == nil {
				by = map[string]map[string]string{}
			}
			if by[name] == nil {
				by[name] = map[string]string{}
			}
			by[name][value.String()] = string(plan.Effect)
		}
		return true
	})
	return by
}

// anySchema is a schema as it is, or the one that takes anything.
func anySchema(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 {
		return json.RawMessage(`{}`)
	}
	return schema
}
