package gcp

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/builtin/action/actiontest"
)

// fakeCloud is the services of Google Cloud at one address: it takes the tokens that a server for tokens has given, and refuses what the
// real services refuse.
type fakeCloud struct {
	t      testing.TB
	tokens *fakeTokens

	mu       sync.Mutex
	objects  map[string]*fakeGCSObject
	messages int
	revoked  map[string]bool
	polls    int // how often a slow query was asked for
	requests map[string]bool
}

type fakeGCSObject struct {
	kind       string
	data       []byte
	generation int
}

const objectCount = 7

// newTokens starts a server for tokens.
func newTokens(t testing.TB) *fakeTokens {
	f := &fakeTokens{key: &testKey().PublicKey, email: "robot@p.iam.gserviceaccount.com", life: 3600, audiences: map[string]string{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL + "/token"
	return f
}

func newCloud(t testing.TB, tokens *fakeTokens) *fakeCloud {
	f := &fakeCloud{t: t, tokens: tokens, objects: map[string]*fakeGCSObject{}, revoked: map[string]bool{}, requests: map[string]bool{}}
	for n := range objectCount {
		f.objects[fmt.Sprintf("list/%d", n)] = &fakeGCSObject{"text/plain", []byte("x"), 1}
	}
	f.objects["in/a b.txt"] = &fakeGCSObject{"text/plain", []byte("hello"), 5}
	return f
}

func (f *fakeCloud) refuse(w http.ResponseWriter, status int, reason, message string) {
	(&fakeStorage{}).refuse(w, status, reason, message)
}

// ServeHTTP implements [http.Handler].
func (f *fakeCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	f.tokens.mu.Lock()
	audience := f.tokens.audiences[token]
	f.tokens.mu.Unlock()
	invoked := strings.HasPrefix(r.URL.Path, "/run/")
	if !ok || f.revoked[token] || !f.tokens.knows(token) || invoked != (audience != "") {
		f.refuse(w, http.StatusUnauthorized, "authError", "Request had invalid authentication credentials.")
		return
	}
	m := http.NewServeMux()
	m.HandleFunc("POST /upload/storage/v1/b/docs/o", f.upload)
	m.HandleFunc("GET /storage/v1/b/docs/o", f.list)
	m.HandleFunc("GET /storage/v1/b/docs/o/{object}", f.get)
	m.HandleFunc("POST /v1/projects/p/topics/{topic}", f.publish)
	m.HandleFunc("POST /bigquery/v2/projects/p/jobs", f.dryRun)
	m.HandleFunc("POST /bigquery/v2/projects/p/queries", f.query)
	m.HandleFunc("GET /bigquery/v2/projects/p/queries/{job}", f.results)
	m.HandleFunc("/run/echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			f.t.Error(err)
		}
		actiontest.Write(f.t, w, 202, map[string]any{"audience": audience[strings.LastIndex(audience, "/cloud"):], "method": r.Method, "query": r.URL.RawQuery, "given": string(body), "token": token})
	})
	m.HandleFunc("/run/text", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done "+token) })
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		f.refuse(w, http.StatusNotFound, "notFound", "Not Found")
	})
	m.ServeHTTP(w, r)
}

func (f *fakeCloud) resource(name string, o *fakeGCSObject) map[string]any {
	sum := md5.Sum(o.data)
	return map[string]any{"kind": "storage#object", "name": name, "size": fmt.Sprint(len(o.data)), "generation": fmt.Sprint(o.generation), "md5Hash": base64.StdEncoding.EncodeToString(sum[:])}
}

func (f *fakeCloud) upload(w http.ResponseWriter, r *http.Request) {
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		f.t.Error(err)
	}
	parts := multipart.NewReader(r.Body, parameters["boundary"])
	var pieces [][]byte
	for part, err := parts.NextPart(); err == nil; part, err = parts.NextPart() {
		data, err := io.ReadAll(part)
		if err != nil {
			f.t.Error(err)
		}
		pieces = append(pieces, data)
	}
	if len(pieces) != 2 {
		f.refuse(w, http.StatusBadRequest, "badContent", "no multipart/related")
		return
	}
	about := gjson.ParseBytes(pieces[0])
	name := about.Get("name").Str
	there := f.objects[name]
	generation := 0
	if there != nil {
		generation = there.generation
	}
	if want := r.URL.Query().Get("ifGenerationMatch"); want != "" && want != fmt.Sprint(generation) {
		f.refuse(w, http.StatusPreconditionFailed, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
		return
	}
	f.objects[name] = &fakeGCSObject{about.Get("contentType").Str, pieces[1], generation + 1}
	actiontest.Write(f.t, w, 200, f.resource(name, f.objects[name]))
}

func (f *fakeCloud) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(f.objects)), func(name string) bool { return !strings.HasPrefix(name, q.Get("prefix")) })
	if token := q.Get("pageToken"); token != "" {
		names = names[slices.Index(names, strings.TrimPrefix(token, "@/="))+1:]
	}
	page, more := actiontest.Part(names, 0, min(3, actiontest.Number(r, "maxResults", 1000)))
	answer := map[string]any{"kind": "storage#objects"}
	var items []any
	for _, name := range page {
		items = append(items, f.resource(name, f.objects[name]))
	}
	if len(items) > 0 {
		answer["items"] = items
	}
	if more {
		answer["nextPageToken"] = "@/=" + page[len(page)-1]
	}
	actiontest.Write(f.t, w, 200, answer)
}

func (f *fakeCloud) get(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("object")
	o := f.objects[name]
	switch {
	case o == nil:
		f.refuse(w, http.StatusNotFound, "notFound", "No such object: docs/"+name)
	case r.URL.Query().Get("alt") == "media":
		w.Header().Set("Content-Type", o.kind)
		w.Header().Set("X-Goog-Generation", fmt.Sprint(o.generation))
		_, _ = w.Write(o.data) // the client may have left
	default:
		actiontest.Write(f.t, w, 200, f.resource(name, o))
	}
}

func (f *fakeCloud) publish(w http.ResponseWriter, r *http.Request) {
	list, _ := actiontest.Read(f.t, r)["messages"].([]any)
	if r.PathValue("topic") != "orders:publish" {
		f.refuse(w, http.StatusNotFound, "notFound", "Resource not found (resource=x).")
		return
	}
	ids := []string{}
	for _, m := range list {
		data, _ := m.(map[string]any)["data"].(string)
		if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" {
			f.refuse(w, http.StatusBadRequest, "badRequest", "One or more messages in the publish request is empty.")
			return
		}
		f.messages++
		ids = append(ids, fmt.Sprint(f.messages))
	}
	actiontest.Write(f.t, w, 200, map[string]any{"messageIds": ids})
}

// known says that a query is one that there is, with the parameters that it has.
func known(q gjson.Result) bool {
	names := map[string]bool{}
	for _, p := range q.Get("queryParameters").Array() {
		names[p.Get("name").Str] = p.Get("parameterType.type").Exists()
	}
	for _, word := range strings.Fields(q.Get("query").Str) {
		if name, ok := strings.CutPrefix(word, "@"); ok && !names[name] {
			return false
		}
	}
	return !q.Get("useLegacySql").Bool() && q.Get("useLegacySql").Exists()
}

func (f *fakeCloud) dryRun(w http.ResponseWriter, r *http.Request) {
	raw, err := json.Marshal(actiontest.Read(f.t, r))
	if err != nil {
		f.t.Error(err)
	}
	q := gjson.ParseBytes(raw).Get("configuration.query")
	if !gjson.GetBytes(raw, "configuration.dryRun").Bool() || !known(q) {
		f.refuse(w, http.StatusBadRequest, "invalidQuery", "Query parameter not found")
		return
	}
	kind, _, _ := strings.Cut(strings.ToUpper(q.Get("query").Str), " ")
	if strings.Contains(q.Get("query").Str, ";") {
		kind = "SCRIPT"
	}
	actiontest.Write(f.t, w, 200, map[string]any{"statistics": map[string]any{"query": map[string]any{"statementType": kind}}})
}

func rowsOf(from, to int) (rows []any) {
	cell := func(v any) any { return map[string]any{"v": v} }
	for n := from; n < to; n++ {
		rows = append(rows, map[string]any{"f": []any{
			cell(fmt.Sprint(n)), cell("Ann"), cell("true"), cell("1.50"), cell("1700000000000000"), cell(nil), cell([]any{cell("a"), cell("b")}),
			cell(map[string]any{"f": []any{cell("7")}}),
		}})
	}
	return rows
}

// answer is a page of five rows, two at once.
func (f *fakeCloud) answer(w http.ResponseWriter, from int) {
	field := func(name, kind, mode string) map[string]any {
		return map[string]any{"name": name, "type": kind, "mode": mode}
	}
	inner := field("more", "RECORD", "NULLABLE")
	inner["fields"] = []any{field("x", "INTEGER", "NULLABLE")}
	page := map[string]any{
		"jobComplete": true, "jobReference": map[string]string{"projectId": "p", "jobId": "job_1", "location": "EU"}, "totalRows": "5", "rows": rowsOf(from, min(from+2, 5)),
		"schema": map[string]any{"fields": []any{
			field("id", "INTEGER", "REQUIRED"), field("name", "STRING", "NULLABLE"), field("ok", "BOOLEAN", "NULLABLE"), field("total", "NUMERIC", "NULLABLE"),
			field("at", "TIMESTAMP", "NULLABLE"), field("none", "STRING", "NULLABLE"), field("tags", "STRING", "REPEATED"), inner,
		}},
	}
	if from+2 < 5 {
		page["pageToken"] = fmt.Sprint(from + 2)
	}
	actiontest.Write(f.t, w, 200, page)
}

func (f *fakeCloud) query(w http.ResponseWriter, r *http.Request) {
	raw, err := json.Marshal(actiontest.Read(f.t, r))
	if err != nil {
		f.t.Error(err)
	}
	q := gjson.ParseBytes(raw)
	if !known(q) || q.Get("requestId").Str == "" {
		f.refuse(w, http.StatusBadRequest, "invalidQuery", "Query parameter not found")
		return
	}
	f.requests[q.Get("requestId").Str] = true
	if strings.Contains(q.Get("query").Str, "slow") {
		actiontest.Write(f.t, w, 200, map[string]any{"jobComplete": false, "jobReference": map[string]string{"projectId": "p", "jobId": "slow_1", "location": "EU"}})
		return
	}
	f.answer(w, 0)
}

func (f *fakeCloud) results(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("location") != "EU" {
		f.refuse(w, http.StatusNotFound, "notFound", "Not found: Job p:US")
		return
	}
	if f.polls++; r.PathValue("job") == "slow_1" && f.polls == 1 {
		actiontest.Write(f.t, w, 200, map[string]any{"jobComplete": false, "jobReference": map[string]string{"projectId": "p", "jobId": "slow_1", "location": "EU"}})
		return
	}
	f.answer(w, actiontest.Number(r, "pageToken", 0))
}
