package notion

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
)

// fake is the API of Notion with the database db1 and the page page1. It refuses what the real one refuses.
type fake struct {
	t     testing.TB
	mu    sync.Mutex
	items []map[string]any
}

const itemCount = 250

func newFake(t testing.TB) http.Handler {
	f := &fake{t: t}
	for n := range itemCount {
		f.items = append(f.items, map[string]any{"object": "page", "id": fmt.Sprintf("item%03d", n)})
	}
	m := http.NewServeMux()
	for pattern, serve := range map[string]http.HandlerFunc{
		"POST /v1/pages": f.create, "PATCH /v1/pages/page1": f.change, "GET /v1/databases/db1": f.database, "PATCH /v1/blocks/{id}/children": f.append,
		"POST /v1/comments": f.comment, "POST /v1/search": f.list, "POST /v1/databases/db1/query": f.list, "GET /v1/blocks/page1/children": f.list,
		"GET /v1/pages/page1": func(w http.ResponseWriter, _ *http.Request) {
			actiontest.Write(t, w, 200, map[string]any{"object": "page", "id": "page1", "url": "https://www.notion.so/page1", "properties": map[string]any{"Name": map[string]any{"id": "title", "type": "title"}, "Done": map[string]any{"type": "checkbox"}}})
		},
		"PUT /v1/thing": func(w http.ResponseWriter, r *http.Request) { actiontest.Write(t, w, 200, actiontest.Read(t, r)) },
	} {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			switch {
			case r.Header.Get("Authorization") != "Bearer "+actiontest.Token:
				f.refuse(w, 401, "unauthorized", "API token is invalid.")
			case r.Header.Get("Notion-Version") != "2022-06-28":
				f.refuse(w, 400, "missing_version", "Notion-Version header should be defined")
			default:
				serve(w, r)
			}
		})
	}
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		f.refuse(w, 404, "object_not_found", "Could not find the object.")
	})
	return m
}

func (f *fake) refuse(w http.ResponseWriter, status int, code, message string) {
	actiontest.Write(f.t, w, status, map[string]any{"object": "error", "status": status, "code": code, "message": message})
}

// bounded looks at what Notion has limits for: blocks at once, and characters of a piece of text.
func (f *fake) bounded(w http.ResponseWriter, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if content, ok := v["content"].(string); ok && len([]rune(content)) > 2000 {
			f.refuse(w, 400, "validation_error", "text.content.length should be ≤ 2000")
			return false
		}
		if list, ok := v["children"].([]any); ok && len(list) > 100 {
			f.refuse(w, 400, "validation_error", "body.children.length should be ≤ 100")
			return false
		}
		for _, one := range v { // order does not matter: any of them may be too long
			if !f.bounded(w, one) {
				return false
			}
		}
	case []any:
		for _, one := range v {
			if !f.bounded(w, one) {
				return false
			}
		}
	}
	return true
}

func (f *fake) database(w http.ResponseWriter, _ *http.Request) {
	types := map[string]any{}
	for name, kind := range map[string]string{"Name": "title", "Note": "rich_text", "Price": "number", "State": "status", "Kind": "select", "Tags": "multi_select", "Due": "date", "Done": "checkbox", "Link": "url", "Owner": "people", "Rel": "relation", "Docs": "files"} {
		types[name] = map[string]any{"id": "x", "type": kind}
	}
	actiontest.Write(f.t, w, 200, map[string]any{"object": "database", "id": "db1", "properties": types})
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	v := actiontest.Read(f.t, r)
	parent, _ := v["parent"].(map[string]any)
	if parent["page_id"] != "page1" && parent["database_id"] != "db1" {
		f.refuse(w, 404, "object_not_found", "Could not find the parent.")
		return
	}
	if f.bounded(w, v) {
		actiontest.Write(f.t, w, 200, map[string]any{"object": "page", "id": "new1", "url": "https://www.notion.so/new1"})
	}
}

func (f *fake) change(w http.ResponseWriter, r *http.Request) {
	if v := actiontest.Read(f.t, r); f.bounded(w, v) {
		actiontest.Write(f.t, w, 200, map[string]any{"object": "page", "id": "page1", "url": "https://www.notion.so/page1", "archived": v["archived"]})
	}
}

func (f *fake) append(w http.ResponseWriter, r *http.Request) {
	v := actiontest.Read(f.t, r)
	list, _ := v["children"].([]any)
	if f.bounded(w, v) {
		actiontest.Write(f.t, w, 200, map[string]any{"object": "list", "results": list, "next_cursor": nil})
	}
}

func (f *fake) comment(w http.ResponseWriter, r *http.Request) {
	if v := actiontest.Read(f.t, r); f.bounded(w, v) {
		actiontest.Write(f.t, w, 200, map[string]any{"object": "comment", "id": "c1"})
	}
}

// list is a page of items. Where it goes on is said in the body, or in the query of a call that reads.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	cursor, size := r.URL.Query().Get("start_cursor"), actiontest.Number(r, "page_size", 100)
	if r.Method == http.MethodPost {
		v := actiontest.Read(f.t, r)
		cursor, _ = v["start_cursor"].(string)
		if n, ok := v["page_size"].(float64); ok {
			size = int(n)
		}
	}
	if size > 100 {
		f.refuse(w, 400, "validation_error", "body.page_size should be ≤ 100")
		return
	}
	from := 0
	if cursor != "" {
		from = slices.IndexFunc(f.items, func(v map[string]any) bool { return v["id"] == cursor })
	}
	page, more := actiontest.Part(f.items, from, size)
	answer := map[string]any{"object": "list", "results": page, "has_more": more, "next_cursor": nil}
	if more {
		answer["next_cursor"] = f.items[from+len(page)]["id"]
	}
	actiontest.Write(f.t, w, 200, answer)
}

func vendor() actiontest.Vendor {
	page := actiontest.Sample{Config: `{"action_type":"create_page","parent":"page1","properties":{"title":"t"}}`, Call: "POST /v1/pages"}
	get := actiontest.Sample{Config: `{"action_type":"get_page","page_id":"page1"}`, Call: "GET /v1/pages/page1"}
	list := actiontest.Sample{Config: `{"action_type":"query_database","database_id":"db1"}`, Call: "POST /v1/databases/db1/query"}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	item := func(properties string) actiontest.Sample {
		return only(`{"action_type":"create_database_item","database_id":"db1","properties":` + properties + `}`)
	}
	return actiontest.Vendor{
		Kind: func(client *outbound.Client) node.Kind { return act(client, nil) }, Serve: newFake, Prefix: "/notion", Once: page, Read: get, Pages: list, Total: itemCount,
		Refusals: []actiontest.Refusal{
			{Name: "NoProperty", Sample: item(`{"Prise":7}`), Code: fault.InvalidInput, Part: `did you mean "Price"`},
			{Name: "NoPageProperty", Sample: only(`{"action_type":"create_page","parent":"page1","properties":{"Note":"x"}}`), Code: fault.InvalidInput, Part: "there are title"},
			{Name: "NoNumber", Sample: item(`{"Price":"much"}`), Code: fault.InvalidInput, Part: "type number"},
			{Name: "NoCheck", Sample: item(`{"Done":"perhaps"}`), Code: fault.InvalidInput, Part: "type checkbox"},
			{Name: "NoList", Sample: item(`{"Tags":7}`), Code: fault.InvalidInput, Part: "type multi_select"},
			{Name: "NoParent", Sample: only(`{"action_type":"create_page","parent":{"x":1},"properties":{"title":"t"}}`), Code: fault.InvalidInput, Part: "parent"},
			{Name: "OtherParent", Sample: only(`{"action_type":"create_page","parent":"none","properties":{"title":"t"}}`), Code: fault.NotFound, Part: "Could not find the parent"},
			{Name: "OtherDatabase", Sample: only(`{"action_type":"create_database_item","database_id":"none","properties":{"Name":"x"}}`), Code: fault.NotFound},
			{Name: "DatabaseAway", Sample: actiontest.Sample{Config: `{"action_type":"create_database_item","database_id":"db1","properties":{"Name":"x"}}`, Call: "GET /v1/databases/db1"}, Reply: actiontest.Reply{Status: 500, Body: `{}`}, Code: fault.RemoteError, Retryable: true},
			{Name: "Nothing", Sample: only(`{"action_type":"append_blocks","page_id":"page1","markdown":"  "}`), Code: fault.InvalidInput, Part: "nothing to write"},
			{Name: "Validation", Sample: page, Reply: actiontest.Reply{Status: 400, Body: `{"object":"error","code":"validation_error","message":"body failed validation"}`}, Code: fault.RemoteRejected, Part: "body failed validation"},
			{Name: "Conflict", Sample: page, Reply: actiontest.Reply{Status: 409, Body: `{"object":"error","code":"conflict_error","message":"Conflict occurred"}`}, Code: fault.Conflict},
		},
	}
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 4001)
	piece := func(n int) string {
		return `{"type":"text","text":{"content":"` + strings.Repeat("é", n) + `"}}`
	}
	vendor().Operations(t, []actiontest.Operation{
		{
			Name: "CreatePage", Config: `{"action_type":"create_page","parent":"page1","properties":{"title":"T"},"markdown":"# A\n\ntext\nmore\n\n- b\n- [x] done\n1. one\n> q\n---\n` + "```go\\nx := 1\\n```" + `"}`, Call: "POST /v1/pages",
			Body: `{"parent":{"page_id":"page1"},"properties":{"title":{"title":[{"type":"text","text":{"content":"T"}}]}},"children":[
				{"object":"block","type":"heading_1","heading_1":{"rich_text":[{"type":"text","text":{"content":"A"}}]}},{"type":"paragraph","paragraph":{"rich_text":[{"type":"text","text":{"content":"text\nmore"}}]}},
				{"type":"bulleted_list_item"},{"type":"to_do","to_do":{"checked":true}},{"type":"numbered_list_item","numbered_list_item":{"rich_text":[{"type":"text","text":{"content":"one"}}]}},{"type":"quote"},{"type":"divider","divider":{}},
				{"type":"code","code":{"language":"go","rich_text":[{"type":"text","text":{"content":"x := 1"}}]}}]}`,
			Header: map[string]string{"Notion-Version": "2022-06-28"}, Result: `{"success":true,"action":"create_page","resource_id":"new1","resource_url":"https://www.notion.so/new1","notion_response":{"object":"page"}}`,
		},
		{Name: "CreateInDatabase", Config: `{"action_type":"create_page","parent":{"database_id":"db1"},"properties":{"title":"T"},"children":[{"object":"block"}]}`, Call: "POST /v1/pages", Body: `{"parent":{"database_id":"db1"},"properties":{"Name":{"title":[{"type":"text","text":{"content":"T"}}]}},"children":[{"object":"block"}]}`},
		{
			Name: "CreateItem", Config: `{"action_type":"create_database_entry","database_id":"db1","properties":{"Name":"N","Note":"x","Price":"7.5","State":"Open","Kind":"A","Tags":["a","b"],"Due":"2026-11-20","Done":true,"Link":"https://example.com","Owner":["u1"],"Rel":"r1, r2","Docs":["https://example.com/a.pdf"]}}`, Call: "POST /v1/pages",
			Body: `{"properties":{"Note":{"rich_text":[{"type":"text","text":{"content":"x"}}]},"Price":{"number":7.5},"State":{"status":{"name":"Open"}},"Kind":{"select":{"name":"A"}},"Tags":{"multi_select":[{"name":"a"},{"name":"b"}]},"Due":{"date":{"start":"2026-11-20"}},
				"Done":{"checkbox":true},"Link":{"url":"https://example.com"},"Owner":{"people":[{"id":"u1"}]},"Rel":{"relation":[{"id":"r1"},{"id":"r2"}]},"Docs":{"files":[{"name":"a.pdf","type":"external","external":{"url":"https://example.com/a.pdf"}}]}}}`,
		},
		{Name: "CreateItemShaped", Config: `{"action_type":"create_database_item","database_id":"db1","properties":{"Name":{"title":[]},"Due":{"start":"2026-11-20","end":"2026-11-21"},"Price":null,"Tags":null}}`, Call: "POST /v1/pages", Body: `{"properties":{"Name":{"title":[]},"Due":{"date":{"start":"2026-11-20","end":"2026-11-21"}},"Price":{"number":null},"Tags":{"multi_select":[]}}}`},
		{Name: "InputFills", Config: `{"action_type":"create_database_item","database_id":"db1"}`, Input: `{"data":{"properties":{"Name":"N"},"database_id":"other"}}`, Call: "POST /v1/pages", Body: `{"parent":{"database_id":"db1"}}`},
		{Name: "LongText", Config: `{"action_type":"add_comment","page_id":"page1","text":"` + long + `"}`, Call: "POST /v1/comments", Body: `{"parent":{"page_id":"page1"},"rich_text":[` + piece(2000) + `,` + piece(2000) + `,` + piece(1) + `]}`, Result: `{"resource_id":"c1"}`},
		{Name: "Append", Config: `{"action_type":"append_blocks","page_id":"page1","children":[{"object":"block"}]}`, Call: "PATCH /v1/blocks/page1/children", Body: `{"children":[{"object":"block"}]}`, Result: `{"resource_id":"page1","items":[{"object":"block"}]}`},
		{Name: "Update", Config: `{"action_type":"update_page","page_id":"page1","properties":{"Name":"x","Done":"false"}}`, Call: "PATCH /v1/pages/page1", Body: `{"properties":{"Done":{"checkbox":false}}}`, Result: `{"resource_id":"page1"}`},
		{Name: "UpdateItem", Config: `{"action_type":"update_database_item","page_id":"page1","properties":{"Done":true}}`, Call: "PATCH /v1/pages/page1"},
		{Name: "Archive", Config: `{"action_type":"archive_page","page_id":"page1"}`, Call: "PATCH /v1/pages/page1", Body: `{"archived":true}`},
		{Name: "Search", Config: `{"action_type":"search","query":"roadmap","limit":1}`, Call: "POST /v1/search", Body: `{"query":"roadmap","page_size":1,"filter":{"property":"object","value":"database"}}`, Result: `{"items":[{"id":"item000"}],"next_cursor":"item001","truncated":true,"notion_response":null}`},
		{Name: "SearchAll", Config: `{"action_type":"search","operation_type":"both","limit":1}`, Call: "POST /v1/search", Body: `{"page_size":1}`},
		{Name: "GetPage", Config: `{"action_type":"get_page","page_id":"page1"}`, Call: "GET /v1/pages/page1", Result: `{"resource_url":"https://www.notion.so/page1"}`},
		{Name: "GetBlocks", Config: `{"action_type":"get_blocks","page_id":"page1","limit":2,"cursor":"item005"}`, Call: "GET /v1/blocks/page1/children", Query: map[string]string{"page_size": "2", "start_cursor": "item005"}, Result: `{"items":[{"id":"item005"},{"id":"item006"}]}`},
		{Name: "Query", Config: `{"action_type":"query_database","database_id":"db1","limit":1,"filter":{"property":"Done","checkbox":{"equals":true}},"sorts":[{"property":"Due"}]}`, Call: "POST /v1/databases/db1/query", Body: `{"filter":{"property":"Done"},"sorts":[{"property":"Due"}]}`},
		{Name: "Request", Config: `{"action_type":"request","method":"PUT","path":"/v1/thing","query":{"a":1},"body":{"id":"x"}}`, Call: "PUT /v1/thing", Query: map[string]string{"a": "1"}, Body: `{"id":"x"}`, Result: `{"resource_id":"x"}`},
	})
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	vendor().Failures(t)
}

// TestAction_ManyBlocks: blocks are sent by a hundred. When some are there and the rest is refused, nothing is sent again.
func TestAction_ManyBlocks(t *testing.T) {
	t.Parallel()
	many := `"markdown":"` + strings.Repeat(`- x\n`, 250) + `"`
	for config, calls := range map[string]map[string]int{
		`{"action_type":"append_blocks","page_id":"page1",` + many + `}`:                         {"PATCH /v1/blocks/page1/children": 3},
		`{"action_type":"create_page","parent":"page1","properties":{"title":"t"},` + many + `}`: {"POST /v1/pages": 1, "PATCH /v1/blocks/new1/children": 2},
	} {
		b := vendor().New(t)
		if _, err := b.Run(config, ``); err != nil {
			t.Fatal(err)
		}
		for call, n := range calls { // order does not matter: each is counted
			if got := len(b.Calls(call)); got != n {
				t.Errorf("%s was called %d times, want %d", call, got, n)
			}
		}
	}
	for _, reply := range []actiontest.Reply{{Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `{}`}, {Status: 400, Body: `{}`}} {
		b := vendor().New(t)
		b.Answers("PATCH /v1/blocks/new1/children", reply)
		_, err := b.Run(`{"action_type":"create_page","parent":"page1","properties":{"title":"t"},`+many+`}`, ``)
		if f := fault.From(err); f.Code != fault.RemoteError || f.Retryable || !strings.Contains(f.Message, "new1 was made") {
			t.Errorf("%d: %v, retryable %v", reply.Status, err, f.Retryable)
		}
	}
	b := vendor().New(t)
	b.Loses("PATCH /v1/blocks/new1/children")
	if _, err := b.Run(`{"action_type":"create_page","parent":"page1","properties":{"title":"t"},`+many+`}`, ``); fault.CodeOf(err) != fault.OutcomeUnknown {
		t.Errorf("the answer was lost: %v", err)
	}
}
