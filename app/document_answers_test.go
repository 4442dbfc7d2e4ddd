package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/client"
	"tandem/engine"
	"tandem/identity"
	"tandem/llm"
	"tandem/loopback"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// embeddingService speaks the protocol of embeddings, and hands on what else it is asked. Texts with the same words are alike.
type embeddingService struct {
	*httptest.Server
	chat *modelService

	mu sync.Mutex
	// texts are what was embedded, call by call.
	texts [][]string
	// reached is closed at the first call, which is never answered.
	reached chan struct{}
}

func newEmbeddingService(t *testing.T, say func(r chatRequest, gone <-chan struct{}) chatReply) *embeddingService {
	t.Helper()
	s := &embeddingService{chat: newModelService(t, say), reached: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *embeddingService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/embeddings") {
		s.chat.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var texts []string
	data := []map[string]any{}
	for i, text := range gjson.GetBytes(body, "input").Array() {
		texts = append(texts, text.Str)
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": llm.HashEmbed(text.Str)})
	}
	s.mu.Lock()
	s.texts = append(s.texts, texts)
	first := len(s.texts) == 1
	s.mu.Unlock()
	if first {
		close(s.reached)
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	raw, err := json.Marshal(map[string]any{"object": "list", "model": gjson.GetBytes(body, "model").Str, "data": data, "usage": map[string]int{"prompt_tokens": 1, "total_tokens": 1}})
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(raw)
}

const learnFlow = `
metadata: {id: learn, name: learn, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: WEBHOOK, configurations: {webhook_path: /file}}
  - {id: load, description: d, type: ACTION, subtype: DOCUMENT_LOADER, input_params: {file: "{{start.outputs.files[0]}}"}}
  - {id: split, description: d, type: ACTION, subtype: TEXT_SPLITTER, configurations: {chunk_size: 60, overlap: 0}}
  - id: keep
    description: d
    type: MEMORY
    subtype: VECTOR_DATABASE
    configurations: {session_id: handbook, operation: store, embedding_profile: m}
    input_params: {items: "{{split.outputs.chunks}}", replaces: {document: "{{split.outputs.document}}"}}
connections:
  - {from_node: start, to_node: load}
  - {from_node: load, to_node: split}
  - {from_node: split, to_node: keep}
`

const bookFlow = `
metadata: {id: ask, name: ask, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: WEBHOOK, configurations: {webhook_path: /question}}
  - {id: agent, description: d, type: AI_AGENT, subtype: LLM, attached_nodes: [book], configurations: {profileId: m, user_prompt: "{{start.outputs.body.question}}"}}
  - id: book
    description: d
    type: MEMORY
    subtype: VECTOR_DATABASE
    configurations: {session_id: handbook, embedding_profile: m, similarity_threshold: 0.2, max_results: 2, auto_capture_from_ai: false}
connections:
  - {from_node: start, to_node: agent}
`

// twoPages is a PDF file with a text on each of its pages.
func twoPages(first, second string) string {
	stream := func(text string) string {
		draw := "BT /F1 9 Tf (" + text + ") Tj ET"
		return fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(draw), draw)
	}
	var b strings.Builder
	b.WriteString("%PDF-1.7\n")
	for i, object := range []string{
		"<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [3 0 R 4 0 R] /Count 2 /Resources <</Font <</F1 7 0 R>>>>>>", "<</Type /Page /Parent 2 0 R /Contents 5 0 R>>",
		"<</Type /Page /Parent 2 0 R /Contents 6 0 R>>", stream(first), stream(second), "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>",
	} {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	return b.String() + "trailer\n<</Root 1 0 R>>\n%%EOF\n"
}

// answering is a server, a process of its own, that learns documents and answers from them.
type answering struct {
	*crash
	models *embeddingService
}

func newAnswering(t *testing.T, say func(r chatRequest, gone <-chan struct{}) chatReply) *answering {
	t.Helper()
	c := &crash{T: t, dir: sqlitetest.Dir(t), addr: loopback.FreeAddress(t)}
	a := &answering{c, newEmbeddingService(t, say)}
	i := openInstance(t, c.dir)
	profile := llm.Profile{ID: "m", Provider: "openai", Model: "test-model", EmbeddingModel: "test-embedding", BaseURL: a.models.URL + "/v1"}
	if err := i.SaveProfile(t.Context(), user, profile); err != nil {
		t.Fatal(err)
	}
	i.saveText(t, learnFlow)
	i.saveText(t, bookFlow)
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.client, err = client.New(client.Options{URL: "http://" + c.addr, Token: crashToken}); err != nil {
		t.Fatal(err)
	}
	return a
}

// posts sends something to a webhook and returns the execution that it has started.
func (a *answering) posts(path, kind string, body io.Reader) string {
	a.Helper()
	r, err := http.NewRequestWithContext(a.Context(), http.MethodPost, "http://"+a.addr+"/hooks/"+path, body)
	if err != nil {
		a.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		a.Fatal(err)
	}
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode != http.StatusAccepted {
		a.Fatalf("%s: %d %s %v", path, w.StatusCode, raw, err)
	}
	return gjson.GetBytes(raw, "execution_id").Str
}

func (a *answering) uploads(name, content string) string {
	a.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", name)
	if err != nil {
		a.Fatal(err)
	}
	fmt.Fprint(part, content)
	if err := w.Close(); err != nil {
		a.Fatal(err)
	}
	return a.posts("learn/file", w.FormDataContentType(), &form)
}

// asks puts a question and returns the result of the agent.
func (a *answering) asks(question string) gjson.Result {
	a.Helper()
	id := a.posts("ask/question", "application/json", strings.NewReader(`{"question":"`+question+`"}`))
	raw, err := json.Marshal(a.becomes(id, engine.StatusSuccess).NodeExecutions["agent"].OutputData)
	if err != nil {
		a.Fatal(err)
	}
	return gjson.GetBytes(raw, "result")
}

// From a file that somebody uploads to an answer that names the page it rests on. The server is killed while the chunks of the file are
// embedded; what was uploaded is learnt once all the same, and a newer file takes the place of the older one.
func TestDocuments_AnswersWithSources(t *testing.T) {
	t.Parallel()
	a := newAnswering(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		told := ""
		for _, m := range r.Messages {
			told += m.text() + "\n"
		}
		cited := "[nothing:1]"
		for line := range strings.Lines(told) {
			if found, ok := strings.CutPrefix(line, "- "); ok && strings.Contains(line, "trainees") {
				cited, _, _ = strings.Cut(found, " ")
			}
		}
		return chatReply{text: []string{"As it stands there ", cited + "."}}
	})
	kill := a.serve()
	for _, id := range []string{"learn", "ask"} {
		if _, err := a.client.Deploy(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	id := a.uploads("handbook.pdf", twoPages("Annual leave of everybody is 25 days. Leave is to be requested two weeks before it begins.", "Annual leave of trainees is 30 days."))
	<-a.models.reached
	kill()
	kill = a.serve()
	defer func() { kill() }()
	a.becomes(id, engine.StatusSuccess)

	out := a.asks("How many days of annual leave do trainees have?")
	cited := out.Get(`sources.#(cited==true)#`)
	if got := cited.Array(); len(got) != 1 || got[0].Get("document").Str != "handbook.pdf" || got[0].Get("page").Int() != 2 || got[0].Get("id").Str != "handbook.pdf:3" {
		t.Errorf("the answer %s rests on %s", out.Get("response"), out.Get("sources"))
	}
	if all := out.Get("sources").Array(); len(all) != 2 || !strings.Contains(out.Get("response").Str, "[handbook.pdf:3]") {
		t.Errorf("the answer %s could rest on %s", out.Get("response"), out.Get("sources"))
	}

	// The next edition has one page less to say.
	a.becomes(a.uploads("handbook.pdf", twoPages("Annual leave of trainees is 31 days.", "")), engine.StatusSuccess)
	out = a.asks("How many days of annual leave do trainees have?")
	if got := out.Get("sources").Array(); len(got) != 1 || got[0].Get("page").Int() != 1 || !got[0].Get("cited").Bool() {
		t.Errorf("after the second edition the answer %s rests on %s", out.Get("response"), out.Get("sources"))
	}
	kill()
	kill = func() {}
	a.holds(t, 1)
}

// holds says how many texts the memory has on disk.
func (a *answering) holds(t *testing.T, want int) {
	t.Helper()
	i := openInstance(t, a.dir)
	defer i.Close()
	page, err := i.stores.Memories.Scopes(t.Context(), identity.System("default"), store.MemoryScopeQuery{Page: store.Page{Size: 50}})
	if err != nil || len(page.Scopes) != 1 {
		t.Fatalf("%d memories: %v", len(page.Scopes), err)
	}
	records, err := i.stores.Memories.Records(t.Context(), identity.System("default"), store.MemoryQuery{Scope: page.Scopes[0].ID, Sort: "item"})
	if err != nil || len(records.Records) != want {
		t.Errorf("the memory has %d texts, want %d: %v", len(records.Records), want, err)
	}
}
