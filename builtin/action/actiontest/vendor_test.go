package actiontest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/action/actiontest"
	"tandem/builtin/httpcall"
	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

// The kind of these tests keeps books on shelves, in a library that answers as services do.

type shelfConfig struct {
	action.Fields
	action.Paging
	Title  string          `json:"title" with:"action_type=add_book" doc:"The title." zh:"书名：书的名称。"`
	Shelf  string          `json:"shelf" doc:"The shelf." zh:"书架：书所在的书架。"`
	Method string          `json:"method" with:"action_type=request" doc:"The method." zh:"方法：请求方法。"`
	Path   string          `json:"path" with:"action_type=request" doc:"The path." zh:"路径：请求路径。"`
	Query  node.Object     `json:"query" with:"action_type=request" doc:"The query." zh:"参数：查询参数。"`
	Body   json.RawMessage `json:"body" with:"action_type=request" doc:"The body." zh:"正文：请求正文。"`
}

func (c *shelfConfig) Defaults() { c.Limit = action.DefaultLimit }

type shelfResult struct {
	action.Result
	Response json.RawMessage `json:"shelf_response" doc:"The answer." zh:"响应：图书馆的响应。"`
}

func library() *rest.Service {
	return &rest.Service{
		Name: "the library", Base: "https://library.example.com", Credentials: []string{"library"}, Header: http.Header{"X-Version": {"1"}},
		Secret: rest.Bearer,
		Said:   func(body gjson.Result) string { return body.Get("message").Str },
		Refine: func(r *rest.Refusal) {
			switch {
			case r.Status == 418:
				r.Limit("the library", 60_000_000_000)
			case r.Body.Get("code").Str == "taken":
				r.Becomes(fault.Conflict)
			}
		},
	}
}

func shelf(client *outbound.Client) node.Kind {
	does := func(do func(ctx context.Context, api *rest.API, call *node.Call, cfg shelfConfig) (shelfResult, error)) func(context.Context, *node.Call, shelfConfig) (shelfResult, error) {
		return func(ctx context.Context, call *node.Call, cfg shelfConfig) (shelfResult, error) {
			api, err := library().Open(ctx, client, call)
			if err != nil {
				return shelfResult{}, err
			}
			out, err := do(ctx, api, call, cfg)
			out.Done(cfg.ActionType)
			return out, err
		}
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.SHELF", Title: node.Says("Shelf", "书架"), Description: node.Says("Keeps books.", "管理图书。"),
		Keys:     []node.Key{{Name: "result", Meaning: node.Says("The answer.", "响应。")}},
		Examples: []node.Example{{Shows: node.Says("Reads.", "读取。"), Config: `{"action_type":"list_books","shelf":"a"}`, Output: `{"result":{}}`}},
	}, []action.Operation[shelfConfig, shelfResult]{
		{Name: "add_book", Effect: workflow.Once, Needs: []string{"title", "shelf"}, Do: does(addBook), Inquire: func(ctx context.Context, call *node.Call, cfg shelfConfig) (out shelfResult, found bool, err error) {
			api, err := library().Open(ctx, client, call)
			if err != nil {
				return out, false, err
			}
			answer, err := api.Do(ctx, rest.Call{Method: "GET", Path: rest.Path("shelves", cfg.Shelf), Wants: rest.List})
			if err != nil {
				return out, false, err
			}
			for _, book := range gjson.ParseBytes(answer.Body).Array() {
				if book.Get("mark").Str == action.Marker(call, "shelf") {
					out.ResourceID = book.Get("id").String()
					out.Done(cfg.ActionType)
					return out, true, nil
				}
			}
			return out, false, nil
		}},
		{Name: "list_books", Effect: workflow.Idempotent, Lists: true, Needs: []string{"shelf"}, Do: does(listBooks)},
		{
			Name: "request", Needs: []string{"method", "path"}, EffectOf: func(cfg shelfConfig) workflow.Effect { return httpcall.EffectOf(cfg.Method) },
			Do: does(func(ctx context.Context, api *rest.API, _ *node.Call, cfg shelfConfig) (out shelfResult, err error) {
				answer, err := api.Request(ctx, rest.Raw{Method: cfg.Method, Path: cfg.Path, Query: cfg.Query, Body: cfg.Body})
				out.Response, out.RateLimit = answer.Raw(), answer.Limits()
				return out, err
			}),
		},
	})
}

func addBook(ctx context.Context, api *rest.API, call *node.Call, cfg shelfConfig) (out shelfResult, err error) {
	answer, err := api.Do(ctx, rest.Call{
		Method: "POST", Path: rest.Path("shelves", cfg.Shelf), Body: map[string]string{"title": cfg.Title, "mark": action.Marker(call, "shelf")}, Fields: []string{"id"},
	})
	out.ResourceID, out.Response = answer.Get("id").String(), answer.Raw()
	return out, err
}

func listBooks(ctx context.Context, api *rest.API, _ *node.Call, cfg shelfConfig) (out shelfResult, err error) {
	out.Items, out.NextCursor, err = rest.Pages(cfg.Limit, cfg.Cursor, func(cursor string) ([]json.RawMessage, string, error) {
		query, err := rest.CursorQuery(cursor, url.Values{"per_page": {strconv.Itoa(min(cfg.Limit, 3))}})
		if err != nil {
			return nil, "", err
		}
		answer, err := api.Do(ctx, rest.Call{Method: "GET", Path: rest.Path("shelves", cfg.Shelf), Query: query, Wants: rest.List})
		return rest.Items(gjson.ParseBytes(answer.Body)), rest.NextQuery(answer.Header), err
	})
	return out, err
}

// books is the library.
type books struct {
	t    testing.TB
	mu   sync.Mutex
	list []map[string]any
}

func newLibrary(t testing.TB) http.Handler {
	b := &books{t: t}
	for n := range 8 {
		b.list = append(b.list, map[string]any{"id": n})
	}
	m := http.NewServeMux()
	m.HandleFunc("POST /shelves/{shelf}", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		var book map[string]any
		if err := json.NewDecoder(r.Body).Decode(&book); err != nil {
			t.Error(err)
		}
		book["id"] = len(b.list)
		b.list = append(b.list, book)
		b.write(w, book)
	})
	m.HandleFunc("GET /shelves/{shelf}", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		size, at := 1000, 0
		if n, err := strconv.Atoi(r.URL.Query().Get("per_page")); err == nil {
			size = n
		}
		if n, err := strconv.Atoi(r.URL.Query().Get("at")); err == nil {
			at = n
		}
		end := min(at+size, len(b.list))
		if end < len(b.list) {
			w.Header().Set("Link", fmt.Sprintf(`<https://elsewhere.example.com/x?per_page=%d&at=%d>; rel="next"`, size, end))
		}
		b.write(w, slices.Clone(b.list[at:end]))
	})
	m.HandleFunc("/echo/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Ratelimit-Remaining", "41")
		b.write(w, map[string]any{"name": r.PathValue("name")})
	})
	m.HandleFunc("GET /plain", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "pong") })
	return m
}

func (b *books) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		b.t.Error(err)
	}
}

func vendor() actiontest.Vendor {
	add := actiontest.Sample{Config: `{"action_type":"add_book","shelf":"a","title":"t"}`, Call: "POST /shelves/a"}
	list := actiontest.Sample{Config: `{"action_type":"list_books","shelf":"a"}`, Call: "GET /shelves/a"}
	return actiontest.Vendor{
		Kind: shelf, Serve: newLibrary, Prefix: "/api/v3", Renews: true, Once: add, Read: list, Settled: []actiontest.Sample{add}, Pages: list, Total: 8,
		Refusals: []actiontest.Refusal{
			{Name: "Said", Sample: add, Reply: actiontest.Reply{Status: 422, Body: `{"message":"no such  shelf"}`}, Code: fault.RemoteRejected, Part: ": no such shelf"},
			{Name: "SaidAtLength", Sample: add, Reply: actiontest.Reply{Status: 422, Body: `{"message":"` + strings.Repeat("é", 600) + `"}`}, Code: fault.RemoteRejected, Part: "é…"},
			{Name: "OwnLimit", Sample: add, Reply: actiontest.Reply{Status: 418, Body: `{}`}, Code: fault.RateLimited, Retryable: true, AfterSeconds: 60},
			{Name: "OwnCode", Sample: add, Reply: actiontest.Reply{Status: 400, Body: `{"code":"taken","message":"it is there"}`}, Code: fault.Conflict, Part: "it is there"},
			{Name: "NoID", Sample: add, Reply: actiontest.Reply{Status: 201, Body: `{"title":"t"}`}, Code: fault.OutcomeUnknown, Part: "it has no id"},
			{Name: "OtherMethod", Sample: actiontest.Sample{Config: `{"action_type":"request","method":"TRACE","path":"/x"}`}, Code: fault.InvalidInput},
			{Name: "OtherHost", Sample: actiontest.Sample{Config: `{"action_type":"request","method":"GET","path":"https://evil.example.com/x"}`}, Code: fault.InvalidInput},
			{Name: "OtherHostWithoutScheme", Sample: actiontest.Sample{Config: `{"action_type":"request","method":"GET","path":"//evil.example.com/x"}`}, Code: fault.InvalidInput},
			{Name: "Up", Sample: actiontest.Sample{Config: `{"action_type":"request","method":"GET","path":"/a/%2e%2e/%2e./b"}`}, Code: fault.InvalidInput},
			{Name: "UpByAField", Sample: actiontest.Sample{Config: `{"action_type":"list_books","shelf":".."}`}, Code: fault.InvalidInput},
			{Name: "QueryOfObjects", Sample: actiontest.Sample{Config: `{"action_type":"request","method":"GET","path":"/x","query":{"a":{}}}`}, Code: fault.InvalidInput},
			{Name: "NoCursor", Sample: actiontest.Sample{Config: `{"action_type":"list_books","shelf":"a","cursor":"x@y"}`}, Code: fault.InvalidInput},
			{Name: "RawPost", Sample: actiontest.Sample{Config: `{"action_type":"request","method":"POST","path":"/shelves/a"}`, Call: "POST /shelves/a"}, Reply: actiontest.Reply{Status: 500}, Code: fault.RemoteError},
			{Name: "RawPut", Sample: actiontest.Sample{Config: `{"action_type":"request","method":"PUT","path":"/echo/a"}`, Call: "PUT /echo/a"}, Reply: actiontest.Reply{Status: 500}, Code: fault.RemoteError, Retryable: true},
		},
	}
}

func TestVendor_Operations(t *testing.T) {
	t.Parallel()
	vendor().Operations(t, []actiontest.Operation{
		{
			Name: "Add", Config: `{"action_type":"add_book","shelf":"a/b","title":"t"}`, Call: "POST /shelves/a%2Fb", Body: `{"title":"t"}`,
			Header: map[string]string{"Authorization": "Bearer " + actiontest.Token, "X-Version": "1", "Content-Type": "application/json", "Accept": "application/json"},
			Result: `{"success":true,"action":"add_book","resource_id":"8","items":[],"error_message":"","rate_limit_info":null}`,
		},
		{Name: "List", Config: `{"action_type":"list_books","shelf":"a","limit":2}`, Call: "GET /shelves/a", Query: map[string]string{"per_page": "2"}, Result: `{"items":[{"id":0},{"id":1}],"truncated":true,"next_cursor":"per_page=2&at=2"}`},
		{
			Name: "Request", Config: `{"action_type":"request","method":"patch","path":"echo/x?a=1","query":{"b":[1,true],"c":"d"},"body":{"e":null}}`, Call: "PATCH /echo/x",
			Query: map[string]string{"a": "1", "b": "1,true", "c": "d"}, Body: `{"e":null}`, Result: `{"shelf_response":{"name":"x"},"rate_limit_info":{"remaining":41}}`,
		},
		{Name: "RequestOfText", Config: `{"action_type":"request","method":"GET","path":"/plain","body":{"never":"sent"}}`, Call: "GET /plain", Body: "null", Result: `{"shelf_response":"pong"}`},
		{Name: "RequestOfNothing", Config: `{"action_type":"request","method":"HEAD","path":"/echo/x"}`, Call: "HEAD /echo/x", Result: `{"shelf_response":null}`},
	})
}

func TestVendor_Failures(t *testing.T) {
	t.Parallel()
	vendor().Failures(t)
}

// TestPages_Loop: a service whose pages follow each other in a circle does not keep a node for ever.
func TestPages_Loop(t *testing.T) {
	t.Parallel()
	_, _, err := rest.Pages(10, "a", func(string) ([]json.RawMessage, string, error) { return nil, "a", nil })
	if fault.CodeOf(err) != fault.RemoteError {
		t.Error(err)
	}
}
