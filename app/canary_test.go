package app

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/api"
	"tandem/credential"
	"tandem/engine"
	"tandem/identity"
)

// canaryMark is in every secret of the test.
const canaryMark = "canary9f3c71e0"

// canaries fills the secret fields of a sample of a type with marks. What has the shape of an address or a connection string keeps it.
func canaries(t *testing.T, typ credential.Type, sample string, n int) (json.RawMessage, int) {
	t.Helper()
	var data map[string]any
	works(t, json.Unmarshal([]byte(sample), &data))
	filled := 0
	for _, f := range typ.Fields {
		value, set := data[f.Name]
		if !set || !f.Secret {
			continue
		}
		mark := fmt.Sprintf("%s-%s-%s-%d", canaryMark, typ.Name, f.Name, n)
		text, isText := value.(string)
		switch {
		case f.Format == credential.FormatDocument:
			document := map[string]any{}
			for _, member := range f.Members {
				document[member] = mark + "-" + member
			}
			data[f.Name] = document
		case f.Format == credential.FormatAuth:
			data[f.Name] = map[string]any{"scheme": "bearer", "token": mark}
		case f.Format == credential.FormatURL:
			data[f.Name] = "https://127.0.0.1:1/" + mark
		case isText && strings.Contains(text, "://"):
			data[f.Name] = "postgres://u:" + mark + "@127.0.0.1:1/d"
		default:
			data[f.Name] = mark
		}
		filled++
	}
	raw, err := json.Marshal(data)
	works(t, err)
	return raw, filled
}

// spilled says in which form, if any, a mark is in some bytes.
func spilled(raw []byte) string {
	forms := map[string][]byte{"plain": []byte(canaryMark), "hex": []byte(hex.EncodeToString([]byte(canaryMark)))}
	for shift := range 3 { // where it stands in a text that is written as base64
		coded := base64.StdEncoding.EncodeToString(append(make([]byte, shift), canaryMark...))
		forms[fmt.Sprint("base64 ", shift)] = []byte(coded[4*((shift+2)/3) : len(coded)/4*4-4])
	}
	for _, form := range slices.Sorted(maps.Keys(forms)) {
		if at := bytes.Index(raw, forms[form]); at >= 0 {
			return fmt.Sprintf("%s: …%s…", form, raw[max(0, at-60):min(len(raw), at+100)])
		}
	}
	return ""
}

// debugLog keeps what is logged, at every level.
type debugLog struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *debugLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// A secret of any type of credential is nowhere but in the sealed column: not in the files of the data directory, nor in logs, events,
// errors, exports, metrics or the answer of any route.
func TestCredentials_Canary(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{canaryMark, hex.EncodeToString([]byte("x" + canaryMark)), base64.StdEncoding.EncodeToString([]byte("a" + canaryMark + "b")), base64.StdEncoding.EncodeToString([]byte("user:" + canaryMark + "-x"))} {
		if spilled([]byte("before "+raw+" after")) == "" {
			t.Fatalf("%q would not be found", raw)
		}
	}
	// The service repeats everything that it was sent, and refuses it.
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Repeated", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, r.Method, " ", r.URL, " ", r.Header, " ")
		_ = r.ParseForm() // what cannot be read is repeated above
		_, _ = fmt.Fprint(w, r.Form)
	}))
	t.Cleanup(service.Close)
	log := &debugLog{}
	x := openSiteAs(t, func(o *Options, url string) {
		o.PublicURL, o.Log = url, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	clean := func(what string, raw []byte) {
		t.Helper()
		if found := spilled(raw); found != "" {
			t.Errorf("a secret is in %s, %s", what, found)
		}
	}
	ids := map[string]string{}
	for _, typ := range builtInCredentials(t) {
		for n, sample := range credentialSamples()[typ.Name] {
			data, filled := canaries(t, typ, sample, n)
			if filled == 0 {
				continue
			}
			name := fmt.Sprint(typ.Name, "-", n)
			body := fmt.Sprintf(`{"name":%q,"type":%q,"data":%s}`, name, typ.Name, data)
			kept := x.call(t, "admin", "POST", "/credentials", body)
			clean("the answer to POST "+name, kept.body)
			id := want[api.Credential](t, kept, http.StatusCreated).ID
			ids[typ.Name] = id
			clean("the answer to PUT "+name, x.call(t, "admin", "PUT", "/credentials/"+id, body).body)
			// What is refused is not repeated.
			wrong := strings.Replace(body, `"data":{`, `"data":{"`+canaryMark+`":1,"base_url":"`+canaryMark+`",`, 1)
			if a := x.call(t, "admin", "PUT", "/credentials/"+id, strings.ReplaceAll(wrong, `"`+canaryMark+`":1,`, "")); a.status < 400 {
				t.Errorf("%s: a wrong base_url was taken", name)
			} else {
				clean("a refusal of "+name, a.body)
			}
			c, err := x.vault.Opener(identity.System("default"))(t.Context(), id)
			if err != nil {
				clean("the error of opening "+name, []byte(err.Error()))
			}
			c.Release()
		}
		if ids[typ.Name] == "" {
			t.Errorf("no sample of %s has a secret", typ.Name)
		}
	}
	// Runs that use some of them: calls whose answer repeats the secret, a database and a mail server that are not there, an authorization
	// that is refused.
	want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", `{"name":"ending","type":"oauth2","data":{"client_id":"i","client_secret":"`+canaryMark+`-client","refresh_token":"`+canaryMark+`-refresh","token_url":"`+service.URL+`/token"}}`), http.StatusCreated)
	want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", `{"name":"anywhere","type":"http_auth","data":{"scheme":"bearer","token":"`+canaryMark+`-bearer"}}`), http.StatusCreated)
	nodes := map[string]string{
		"bearer": `type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "` + service.URL + `/a", credential_id: anywhere, fail_on_status: false}`,
		"basic":  `type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "` + service.URL + `/b", credential_id: http_auth-1}`,
		"query":  `type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "` + service.URL + `/c", credential_id: http_auth-3}`,
		"ended":  `type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "` + service.URL + `/d", credential_id: ending}`,
		"rows":   `type: ACTION, subtype: DATABASE_QUERY, configurations: {query: "select 1", credential_id: sql-0, max_retries: 0}`,
	}
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		x.save(t, "metadata: {id: "+id+", name: "+id+", description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n  - {id: node, description: d, "+nodes[id]+"}\nconnections: [{from_node: start, to_node: node}]\n")
		execution, status := x.execute(t, id, api.ExecuteRequest{}), engine.StatusError
		if id == "bearer" {
			status = engine.StatusSuccess
		}
		x.reaches(t, execution, status)
		for _, path := range []string{"", "?include=workflow", "/context", "/history", "/logs", "/events"} {
			clean("the execution "+id+path, x.call(t, "admin", "GET", "/executions/"+execution+path, nil, "Accept", "application/json").body)
		}
		ids["execution"] = execution
	}
	x.routes(t, ids, clean)
	log.mu.Lock()
	defer log.mu.Unlock()
	clean("the log", log.all.Bytes())
	if log.all.Len() == 0 {
		t.Error("nothing was logged")
	}
	files := 0
	works(t, filepath.WalkDir(x.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		files++
		clean("the file "+d.Name(), raw)
		return err
	}))
	if files < 3 {
		t.Errorf("the data directory has %d files", files)
	}
}

// routes reads every route that can be read, with ids of records that are there.
func (x *site) routes(t *testing.T, ids map[string]string, clean func(string, []byte)) {
	t.Helper()
	root := &site{Instance: x.Instance, url: strings.TrimSuffix(x.url, "/api/v1"), tokens: x.tokens}
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	works(t, json.Unmarshal(want[json.RawMessage](t, root.call(t, "admin", "GET", "/openapi.json", nil), http.StatusOK), &document))
	n := 0
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		if _, ok := document.Paths[path]["get"]; !ok || strings.HasSuffix(path, "/events") || strings.HasSuffix(path, "/stream") {
			continue // streams have no end; those of executions are read above
		}
		for _, id := range ids {
			clean("the answer to GET "+path, root.call(t, "admin", "GET", strings.NewReplacer("{id}", id, "{", "", "}", "").Replace(path), nil).body)
			n++
			if !strings.Contains(path, "{id}") {
				break
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d routes were read", n)
	}
}
