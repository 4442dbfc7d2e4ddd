package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
)

// withUser makes a workspace with a user.
func withUser(t *testing.T, db *sqlite.DB) (store.Stores, identity.Principal) {
	t.Helper()
	s, p := db.Stores(), identity.System("one")
	err := errors.Join(
		s.Workspaces.Create(t.Context(), identity.System(""), identity.Workspace{ID: "one", Name: "one", Created: 1}),
		s.Users.Create(t.Context(), p, identity.User{Workspace: "one", ID: "ann", Name: "Ann", Roles: []identity.Role{identity.Admin}, Settings: []byte(`{}`)}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// A token that is kept at hand is as good as one that is read: it expires, and a change of it or of its user counts at once.
func TestTokens_KeptAtHand(t *testing.T) {
	t.Parallel()
	s, p := withUser(t, open(t))
	ctx, secret := t.Context(), identity.HashSecret("secret")
	resolve := func(now int64) (identity.User, error) {
		_, u, err := s.Tokens.Resolve(ctx, identity.System(""), secret, now)
		return u, err
	}
	if err := s.Tokens.Create(ctx, p, identity.Token{Workspace: "one", ID: "tok", User: "ann", Expires: 100}, secret); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		u, err := resolve(99)
		if err != nil {
			t.Fatal(err)
		}
		u.Roles[0], u.Settings[0] = identity.Viewer, 'x' // what was handed out is the caller's
	}
	if u, err := resolve(99); err != nil || u.Roles[0] != identity.Admin || string(u.Settings) != "{}" {
		t.Errorf("the user is %+v, %v after a caller has changed what it was given", u, err)
	}
	if _, err := resolve(100); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a token that has expired: %v", err)
	}
	u, err := s.Users.Get(ctx, p, "ann")
	if err != nil {
		t.Fatal(err)
	}
	for _, disabled := range []bool{true, false} {
		u.Disabled = disabled
		if err := s.Users.Update(ctx, p, u); err != nil {
			t.Fatal(err)
		}
		if _, err := resolve(99); (err == nil) == disabled {
			t.Errorf("disabled %v: %v", disabled, err)
		}
	}
	if err := s.Tokens.Delete(ctx, p, "tok"); err != nil {
		t.Fatal(err)
	}
	if _, err := resolve(99); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a token that was taken away: %v", err)
	}
}

// Whoever asks after a token was taken away is refused, while others ask all the time.
func TestTokens_AreGoneWhileOthersAsk(t *testing.T) {
	t.Parallel()
	s, p := withUser(t, open(t))
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	hash := func(n int) identity.SecretHash { return identity.HashSecret(fmt.Sprint(n)) }
	for range 4 {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, _, err := s.Tokens.Resolve(ctx, identity.System(""), hash(n%20), 1)
				if err != nil && !errors.Is(err, store.ErrNotFound) && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range 20 {
		id := fmt.Sprint(n)
		if err := s.Tokens.Create(ctx, p, identity.Token{Workspace: "one", ID: id, User: "ann"}, hash(n)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Tokens.Resolve(ctx, identity.System(""), hash(n), 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Tokens.Delete(ctx, p, id); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Tokens.Resolve(ctx, identity.System(""), hash(n), 1); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("token %d was taken away: %v", n, err)
		}
	}
}

// What a list says that there are is how many there are, whoever shares a transaction, and whatever of it is refused.
func TestExecutions_AreCountedAsTheyAre(t *testing.T) {
	t.Parallel()
	db := open(t)
	s, p := withUser(t, db)
	ctx := t.Context()
	statuses := []engine.Status{engine.StatusRunning, engine.StatusWaiting, engine.StatusSuccess, engine.StatusError}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(w)))
			for n := range 25 {
				id, status := fmt.Sprintf("e%d.%d", w, n), statuses[r.IntN(4)]
				create := &store.Append{Execution: id, Time: int64(n), Body: []byte("{}"), Create: &store.Execution{ID: id, WorkflowID: fmt.Sprintf("w%d", r.IntN(3)), Status: status}}
				if err := s.Journal.Append(ctx, p, create); err != nil {
					t.Error(err)
				}
				if err := s.Journal.Append(ctx, p, create); !errors.Is(err, store.ErrConflict) {
					t.Errorf("one that is there already: %v", err)
				}
				for after := range uint64(r.IntN(3)) {
					if err := s.Journal.Append(ctx, p, &store.Append{Execution: id, After: after + 1, Time: int64(n), Body: []byte("{}"), Change: &store.Change{Status: statuses[r.IntN(4)]}}); err != nil {
						t.Error(err)
					}
				}
				if n%5 == 0 { // refused when its summary was changed already: the part is undone
					bad := &store.Append{Execution: id, After: 9, Time: 1, Body: []byte("{}"), Change: &store.Change{Status: engine.StatusCanceled}}
					if err := s.Journal.Append(ctx, p, bad); !errors.Is(err, store.ErrConflict) {
						t.Errorf("a row out of order: %v", err)
					}
				}
			}
		})
	}
	group.Wait()
	real := map[string]int{}
	for page := 1; ; page++ {
		list, err := s.Executions.List(ctx, p, store.ExecutionQuery{Page: store.Page{Number: page, Size: 50}})
		if err != nil {
			t.Fatal(err)
		}
		if list.Total != 200 {
			t.Fatalf("there are %d, and 200 were made", list.Total)
		}
		if len(list.Executions) == 0 {
			break
		}
		for _, e := range list.Executions {
			real[""]++
			real[e.WorkflowID]++
			real[string(e.Status)]++
			real[e.WorkflowID+string(e.Status)]++
		}
	}
	for _, flow := range []string{"", "w0", "w1", "w2"} {
		for _, status := range append(statuses, "", engine.StatusCanceled) {
			q := store.ExecutionQuery{WorkflowID: flow, Page: store.Page{Size: 1}}
			if status != "" {
				q.Statuses = []engine.Status{status}
			}
			list, err := s.Executions.List(ctx, p, q)
			if err != nil || list.Total != real[flow+string(status)] {
				t.Errorf("there are %d of %q with status %q (%v), want %d", list.Total, flow, status, err, real[flow+string(status)])
			}
		}
	}
}

// A database of before there were counts is counted when it is brought up to date.
func TestExecutions_AreCountedOfAnOlderDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, sqlite.MigrateTo(t.Context(), dir, 12))
	onFile(t, dir, `WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 7)
		INSERT INTO executions (n, workspace_id, id, workflow_id, workflow_name, workflow_version, revision, revision_hash, status, final, priority, parent,
			forked_from, trigger_type, user_id, started, ended, duration_ms, credits, error, created, updated)
		SELECT i, 'ws', 'e' || i, 'w', 'n', '1.0', 1, 'h', 'RUNNING', 0, 1, '', '', 'MANUAL', 'ann', 1, 0, 0, 0, '', 1, 1 FROM c`)
	list, err := openDir(t, dir).Stores().Executions.List(t.Context(), ann(), store.ExecutionQuery{})
	if check(t, err); list.Total != 7 || len(list.Executions) != 7 {
		t.Errorf("there are %d, of which %d are listed; want 7", list.Total, len(list.Executions))
	}
}
