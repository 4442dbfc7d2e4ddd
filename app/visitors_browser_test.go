package app

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/client"
	"tandem/loopback"
	"tandem/store/sqlite/sqlitetest"
)

// killable is a server in a process of its own, which can be killed and started again on the same data at the same address.
type killable struct {
	dir, addr string
	cmd       *exec.Cmd
}

func newKillable(t *testing.T) *killable {
	t.Helper()
	k := &killable{dir: sqlitetest.Dir(t), addr: loopback.FreeAddress(t)}
	k.start(t)
	t.Cleanup(func() { k.kill(t) })
	return k
}

func (k *killable) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestCrash_Process$")
	cmd.Env = append(os.Environ(), crashDir+"="+k.dir, crashAddr+"="+k.addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "serving ") {
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // it ends with the process
	k.cmd = cmd
}

// kill ends the process as nothing else does: it learns nothing of it.
func (k *killable) kill(t *testing.T) {
	t.Helper()
	if err := k.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = k.cmd.Wait() // it was killed
}

func (k *killable) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: "http://" + k.addr, Token: crashToken})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (k *killable) deploy(t *testing.T, id string, text []byte) {
	t.Helper()
	c := k.client(t)
	if _, err := c.CreateWorkflow(t.Context(), text, true); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Deploy(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// gated is a model that says the second half of its answer when it is let.
func gated(t *testing.T) (url string, release func()) {
	t.Helper()
	gate := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(delta map[string]any, finish any) {
			raw, err := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(w, "data: %s\n\n", raw)
			w.(http.Flusher).Flush()
		}
		send(map[string]any{"role": "assistant", "content": "one two"}, nil)
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
		send(map[string]any{"content": " three <i>four</i>"}, nil)
		send(map[string]any{}, "stop")
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", func() { close(gate) }
}

// streamFlow is a chat that answers with a model.
const streamFlow = `
metadata: {id: stream, name: stream, description: d}
nodes:
  - {id: chat, name: chat, description: d, type: TRIGGER, subtype: CHAT, configurations: {title: Stream}}
  - {id: talk, name: talk, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: gated, stream: true, to_user: true, user_prompt: "{{chat.outputs.message}}"}}
connections:
  - {from_node: chat, to_node: talk}
`

// runFlow is a workflow that people start by hand, with a form.
const runFlow = `
metadata: {id: run_me, name: Run me, description: d}
nodes:
  - {id: start, name: start, description: d, type: TRIGGER, subtype: MANUAL, configurations: {description: For those who pay., input_schema: {type: object, required: [amount], properties: {amount: {type: number, title: Amount}, note: {type: string, title: Note}}}}}
  - {id: end, name: end, description: d, type: ACTION, subtype: DATA_FORMATTING, configurations: {format_type: template, template: "amount: {{start.outputs.amount}}"}}
connections:
  - {from_node: start, to_node: end}
`

// The pages of visitors are driven in a real browser: a form with a file, in both languages and without scripts, and chats whose server is
// killed in the middle.
func TestVisitorsBrowser(t *testing.T) {
	t.Parallel()
	chromium, modules := browserTools(t)
	k := newKillable(t)
	for _, id := range []string{"chat_shop", "form_leave"} {
		k.deploy(t, id, fileText(t, filepath.Join("..", "examples", id+".yaml")))
	}
	model, release := gated(t)
	c := k.client(t)
	if _, err := c.PutProfile(t.Context(), "gated", []byte(`{"provider":"openai","model":"m","base_url":"`+model+`"}`)); err != nil {
		t.Fatal(err)
	}
	k.deploy(t, "stream", []byte(streamFlow))
	k.deploy(t, "run_me", []byte(runFlow))

	script := exec.CommandContext(t.Context(), "node", filepath.Join(browserFiles, "visit.mjs"), modules)
	script.Stderr = os.Stderr
	in, err := script.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := script.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	tell := func(value any) {
		raw, err := json.Marshal(value)
		if err == nil {
			_, err = in.Write(append(raw, '\n'))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tell(map[string]string{"chromium": chromium, "url": "http://" + k.addr, "files": t.TempDir(), "shots": os.Getenv(shotsDir), "token": crashToken})
	checks := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := gjson.ParseBytes(lines.Bytes())
		switch line.Get("do").Str {
		case "kill":
			k.kill(t)
			tell("killed")
		case "start":
			k.start(t)
			tell("started")
		case "release":
			release()
			tell("released")
		default:
			checks++
			t.Logf("%s took %.1f s", line.Get("name").Str, line.Get("seconds").Num)
			if wrong := line.Get("error").Str; wrong != "" || line.Get("name").Str == "" {
				t.Errorf("%s: %s", line.Get("name").Str, wrong)
			}
		}
	}
	if err := script.Wait(); err != nil {
		t.Error(err)
	}
	same(t, checks, 6)
	x := k.seen(t, "form_leave")
	same(t, len(x), 1)
	sent := gjson.ParseBytes(x[0])
	for path, want := range map[string]string{"fields.name": "Zoë <b>王</b>", "fields.days": "3", "fields.inform": `["team","customers"]`, "fields.half": "false", "fields.proof.name": "proof.txt", "fields.proof.size": "10"} {
		same(t, sent.Get(path).String(), want)
	}
	messages := map[string]int{}
	for _, raw := range k.seen(t, "chat_shop") {
		messages[gjson.GetBytes(raw, "message").Str]++
	}
	same(t, fmt.Sprint(messages["I want to return a drill"], messages["Do you sell paint?"]), "1 1")
}

// seen are the payloads that have started executions of a workflow.
func (k *killable) seen(t *testing.T, workflow string) (payloads []json.RawMessage) {
	t.Helper()
	c := k.client(t)
	list, err := c.Deliveries(t.Context(), client.DeliveryQuery{WorkflowID: workflow, Decisions: []string{"started"}, PageSize: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list.Deliveries {
		one, err := c.Delivery(t.Context(), d.ID)
		if err != nil {
			t.Fatal(err)
		}
		payloads = append(payloads, one.Payload)
	}
	return payloads
}
