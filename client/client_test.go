package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/client"
	"tandem/fault"
)

// setup starts a server that answers with a handler, and a client of it.
func setup(t *testing.T, handler http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	c, err := client.New(client.Options{URL: s.URL + "/behind/", Token: "tdm_secret"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNew_RefusesAddresses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "127.0.0.1:8080", "localhost", "ftp://h", "http://", "http://u:p@h", "http://h?x=1", "http://h#f", "http://h:port"} {
		if _, err := client.New(client.Options{URL: bad}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v, want a refusal", bad, err)
		}
	}
	if _, err := client.New(client.Options{URL: "http://h", Token: "a\nb"}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a token with a line break: %v", err)
	}
}

// Every method calls the route it is for, with the token, and reads the answer.
func TestClient_Routes(t *testing.T) {
	t.Parallel()
	var got string
	c := setup(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body)
		for _, name := range []string{"Idempotency-Key", "If-Match"} {
			if v := r.Header.Get(name); v != "" {
				got += fmt.Sprintf(" %s=%s", name, v)
			}
		}
		if kind := r.Header.Get("Content-Type"); kind != "" && kind != "application/json" {
			got += " " + kind
		}
		if r.Header.Get("Authorization") != "Bearer tdm_secret" {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		fmt.Fprint(w, `{}`)
	})
	ctx := t.Context()
	do := func(_ any, err error) error { return err }
	for _, call := range []struct {
		err  func() error
		want string
	}{
		{func() error {
			return do(c.Workflows(ctx, client.WorkflowQuery{Text: "a b", Tags: []string{"x", "y"}, DeploymentStatus: "draft", Page: 2, PageSize: 5}))
		}, "GET /behind/api/v1/workflows?deployment_status=draft&page=2&page_size=5&q=a+b&tags=x%2Cy "},
		{func() error { return do(c.Workflow(ctx, "w/1", 3)) }, "GET /behind/api/v1/workflows/w%2F1?revision=3 "},
		{func() error { return do(c.CreateWorkflow(ctx, []byte("a: 1"), true)) }, "POST /behind/api/v1/workflows a: 1 application/yaml"},
		{func() error { return do(c.UpdateWorkflow(ctx, "w", []byte("{}"), false, 7)) }, `PUT /behind/api/v1/workflows/w {} If-Match="7"`},
		{func() error { return c.DeleteWorkflow(ctx, "w") }, "DELETE /behind/api/v1/workflows/w "},
		{func() error { return do(c.CopyWorkflow(ctx, "w", api.CopyRequest{Name: "n"})) }, `POST /behind/api/v1/workflows/w/copy {"name":"n"}`},
		{func() error { return do(c.ValidateWorkflow(ctx, []byte("{}"), false)) }, "POST /behind/api/v1/workflows/validate {}"},
		{func() error { return do(c.Revisions(ctx, "w", 1, 0)) }, "GET /behind/api/v1/workflows/w/revisions?page=1 "},
		{func() error { return do(c.Deploy(ctx, "w")) }, "POST /behind/api/v1/workflows/w/deploy "},
		{func() error { return do(c.Undeploy(ctx, "w")) }, "POST /behind/api/v1/workflows/w/undeploy "},
		{func() error { return do(c.Execute(ctx, "w", api.ExecuteRequest{WaitSeconds: 1}, "k1")) }, `POST /behind/api/v1/workflows/w/execute {"wait_seconds":1} Idempotency-Key=k1`},
		{func() error {
			return do(c.Executions(ctx, client.ExecutionQuery{WorkflowID: "w", Statuses: []string{"ERROR", "TIMEOUT"}}))
		}, "GET /behind/api/v1/executions?status=ERROR%2CTIMEOUT&workflow_id=w "},
		{func() error { return do(c.Execution(ctx, "e")) }, "GET /behind/api/v1/executions/e "},
		{func() error { return do(c.ExecutionWithWorkflow(ctx, "e")) }, "GET /behind/api/v1/executions/e?include=workflow "},
		{func() error {
			return do(c.Activations(ctx, "e", client.ActivationQuery{NodeID: "n", After: "a[0]/b", Limit: 2}))
		}, "GET /behind/api/v1/executions/e/activations?after=a%5B0%5D%2Fb&limit=2&node_id=n "},
		{func() error { return do(c.Activation(ctx, "e", "a[0]/b")) }, "GET /behind/api/v1/executions/e/activations/a%5B0%5D%2Fb "},
		{func() error { return do(c.History(ctx, "e", client.HistoryQuery{After: "7", Limit: 2})) }, "GET /behind/api/v1/executions/e/history?after=7&limit=2 "},
		{func() error { return do(c.Context(ctx, "e", "a[0]")) }, "GET /behind/api/v1/executions/e/context?scope=a%5B0%5D "},
		{func() error {
			return do(c.Logs(ctx, "e", client.LogQuery{Level: "WARN", NodeID: "n", ActivationID: "a", After: 9, Limit: 3}))
		}, "GET /behind/api/v1/executions/e/logs?activation_id=a&after=9&level=WARN&limit=3&node_id=n "},
		{func() error { return do(c.Act(ctx, "e", api.ActionRequest{Action: "pause"})) }, `POST /behind/api/v1/executions/e/actions {"action":"pause"}`},
		{func() error { return do(c.Input(ctx, "e", api.InputRequest{NodeID: "n"})) }, `POST /behind/api/v1/executions/e/input {"node_id":"n"}`},
		{func() error { return do(c.NodeKinds(ctx)) }, "GET /behind/api/v1/node-kinds "},
		{func() error { return do(c.NodeKind(ctx, "FLOW.IF")) }, "GET /behind/api/v1/node-kinds/FLOW.IF "},
		{func() error { return do(c.NodeTemplates(ctx)) }, "GET /behind/api/v1/node-templates "},
		{func() error { return do(c.NodeTemplate(ctx, "t")) }, "GET /behind/api/v1/node-templates/t "},
		{func() error { return do(c.CreateNodeTemplate(ctx, api.NodeTemplate{ID: "t"})) }, `POST /behind/api/v1/node-templates {"id":"t","kind":"","name":""}`},
		{func() error { return do(c.UpdateNodeTemplate(ctx, api.NodeTemplate{ID: "t"})) }, `PUT /behind/api/v1/node-templates/t {"id":"t","kind":"","name":""}`},
		{func() error { return c.DeleteNodeTemplate(ctx, "t") }, "DELETE /behind/api/v1/node-templates/t "},
		{func() error { return do(c.Me(ctx)) }, "GET /behind/api/v1/users/me "},
		{func() error { return do(c.Users(ctx)) }, "GET /behind/api/v1/users "},
		{func() error { return do(c.User(ctx, "u")) }, "GET /behind/api/v1/users/u "},
		{func() error { return do(c.CreateUser(ctx, api.UserRequest{Name: "n"})) }, `POST /behind/api/v1/users {"name":"n","roles":null}`},
		{func() error { return do(c.UpdateUser(ctx, "u", api.UserRequest{Name: "n"})) }, `PUT /behind/api/v1/users/u {"name":"n","roles":null}`},
		{func() error { return c.DeleteUser(ctx, "u") }, "DELETE /behind/api/v1/users/u "},
		{func() error { return do(c.Tokens(ctx, "u")) }, "GET /behind/api/v1/users/u/tokens "},
		{func() error { return do(c.CreateToken(ctx, "u", api.TokenRequest{Name: "n"})) }, `POST /behind/api/v1/users/u/tokens {"name":"n"}`},
		{func() error { return c.DeleteToken(ctx, "u", "t") }, "DELETE /behind/api/v1/users/u/tokens/t "},
		{func() error { return do(c.CredentialTypes(ctx)) }, "GET /behind/api/v1/credential-types "},
		{func() error { return do(c.Credentials(ctx)) }, "GET /behind/api/v1/credentials "},
		{func() error { return do(c.Credential(ctx, "c")) }, "GET /behind/api/v1/credentials/c "},
		{func() error { return do(c.CreateCredential(ctx, api.CredentialRequest{Name: "n", Type: "t"})) }, `POST /behind/api/v1/credentials {"name":"n","type":"t"}`},
		{func() error {
			return do(c.UpdateCredential(ctx, "c", api.CredentialRequest{Name: "n", Type: "t"}, false))
		}, `PUT /behind/api/v1/credentials/c {"name":"n","type":"t"}`},
		{func() error { return c.DeleteCredential(ctx, "c", false) }, "DELETE /behind/api/v1/credentials/c "},
		{func() error { return do(c.AuthorizeCredential(ctx, "c")) }, "POST /behind/api/v1/credentials/c/authorize {}"},
		{func() error { return do(c.CredentialUses(ctx, "c")) }, "GET /behind/api/v1/credentials/c/uses "},
		{func() error { return c.DeleteCredential(ctx, "c", true) }, "DELETE /behind/api/v1/credentials/c?force=true "},
	} {
		if err := call.err(); err != nil {
			t.Errorf("%s: %v", call.want, err)
		}
		if got != call.want {
			t.Errorf("sent %q, want %q", got, call.want)
		}
	}
}

func TestClient_TellsProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		body   string
		code   fault.Code
		text   string
	}{
		{"Document", 409, `{"title":"Conflict","status":409,"detail":"it runs","code":"conflict"}`, fault.Conflict, "it runs"},
		{"Fields", 422, `{"title":"x","status":422,"detail":"the request is not as it should be","code":"invalid_input","errors":[{"path":"inputs.a","message":"is missing"},{"path":"b","message":"is wrong"}]}`,
			fault.InvalidInput, "the request is not as it should be: inputs.a: is missing; b: is wrong"},
		{"FieldsOnce", 422, `{"title":"x","status":422,"detail":"a: is missing","code":"invalid_input","errors":[{"path":"a","message":"is missing"}]}`, fault.InvalidInput, "a: is missing"},
		{"Proxy", 502, `<html>bad gateway</html>`, fault.RemoteError, "the server answered 502 Bad Gateway without saying why"},
		{"Nothing", 404, ``, fault.NotFound, "the server answered 404 Not Found without saying why"},
		{"Login", 403, `{"detail":"no"}`, fault.Forbidden, "the server answered 403 Forbidden without saying why"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cl := setup(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			_, err := cl.Execution(t.Context(), "e")
			told, ok := errors.AsType[*client.Error](err)
			if !ok || told.Status != c.status || fault.CodeOf(err) != c.code || err.Error() != c.text {
				t.Errorf("error %v (%T, code %q)", err, err, fault.CodeOf(err))
			}
		})
	}
}

func TestClient_RefusesWhatIsNoAnswer(t *testing.T) {
	t.Parallel()
	c := setup(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>welcome</html>") })
	if _, err := c.Me(t.Context()); fault.CodeOf(err) != fault.RemoteError || !strings.Contains(err.Error(), "not an answer of Tandem") {
		t.Errorf("error %v", err)
	}
	c = setup(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range 70 {
			if _, err := w.Write(chunk); err != nil {
				return // the client has had enough
			}
		}
	})
	if _, err := c.Me(t.Context()); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("an endless answer: %v", err)
	}
}

// breaking answers the first requests by breaking the connection.
func breaking(t *testing.T, times int32, then http.HandlerFunc) (*client.Client, *atomic.Int32) {
	var seen atomic.Int32
	return setup(t, func(w http.ResponseWriter, r *http.Request) {
		if seen.Add(1) <= times {
			panic(http.ErrAbortHandler)
		}
		then(w, r)
	}), &seen
}

func TestClient_RepeatsWhatMayBeRepeated(t *testing.T) {
	t.Parallel()
	ok := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id":"ann","execution_id":"e"}`) }
	t.Run("Get", func(t *testing.T) {
		t.Parallel()
		c, _ := breaking(t, 2, ok)
		if me, err := c.Me(t.Context()); err != nil || me.ID != "ann" {
			t.Errorf("%+v, %v", me, err)
		}
	})
	t.Run("GivesUp", func(t *testing.T) {
		t.Parallel()
		c, seen := breaking(t, 100, ok)
		if _, err := c.Me(t.Context()); fault.CodeOf(err) != fault.NetworkError || seen.Load() < 4 {
			t.Errorf("%v after %d tries", err, seen.Load())
		}
	})
	t.Run("PostOnce", func(t *testing.T) {
		t.Parallel()
		c, seen := breaking(t, 1, ok)
		if _, err := c.Execute(t.Context(), "w", api.ExecuteRequest{}, ""); fault.CodeOf(err) != fault.NetworkError || seen.Load() != 1 {
			t.Errorf("%v after %d tries", err, seen.Load())
		}
	})
	t.Run("PostWithKey", func(t *testing.T) {
		t.Parallel()
		c, _ := breaking(t, 1, ok)
		if got, err := c.Execute(t.Context(), "w", api.ExecuteRequest{}, "k"); err != nil || got.ExecutionID != "e" {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("ConditionalPutOnce", func(t *testing.T) {
		t.Parallel()
		c, seen := breaking(t, 1, ok)
		if _, err := c.UpdateWorkflow(t.Context(), "w", []byte("{}"), false, 3); fault.CodeOf(err) != fault.NetworkError || seen.Load() != 1 {
			t.Errorf("%v after %d tries", err, seen.Load())
		}
	})
	gone := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	t.Run("DeleteDoneTheFirstTime", func(t *testing.T) {
		t.Parallel()
		c, _ := breaking(t, 1, gone)
		if err := c.DeleteWorkflow(t.Context(), "w"); err != nil {
			t.Error(err)
		}
	})
	t.Run("DeleteOfNothing", func(t *testing.T) {
		t.Parallel()
		c, _ := breaking(t, 0, gone)
		if err := c.DeleteWorkflow(t.Context(), "w"); fault.CodeOf(err) != fault.NotFound {
			t.Error(err)
		}
	})
}

func TestClient_NobodyThere(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	address := s.URL
	s.Close()
	c, err := client.New(client.Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Me(t.Context())
	if fault.CodeOf(err) != fault.NetworkError || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "is it running") {
		t.Errorf("error %v", err)
	}
}

func TestClient_EndsWithTheContext(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	c := setup(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		cancel(why)
	}()
	if _, err := c.Me(ctx); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
}

func TestClient_Value(t *testing.T) {
	t.Parallel()
	c := setup(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/executions/e/values/abc") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprint(w, `"large"`)
	})
	body, err := c.Value(t.Context(), "e", "abc")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	var value string
	if err := json.NewDecoder(body).Decode(&value); err != nil || cmp.Diff("large", value) != "" {
		t.Errorf("value %q, %v", value, err)
	}
	if _, err := c.Value(t.Context(), "e", "other"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an unknown value: %v", err)
	}
}
