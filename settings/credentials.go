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

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
)

type (
	credentialInput struct {
		ID string `path:"id" maxLength:"200" doc:"the id or the name"`
	}
	credentialCreate struct{ Body api.CredentialRequest }
	credentialChange struct {
		ID    string `path:"id" maxLength:"200" doc:"the id or the name"`
		Force bool   `query:"force" doc:"give it another name although it is used by the old one"`
		Body  api.CredentialRequest
	}
	credentialDelete struct {
		ID    string `path:"id" maxLength:"200" doc:"the id or the name"`
		Force bool   `query:"force" doc:"also when something uses it"`
	}
	credentialUsesOutput  struct{ Body api.CredentialUses }
	credentialTestOutput  struct{ Body api.CredentialTest }
	credentialOutput      struct{ Body api.Credential }
	credentialsOutput     struct{ Body api.Credentials }
	credentialTypesOutput struct{ Body api.CredentialTypes }
)

// credentials registers the secrets of the workspace. They are written and never read back: no answer has any of their
// data, not even in a refusal.
func (s *settings) credentials() {
	op := route.Tagged("credentials")
	created := op(http.MethodPost, "/credentials", "create-credential", "Keep a credential")
	created.DefaultStatus = http.StatusCreated
	created.Description = "The data is checked against the type and sealed. No answer ever holds it."
	changed := op(http.MethodPut, "/credentials/{id}", "update-credential", "Change a credential")
	changed.Description = "Without data the old data stays; another type needs new data. Another name is refused with a list while something uses the old one, unless forced."
	deleted := op(http.MethodDelete, "/credentials/{id}", "delete-credential", "Delete a credential")
	deleted.Description = "Refused with a list while something uses it, unless forced."
	uses := op(http.MethodGet, "/credentials/{id}/uses", "list-credential-uses", "List what uses a credential")
	uses.Description = "The newest and the deployed revision of workflows, node templates, profiles, tool servers, and channels with questions that wait for a reply."

	route.Handle(s.Router, op(http.MethodGet, "/credential-types", "list-credential-types",
		"List the types of credentials and their fields"), route.Editors(), s.listCredentialTypes)
	route.Handle(s.Router, op(http.MethodGet, "/credentials", "list-credentials", "List credentials by name, without their data"),
		route.Editors(), s.listCredentials)
	route.Handle(s.Router, created, route.Admins(), s.createCredential)
	route.Handle(s.Router, op(http.MethodGet, "/credentials/{id}", "get-credential", "Read a credential, without its data"),
		route.Editors(), s.getCredential)
	route.Handle(s.Router, changed, route.Admins(), s.updateCredential)
	route.Handle(s.Router, deleted, route.Admins(), s.deleteCredential)
	route.Handle(s.Router, uses, route.Editors(), s.listCredentialUses)
	authorize := op(http.MethodPost, "/credentials/{id}/authorize", "authorize-credential",
		"Begin to authorize a credential with a browser")
	authorize.Description = "For types with accounts of OAuth 2 (google_oauth, microsoft_oauth, oauth2). The answer says what the user has to open with a browser, within 15 minutes; the first browser that opens it is the only one that can come back."
	route.Handle(s.Router, authorize, route.Admins(), s.authorizeCredential)
	test := op(http.MethodPost, "/credentials/{id}/test", "test-credential", "Try a credential")
	test.Description = "The service that it is for is asked something that changes nothing: whose token it is, to let a mailbox be opened, for a token. The answer says whether it takes the credential, and if not what to do. Types that cannot be tried say why."
	route.Handle(s.Router, test, route.Editors(), s.testCredential)
	s.Public("GET "+AccountBeginPath, s.beginAccount)
	s.Public("GET "+AccountAuthorizedPath, s.authorizedAccount)
}

func (s *settings) listCredentialTypes(context.Context, identity.Principal, *struct{}) (*credentialTypesOutput, error) {
	types := s.o.CredentialTypes
	out := &credentialTypesOutput{api.CredentialTypes{Types: make([]api.CredentialType, len(types))}}
	for i, t := range types {
		told := api.CredentialType{Name: t.Name, Title: api.TextOf(t.Label), Fields: make([]api.CredentialField, len(t.Fields))}
		for j, f := range t.Fields {
			told.Fields[j] = api.CredentialField{
				Name: f.Name, Title: api.TextOf(f.Label), Format: string(f.Format), Secret: f.Secret, Required: f.Required,
				Default: f.Default, Choices: f.Choices,
			}
		}
		out.Body.Types[i] = told
	}
	return out, nil
}

func (s *settings) listCredentials(ctx context.Context, p identity.Principal, _ *struct{}) (*credentialsOutput, error) {
	list, err := s.o.Stores.Credentials.List(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &credentialsOutput{api.Credentials{Credentials: make([]api.Credential, len(list))}}
	for i, c := range list {
		out.Body.Credentials[i] = tellCredential(c)
	}
	return out, nil
}

// credential reads a credential by its id or its name. If there is none, the error names similar ones.
func (s *settings) credential(ctx context.Context, p identity.Principal, name string) (store.Credential, error) {
	found, err := s.o.Stores.Credentials.Find(ctx, p, name)
	if !errors.Is(err, store.ErrNotFound) {
		return found, err
	}
	list, err := s.o.Stores.Credentials.List(ctx, p)
	if err != nil {
		return found, err
	}
	return found, fault.Newf(fault.NotFound, "there is no credential %q%s", name, route.DidYouMean(name, credentialIDs(list)))
}

func (s *settings) getCredential(ctx context.Context, p identity.Principal, in *credentialInput) (*credentialOutput, error) {
	c, err := s.credential(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	return &credentialOutput{tellCredential(c)}, nil
}

func (s *settings) createCredential(ctx context.Context, p identity.Principal, in *credentialCreate) (*credentialOutput, error) {
	now := s.NowMS()
	c := store.Credential{Workspace: p.Workspace, ID: route.NewID("cred"), CreatedBy: p.User,
		TokenMadeBy: p.TokenMadeBy(), Created: now, Updated: now}
	if absent(in.Body.Data) {
		in.Body.Data = json.RawMessage(`{}`) // so that what is missing is named
	}
	return s.keepCredential(ctx, p, c, in.Body, "credential.create", s.o.Stores.Credentials.Create)
}

func (s *settings) updateCredential(ctx context.Context, p identity.Principal, in *credentialChange) (*credentialOutput, error) {
	s.accounts.Lock()
	defer s.accounts.Unlock()
	c, err := s.credential(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	if name := strings.TrimSpace(in.Body.Name); name != c.Name && !in.Force {
		uses, err := s.usesOf(ctx, p, c)
		if err != nil {
			return nil, err
		}
		uses = slices.DeleteFunc(uses, func(u api.CredentialUse) bool { return !u.ByName })
		if err := unused(c, uses, fmt.Sprintf("write %q or the id %q there first, or give it the other name with force=true", name, c.ID)); err != nil {
			return nil, err
		}
	}
	if absent(in.Body.Data) && in.Body.Type != c.Type {
		return nil, api.WrongField("data", "a credential that changes from %q to another type needs new data", c.Type)
	}
	c.Updated = s.NowMS()
	out, err := s.keepCredential(ctx, p, c, in.Body, "credential.update", s.o.Stores.Credentials.Update)
	if err == nil {
		s.renewTools(ctx, p, c.ID)
	}
	return out, err
}

// keepCredential seals the data, if there is any, and stores the credential. Action is what the audit log calls it; the data is never in
// there.
func (s *settings) keepCredential(ctx context.Context, p identity.Principal, c store.Credential, in api.CredentialRequest, action string,
	put func(context.Context, identity.Principal, store.Credential) error) (*credentialOutput, error) {
	var before any
	if c.Name != "" {
		before = auditedCredential(c, false)
	}
	c.Name, c.Type = strings.TrimSpace(in.Name), in.Type
	if c.Name == "" {
		return nil, api.WrongField("name", "a credential needs a name")
	}
	renewed := !absent(in.Data)
	if renewed {
		known, err := s.o.CredentialTypes.Find(c.Type)
		if err != nil {
			clear(in.Data)
			return nil, err
		}
		sealed, err := s.o.Keyring.SealData(known, c.Workspace, c.ID, in.Data)
		clear(in.Data)
		if err != nil {
			return nil, err
		}
		c.Sealed, c.Problem = sealed, ""
	}
	if err := put(route.Audited(ctx, action, c.ID, before, auditedCredential(c, renewed)), p, c); err != nil {
		return nil, route.ConflictOf(err, "there is already a credential called %q", c.Name)
	}
	return &credentialOutput{tellCredential(c)}, nil
}

func (s *settings) deleteCredential(ctx context.Context, p identity.Principal, in *credentialDelete) (*route.Nothing, error) {
	s.accounts.Lock()
	defer s.accounts.Unlock()
	c, err := s.credential(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	if !in.Force {
		uses, err := s.usesOf(ctx, p, c)
		if err != nil {
			return nil, err
		}
		if err := unused(c, uses, "give them another one, or delete it with force=true"); err != nil {
			return nil, err
		}
	}
	if err := s.o.Stores.Credentials.Delete(route.Audited(ctx, "credential.delete", c.ID, auditedCredential(c, false), nil), p,
		c.ID); err != nil {
		return nil, err
	}
	s.renewTools(ctx, p, c.ID)
	return nil, nil
}

// auditedCredential is how the audit log describes a credential, and whether its data is new.
func auditedCredential(c store.Credential, renewed bool) map[string]any {
	out := map[string]any{"name": c.Name, "type": c.Type}
	if renewed {
		out["data"] = "new"
	}
	return out
}

func tellCredential(c store.Credential) api.Credential {
	return api.Credential{ID: c.ID, Name: c.Name, Type: c.Type, CreatedBy: c.CreatedBy, TokenMadeBy: c.TokenMadeBy, CreatedTime: c.Created,
		UpdatedTime: c.Updated, Problem: c.Problem}
}

// absent says that a value was left out, or is null.
func absent(raw json.RawMessage) bool {
	text := bytes.TrimSpace(raw)
	return len(text) == 0 || string(text) == "null"
}
