package airtable

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
)

// fake is the Web API of Airtable with one base, appA, and one table, tblO or Orders. It refuses what the real one refuses.
type fake struct {
	t       testing.TB
	mu      sync.Mutex
	records []map[string]any
	made    int
}

const recordCount = 7

func newFake(t testing.TB) http.Handler {
	f := &fake{t: t}
	for n := range recordCount {
		f.records = append(f.records, map[string]any{"id": fmt.Sprintf("rec%d", n), "fields": map[string]any{"Number": n}})
	}
	m := http.NewServeMux()
	for pattern, serve := range map[string]func(w http.ResponseWriter, r *http.Request){
		"GET /v0/appA/{table}": f.list, "POST /v0/appA/{table}": f.change, "PATCH /v0/appA/{table}": f.change, "DELETE /v0/appA/{table}": f.delete,
		"GET /v0/appA/{table}/{id}": f.get,
		"GET /v0/meta/bases": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("offset") == "" {
				actiontest.Write(t, w, 200, map[string]any{"bases": []any{map[string]any{"id": "appA"}}, "offset": "o1"})
				return
			}
			actiontest.Write(t, w, 200, map[string]any{"bases": []any{map[string]any{"id": "appB"}}})
		},
		"GET /v0/meta/bases/appA/tables": func(w http.ResponseWriter, _ *http.Request) {
			actiontest.Write(t, w, 200, map[string]any{"tables": []any{map[string]any{"id": "tblO"}}})
		},
		"PUT /v0/thing": func(w http.ResponseWriter, r *http.Request) { actiontest.Write(t, w, 200, actiontest.Read(t, r)) },
		"/": func(w http.ResponseWriter, _ *http.Request) {
			actiontest.Write(t, w, 404, map[string]string{"error": "NOT_FOUND"})
		},
	} {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if r.Header.Get("Authorization") != "Bearer "+actiontest.Token {
				actiontest.Write(t, w, 401, map[string]any{"error": map[string]string{"type": "AUTHENTICATION_REQUIRED", "message": "Authentication required"}})
				return
			}
			if table := r.PathValue("table"); table != "" && table != "tblO" && table != "Orders" {
				f.refuse(w, 403, "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND", "Invalid permissions, or the requested model was not found.")
				return
			}
			serve(w, r)
		})
	}
	return m
}

func (f *fake) refuse(w http.ResponseWriter, status int, kind, message string) {
	actiontest.Write(f.t, w, status, map[string]any{"error": map[string]string{"type": kind, "message": message}})
}

func (f *fake) find(id string) int {
	return slices.IndexFunc(f.records, func(r map[string]any) bool { return r["id"] == id })
}

func (f *fake) get(w http.ResponseWriter, r *http.Request) {
	i := f.find(r.PathValue("id"))
	if i < 0 {
		actiontest.Write(f.t, w, 404, map[string]string{"error": "NOT_FOUND"})
		return
	}
	actiontest.Write(f.t, w, 200, f.records[i])
}

// list hands out at most three records at once.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	if actiontest.Number(r, "pageSize", 100) > 100 {
		f.refuse(w, 422, "INVALID_PAGE_SIZE", "pageSize")
		return
	}
	from := 0
	if offset := r.URL.Query().Get("offset"); offset != "" {
		if from = f.find(strings.TrimPrefix(offset, "itr@/")); from < 0 {
			f.refuse(w, 422, "LIST_RECORDS_ITERATOR_NOT_AVAILABLE", "")
			return
		}
	}
	page, more := actiontest.Part(f.records, from, min(3, actiontest.Number(r, "pageSize", 100)))
	answer := map[string]any{"records": page}
	if more {
		answer["offset"] = fmt.Sprintf("itr@/%s", f.records[from+len(page)]["id"])
	}
	actiontest.Write(f.t, w, 200, answer)
}

// change makes, changes and merges records.
func (f *fake) change(w http.ResponseWriter, r *http.Request) {
	body := actiontest.Read(f.t, r)
	list, _ := body["records"].([]any)
	upsert, merges := body["performUpsert"].(map[string]any)
	if len(list) == 0 || len(list) > 10 {
		f.refuse(w, 422, "INVALID_REQUEST_UNKNOWN", "records")
		return
	}
	var out []any
	for _, one := range list {
		record, _ := one.(map[string]any)
		fields, ok := record["fields"].(map[string]any)
		if _, wrong := fields["Nope"]; !ok || wrong {
			f.refuse(w, 422, "UNKNOWN_FIELD_NAME", `Unknown field name: "Nope"`)
			return
		}
		i := -1
		switch id, _ := record["id"].(string); {
		case merges:
			on, _ := upsert["fieldsToMergeOn"].([]any)
			i = slices.IndexFunc(f.records, func(r map[string]any) bool {
				return fmt.Sprint(r["fields"].(map[string]any)[on[0].(string)]) == fmt.Sprint(fields[on[0].(string)])
			})
		case r.Method == http.MethodPatch:
			if i = f.find(id); i < 0 {
				f.refuse(w, 404, "MODEL_ID_NOT_FOUND", "Record not found")
				return
			}
		}
		if i < 0 {
			f.made++
			f.records = append(f.records, map[string]any{"id": fmt.Sprintf("new%d", f.made), "fields": map[string]any{}})
			i = len(f.records) - 1
		}
		for name, value := range fields {
			f.records[i]["fields"].(map[string]any)[name] = value
		}
		out = append(out, f.records[i])
	}
	actiontest.Write(f.t, w, 200, map[string]any{"records": out})
}

func (f *fake) delete(w http.ResponseWriter, r *http.Request) {
	var out []any
	for _, id := range r.URL.Query()["records[]"] {
		i := f.find(id)
		if i < 0 {
			f.refuse(w, 404, "MODEL_ID_NOT_FOUND", "Record not found")
			return
		}
		f.records = slices.Delete(f.records, i, i+1)
		out = append(out, map[string]any{"id": id, "deleted": true})
	}
	actiontest.Write(f.t, w, 200, map[string]any{"records": out})
}

func vendor() actiontest.Vendor {
	create := actiontest.Sample{Config: `{"action_type":"create_records","base_id":"appA","table":"tblO","records":{"Number":1}}`, Call: "POST /v0/appA/tblO"}
	list := actiontest.Sample{Config: `{"action_type":"list_records","base_id":"appA","table":"tblO"}`, Call: "GET /v0/appA/tblO"}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	eleven := strings.Repeat(`{"Number":1},`, 10) + `{"Number":1}`
	return actiontest.Vendor{
		Kind: act, Serve: newFake, Prefix: "/proxy", Once: create, Read: list, Pages: list, Total: recordCount,
		Refusals: []actiontest.Refusal{
			{Name: "NoRecords", Sample: only(`{"action_type":"create_records","base_id":"appA","table":"tblO"}`), Code: fault.InvalidInput, Part: "records"},
			{Name: "EmptyRecords", Sample: only(`{"action_type":"create_records","base_id":"appA","table":"tblO","records":[]}`), Code: fault.InvalidInput, Part: "empty"},
			{Name: "TooMany", Sample: only(`{"action_type":"create_records","base_id":"appA","table":"tblO","records":[` + eleven + `]}`), Code: fault.InvalidInput, Part: "at most 10"},
			{Name: "NotARecord", Sample: only(`{"action_type":"create_records","base_id":"appA","table":"tblO","records":[1]}`), Code: fault.InvalidInput, Part: "records.0"},
			{Name: "NoID", Sample: only(`{"action_type":"update_records","base_id":"appA","table":"tblO","records":[{"Number":1}]}`), Code: fault.InvalidInput, Part: "no id"},
			{Name: "UnknownField", Sample: only(`{"action_type":"create_records","base_id":"appA","table":"tblO","records":[{"Nope":1}]}`), Code: fault.RemoteRejected, Part: "Unknown field name"},
			{Name: "OtherTable", Sample: only(`{"action_type":"list_records","base_id":"appA","table":"x"}`), Code: fault.CredentialInvalid, Part: "was not found"},
			{Name: "OtherRecord", Sample: only(`{"action_type":"get_record","base_id":"appA","table":"tblO","record_id":"none"}`), Code: fault.NotFound, Part: "NOT_FOUND"},
			{Name: "DeleteOther", Sample: only(`{"action_type":"delete_records","base_id":"appA","table":"tblO","record_ids":["none"]}`), Code: fault.NotFound},
			{Name: "OwnLimit", Sample: create, Reply: actiontest.Reply{Status: 429, Body: `{"errors":[{"error":"RATE_LIMIT_REACHED"}]}`}, Code: fault.RateLimited, Retryable: true, AfterSeconds: 30},
			{Name: "NoList", Sample: create, Reply: actiontest.Reply{Status: 200, Body: `{}`}, Code: fault.OutcomeUnknown, Part: "no records"},
		},
	}
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	vendor().Operations(t, []actiontest.Operation{
		{
			Name: "Create", Config: `{"action_type":"create_records","base_id":"appA","table":"tblO","records":[{"Number":1,"id":"of the order"}],"typecast":true}`, Call: "POST /v0/appA/tblO",
			Body: `{"records":[{"fields":{"Number":1,"id":"of the order"}}],"typecast":true}`, Result: `{"success":true,"resource_id":"new1","resource_url":"https://airtable.com/appA/tblO/new1","items":[{"id":"new1"}],"airtable_response":null}`,
		},
		{Name: "CreateWithFields", Config: `{"action_type":"create_records","base_id":"appA","table":"Orders"}`, Input: `{"records":{"fields":{"Number":1}}}`, Call: "POST /v0/appA/Orders", Body: `{"records":[{"fields":{"Number":1}}]}`, Result: `{"resource_id":"new1","resource_url":""}`},
		{Name: "Update", Config: `{"action_type":"update_records","base_id":"appA","table":"tblO","records":[{"id":"rec1","Number":9},{"id":"rec2","fields":{"Number":8}}]}`, Call: "PATCH /v0/appA/tblO", Body: `{"records":[{"id":"rec1","fields":{"Number":9}},{"id":"rec2","fields":{"Number":8}}]}`, Result: `{"resource_id":"","items":[{"id":"rec1"},{"id":"rec2"}]}`},
		{Name: "Upsert", Config: `{"action_type":"upsert_records","base_id":"appA","table":"tblO","records":[{"Number":3,"Note":"x"}],"merge_on":["Number"]}`, Call: "PATCH /v0/appA/tblO", Body: `{"records":[{"fields":{"Number":3,"Note":"x"}}],"performUpsert":{"fieldsToMergeOn":["Number"]}}`, Result: `{"resource_id":"rec3"}`},
		{Name: "Delete", Config: `{"action_type":"delete_records","base_id":"appA","table":"tblO","record_ids":["rec1","rec2"]}`, Call: "DELETE /v0/appA/tblO", Query: map[string]string{"records[]": "rec1,rec2"}, Result: `{"items":[{"id":"rec1","deleted":true},{"id":"rec2"}]}`},
		{
			Name: "List", Config: `{"action_type":"list_records","base_id":"appA","table":"tblO","limit":2,"view":"Grid","formula":"{Number} > 1","fields":["Number","Note"],"sort":[{"field":"Number","direction":"desc"},{"field":"Note"}]}`, Call: "GET /v0/appA/tblO",
			Query:  map[string]string{"pageSize": "2", "view": "Grid", "filterByFormula": "{Number} > 1", "fields[]": "Number,Note", "sort[0][field]": "Number", "sort[0][direction]": "desc", "sort[1][direction]": "asc"},
			Result: `{"items":[{"id":"rec0"},{"id":"rec1"}],"truncated":true}`,
		},
		{Name: "Get", Config: `{"action_type":"get_record","base_id":"appA","table":"tblO","record_id":"rec1"}`, Call: "GET /v0/appA/tblO/rec1", Result: `{"resource_id":"rec1","airtable_response":{"fields":{"Number":1}}}`},
		{Name: "Bases", Config: `{"action_type":"list_bases","limit":1}`, Call: "GET /v0/meta/bases", Result: `{"items":[{"id":"appA"}],"truncated":true,"next_cursor":"offset=o1"}`},
		{Name: "Tables", Config: `{"action_type":"list_tables","base_id":"appA"}`, Call: "GET /v0/meta/bases/appA/tables", Result: `{"items":[{"id":"tblO"}]}`},
		{Name: "Request", Config: `{"action_type":"request","method":"PUT","path":"thing","query":{"a":1},"body":{"id":"x"}}`, Call: "PUT /v0/thing", Query: map[string]string{"a": "1"}, Body: `{"id":"x"}`, Result: `{"resource_id":"x"}`},
	})
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	vendor().Failures(t)
}

// TestAction_Many: more records than Airtable takes at once are sent in several calls where a repeat does no harm.
func TestAction_Many(t *testing.T) {
	t.Parallel()
	b := vendor().New(t)
	var records, ids []string
	for n := range 23 {
		records, ids = append(records, fmt.Sprintf(`{"Number":%d}`, 100+n)), append(ids, fmt.Sprintf(`"new%d"`, n+1))
	}
	out, err := b.Run(`{"action_type":"upsert_records","base_id":"appA","table":"tblO","merge_on":["Number"],"records":[`+strings.Join(records, ",")+`]}`, ``)
	if err != nil || out.Get("items.#").Int() != 23 || len(b.Calls("PATCH ")) != 3 {
		t.Errorf("%d records in %d calls: %v", out.Get("items.#").Int(), len(b.Calls("PATCH ")), err)
	}
	call := b.Call(`{"action_type":"delete_records","base_id":"appA","table":"tblO","record_ids":[`+strings.Join(ids, ",")+`]}`, ``)
	for call.Attempt = 1; call.Attempt <= 2; call.Attempt++ {
		if _, err := b.Kind.Run(context.Background(), call); err != nil {
			t.Errorf("attempt %d: %v", call.Attempt, err)
		}
	}
}
