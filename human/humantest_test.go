package human

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/identity"
	"tandem/store"
)

// shelf is a [store.Interactions] in memory, for the tests of this package. It is exact about versions, dedup ids, links and workspaces.
type shelf struct {
	store.Interactions // nil: what is not below is nothing that this package calls

	mu           sync.Mutex
	interactions map[string]store.Interaction // by workspace/id
	responses    []store.Response
	links        map[identity.SecretHash]store.Link
	deliveries   []store.Delivery
	threads      map[string]string // by workspace/channel/thread
	pauses       map[string]store.Pause
	inbox        []store.InboxItem
	dedups       map[string]bool
	accounts     map[string][]store.Account // by workspace/id
	changes      int
	// before, if it is set, is called before each call, by the name of the method; fail, with the lock held, may be its answer.
	before func(method string)
	fail   func(method string) error
}

func newShelf() *shelf {
	return &shelf{
		interactions: map[string]store.Interaction{}, links: map[identity.SecretHash]store.Link{}, threads: map[string]string{}, pauses: map[string]store.Pause{},
		dedups: map[string]bool{}, accounts: map[string][]store.Account{},
	}
}

func (s *shelf) enter(method string) (func(), error) {
	if s.before != nil {
		s.before(method)
	}
	s.mu.Lock()
	if s.fail != nil {
		if err := s.fail(method); err != nil {
			s.mu.Unlock()
			return nil, err
		}
	}
	return s.mu.Unlock, nil
}

// put is what an append does with a question.
func (s *shelf) put(i store.Interaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i.Version = max(i.Version, 1)
	s.interactions[i.Workspace+"/"+i.ID] = i
	s.pauses[i.ID] = store.Pause{ID: i.ID, Execution: i.Execution, Node: i.Node, Reason: "human", Status: store.PauseActive, Paused: i.Created}
}

// withdraw is what an append does with a question that nobody needs any more.
func (s *shelf) withdraw(workspace, id string, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.interactions[workspace+"/"+id]
	if i.Status == store.InteractionPending {
		i.Status, i.NextAt, i.Updated = store.InteractionCancelled, now, now
		i.Version++
		s.interactions[workspace+"/"+id] = i
	}
}

// read returns a question as it is.
func (s *shelf) read(t testing.TB, workspace, id string) store.Interaction {
	t.Helper()
	i, err := s.Get(context.Background(), identity.System(workspace), id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// items are what is in the inbox of an execution.
func (s *shelf) items(execution string) []store.InboxItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.inbox), func(i store.InboxItem) bool { return i.Execution != execution })
}

func (s *shelf) Get(_ context.Context, p identity.Principal, id string) (store.Interaction, error) {
	leave, err := s.enter("Get")
	if err != nil {
		return store.Interaction{}, err
	}
	defer leave()
	i, ok := s.interactions[p.Workspace+"/"+id]
	if !ok {
		return i, store.ErrNotFound
	}
	i.Approvers = slices.Clone(i.Approvers)
	return i, nil
}

func (s *shelf) List(_ context.Context, p identity.Principal, q store.InteractionQuery) (store.InteractionPage, error) {
	leave, err := s.enter("List")
	if err != nil {
		return store.InteractionPage{}, err
	}
	defer leave()
	var page store.InteractionPage
	for _, i := range s.interactions {
		if i.Workspace == p.Workspace && (q.Execution == "" || q.Execution == i.Execution) && (len(q.Statuses) == 0 || slices.Contains(q.Statuses, i.Status)) {
			page.Interactions = append(page.Interactions, i)
		}
	}
	slices.SortFunc(page.Interactions, func(a, b store.Interaction) int { return strings.Compare(a.ID, b.ID) })
	page.Total = len(page.Interactions)
	return page, nil
}

func (s *shelf) Change(_ context.Context, p identity.Principal, c store.InteractionChange) error {
	leave, err := s.enter("Change")
	if err != nil {
		return err
	}
	defer leave()
	key := p.Workspace + "/" + c.Interaction.ID
	old, ok := s.interactions[key]
	if !ok {
		return store.ErrNotFound
	}
	if old.Version != c.Interaction.Version {
		return store.ErrConflict
	}
	for _, r := range c.Responses {
		if r.Dedup != "" && s.dedups[fmt.Sprint(p.Workspace, "/", r.Channel, "/", r.Dedup)] {
			return store.ErrConflict
		}
	}
	if c.UseLink != nil {
		l, ok := s.links[*c.UseLink]
		if !ok || l.Used != 0 {
			return store.ErrConflict
		}
		l.Used = c.Interaction.Updated
		s.links[*c.UseLink] = l
	}
	for _, r := range c.Responses {
		if r.Dedup != "" {
			s.dedups[fmt.Sprint(p.Workspace, "/", r.Channel, "/", r.Dedup)] = true
		}
		s.responses = append(s.responses, r)
	}
	if c.Overrule != nil {
		for n := range s.responses {
			if s.responses[n].ID == c.Overrule.Response {
				s.responses[n].OverruledBy, s.responses[n].Accepted = c.Overrule.By, false
			}
		}
	}
	for _, l := range c.Links {
		s.links[l.Hash] = l
	}
	for _, d := range c.Deliveries {
		if !slices.ContainsFunc(s.deliveries, func(o store.Delivery) bool { return o.ID == d.ID }) {
			s.deliveries = append(s.deliveries, d)
		}
	}
	s.accounts[key] = append(s.accounts[key], c.Accounts...)
	if c.Resume != nil {
		if pause := s.pauses[c.Resume.ID]; pause.Status == store.PauseActive {
			pause.Status, pause.ResumeReason, pause.ResumeData, pause.Resumed = c.Resume.Status, c.Resume.Reason, c.Resume.Data, c.Resume.Time
			s.pauses[c.Resume.ID] = pause
		}
	}
	if c.Deliver != nil && !slices.ContainsFunc(s.inbox, func(i store.InboxItem) bool {
		return i.Execution == c.Deliver.Execution && i.Dedup == c.Deliver.Dedup && i.Dedup != ""
	}) {
		s.inbox = append(s.inbox, *c.Deliver)
	}
	i := c.Interaction
	i.Execution, i.Ask, i.Created, i.Workspace = old.Execution, old.Ask, old.Created, old.Workspace
	i.Version = old.Version + 1
	i.Approvers = slices.Clone(i.Approvers)
	s.interactions[key] = i
	s.changes++
	return nil
}

func (s *shelf) Due(_ context.Context, p identity.Principal, now int64, limit int) (due []store.Interaction, next int64, err error) {
	leave, err := s.enter("Due")
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	all := slices.SortedFunc(maps.Values(s.interactions), func(a, b store.Interaction) int { return int(a.NextAt - b.NextAt) })
	for _, i := range all {
		switch {
		case i.NextAt == 0 || p.Workspace != "" && i.Workspace != p.Workspace:
		case i.NextAt <= now && len(due) < limit:
			i.Approvers = slices.Clone(i.Approvers)
			due = append(due, i)
		case next == 0:
			next = i.NextAt
		}
	}
	return due, next, nil
}

func (s *shelf) Responses(_ context.Context, p identity.Principal, interaction string) ([]store.Response, error) {
	leave, err := s.enter("Responses")
	if err != nil {
		return nil, err
	}
	defer leave()
	if _, ok := s.interactions[p.Workspace+"/"+interaction]; !ok {
		return nil, store.ErrNotFound
	}
	return slices.DeleteFunc(slices.Clone(s.responses), func(r store.Response) bool { return r.Interaction != interaction }), nil
}

func (s *shelf) Link(_ context.Context, p identity.Principal, hash identity.SecretHash) (store.Link, error) {
	leave, err := s.enter("Link")
	if err != nil {
		return store.Link{}, err
	}
	defer leave()
	if err := store.RequireSystem(p); err != nil {
		return store.Link{}, err
	}
	l, ok := s.links[hash]
	if !ok {
		return l, store.ErrNotFound
	}
	return l, nil
}

func (s *shelf) DueDeliveries(_ context.Context, p identity.Principal, now int64, limit int) (due []store.Delivery, next int64, err error) {
	leave, err := s.enter("DueDeliveries")
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	all := slices.Clone(s.deliveries)
	slices.SortStableFunc(all, func(a, b store.Delivery) int { return int(a.NextAt - b.NextAt) })
	for _, d := range all {
		switch {
		case d.Status != store.DeliveryPending || p.Workspace != "" && d.Workspace != p.Workspace:
		case d.NextAt <= now && len(due) < limit:
			due = append(due, d)
		case next == 0:
			next = d.NextAt
		}
	}
	return due, next, nil
}

func (s *shelf) Deliveries(_ context.Context, p identity.Principal, interaction string) ([]store.Delivery, error) {
	leave, err := s.enter("Deliveries")
	if err != nil {
		return nil, err
	}
	defer leave()
	return slices.DeleteFunc(slices.Clone(s.deliveries), func(d store.Delivery) bool { return d.Workspace != p.Workspace || d.Interaction != interaction }), nil
}

func (s *shelf) Delivered(_ context.Context, p identity.Principal, d store.Delivery, links []store.Link, threads []string) error {
	leave, err := s.enter("Delivered")
	if err != nil {
		return err
	}
	defer leave()
	n := slices.IndexFunc(s.deliveries, func(o store.Delivery) bool { return o.ID == d.ID && o.Workspace == p.Workspace })
	if n < 0 {
		return store.ErrNotFound
	}
	o := &s.deliveries[n]
	o.Status, o.Attempts, o.NextAt, o.Receipt, o.Error, o.Updated = d.Status, d.Attempts, d.NextAt, d.Receipt, d.Error, d.Updated
	for _, l := range links {
		s.links[l.Hash] = l
	}
	for _, thread := range threads {
		s.threads[strings.Join([]string{p.Workspace, o.Channel, thread}, "/")] = o.Interaction
	}
	return nil
}

func (s *shelf) Thread(_ context.Context, p identity.Principal, channel, thread string) (string, error) {
	leave, err := s.enter("Thread")
	if err != nil {
		return "", err
	}
	defer leave()
	id, ok := s.threads[strings.Join([]string{p.Workspace, channel, thread}, "/")]
	if !ok {
		return "", store.ErrNotFound
	}
	return id, nil
}

func (s *shelf) Accounts(_ context.Context, p identity.Principal) ([]store.Account, error) {
	leave, err := s.enter("Accounts")
	if err != nil {
		return nil, err
	}
	defer leave()
	var list []store.Account
	for _, i := range s.interactions {
		accounts := s.accounts[i.Workspace+"/"+i.ID]
		if i.Credential != "" {
			accounts = append(slices.Clone(accounts), store.Account{Workspace: i.Workspace, Channel: i.Channel, Credential: i.Credential})
		}
		for _, a := range accounts {
			if i.Status == store.InteractionPending && (p.Workspace == "" || p.Workspace == i.Workspace) && !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list, nil
}

// Unasked implements [store.Interactions]: the shelf has no executions of older versions.
func (s *shelf) Unasked(context.Context, identity.Principal) ([]store.Ref, error) { return nil, nil }

func (s *shelf) Pauses(_ context.Context, _ identity.Principal, execution string) ([]store.Pause, error) {
	leave, err := s.enter("Pauses")
	if err != nil {
		return nil, err
	}
	defer leave()
	return slices.DeleteFunc(slices.Collect(maps.Values(s.pauses)), func(p store.Pause) bool { return p.Execution != execution }), nil
}

// staff is a [store.Users] in memory.
type staff struct {
	store.Users
	mu    sync.Mutex
	users []identity.User
}

func (s *staff) Get(_ context.Context, p identity.Principal, id string) (identity.User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.users {
		if u.Workspace == p.Workspace && u.ID == id {
			return u, nil
		}
	}
	return identity.User{}, store.ErrNotFound
}

func (s *staff) List(_ context.Context, p identity.Principal) ([]identity.User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.users), func(u identity.User) bool { return u.Workspace != p.Workspace }), nil
}

// set replaces a user, or adds one.
func (s *staff) set(u identity.User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = slices.DeleteFunc(s.users, func(o identity.User) bool { return o.Workspace == u.Workspace && o.ID == u.ID })
	s.users = append(s.users, u)
	slices.SortFunc(s.users, func(a, b identity.User) int { return strings.Compare(a.ID, b.ID) })
}

// asJSON writes a value that can be written.
func asJSON(t testing.TB, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
