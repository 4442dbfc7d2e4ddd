package server

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
)

const getFlow = `{"metadata":{"id":"m","name":"m","description":"ABOUT"},"nodes":[{"id":"start","name":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"},{"id":"next","name":"next","description":"d","type":"CALL","subtype":"EMPTY"}],"connections":[{"from_node":"start","to_node":"next"}]}`

// getter asks a server for executions, and another that knows nothing but what is on disk.
type getter struct {
	*world
	t       *testing.T
	options Options
}

func newGetter(t *testing.T) *getter {
	t.Helper()
	g := &getter{t: t}
	g.world = setup(t, func(o *Options) { g.options = *o })
	g.admin("POST", route.Prefix+"/workflows", getFlow).want(t, 201)
	return g
}

// get reads an execution plainly.
func (g *getter) get(token, id string) answer {
	g.t.Helper()
	return g.ask(token, http.MethodGet, route.Prefix+"/executions/"+id, http.NoBody, nil)
}

// fromDisk makes a server that has kept nothing, and asks it.
func (g *getter) fromDisk(id string) (told map[identity.Role]string) {
	g.t.Helper()
	o := g.options
	o.Hub, o.Metrics = host.NewHub(), nil
	s, err := New(o)
	if err != nil {
		g.t.Fatal(err)
	}
	defer s.Close()
	told = map[identity.Role]string{}
	for _, role := range identity.Roles() {
		r, w := httptest.NewRequest(http.MethodGet, route.Prefix+"/executions/"+id, http.NoBody), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+g.tokens[role])
		s.Handler().ServeHTTP(w, r)
		told[role] = w.Body.String()
	}
	return told
}

// same checks that every role is told what is on disk, the first time and again, and returns what an admin is told.
func (g *getter) same(id string) api.GetExecution {
	g.t.Helper()
	want := g.fromDisk(id)
	for range 2 {
		for _, role := range identity.Roles() {
			if got := g.get(g.tokens[role], id).want(g.t, 200).body; got != want[role] {
				g.t.Fatalf("the role %s is told\n%s\non disk is\n%s", role, got, want[role])
			}
		}
	}
	return read[api.GetExecution](g.t, g.get(g.tokens[identity.Admin], id))
}

// run starts an execution and waits for its end.
func (g *getter) run(inputs string) string {
	g.t.Helper()
	return read[api.ExecuteResponse](g.t, g.admin("POST", route.Prefix+"/workflows/m/execute", `{"inputs":`+inputs+`,"wait_seconds":30}`).want(g.t, 200)).ExecutionID
}

func (g *getter) act(id, body string) {
	g.t.Helper()
	g.admin("POST", route.Prefix+"/executions/"+id+"/actions", body).want(g.t, 200)
}

// ends waits until an execution has ended with a status, by what is on disk.
func (g *getter) ends(id string, status engine.Status) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	sub := g.options.Hub.Subscribe(host.Ref{Workspace: "a", Execution: id})
	defer sub.Close()
	for {
		e, err := g.stores.Executions.Get(ctx, identity.System("a"), id)
		if err != nil {
			g.t.Fatal(err)
		}
		if e.Status == status {
			return
		}
		list, more, behind := sub.Next()
		if len(list) > 0 || behind {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			g.t.Fatalf("execution %q is %s and does not become %s", id, e.Status, status)
		}
	}
}

// Whatever becomes of an execution after it has ended is seen by who asks next, though answers are kept.
func TestGetPlainly_SeesEveryChange(t *testing.T) {
	t.Parallel()
	g := newGetter(t)
	id := g.run(`{"break":true}`)
	first := g.same(id)
	if first.Execution.Status != "ERROR" || first.Checkpoint.ExecutorDescription != "ABOUT" {
		t.Fatalf("the execution is %+v", first)
	}
	if known := g.options.Hub.Known(host.Ref{Workspace: "a", Execution: id}); known == nil {
		t.Fatal("nothing is kept, so nothing is tested")
	} else if _, kept := known.Answer(host.Reader{Detail: true, About: "ABOUT"}); !kept {
		t.Fatal("no answer is kept, so nothing is tested")
	}

	g.act(id, `{"action":"retry_node","node_id":"next","reason":"once more"}`)
	g.ends(id, engine.StatusError)
	again := g.same(id)
	if again.Execution.Seq <= first.Execution.Seq || len(again.Execution.Acts) != 1 || again.Execution.NodeExecutions["next"].Generation != 1 {
		t.Errorf("after it was tried again it is %+v", again.Execution)
	}
	g.act(id, `{"action":"skip_node","node_id":"next","output":{"instead":1},"reason":"enough"}`)
	g.ends(id, engine.StatusSuccess)
	if skipped := g.same(id); skipped.Execution.Status != "SUCCESS" || len(skipped.Execution.Acts) != 2 {
		t.Errorf("after the node was skipped it is %+v", skipped.Execution)
	}

	forked := read[api.ActionResponse](t, g.admin("POST", route.Prefix+"/executions/"+id+"/actions", `{"action":"fork","node_id":"next","input":{"break":false}}`).want(t, 200)).ExecutionID
	g.ends(forked, engine.StatusSuccess)
	if of := g.same(forked); of.Execution.ForkedFrom != id {
		t.Errorf("the fork is %+v", of.Execution)
	}
	g.same(id)

	changed := strings.Replace(getFlow, "ABOUT", "CHANGED", 1)
	g.admin("PUT", route.Prefix+"/workflows/m", changed).want(t, 200)
	if now := g.same(id); now.Checkpoint.ExecutorDescription != "CHANGED" {
		t.Errorf("its workflow is described as %q", now.Checkpoint.ExecutorDescription)
	}
	g.admin("DELETE", route.Prefix+"/workflows/m", "")
	if now := g.same(id); now.Checkpoint.ExecutorDescription != "" {
		t.Errorf("a workflow that was deleted is described as %q", now.Checkpoint.ExecutorDescription)
	}
}

// What only operators may know is shown to nobody else, no matter who has asked before; and nobody sees another workspace.
func TestGetPlainly_ShowsWhatTheReaderMaySee(t *testing.T) {
	t.Parallel()
	g := newGetter(t)
	g.call(g.other, "POST", route.Prefix+"/workflows", getFlow).want(t, 201) // the same workflow in another workspace
	for _, order := range [][]identity.Role{identity.Roles(), slices.Collect(backwards(identity.Roles()))} {
		id := g.run(`{"break":true}`)
		for range 2 {
			for _, role := range order {
				told := read[api.GetExecution](t, g.get(g.tokens[role], id).want(t, 200)).Execution
				operates := role == identity.Admin || role == identity.Operator
				if told.Error == nil || strings.Contains(told.Error.StackTrace, "broken as it was told to") != operates {
					t.Errorf("the role %s is told of the failure %+v", role, told.Error)
				}
			}
			g.get(g.other, id).want(t, 404)
			g.get("", id).want(t, 401)
			g.get("nobody's", id).want(t, 401)
		}
	}
	id := g.run(`{}`)
	secret := g.join("a", "leaver", identity.Viewer)
	g.get(secret, id).want(t, 200)
	if err := g.stores.Tokens.Delete(t.Context(), identity.System("a"), "tok_aleaver"); err != nil {
		t.Fatal(err)
	}
	g.get(secret, id).want(t, 401)
}

func backwards[T any](list []T) func(func(T) bool) {
	return func(yield func(T) bool) {
		for _, v := range slices.Backward(list) {
			if !yield(v) {
				return
			}
		}
	}
}

// From the moment that a row is on disk nobody is told what was before, though the row is published a little later.
func TestGetPlainly_NothingOldOnceTheRowIsOnDisk(t *testing.T) {
	t.Parallel()
	g := newGetter(t)
	id := g.run(`{"break":true}`)
	g.same(id) // which keeps it
	type seen struct{ appended, told uint64 }
	all := make(chan seen, 100)
	g.mu.Lock()
	g.appended = func(rows []*store.Append) {
		var told api.GetExecution
		if err := json.Unmarshal([]byte(g.get(g.tokens[identity.Viewer], id).body), &told); err != nil {
			t.Error(err)
		}
		all <- seen{rows[len(rows)-1].After + 1, told.Execution.Seq}
	}
	g.mu.Unlock()
	g.act(id, `{"action":"retry_node","node_id":"next"}`)
	if first := <-all; first.told < first.appended {
		t.Errorf("row %d is on disk, and who asks is told of row %d", first.appended, first.told)
	}
	g.ends(id, engine.StatusError)
	g.same(id)
	if g.options.Hub.Known(host.Ref{Workspace: "a", Execution: id}) == nil {
		t.Error("it is not kept any more")
	}
}

// TestGetPlainly_AsTheFramework: an execution is told in the same way, to the byte, whether the framework has answered or not.
func TestGetPlainly_AsTheFramework(t *testing.T) {
	t.Parallel()
	g := newGetter(t)
	ended, failed := g.run(`{"a":"<b> & é","n":1.50}`), g.run(`{"break":true}`)
	for name, c := range map[string]struct {
		path   string
		method string
		status int
		accept string
		plain  bool
	}{
		"Ended":       {path: ended, status: 200, plain: true},
		"Failed":      {path: failed, status: 200, plain: true},
		"Head":        {path: ended, method: http.MethodHead, status: 200, plain: true},
		"Missing":     {path: "exec_missing", status: 404, plain: true},
		"Strange":     {path: "%3Cb%3E%26", status: 404, plain: true},
		"Long":        {path: strings.Repeat("x", 200), status: 404, plain: true},
		"TooLong":     {path: strings.Repeat("x", 201), status: 422},
		"Include":     {path: ended + "?include=workflow", status: 200},
		"WrongWish":   {path: ended + "?include=everything", status: 422},
		"Unknown":     {path: ended + "?more=1", status: 422},
		"OtherAnswer": {path: ended, status: 200, accept: "text/html"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := func(accept string) answer {
				method := c.method
				if method == "" {
					method = http.MethodGet
				}
				a := g.ask(g.tokens[identity.Viewer], method, route.Prefix+"/executions/"+c.path, http.NoBody, func(r *http.Request) {
					if accept != "" {
						r.Header.Set("Accept", accept)
					}
				})
				a.header.Del("Date")
				a.header.Del("Content-Length") // the framework sends long answers in pieces
				return a
			}
			for range 2 {
				plain, framework := ask(c.accept), ask("application/json;q=0.9") // which is not plain
				plain.want(t, c.status)
				if plain.status != framework.status || plain.body != framework.body || !maps.EqualFunc(plain.header, framework.header, slices.Equal) {
					t.Errorf("it is answered\n%d %s %v\nand by the framework\n%d %s %v", plain.status, plain.body, plain.header, framework.status, framework.body, framework.header)
				}
			}
			r := httptest.NewRequest(http.MethodGet, route.Prefix+"/executions/"+c.path, http.NoBody)
			r.SetPathValue("id", strings.TrimPrefix(r.URL.Path, route.Prefix+"/executions/"))
			r.Header.Set("Accept", c.accept)
			if _, plain := plainGet(r); plain != c.plain {
				t.Errorf("it is plain: %v", plain)
			}
		})
	}
}
