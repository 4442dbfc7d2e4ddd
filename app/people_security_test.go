package app

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/human"
	"tandem/identity"
	"tandem/store"
)

// guarded is a site with one open question after the other, and everything that it logs.
type guarded struct {
	*site
	log *spoken
}

func openGuarded(t *testing.T) *guarded {
	t.Helper()
	x, log := openForPeople(t)
	return &guarded{x, log}
}

// question starts an execution that asks and returns what it asks. The workflow has the name of the test.
func (g *guarded) question(t *testing.T, config string) api.Interaction {
	t.Helper()
	id := strings.ToLower(strings.NewReplacer("/", "_", "TestPeopleSecurity_", "q_").Replace(t.Name()))
	g.save(t, askFlow(id, asks("ask", config)))
	return g.opens(t, g.execute(t, id, api.ExecuteRequest{}), 1)[0]
}

// link makes a link for a user, as themselves.
func (g *guarded) link(t *testing.T, user, id string) string {
	t.Helper()
	return want[api.Link](t, g.call(t, user, "POST", "/interactions/"+id+"/link", api.LinkRequest{Recipient: "user:" + user}), http.StatusOK).URL
}

// unmoved does something that must be refused with a status: it is logged, and the question is as it was.
func (g *guarded) unmoved(t *testing.T, id string, status int, do func() answer) answer {
	t.Helper()
	before, said := g.interaction(t, id), len(g.log.String())
	got := do()
	if got.status != status {
		t.Errorf("answer %d %s; want %d", got.status, got.body, status)
	}
	after := g.interaction(t, id)
	if after.Version != before.Version || after.Status != before.Status {
		t.Errorf("the question was %+v and is %+v", before, after)
	}
	logged := slices.ContainsFunc(strings.Split(g.log.String()[said:], "\n"), func(line string) bool {
		return strings.Contains(line, "refused") && (strings.Contains(line, id) || !strings.Contains(line, "interaction=") || strings.Contains(line, `interaction=""`))
	})
	if !logged {
		t.Errorf("nothing is logged of it: %s", g.log.String()[said:])
	}
	return got
}

// form sends a response page's form.
func form(t *testing.T, link string, values ...string) func() answer {
	return func() answer {
		t.Helper()
		sent := url.Values{"answer": {"approve"}}
		for n := 0; n+1 < len(values); n += 2 {
			sent.Set(values[n], values[n+1])
		}
		got, err := press(t.Context(), link, sent)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

func TestPeopleSecurity_Links(t *testing.T) {
	t.Parallel()
	g := openGuarded(t)
	t.Run("Forged", func(t *testing.T) {
		i := g.question(t, `, approvers: [approver]`)
		link := g.link(t, "approver", i.ID)
		at := strings.LastIndexByte(link, '/') + 1
		for _, secret := range []string{identity.NewSecret(), link[at:len(link)-1] + string("ab"[len(link)%2]) + "x", "x", strings.Repeat("a", 500), i.ID} {
			g.unmoved(t, i.ID, http.StatusNotFound, form(t, link[:at]+secret))
		}
	})
	t.Run("UsedAndReplayed", func(t *testing.T) {
		i := g.question(t, `, approvers: ["user:approver", "user:viewer"], min_approvals: 2`)
		link, other := g.link(t, "approver", i.ID), g.link(t, "viewer", i.ID)
		spare := g.link(t, "approver", i.ID)
		if got := form(t, link)(); got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
		g.unmoved(t, i.ID, http.StatusGone, form(t, link))
		g.unmoved(t, i.ID, http.StatusConflict, form(t, spare)) // another link of the same person is not a second vote
		if got := form(t, other)(); got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
		g.reaches(t, i.ExecutionID, engine.StatusSuccess)
		g.unmoved(t, i.ID, http.StatusGone, form(t, other))
		g.unmoved(t, i.ID, http.StatusConflict, form(t, spare, "answer", "reject"))
		if got := facts(t, g.stores.Journal, i.ExecutionID); got["answered"] != 1 {
			t.Errorf("facts %v", got)
		}
	})
	t.Run("Scanned", func(t *testing.T) {
		i := g.question(t, `, approvers: [approver]`)
		link := g.link(t, "approver", i.ID)
		before := g.interaction(t, i.ID)
		allAtOnce(t, 20, func(k int) (answer, error) {
			r, err := http.NewRequestWithContext(t.Context(), []string{"GET", "HEAD"}[k%2], link+"?answer=approve", nil)
			if err != nil {
				return answer{}, err
			}
			w, err := http.DefaultClient.Do(r)
			if err != nil {
				return answer{}, err
			}
			defer w.Body.Close()
			if w.StatusCode != http.StatusOK {
				t.Errorf("%s: %d", r.Method, w.StatusCode)
			}
			_, err = io.Copy(io.Discard, w.Body)
			return answer{}, err
		})
		if after := g.interaction(t, i.ID); after.Version != before.Version {
			t.Errorf("looking has changed it to %+v", after)
		}
		if got := form(t, link)(); got.status != http.StatusOK {
			t.Errorf("after that the link is %d %s", got.status, got.body)
		}
	})
	t.Run("Expired", func(t *testing.T) {
		i := g.question(t, `, approvers: [approver]`)
		for name, change := range map[string]func(*store.Link){
			"time":    func(l *store.Link) { l.Expires = time.Now().Add(-time.Second).UnixMilli() },
			"attempt": func(l *store.Link) { l.Attempt++ },
		} {
			secret := identity.NewSecret()
			l := store.Link{Hash: identity.HashSecret(secret), Workspace: "default", Interaction: i.ID, Attempt: i.Attempt, Recipient: "user:approver", Expires: i.TimeoutAt, Created: 1}
			change(&l)
			if err := g.stores.Interactions.Change(t.Context(), identity.System("default"), store.InteractionChange{Interaction: g.interaction(t, i.ID), Links: []store.Link{l}}); err != nil {
				t.Fatal(err)
			}
			if got := g.unmoved(t, i.ID, http.StatusGone, form(t, g.url[:strings.Index(g.url, "/api")]+"/respond/"+secret)); bytes.Contains(got.body, []byte("ask?")) {
				t.Errorf("who has a link whose %s is over is shown the question: %s", name, got.body)
			}
		}
	})
	t.Run("OtherArguments", func(t *testing.T) {
		i := g.question(t, `, approvers: [approver]`)
		link := g.link(t, "approver", i.ID)
		g.unmoved(t, i.ID, http.StatusConflict, form(t, link, "arguments_hash", strings.Repeat("0", 64)))
		g.unmoved(t, i.ID, http.StatusConflict, func() answer {
			return g.call(t, "approver", "POST", "/interactions/"+i.ID+"/respond", `{"response_data":`+approved+`,"arguments_hash":"`+strings.Repeat("0", 64)+`"}`)
		})
		if got := form(t, link)(); got.status != http.StatusOK {
			t.Errorf("the link was used up by it: %d %s", got.status, got.body)
		}
	})
}

// Who may answer is decided when they answer, whatever they were given before.
func TestPeopleSecurity_Persons(t *testing.T) {
	t.Parallel()
	g := openGuarded(t)
	respond := func(t *testing.T, user, id string) func() answer {
		return func() answer { return g.respond(t, user, id, approved) }
	}
	add := func(t *testing.T, id string) string {
		t.Helper()
		g.addUser(t, "default", id, identity.Approver)
		return id
	}
	change := func(t *testing.T, id string, body string) {
		t.Helper()
		want[api.User](t, g.call(t, "admin", "PUT", "/users/"+id, body), http.StatusOK)
	}
	t.Run("Disabled", func(t *testing.T) {
		ann := add(t, "ann")
		i := g.question(t, `, approvers: [approver]`)
		link := g.link(t, ann, i.ID)
		change(t, ann, `{"name":"ann","roles":["approver"],"disabled":true}`)
		g.unmoved(t, i.ID, http.StatusGone, form(t, link))
		if got := g.respond(t, ann, i.ID, approved); got.status != http.StatusUnauthorized {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
	t.Run("RoleTaken", func(t *testing.T) {
		bob := add(t, "bob")
		i := g.question(t, `, approvers: [approver]`)
		link := g.link(t, bob, i.ID)
		change(t, bob, `{"name":"bob","roles":["viewer"]}`)
		g.unmoved(t, i.ID, http.StatusGone, form(t, link))
		g.unmoved(t, i.ID, http.StatusForbidden, respond(t, bob, i.ID))
	})
	t.Run("Delegated", func(t *testing.T) {
		eve := add(t, "eve")
		i := g.question(t, `, approvers: ["user:eve"], allow_delegation: true`)
		link := g.link(t, eve, i.ID)
		want[api.Interaction](t, g.call(t, eve, "POST", "/interactions/"+i.ID+"/delegate", api.DelegateRequest{To: "user:viewer"}), http.StatusOK)
		g.unmoved(t, i.ID, http.StatusGone, form(t, link))
		g.unmoved(t, i.ID, http.StatusForbidden, respond(t, eve, i.ID))
		want[api.Interaction](t, g.respond(t, "viewer", i.ID, approved), http.StatusOK)
	})
	t.Run("Requester", func(t *testing.T) {
		i := g.question(t, `, approvers: ["user:operator", "user:viewer"], exclude_requester: true`) // the operator starts it
		g.unmoved(t, i.ID, http.StatusForbidden, respond(t, "operator", i.ID))
		g.unmoved(t, i.ID, http.StatusUnprocessableEntity, func() answer {
			return g.call(t, "admin", "POST", "/interactions/"+i.ID+"/link", api.LinkRequest{Recipient: "user:operator"})
		})
		mine := want[api.Interactions](t, g.call(t, "operator", "GET", "/interactions?mine=true&status=pending", nil), http.StatusOK)
		if slices.ContainsFunc(mine.Interactions, func(o api.Interaction) bool { return o.ID == i.ID }) {
			t.Error("it is in the inbox of who may not answer it")
		}
	})
	t.Run("NotListed", func(t *testing.T) {
		i := g.question(t, `, approvers: ["user:approver"]`)
		post := func(user, path string, body any) func() answer {
			return func() answer { return g.call(t, user, "POST", "/interactions/"+i.ID+path, body) }
		}
		for _, user := range []string{"viewer", "admin", "operator", "editor"} {
			g.unmoved(t, i.ID, http.StatusForbidden, respond(t, user, i.ID))
		}
		g.unmoved(t, i.ID, http.StatusForbidden, post("viewer", "/delegate", api.DelegateRequest{To: "user:viewer"}))
		g.unmoved(t, i.ID, http.StatusForbidden, post("viewer", "/cancel", api.CancelInteractionRequest{}))
		g.unmoved(t, i.ID, http.StatusForbidden, post("viewer", "/remind", nil))
		g.unmoved(t, i.ID, http.StatusForbidden, post("viewer", "/link", api.LinkRequest{Recipient: "user:approver"}))
		g.unmoved(t, i.ID, http.StatusForbidden, post("viewer", "/responses/x/overrule", api.OverruleRequest{Reason: "r"}))
		g.unmoved(t, i.ID, http.StatusForbidden, func() answer {
			return g.call(t, "operator", "POST", "/executions/"+i.ExecutionID+"/input", api.InputRequest{NodeID: "ask", InputData: json.RawMessage(approved)})
		})
	})
}

// Of another tenant's question nobody learns even that there is one.
func TestPeopleSecurity_Tenants(t *testing.T) {
	t.Parallel()
	g := openGuarded(t)
	i := g.question(t, `, approvers: ["anyone"]`)
	own := askFlow("own", asks("ask", ``))
	want[api.Saved](t, g.call(t, "stranger", "POST", "/workflows", own), http.StatusCreated)
	run := want[api.ExecuteResponse](t, g.call(t, "stranger", "POST", "/workflows/own/execute", api.ExecuteRequest{}), http.StatusAccepted).ExecutionID
	const unknown, unknownRun = "00000000-0000-8000-8000-000000000000", "exec_unknown"
	before := g.interaction(t, i.ID)
	for _, c := range []struct {
		method, path string
		body         string
	}{
		{"GET", "/interactions/ID", ``},
		{"POST", "/interactions/ID/respond", `{"response_data":` + approved + `}`},
		{"POST", "/interactions/ID/delegate", `{"to":"stranger"}`},
		{"POST", "/interactions/ID/cancel", `{}`},
		{"POST", "/interactions/ID/remind", ``},
		{"POST", "/interactions/ID/link", `{"recipient":"stranger"}`},
		{"POST", "/interactions/ID/responses/r/overrule", `{"reason":"r"}`},
		{"GET", "/executions/RUN/pauses", ``},
		{"GET", "/executions/RUN", ``},
		{"POST", "/executions/RUN/input", `{"node_id":"ask","interaction_id":"ID","input_data":` + approved + `}`},
		{"POST", "/executions/OWN/input", `{"node_id":"ask","interaction_id":"ID","input_data":` + approved + `}`},
	} {
		ask := func(id, execution string) answer {
			fill := strings.NewReplacer("ID", id, "RUN", execution, "OWN", run)
			var body any
			if c.body != "" {
				body = fill.Replace(c.body)
			}
			got := g.call(t, "stranger", c.method, fill.Replace(c.path), body)
			got.body = []byte(strings.NewReplacer(id, "ID", execution, "RUN").Replace(string(got.body)))
			return got
		}
		real, none := ask(i.ID, i.ExecutionID), ask(unknown, unknownRun)
		wanted := http.StatusNotFound
		if strings.Contains(c.path, "OWN") {
			wanted = http.StatusConflict // the node asks, and not this
		}
		if real.status != wanted || none.status != wanted || !bytes.Equal(real.body, none.body) {
			t.Errorf("%s %s: %d %s of another tenant's, %d %s of none", c.method, c.path, real.status, real.body, none.status, none.body)
		}
	}
	if list := want[api.Interactions](t, g.call(t, "stranger", "GET", "/interactions?family=true&execution_id="+i.ExecutionID, nil), http.StatusOK); list.TotalCount != 0 {
		t.Errorf("listed %+v", list)
	}
	if after := g.interaction(t, i.ID); after.Version != before.Version {
		t.Errorf("the question is %+v", after)
	}
	for path, body := range map[string]string{"respond": `{"response_data":` + approved + `}`, "cancel": `{}`} {
		g.unmoved(t, i.ID, http.StatusNotFound, func() answer { return g.call(t, "stranger", "POST", "/interactions/"+i.ID+"/"+path, body) })
	}
}

// hook is a service that questions are sent to.
type hook struct {
	*httptest.Server
	messages chan gjson.Result
}

func newHook(t *testing.T) *hook {
	h := &hook{messages: make(chan gjson.Result, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		h.messages <- gjson.ParseBytes(body)
	}))
	t.Cleanup(h.Close)
	return h
}

// next is the next message.
func (h *hook) next(t *testing.T) gjson.Result {
	t.Helper()
	select {
	case m := <-h.messages:
		return m
	case <-time.After(patient):
		t.Fatal("no message came")
	}
	return gjson.Result{}
}

// callback calls back as the service: signed with a secret, at a time.
func callback(t *testing.T, to, secret string, at time.Time, body string, tamper ...func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	stamp := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, stamp+"."+body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Tandem-Timestamp", stamp)
	r.Header.Set("X-Tandem-Signature", "v1="+hex.EncodeToString(mac.Sum(nil)))
	for _, f := range tamper {
		f(r)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	got, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{w.StatusCode, w.Header, got}
}

// A callback counts when it is signed with the account's secret, just now, for one who may answer; and once. Its secret and those of links
// are nowhere to be found afterwards.
func TestPeopleSecurity_Callbacks(t *testing.T) {
	t.Parallel()
	const canary = "canary-7f3a9c51e0d24b"
	g, service := openGuarded(t), newHook(t)
	credential := want[api.Credential](t, g.call(t, "admin", "POST", "/credentials", `{"name":"hook","type":"webhook_secret","data":{"secret":"`+canary+`"}}`), http.StatusCreated).ID
	other := want[api.Credential](t, g.call(t, "admin", "POST", "/credentials", `{"name":"other","type":"webhook_secret","data":{"secret":"another-4Wq8-ticket"}}`), http.StatusCreated).ID
	i := g.question(t, `, approvers: ["user:approver"], channel_type: webhook, webhook_url: "`+service.URL+`", credential_id: `+credential)
	message := service.next(t)
	to := message.Get("callback_url").Str
	if message.Get("interaction.id").Str != i.ID || to == "" || message.Get("link").Exists() { // a program is nobody's own address
		t.Fatalf("sent %s", message.Raw)
	}
	link := g.link(t, "approver", i.ID)
	body := `{"interaction_id":"` + i.ID + `","responder":"user:approver","response_data":` + approved + `}`
	now := time.Now()
	for name, c := range map[string]struct {
		status int
		do     func() answer
	}{
		"WrongSecret":   {401, func() answer { return callback(t, to, "wrong", now, body) }},
		"OtherAccount":  {401, func() answer { return callback(t, strings.Replace(to, credential, other, 1), canary, now, body) }},
		"Stale":         {401, func() answer { return callback(t, to, canary, now.Add(-10*time.Minute), body) }},
		"FromTheFuture": {401, func() answer { return callback(t, to, canary, now.Add(10*time.Minute), body) }},
		"OtherTime": {401, func() answer {
			return callback(t, to, canary, now, body, func(r *http.Request) { r.Header.Set("X-Tandem-Timestamp", fmt.Sprint(now.Unix()+1)) })
		}},
		"OtherBody": {401, func() answer {
			return callback(t, to, canary, now, body, func(r *http.Request) {
				changed := strings.Replace(body, "approve\"}", "reject\"} ", 1)
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(changed)), int64(len(changed))
			})
		}},
		"Unsigned": {401, func() answer {
			return callback(t, to, canary, now, body, func(r *http.Request) { r.Header.Del("X-Tandem-Signature") })
		}},
		"OtherTenant":    {404, func() answer { return callback(t, strings.Replace(to, "/default/", "/other/", 1), canary, now, body) }},
		"UnknownAccount": {404, func() answer { return callback(t, to+"x", canary, now, body) }},
		"OtherArguments": {409, func() answer {
			return callback(t, to, canary, now, strings.Replace(body, `"responder"`, `"arguments_hash":"`+strings.Repeat("0", 64)+`","responder"`, 1))
		}},
		"UnknownQuestion": {404, func() answer {
			return callback(t, to, canary, now, strings.Replace(body, i.ID, strings.Repeat("0", 36), 1))
		}},
	} {
		t.Run(name, func(t *testing.T) { g.unmoved(t, i.ID, c.status, c.do) })
	}
	// What somebody sends who may not, with the account that asked, is kept for the record and counts for nothing.
	for _, who := range []string{"user:viewer", "stranger@x.org", "user:nobody"} {
		said := len(g.log.String())
		if got := callback(t, to, canary, now, strings.Replace(body, "user:approver", who, 1)); got.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", who, got.status, got.body)
		}
		if !strings.Contains(g.log.String()[said:], i.ID) {
			t.Errorf("nothing is logged of %s", who)
		}
	}
	// Through an account that did not ask, a genuine call speaks for nobody.
	if got := callback(t, strings.Replace(to, credential, other, 1), "another-4Wq8-ticket", now, body); got.status != http.StatusForbidden {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := g.interaction(t, i.ID); got.Status != store.InteractionPending {
		t.Fatalf("what does not count has ended it: %+v", got)
	}
	if got := callback(t, to, canary, now, body); got.status != http.StatusOK || !gjson.GetBytes(got.body, "accepted").Bool() {
		t.Fatalf("%d %s", got.status, got.body)
	}
	g.reaches(t, i.ExecutionID, engine.StatusSuccess)
	if m := service.next(t); m.Get("event").Str != human.KindCompleted {
		t.Errorf("then it is sent %s", m.Raw)
	}
	before := g.interaction(t, i.ID)
	if got := callback(t, to, canary, now, body); got.status != http.StatusOK || !gjson.GetBytes(got.body, "accepted").Bool() {
		t.Errorf("the same call again: %d %s", got.status, got.body) // it says again what became of it
	}
	if got := callback(t, to, canary, now.Add(time.Second), body); got.status != http.StatusConflict {
		t.Errorf("the same answer in a new call: %d %s", got.status, got.body)
	}
	if after := g.interaction(t, i.ID); after.Version != before.Version {
		t.Errorf("it was %+v and is %+v", before, after)
	}
	detail := want[api.InteractionDetail](t, g.call(t, "admin", "GET", "/interactions/"+i.ID, nil), http.StatusOK)
	if n := len(slices.DeleteFunc(slices.Clone(detail.Responses), func(r api.InteractionResponse) bool { return !r.Accepted })); n != 1 {
		t.Errorf("%d replies count: %+v", n, detail.Responses)
	}
	if got := facts(t, g.stores.Journal, i.ExecutionID); got["answered"] != 1 || got["refused"] != 0 {
		t.Errorf("facts %v", got)
	}
	g.nowhere(t, i, canary, link[strings.LastIndexByte(link, '/')+1:])
}

// nowhere looks for secrets in everything that is told or kept.
func (g *guarded) nowhere(t *testing.T, i api.Interaction, secrets ...string) {
	t.Helper()
	places := map[string][]byte{"the log": []byte(g.log.String())}
	for _, path := range []string{"/interactions/" + i.ID, "/interactions?execution_id=" + i.ExecutionID, "/executions/" + i.ExecutionID, "/executions/" + i.ExecutionID + "/events", "/executions/" + i.ExecutionID + "/events?vocabulary=flow", "/executions/" + i.ExecutionID + "/pauses", "/executions/" + i.ExecutionID + "/logs", "/credentials"} {
		got := g.call(t, "admin", "GET", path, nil)
		if got.status != http.StatusOK {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
		places["GET "+path] = got.body
	}
	err := filepath.WalkDir(g.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		places[path] = content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for place, content := range places { // order does not matter: each is looked at
		for _, secret := range secrets {
			if bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s has the secret %q", place, secret)
			}
		}
	}
}
