package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/examples"
	"tandem/fault"
	"tandem/identity"
	"tandem/payload"
	"tandem/route"
	"tandem/store"
	"tandem/validation"
	"tandem/workflow"
)

// example is an entry of the catalogue.
type example struct {
	Name        string          `json:"name"`
	File        string          `json:"file"`
	Title       api.Text        `json:"title"`
	Description api.Text        `json:"description"`
	First       bool            `json:"first"`
	Needs       []string        `json:"needs"`
	Inputs      json.RawMessage `json:"inputs"`
	InputsZH    json.RawMessage `json:"inputs_zh"`
}

// examples registers the workflows that come with Tandem.
func (s *Server) examples() error {
	raw, err := examples.Files.ReadFile("catalogue/examples.json")
	if err != nil {
		return err
	}
	var list []example
	if err := payload.ReadKnown(raw, &list); err != nil {
		return fault.Newf(fault.Internal, "the catalogue of examples cannot be read: %w", err)
	}
	add := huma.Operation{Method: http.MethodPost, Path: "/examples/{name}", OperationID: "add-example", Summary: "Add an example as a workflow", Tags: []string{"workflows"}, DefaultStatus: http.StatusCreated}
	add.Description = "The workflow has the name of the example as its id. If there is one already, it is left as it is and answered with 200. The model of examples is the profile demo, which every workspace has."
	route.Handle(s.Router, huma.Operation{Method: http.MethodGet, Path: "/examples", OperationID: "list-examples", Summary: "List the workflows that come with Tandem", Tags: []string{"workflows"}}, route.Readers(),
		func(ctx context.Context, p identity.Principal, _ *struct{}) (*examplesOutput, error) {
			return s.listExamples(ctx, p, list)
		})
	route.Handle(s.Router, add, route.Editors(), func(ctx context.Context, p identity.Principal, in *exampleInput) (*exampleOutput, error) {
		i := slices.IndexFunc(list, func(e example) bool { return e.Name == in.Name })
		if i < 0 {
			names := make([]string, len(list))
			for n, e := range list {
				names[n] = e.Name
			}
			return nil, fault.Newf(fault.NotFound, "there is no example %q; there are %s", in.Name, route.Quoted(names))
		}
		return s.addExample(ctx, p, list[i])
	})
	return nil
}

type (
	examplesOutput struct{ Body api.Examples }
	exampleInput   struct {
		Name string `path:"name" maxLength:"128"`
	}
	exampleOutput struct {
		Status   int
		Location string `header:"Location"`
		Body     api.ExampleAdded
	}
)

func (s *Server) listExamples(ctx context.Context, p identity.Principal, list []example) (*examplesOutput, error) {
	out := &examplesOutput{api.Examples{Examples: make([]api.Example, len(list))}}
	for i, e := range list {
		out.Body.Examples[i] = api.Example{Name: e.Name, Title: e.Title, Description: e.Description, First: e.First, Needs: e.Needs,
			Inputs: e.Inputs, InputsZH: e.InputsZH}
		switch _, err := s.o.Stores.Workflows.Heading(ctx, p, e.Name); {
		case err == nil:
			out.Body.Examples[i].WorkflowID = e.Name
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	return out, nil
}

func (s *Server) addExample(ctx context.Context, p identity.Principal, e example) (*exampleOutput, error) {
	out := &exampleOutput{Status: http.StatusOK, Location: route.Prefix + "/workflows/" + e.Name,
		Body: api.ExampleAdded{Inputs: e.Inputs, InputsZH: e.InputsZH}}
	if w, err := s.o.Stores.Workflows.Get(ctx, p, e.Name); err == nil || !errors.Is(err, store.ErrNotFound) {
		store.NothingToAudit(ctx)
		out.Body.Workflow = tellWorkflow(&w)
		return out, err
	}
	text, err := examples.Files.ReadFile(e.File)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "the example %q cannot be read: %w", e.Name, err)
	}
	def, problems := s.o.Check(text)
	if def == nil || workflow.HasErrors(problems) {
		return nil, validation.Refusal(problems)
	}
	def.Metadata.ID = e.Name
	saved, err := s.saveNew(ctx, p, def, problems, store.SourceOf(text))
	if err != nil {
		return nil, err
	}
	out.Status, out.Body.Workflow = http.StatusCreated, saved.Body.Workflow
	return out, nil
}
