package app

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/server"
	"tandem/store"
)

// countedSource counts what the API reads of journals.
type countedSource struct {
	host.Source
	reads atomic.Int64
}

func (c *countedSource) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[host.Row, error] {
	c.reads.Add(1)
	return c.Source.Rows(ctx, p, execution, after)
}

// countedExecutions counts how often the API reads a summary.
type countedExecutions struct {
	store.Executions
	reads *atomic.Int64
}

func (c countedExecutions) Get(ctx context.Context, p identity.Principal, id string) (store.Execution, error) {
	c.reads.Add(1)
	return c.Executions.Get(ctx, p, id)
}

func (c countedExecutions) GetWithRows(ctx context.Context, p identity.Principal, id string) (store.Execution, []store.Row, bool, error) {
	c.reads.Add(1)
	return c.Executions.GetWithRows(ctx, p, id)
}

// memorySite is a site whose reads of journals and summaries are counted, and beside it a server on the same instance that has nothing
// in memory.
type memorySite struct {
	*site
	source *countedSource
	cold   server.Options
	// others are servers beside it, by user: each has been asked for some paths, once.
	others map[string]*coldServer
}

type coldServer struct {
	*server.Server
	asked map[string]bool
}

func openMemory(t *testing.T) *memorySite {
	t.Helper()
	m := &memorySite{source: &countedSource{}, others: map[string]*coldServer{}}
	m.site = openSite(t, func(o *server.Options) {
		m.cold = *o
		m.source.Source = o.Source
		o.Source = m.source
		o.Stores.Executions = countedExecutions{o.Stores.Executions, &m.source.reads}
	})
	return m
}

// coldly sends a request to a server that has seen nothing of what it is asked for.
func (m *memorySite) coldly(t *testing.T, user, path string) string {
	t.Helper()
	s := m.others[user]
	if s == nil || s.asked[path] {
		o := m.cold
		o.Hub = host.NewHub()
		made, err := server.New(o)
		if err != nil {
			t.Fatal(err)
		}
		s = &coldServer{made, map[string]bool{}}
		m.others[user] = s
	}
	s.asked[path] = true
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1"+path, nil)
	r.Header.Set("Authorization", "Bearer "+m.tokens[user])
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w.Body.String()
}

// same reads an execution from the journal, from memory and on a server that has seen nothing, and compares the answers.
func (m *memorySite) same(t *testing.T, id string, small bool) {
	t.Helper()
	for _, user := range []string{"viewer", "operator"} { // who is told more
		first := string(m.call(t, user, "GET", "/executions/"+id, nil).body)
		before := m.source.reads.Load()
		again := string(m.call(t, user, "GET", "/executions/"+id, nil).body)
		if n := m.source.reads.Load() - before; small && n != 0 {
			t.Errorf("an execution that is in memory was read from the database %d times", n)
		}
		if cold := m.coldly(t, user, "/executions/"+id); first != again || first != cold {
			t.Errorf("the answers differ.\nfirst:  %s\nagain:  %s\nothers: %s", first, again, cold)
		}
	}
}

// randomFlow is a workflow of some steps, which may branch, repeat, wait and fail.
func randomFlow(r *rand.Rand, id string) string {
	var nodes, links strings.Builder
	from, key := "start", "result"
	for n := range 1 + r.IntN(5) {
		name := fmt.Sprintf("n%d", n)
		node := func(id, kind, config string) {
			family, subtype, _ := strings.Cut(kind, ".")
			fmt.Fprintf(&nodes, "  - {id: %s, description: d, type: %s, subtype: %s, configurations: {%s}}\n", id, family, subtype, config)
		}
		link := func(from, key, to string) {
			fmt.Fprintf(&links, "  - {from_node: %s, to_node: %s, output_key: %s}\n", from, to, key)
		}
		out := "result"
		switch r.IntN(8) {
		case 0, 1:
			node(name, "CALL.EMPTY", "pass_through: true")
		case 2:
			node(name, "CALL.EMPTY", "")
		case 3:
			node(name, "FLOW.FOR_EACH", "items_path: list") // fails where the list was not handed on
			node(name+"in", "CALL.EMPTY", "pass_through: true")
			link(name, "iteration", name+"in")
			link(name+"in", "result", name)
			out = "completed"
		case 4:
			node(name, "FLOW.IF", fmt.Sprintf("condition_expression: \"data.n > %d\"", r.IntN(6)))
			out = "true"
		case 5:
			node(name, "FLOW.DELAY", "duration_seconds: 0.01")
		case 6:
			node(name, "FLOW.IF", "condition_expression: \"data.n.x.y > 3\", on_error: continue") // a failure that is handled
			out = "true"
		case 7:
			node(name, "FLOW.IF", "condition_expression: \"data.n / 0 > 3\"")
			out = "true"
		}
		link(from, key, name)
		from, key = name, out
	}
	return "metadata: {id: " + id + ", name: " + id + ", description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n" +
		nodes.String() + "connections:\n" + links.String()
}

// What the API answers does not depend on where it has it from: the rows that somebody has waited for, what was kept of a read
// before, or the journal.
func TestAnswers_AreTheSameFromMemoryAndFromTheJournal(t *testing.T) {
	t.Parallel()
	m := openMemory(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	ended := map[string]int{}
	for n := range 40 {
		id := fmt.Sprintf("flow%d", n)
		text := randomFlow(r, id)
		m.save(t, text)
		inputs := map[string]any{"n": r.IntN(10), "list": []string{"a", "b", "<&>"}, "text": "é\u2028\"\\"}
		large := r.IntN(5) == 0
		if large {
			inputs["large"] = strings.Repeat("x", host.MaxInline+1)
		}
		raw, err := json.Marshal(inputs)
		if err != nil {
			t.Fatal(err)
		}
		before := m.source.reads.Load()
		request := api.ExecuteRequest{Inputs: raw, WaitSeconds: 30}
		waited := m.call(t, "operator", "POST", "/workflows/"+id+"/execute", request, "Idempotency-Key", id)
		if reads := m.source.reads.Load() - before; reads != 0 && !large {
			t.Errorf("%d journals were read for an execution that was waited for\n%s", reads, text)
		}
		again := m.call(t, "operator", "POST", "/workflows/"+id+"/execute", request, "Idempotency-Key", id)
		if got := strings.Replace(string(again.body), `,"repeated":true`, "", 1); waited.status != http.StatusOK || got != string(waited.body) {
			t.Errorf("answered %d %s, and from the journal %d %s\n%s", waited.status, waited.body, again.status, got, text)
		}
		e := want[api.ExecuteResponse](t, waited, http.StatusOK)
		ended[e.Status]++
		m.same(t, e.ExecutionID, !large)
		if n%4 == 0 {
			m.revive(t, e, !large)
		}
	}
	if ended[string(engine.StatusSuccess)] == 0 || ended[string(engine.StatusError)] == 0 {
		t.Errorf("executions ended as %v; some should succeed and some fail", ended)
	}
}

// revive forks an execution, and lets a failed one try again: what was kept of it is not what it is any more.
func (m *memorySite) revive(t *testing.T, e api.ExecuteResponse, small bool) {
	t.Helper()
	if a := m.act(t, e.ExecutionID, api.ActionRequest{Action: "fork", NodeID: "n0"}); a.status < 300 {
		var forked struct {
			ID string `json:"execution_id"`
		}
		if err := json.Unmarshal(a.body, &forked); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Wait(t.Context(), identity.System("default"), forked.ID); err != nil {
			t.Fatal(err)
		}
		m.same(t, forked.ID, false) // its first row holds the past, which may be more than is kept
	}
	if e.Error == nil {
		return
	}
	was := m.read(t, e.ExecutionID)
	if a := m.act(t, e.ExecutionID, api.ActionRequest{Action: "retry_node", NodeID: e.Error.ErrorNodeID}); a.status >= 300 {
		t.Fatalf("answer %d %s", a.status, a.body)
	}
	if now := m.read(t, e.ExecutionID); now.Seq <= was.Seq {
		t.Errorf("after an answer that it goes on the execution is told as of row %d, as before", now.Seq)
	}
	if _, err := m.Wait(t.Context(), identity.System("default"), e.ExecutionID); err != nil {
		t.Fatal(err)
	}
	m.same(t, e.ExecutionID, small)
}

// Many read the same execution at once, and share what is kept of it.
func TestAnswers_AreSharedByManyReaders(t *testing.T) {
	t.Parallel()
	m := openMemory(t)
	m.save(t, randomFlow(rand.New(rand.NewPCG(7, 7)), "flow"))
	id := m.execute(t, "flow", api.ExecuteRequest{Inputs: json.RawMessage(`{"n":5,"list":["a"]}`), WaitSeconds: 30})
	want := m.coldly(t, "viewer", "/executions/"+id)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 5 {
				if got := string(m.call(t, "viewer", "GET", "/executions/"+id, nil).body); got != want {
					t.Errorf("answered %s, want %s", got, want)
				}
			}
		})
	}
	group.Wait()
}

// A token that was taken away and the user who was disabled or has another role count at once, however
// often they were accepted before.
func TestTokens_AreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	p := identity.System("default")
	status := func(user string) int { return x.call(t, user, "GET", "/executions", nil).status }
	for range 3 {
		for _, user := range []string{"viewer", "operator", "editor"} {
			if got := status(user); got != http.StatusOK {
				t.Fatalf("%s is answered %d", user, got)
			}
		}
	}
	if err := x.stores.Tokens.Delete(t.Context(), p, "tok_viewer"); err != nil {
		t.Fatal(err)
	}
	if got := status("viewer"); got != http.StatusUnauthorized {
		t.Errorf("a token that was taken away is answered %d", got)
	}
	o, err := x.stores.Users.Get(t.Context(), p, "operator")
	if err != nil {
		t.Fatal(err)
	}
	o.Disabled = true
	if err := x.stores.Users.Update(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	if got := status("operator"); got != http.StatusUnauthorized {
		t.Errorf("a disabled user is answered %d", got)
	}
	u, err := x.stores.Users.Get(t.Context(), p, "editor")
	if err != nil {
		t.Fatal(err)
	}
	u.Roles = []identity.Role{identity.Viewer}
	if err := x.stores.Users.Update(t.Context(), p, u); err != nil {
		t.Fatal(err)
	}
	if got := x.call(t, "editor", "POST", "/workflows", "nodes: []").status; got != http.StatusForbidden {
		t.Errorf("a user who is no longer an editor is answered %d", got)
	}
	if err := x.stores.Users.Delete(t.Context(), p, "editor"); err != nil {
		t.Fatal(err)
	}
	if got := status("editor"); got != http.StatusUnauthorized {
		t.Errorf("a user who was deleted is answered %d", got)
	}
}

// A workflow that was saved is what the next start uses, also while others save and start.
func TestStart_UsesWhatWasSaved(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	flow := func(name string, n int) string {
		return fmt.Sprintf("metadata: {id: %s, name: %s, description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n"+
			"  - {id: out%d, description: d, type: CALL, subtype: EMPTY}\nconnections:\n  - {from_node: start, to_node: out%d}\n", name, name, n, n)
	}
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			name := fmt.Sprintf("flow%d", w)
			x.save(t, flow(name, 0))
			for n := range 10 {
				if n > 0 {
					if a := x.call(t, "editor", "PUT", "/workflows/"+name, flow(name, n)); a.status != http.StatusOK {
						t.Errorf("answer %d %s", a.status, a.body)
						return
					}
				}
				e := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/"+name+"/execute", api.ExecuteRequest{WaitSeconds: 30}), http.StatusOK)
				if _, ok := e.Outputs[fmt.Sprintf("out%d", n)]; !ok || len(e.Outputs) != 1 {
					t.Errorf("revision %d was saved, and the execution has the outputs %v", n+1, e.Outputs)
				}
			}
			if a := x.call(t, "editor", "DELETE", "/workflows/"+name, nil); a.status >= 300 {
				t.Errorf("answer %d %s", a.status, a.body)
			}
			refused(t, x.call(t, "operator", "POST", "/workflows/"+name+"/execute", api.ExecuteRequest{}), http.StatusNotFound, "not_found")
		})
	}
	group.Wait()
}
