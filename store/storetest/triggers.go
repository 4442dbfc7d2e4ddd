package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// deploy saves a workflow and puts its newest revision in force.
func deploy(t *testing.T, s store.Stores, p identity.Principal, id, hash string, list ...store.Trigger) store.Deployment {
	t.Helper()
	w, _, err := s.Workflows.Save(t.Context(), p, store.SaveWorkflow{ID: id, Name: id, Hash: hash, Definition: []byte("d"), Time: 1})
	ok(t, err)
	d := store.Deployment{WorkflowID: id, Revision: w.Revision, Hash: hash, Triggers: list, Time: 5}
	ok(t, s.Triggers.Prepare(t.Context(), p, d))
	ok(t, s.Triggers.PutInForce(t.Context(), p, d))
	return d
}

func hook(node string) store.Trigger {
	return store.Trigger{Node: node, Kind: "TRIGGER.WEBHOOK", Config: []byte(`{"webhook_path":"/` + node + `"}`)}
}

// inForce reads the triggers of a workflow as text.
func inForce(t *testing.T, s store.Stores, p identity.Principal, id string) string {
	t.Helper()
	var all []string
	for _, one := range must[[]store.Trigger](t)(s.Triggers.InForce(t.Context(), p, id)) {
		all = append(all, fmt.Sprintf("%s@%d %s %s", one.Node, one.Revision, one.State, one.Cursor))
	}
	return strings.Join(all, "; ")
}

func testDeployment(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	first := deploy(t, s, p, "w", "h1", store.Trigger{Node: "a", Kind: "K", Cursor: []byte("7")}, hook("b"))
	heading := must[store.WorkflowHeading](t)(s.Workflows.Heading(ctx, p, "w"))
	equal(t, "heading", store.WorkflowHeading{Name: "w", Revision: 1, RevisionHash: "h1", DeploymentStatus: store.DeploymentDeployed,
		DeployedRevision: 1, DeployedHash: "h1"}, heading)
	equal(t, "in force", "a@1 active 7; b@1 active ", inForce(t, s, p, "w"))
	wantCode(t, "put in force twice", s.Triggers.PutInForce(ctx, p, first), fault.Conflict)

	// While the next one is pending, and after it has failed, the first is in force.
	_, _, err := s.Workflows.Save(ctx, p, store.SaveWorkflow{ID: "w", Name: "w", Hash: "h2", Definition: []byte("d2"), Time: 2})
	ok(t, err)
	second := store.Deployment{WorkflowID: "w", Revision: 2, Hash: "h2",
		Triggers: []store.Trigger{{Node: "a", Kind: "K"}, {Node: "c", Kind: "K"}}, Time: 9, By: "ann"}
	ok(t, s.Triggers.Prepare(ctx, p, second))
	equal(t, "who deploys it", []string{"ann"}, must[[]string](t)(s.Triggers.DeployedBy(ctx, p, "w", 2)))
	equal(t, "who deployed the first", 0, len(must[[]string](t)(s.Triggers.DeployedBy(ctx, p, "w", 1))))
	wantCode(t, "two at once", s.Triggers.Prepare(ctx, p, second), fault.Conflict)
	wantCode(t, "undeployed while pending", s.Triggers.Undeploy(ctx, p, "w"), fault.Conflict)
	equal(t, "status", store.DeploymentPending, must[store.Workflow](t)(s.Workflows.Get(ctx, p, "w")).DeploymentStatus)
	preparing := must[[]store.Deployment](t)(s.Triggers.Preparing(ctx, p))
	equal(t, "preparing", []store.Deployment{{Workspace: p.Workspace, WorkflowID: "w", Revision: 2, Hash: "h2"}}, preparing)
	ok(t, s.Triggers.Registered(ctx, p, "w", "c", store.TriggerFailed, "no such port"))
	wantCode(t, "unknown node", s.Triggers.Registered(ctx, p, "w", "nothing", store.TriggerActive, ""), fault.NotFound)
	page := must[store.TriggerPage](t)(s.Triggers.List(ctx, p, store.TriggerQuery{WorkflowID: "w", State: store.TriggerFailed}))
	equal(t, "failed", "c no such port", page.Triggers[0].Node+" "+page.Triggers[0].Reason)
	equal(t, "all", 4, must[store.TriggerPage](t)(s.Triggers.List(ctx, p, store.TriggerQuery{})).Total)
	ok(t, s.Triggers.Fail(ctx, p, "w", "no such port"))
	w := must[store.Workflow](t)(s.Workflows.Get(ctx, p, "w"))
	equal(t, "failed", "failed no such port 1", fmt.Sprint(w.DeploymentStatus, " ", w.DeploymentError, " ", w.DeployedRevision))
	page = must[store.TriggerPage](t)(s.Triggers.List(ctx, p, store.TriggerQuery{WorkflowID: "w", State: store.TriggerFailed}))
	equal(t, "none of a failed deployment is active", 2, page.Total)
	equal(t, "in force after a failure", "a@1 active 7; b@1 active ", inForce(t, s, p, "w"))
	equal(t, "found as deployed", 1, must[store.WorkflowPage](t)(s.Workflows.List(ctx, p, store.WorkflowQuery{Deployed: true})).Total)

	// The next try takes the place of all triggers at once; a cursor stays with its node.
	ok(t, s.Triggers.Prepare(ctx, p, second))
	ok(t, s.Triggers.PutInForce(ctx, p, second))
	equal(t, "in force", "a@2 active 7; c@2 active ", inForce(t, s, p, "w"))
	ok(t, s.Triggers.Move(ctx, p, store.Trigger{WorkflowID: "w", Node: "a", Revision: 1, Cursor: []byte("late")}))
	ok(t, s.Triggers.Move(ctx, p, store.Trigger{WorkflowID: "w", Node: "a", Revision: 2, Cursor: []byte("8"), NextDue: 50}))
	equal(t, "moved", "a@2 active 8; c@2 active ", inForce(t, s, p, "w"))
	equal(t, "of a kind", 2, len(must[[]store.Trigger](t)(s.Triggers.OfKind(ctx, p, "K"))))

	ok(t, s.Triggers.Undeploy(ctx, p, "w"))
	equal(t, "undeployed", "", inForce(t, s, p, "w"))
	equal(t, "heading", int64(0), must[store.WorkflowHeading](t)(s.Workflows.Heading(ctx, p, "w")).DeployedRevision)
	wantCode(t, "unknown", s.Triggers.Prepare(ctx, p, store.Deployment{WorkflowID: "unknown", Revision: 1}), fault.NotFound)
	wantCode(t, "unknown undeployed", s.Triggers.Undeploy(ctx, p, "unknown"), fault.NotFound)

	deploy(t, s, p, "gone", "h", hook("b"))
	ok(t, s.Workflows.Delete(ctx, p, "gone", 5))
	equal(t, "triggers of a deleted workflow", "", inForce(t, s, p, "gone"))
}

func testTriggersDue(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	for i, at := range []int64{300, 100, 200, 0} {
		deploy(t, s, p, fmt.Sprint("w", i), "h", store.Trigger{Node: "n", Kind: "K", NextDue: at})
	}
	nodes := func(now int64, limit int) string {
		t.Helper()
		due, next, err := s.Triggers.Due(ctx, p, now, limit)
		ok(t, err)
		var all []string
		for _, one := range due {
			all = append(all, one.WorkflowID)
		}
		return fmt.Sprint(strings.Join(all, " "), " then ", next)
	}
	equal(t, "none yet", " then 100", nodes(99, 10))
	equal(t, "two", "w1 w2 then 300", nodes(200, 10))
	equal(t, "one at a time", "w1 then 250", nodes(250, 1))
	equal(t, "all", "w1 w2 w0 then 0", nodes(300, 10))
}

func delivery(id, key string, decision store.Decision) store.TriggerDelivery {
	return store.TriggerDelivery{ID: id, WorkflowID: "w", Node: "b", Kind: "TRIGGER.WEBHOOK", Revision: 1, Key: key, Received: 10,
		Decision: decision, Payload: []byte(`{"n":1}`)}
}

// A workflow that is made again with the id of one that was deleted is another one: it knows nothing of what senders have called their
// requests to that.
func testDeletedKeys(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	for round, execution := range []string{"e1", "e2"} {
		for _, id := range []string{"w", "stays"} {
			if id == "w" || round == 0 {
				deploy(t, s, p, id, "h", hook("b"))
			}
			row := first(execution + id)
			d := delivery("d"+execution+id, "k", "")
			d.WorkflowID, row.Create.WorkflowID = id, id
			row.Arrival = &store.Arrival{Delivery: d}
			row.Key = &store.IdempotencyKey{Key: "key " + id, RequestHash: "h"}
			row.Create.Status = engine.StatusSuccess
			err := s.Journal.Append(ctx, p, row)
			if id == "w" || round == 0 {
				ok(t, err)
			} else {
				wantCode(t, "one that stays knows it", err, fault.Conflict)
			}
		}
		if round == 0 {
			ok(t, s.Workflows.Delete(ctx, p, "w", 20))
		}
	}
	equal(t, "the deliveries are kept", 2, must[store.DeliveryPage](t)(s.Triggers.Deliveries(ctx, p, store.DeliveryQuery{WorkflowID: "w"})).Total)
	equal(t, "the key", "e2w", must[store.IdempotencyKey](t)(s.Keys.Find(ctx, p, "key w")).Execution)
}

func testArrivals(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	deploy(t, s, p, "w", "h", hook("b"))
	start := func(execution string, a store.Arrival) error {
		row := first(execution)
		row.Create.WorkflowID, row.Arrival = "w", &a
		return s.Journal.Append(ctx, p, row)
	}
	known := func(what string, err error, execution string) {
		t.Helper()
		was, is := errors.AsType[*store.DeliveryKnownError](err)
		if !is || was.Delivery.Execution != execution {
			t.Errorf("%s: %v, want that it is known with execution %q", what, err, execution)
		}
		wantCode(t, what, err, fault.Conflict)
	}

	// Of many that come at once with one key, one starts something.
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			errs[i] = start(fmt.Sprint("e", i), store.Arrival{Delivery: delivery(fmt.Sprint("d", i), "k", ""), Cursor: []byte("far")})
		})
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		if err == nil && winner < 0 {
			winner = i
		} else if err == nil {
			t.Errorf("e%d and e%d were both started", winner, i)
		}
	}
	for i, err := range errs {
		if i != winner {
			known("a repetition", err, fmt.Sprint("e", winner))
		}
	}
	got := must[store.TriggerDelivery](t)(s.Triggers.DeliveryOf(ctx, p, fmt.Sprint("e", winner)))
	equal(t, "delivery", fmt.Sprint("d", winner, " started {\"n\":1}"), fmt.Sprint(got.ID, " ", got.Decision, " ", string(got.Payload)))
	equal(t, "cursor", "b@1 active far", inForce(t, s, p, "w"))
	equal(t, "executions", 1, must[store.ExecutionPage](t)(s.Executions.List(ctx, p, store.ExecutionQuery{WorkflowID: "w"})).Total)
	known("recorded again", s.Triggers.Record(ctx, p, delivery("other", "k", store.DeliveryAccepted), []byte("farther")),
		fmt.Sprint("e", winner))
	equal(t, "the cursor goes on over what is known", "b@1 active farther", inForce(t, s, p, "w"))

	// A trigger that is no longer in force cannot move the cursor, and delivers nothing: what it has read comes again from the one in
	// force.
	for what, change := range map[string]func(*store.TriggerDelivery){
		"another revision": func(d *store.TriggerDelivery) { d.Revision = 2 },
		"another node":     func(d *store.TriggerDelivery) { d.Node = "x" },
		"another kind":     func(d *store.TriggerDelivery) { d.Kind = "K" },
	} { // order does not matter: none of them leaves anything
		late := delivery("late", "late", "")
		change(&late)
		err := start("late", store.Arrival{Delivery: late, Cursor: []byte("late")})
		if _, is := errors.AsType[*store.SupersededError](err); !is {
			t.Errorf("%s: started with %v", what, err)
		}
		late.Decision = store.DeliveryIgnored
		if _, is := errors.AsType[*store.SupersededError](s.Triggers.Record(ctx, p, late, []byte("late"))); !is {
			t.Errorf("%s: recorded with %v", what, err)
		}
	}
	equal(t, "the cursor stays", "b@1 active farther", inForce(t, s, p, "w"))
	_, err := s.Triggers.Delivery(ctx, p, "late")
	wantCode(t, "nothing is kept of it", err, fault.NotFound)

	// Without a key each is one of its own. Another trigger has keys of its own.
	ok(t, start("n1", store.Arrival{Delivery: delivery("n1", "", "")}))
	ok(t, start("n2", store.Arrival{Delivery: delivery("n2", "", "")}))
	other := delivery("o", "k", "")
	other.Node = "c"
	ok(t, start("o", store.Arrival{Delivery: other}))

	// What was accepted is started once, and only then settled.
	accepted := delivery("later", "k2", store.DeliveryAccepted)
	accepted.NextAt = 70
	ok(t, s.Triggers.Record(ctx, p, accepted, nil))
	due, next, err := s.Triggers.DueDeliveries(ctx, p, 69, 10)
	ok(t, err)
	equal(t, "due", "0 70", fmt.Sprint(len(due), " ", next))
	accepted.Attempts, accepted.NextAt, accepted.Reason = 1, 90, "the disk is full"
	ok(t, s.Triggers.Settle(ctx, p, accepted))
	due, next, err = s.Triggers.DueDeliveries(ctx, p, 90, 10)
	ok(t, err)
	equal(t, "due", "1 0 1 {\"n\":1}", fmt.Sprint(len(due), " ", next, " ", due[0].Attempts, " ", string(due[0].Payload)))
	ok(t, start("later", store.Arrival{Delivery: accepted, Stored: true}))
	known("started twice", start("later2", store.Arrival{Delivery: accepted, Stored: true}), "later")
	wantCode(t, "settled after", s.Triggers.Settle(ctx, p, accepted), fault.Conflict)
	wantCode(t, "unknown settled", s.Triggers.Settle(ctx, p, delivery("unknown", "", store.DeliveryGivenUp)), fault.NotFound)
	wantCode(t, "unknown started", start("x", store.Arrival{Delivery: delivery("unknown", "", ""), Stored: true}), fault.NotFound)
	wantCode(t, "started without a start", s.Triggers.Record(ctx, p, delivery("d", "", store.DeliveryStarted), nil), fault.Invalid)

	ok(t, s.Triggers.Record(ctx, p, delivery("i", "k3", store.DeliveryIgnored), nil))
	total := func(q store.DeliveryQuery) int {
		t.Helper()
		return must[store.DeliveryPage](t)(s.Triggers.Deliveries(ctx, p, q)).Total
	}
	equal(t, "all", 6, total(store.DeliveryQuery{}))
	equal(t, "of a node", 1, total(store.DeliveryQuery{WorkflowID: "w", Node: "c"}))
	equal(t, "ignored", 1, total(store.DeliveryQuery{Decisions: []store.Decision{store.DeliveryIgnored}}))
	equal(t, "of a key", 2, total(store.DeliveryQuery{Key: "k"}))
	equal(t, "of an execution", 1, total(store.DeliveryQuery{Execution: "later"}))
	equal(t, "before", 0, total(store.DeliveryQuery{Until: 10}))
	equal(t, "since", 6, total(store.DeliveryQuery{Since: 10, Kind: "TRIGGER.WEBHOOK"}))
	page := must[store.DeliveryPage](t)(s.Triggers.Deliveries(ctx, p, store.DeliveryQuery{Page: store.Page{Size: 1}}))
	equal(t, "newest first", "i", page.Deliveries[0].ID)

	// The messages of a conversation are found by it.
	for _, of := range []string{"m1", "m2", "x1"} {
		said := delivery(of, of, "")
		said.Conversation = "conversation " + of[:1]
		ok(t, start(of, store.Arrival{Delivery: said}))
	}
	said := must[store.DeliveryPage](t)(s.Triggers.Deliveries(ctx, p, store.DeliveryQuery{Conversation: "conversation m"}))
	equal(t, "of a conversation", "m2 m1 2", fmt.Sprint(said.Deliveries[0].ID, " ", said.Deliveries[1].ID, " ", said.Total))
	equal(t, "its conversation", "conversation x", must[store.TriggerDelivery](t)(s.Triggers.DeliveryOf(ctx, p, "x1")).Conversation)
	equal(t, "of no conversation", 0, total(store.DeliveryQuery{Conversation: "other"}))
}

func testAnswers(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	deploy(t, s, p, "w", "h", hook("b"))
	started(t, s, p, "e", func(a *store.Append) { a.Arrival = &store.Arrival{Delivery: delivery("d", "k", "")} })
	ok(t, s.Triggers.Answer(ctx, p, "e", "node#1", []byte(`{"status":201}`)))
	ok(t, s.Triggers.Answer(ctx, p, "e", "node#1", []byte(`{"status":500}`))) // it is the same one, tried again
	err := s.Triggers.Answer(ctx, p, "e", "node#2", []byte(`{"status":500}`))
	if second, is := errors.AsType[*store.AnsweredError](err); !is || second.By != "node#1" {
		t.Errorf("a second answer: %v", err)
	}
	wantCode(t, "a second answer", err, fault.Conflict)
	got := must[store.TriggerDelivery](t)(s.Triggers.Delivery(ctx, p, "d"))
	equal(t, "answer", `{"status":201} node#1`, string(got.Answer)+" "+got.AnsweredBy)
	started(t, s, p, "by-hand")
	wantCode(t, "nobody asked", s.Triggers.Answer(ctx, p, "by-hand", "n", []byte(`{}`)), fault.NotFound)
	wantCode(t, "nothing", s.Triggers.Answer(ctx, p, "e", "n", nil), fault.Invalid)
	_, err = s.Triggers.Delivery(ctx, p, "unknown")
	wantCode(t, "unknown", err, fault.NotFound)
	_, err = s.Triggers.DeliveryOf(ctx, p, "by-hand")
	wantCode(t, "of nothing", err, fault.NotFound)
}

// fillTriggers stores one of everything for a tenant.
func fillTriggers(t *testing.T, s store.Stores, p identity.Principal) {
	t.Helper()
	ctx := t.Context()
	d := store.Deployment{WorkflowID: "w", Revision: 1, Hash: secret,
		Triggers: []store.Trigger{{Node: "n", Kind: "K", Config: []byte(`"` + secret + `"`), NextDue: 1}}, Time: 1, By: secret}
	ok(t, s.Triggers.Prepare(ctx, p, d))
	ok(t, s.Triggers.PutInForce(ctx, p, d))
	ok(t, s.Triggers.Prepare(ctx, p, store.Deployment{WorkflowID: "w2", Revision: 1, Hash: secret, Triggers: d.Triggers}))
	ok(t, s.Triggers.Record(ctx, p, store.TriggerDelivery{ID: "open", WorkflowID: "w", Node: "n", Key: "open",
		Decision: store.DeliveryAccepted, Payload: []byte(`"` + secret + `"`)}, nil))
	started(t, s, p, "e3", func(a *store.Append) {
		a.Arrival = &store.Arrival{Delivery: store.TriggerDelivery{ID: "d", WorkflowID: "w", Node: "n", Key: "k", Payload: []byte(`"` + secret + `"`)}}
	})
}

func triggerProbes() map[string]probe {
	return map[string]probe{
		"Triggers.Prepare": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Triggers.Prepare(ctx, p, store.Deployment{Workspace: k.workspace, WorkflowID: "w", Revision: 1})
		},
		"Triggers.Registered": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Triggers.Registered(ctx, p, "w2", "n", store.TriggerFailed, "from b")
		},
		"Triggers.PutInForce": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Triggers.PutInForce(ctx, p, store.Deployment{Workspace: k.workspace, WorkflowID: "w2", Revision: 1})
		},
		"Triggers.Fail": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Triggers.Fail(ctx, p, "w", "from b")
		},
		"Triggers.Undeploy": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Triggers.Undeploy(ctx, p, "w")
		},
		"Triggers.Preparing": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Triggers.Preparing(ctx, p)
		},
		"Triggers.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Triggers.List(ctx, p, store.TriggerQuery{})
		},
		"Triggers.DeployedBy": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Triggers.DeployedBy(ctx, p, "w", 1)
		},
		"Triggers.InForce": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Triggers.InForce(ctx, p, "w")
		},
		"Triggers.OfKind": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Triggers.OfKind(ctx, p, "K")
		},
		"Triggers.Due": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			due, _, err := s.Triggers.Due(ctx, p, 10, 10)
			return due, err
		},
		"Triggers.Move": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Triggers.Move(ctx, p, store.Trigger{Workspace: k.workspace, WorkflowID: "w", Node: "n",
				Revision: 1, Cursor: []byte("from b")})
		},
		"Triggers.Record": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Triggers.Record(ctx, p, store.TriggerDelivery{Workspace: k.workspace, ID: "d", WorkflowID: "w", Node: "n",
				Key: "k", Decision: store.DeliveryIgnored}, []byte("from b"))
		},
		"Triggers.Settle": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Triggers.Settle(ctx, p, store.TriggerDelivery{Workspace: k.workspace, ID: "open",
				Decision: store.DeliveryGivenUp})
		},
		"Triggers.Delivery": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			d, err := s.Triggers.Delivery(ctx, p, "d")
			return string(d.Payload), err
		},
		"Triggers.DeliveryOf": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			d, err := s.Triggers.DeliveryOf(ctx, p, "e3")
			return string(d.Payload), err
		},
		"Triggers.Deliveries": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Triggers.Deliveries(ctx, p, store.DeliveryQuery{})
		},
		"Triggers.DueDeliveries": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			due, _, err := s.Triggers.DueDeliveries(ctx, p, 10, 10)
			return due, err
		},
		"Triggers.Answer": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Triggers.Answer(ctx, p, "e3", "from b", []byte(`"from b"`))
		},
	}
}
