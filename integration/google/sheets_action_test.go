package google

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
)

// fakeSheets is the Sheets API with one spreadsheet, doc1234567890, and one sheet, My 'Orders'. It refuses what the real one refuses.
type fakeSheets struct {
	t    testing.TB
	mu   sync.Mutex
	rows map[int][]any // by their number
	size int
	tabs map[string]bool
}

const (
	sheetID   = "doc1234567890"
	sheetRows = 7
)

// newSheets has its rows far apart, so that they are read in three blocks.
func newSheets(t testing.TB) http.Handler {
	f := &fakeSheets{t: t, rows: map[int][]any{1: {"id", "name", "note"}}, size: 2600, tabs: map[string]bool{"My 'Orders'": true}}
	for n := range sheetRows {
		f.rows[2+n*400] = []any{n, "Ann"}
	}
	m := http.NewServeMux()
	const doc = "/v4/spreadsheets/" + sheetID
	for pattern, serve := range map[string]func(w http.ResponseWriter, r *http.Request){
		"GET " + doc: f.about, "GET " + doc + "/values/{range}": f.get, "PUT " + doc + "/values/{range}": f.update, "POST " + doc + "/values/{range}": f.post,
		"POST " + doc + "/values:batchUpdate": f.batch, "POST " + doc + ":batchUpdate": f.add,
		"POST /v4/spreadsheets": func(w http.ResponseWriter, r *http.Request) {
			actiontest.Write(t, w, 200, map[string]any{"spreadsheetId": "new1", "properties": actiontest.Read(t, r)["properties"]})
		},
		"/": func(w http.ResponseWriter, _ *http.Request) { f.refuse(w, 404, "Requested entity was not found.") },
	} {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "+actiontest.Token) {
				f.refuse(w, 401, "Request had invalid authentication credentials.")
				return
			}
			serve(w, r)
		})
	}
	return m
}

func (f *fakeSheets) refuse(w http.ResponseWriter, status int, message string) {
	actiontest.Write(f.t, w, status, map[string]any{"error": map[string]any{"code": status, "message": message}})
}

// oneRange is a range of rows, or of cells from a row on.
var oneRange = regexp.MustCompile(`^(?:'My ''Orders'''!)?[A-Z]?(\d+)(?::[A-Z]?(\d+))?$`)

// at reads a range; false: it is refused.
func (f *fakeSheets) at(w http.ResponseWriter, text string) (from, to int, ok bool) {
	found := oneRange.FindStringSubmatch(text)
	if found == nil {
		f.refuse(w, 400, "Unable to parse range: "+text)
		return 0, 0, false
	}
	from, err := strconv.Atoi(found[1])
	if err != nil {
		f.t.Error(err)
	}
	if to = from; found[2] != "" {
		if to, err = strconv.Atoi(found[2]); err != nil {
			f.t.Error(err)
		}
	}
	if from > f.size || to > f.size {
		f.refuse(w, 400, fmt.Sprintf("Range (%s) exceeds grid limits. Max rows: %d", text, f.size))
		return 0, 0, false
	}
	return from, to, true
}

func (f *fakeSheets) about(w http.ResponseWriter, _ *http.Request) {
	actiontest.Write(f.t, w, 200, map[string]any{"spreadsheetId": sheetID, "sheets": []any{
		map[string]any{"properties": map[string]any{"title": "My 'Orders'", "gridProperties": map[string]any{"rowCount": f.size}}},
	}})
}

func (f *fakeSheets) get(w http.ResponseWriter, r *http.Request) {
	from, to, ok := f.at(w, r.PathValue("range"))
	if !ok {
		return
	}
	answer := map[string]any{"range": r.PathValue("range"), "majorDimension": "ROWS"}
	rows, last := []any{}, 0
	for n := from; n <= to; n++ {
		row := f.rows[n]
		if row == nil {
			row = []any{}
		}
		if rows = append(rows, row); len(row) > 0 {
			last = len(rows)
		}
	}
	if last > 0 {
		answer["values"] = rows[:last]
	}
	actiontest.Write(f.t, w, 200, answer)
}

// write writes rows; null leaves a cell as it is.
func (f *fakeSheets) write(from int, list []any) {
	for i, line := range list {
		cells, _ := line.([]any)
		row := append([]any{}, f.rows[from+i]...)
		for n, cell := range cells {
			for len(row) <= n {
				row = append(row, "")
			}
			if cell != nil {
				row[n] = cell
			}
		}
		f.rows[from+i] = row
	}
}

func (f *fakeSheets) update(w http.ResponseWriter, r *http.Request) {
	list, _ := actiontest.Read(f.t, r)["values"].([]any)
	from, _, ok := f.at(w, r.PathValue("range"))
	if !ok {
		return
	}
	if r.URL.Query().Get("valueInputOption") == "" {
		f.refuse(w, 400, "'valueInputOption' is required but not specified")
		return
	}
	f.write(from, list)
	actiontest.Write(f.t, w, 200, map[string]any{"spreadsheetId": sheetID, "updatedRows": len(list)})
}

func (f *fakeSheets) post(w http.ResponseWriter, r *http.Request) {
	if where, ok := strings.CutSuffix(r.PathValue("range"), ":clear"); ok {
		from, to, ok := f.at(w, where)
		for n := from; ok && n <= to; n++ {
			delete(f.rows, n)
		}
		if ok {
			actiontest.Write(f.t, w, 200, map[string]any{"spreadsheetId": sheetID, "clearedRange": where})
		}
		return
	}
	where, ok := strings.CutSuffix(r.PathValue("range"), ":append")
	if _, _, fine := f.at(w, where); !ok || !fine {
		return
	}
	list, _ := actiontest.Read(f.t, r)["values"].([]any)
	last := 0
	for n := range f.rows {
		last = max(last, n)
	}
	f.write(last+1, list)
	f.size = max(f.size, last+len(list))
	actiontest.Write(f.t, w, 200, map[string]any{"spreadsheetId": sheetID, "updates": map[string]any{"updatedRows": len(list)}})
}

func (f *fakeSheets) batch(w http.ResponseWriter, r *http.Request) {
	data, _ := actiontest.Read(f.t, r)["data"].([]any)
	for _, one := range data {
		part, _ := one.(map[string]any)
		from, _, ok := f.at(w, part["range"].(string))
		if !ok {
			return
		}
		f.write(from, part["values"].([]any))
	}
	actiontest.Write(f.t, w, 200, map[string]any{"spreadsheetId": sheetID, "totalUpdatedRows": len(data)})
}

func (f *fakeSheets) add(w http.ResponseWriter, r *http.Request) {
	raw, err := json.Marshal(actiontest.Read(f.t, r))
	if err != nil {
		f.t.Error(err)
	}
	title := regexp.MustCompile(`"title":"([^"]*)"`).FindStringSubmatch(string(raw))[1]
	if f.tabs[title] {
		f.refuse(w, 400, `Invalid requests[0].addSheet: A sheet with the name "`+title+`" already exists. Please enter another name.`)
		return
	}
	f.tabs[title] = true
	actiontest.Write(f.t, w, 200, map[string]any{"spreadsheetId": sheetID, "replies": []any{}})
}

func sheetsVendor() actiontest.Vendor {
	const doc = `"spreadsheet_id":"` + sheetID + `","sheet":"My 'Orders'"`
	appending := actiontest.Sample{Config: `{"action_type":"append_rows",` + doc + `,"values":[[1]]}`, Call: "POST /v4/spreadsheets/" + sheetID + "/values/"}
	read := actiontest.Sample{Config: `{"action_type":"read_rows",` + doc + `}`, Call: "GET /v4/spreadsheets/" + sheetID}
	get := actiontest.Sample{Config: `{"action_type":"get_spreadsheet",` + doc + `}`, Call: "GET /v4/spreadsheets/" + sheetID}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	return actiontest.Vendor{
		Kind: sheetsAction, Serve: newSheets, Prefix: "/proxy", Renews: true, Once: appending, Read: get, Pages: read, Total: sheetRows,
		Refusals: []actiontest.Refusal{
			{Name: "NoRows", Sample: only(`{"action_type":"append_rows",` + doc + `}`), Code: fault.InvalidInput, Part: "rows or values"},
			{Name: "OtherDocument", Sample: only(`{"action_type":"get_spreadsheet","spreadsheet_id":"none"}`), Code: fault.NotFound, Part: "not found"},
			{Name: "OtherSheet", Sample: only(`{"action_type":"read_rows","spreadsheet_id":"` + sheetID + `","sheet":"x"}`), Code: fault.NotFound, Part: `no sheet "x"`},
			{Name: "WrongRange", Sample: only(`{"action_type":"get_values",` + doc + `,"range":"!!"}`), Code: fault.RemoteRejected, Part: "Unable to parse range"},
			{Name: "OtherColumn", Sample: only(`{"action_type":"append_rows",` + doc + `,"rows":[{"nope":1}]}`), Code: fault.InvalidInput, Part: `no column "nope"; it has id, name, note`},
			{Name: "OtherColumnWanted", Sample: only(`{"action_type":"read_rows",` + doc + `,"where":{"nope":1}}`), Code: fault.InvalidInput, Part: "nope"},
			{Name: "OtherKey", Sample: only(`{"action_type":"upsert_rows",` + doc + `,"rows":[{"id":1}],"key_column":"nope"}`), Code: fault.InvalidInput, Part: "nope"},
			{Name: "NoKey", Sample: only(`{"action_type":"upsert_rows",` + doc + `,"rows":[{"name":"x"}],"key_column":"id"}`), Code: fault.InvalidInput, Part: `rows.0 has no "id"`},
			{Name: "NotARow", Sample: only(`{"action_type":"append_rows",` + doc + `,"rows":[1]}`), Code: fault.InvalidInput, Part: "rows.0"},
			{Name: "NoCursor", Sample: only(`{"action_type":"read_rows",` + doc + `,"cursor":"x"}`), Code: fault.InvalidInput, Part: "cursor"},
			{Name: "SameSheet", Sample: only(`{"action_type":"add_sheet",` + doc + `,"title":"My 'Orders'"}`), Code: fault.RemoteRejected, Part: "already exists"},
			{Name: "Quota", Sample: appending, Reply: actiontest.Reply{Status: 403, Header: map[string]string{"Retry-After": "9"}, Body: `{"error":{"message":"slow","errors":[{"reason":"userRateLimitExceeded"}]}}`}, Code: fault.RateLimited, Retryable: true, AfterSeconds: 9},
		},
	}
}

func TestSheets_Operations(t *testing.T) {
	t.Parallel()
	const doc, at = `"spreadsheet_id":"` + sheetID + `","sheet":"My 'Orders'"`, "/v4/spreadsheets/" + sheetID
	const cells = at + "/values/%27My%20%27%27Orders%27%27%27%21"
	sheetsVendor().Operations(t, []actiontest.Operation{
		{Name: "AppendValues", Config: `{"action_type":"append_rows",` + doc + `,"values":[[1,"=A1"]],"value_input":"RAW"}`, Call: "POST " + at + "/values/", Query: map[string]string{"valueInputOption": "RAW", "insertDataOption": "INSERT_ROWS"}, Body: `{"values":[[1,"=A1"]]}`, Result: `{"success":true,"updated_rows":1,"resource_id":"` + sheetID + `","resource_url":"https://docs.google.com/spreadsheets/d/` + sheetID + `"}`},
		{Name: "AppendRows", Config: `{"action_type":"append_rows",` + doc + `}`, Input: `{"rows":[{"note":{"a":1},"id":9},{"name":null}]}`, Call: "POST " + at + "/values/", Body: `{"values":[[9,null,"{\"a\":1}"],[null,"",null]]}`, Query: map[string]string{"valueInputOption": "USER_ENTERED"}, Result: `{"updated_rows":2}`},
		{Name: "AppendFirst", Config: `{"action_type":"append_rows","spreadsheet_id":"` + sheetID + `","header_row":5,"rows":{"x":1,"y":2}}`, Call: "POST " + at + "/values/A5:append", Body: `{"values":[["x","y"],[1,2]]}`, Result: `{"updated_rows":2}`},
		{Name: "Create", Config: `{"action_type":"create_spreadsheet","title":"T"}`, Call: "POST /v4/spreadsheets", Body: `{"properties":{"title":"T"}}`, Result: `{"resource_id":"new1","resource_url":"https://docs.google.com/spreadsheets/d/new1"}`},
		{Name: "UpsertThere", Config: `{"action_type":"upsert_rows",` + doc + `,"rows":[{"id":1,"note":"x"}],"key_column":"id"}`, Call: "POST " + at + "/values:batchUpdate", Body: `{"data":[{"range":"'My ''Orders'''!A402","values":[[1,null,"x"]]}]}`, Result: `{"updated_rows":1}`},
		{Name: "UpsertNew", Config: `{"action_type":"upsert_rows",` + doc + `,"rows":[{"id":1,"note":"x"},{"id":99}],"key_column":"id"}`, Call: "POST " + at + "/values/", Body: `{"values":[[99,null,null]]}`, Result: `{"updated_rows":2}`},
		{Name: "Update", Config: `{"action_type":"update_values","spreadsheet_id":"https://docs.google.com/spreadsheets/d/` + sheetID + `/edit#gid=0","range":"A2:B3","values":[[1,2],[3,4]]}`, Call: "PUT " + at + "/values/A2:B3", Query: map[string]string{"valueInputOption": "USER_ENTERED"}, Body: `{"range":"A2:B3","values":[[1,2],[3,4]]}`, Result: `{"updated_rows":2}`},
		{Name: "Clear", Config: `{"action_type":"clear_values",` + doc + `,"range":"A2:B3"}`, Call: "POST " + at + "/values/A2:B3:clear"},
		{Name: "AddSheet", Config: `{"action_type":"add_sheet",` + doc + `,"title":"More"}`, Call: "POST " + at + ":batchUpdate", Body: `{"requests":[{"addSheet":{"properties":{"title":"More"}}}]}`},
		{Name: "ReadWhere", Config: `{"action_type":"read_rows",` + doc + `,"where":{"id":"1","name":"Ann"},"value_render":"FORMATTED_VALUE"}`, Call: "GET " + cells + "2:1001", Query: map[string]string{"valueRenderOption": "FORMATTED_VALUE"}, Result: `{"items":[{"id":1,"name":"Ann","note":"","row_number":402}],"truncated":false}`},
		{Name: "ReadBelow", Config: `{"action_type":"read_rows","spreadsheet_id":"` + sheetID + `","header_row":402,"limit":1}`, Call: "GET " + at + "/values/403:1402", Result: `{"items":[{"1":2,"Ann":"Ann","row_number":802}],"truncated":true}`},
		{Name: "GetValues", Config: `{"action_type":"get_values",` + doc + `,"range":"1:2","value_render":"FORMULA"}`, Call: "GET " + at + "/values/1:2", Query: map[string]string{"valueRenderOption": "FORMULA"}, Result: `{"values":[["id","name","note"],[0,"Ann"]]}`},
		{Name: "GetNothing", Config: `{"action_type":"get_values",` + doc + `,"range":"5:6"}`, Call: "GET " + at + "/values/5:6", Result: `{"values":[]}`},
		{Name: "About", Config: `{"action_type":"get_spreadsheet",` + doc + `}`, Call: "GET " + at, Result: `{"sheets_response":{"spreadsheetId":"` + sheetID + `"}}`},
		{Name: "Request", Config: `{"action_type":"request","method":"POST","path":"/v4/spreadsheets","query":{"a":1},"body":{"properties":{"title":"x"}}}`, Call: "POST /v4/spreadsheets", Query: map[string]string{"a": "1"}, Body: `{"properties":{"title":"x"}}`, Result: `{"resource_id":"new1"}`},
	})
}

func TestSheets_Failures(t *testing.T) {
	t.Parallel()
	sheetsVendor().Failures(t)
}

// TestSheets_Again: what is so already is a success, and a row is not added twice.
func TestSheets_Again(t *testing.T) {
	t.Parallel()
	b := sheetsVendor().New(t)
	const doc = `"spreadsheet_id":"` + sheetID + `","sheet":"My 'Orders'"`
	for _, config := range []string{`{"action_type":"add_sheet",` + doc + `,"title":"More"}`, `{"action_type":"upsert_rows",` + doc + `,"rows":[{"id":77,"name":"Eve"}],"key_column":"id"}`} {
		call := b.Call(config, ``)
		for call.Attempt = 1; call.Attempt <= 2; call.Attempt++ {
			if _, err := b.Kind.Run(context.Background(), call); err != nil {
				t.Errorf("%s: %v", config, err)
			}
		}
	}
	out, err := b.Run(`{"action_type":"read_rows",`+doc+`,"where":{"id":77}}`, ``)
	if err != nil || out.Get("items.#").Int() != 1 {
		t.Errorf("%s, %v", out.Raw, err)
	}
}
