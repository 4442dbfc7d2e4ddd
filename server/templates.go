package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/identity"
	"tandem/route"
	"tandem/templates"
)

type (
	templatesOutput struct{ Body api.WorkflowTemplates }
	templateInput   struct {
		Name string `path:"name" maxLength:"128"`
	}
	templateOutput struct{ Body api.WorkflowTemplate }
)

// templates registers the workflows that people begin with.
func (s *Server) templates() {
	list := huma.Operation{Method: http.MethodGet, Path: "/workflow-templates", OperationID: "list-workflow-templates", Summary: "List the workflows to begin with", Tags: []string{"workflows"}}
	list.Description = "What each needs must be made before it runs. A template becomes a workflow when its definition is saved."
	route.Handle(s.Router, list, route.Readers(), func(context.Context, identity.Principal, *struct{}) (*templatesOutput, error) {
		all, err := templates.List()
		return &templatesOutput{api.WorkflowTemplates{Templates: all}}, err
	})
	one := huma.Operation{Method: http.MethodGet, Path: "/workflow-templates/{name}", OperationID: "get-workflow-template", Summary: "Read a workflow to begin with", Tags: []string{"workflows"}}
	route.Handle(s.Router, one, route.Readers(), func(_ context.Context, _ identity.Principal, in *templateInput) (*templateOutput, error) {
		t, text, err := templates.Read(in.Name)
		t.Definition = string(text)
		return &templateOutput{t}, err
	})
}
