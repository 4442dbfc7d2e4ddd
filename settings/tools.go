package settings

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/mcp"
	"tandem/payload"
	"tandem/route"
	"tandem/store"
	"tandem/text"
)

// Tools is what the settings need from the tool servers of an instance, besides their records in the store.
type Tools interface {
	// Tools lists what a server has now, which starts or reaches it.
	Tools(ctx context.Context, p identity.Principal, server string) ([]mcp.Tool, error)
	// Activate pins the tools as they are, Check compares them with the pins, Accept pins what changes show.
	Activate(ctx context.Context, p identity.Principal, server string, decided mcp.Activation) (store.MCPActivation, error)
	Check(ctx context.Context, p identity.Principal, server string) ([]mcp.Change, error)
	Accept(ctx context.Context, p identity.Principal, server string, by mcp.Acceptance, changes []mcp.Change) (store.MCPActivation, error)
	// SetPolicies keeps policies about tools that the user has accepted.
	SetPolicies(ctx context.Context, p identity.Principal, server string, everybodys bool, policies map[string]store.MCPPolicy) error
	// Stop ends the connections of a user; an empty one means all.
	Stop(workspace, server, user string)
	// Authorize begins an authorization and returns the address that a person has to open; Authorized is called with the
	// parameters they come back with, and returns the server.
	Authorize(ctx context.Context, p identity.Principal, server string) (address string, err error)
	Authorized(ctx context.Context, back url.Values) (server string, err error)
	// ClientDocument describes this program to authorization servers, as JSON.
	ClientDocument() (json.RawMessage, error)
}

// toolPatience is how long an answer may take for which a server is started or reached. What a server may take itself is less, see
// [mcp.StartLimit].
const toolPatience = (store.MaxMCPTimeout + 90) * time.Second

// AuthorizedPath is where people come back to who were sent to authorize a server. It is outside of the prefix, since other sites lead
// there.
const AuthorizedPath = "/mcp/authorized"

// ClientDocumentPath is where authorization servers read what this program is: its client id metadata document.
const ClientDocumentPath = "/client-metadata.json"

type (
	toolServerInput struct {
		ID string `path:"id" maxLength:"64"`
	}
	toolServerCreate struct{ Body api.MCPServer }
	toolServerPut    struct {
		ID   string `path:"id" maxLength:"64"`
		Body api.MCPServer
	}
	toolAccept struct {
		ID   string `path:"id" maxLength:"64"`
		Body api.MCPAccept
	}
	toolServerOutput  struct{ Body api.MCPServer }
	toolServersOutput struct{ Body api.MCPServers }
	toolsOutput       struct{ Body api.MCPTools }
	authorizeOutput   struct{ Body api.MCPAuthorization }
)

// toolServers registers the tool servers of the workspace.
func (s *settings) toolServers() {
	op := func(method, path, id, summary, description string) huma.Operation {
		return huma.Operation{Method: method, Path: "/mcp/servers" + path, OperationID: id, Summary: summary, Description: description, Tags: []string{"tools"}}
	}
	created := op(http.MethodPost, "", "create-mcp-server", "Register a tool server",
		"Nothing is started or reached. Without an id one is made from the name. Secrets belong into credentials, which env and headers can name.")
	created.DefaultStatus = http.StatusCreated
	route.Handle(s.Router, op(http.MethodGet, "", "list-mcp-servers", "List tool servers by id",
		"Nothing is started or reached. What env and headers hold, arguments and the query of the address are for admins only."), route.Operators(), s.listToolServers)
	route.Handle(s.Router, created, route.Admins(), s.createToolServer)
	route.Handle(s.Router, op(http.MethodGet, "/{id}", "get-mcp-server", "Read a tool server", ""), route.Operators(), s.getToolServer)
	route.Handle(s.Router, op(http.MethodPut, "/{id}", "put-mcp-server", "Make or replace a tool server",
		"When what reaches it has changed, its connections end; the next use makes new ones."), route.Admins(), s.putToolServer)
	route.Handle(s.Router, op(http.MethodDelete, "/{id}", "delete-mcp-server", "Delete a tool server, with its activations and connections", ""), route.Admins(), s.deleteToolServer)
	route.Handle(s.Router, op(http.MethodGet, "/{id}/tools", "list-mcp-tools", "List the tools of a server",
		"The server is started or reached for it. Drift says how a tool differs from what the user has accepted."), route.Operators(), s.listTools)
	route.Handle(s.Router, op(http.MethodPost, "/{id}/activate", "activate-mcp-server", "Use a tool server",
		"Its tools are pinned as they are now, for the user who asks, with policies for them. A second time pins them anew."), route.Operators(), s.activateTools)
	route.Handle(s.Router, op(http.MethodDelete, "/{id}/activate", "deactivate-mcp-server", "No longer use a tool server", ""), route.Operators(), s.deactivateTools)
	route.Handle(s.Router, op(http.MethodPost, "/{id}/accept", "accept-mcp-changes", "Accept changes of tools",
		"Only what is sent back as it was shown is accepted; 409 when a tool has changed again since. An admin accepts for everybody, others for themselves."), route.Operators(), s.acceptTools)
	s.toolPolicies(op)
	route.Handle(s.Router, op(http.MethodPost, "/{id}/authorize", "authorize-mcp-server", "Begin an authorization at a tool server",
		"The answer says where a person has to go with a browser, within 15 minutes. The tokens are kept in the server's credential; one is made when it has none."), route.Admins(), s.authorizeTools)
	route.Handle(s.Router, op(http.MethodPost, "/{id}/restart", "restart-mcp-server", "End connections to a tool server",
		"Those of the user who asks; an admin ends everybody's. The next use makes new ones."), route.Operators(), s.restartTools)
	s.Public("GET "+AuthorizedPath, s.authorizedTools)
	s.Public("GET "+ClientDocumentPath, s.clientDocument)
}

// toolServer reads a server. If there is none, the error names similar ones.
func (s *settings) toolServer(ctx context.Context, p identity.Principal, id string) (store.MCPServer, error) {
	found, err := s.o.Stores.MCPServers.Get(ctx, p, id)
	if !errors.Is(err, store.ErrNotFound) {
		return found, err
	}
	list, err := s.o.Stores.MCPServers.List(ctx, p)
	if err != nil {
		return found, err
	}
	ids := make([]string, len(list))
	for i, one := range list {
		ids[i] = one.ID
	}
	return found, fault.Newf(fault.NotFound, "there is no tool server %q%s", id, route.DidYouMean(id, ids))
}

func (s *settings) listToolServers(ctx context.Context, p identity.Principal, _ *struct{}) (*toolServersOutput, error) {
	list, err := s.o.Stores.MCPServers.List(ctx, p)
	if err != nil {
		return nil, err
	}
	mine, err := s.o.Stores.MCPServers.Activations(ctx, p, "", p.User)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, a := range mine {
		used[a.Server] = true
	}
	out := &toolServersOutput{api.MCPServers{Servers: make([]api.MCPServer, len(list))}}
	for i, one := range list {
		if out.Body.Servers[i], err = tellToolServer(p, one, used[one.ID]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *settings) getToolServer(ctx context.Context, p identity.Principal, in *toolServerInput) (*toolServerOutput, error) {
	found, err := s.toolServer(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	_, err = s.o.Stores.MCPServers.Activation(ctx, p, in.ID, p.User)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	told, err := tellToolServer(p, found, err == nil)
	return &toolServerOutput{told}, err
}

// hidden stands for what only an admin may see.
const hidden = `"***"`

// tellToolServer shows a server to an admin as it is, to others without what may hold a secret.
func tellToolServer(p identity.Principal, m store.MCPServer, activated bool) (api.MCPServer, error) {
	out := api.MCPServer{
		ID: m.ID, Name: m.Name, Description: m.Description, Transport: m.Transport, Command: m.Command, Args: m.Args, Dir: m.Dir,
		URL: m.URL, CredentialID: m.Credential,
		TimeoutSeconds: m.TimeoutSeconds, IdleSeconds: m.IdleSeconds, Disabled: !m.Enabled, Activated: activated,
		CreatedTime: m.Created, UpdatedTime: m.Updated,
	}
	admin := p.Has(identity.Admin)
	if !admin {
		out.Args, out.Dir, out.CredentialID = nil, "", ""
		if u, err := url.Parse(m.URL); err == nil && u.RawQuery != "" {
			u.RawQuery = "***"
			out.URL = u.String()
		}
	}
	show := func(values map[string]store.MCPValue) (map[string]json.RawMessage, error) {
		shown := make(map[string]json.RawMessage, len(values))
		for name, v := range values { // order does not matter
			shown[name] = json.RawMessage(hidden)
			if admin {
				raw, err := json.Marshal(v)
				if err != nil {
					return nil, err
				}
				shown[name] = raw
			}
		}
		return shown, nil
	}
	var err error
	if out.Env, err = show(m.Env); err == nil {
		out.Headers, err = show(m.Headers)
	}
	return out, err
}

func (s *settings) createToolServer(ctx context.Context, p identity.Principal, in *toolServerCreate) (*toolServerOutput, error) {
	s.accounts.Lock()
	defer s.accounts.Unlock()
	b := &in.Body
	find := func(id string) error {
		_, err := s.o.Stores.MCPServers.Get(ctx, p, id)
		return err
	}
	switch {
	case b.ID == "" && b.Name == "":
		return nil, api.WrongField("id", "give an id, or a name to make one of")
	case b.ID == "":
		var err error
		if b.ID, err = route.FreeID(route.MadeID(b.Name, "server"), find); err != nil {
			return nil, err
		}
	default:
		if err := find(b.ID); err == nil {
			return nil, fault.Newf(fault.Conflict, "there is already a tool server %q; replace it with PUT", b.ID)
		} else if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	return s.keepToolServer(ctx, p, b)
}

func (s *settings) putToolServer(ctx context.Context, p identity.Principal, in *toolServerPut) (*toolServerOutput, error) {
	if in.Body.ID != "" && in.Body.ID != in.ID {
		return nil, api.WrongField("id", "%q is not the server of the address, %q", in.Body.ID, in.ID)
	}
	in.Body.ID = in.ID
	s.accounts.Lock()
	defer s.accounts.Unlock()
	return s.keepToolServer(ctx, p, &in.Body)
}

// keepToolServer stores a server unless something is wrong with it. It reaches nothing; connections to what it was before end.
func (s *settings) keepToolServer(ctx context.Context, p identity.Principal, b *api.MCPServer) (*toolServerOutput, error) {
	m, wrong, err := s.readToolServer(ctx, p, b)
	if err != nil {
		return nil, err
	}
	if len(wrong) > 0 {
		return nil, wrongFields(wrong)
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	before, err := s.o.Stores.MCPServers.Get(ctx, p, m.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	known := err == nil
	m.Created, m.Updated = cmp.Or(before.Created, s.NowMS()), s.NowMS()
	var earlier any
	if known {
		earlier = auditedToolServer(before)
	}
	if err := s.o.Stores.MCPServers.Put(route.Audited(ctx, "mcp_server.put", m.ID, earlier, auditedToolServer(m)), p, m); err != nil {
		return nil, err
	}
	if known && !sameReach(before, m) {
		s.o.Tools.Stop(p.Workspace, m.ID, "")
	}
	return s.getToolServer(ctx, p, &toolServerInput{m.ID})
}

// auditedToolServer is how the audit log describes a tool server: without its arguments, environment and headers.
func auditedToolServer(m store.MCPServer) any {
	return map[string]any{"name": m.Name, "transport": m.Transport, "credential_id": m.Credential}
}

// sameReach says whether two records lead to the same server in the same way.
func sameReach(a, b store.MCPServer) bool {
	return a.Transport == b.Transport && a.Command == b.Command && slices.Equal(a.Args, b.Args) && a.Dir == b.Dir &&
		maps.Equal(a.Env, b.Env) &&
		a.URL == b.URL && maps.Equal(a.Headers, b.Headers) && a.Credential == b.Credential && a.Enabled == b.Enabled
}

// readToolServer makes a row of a request and says what is wrong with it, field by field.
func (s *settings) readToolServer(ctx context.Context, p identity.Principal,
	b *api.MCPServer) (m store.MCPServer, wrong []api.FaultField, err error) {
	m = store.MCPServer{
		Workspace: p.Workspace, ID: b.ID, Name: strings.TrimSpace(b.Name), Description: b.Description, Transport: b.Transport,
		Command: b.Command, Args: b.Args, Dir: b.Dir,
		URL: b.URL, Credential: b.CredentialID, TimeoutSeconds: b.TimeoutSeconds, IdleSeconds: b.IdleSeconds, Enabled: !b.Disabled,
	}.WithDefaults()
	refuse := func(path, format string, args ...any) {
		wrong = append(wrong, api.Wrong(path, text.Formatted(format, args...)))
	}
	process := b.Transport == store.MCPStdio
	switch {
	case process && b.Command == "":
		refuse("command", "a stdio server needs the command that starts it")
	case !process && b.URL == "":
		refuse("url", "a server of transport %q needs its http or https address", b.Transport)
	}
	foreign := map[string]bool{"url": process && b.URL != "", "headers": process && len(b.Headers) > 0, "credential_id": process && b.CredentialID != "",
		"command": !process && b.Command != "", "args": !process && len(b.Args) > 0, "dir": !process && b.Dir != "", "env": !process && len(b.Env) > 0}
	for _, path := range slices.Sorted(maps.Keys(foreign)) {
		if foreign[path] {
			refuse(path, "a server of transport %q has none; leave it out", b.Transport)
		}
	}
	credentials, err := s.o.Stores.Credentials.List(ctx, p)
	if err != nil {
		return m, nil, err
	}
	m.Env, m.Headers = s.readValues("env", b.Env, credentials, refuse), s.readValues("headers", b.Headers, credentials, refuse)
	wrong = append(wrong, inlineFields("", struct {
		URL     string                     `json:"url"`
		Args    []string                   `json:"args"`
		Env     map[string]json.RawMessage `json:"env"`
		Headers map[string]json.RawMessage `json:"headers"`
	}{b.URL, b.Args, b.Env, b.Headers}, text.Of("create a credential with it and write {credential_id, field, prefix?} in env or headers instead"))...)
	if b.CredentialID != "" && !process {
		c, ok := findCredential(credentials, b.CredentialID)
		switch {
		case !ok:
			refuse("credential_id", "there is no credential %q%s", b.CredentialID, route.DidYouMean(b.CredentialID, credentialIDs(credentials)))
		case c.Type != mcp.OAuthCredential:
			refuse("credential_id", "credential %q is of type %s; tokens of an authorization are kept in one of type %s, and a fixed key belongs into headers", c.ID, c.Type, mcp.OAuthCredential)
		default:
			m.Credential = c.ID
		}
	}
	return m, wrong, nil
}

// readValues reads variables or headers. A credential may be named by its id or its name.
func (s *settings) readValues(path string, from map[string]json.RawMessage, credentials []store.Credential,
	refuse func(path, format string, args ...any)) map[string]store.MCPValue {
	values := map[string]store.MCPValue{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		at := path + "." + name
		var v store.MCPValue
		if err := json.Unmarshal(from[name], &v); err != nil || bytes.Equal(bytes.TrimSpace(from[name]), []byte("null")) {
			refuse(at, "must be a text, or {credential_id, field, prefix?}")
			continue
		}
		if v.Credential != "" {
			c, ok := findCredential(credentials, v.Credential)
			if !ok {
				refuse(at+".credential_id", "there is no credential %q%s", v.Credential, route.DidYouMean(v.Credential, credentialIDs(credentials)))
				continue
			}
			if names := s.fieldsOfType(c.Type); !slices.Contains(names, v.Field) {
				refuse(at+".field", "a credential of type %s has no field %q%s; it has %s", c.Type, v.Field, route.DidYouMean(v.Field, names), strings.Join(names, ", "))
				continue
			}
			v.Credential = c.ID
		}
		values[name] = v
	}
	return values
}

func findCredential(list []store.Credential, name string) (store.Credential, bool) {
	i := slices.IndexFunc(list, func(c store.Credential) bool { return c.ID == name })
	if i < 0 {
		i = slices.IndexFunc(list, func(c store.Credential) bool { return c.Name == name })
	}
	if i < 0 {
		return store.Credential{}, false
	}
	return list[i], true
}

func credentialIDs(list []store.Credential) []string {
	names := make([]string, 0, 2*len(list))
	for _, c := range list {
		names = append(names, c.ID, c.Name)
	}
	return names
}

// fieldsOfType are the names of the fields of a type of credentials; none: there is no such type any more.
func (s *settings) fieldsOfType(name string) []string {
	t, err := s.o.CredentialTypes.Find(name)
	if err != nil {
		return nil
	}
	names := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		names[i] = f.Name
	}
	return names
}

func (s *settings) deleteToolServer(ctx context.Context, p identity.Principal, in *toolServerInput) (*route.Nothing, error) {
	if _, err := s.toolServer(ctx, p, in.ID); err != nil {
		return nil, err
	}
	if err := s.o.Stores.MCPServers.Delete(route.Audited(ctx, "mcp_server.delete", in.ID, nil, nil), p, in.ID); err != nil {
		return nil, err
	}
	s.o.Tools.Stop(p.Workspace, in.ID, "")
	return nil, nil
}

// forgetTools ends the activations of a user who is removed: another user may get the same id.
func (s *settings) forgetTools(ctx context.Context, p identity.Principal, user string) error {
	list, err := s.o.Stores.MCPServers.Activations(ctx, p, "", user)
	if err != nil {
		return err
	}
	for _, a := range list {
		if err := s.o.Stores.MCPServers.Deactivate(ctx, p, a.Server, user); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		s.o.Tools.Stop(p.Workspace, a.Server, user)
	}
	return s.o.Stores.MCPServers.ForgetPolicies(ctx, p, user)
}

// renewTools ends the connections that were made with a credential which is no longer what it was. If that fails, the change
// stays: unused connections end by themselves.
func (s *settings) renewTools(ctx context.Context, p identity.Principal, credential string) {
	list, err := s.o.Stores.MCPServers.List(ctx, p)
	if err != nil {
		s.Log.WarnContext(ctx, "connections to tool servers may use a credential as it was", "credential", credential, "error", err)
		return
	}
	for _, m := range list {
		used := m.Credential == credential
		for _, values := range []map[string]store.MCPValue{m.Env, m.Headers} {
			for _, v := range values { // order does not matter
				used = used || v.Credential == credential
			}
		}
		if used {
			s.o.Tools.Stop(p.Workspace, m.ID, "")
		}
	}
}

// toolProblem is an error of the tool servers as a caller reads it.
func toolProblem(err error) error {
	if e, ok := errors.AsType[*mcp.Error](err); ok {
		return e.Fault()
	}
	return err
}

func (s *settings) listTools(ctx context.Context, p identity.Principal, in *toolServerInput) (*toolsOutput, error) {
	if _, err := s.toolServer(ctx, p, in.ID); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, toolPatience)
	defer stop()
	tools, err := s.o.Tools.Tools(ctx, p, in.ID)
	if err != nil {
		return nil, toolProblem(err)
	}
	a, err := s.o.Stores.MCPServers.Activation(ctx, p, in.ID, p.User)
	activated := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return s.tellTools(ctx, p, tools, a, activated)
}

// tellTools shows the tools of a server and, to somebody who has activated it, how they differ from what was accepted.
func (s *settings) tellTools(ctx context.Context, p identity.Principal, tools []mcp.Tool, a store.MCPActivation,
	activated bool) (*toolsOutput, error) {
	standings := map[string]mcp.Standing{}
	if len(tools) > 0 {
		policies, err := s.o.Stores.MCPServers.Policies(ctx, p, tools[0].Server, "", p.User)
		if err != nil {
			return nil, err
		}
		standings = mcp.StandingsBy(policies, tools)
	}
	out := &toolsOutput{api.MCPTools{Activated: activated, Tools: make([]api.MCPTool, 0, len(tools)), Changes: []api.MCPChange{}}}
	drift := map[string]string{}
	if activated {
		for _, c := range mcp.Drift(a.Tools, tools) {
			drift[c.Tool] = string(c.Kind)
			out.Body.Changes = append(out.Body.Changes, api.MCPChange{Tool: c.Tool, Kind: string(c.Kind), Summary: c.Summary,
				Before: c.Before, After: c.After})
		}
	}
	for _, t := range tools {
		annotations, err := json.Marshal(t.Annotations)
		if err != nil {
			return nil, err
		}
		if string(annotations) == "{}" {
			annotations = nil
		}
		one := api.MCPTool{
			ID: t.ID, ServerID: t.Server, ToolName: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
			OutputSchema: t.OutputSchema,
			Annotations:  annotations, Effect: string(mcp.Effect(t)), Hash: t.Hash, PinnedHash: a.Tools[t.Name].Hash, Drift: drift[t.Name],
		}
		tellStanding(&one, t, standings[t.Name])
		out.Body.Tools = append(out.Body.Tools, one)
	}
	return out, nil
}

func (s *settings) activateTools(ctx context.Context, p identity.Principal, in *toolActivate) (*toolsOutput, error) {
	if _, err := s.toolServer(ctx, p, in.ID); err != nil {
		return nil, err
	}
	decided, err := readActivation(p, in.Body)
	if err != nil {
		return nil, err
	}
	bounded, stop := context.WithTimeout(ctx, toolPatience)
	defer stop()
	a, err := s.o.Tools.Activate(route.Audited(bounded, "mcp_server.activate", in.ID, nil, nil), p, in.ID, decided)
	return s.tellAccepted(bounded, p, in.ID, a, err)
}

// tellAccepted describes the tools of a server after the user has accepted some.
func (s *settings) tellAccepted(ctx context.Context, p identity.Principal, id string, a store.MCPActivation,
	err error) (*toolsOutput, error) {
	if err != nil {
		return nil, toolProblem(err)
	}
	tools, err := s.o.Tools.Tools(ctx, p, id)
	if err != nil {
		return nil, toolProblem(err)
	}
	return s.tellTools(ctx, p, tools, a, true)
}

func (s *settings) deactivateTools(ctx context.Context, p identity.Principal, in *toolServerInput) (*route.Nothing, error) {
	if _, err := s.toolServer(ctx, p, in.ID); err != nil {
		return nil, err
	}
	if err := s.o.Stores.MCPServers.Deactivate(route.Audited(ctx, "mcp_server.deactivate", in.ID, nil, nil), p, in.ID,
		p.User); err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	s.o.Tools.Stop(p.Workspace, in.ID, p.User)
	return nil, nil
}

func (s *settings) acceptTools(ctx context.Context, p identity.Principal, in *toolAccept) (*toolsOutput, error) {
	if _, err := s.toolServer(ctx, p, in.ID); err != nil {
		return nil, err
	}
	bounded, stop := context.WithTimeout(ctx, toolPatience)
	defer stop()
	everyone, err := forEveryone(p, in.Body.Scope, p.Has(identity.Admin))
	if err != nil {
		return nil, err
	}
	now, err := s.o.Tools.Check(bounded, p, in.ID)
	if err != nil {
		return nil, toolProblem(err)
	}
	accepted := make([]mcp.Change, len(in.Body.Changes))
	for i, c := range in.Body.Changes {
		at := slices.IndexFunc(now, func(n mcp.Change) bool { return n.Tool == c.Tool })
		if at < 0 {
			return nil, fault.Newf(fault.Conflict, "changes[%d]: the tool %q is as it was accepted; read the tools again", i, c.Tool).With("tool", c.Tool)
		}
		shown := []byte(nil)
		if !absent(c.After) {
			if shown, err = payload.Canonical(c.After); err != nil {
				return nil, api.WrongField(fmt.Sprintf("changes[%d].after", i), "it is not JSON; send it back as it was shown")
			}
		}
		if accepted[i] = now[at]; !bytes.Equal(shown, now[at].After) {
			return nil, fault.Newf(fault.Conflict, "changes[%d]: what is accepted is not how the tool %q is now (%s); look at it again", i, c.Tool, now[at].Summary).With("tool", c.Tool)
		}
	}
	tools := make([]string, len(accepted))
	for i, c := range accepted {
		tools[i] = c.Tool
	}
	a, err := s.o.Tools.Accept(route.Audited(bounded, "mcp_server.accept", in.ID, nil,
		map[string]any{"tools": tools, "for_everyone": everyone}), p, in.ID,
		mcp.Acceptance{By: p.User, TokenMadeBy: p.TokenMadeBy(), Everyone: everyone}, accepted)
	return s.tellAccepted(bounded, p, in.ID, a, err)
}

func (s *settings) restartTools(ctx context.Context, p identity.Principal, in *toolServerInput) (*route.Nothing, error) {
	if _, err := s.toolServer(ctx, p, in.ID); err != nil {
		return nil, err
	}
	whose := p.User
	if p.Has(identity.Admin) {
		whose = ""
	}
	s.o.Tools.Stop(p.Workspace, in.ID, whose)
	return nil, nil
}
