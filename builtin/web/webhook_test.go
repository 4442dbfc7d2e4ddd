package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tandem/builtin/web"
	"tandem/engine"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
)

// fakeCallbacks gives away addresses that hold the nodetest.Canary.
func fakeCallbacks(given *[]web.Callback) web.Callbacks {
	return func(c web.Callback) (string, error) {
		*given = append(*given, c)
		return "https://tandem.example/callbacks/" + nodetest.Canary, nil
	}
}

func TestWebhookCall_Sends(t *testing.T) {
	t.Parallel()
	r := newServiceRig(t, "ACTION.WEBHOOK_CALL", nil, func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		switch req.URL.Path {
		case "/text":
			_, _ = io.WriteString(w, "taken, thanks")
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.WriteHeader(http.StatusAccepted)
			_, _ = fmt.Fprintf(w, `{"method": %q, "uri": %q, "body": %q, "auth": %q, "own": %q}`, req.Method, req.URL.RequestURI(), body, req.Header.Get("Authorization"), req.Header.Get("X-Own"))
		}
	})
	r.credentialType, r.credential = "http_auth", `{"scheme": "bearer", "token": "t0ken"}`
	for name, c := range map[string]struct{ config, input, want string }{
		"Input":   {`{"url": "$URL/a"}`, `{"n": 1.50}`, `{"status_code": 202, "response": {"method": "POST", "body": "{\"n\": 1.50}"}, "callback": null}`},
		"Payload": {`{"url": "$URL/a", "method": "put", "payload": [1, "x"], "headers": {"X-Own": "o"}, "credential_id": "c"}`, `{}`, `{"response": {"method": "PUT", "body": "[1, \"x\"]", "auth": "Bearer t0ken", "own": "o"}}`},
		"Get":     {`{"url": "$URL/a?x=1", "method": "GET"}`, `{"n": 1, "list": [1], "none": null, "t": "a b"}`, `{"response": {"method": "GET", "uri": "/a?x=1&n=1&list=%5B1%5D&t=a+b", "body": ""}}`},
		"Text":    {`{"url": "$URL/text"}`, `{}`, `{"status_code": 200, "response": "taken, thanks"}`},
		"Nothing": {`{"url": "$URL/none"}`, `{}`, `{"status_code": 204, "response": null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, d := range nodetest.Differences("result", nodetest.Value(t, c.want), nodetest.Value(t, r.result(t, c.config, c.input))) {
				t.Error(d)
			}
		})
	}
}

func TestWebhookCall_Fails(t *testing.T) {
	t.Parallel()
	var given []web.Callback
	var calls atomic.Int32
	r := newServiceRig(t, "ACTION.WEBHOOK_CALL", fakeCallbacks(&given), func(w http.ResponseWriter, req *http.Request) {
		calls.Add(1)
		if req.URL.Path == "/drop" {
			panic(http.ErrAbortHandler)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(body) // repeats what it was sent
	})
	for name, c := range map[string]struct {
		config, input string
		code          fault.Code
		part          string
		calls         int32
	}{
		"Dropped":   {`{"url": "$URL/drop", "wait_for_callback": true}`, `{}`, fault.OutcomeUnknown, "not known", 1},
		"Answered":  {`{"url": "$URL/sick", "wait_for_callback": true}`, `{}`, fault.RemoteError, "500", 1},
		"Private":   {`{"url": "http://10.0.0.1/", "wait_for_callback": true}`, `{}`, fault.BlockedAddress, "10.0.0.1", 0},
		"NoObject":  {`{"url": "$URL/x", "wait_for_callback": true, "payload": [1]}`, `{}`, fault.InvalidConfig, "must be an object", 0},
		"BadHeader": {`{"url": "$URL/x", "headers": {"Host": "x"}}`, `{}`, fault.InvalidConfig, "Host", 0},
	} {
		t.Run(name, func(t *testing.T) {
			calls.Store(0)
			_, err := r.run(c.config, c.input)
			nodetest.WantError(t, err, c.code, c.part)
			if calls.Load() != c.calls {
				t.Errorf("%d calls", calls.Load())
			}
			if shown := fmt.Sprintf("%+v %v", fault.From(err), r.said); strings.Contains(shown, nodetest.Canary) {
				t.Errorf("the address of the call back is told: %s", shown)
			}
		})
	}
	t.Run("NobodyListens", func(t *testing.T) {
		_, err := kinds().Run(t, "ACTION.WEBHOOK_CALL", nodetest.NewCall(t, `{"url": "https://a.example", "wait_for_callback": true}`, ""))
		nodetest.WantError(t, err, fault.Unsupported, "tandem serve")
	})
}

func TestWebhookCall_Waits(t *testing.T) {
	t.Parallel()
	var given []web.Callback
	r := newServiceRig(t, "ACTION.WEBHOOK_CALL", fakeCallbacks(&given), func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Echo", req.URL.RawQuery)
		if _, err := io.Copy(w, req.Body); err != nil {
			t.Error(err)
		}
	})
	for _, method := range []string{"POST", "GET"} {
		call := r.newCall(`{"url": "$URL", "method": "`+method+`", "wait_for_callback": true, "callback_timeout_seconds": 60, "payload": "{\"a\": 1, \"callback_url\": \"mine\"}"}`, `{}`)
		call.Generation = 2
		out, err := r.kind.Run(context.Background(), call)
		if err != nil {
			t.Fatal(err)
		}
		wait, ok := out.(node.Wait)
		if !ok || wait.Signal != "callback.2" || !wait.Until.Equal(nodetest.Start().Add(61*time.Second)) {
			t.Fatalf("%#v", out)
		}
		c := given[len(given)-1]
		if want := (web.Callback{Workspace: "acme", Execution: "exec_1", Activation: "n", Generation: 2, Signal: "callback.2", Expires: nodetest.Start().Add(time.Minute).UnixMilli()}); c != want {
			t.Errorf("got %+v", c)
		}
		if shown := fmt.Sprint(string(wait.Memo), r.said); strings.Contains(shown, nodetest.Canary) || strings.Contains(shown, "mine") {
			t.Errorf("the address of the call back is told: %s", shown)
		}
		woken := func(w node.Wake, connected bool) (node.Outcome, error) {
			again := *call
			again.Wake, again.Memo, again.Connected = &w, wait.Memo, func(string) bool { return connected }
			return r.kind.Run(context.Background(), &again)
		}
		out, err = woken(node.Wake{By: engine.WakeSignal, Payload: json.RawMessage(`{"ok":true}`)}, true)
		if err != nil || !strings.Contains(string(out.(node.Done)["result"]), `"callback":{"ok":true}`) {
			t.Errorf("%v %v", out, err)
		}
		out, err = woken(node.Wake{By: engine.WakeTimer}, true)
		if err != nil || !strings.Contains(string(out.(node.Done)["timeout"]), `"callback":null`) {
			t.Errorf("%v %v", out, err)
		}
		_, err = woken(node.Wake{By: engine.WakeTimer}, false)
		nodetest.WantError(t, err, fault.Timeout, "did not call back within 60 s")
	}
}
