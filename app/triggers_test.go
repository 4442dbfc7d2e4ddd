package app

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
	"tandem/workflow"
)

// hookFlow is a workflow that a webhook starts. Config are the trigger's configurations, nodes and connections what follows.
func hookFlow(id, config, nodes, connections string) string {
	return `{"metadata":{"id":"` + id + `","name":"` + id + `","description":"d"},"nodes":[{"id":"hook","name":"hook","description":"d","type":"TRIGGER","subtype":"WEBHOOK","configurations":` + config + `}` + nodes + `],"connections":[` + connections + `]}`
}

// deploys saves a workflow as its next revision and deploys it.
func (x *site) deploys(t testing.TB, id, text string) api.WorkflowMetadata {
	t.Helper()
	x.saves(t, id, text)
	return want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/"+id+"/deploy", nil), http.StatusOK)
}

func (x *site) saves(t testing.TB, id, text string) {
	t.Helper()
	a := x.call(t, "editor", "PUT", "/workflows/"+id, text)
	if a.status == http.StatusNotFound {
		a = x.call(t, "editor", "POST", "/workflows", text)
	}
	if a.status != http.StatusCreated && a.status != http.StatusOK {
		t.Fatalf("save: %d %s", a.status, a.body)
	}
}

// hooked sends a request to a webhook, as a stranger. Headers are pairs.
func (x *site) hooked(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(x.url, "/api/v1")+"/hooks/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for n := 0; n+1 < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{w.StatusCode, w.Header, raw}
}

// startedBy is the execution that a request has started, once it has ended, and what its trigger put out.
func (x *site) startedBy(t testing.TB, a answer) (api.Execution, gjson.Result) {
	t.Helper()
	got := want[api.Received](t, a, http.StatusAccepted)
	x.reaches(t, got.ExecutionID, engine.StatusSuccess)
	e := x.read(t, got.ExecutionID)
	return e, gjson.ParseBytes(e.NodeExecutions["hook"].OutputData["result"])
}

func (x *site) executionsOf(t testing.TB, workflow string) int {
	t.Helper()
	page, err := x.stores.Executions.List(t.Context(), identity.System("default"), store.ExecutionQuery{WorkflowID: workflow})
	if err != nil {
		t.Fatal(err)
	}
	return page.Total
}

func (x *site) workflowOf(t testing.TB, execution string) string {
	t.Helper()
	e, err := x.stores.Executions.Get(t.Context(), identity.System("default"), execution)
	if err != nil {
		t.Fatal(err)
	}
	return e.WorkflowID
}

func TestTriggers_Deployment(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	m := x.deploys(t, "life", hookFlow("life", `{"webhook_path":"/a"}`, "", ""))
	same(t, fmt.Sprint(m.DeploymentStatus, m.DeployedRevision), "deployed1")
	e, out := x.startedBy(t, x.hooked(t, "POST", "life/a", `{"n":1}`))
	same(t, fmt.Sprint(e.Revision, " ", e.TriggerInfo.TriggerType, " ", out.Get("body.n"), " ", out.Get("trigger_message")), "1 WEBHOOK 1 POST /a")
	if !strings.HasPrefix(e.TriggerInfo.ExternalRequestID, "dlv_") || gjson.GetBytes(e.TriggerInfo.TriggerData, "method").Str != "POST" {
		t.Errorf("trigger info %+v", e.TriggerInfo)
	}

	// A newer revision is not in force until it is deployed.
	x.saves(t, "life", hookFlow("life", `{"webhook_path":"/b"}`, "", ""))
	refused(t, x.hooked(t, "POST", "life/b", `{}`), http.StatusNotFound, "not_found")
	e, _ = x.startedBy(t, x.hooked(t, "POST", "life/a", `{}`))
	same(t, e.Revision, int64(1))

	// A deployment that fails says why, and leaves what was in force.
	x.saves(t, "life", hookFlow("life", `{"webhook_path":"/b/{x}"}`, `,{"id":"two","name":"two","description":"d","type":"TRIGGER","subtype":"WEBHOOK","configurations":{"webhook_path":"/b/{y}"}}`, ""))
	f := refused(t, x.call(t, "editor", "POST", "/workflows/life/deploy", nil), http.StatusConflict, "conflict")
	w := want[api.Workflow](t, x.call(t, "viewer", "GET", "/workflows/life", nil), http.StatusOK).Metadata
	same(t, fmt.Sprint(w.DeploymentStatus, w.DeploymentError == f.Detail, w.DeployedRevision, strings.Contains(f.Detail, `"/b/{y}" is taken by the trigger "hook"`)), "failedtrue 1 true")
	x.startedBy(t, x.hooked(t, "POST", "life/a", `{}`))
	x.saves(t, "life", hookFlow("life", `{"webhook_path":"/b","authentication":"header_token","credential_id":"none"}`, "", ""))
	if a := x.call(t, "editor", "POST", "/workflows/life/deploy", nil); a.status < 400 || !strings.Contains(string(a.body), "none") {
		t.Errorf("a credential that is not there: %d %s", a.status, a.body)
	}
	list := want[api.Triggers](t, x.call(t, "viewer", "GET", "/workflows/life/triggers", nil), http.StatusOK)
	same(t, fmt.Sprint(list.TotalCount, list.Triggers[0].InForce, list.Triggers[0].State, list.Triggers[1].State, list.Triggers[1].Reason != ""), "3 trueactivefailedtrue")

	// The next one moves all triggers at once; a disabled trigger is not registered.
	x.deploys(t, "life", hookFlow("life", `{"webhook_path":"/b"}`, `,{"id":"off","name":"off","description":"d","type":"TRIGGER","subtype":"WEBHOOK","configurations":{"webhook_path":"/off","enabled":false}}`, ""))
	refused(t, x.hooked(t, "POST", "life/a", `{}`), http.StatusNotFound, "not_found")
	refused(t, x.hooked(t, "POST", "life/off", `{}`), http.StatusNotFound, "not_found")
	x.startedBy(t, x.hooked(t, "POST", "life/b/", `{}`))

	w = want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/life/undeploy", nil), http.StatusOK)
	same(t, fmt.Sprint(w.DeploymentStatus, w.DeployedRevision), "undeployed0")
	refused(t, x.hooked(t, "POST", "life/b", `{}`), http.StatusNotFound, "not_found")

	x.deploys(t, "gone", hookFlow("gone", `{}`, "", ""))
	want[struct{}](t, x.call(t, "editor", "DELETE", "/workflows/gone", nil), http.StatusNoContent)
	refused(t, x.hooked(t, "POST", "gone/webhook", `{}`), http.StatusNotFound, "not_found")
}

func TestTriggers_WebhookRequests(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.deploys(t, "take", hookFlow("take", `{"webhook_path":"/orders/{id}","allowed_methods":["GET","POST","DELETE"]}`, `,{"id":"new","name":"new","description":"d","type":"TRIGGER","subtype":"WEBHOOK","configurations":{"webhook_path":"/orders/new"}}`, ""))
	_, out := x.startedBy(t, x.hooked(t, "POST", "take/orders/a%2Fb?x=1&y=2&y=3", `{"n": 1.50}`, "X-Custom", "yes", "Cookie", "secret=1", "Authorization", "Bearer secret", "X-Gitlab-Token", "secret", "Private-Token", "secret", "Api_Key", "secret", "Idempotency-Key", "one"))
	same(t, out.Get("path_params.id").Str, "a/b")
	same(t, out.Get("query_params").Raw, `{"x":"1","y":["2","3"]}`)
	same(t, out.Get("body").Raw, `{"n":1.50}`)
	same(t, fmt.Sprint(out.Get("headers.x-custom"), out.Get("headers.cookie"), out.Get("headers.authorization"), out.Get("client_ip"), out.Get("method"), out.Get("headers.idempotency-key")), "yes [redacted] [redacted] 127.0.0.1 POST one")
	same(t, strings.Count(out.Get("headers").Raw, `"secret"`), 0)
	_, out = x.startedBy(t, x.hooked(t, "GET", "take/orders/7", ""))
	same(t, out.Get("body").Raw, "null")
	_, out = x.startedBy(t, x.hooked(t, "POST", "take/orders/7", "a=1&b=2&b=3", "Content-Type", "application/x-www-form-urlencoded"))
	same(t, out.Get("body").Raw, `{"a":"1","b":["2","3"]}`)
	_, out = x.startedBy(t, x.hooked(t, "POST", "take/orders/7", "plain 订单", "Content-Type", "text/plain"))
	same(t, out.Get("body").Str, "plain 订单")

	// The path that says more wins.
	got := want[api.Received](t, x.hooked(t, "POST", "take/orders/new", `{}`), http.StatusAccepted)
	x.reaches(t, got.ExecutionID, engine.StatusSuccess)
	if n := x.read(t, got.ExecutionID).NodeExecutions; n["new"].Status != "completed" {
		t.Errorf("nodes %+v", n)
	}

	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("doc", `..\..\etc/pass"wd.txt`)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(part, "content")
	if err := w.WriteField("note", "n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, out = x.startedBy(t, x.hooked(t, "POST", "take/orders/7", form.String(), "Content-Type", w.FormDataContentType()))
	same(t, out.Get("body").Raw, `{"note":"n"}`)
	same(t, out.Get("files.0.name").Str, "passwd.txt")
	content, _, err := x.stores.Blobs.Get(t.Context(), identity.System("default"), out.Get("files.0.blob").Str)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	same(t, fmt.Sprint(string(text), err), "content<nil>")

	// What is refused starts nothing.
	before := x.executionsOf(t, "take")
	for name, a := range map[string]answer{
		"Broken": x.hooked(t, "POST", "take/orders/7", `{"n":`),
		"Twice":  x.hooked(t, "POST", "take/orders/7", `{"n":1,"n":2}`),
		"Form":   x.hooked(t, "POST", "take/orders/7", `--x`, "Content-Type", "multipart/form-data; boundary=y"),
		"Cut":    x.hooked(t, "POST", "take/orders/7", "--y\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--y\r\nContent-Dispo", "Content-Type", "multipart/form-data; boundary=y"),
		"Query":  x.hooked(t, "POST", "take/orders/7?a=%zz", `{}`),
	} {
		if a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := x.hooked(t, "PUT", "take/orders/7", `{}`); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "GET, POST, DELETE" {
		t.Errorf("method: %d %v", a.status, a.header)
	}
	if a := x.hooked(t, "HEAD", "take/orders/7", ``); a.status != http.StatusMethodNotAllowed {
		t.Errorf("method: %d", a.status)
	}
	if a := x.hooked(t, "POST", "take/orders/7", `"`+strings.Repeat("x", 10<<20)+`"`); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: %d %s", a.status, a.body)
	}
	for _, path := range []string{"take", "take/", "take/orders", "take/orders/7/8", "nothing/orders/7", "other:take/orders/7", "default:take/orders/7"} {
		if a := x.hooked(t, "POST", path, `{}`); a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	same(t, x.executionsOf(t, "take"), before)

	// A large body is kept whole.
	large := `{"text":"` + strings.Repeat("y", 200<<10) + `"}`
	e, _ := x.startedBy(t, x.hooked(t, "POST", "take/orders/7", large))
	d := want[api.Delivery](t, x.call(t, "operator", "GET", "/deliveries/"+e.TriggerInfo.ExternalRequestID, nil), http.StatusOK)
	same(t, gjson.GetBytes(d.Payload, "body").Raw, large)
}

func TestTriggers_WebhookAuthentication(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	secret := identity.NewSecret()
	credential := func(name, more string) string {
		a := x.call(t, "admin", "POST", "/credentials", `{"name":"`+name+`","type":"webhook_secret","data":{"secret":"`+secret+`"`+more+`}}`)
		return want[struct {
			ID string `json:"id"`
		}](t, a, http.StatusCreated).ID
	}
	plain, own := credential("plain", ""), credential("own", `,"header":"X-Shop","parameter":"key"`)
	bearer := credential("bearer", `,"header":"Authorization"`)
	flow := func(id, mode, cred string) {
		x.deploys(t, id, hookFlow(id, `{"webhook_path":"/in","authentication":"`+mode+`","credential_id":"`+cred+`"}`, "", ""))
	}
	flow("header", "header_token", plain)
	flow("header-own", "header_token", own)
	flow("bearer", "header_token", bearer)
	flow("query", "query_param", plain)
	flow("query-own", "query_param", own)
	flow("signed", "signature", plain)
	sign := func(at time.Time, body string) []string {
		stamp := strconv.FormatInt(at.Unix(), 10)
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprint(mac, stamp+"."+body)
		return []string{"X-Tandem-Timestamp", stamp, "X-Tandem-Signature", "v1=" + hex.EncodeToString(mac.Sum(nil))}
	}
	for name, c := range map[string]struct {
		path    string
		headers []string
		status  int
	}{
		"Header":         {"header/in", []string{"X-Tandem-Token", secret}, 202},
		"HeaderWrong":    {"header/in", []string{"X-Tandem-Token", secret + "x"}, 401},
		"HeaderMissing":  {"header/in", nil, 401},
		"HeaderOwn":      {"header-own/in", []string{"X-Shop", secret}, 202},
		"HeaderOther":    {"header-own/in", []string{"X-Tandem-Token", secret}, 401},
		"Bearer":         {"bearer/in", []string{"Authorization", "Bearer " + secret}, 202},
		"Query":          {"query/in?token=" + secret, nil, 202},
		"QueryOwn":       {"query-own/in?a=1&key=" + secret, nil, 202},
		"QueryWrong":     {"query/in?token=x", nil, 401},
		"Signed":         {"signed/in", sign(time.Now(), "{}"), 202},
		"SignedOther":    {"signed/in", sign(time.Now(), "{ }"), 401},
		"SignedLate":     {"signed/in", sign(time.Now().Add(-6*time.Minute), "{}"), 401},
		"SignedEarly":    {"signed/in", sign(time.Now().Add(6*time.Minute), "{}"), 401},
		"SignedNotAtAll": {"signed/in", nil, 401},
		"SignedNotHex":   {"signed/in", []string{"X-Tandem-Timestamp", "1", "X-Tandem-Signature", "zz"}, 401},
	} {
		a := x.hooked(t, "POST", c.path, "{}", c.headers...)
		if a.status != c.status {
			t.Errorf("%s: %d %s; want %d", name, a.status, a.body, c.status)
		}
		if c.status == 202 {
			e, out := x.startedBy(t, a)
			for _, text := range []string{string(e.TriggerInfo.TriggerData), out.Raw} {
				if strings.Contains(text, secret) {
					t.Errorf("%s: the secret is told: %s", name, text)
				}
			}
		}
	}

	// The same signed request once more is a repetition.
	signed := sign(time.Now().Add(-time.Second), `{"n":1}`)
	first := want[api.Received](t, x.hooked(t, "POST", "signed/in", `{"n":1}`, signed...), http.StatusAccepted)
	again := want[api.Received](t, x.hooked(t, "POST", "signed/in", `{"n":1}`, signed...), http.StatusAccepted)
	same(t, again, first)

	// Refusals are in the history, bounded and without what was sent.
	d := want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries?workflow_id=signed&decision=refused", nil), http.StatusOK)
	same(t, fmt.Sprint(d.TotalCount, d.Deliveries[0].Size, strings.HasPrefix(d.Deliveries[0].Reason, "unauthorized: ")), "5 0 true")
	refused(t, x.call(t, "operator", "POST", "/deliveries/"+d.Deliveries[0].ID+"/replay", nil), http.StatusConflict, "conflict")
}

func TestTriggers_WebhookReplies(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	pass := `,{"id":"end","name":"end","description":"d","type":"CALL","subtype":"EMPTY","configurations":{"pass_through":true},"input_params":%s}`
	to := func(from, to string) string { return `{"from_node":"` + from + `","to_node":"` + to + `"}` }
	sync := func(id, more, params string) {
		x.deploys(t, id, hookFlow(id, `{"webhook_path":"/in","response_mode":"sync"`+more+`}`, fmt.Sprintf(pass, params), to("hook", "end")))
	}
	sync("json", "", `{"said":"{{body.text}}"}`)
	a := x.hooked(t, "POST", "json/in", `{"text":"hello"}`, "Idempotency-Key", "one")
	same(t, fmt.Sprint(a.status, a.header.Get("Content-Type"), gjson.GetBytes(a.body, "said")), "200application/jsonhello")
	again := x.hooked(t, "POST", "json/in", `{"text":"other"}`, "Idempotency-Key", "one")
	same(t, string(again.body), string(a.body))
	same(t, x.executionsOf(t, "json"), 1)

	sync("html", `,"response_format":"html"`, `{"html":"<p>{{body.text}}</p>"}`)
	a = x.hooked(t, "POST", "html/in", `{"text":"hello"}`)
	same(t, fmt.Sprint(a.status, a.header.Get("Content-Type"), string(a.body), strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox")), "200text/html; charset=utf-8<p>hello</p>true")

	x.deploys(t, "fails", hookFlow("fails", `{"webhook_path":"/in","response_mode":"sync"}`, `,{"id":"end","name":"end","description":"d","type":"FLOW","subtype":"IF","configurations":{"condition_expression":"body.n / 0 > 1"}}`, to("hook", "end")))
	if a := x.hooked(t, "POST", "fails/in", `{"n":1}`); a.status != http.StatusInternalServerError || !strings.Contains(string(a.body), "ERROR") {
		t.Errorf("a failure: %d %s", a.status, a.body)
	}

	// It pauses, or takes longer than the caller waits: the caller is told that it goes on.
	x.deploys(t, "asks", hookFlow("asks", `{"webhook_path":"/in","response_mode":"sync"}`, `,{"id":"ask","name":"ask","description":"d","type":"HUMAN_IN_THE_LOOP","subtype":"IN_APP_APPROVAL","configurations":{"title":"t","approvers":["user:operator"]}}`, to("hook", "ask")))
	got := want[api.Received](t, x.hooked(t, "POST", "asks/in", `{}`), http.StatusAccepted)
	same(t, got.Status, "WAITING_FOR_HUMAN")
	x.deploys(t, "waits", hookFlow("waits", `{"webhook_path":"/in","response_mode":"sync","response_timeout_seconds":1}`, `,{"id":"w","name":"w","description":"d","type":"FLOW","subtype":"DELAY","configurations":{"duration_seconds":600}}`, to("hook", "w")))
	got = want[api.Received](t, x.hooked(t, "POST", "waits/in", `{}`), http.StatusAccepted)
	same(t, got.Status, "WAITING")
}

func TestTriggers_NodeAnswers(t *testing.T) {
	t.Parallel()
	waiting := make(chan string, 100) // executions that have begun to wait
	x := openSiteAs(t, func(o *Options, _ string) {
		o.Recorded = func(ref store.Ref, _ *workflow.Graph, row host.Row) {
			for _, told := range row.Told {
				if told.What == host.ToldExecution && told.Status == engine.StatusWaiting {
					waiting <- ref.Execution
				}
			}
		}
	})
	respond := func(id, config string) string {
		return `,{"id":"` + id + `","name":"` + id + `","description":"d","type":"FLOW","subtype":"RESPOND","configurations":` + config + `}`
	}
	to := func(pairs ...string) string {
		var list []string
		for n := 0; n+1 < len(pairs); n += 2 {
			list = append(list, `{"from_node":"`+pairs[n]+`","to_node":"`+pairs[n+1]+`"}`)
		}
		return strings.Join(list, ",")
	}
	const node = `{"webhook_path":"/in","response_mode":"node","response_timeout_seconds":20}`
	hold := `,{"id":"hold","name":"hold","description":"d","type":"FLOW","subtype":"WAIT","configurations":{"wait_type":"signal","signal_name":"go"}}`

	// The caller is answered in the middle of the run, which goes on; asking again with the same id gets the same answer.
	x.deploys(t, "middle", hookFlow("middle", node, respond("say", `{"status_code":201,"headers":{"X-Order":"{{body.n}}"},"body":{"order":"{{body.n}}"}}`)+hold, to("hook", "say", "say", "hold")))
	for range 2 {
		a := x.hooked(t, "POST", "middle/in", `{"n":7}`, "Webhook-Id", "m1")
		same(t, fmt.Sprint(a.status, a.header.Get("X-Order"), a.header.Get("Content-Type"), string(a.body)), `2017application/json{"order":7}`)
	}
	same(t, x.executionsOf(t, "middle"), 1)
	d := want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries?key=m1", nil), http.StatusOK).Deliveries[0]
	x.reaches(t, d.ExecutionID, engine.StatusWaiting)
	whole := want[api.Delivery](t, x.call(t, "operator", "GET", "/deliveries/"+d.ID, nil), http.StatusOK)
	same(t, gjson.GetBytes(whole.Answer, "status").Int(), int64(201))

	// A second answer fails its node, and the first stands.
	x.deploys(t, "twice", hookFlow("twice", node, respond("one", `{"body":"first"}`)+respond("two", `{"body":"second"}`), to("hook", "one", "one", "two")))
	a := x.hooked(t, "POST", "twice/in", `{}`)
	same(t, fmt.Sprint(a.status, string(a.body)), "200first")
	d = want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries?workflow_id=twice", nil), http.StatusOK).Deliveries[0]
	x.reaches(t, d.ExecutionID, engine.StatusError)
	if e := x.read(t, d.ExecutionID); e.Error == nil || !strings.Contains(e.Error.ErrorMessage, "answered by") {
		t.Errorf("error %+v", e.Error)
	}

	// A run without an answer is told as it ended.
	x.deploys(t, "silent", hookFlow("silent", node, "", ""))
	got := want[api.Received](t, x.hooked(t, "POST", "silent/in", `{}`), http.StatusAccepted)
	same(t, got.Status, "SUCCESS")

	// A run that no request has started answers nobody, and goes on.
	e := x.read(t, x.execute(t, "twice", api.ExecuteRequest{WaitSeconds: 20, Inputs: json.RawMessage(`{}`)}))
	same(t, fmt.Sprint(e.Status, gjson.GetBytes(e.NodeExecutions["two"].OutputData["result"], "reason")), "SUCCESSno_request")

	// A caller that has left is answered when it asks again.
	x.deploys(t, "left", hookFlow("left", node, hold+respond("say", `{"body":"late"}`), to("hook", "hold", "hold", "say")))
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", strings.TrimSuffix(x.url, "/api/v1")+"/hooks/left/in", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Webhook-Id", "l1")
	var gone sync.WaitGroup
	gone.Go(func() {
		if w, err := http.DefaultClient.Do(r); err == nil {
			w.Body.Close()
			t.Errorf("answered %d", w.StatusCode)
		}
	})
	id := ""
	for id == "" {
		if ref := <-waiting; x.workflowOf(t, ref) == "left" {
			id = ref
		}
	}
	leave()
	gone.Wait()
	if a := x.call(t, "operator", "POST", "/executions/"+id+"/input", `{"node_id":"hold","input_data":{"signal":"go"}}`); a.status != http.StatusOK {
		t.Fatalf("signal: %d %s", a.status, a.body)
	}
	x.reaches(t, id, engine.StatusSuccess)
	a = x.hooked(t, "POST", "left/in", `{}`, "Webhook-Id", "l1")
	same(t, fmt.Sprint(a.status, string(a.body)), "200late")

	// A workflow inside the workflow may answer, with a file.
	x.deploys(t, "inner", `{"metadata":{"id":"inner","name":"inner","description":"d"},"nodes":[{"id":"start","name":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"}`+respond("say", `{"file":"{{files.0}}"}`)+`],"connections":[`+to("start", "say")+`]}`)
	x.deploys(t, "outer", hookFlow("outer", node, `,{"id":"sub","name":"sub","description":"d","type":"FLOW","subtype":"SUB_WORKFLOW","configurations":{"workflow_id":"inner"}}`, to("hook", "sub")))
	a = x.hooked(t, "POST", "outer/in", "\xff\xfe\x00", "Content-Type", "image/x-odd")
	same(t, fmt.Sprintf("%d %s %q", a.status, a.header.Get("Content-Type"), a.body), `200 image/x-odd "\xff\xfe\x00"`)
}

func TestTriggers_DeliveryIDs(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.deploys(t, "usual", hookFlow("usual", `{"webhook_path":"/in"}`, "", ""))
	x.deploys(t, "own", hookFlow("own", `{"webhook_path":"/in","delivery_id_headers":["X-Order"]}`, "", ""))
	send := func(path string, headers ...string) string {
		return want[api.Received](t, x.hooked(t, "POST", path, `{}`, headers...), http.StatusAccepted).DeliveryID
	}
	for _, name := range []string{"Idempotency-Key", "Webhook-Id", "X-Delivery-Id", "X-GitHub-Delivery"} {
		if a, b := send("usual/in", name, name), send("usual/in", name, name); a != b {
			t.Errorf("%s: %s and %s are two", name, a, b)
		}
	}
	long := strings.Repeat("x", 5000)
	if a, b := send("usual/in", "Webhook-Id", long), send("usual/in", "Webhook-Id", long); a != b {
		t.Errorf("a long id: %s and %s are two", a, b)
	}
	if a, b := send("usual/in"), send("usual/in"); a == b {
		t.Error("two requests without an id are one")
	}
	if a, b := send("own/in", "Webhook-Id", "1"), send("own/in", "Webhook-Id", "1"); a == b {
		t.Error("a header that is not configured counts")
	}
	if a, b := send("own/in", "X-Order", "1"), send("own/in", "X-Order", "1"); a != b {
		t.Error("a header that is configured does not count")
	}

	// Many at once with the same id start one execution.
	var all sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		all.Go(func() { ids[i] = send("own/in", "X-Order", "crowd") })
	}
	all.Wait()
	for _, id := range ids {
		same(t, id, ids[0])
	}
	same(t, x.executionsOf(t, "own"), 4)

	// History and replay.
	page := want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries?workflow_id=own&page_size=2", nil), http.StatusOK)
	same(t, fmt.Sprint(page.TotalCount, " ", len(page.Deliveries)), "4 2")
	refused(t, x.call(t, "viewer", "GET", "/deliveries?decision=odd", nil), http.StatusUnprocessableEntity, "invalid_input")
	refused(t, x.call(t, "viewer", "GET", "/deliveries/"+ids[0], nil), http.StatusForbidden, "forbidden")
	refused(t, x.call(t, "viewer", "POST", "/deliveries/"+ids[0]+"/replay", nil), http.StatusForbidden, "forbidden")
	refused(t, x.call(t, "stranger", "GET", "/deliveries/"+ids[0], nil), http.StatusNotFound, "not_found")
	refused(t, x.call(t, "stranger", "POST", "/deliveries/"+ids[0]+"/replay", nil), http.StatusNotFound, "not_found")
	again := want[api.Delivery](t, x.call(t, "operator", "POST", "/deliveries/"+ids[0]+"/replay", nil, "Idempotency-Key", "r"), http.StatusAccepted)
	same(t, fmt.Sprint(again.ReplayOf == ids[0], " ", again.Decision), "true started")
	twice := want[api.Delivery](t, x.call(t, "operator", "POST", "/deliveries/"+ids[0]+"/replay", nil, "Idempotency-Key", "r"), http.StatusAccepted)
	same(t, twice.ExecutionID, again.ExecutionID)
	x.audited(t, "delivery.replay", ids[0])
	x.reaches(t, again.ExecutionID, engine.StatusSuccess)
	same(t, x.executionsOf(t, "own"), 5)
	want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/own/undeploy", nil), http.StatusOK)
	refused(t, x.call(t, "operator", "POST", "/deliveries/"+ids[0]+"/replay", nil), http.StatusConflict, "conflict")
}

func TestTriggers_AnswerTypes(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const sent = `{"headers":"{{body.headers}}"}` // what is written out is refused when it is saved
	for id, c := range map[string]struct{ config, body, want string }{
		"html":    {`{"content_type":"text/html","body":"<p>hi</p>"}`, `{}`, "200 text/html <p>hi</p>"},
		"plain":   {`{"body":"hi"}`, `{}`, "200 text/plain; charset=utf-8 hi"},
		"value":   {`{"status_code":418,"body":[1]}`, `{}`, "418 application/json [1]"},
		"refused": {sent, `{"headers":{"Content-Length":"1"}}`, "500 application/problem+json "},
		// The pages of the server itself have the same origin.
		"cookie": {sent, `{"headers":{"set-cookie":"tandem_session=x; Path=/"}}`, "500 application/problem+json "},
		"clear":  {sent, `{"headers":{"Clear-Site-Data":"*"}}`, "500 application/problem+json "},
		"taken":  {sent, `{"headers":{"X-Colour":"blue"}}`, "200 "},
	} {
		x.deploys(t, id, hookFlow(id, `{"webhook_path":"/in","response_mode":"node"}`, `,{"id":"say","name":"say","description":"d","type":"FLOW","subtype":"RESPOND","configurations":`+c.config+`}`, `{"from_node":"hook","to_node":"say"}`))
		a := x.hooked(t, "POST", id+"/in", c.body)
		if got := fmt.Sprintf("%d %s %s", a.status, a.header.Get("Content-Type"), a.body); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s; want %s", id, got, c.want)
		}
	}
}

// TestTriggers_Canary looks for a secret that came with requests in everything that is kept and told.
func TestTriggers_Canary(t *testing.T) {
	t.Parallel()
	dir := ""
	var log bytes.Buffer
	var mu sync.Mutex
	x := openSiteAs(t, func(o *Options, _ string) {
		dir = o.Dir
		o.Log = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return log.Write(p)
		}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	canary := "canary-" + identity.NewSecret()
	cred := want[struct {
		ID string `json:"id"`
	}](t, x.call(t, "admin", "POST", "/credentials", `{"name":"c","type":"webhook_secret","data":{"secret":"`+canary+`"}}`), http.StatusCreated).ID
	for id, mode := range map[string]string{"h": "header_token", "q": "query_param"} {
		x.deploys(t, id, hookFlow(id, `{"webhook_path":"/in","response_mode":"sync","authentication":"`+mode+`","credential_id":"`+cred+`"}`, "", ""))
	}
	headers := []string{"X-Tandem-Token", canary, "Authorization", "Bearer " + canary, "Cookie", "s=" + canary, "X-Api-Key", canary}
	for _, a := range []answer{
		x.hooked(t, "POST", "h/in", `{"n":1}`, headers...), x.hooked(t, "POST", "q/in?token="+canary, `{"n":1}`, headers...),
		x.hooked(t, "POST", "h/in?token="+canary, `{"n":`, headers...), x.hooked(t, "POST", "h/in", `{"inside":"`+canary+`"}`, headers...),
		x.call(t, "operator", "GET", "/deliveries", nil), x.call(t, "operator", "GET", "/triggers", nil), x.call(t, "viewer", "GET", "/executions", nil),
	} {
		if bytes.Contains(a.body, []byte(canary)) {
			t.Errorf("it is told: %s", a.body)
		}
	}
	mu.Lock()
	if strings.Contains(log.String(), canary) {
		t.Errorf("it is in the log: %s", log.String())
	}
	mu.Unlock()
	if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(canary)) {
			t.Errorf("it is in %s", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestTriggers_Restart lets a process end with a deployment that was not finished and a delivery that was not started: the next one goes on
// with both.
func TestTriggers_Restart(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	first, err := Open(t.Context(), Options{Dir: dir, Idle: true})
	if err != nil {
		t.Fatal(err)
	}
	p := identity.System("default")
	for _, id := range []string{"done", "pending"} {
		source, _ := workflow.Parse([]byte(hookFlow(id, `{"webhook_path":"/in"}`, "", "")), workflow.Options{Kinds: first.kinds})
		w, err := first.Save(t.Context(), p, source.Definition)
		if err != nil {
			t.Fatal(err)
		}
		if id == "done" {
			err = first.triggers.Deploy(t.Context(), p, id, w.Revision)
		} else {
			err = first.stores.Triggers.Prepare(t.Context(), p, store.Deployment{WorkflowID: id, Revision: w.Revision, Hash: w.RevisionHash, Triggers: []store.Trigger{{Node: "hook", Kind: "TRIGGER.WEBHOOK"}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := first.stores.Triggers.Record(t.Context(), p, store.TriggerDelivery{
		ID: "dlv_left", WorkflowID: "done", Node: "hook", Kind: "TRIGGER.WEBHOOK", Revision: 1, Key: "k", Received: 1, Decision: store.DeliveryAccepted, NextAt: 1, Payload: json.RawMessage(`{"n":1}`),
	}, nil); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	ended, resumed := make(chan store.Ref, 10), make(chan struct{}, 1)
	log := slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("a deployment that was not finished is in force now")) {
			resumed <- struct{}{}
		}
		return len(line), nil
	}), nil))
	second, err := Open(t.Context(), Options{Dir: dir, Log: log, Recorded: func(ref store.Ref, _ *workflow.Graph, row host.Row) {
		for _, told := range row.Told {
			if told.What == host.ToldExecution && told.Status.Final() {
				ended <- ref
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	ref := <-ended
	d, err := second.stores.Triggers.Delivery(t.Context(), p, "dlv_left")
	same(t, fmt.Sprint(d.Decision, d.Execution == ref.Execution, err), "startedtrue <nil>")
	<-resumed
	w, err := second.stores.Workflows.Get(t.Context(), p, "pending")
	same(t, fmt.Sprint(w.DeploymentStatus, w.DeployedRevision, err), "deployed1 <nil>")
}

// TestTriggers_Examples runs the examples as their comments say.
func TestTriggers_Examples(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	for _, id := range []string{"webhook_order", "cron_reminder"} {
		raw, err := os.ReadFile(filepath.Join("..", "examples", id+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		x.deploys(t, id, string(raw))
	}
	a := x.hooked(t, "POST", "webhook_order/orders", `{"order": 7, "prices": [3, 4]}`, "Idempotency-Key", "order-7")
	same(t, fmt.Sprint(a.status, " ", string(a.body)), `201 {"order":7,"accepted":true}`)
	a = x.hooked(t, "POST", "webhook_order/orders", `{"order": 8, "prices": [300]}`)
	same(t, a.status, http.StatusAccepted)
	list := want[api.Triggers](t, x.call(t, "viewer", "GET", "/triggers?kind=TRIGGER.CRON&next_runs=5", nil), http.StatusOK)
	if len(list.Triggers) != 1 || len(list.Triggers[0].NextRuns) != 5 || list.Triggers[0].Timezone != "Europe/Berlin" {
		t.Errorf("triggers %+v", list)
	}
}
