package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// nested is a list of so many levels.
func nested(levels int) string {
	return strings.Repeat("[", levels) + strings.Repeat("]", levels)
}

// badValues are JSON values that nothing could keep, by name.
func badValues() map[string]string {
	return map[string]string{
		"Deep": nested(1001), "VeryDeep": nested(20_000), "NotUTF8": "\"a\xffb\"", "LongNumber": strings.Repeat("9", 1001), "HugeNumber": "-1e99999", "KeyNotUTF8": "{\"a\xff\":1}",
	}
}

// Every operation that takes JSON lets the one reader look at it first.
func TestDoors_EveryBodyIsChecked(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	raw, err := os.ReadFile("../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]json.RawMessage `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	doors := 0
	for path, operations := range document.Paths {
		for method, op := range operations {
			if op.RequestBody.Content["application/json"] == nil || !strings.HasPrefix(path, "/api/v1/") {
				continue
			}
			doors++
			address := strings.NewReplacer("{", "", "}", "").Replace(strings.TrimPrefix(path, "/api/v1"))
			for name, value := range badValues() {
				a := x.raw(t, "admin", strings.ToUpper(method), address, `{"some_field":`+value+`}`)
				f := refused(t, a, http.StatusUnprocessableEntity, "invalid_input")
				if len(f.Errors) != 1 || !strings.HasPrefix(f.Errors[0].Path, "some_field") {
					t.Errorf("%s %s, %s: %s", method, path, name, a.body)
				}
			}
		}
	}
	if doors < 25 {
		t.Errorf("only %d operations take JSON; the document is not read as it should be", doors)
	}
}

// raw sends bytes that need not be JSON.
func (x *site) raw(t testing.TB, user, method, path, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, x.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+x.tokens[user])
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	var out bytes.Buffer
	if _, err := io.Copy(&out, w.Body); err != nil {
		t.Fatal(err)
	}
	return answer{w.StatusCode, w.Header, out.Bytes()}
}

const doorFlow = `
metadata: {id: door, name: door, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: out}
`

// What is refused changes nothing: who waits goes on waiting, and takes the next one.
func TestDoors_RefuseAndGoOn(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, waitFlow)
	x.save(t, doorFlow)
	x.save(t, askOf("asks", "IN_APP_APPROVAL", `{title: "Pay?", approvers: [operator]}`))
	waiting, asking := x.waiting(t, "waits"), x.execute(t, "asks", api.ExecuteRequest{})
	x.reaches(t, asking, engine.StatusWaitingForHuman)
	done := x.execute(t, "door", api.ExecuteRequest{WaitSeconds: 30})
	question := x.read(t, asking).Questions[0].InteractionID
	before, beforeAsking := x.seq(t, waiting), x.seq(t, asking)
	for name, value := range badValues() {
		for _, c := range []struct{ path, body, field string }{
			{"/workflows/door/execute", `{"inputs":{"v":` + value + `}}`, "inputs.v"},
			{"/executions/" + waiting + "/actions", `{"action":"skip_node","node_id":"w","output":` + value + `}`, "output"},
			{"/executions/" + done + "/actions", `{"action":"fork","node_id":"out","input":{"v":` + value + `}}`, "input.v"},
			{"/executions/" + waiting + "/input", `{"node_id":"w","input_data":` + value + `}`, "input_data"},
			{"/executions/" + asking + "/input", `{"node_id":"ask","input_data":{"v":` + value + `}}`, "input_data.v"},
			{"/interactions/" + question + "/respond", `{"response_data":{"action":"approve","v":` + value + `}}`, "response_data.v"},
		} {
			a := x.raw(t, "operator", "POST", c.path, c.body)
			if f := refused(t, a, http.StatusUnprocessableEntity, "invalid_input"); len(f.Errors) != 1 || !strings.HasPrefix(f.Errors[0].Path, c.field) {
				t.Errorf("%s %s: %s", name, c.path, a.body)
			}
		}
		// The same without the API in front: what commands and other parts ask of a host.
		for _, r := range []host.Request{
			{Execution: waiting, Action: host.ActionSkip, Node: "w", Value: json.RawMessage(value)},
			{Execution: waiting, Action: host.ActionSignal, Node: "w", Signal: "go", Value: json.RawMessage(value)},
			{Execution: waiting, Action: host.ActionSignal, Node: "w", Signal: "go", Value: json.RawMessage(value), Dedup: name},
		} {
			if _, err := x.host.Act(t.Context(), user, r); err == nil || !strings.Contains(err.Error(), "invalid_input") {
				t.Errorf("%s, %s: %v", name, r.Action, err)
			}
		}
		if _, err := x.host.Fork(t.Context(), user, host.ForkRequest{Source: done, ID: "fork", Node: "out", Input: json.RawMessage(value)}); err == nil || !strings.Contains(err.Error(), "input") {
			t.Errorf("%s, fork: %v", name, err)
		}
		if _, err := x.Start(t.Context(), user, "door", json.RawMessage(`{"v":`+value+`}`)); err == nil || !strings.Contains(err.Error(), "inputs.v") {
			t.Errorf("%s, start: %v", name, err)
		}
	}
	if n, m := x.seq(t, waiting), x.seq(t, asking); n != before || m != beforeAsking {
		t.Errorf("the journals went from %d and %d to %d and %d", before, beforeAsking, n, m)
	}
	want[api.ActionResponse](t, x.raw(t, "operator", "POST", "/executions/"+waiting+"/actions", `{"action":"skip_node","node_id":"w","output":{"completed":`+nested(900)+`}}`), http.StatusOK)
	want[api.Interaction](t, x.raw(t, "operator", "POST", "/interactions/"+question+"/respond", `{"response_data":{"action":"approve"}}`), http.StatusOK)
	x.reaches(t, waiting, engine.StatusSuccess)
	x.reaches(t, asking, engine.StatusSuccess)
}

// What services and code answer with fails the node or is its output; either way the execution ends.
func TestDoors_FromInside(t *testing.T) {
	t.Parallel()
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"v":%s}`, badValues()[strings.Trim(r.URL.Path, "/")])
	}))
	defer remote.Close()
	x := openSite(t)
	x.save(t, strings.Replace(callFlow("fetch", "GET", remote.URL+"/{{name}}"), ", input_params: {who: ann}", "", 1))
	x.save(t, `
metadata: {id: deeper, name: deeper, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: out, conversion_function: "function convert(d) { let v = []; for (let i = 0; i < 1500; i++) v = [v]; return {v: v} }"}
`)
	for name := range badValues() {
		id := x.execute(t, "fetch", api.ExecuteRequest{Inputs: json.RawMessage(`{"name":"` + name + `"}`), WaitSeconds: 30})
		if e := x.read(t, id); !engine.Status(e.Status).Final() || e.Status == "ERROR" && (e.Error == nil || e.Error.ErrorNodeID != "call" || e.Error.ErrorCode == "unreadable") {
			t.Errorf("%s: %s %+v", name, e.Status, e.Error)
		}
	}
	id := x.execute(t, "deeper", api.ExecuteRequest{WaitSeconds: 30})
	if e := x.read(t, id); e.Status != "ERROR" || e.Error.ErrorCode != "conversion_failed" || !strings.Contains(e.Error.ErrorMessage, "levels deep") {
		t.Errorf("code: %s %+v", e.Status, e.Error)
	}
}

// anyJSON writes a value at random: mostly JSON, sometimes with a byte of it changed.
func anyJSON(r *rand.Rand) string {
	var value func(depth int) string
	value = func(depth int) string {
		switch n := r.IntN(9); {
		case n == 0:
			return nested(1 + r.IntN(1100))
		case n == 1:
			return fmt.Sprintf("%q", string(rune(r.IntN(0x300))))
		case n == 2:
			return strings.Repeat("7", 1+r.IntN(1010))
		case n == 3 && depth < 4:
			return `[` + value(depth+1) + `,` + value(depth+1) + `]`
		case n <= 6 && depth < 4:
			return `{"k` + fmt.Sprint(r.IntN(3)) + `":` + value(depth+1) + `,"l":` + value(depth+1) + `}`
		}
		return []string{"null", "true", "-0", "1e400", `""`, `"\ud800"`, `"\u0000"`}[r.IntN(7)]
	}
	out := []byte(`{"v":` + value(0) + `}`)
	if r.IntN(3) == 0 {
		out[r.IntN(len(out))] = byte(r.IntN(256))
	}
	return string(out)
}

// Whatever comes through a door is refused, or leads to an execution that ends.
func TestDoors_AnythingEnds(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, waitFlow)
	x.save(t, doorFlow)
	x.save(t, askOf("asks", "IN_APP_APPROVAL", `{title: "Pay?", approvers: [operator]}`))
	done := x.execute(t, "door", api.ExecuteRequest{WaitSeconds: 30})
	taken := map[string]int{}
	for seed := range uint64(60) {
		value := anyJSON(rand.New(rand.NewPCG(seed, 1)))
		check := func(door string, a answer, execution string) {
			t.Helper()
			if a.status >= 300 {
				if a.status < 400 || a.status >= 500 {
					t.Fatalf("seed %d, %s: %d %s for %.200q", seed, door, a.status, a.body, value)
				}
				return
			}
			taken[door]++
			if execution == "" {
				var started struct {
					ID string `json:"execution_id"`
				}
				if err := json.Unmarshal(a.body, &started); err != nil {
					t.Fatal(err)
				}
				execution = started.ID
			}
			if _, err := x.Wait(t.Context(), user, execution); err != nil {
				t.Fatalf("seed %d, %s: %v for %.200q", seed, door, err, value)
			}
			if e := x.read(t, execution); !engine.Status(e.Status).Final() || e.Error != nil && e.Error.ErrorCode == "unreadable" {
				t.Fatalf("seed %d, %s: %s %+v for %.200q", seed, door, e.Status, e.Error, value)
			}
		}
		check("execute", x.raw(t, "operator", "POST", "/workflows/door/execute", `{"inputs":`+value+`}`), "")
		check("fork", x.raw(t, "operator", "POST", "/executions/"+done+"/actions", `{"action":"fork","node_id":"out","input":`+value+`}`), "")
		if seed%6 > 0 {
			continue
		}
		skipped, signaled := x.waiting(t, "waits"), x.waiting(t, "waits")
		check("skip", x.raw(t, "operator", "POST", "/executions/"+skipped+"/actions", `{"action":"skip_node","node_id":"w","output":{"completed":`+value+`}}`), skipped)
		check("signal", x.raw(t, "operator", "POST", "/executions/"+signaled+"/input", `{"node_id":"w","input_data":{"signal":"go","payload":`+value+`}}`), signaled)
		asked := x.execute(t, "asks", api.ExecuteRequest{})
		x.reaches(t, asked, engine.StatusWaitingForHuman)
		question := x.read(t, asked).Questions[0].InteractionID
		check("respond", x.raw(t, "operator", "POST", "/interactions/"+question+"/respond", `{"response_data":{"action":"approve","notes":"n","user_id":`+value+`}}`), asked)
	}
	for _, door := range []string{"execute", "fork", "skip", "signal"} {
		if taken[door] == 0 {
			t.Errorf("nothing came through the door %q: %v", door, taken)
		}
	}
}

// A request that an older version had taken into its inbox, and that no reader takes, is refused there; a child's end is
// learned of all the same.
func TestDoors_InboxFromBefore(t *testing.T) {
	t.Parallel()
	i := openInstance(t, sqlitetest.Dir(t))
	defer i.Close()
	i.saveText(t, waitFlow)
	id := i.startText(t, "waits", `{}`)
	x := &site{Instance: i}
	x.reaches(t, id, engine.StatusWaiting)
	body, err := json.Marshal(host.Request{Node: "w", Signal: "go"})
	if err != nil {
		t.Fatal(err)
	}
	body = append(body[:len(body)-1], `,"value":`+nested(1500)+`}`...)
	if !bytes.Contains(body, []byte(`"node"`)) {
		t.Fatalf("a request is written as %.100s", body)
	}
	p := identity.System("default")
	if _, _, err := i.stores.Inbox.Deliver(t.Context(), p, store.InboxItem{Execution: id, Kind: string(host.ActionSignal), Dedup: "before", Time: 1, Body: body}); err != nil {
		t.Fatal(err)
	}
	if status, err := i.host.Act(t.Context(), user, host.Request{Execution: id, Action: host.ActionLook}); err != nil || status != engine.StatusWaiting {
		t.Fatalf("it is %s, %v; want that it waits", status, err)
	}
	if _, err := i.host.Act(t.Context(), user, host.Request{Execution: id, Action: host.ActionSignal, Node: "w", Signal: "go"}); err != nil {
		t.Fatal(err)
	}
	i.ends(t, id, engine.StatusSuccess)
}

// What somebody sends to a node leaves room for what the node lays around it: it is refused at the door, or it can be handed on.
func TestDoors_RoomForWhatIsLaidAround(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, flowOf("room", `  - {id: wait, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go}}
  - {id: after, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
`, "  - {from_node: start, to_node: wait}\n  - {from_node: wait, to_node: after, output_key: completed}\n"))
	id := x.execute(t, "room", api.ExecuteRequest{})
	send := func(levels int) answer {
		return x.raw(t, "operator", "POST", "/executions/"+id+"/input", `{"node_id":"wait","input_data":{"a":`+nested(levels)+`}}`)
	}
	for _, levels := range []int{985, 996, 997, 998} {
		refused(t, send(levels), http.StatusUnprocessableEntity, "invalid_input")
	}
	want[api.ActionResponse](t, send(979), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
}
