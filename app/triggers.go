package app

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"tandem/credential"
	"tandem/host"
	"tandem/identity"
	"tandem/limits"
	"tandem/revisions"
	"tandem/store"
	"tandem/trigger"
)

// newTriggers makes what starts deployed workflows by themselves.
func (i *Instance) newTriggers(o Options) *trigger.Service {
	return trigger.New(trigger.Options{
		Triggers: i.stores.Triggers, Blobs: i.stores.Blobs, Executions: i.stores.Executions, Sources: i.parts.Sources,
		PublicURL: o.PublicURL, Log: i.log,
		Credentials: func(workspace string) credential.Opener { return i.vault.Opener(identity.System(workspace)) },
		Revision:    i.triggersOf, Start: i.startTriggered,
		CredentialID: func(ctx context.Context, workspace, name string) (string, error) {
			found, err := i.stores.Credentials.Find(ctx, identity.System(workspace), name)
			return found.ID, err
		},
		Callback: func(a store.Account) string { return i.desk.Account(a).Callback }, Changed: func() { i.desk.Look() },
	})
}

// triggersOf reads the enabled triggers of a revision, with what templates add to their configurations.
func (i *Instance) triggersOf(ctx context.Context, p identity.Principal, id string, revision int64) (trigger.Revision, error) {
	request, ready, err := i.revisions.Request(ctx, p, id, strconv.FormatInt(revision, 10))
	if err != nil {
		return trigger.Revision{}, err
	}
	hash, _ := revisions.SplitHash(ready.Graph.Hash)
	r := trigger.Revision{Number: request.Revision, Hash: hash, Language: ready.Definition.Metadata.Settings.Language}
	for _, t := range ready.Graph.Triggers {
		n := &ready.Definition.Nodes[t]
		r.Nodes = append(r.Nodes, trigger.Node{ID: n.ID, Kind: ready.Graph.Nodes[t].Kind, Config: n.Configurations})
	}
	return r, nil
}

// startTriggered starts the execution of a delivery. It belongs to no user: a request or a clock has none. The user who
// deployed the revision counts as its requester, and may not answer questions that exclude requesters.
func (i *Instance) startTriggered(ctx context.Context, p identity.Principal, s trigger.Start) (host.Started, error) {
	r, _, err := i.revisions.Request(ctx, p, s.WorkflowID, strconv.FormatInt(s.Revision, 10))
	if err != nil {
		return host.Started{}, err
	}
	r.ID, r.Trigger, r.Initial, r.TriggerData = s.Execution, s.Node, s.Payload, s.Payload
	_, r.TriggerType, _ = strings.Cut(s.Kind, ".")
	r.ExternalRequest, r.Arrival, r.Follow = s.Arrival.Delivery.ID, s.Arrival, s.Follow
	r.Language = cmp.Or(r.Language, i.language)
	if r.Requesters, err = i.stores.Triggers.DeployedBy(ctx, p, s.WorkflowID, s.Revision); err != nil {
		return host.Started{}, err
	}
	leave, err := i.limits.Enter(ctx, p, limits.Start{Triggered: true})
	if err != nil {
		return host.Started{}, err // the delivery is kept, and tried again
	}
	started, err := i.host.Start(ctx, p, r)
	leave(err == nil)
	return started, err
}
