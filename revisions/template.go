package revisions

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
	"tandem/workflow"
)

// Nodes may name templates, which change independently of the workflows. So that an execution stays what it was started
// as, the templates that its revision names are kept as they were at its start: as one large value, whose name is part
// of the revision's.

// templateMark stands between a revision's hash and the name of its templates.
const templateMark = "+"

// SplitHash takes the hash by which an execution is pinned apart: that of the revision, and the name of its templates, empty when there are
// none.
func SplitHash(pinned string) (revision, templates string) {
	revision, templates, _ = strings.Cut(pinned, templateMark)
	return revision, templates
}

// TemplateSet are the templates that a revision names, by id.
type TemplateSet map[string]store.Template

// pin returns the name of a revision together with the templates that it names, as they are now, and keeps these.
func (c *Cache) pin(ctx context.Context, p identity.Principal, r store.Revision) (string, TemplateSet, error) {
	if !bytes.Contains(r.Definition, []byte("template_id")) {
		return r.Hash, nil, nil
	}
	source, problems := workflow.Parse(r.Definition, workflow.Options{Kinds: c.o.Kinds, Pinned: true})
	if source == nil {
		return "", nil, fault.Newf(fault.Internal, "revision %d of workflow %q cannot be read: %v", r.Number, r.WorkflowID, problems)
	}
	set := TemplateSet{}
	for n := range source.Definition.Nodes {
		id, err := templateOf(&source.Definition.Nodes[n])
		if err != nil || id == "" {
			if err != nil {
				return "", nil, err
			}
			continue
		}
		if set[id], err = c.template(ctx, p, source.Definition.Nodes[n].ID, id); err != nil {
			return "", nil, err
		}
	}
	if len(set) == 0 {
		return r.Hash, nil, nil
	}
	content, err := json.Marshal(set)
	if err != nil {
		return "", nil, err
	}
	blob, err := c.o.Blobs.Put(ctx, p, bytes.NewReader(content))
	return r.Hash + templateMark + blob.Hash, set, err
}

func (c *Cache) template(ctx context.Context, p identity.Principal, nodeID, id string) (store.Template, error) {
	t, err := c.o.Templates.Get(ctx, p, id)
	if fault.CodeOf(err) != fault.NotFound {
		t.Created, t.Updated = 0, 0 // not part of what it means
		return t, err
	}
	list, err := c.o.Templates.List(ctx, p)
	if err != nil {
		return t, err
	}
	names := make([]string, len(list))
	for n, other := range list {
		names[n] = other.ID
	}
	hint := ""
	if near := fault.Nearest(id, names); near != "" {
		hint = "; did you mean \"" + near + "\"?"
	}
	return t, fault.Newf(fault.InvalidConfig, "node %q: configurations.template_id: there is no template %q%s", nodeID, id, hint)
}

// PinnedTemplates reads the templates that an execution was started with; none for an empty name.
func (c *Cache) PinnedTemplates(ctx context.Context, p identity.Principal, name string) (TemplateSet, error) {
	if name == "" {
		return nil, nil
	}
	content, _, err := c.o.Blobs.Get(ctx, p, name)
	if err != nil {
		return nil, err
	}
	return ReadTemplates(name, content)
}

// ReadTemplates reads the templates of a name from what is kept under it, and closes that.
func ReadTemplates(name string, content io.ReadCloser) (set TemplateSet, err error) {
	data, err := io.ReadAll(content)
	if cerr := content.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fault.Newf(fault.Internal, "the templates %q cannot be read: %w", name, err)
	}
	return set, nil
}

// templateOf is the template that a node names.
func templateOf(n *workflow.Node) (string, error) {
	if !bytes.Contains(n.Configurations, []byte("template_id")) {
		return "", nil
	}
	var config struct {
		Template string `json:"template_id"`
	}
	if err := json.Unmarshal(n.Configurations, &config); err != nil {
		return "", fault.Newf(fault.InvalidConfig, "node %q: configurations.template_id must be a text", n.ID)
	}
	return config.Template, nil
}

// Apply lays the known parameters of templates under the configurations of the nodes that name them. The definition is
// left as it is.
func (set TemplateSet) Apply(def *workflow.Definition) (*workflow.Definition, error) {
	if len(set) == 0 {
		return def, nil
	}
	out := *def
	out.Nodes = slices.Clone(def.Nodes)
	for n := range out.Nodes {
		id, err := templateOf(&out.Nodes[n])
		if err != nil {
			return nil, err
		}
		t, ok := set[id]
		if !ok {
			continue
		}
		if kind := out.Nodes[n].Kind(); t.Kind != kind {
			return nil, fault.Newf(fault.InvalidConfig, "node %q: configurations.template_id: template %q is for %s, and the node is %s", out.Nodes[n].ID, id, t.Kind, kind)
		}
		merged, own := map[string]json.RawMessage{}, map[string]json.RawMessage{}
		if len(t.KnownParams) > 0 {
			if err := json.Unmarshal(t.KnownParams, &merged); err != nil {
				return nil, fault.Newf(fault.InvalidConfig, "template %q: known_params must be an object: %w", id, err)
			}
		}
		if err := json.Unmarshal(out.Nodes[n].Configurations, &own); err != nil {
			return nil, fault.Newf(fault.InvalidConfig, "node %q: configurations cannot be read: %w", out.Nodes[n].ID, err)
		}
		if merged == nil { // null
			merged = map[string]json.RawMessage{}
		}
		maps.Copy(merged, own)
		if out.Nodes[n].Configurations, err = json.Marshal(merged); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// Overrides are the schemas that templates lay over those of the kinds, by template.
func (set TemplateSet) Overrides() map[string]node.Override {
	if len(set) == 0 {
		return nil
	}
	out := make(map[string]node.Override, len(set))
	for id, t := range set { // order does not matter: one entry per template
		out[id] = node.Override{Input: t.OverrideInput, Output: t.OverrideOutput}
	}
	return out
}
