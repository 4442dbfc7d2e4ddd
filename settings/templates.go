package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/node"
	"tandem/payload"
	"tandem/route"
	"tandem/store"
	"tandem/text"
	"tandem/workflow"
)

type (
	templateInput struct {
		ID string `path:"id" maxLength:"128"`
	}
	templateCreate struct{ Body api.NodeTemplate }
	templateChange struct {
		ID   string `path:"id" maxLength:"128"`
		Body api.NodeTemplate
	}
	templateOutput  struct{ Body api.NodeTemplate }
	templatesOutput struct{ Body api.NodeTemplates }
)

// templates registers stored values and schema overrides that nodes refer to.
func (s *settings) templates() {
	op := route.Tagged("node templates")
	created := op(http.MethodPost, "/node-templates", "create-node-template", "Keep a template")
	created.DefaultStatus = http.StatusCreated
	created.Description = "Without an id one is made. The known parameters must be configurations of the kind; what a kind requires may be left to the node."
	route.Handle(s.Router, op(http.MethodGet, "/node-templates", "list-node-templates", "List templates by id"),
		route.Readers(), s.listTemplates)
	route.Handle(s.Router, created, route.Editors(), s.createTemplate)
	route.Handle(s.Router, op(http.MethodGet, "/node-templates/{id}", "get-node-template", "Read a template"),
		route.Readers(), s.getTemplate)
	route.Handle(s.Router, op(http.MethodPut, "/node-templates/{id}", "put-node-template", "Make or replace a template"),
		route.Editors(), s.putTemplate)
	route.Handle(s.Router, op(http.MethodDelete, "/node-templates/{id}", "delete-node-template", "Delete a template"),
		route.Editors(), s.deleteTemplate)
}

func (s *settings) listTemplates(ctx context.Context, p identity.Principal, _ *struct{}) (*templatesOutput, error) {
	list, err := s.o.Stores.Templates.List(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &templatesOutput{api.NodeTemplates{NodeTemplates: make([]api.NodeTemplate, len(list))}}
	for i, t := range list {
		out.Body.NodeTemplates[i] = tellTemplate(t)
	}
	return out, nil
}

func (s *settings) getTemplate(ctx context.Context, p identity.Principal, in *templateInput) (*templateOutput, error) {
	t, err := s.o.Stores.Templates.Get(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	return &templateOutput{tellTemplate(t)}, nil
}

func (s *settings) createTemplate(ctx context.Context, p identity.Principal, in *templateCreate) (*templateOutput, error) {
	if in.Body.ID == "" {
		in.Body.ID = route.NewID("tpl")
	}
	s.accounts.Lock()
	defer s.accounts.Unlock()
	_, err := s.o.Stores.Templates.Get(ctx, p, in.Body.ID)
	if err == nil {
		return nil, fault.Newf(fault.Conflict, "there is already a template %q; replace it with PUT", in.Body.ID)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return s.keepTemplate(ctx, p, in.Body)
}

func (s *settings) putTemplate(ctx context.Context, p identity.Principal, in *templateChange) (*templateOutput, error) {
	if in.Body.ID != "" && in.Body.ID != in.ID {
		return nil, api.WrongField("id", "%q is not the template of the address, %q", in.Body.ID, in.ID)
	}
	in.Body.ID = in.ID
	s.accounts.Lock()
	defer s.accounts.Unlock()
	return s.keepTemplate(ctx, p, in.Body)
}

func (s *settings) deleteTemplate(ctx context.Context, p identity.Principal, in *templateInput) (*route.Nothing, error) {
	return nil, s.o.Stores.Templates.Delete(route.Audited(ctx, "node_template.delete", in.ID, nil, nil), p, in.ID)
}

func (s *settings) keepTemplate(ctx context.Context, p identity.Principal, in api.NodeTemplate) (*templateOutput, error) {
	name, err := s.checkTemplate(in)
	if err != nil {
		return nil, err
	}
	now := s.NowMS()
	t := store.Template{
		Workspace: p.Workspace, ID: in.ID, Kind: name, Name: strings.TrimSpace(in.Name), KnownParams: present(in.KnownParams),
		OverrideInput: present(in.OverrideInput), OverrideOutput: present(in.OverrideOutput), Created: now, Updated: now,
	}
	if err := s.o.Stores.Templates.Put(route.Audited(ctx, "node_template.put", t.ID, nil,
		map[string]string{"name": t.Name, "kind": t.Kind}), p, t); err != nil {
		return nil, err
	}
	if t, err = s.o.Stores.Templates.Get(ctx, p, t.ID); err != nil { // one that was replaced keeps when it was made
		return nil, err
	}
	return &templateOutput{tellTemplate(t)}, nil
}

// checkTemplate reports everything that is wrong with a template, and returns the kind as it is registered.
func (s *settings) checkTemplate(in api.NodeTemplate) (string, error) {
	if strings.Trim(in.ID, ".") == "" {
		return "", api.WrongField("id", "%q cannot be an id", in.ID)
	}
	if strings.TrimSpace(in.Name) == "" || len(in.Name) > maxUserName {
		return "", api.WrongField("name", "a template needs a name of at most %d characters", maxUserName)
	}
	typ, subtype, _ := strings.Cut(in.Kind, ".")
	name, ok := s.o.Kinds.Alias(typ, subtype)
	if !ok {
		if near := fault.Nearest(in.Kind, s.o.Kinds.Names()); near != "" {
			return "", api.WrongField("kind", "there is no kind %q; did you mean %q?", in.Kind, near)
		}
		return "", api.WrongField("kind", "there is no kind %q; GET %s/node-kinds lists them", in.Kind, route.Prefix)
	}
	kind, ok := s.o.Kinds.Kind(name)
	if !ok {
		return "", api.WrongField("kind", "there is no kind %q", name)
	}
	var fields []api.FaultField
	fields = append(fields, checkKnown(kind, in.KnownParams)...)
	if len(in.KnownParams) > 0 {
		fields = append(fields, inlineFields("known_params.", in.KnownParams, text.Of("create a credential with it, and set credential_id to its name"))...)
	}
	for _, override := range []struct {
		path string
		raw  json.RawMessage
	}{{"override_input", in.OverrideInput}, {"override_output", in.OverrideOutput}} {
		if problem := checkSchema(override.raw); !problem.IsZero() {
			fields = append(fields, api.Wrong(override.path, problem))
		}
	}
	if runs, ok := s.o.Registry.Get(name); ok {
		fields = append(fields, checkDeclared(runs, in.OverrideOutput)...)
	}
	if len(fields) > 0 {
		return "", api.WrongFields(fields...)
	}
	return name, nil
}

// checkDeclared refuses outputs that the kind never has: nothing would be written under their names.
func checkDeclared(kind node.Kind, override json.RawMessage) (fields []api.FaultField) {
	known := kind.OutputFields()
	if len(known) == 0 {
		return nil
	}
	gjson.GetBytes(override, "properties").ForEach(func(name, _ gjson.Result) bool {
		if slices.Contains(known, name.Str) {
			return true
		}
		fields = append(fields, api.Wrong(payload.JoinKey("override_output.properties", name.Str),
			text.Of("%s has no field %q in its output%s", kind.About.Name, name.Str, route.DidYouMean(name.Str, known))))
		return true
	})
	return fields
}

// checkKnown asks the kind about the known parameters as the configurations of a node that takes the rest from elsewhere.
func checkKnown(kind workflow.Kind, raw json.RawMessage) []api.FaultField {
	const path = "known_params"
	if absent(raw) {
		return nil
	}
	var values map[string]json.RawMessage
	wrong := func(at string, problem text.Text) []api.FaultField {
		return []api.FaultField{api.Wrong(path+at, problem)}
	}
	if json.Unmarshal(raw, &values) != nil {
		return wrong("", text.Of("must be an object with configurations of the kind"))
	}
	if _, nested := values["template_id"]; nested {
		return wrong(".template_id", text.Of("a template cannot build on another one"))
	}
	values["template_id"] = json.RawMessage(`"this"`)
	configurations, err := json.Marshal(values)
	if err != nil {
		return wrong("", text.Of("must be an object with configurations of the kind"))
	}
	typ, subtype, _ := strings.Cut(kind.Name, ".")
	_, problems := kind.Plan(&workflow.Node{ID: "n", Name: "n", Type: typ, Subtype: subtype, Configurations: configurations})
	var fields []api.FaultField
	for _, p := range problems {
		if p.Severity != workflow.SeverityWarning {
			fields = append(fields, api.Wrong(path+strings.TrimPrefix(p.Path, "configurations"), text.Settled(p.In)))
		}
	}
	return fields
}

// checkSchema says what is wrong with a schema, if anything. References to elsewhere are not followed.
func checkSchema(raw json.RawMessage) text.Text {
	if absent(raw) {
		return text.Text{}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return text.Of("is not JSON")
	}
	if _, object := doc.(map[string]any); !object {
		return text.Of("must be an object: a JSON Schema to lay over that of the kind")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	const name = "urn:tandem:override"
	if err := c.AddResource(name, doc); err != nil {
		return text.Of("is not a JSON Schema: %s", schemaProblem(err))
	}
	if _, err := c.Compile(name); err != nil {
		return text.Of("is not a JSON Schema: %s", schemaProblem(err))
	}
	return text.Text{}
}

// schemaProblem is one line of what the compiler says, without our name for the document.
func schemaProblem(err error) string {
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if v, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err); ok {
			for len(v.Causes) > 0 {
				v = v.Causes[0]
			}
			lines := strings.Split(strings.TrimSpace(v.Error()), "\n")
			return strings.TrimPrefix(strings.TrimSpace(lines[len(lines)-1]), "- ")
		}
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.ReplaceAll(text, "urn:tandem:override", "")
}

// noLoader loads nothing: a schema must stand on its own.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside of the schema; references must stay inside", url)
}

// present is a value, or nothing when it was left out or null.
func present(raw json.RawMessage) json.RawMessage {
	if absent(raw) {
		return nil
	}
	return raw
}

func tellTemplate(t store.Template) api.NodeTemplate {
	return api.NodeTemplate{
		ID: t.ID, Kind: t.Kind, Name: t.Name, KnownParams: t.KnownParams, OverrideInput: t.OverrideInput, OverrideOutput: t.OverrideOutput,
		CreatedTime: t.Created, UpdatedTime: t.Updated,
	}
}
