package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
)

// What a RESPOND node says reaches somebody only where the trigger lets its sender wait for it.
func TestTriggers_RespondWithoutACaller(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const say = `,{"id":"say","name":"say","description":"d","type":"FLOW","subtype":"RESPOND","configurations":{"status_code":418,"body":"tea"}}`
	deploys := func(id, mode string) {
		x.deploys(t, id, hookFlow(id, `{"webhook_path":"/in","response_mode":"`+mode+`"}`, say, `{"from_node":"hook","to_node":"say"}`))
	}
	said := func(execution string) string {
		t.Helper()
		x.reaches(t, execution, engine.StatusSuccess)
		out := gjson.ParseBytes(x.read(t, execution).NodeExecutions["say"].OutputData["result"])
		return fmt.Sprint(out.Get("answered"), " ", out.Get("reason"))
	}
	last := func(id string) api.Delivery {
		t.Helper()
		return want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries?workflow_id="+id, nil), http.StatusOK).Deliveries[0]
	}
	deploys("async", "async")
	same(t, said(want[api.Received](t, x.hooked(t, "POST", "async/in", `{}`), http.StatusAccepted).ExecutionID), "false not_awaited")
	deploys("sync", "sync")
	same(t, x.hooked(t, "POST", "sync/in", `{}`).status, http.StatusOK)
	same(t, said(last("sync").ExecutionID), "false not_awaited")
	deploys("node", "node")
	same(t, x.hooked(t, "POST", "node/in", `{}`).status, http.StatusTeapot)
	same(t, said(last("node").ExecutionID), "true ")
	first := last("node")
	replayed := want[api.Received](t, x.call(t, "operator", "POST", "/deliveries/"+first.ID+"/replay", nil), http.StatusAccepted)
	same(t, said(replayed.ExecutionID), "false replay")
	same(t, said(x.execute(t, "node", api.ExecuteRequest{WaitSeconds: 20, Inputs: json.RawMessage(`{}`)})), "false no_request")

	// In a chat the answer is part of the conversation; a form says by its response_mode whether its visitor waits.
	node, link := "  - {id: say, name: say, description: d, type: FLOW, subtype: RESPOND, configurations: {body: tea}}\n", "  - {from_node: page, to_node: say}\n"
	v := x.visitor(t)
	x.deploys(t, "chat", visitFlow("chat", "CHAT", `{}`, node, link))
	v.get(t, "/chat/chat")
	same(t, said(gjson.GetBytes(v.says(t, "/chat/chat", "m", "hi").body, "execution").Str), "true ")
	same(t, v.turns(t, "/chat/chat")[0].Get("answer").Str, "tea")
	x.deploys(t, "form", visitFlow("form", "FORM", `{`+oneField+`}`, node, link))
	says(t, v.send(t, "/forms/form", url.Values{"q0": {"Ada"}}), http.StatusOK)
	same(t, said(last("form").ExecutionID), "false not_awaited")
}

func TestTriggers_RespondWithAMissingFile(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.deploys(t, "gone", hookFlow("gone", `{"webhook_path":"/in","response_mode":"node"}`,
		`,{"id":"say","name":"say","description":"d","type":"FLOW","subtype":"RESPOND","configurations":{"file":{"blob":"`+strings.Repeat("ab", 32)+`","name":"a.txt"}}}`, `{"from_node":"hook","to_node":"say"}`))
	a := x.hooked(t, "POST", "gone/in", `{}`)
	refused(t, a, http.StatusInternalServerError, "internal")
	d := want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries?workflow_id=gone", nil), http.StatusOK).Deliveries[0]
	e := x.read(t, d.ExecutionID)
	if e.Status != string(engine.StatusError) || e.Error == nil || !strings.Contains(e.Error.ErrorMessage, "there is no stored file") {
		t.Errorf("%s %+v", e.Status, e.Error)
	}
}

// What starts nothing is told the methods that the trigger takes, and no others.
func TestTriggers_MethodsThatAreToldAreTaken(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.deploys(t, "m", hookFlow("m", `{"webhook_path":"/in","allowed_methods":["GET","PUT"]}`, "", ""))
	for _, method := range []string{"OPTIONS", "HEAD", "POST", "DELETE"} {
		a := x.hooked(t, method, "m/in", "")
		same(t, fmt.Sprint(method, a.status, a.header.Get("Allow")), method+"405GET, PUT")
	}
	for _, method := range []string{"GET", "PUT"} {
		same(t, x.hooked(t, method, "m/in", "").status, http.StatusAccepted)
	}
	same(t, x.executionsOf(t, "m"), 2)
	same(t, x.hooked(t, "OPTIONS", "m/other", "").status, http.StatusNotFound)

	v := x.visitor(t)
	x.deploys(t, "chat", visitFlow("chat", "CHAT", `{}`))
	x.deploys(t, "form", visitFlow("form", "FORM", `{`+oneField+`}`))
	for _, page := range []string{"/chat/chat", "/forms/form"} {
		told := v.ask(t, "OPTIONS", page, "", nil).header.Get("Allow")
		for method := range strings.SplitSeq(told, ", ") {
			if a := v.ask(t, method, page, "", nil); a.status == http.StatusMethodNotAllowed || method == "HEAD" && a.status != http.StatusOK {
				t.Errorf("%s tells %q, and %s is answered with %d", page, told, method, a.status)
			}
		}
	}
}

func TestTriggers_FilesNameTheirField(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.deploys(t, "files", hookFlow("files", `{"webhook_path":"/in"}`, "", ""))
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, field := range []string{"photo", "invoice", "photo"} {
		part, err := w.CreateFormFile(field, "same.bin")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte(field)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, out := x.startedBy(t, x.hooked(t, "POST", "files/in", body.String(), "Content-Type", w.FormDataContentType()))
	same(t, out.Get("files.#.field").Raw, `["photo","invoice","photo"]`)
	_, out = x.startedBy(t, x.hooked(t, "POST", "files/in", "\xff\x00", "Content-Type", "image/x-odd"))
	same(t, fmt.Sprint(out.Get("files.#"), out.Get("files.0.field").Exists()), "1 false")
}

// The history has why a request was refused, and nothing that was sent: its sender is told the rest.
func TestTriggers_RefusalsKeepNothing(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.deploys(t, "r", hookFlow("r", `{"webhook_path":"/in"}`, "", ""))
	for n, c := range []struct{ body, kind, query string }{
		{`{"canary": 1, "canary": 2}`, "application/json", ""},
		{`{"x": {"canary": 1`, "application/json", ""},
		{`{"x": canary}`, "application/json", ""},
		{"canary=%zz", "application/x-www-form-urlencoded", ""},
		{"canary=%ff", "application/x-www-form-urlencoded", ""},
		{"", "", "?canary=%ff"},
		{"--b\r\ncanary", "multipart/form-data; boundary=b", ""},
	} {
		a := x.hooked(t, "POST", "r/in"+c.query, c.body, "Content-Type", c.kind)
		if a.status != http.StatusBadRequest {
			t.Errorf("%d: %d %s", n, a.status, a.body)
		}
	}
	list := want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries?workflow_id=r&decision=refused", nil), http.StatusOK).Deliveries
	if len(list) < 6 { // what nobody could read is refused before a trigger sees it
		t.Errorf("%d are recorded", len(list))
	}
	for _, d := range list {
		whole := x.call(t, "operator", "GET", "/deliveries/"+d.ID, nil)
		if strings.Contains(string(whole.body), "canary") || !strings.HasPrefix(d.Reason, "invalid_input: ") || len(d.Reason) < 30 {
			t.Errorf("recorded %s", whole.body)
		}
	}
}
