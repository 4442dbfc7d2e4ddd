package trigger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// registerTimeout is how long the registration of one trigger may take.
const registerTimeout = time.Minute

// Deploy puts a revision of a workflow in force: the workflow is pending while its triggers are registered, and then all of them take the
// place of the former ones in one step. If one cannot be registered the deployment fails with the reason, and what was in force stays so.
// The revision was checked.
func (s *Service) Deploy(ctx context.Context, p identity.Principal, workflow string, revision int64) error {
	r, err := s.o.Revision(ctx, p, workflow, revision)
	if err != nil {
		return err
	}
	mu := s.lock(workflowKey{p.Workspace, workflow})
	mu.Lock()
	defer mu.Unlock()
	d := deployment(p.Workspace, workflow, r)
	if !p.IsSystem() {
		d.By = p.User
	}
	if err := s.o.Triggers.Prepare(ctx, p, d); err != nil {
		return err
	}
	return s.register(context.WithoutCancel(ctx), identity.System(p.Workspace), d)
}

func deployment(workspace, workflow string, r Revision) store.Deployment {
	d := store.Deployment{Workspace: workspace, WorkflowID: workflow, Revision: r.Number, Hash: r.Hash, Time: now().UnixMilli()}
	for _, n := range r.Nodes {
		d.Triggers = append(d.Triggers, store.Trigger{Workspace: workspace, WorkflowID: workflow, Node: n.ID, Kind: n.Kind,
			Revision: r.Number, Config: n.Config})
	}
	return d
}

// now is the time.
func now() time.Time { return time.Now() }

// register brings a pending deployment to its end, good or bad.
func (s *Service) register(ctx context.Context, p identity.Principal, d store.Deployment) error {
	former, err := s.o.Triggers.InForce(ctx, p, d.WorkflowID)
	if err != nil {
		return s.failed(ctx, p, d, err)
	}
	problems := s.registerAll(ctx, p, d, former)
	if len(problems) == 0 {
		problems = append(s.conflicts(d.Triggers), s.pageConflicts(d.Triggers)...)
	}
	if len(problems) > 0 {
		refusal := refusalOf(problems)
		if err := s.o.Triggers.Fail(ctx, p, d.WorkflowID, refusal.Message); err != nil {
			return err
		}
		return refusal
	}
	if former, err = s.o.Triggers.InForce(ctx, p, d.WorkflowID); err != nil { // as they are now
		return s.failed(ctx, p, d, err)
	}
	// What is due until this moment is of the former revision, and all after it of the new one.
	at := now()
	for _, t := range former {
		if t.NextDue != 0 && t.NextDue <= at.UnixMilli() {
			if err := s.clock.fire(ctx, t, at); err != nil {
				return s.failed(ctx, p, d, err)
			}
		}
	}
	for i := range d.Triggers {
		if err := errors.Join(s.scheduleFrom(&d.Triggers[i], at), s.standFrom(&d.Triggers[i], former, at)); err != nil {
			return s.failed(ctx, p, d, err)
		}
	}
	d.Time = at.UnixMilli()
	if err := s.o.Triggers.PutInForce(ctx, p, d); err != nil {
		return s.failed(ctx, p, d, err)
	}
	s.changed(p.Workspace, d.WorkflowID)
	s.unregister(ctx, former, d.Triggers)
	return nil
}

// failed ends a deployment that something of ours keeps from being made.
func (s *Service) failed(ctx context.Context, p identity.Principal, d store.Deployment, cause error) error {
	return errors.Join(cause, s.o.Triggers.Fail(ctx, p, d.WorkflowID, fault.From(cause).Message))
}

// problem is why a trigger cannot be registered.
type problem struct {
	node string
	err  *fault.Error
}

// refusalOf tells all problems as one error.
func refusalOf(problems []problem) *fault.Error {
	slices.SortStableFunc(problems, func(a, b problem) int { return strings.Compare(a.node, b.node) })
	words := make([]string, len(problems))
	fields := make([]map[string]string, len(problems))
	for i, p := range problems {
		words[i] = fmt.Sprintf("trigger %q: %s", p.node, p.err.Message)
		fields[i] = map[string]string{"path": "nodes." + p.node, "message": p.err.Message}
	}
	e := fault.New(problems[0].err.Code, strings.Join(words, "; ")).With("fields", fields)
	e.Retryable = problems[0].err.Retryable
	return e
}

// registerAll lets each source register its triggers, at the same time, and notes how far that is. Triggers get the cursors that their
// sources begin with.
func (s *Service) registerAll(ctx context.Context, p identity.Principal, d store.Deployment, former []store.Trigger) (problems []problem) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range d.Triggers {
		all.Go(func() {
			t := &d.Triggers[i]
			var before []byte
			for _, one := range former {
				if one.Node == t.Node && one.Kind == t.Kind {
					before = one.Cursor
				}
			}
			err := s.registerOne(ctx, t, before)
			state, reason := store.TriggerActive, ""
			if err != nil {
				state, reason = store.TriggerFailed, fault.From(err).Message
			}
			if rerr := s.o.Triggers.Registered(ctx, p, d.WorkflowID, t.Node, state, reason); err == nil {
				err = rerr
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				problems = append(problems, problem{t.Node, fault.From(err)})
			}
		})
	}
	all.Wait()
	return problems
}

// registerOne registers a trigger. Before is the cursor of the trigger whose place it takes.
func (s *Service) registerOne(ctx context.Context, t *store.Trigger, before []byte) (err error) {
	source, err := s.source(t.Kind)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	defer recovered(t.Kind, &err)
	whole := s.trigger(*t)
	if account, ok, err := s.AccountOf(ctx, *t); err != nil {
		return err
	} else if ok && s.o.Callback != nil {
		whole.Callback = s.o.Callback(account)
	}
	if err := source.Register(ctx, whole); err != nil {
		return err
	}
	if listener, ok := source.(Positioner); ok {
		from := whole
		from.Cursor = before
		if t.Cursor, err = listener.Position(ctx, from); err != nil {
			return err
		}
	}
	if r, ok := source.(Receiver); ok {
		if _, err := r.Route(whole); err != nil {
			return err
		}
	}
	if p, ok := source.(Presenter); ok {
		if _, err := p.Page(whole); err != nil {
			return err
		}
	}
	probe := *t // it is scheduled when it is put in force
	return s.scheduleFrom(&probe, now())
}

// recovered makes an error of a defect of a source.
func recovered(kind string, err *error) {
	if p := recover(); p != nil {
		*err = fault.Newf(fault.Internal, "the source of %s broke down", kind).WithDetail(fmt.Sprint(p))
	}
}

// scheduleFrom sets the time at which a trigger is due next, for one that has a schedule.
func (s *Service) scheduleFrom(t *store.Trigger, at time.Time) (err error) {
	scheduler, ok := s.sources[t.Kind].(Scheduler)
	if !ok {
		return nil
	}
	defer recovered(t.Kind, &err)
	schedule, err := scheduler.Schedule(s.trigger(*t))
	if err != nil {
		return err
	}
	next, ok := schedule.Next(at)
	if !ok {
		return fault.New(fault.InvalidConfig, "its schedule has no time that ever comes; correct it")
	}
	t.Cursor, t.NextDue = cursorAt(at), next.Add(jitter(t, schedule, next)).UnixMilli()
	return nil
}

// conflicts are triggers that take requests at the same path.
func (s *Service) conflicts(list []store.Trigger) (problems []problem) {
	taken := map[string]string{}
	for _, t := range list {
		route, _, ok, err := s.routeOf(t)
		if !ok {
			continue
		}
		if err != nil {
			problems = append(problems, problem{t.Node, fault.From(err)})
			continue
		}
		shape := shapeOf(route.Path)
		if other, conflict := taken[shape]; conflict {
			problems = append(problems, problem{t.Node, fault.Newf(fault.Conflict, "the path %q is taken by the trigger %q of this workflow; give one of them another path", route.Path, other)})
			continue
		}
		taken[shape] = t.Node
	}
	return problems
}

// Undeploy removes the triggers of a workflow. What was accepted is still started.
func (s *Service) Undeploy(ctx context.Context, p identity.Principal, workflow string) error {
	mu := s.lock(workflowKey{p.Workspace, workflow})
	mu.Lock()
	defer mu.Unlock()
	former, err := s.o.Triggers.InForce(ctx, p, workflow)
	if err != nil {
		return err
	}
	if err := s.o.Triggers.Undeploy(ctx, p, workflow); err != nil {
		return err
	}
	s.changed(p.Workspace, workflow)
	s.unregister(context.WithoutCancel(ctx), former, nil)
	return nil
}

// Changed says that the triggers of a workflow have changed in the store, because it was deleted.
func (s *Service) Changed(workspace, workflow string) { s.changed(workspace, workflow) }

func (s *Service) changed(workspace, workflow string) {
	s.routes.forget(workflowKey{workspace, workflow})
	nudge(s.clock.wake)
	nudge(s.ears.wake)
	if s.o.Changed != nil {
		s.o.Changed()
	}
}

// unregister lets sources undo what they have made outside for triggers that are no longer in force.
func (s *Service) unregister(ctx context.Context, former, current []store.Trigger) {
	for _, t := range former {
		source, ok := s.sources[t.Kind].(Unregisterer)
		if !ok || slices.ContainsFunc(current, func(c store.Trigger) bool { return c.Node == t.Node && c.Kind == t.Kind }) {
			continue
		}
		if err := s.unregisterOne(ctx, source, t); err != nil {
			s.o.Log.Warn("a trigger that is no longer in force could not be unregistered", "workspace", t.Workspace, "workflow", t.WorkflowID, "node", t.Node, "error", err)
		}
	}
}

func (s *Service) unregisterOne(ctx context.Context, source Unregisterer, t store.Trigger) (err error) {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	defer recovered(t.Kind, &err)
	return source.Unregister(ctx, s.trigger(t))
}

// resume brings the deployments to their end that a process before has begun.
func (s *Service) resume(ctx context.Context) {
	pending, err := s.o.Triggers.Preparing(ctx, identity.System(""))
	if err != nil {
		s.o.Log.Error("deployments that were not finished cannot be read; deploy them again", "error", err)
		return
	}
	for _, d := range pending {
		if ctx.Err() != nil {
			return
		}
		if err := s.resumeOne(ctx, d); err != nil {
			s.o.Log.Warn("a deployment that was not finished has failed", "workspace", d.Workspace, "workflow", d.WorkflowID, "error", err)
			continue
		}
		s.o.Log.Info("a deployment that was not finished is in force now", "workspace", d.Workspace, "workflow", d.WorkflowID, "revision", d.Revision)
	}
}

func (s *Service) resumeOne(ctx context.Context, d store.Deployment) error {
	p := identity.System(d.Workspace)
	mu := s.lock(workflowKey{d.Workspace, d.WorkflowID})
	mu.Lock()
	defer mu.Unlock()
	r, err := s.o.Revision(ctx, p, d.WorkflowID, d.Revision)
	if err != nil {
		return s.failed(ctx, p, d, err)
	}
	return s.register(context.WithoutCancel(ctx), p, deployment(d.Workspace, d.WorkflowID, r))
}
