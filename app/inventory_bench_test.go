package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/llm"
	"tandem/store"
)

// workbench runs single nodes of an inventory: on one site, each run with services, profiles and credentials of its own. These names in the
// configurations and the input stand for what a run has: $P and $Q are profiles of the kind's provider, $C and $D credentials for it, $U
// an address that can be called, $KEY the run itself; further credentials are those of runCredentials.
type workbench struct {
	*site
	service *httptest.Server
	runs    atomic.Int64
	// strict leaves out what the record of a question repeats of its configurations.
	strict bool

	mu    sync.Mutex
	seen  map[string][]string // what the services were asked, by run
	scene map[string]string
	met   map[string]chan struct{} // of runs whose calls wait for each other
}

// newWorkbench opens one. The options of its instance may be changed.
func newWorkbench(t *testing.T, change ...func(*Options)) *workbench {
	x := openSiteAs(t, func(o *Options, url string) {
		o.PublicURL = url
		for _, f := range change {
			f(o)
		}
	})
	w := &workbench{site: x, seen: map[string][]string{}, scene: map[string]string{}, met: map[string]chan struct{}{}}
	w.service = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.service.Close)
	return w
}

// bench is what a run is made of besides its node.
type benchRun struct {
	key string
	// provider is that of the profiles.
	provider string
	// nodes and attached are further nodes, and which of them are attached to the node; before are those that run ahead of it, in a row.
	nodes    string
	attached string
	before   []string
	// params says that the node has its input as its input_params, and not from what starts the execution.
	params bool
	// behind are connections that lead away from the node.
	behind string
	// stand are further names and what they stand for, in turns.
	stand []string
	// rest is what happens between the rest of the execution and what is told of it, and what there is to tell of that; nil: nothing.
	rest func(key, id string) string
}

// runCredentials are credentials by the name that stands for them, at being where the services of the run are.
func runCredentials(at, key string) map[string]objectStoreCredential {
	return map[string]objectStoreCredential{
		"$AUTH_A": {"http_auth", map[string]any{"scheme": "bearer", "token": "token-of-a", "allowed_hosts": []string{"127.0.0.1"}}},
		"$AUTH_B": {"http_auth", map[string]any{"scheme": "bearer", "token": "token-of-b", "allowed_hosts": []string{"127.0.0.1"}}},
		"$BUCKET": {"aws_keys", map[string]any{"access_key_id": "AKID", "secret_access_key": "c4nary-s3cret-value", "base_url": at + "/s3"}},
		"$SQL":    {"sql", map[string]any{"driver": "sqlite", "dsn": key + ".db"}},
		"$FIND":   {"search", map[string]any{"provider": "searxng", "base_url": at + "/find"}},
		"$MAPPED": {"search", map[string]any{"provider": "json", "api_key": "key-of-the-search", "base_url": at + "/find"}},
	}
}

// credentials makes those that are named in some text, and returns what stands for what.
func (w *workbench) credentials(t *testing.T, text, key string) []string {
	t.Helper()
	var stand []string
	for name, c := range runCredentials(w.service.URL+"/"+key, key) { // order does not matter: each stands for itself
		if strings.Contains(text, name) {
			body := map[string]any{"name": name + key, "type": c.kind, "data": c.data}
			stand = append(stand, name, want[api.Credential](t, w.call(t, "admin", "POST", "/credentials", body), http.StatusCreated).ID)
		}
	}
	return stand
}

// run runs a node and tells what was seen.
func (w *workbench) run(t *testing.T, kind, config string, p proof, r benchRun) string {
	t.Helper()
	r.key = fmt.Sprintf("run%06dx", w.runs.Add(1)) // all of a length, which headers tell
	w.mu.Lock()
	w.scene[r.key], w.met[r.key] = p.scene, make(chan struct{})
	w.mu.Unlock()
	for _, name := range []string{"P", "Q"} {
		if r.provider == "" || !strings.Contains(config+r.nodes+strings.Join(r.before, "")+p.scene, "$"+name) {
			continue
		}
		w.saveProfile(t, llm.Profile{ID: strings.ToLower(name) + r.key, Provider: r.provider, Model: "m", EmbeddingModel: "e", BaseURL: w.service.URL + "/" + r.key + "/" + name})
	}
	credentials := map[string]string{}
	for _, name := range []string{"C", "D"} {
		if r.provider == "" || !strings.Contains(config, "$"+name) {
			continue
		}
		body := map[string]any{"name": strings.ToLower(name) + r.key, "type": r.provider, "data": map[string]any{"api_key": "k", "base_url": w.service.URL + "/" + r.key + "/" + name}}
		credentials[name] = want[api.Credential](t, w.call(t, "admin", "POST", "/credentials", body), http.StatusCreated).ID
	}
	r.before = append(r.before, p.before...)
	stand := append(w.credentials(t, config+r.nodes+strings.Join(r.before, ""), r.key), r.stand...)
	filled := strings.NewReplacer(append(stand, "$P", "p"+r.key, "$Q", "q"+r.key, "$C", credentials["C"], "$D", credentials["D"], "$U", w.service.URL+"/"+r.key, "$KEY", r.key)...)
	input := p.input
	if input == "" {
		input = "{}"
	}
	given, params := input, ""
	if r.params {
		given, params = "{}", ", input_params: "+input
	}
	nodes, last, lines := r.nodes, "start", ""
	for i, node := range r.before {
		id := fmt.Sprintf("before%d", i+1)
		nodes += "  - {id: " + id + ", name: " + id + ", description: d, " + node + "}\n"
		lines += "  - {from_node: " + last + ", to_node: " + id + "}\n"
		last = id
	}
	text := fmt.Sprintf(`
metadata: {id: %s, name: n, description: d}
nodes:
  - {id: start, name: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: n, name: n, description: d, %s, attached_nodes: [%s]%s}
%s
connections:
%s  - {from_node: %s, to_node: n}
%s`, r.key, nodeOf(kind, config), r.attached, params, nodes, lines, last, r.behind)
	w.save(t, filled.Replace(text))
	id := w.execute(t, r.key, api.ExecuteRequest{Inputs: json.RawMessage(filled.Replace(given))})
	heard := w.rests(t, r.key, id, p.waits)
	if r.rest != nil {
		heard += w.plain(r.key, r.rest(r.key, id))
	}
	return w.tell(t, r.key, id, p.waits) + heard
}

// putTemplates puts three templates for a kind: "one" and "two" know parameters, "fill" wants an input.
func (w *workbench) putTemplates(t *testing.T, kind, one, two string) {
	t.Helper()
	for _, made := range []store.Template{
		{ID: "one", KnownParams: json.RawMessage(one)}, {ID: "two", KnownParams: json.RawMessage(two)},
		{ID: "fill", OverrideInput: json.RawMessage(`{"type": "object", "required": ["wanted"], "properties": {"wanted": {"type": "string"}}}`)},
	} {
		made.Kind, made.Name = kind, made.ID
		if err := w.stores.Templates.Put(t.Context(), identity.System("default"), made); err != nil {
			t.Fatal(err)
		}
	}
}

// nodeOf is the middle of a node in a workflow.
func nodeOf(kind, config string) string {
	typ, subtype, _ := strings.Cut(kind, ".")
	return fmt.Sprintf("type: %s, subtype: %s, configurations: %s", typ, subtype, config)
}

// rests waits until an execution has ended or waits for somebody, and returns what was told while it ran. In the scene "watched" the
// services answer only when somebody listens.
func (w *workbench) rests(t *testing.T, key, id string, waits bool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	sub := w.hub.Subscribe(host.Ref{Workspace: "default", Execution: id})
	defer sub.Close()
	w.mu.Lock()
	met, watched := w.met[key], w.scene[key] == "watched"
	w.mu.Unlock()
	if watched {
		close(met)
	}
	heard := ""
	for {
		e, err := w.stores.Executions.Get(ctx, identity.System("default"), id)
		if err != nil {
			t.Fatal(err)
		}
		rests := e.Status.Final() || e.Status == engine.StatusWaitingForHuman || waits && e.Status == engine.StatusWaiting
		list, more, behind := sub.Next()
		for _, n := range list {
			if n.Output != nil && watched {
				heard += "heard " + n.Output.Text + "\n"
			}
		}
		if rests {
			return heard
		}
		if len(list) > 0 || behind {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("execution %q is %s and does not rest: %s", id, e.Status, e.Error)
		}
	}
}

// children are the executions that one has started.
func (w *workbench) children(t *testing.T, id string) []store.Execution {
	t.Helper()
	page, err := w.stores.Executions.List(t.Context(), identity.System("default"), store.ExecutionQuery{Parent: id})
	if err != nil {
		t.Fatal(err)
	}
	return page.Executions
}

// chance is what differs between two runs of the same.
var chance = regexp.MustCompile(`"(?:execution_time|response_time|duration_ms|timestamp|created|updated|updated_at|trigger_time|arguments_hash|expires_at|expires)":(?:\d+|"[^"]*")|127\.0\.0\.1:\d+|tandem[A-Z2-7]{26}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|"(?:timeout_at|created_at|message_id)":\d+|REPLY-[0-9a-f]+|since it was asked: \d+|/callbacks/[\w-]+|/respond/[\w-]+|\b(?:exec|ep|ent|mem|task|int|act|call|cred)_[A-Za-z0-9]+|"(?:id|document_id|execution_id|task_id)":"[^"]*"|\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// plain is a text without what differs between two runs of the same.
func (w *workbench) plain(key, text string) string {
	return chance.ReplaceAllString(strings.ReplaceAll(text, key, "RUN"), "~")
}

// waitsFor is what an execution waits for, as its journal says: for how many seconds from the record or from the end of the wait before it,
// and for which signal. What is far away is a point in time.
func (w *workbench) waitsFor(t *testing.T, id string) string {
	t.Helper()
	var b strings.Builder
	last := map[engine.ActivationID]int64{}
	tell := func(what string, a engine.ActivationID, now, until int64, signal string) {
		span, seconds := "soon", (until-max(now, last[a])+5000)/10_000*10 // what is recorded a little later is the same
		switch {
		case until == 0:
			span = "for ever"
		case until-now > 365*24*time.Hour.Milliseconds():
			span = "until " + time.UnixMilli(until).UTC().Format(time.DateTime)
		case seconds > 0:
			span = fmt.Sprintf("%d s", seconds)
		case last[a] > 0:
			span = fmt.Sprintf("%d s after the last", (until-last[a])/1000)
		}
		last[a] = until
		fmt.Fprintln(&b, what, a, span, signal)
	}
	for row, err := range w.source.Rows(t.Context(), identity.System("default"), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, fact := range row.Facts {
			switch f := fact.(type) {
			case engine.NodeSuspended:
				tell("waits", f.Activation, row.Time, f.Until, f.Signal)
			case engine.ScopeOpened:
				tell("opens", f.Activation, row.Time, f.Until, "")
			}
		}
	}
	return b.String()
}

// tell is everything that was seen of a run.
func (w *workbench) tell(t *testing.T, key, id string, waits bool) string {
	t.Helper()
	e := w.read(t, id)
	var b strings.Builder
	w.mu.Lock()
	for _, line := range w.seen[key] {
		if !w.strict || !strings.Contains(line, `"event":"completed"`) { // it may come later
			fmt.Fprintln(&b, "sent", line)
		}
	}
	w.mu.Unlock()
	n := e.NodeExecutions["n"]
	fmt.Fprintln(&b, "status", e.Status, n.Status, n.CreditsConsumed)
	for _, name := range slices.Sorted(maps.Keys(n.OutputData)) {
		fmt.Fprintln(&b, "output", name, string(n.OutputData[name]))
	}
	for _, other := range slices.Sorted(maps.Keys(e.NodeExecutions)) {
		if f := e.NodeExecutions[other].Error; f != nil {
			fmt.Fprintln(&b, "error", f.ErrorCode, f.ErrorMessage)
		}
	}
	if e.Error != nil {
		fmt.Fprintln(&b, "failed", e.Error.ErrorCode, e.Error.ErrorMessage)
	}
	for _, q := range e.Questions {
		if !w.strict {
			fmt.Fprintln(&b, "asked", q.Purpose, q.Title, string(q.Arguments))
		}
	}
	if e.FullAnswer != "" {
		fmt.Fprintln(&b, "answer", e.FullAnswer)
	}
	if waits {
		b.WriteString(w.waitsFor(t, id))
	}
	if !w.strict {
		b.WriteString(w.askedOfPeople(t, id))
	}
	for _, c := range w.children(t, id) {
		made, err := w.stores.Workflows.Revision(t.Context(), identity.System("default"), c.WorkflowID, 1)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, "child", c.Status, c.Conversation, string(made.Definition))
		for _, q := range w.read(t, c.ID).Questions {
			fmt.Fprintln(&b, "child asked", q.Purpose, q.Title)
		}
	}
	logs := gjson.ParseBytes(w.call(t, "viewer", "GET", "/executions/"+id+"/logs", nil).body)
	for _, line := range logs.Get("lines").Array() {
		if line.Get("level").Str == "WARN" {
			fmt.Fprintln(&b, "warned", line.Get("message").Str)
		}
	}
	return w.plain(key, b.String())
}

// serve is every service that a node calls: the models of three providers, and pages.
func (w *workbench) serve(rw http.ResponseWriter, r *http.Request) {
	rw.Header()["Date"] = nil // it would differ from run to run
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	key, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	w.mu.Lock()
	w.seen[key] = append(w.seen[key], fmt.Sprint(r.Method, " /", rest, "?", r.URL.RawQuery, " ", ownHeaders(r.Header), " ", string(body)))
	scene, met, first := w.scene[key], w.met[key], len(w.seen[key]) == 1
	w.mu.Unlock()
	which, path, _ := strings.Cut(rest, "/")
	switch {
	case which == "meet":
		w.meet(rw, r, key, met)
	case which != "P" && which != "Q" && which != "C" && which != "D":
		servePage(rw, r, rest, w.service.URL+"/"+key, first)
	case scene == "watched":
		<-met
		sayAs(rw, path, body, scene, "")
	case scene == "slow":
		<-r.Context().Done()
	case scene == "refuses" && which == "P":
		http.Error(rw, `{"error":{"message":"no","type":"invalid_request_error"}}`, http.StatusUnauthorized)
	case scene == "flaky" && first:
		http.Error(rw, `{"error":{"message":"later","type":"x"}}`, http.StatusInternalServerError)
	case strings.Contains(path, "embed"):
		w.embed(rw, body)
	default:
		sayAs(rw, path, body, scene, w.service.URL+"/"+key)
	}
}

// meet says whether two calls were under way at the same time.
func (w *workbench) meet(rw http.ResponseWriter, r *http.Request, key string, met chan struct{}) {
	w.mu.Lock()
	calls := 0
	for _, line := range w.seen[key] {
		if strings.Contains(line, "/meet") {
			calls++
		}
	}
	w.mu.Unlock()
	said := "together"
	if calls == 2 {
		select {
		case met <- struct{}{}:
		default: // the first one has left
			said = "alone"
		}
	} else {
		select {
		case <-met:
		case <-time.After(time.Second): // the other call comes only after this one has ended
			said = "alone"
		case <-r.Context().Done():
		}
	}
	fmt.Fprint(rw, said)
}

func (w *workbench) embed(rw http.ResponseWriter, body []byte) {
	rw.Header().Set("Content-Type", "application/json")
	var data []string
	for i, text := range gjson.GetBytes(body, "input").Array() {
		v := make([]float32, 4)
		v[len(text.Str)%4], v[3] = 1, 0.5
		raw, err := json.Marshal(v)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, raw))
	}
	fmt.Fprintf(rw, `{"object":"list","model":"e","data":[%s],"usage":{"prompt_tokens":1,"total_tokens":1}}`, strings.Join(data, ","))
}

// saidText is what models answer.
const saidText = `{"word":"hi"}`

// sayAs answers a completion in the words of the provider whose address was called. The scene "replies" is followed by what is said. In the
// scenes "tool" and "pair" the model calls the first tool that it is offered, once or twice, until it has the results.
func sayAs(rw http.ResponseWriter, path string, body []byte, scene, address string) {
	all := gjson.ParseBytes(body)
	var name string
	for _, at := range []string{"tools.0.function.name", "tools.0.name", "tools.0.functionDeclarations.0.name"} {
		if name == "" {
			name = all.Get(at).String()
		}
	}
	answered := strings.Contains(string(body), `"role":"tool"`) || strings.Contains(string(body), "tool_result") || strings.Contains(string(body), "functionResponse")
	calls := 0
	if name != "" && !answered {
		calls = map[string]int{"tool": 1, "pair": 2}[scene]
	}
	args := "{}"
	if strings.Contains(name, "http_request") {
		args = fmt.Sprintf(`{"url":%q}`, address+"/meet")
	}
	text := saidText
	if said, ok := strings.CutPrefix(scene, "replies "); ok {
		text = said
	}
	switch scene {
	case "words":
		text = "Hi there."
	case "sql":
		text = `{"sql":"select name, n from item"}`
	}
	rw.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasPrefix(path, "v1/messages"):
		sayAnthropic(rw, all.Get("stream").Bool(), text, name, args, calls)
	case strings.Contains(path, "enerateContent"):
		parts := []string{fmt.Sprintf(`{"text":%q}`, text)}
		if calls > 0 {
			parts = slices.Repeat([]string{fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, name, args)}, calls)
		}
		answer := fmt.Sprintf(`{"candidates":[{"index":0,"content":{"role":"model","parts":[%s]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"m"}`, strings.Join(parts, ","))
		if strings.Contains(path, "streamGenerateContent") {
			rw.Header().Set("Content-Type", "text/event-stream")
			answer = "data: " + answer + "\n\n"
		}
		fmt.Fprint(rw, answer)
	default:
		message, finish := fmt.Sprintf(`{"role":"assistant","content":%q}`, text), "stop"
		if calls > 0 {
			var list []string
			for i := range calls {
				list = append(list, fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":%q,"arguments":%q}}`, i, name, args))
			}
			message, finish = `{"role":"assistant","content":null,"tool_calls":[`+strings.Join(list, ",")+`]}`, "tool_calls"
		}
		fmt.Fprintf(rw, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":%s,"finish_reason":%q}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, message, finish)
	}
}

func sayAnthropic(rw http.ResponseWriter, stream bool, text, name, args string, calls int) {
	if stream {
		rw.Header().Set("Content-Type", "text/event-stream")
		event := func(kind, fields string) {
			fmt.Fprintf(rw, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fields)
		}
		event("message_start", `,"message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
		stop := "end_turn"
		if calls == 0 {
			event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
			event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":%q}`, text))
			event("content_block_stop", `,"index":0`)
		}
		for i := range calls {
			stop = "tool_use"
			event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":{"type":"tool_use","id":"c%d","name":%q,"input":{}}`, i, i, name))
			event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":"input_json_delta","partial_json":%q}`, i, args))
			event("content_block_stop", fmt.Sprintf(`,"index":%d`, i))
		}
		event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q},"usage":{"output_tokens":1}`, stop))
		event("message_stop", "")
		return
	}
	content, stop := fmt.Sprintf(`{"type":"text","text":%q}`, text), "end_turn"
	if calls > 0 {
		var list []string
		for i := range calls {
			list = append(list, fmt.Sprintf(`{"type":"tool_use","id":"c%d","name":%q,"input":%s}`, i, name, args))
		}
		content, stop = strings.Join(list, ","), "tool_use"
	}
	fmt.Fprintf(rw, `{"id":"m","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":%q,"usage":{"input_tokens":1,"output_tokens":1}}`, content, stop)
}
