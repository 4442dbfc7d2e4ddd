// Package templates holds workflows that people begin with: each does something that many teams want, names the credentials and profiles
// that it needs, and says in its first lines what to change. A recorded run of each is beside it, in testdata.
//
// Packages server and console import it. What runs as it is, without anything to set up, is in package examples.
package templates

import (
	"embed"
	"slices"

	"tandem/api"
	"tandem/fault"
	"tandem/payload"
	"tandem/route"
)

//go:embed catalogue.json *.yaml
var files embed.FS // read-only

// List lists the templates in the order in which people see them.
func List() ([]api.WorkflowTemplate, error) {
	raw, err := files.ReadFile("catalogue.json")
	if err != nil {
		return nil, fault.Newf(fault.Internal, "the catalogue of templates cannot be read: %w", err)
	}
	var list []api.WorkflowTemplate
	if err := payload.ReadKnown(raw, &list); err != nil {
		return nil, fault.Newf(fault.Internal, "the catalogue of templates cannot be read: %w", err)
	}
	return list, nil
}

// Read returns a template and its file, which is YAML. A name that does not exist has the code not_found, with all names in the message.
func Read(name string) (api.WorkflowTemplate, []byte, error) {
	list, err := List()
	if err != nil {
		return api.WorkflowTemplate{}, nil, err
	}
	i := slices.IndexFunc(list, func(t api.WorkflowTemplate) bool { return t.Name == name })
	if i < 0 {
		names := make([]string, len(list))
		for n, t := range list {
			names[n] = t.Name
		}
		return api.WorkflowTemplate{}, nil, fault.Newf(fault.NotFound, "there is no template %q; there are %s", name, route.Quoted(names))
	}
	text, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return api.WorkflowTemplate{}, nil, fault.Newf(fault.Internal, "the template %q cannot be read: %w", name, err)
	}
	return list[i], text, nil
}
