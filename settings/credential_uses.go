package settings

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tandem/agent"
	"tandem/api"
	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// The kinds of records that use a credential.
const (
	useWorkflow = "workflow"
	useTemplate = "node_template"
	useProfile  = "profile"
	useServer   = "mcp_server"
	useChannel  = "channel"
	useContact  = "contact_channel"
)

func (s *settings) listCredentialUses(ctx context.Context, p identity.Principal, in *credentialInput) (*credentialUsesOutput, error) {
	c, err := s.credential(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	uses, err := s.usesOf(ctx, p, c)
	return &credentialUsesOutput{api.CredentialUses{Uses: uses}}, err
}

// usesOf finds what uses a credential: the newest and the deployed revision of workflows, node templates, profiles, tool servers, and the
// channels that wait for replies with it.
func (s *settings) usesOf(ctx context.Context, p identity.Principal, c store.Credential) ([]api.CredentialUse, error) {
	uses := []api.CredentialUse{}
	add := func(u api.CredentialUse, document json.RawMessage) {
		for _, r := range credential.References(document) {
			if r.Name == c.ID || r.Name == c.Name {
				u.Paths, u.ByName = append(u.Paths, r.Path), u.ByName || r.Name != c.ID
			}
		}
		if len(u.Paths) > 0 {
			uses = append(uses, u)
		}
	}
	for _, find := range []func(context.Context, identity.Principal,
		func(api.CredentialUse, json.RawMessage)) error{s.workflowUses, s.recordUses} {
		if err := find(ctx, p, add); err != nil {
			return nil, err
		}
	}
	contacts, err := s.o.Stores.Contacts.List(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, one := range contacts {
		u := api.CredentialUse{Kind: useContact, ID: one.Name, Name: one.Name, Paths: []string{}}
		for path, id := range map[string]string{"credential_id": one.Credential, "in_credential_id": one.InCredential} { // order does not matter: it is sorted
			if id == c.ID {
				u.Paths = append(u.Paths, path)
			}
		}
		if len(u.Paths) > 0 {
			slices.Sort(u.Paths)
			uses = append(uses, u)
		}
	}
	accounts, err := s.o.Stores.Interactions.Accounts(ctx, identity.System(p.Workspace))
	if err != nil {
		return nil, err
	}
	for _, a := range accounts {
		if a.Workspace == p.Workspace && (a.Credential == c.ID || a.Credential == c.Name) {
			uses = append(uses, api.CredentialUse{Kind: useChannel, ID: a.Channel, Name: "questions that wait for a reply",
				Paths: []string{}, ByName: a.Credential != c.ID})
		}
	}
	slices.SortStableFunc(uses, func(a, b api.CredentialUse) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Revision, b.Revision))
	})
	return uses, nil
}

// workflowUses goes through the revisions of workflows that can still be started.
func (s *settings) workflowUses(ctx context.Context, p identity.Principal, add func(api.CredentialUse, json.RawMessage)) error {
	for page := (store.Page{Number: 1, Size: 500}); ; page.Number++ {
		list, err := s.o.Stores.Workflows.List(ctx, p, store.WorkflowQuery{NotPrefix: agent.UnnamedID(""), Page: page})
		if err != nil {
			return err
		}
		for i := range list.Workflows {
			w := &list.Workflows[i]
			for revision, deployed := range startable(w) {
				r, err := s.o.Stores.Workflows.Revision(ctx, p, w.ID, revision)
				switch {
				case errors.Is(err, store.ErrNotFound): // deleted meanwhile
				case err != nil:
					return err
				default:
					add(api.CredentialUse{Kind: useWorkflow, ID: w.ID, Name: w.Name, Revision: revision, Deployed: deployed}, r.Definition)
				}
			}
		}
		if len(list.Workflows) < page.Size {
			return nil
		}
	}
}

// startable are the revisions of a workflow that are started unless another is named, the newest and the deployed one, and whether they are
// deployed.
func startable(w *store.Workflow) map[int64]bool {
	list := map[int64]bool{w.Revision: w.Revision == w.DeployedRevision}
	if w.DeployedRevision != 0 {
		list[w.DeployedRevision] = true
	}
	return list
}

// recordUses goes through node templates, profiles and tool servers.
func (s *settings) recordUses(ctx context.Context, p identity.Principal, add func(api.CredentialUse, json.RawMessage)) error {
	templates, err := s.o.Stores.Templates.List(ctx, p)
	if err != nil {
		return err
	}
	for _, t := range templates {
		add(api.CredentialUse{Kind: useTemplate, ID: t.ID, Name: t.Name}, t.KnownParams)
	}
	profiles, err := s.o.Stores.Profiles.List(ctx, p)
	if err != nil {
		return err
	}
	for _, one := range profiles {
		told, err := tellProfile(one)
		if err != nil {
			return err
		}
		add(api.CredentialUse{Kind: useProfile, ID: one.ID, Name: told.Name}, one.Body)
	}
	servers, err := s.o.Stores.MCPServers.List(ctx, p)
	if err != nil {
		return err
	}
	for _, m := range servers {
		document, err := json.Marshal(struct {
			Env        map[string]store.MCPValue `json:"env,omitempty"`
			Headers    map[string]store.MCPValue `json:"headers,omitempty"`
			Credential string                    `json:"credential_id,omitempty"`
		}{m.Env, m.Headers, m.Credential})
		if err != nil {
			return fmt.Errorf("look for credentials in tool server %q: %w", m.ID, err)
		}
		add(api.CredentialUse{Kind: useServer, ID: m.ID, Name: m.Name}, document)
	}
	return nil
}

// unused refuses to change what is used, and lists by what.
func unused(c store.Credential, uses []api.CredentialUse, remedy string) error {
	if len(uses) == 0 {
		return nil
	}
	lists, order := map[string][]string{}, []string{useWorkflow, useTemplate, useProfile, useServer, useContact, useChannel}
	for _, u := range uses {
		if !slices.Contains(lists[u.Kind], u.ID) {
			lists[u.Kind] = append(lists[u.Kind], u.ID)
		}
	}
	var what []string
	for _, kind := range slices.SortedFunc(maps.Keys(lists),
		func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) }) {
		quoted := make([]string, len(lists[kind]))
		for i, id := range lists[kind] {
			quoted[i] = fmt.Sprintf("%q", id)
		}
		what = append(what, strings.ReplaceAll(kind, "_", " ")+" "+strings.Join(quoted, ", "))
	}
	return fault.Newf(fault.Conflict, "credential %q is used by %s; %s", c.Name, strings.Join(what, "; "), remedy).With("uses", uses)
}
