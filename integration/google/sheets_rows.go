package google

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
)

// sheetsActing is one run of an operation.
type sheetsActing struct {
	ctx  context.Context
	call *node.Call
	cfg  sheetsConfig
	api  *rest.API
}

// inAddress finds the id of a document in its address.
var inAddress = regexp.MustCompile(`/(?:d|folders)/([A-Za-z0-9_-]{10,})`)

// documentID is the id of a document that is named by it or by its address.
func documentID(text string) string {
	if found := inAddress.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return text
}

func (a *sheetsActing) id() string { return documentID(a.cfg.SpreadsheetID) }

func (a *sheetsActing) document(more ...any) string {
	return rest.Path(append([]any{"spreadsheets", a.id()}, more...)...)
}

// cells is where the values of a range are.
func (a *sheetsActing) cells(within string) string { return a.document("values", within) }

// made is the result of an answer.
func (a *sheetsActing) made(answer rest.Answer) (out sheetsResult) {
	out.ResourceID, out.Response, out.RateLimit = answer.Get("spreadsheetId").Str, answer.Raw(), answer.Limits()
	if out.ResourceID == "" {
		out.ResourceID = a.id()
	}
	out.ResourceURL = "https://docs.google.com/spreadsheets/d/" + out.ResourceID
	return out
}

func (a *sheetsActing) get() (out sheetsResult, err error) {
	answer, err := a.readRange(a.cfg.Range)
	if err != nil {
		return out, err
	}
	out = a.made(answer)
	if out.Values = json.RawMessage(answer.Get("values").Raw); len(out.Values) == 0 {
		out.Values = json.RawMessage("[]")
	}
	return out, nil
}

// readRange reads the values of a range.
func (a *sheetsActing) readRange(within string) (rest.Answer, error) {
	return a.api.Do(a.ctx, rest.Call{
		Method: http.MethodGet, Path: a.cells(within), Query: url.Values{"valueRenderOption": {a.cfg.ValueRender},
			"majorDimension": {"ROWS"}}, Fields: []string{"range"},
	})
}

func (a *sheetsActing) about() (out sheetsResult, err error) {
	answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodGet, Path: a.document(),
		Query: url.Values{"fields": {"spreadsheetId,properties,sheets.properties"}}, Fields: []string{"spreadsheetId"}})
	if err != nil {
		return out, err
	}
	return a.made(answer), nil
}

func (a *sheetsActing) create() (out sheetsResult, err error) {
	answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodPost, Path: "/spreadsheets",
		Body: map[string]any{"properties": map[string]string{"title": a.cfg.Title}}, Fields: []string{"spreadsheetId"}})
	if err != nil {
		return out, err
	}
	return a.made(answer), nil
}

// addSheet adds a sheet. One that is there when it is tried again was added before.
func (a *sheetsActing) addSheet() (out sheetsResult, err error) {
	body := map[string]any{"requests": []any{map[string]any{"addSheet": map[string]any{"properties": map[string]string{"title": a.cfg.Title}}}}}
	answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodPost, Path: a.document() + ":batchUpdate", Body: body, Repeatable: true,
		Fields: []string{"spreadsheetId"}})
	if a.call.Attempt > 1 && rest.Status(err) == http.StatusBadRequest && strings.Contains(err.Error(), "already exists") {
		err = nil
	}
	if err != nil {
		return out, err
	}
	return a.made(answer), nil
}

func (a *sheetsActing) update() (out sheetsResult, err error) {
	answer, err := a.api.Do(a.ctx, rest.Call{
		Method: http.MethodPut, Path: a.cells(a.cfg.Range), Query: url.Values{"valueInputOption": {a.cfg.ValueInput}},
		Body: map[string]any{"range": a.cfg.Range, "majorDimension": "ROWS", "values": a.cfg.Values}, Fields: []string{"spreadsheetId"},
	})
	if err != nil {
		return out, err
	}
	out = a.made(answer)
	out.Updated = answer.Get("updatedRows").Int()
	return out, nil
}

func (a *sheetsActing) clear() (out sheetsResult, err error) {
	answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodPost, Path: a.cells(a.cfg.Range) + ":clear", Body: map[string]any{},
		Repeatable: true, Fields: []string{"spreadsheetId"}})
	if err != nil {
		return out, err
	}
	return a.made(answer), nil
}

func (a *sheetsActing) request() (sheetsResult, error) {
	answer, err := a.api.Request(a.ctx, rest.Raw{Method: a.cfg.Method, Path: a.cfg.Path, Query: a.cfg.Query, Body: a.cfg.Body})
	if err != nil {
		return sheetsResult{}, err
	}
	out := sheetsResult{Response: answer.Raw()}
	out.ResourceID, out.RateLimit = answer.Get("spreadsheetId").Str, answer.Limits()
	return out, nil
}

// within is a range of the sheet, in the notation of Google.
func (a *sheetsActing) within(cells string) string {
	if a.cfg.Sheet == "" {
		return cells
	}
	return "'" + strings.ReplaceAll(a.cfg.Sheet, "'", "''") + "'!" + cells
}

// headings are those of the columns.
func (a *sheetsActing) headings() (list []string, err error) {
	row := strconv.Itoa(a.cfg.HeaderRow)
	answer, err := a.readRange(a.within(row + ":" + row))
	if err != nil {
		return nil, err
	}
	for _, cell := range answer.Get("values.0").Array() {
		list = append(list, cell.String())
	}
	return list, nil
}

// blockRows is how many rows are read at once.
const blockRows = 1000

// length is how many rows the sheet has.
func (a *sheetsActing) length() (int, error) {
	answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodGet, Path: a.document(),
		Query: url.Values{"fields": {"sheets.properties(title,gridProperties.rowCount)"}}, Fields: []string{"sheets"}})
	if err != nil {
		return 0, err
	}
	for _, s := range answer.Get("sheets.#.properties").Array() {
		if a.cfg.Sheet == "" || s.Get("title").Str == a.cfg.Sheet {
			return int(s.Get("gridProperties.rowCount").Int()), nil
		}
	}
	return 0, fault.Newf(fault.NotFound, "the spreadsheet has no sheet %q", a.cfg.Sheet).With("path", "sheet")
}

// block reads some rows, as lists of cells; empty ones at the end are left out by Google.
func (a *sheetsActing) block(from, length int) ([]gjson.Result, error) {
	answer, err := a.readRange(a.within(strconv.Itoa(from) + ":" + strconv.Itoa(min(from+blockRows-1, length))))
	return answer.Get("values").Array(), err
}

// readRows reads rows as objects. The cursor is the number of a row.
func (a *sheetsActing) readRows() (out sheetsResult, err error) {
	length, err := a.length()
	if err != nil {
		return out, err
	}
	headings, err := a.headings()
	if err != nil {
		return out, err
	}
	if err := a.known(headings, a.cfg.Where); err != nil {
		return out, err
	}
	wanted := gjson.ParseBytes(a.cfg.Where).Map()
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor,
		func(cursor string) (items []json.RawMessage, next string, err error) {
			from := a.cfg.HeaderRow + 1
			if cursor != "" {
				if from, err = strconv.Atoi(cursor); err != nil || from < 1 {
					return nil, "", fault.Newf(fault.InvalidInput, "%q is not a cursor; give next_cursor of an earlier run", cursor).With("path", "cursor")
				}
			}
			if from > length {
				return nil, "", nil
			}
			rows, err := a.block(from, length)
			if err != nil {
				return nil, "", err
			}
			for i, row := range rows {
				object, fits := rowObject(headings, row, wanted)
				if !fits {
					continue
				}
				object["row_number"] = from + i
				item, err := payload.Encode(object)
				if err != nil {
					return nil, "", err
				}
				items = append(items, item)
			}
			if from+blockRows <= length {
				next = strconv.Itoa(from + blockRows)
			}
			return items, next, nil
		})
	out.ResourceID = a.id()
	return out, err
}

// known says whether columns are there.
func (a *sheetsActing) known(headings []string, columns node.Object) error {
	return columns.Each(func(name string, _ json.RawMessage) error {
		if name == "row_number" || slices.Contains(headings, name) {
			return nil
		}
		return fault.Newf(fault.InvalidInput, "the sheet has no column %q; it has %s", name, strings.Join(headings, ", "))
	})
}

// rowObject is a row by its headings, and whether it is one: not empty, and as wanted.
func rowObject(headings []string, row gjson.Result, wanted map[string]gjson.Result) (object map[string]any, fits bool) {
	object = map[string]any{}
	for i, cell := range row.Array() {
		if cell.String() != "" {
			fits = true
		}
		if i < len(headings) && headings[i] != "" {
			object[headings[i]] = json.RawMessage(cell.Raw)
		}
	}
	for _, name := range headings {
		if _, there := object[name]; !there && name != "" {
			object[name] = ""
		}
	}
	for name, value := range wanted { // order does not matter: all must fit
		cell, _ := object[name].(json.RawMessage)
		if gjson.ParseBytes(cell).String() != value.String() {
			return nil, false
		}
	}
	return object, fits
}

// rows are those of the node, as objects.
func (a *sheetsActing) rows() []json.RawMessage {
	if values.IsList(a.cfg.Rows) {
		return values.Elements(a.cfg.Rows)
	}
	return []json.RawMessage{a.cfg.Rows}
}

// lines are the rows of the node as lists of cells, in the order of the headings. A cell that is not named is nil: it is left as it is.
func (a *sheetsActing) lines(headings []string) (list [][]any, err error) {
	for i, raw := range a.rows() {
		if !values.IsObject(raw) {
			return nil, fault.Newf(fault.InvalidInput, "rows.%d must be an object of the columns by their headings", i).With("path", "rows")
		}
		if err := a.known(headings, node.Object(raw)); err != nil {
			return nil, err
		}
		given := gjson.ParseBytes(raw).Map()
		line := make([]any, len(headings))
		for n, name := range headings {
			if v, there := given[name]; there {
				line[n] = cell(v)
			}
		}
		list = append(list, line)
	}
	return list, nil
}

// cell is a value as a cell can hold it.
func cell(v gjson.Result) any {
	switch {
	case v.Type == gjson.Null:
		return ""
	case v.IsObject() || v.IsArray():
		return v.Raw
	}
	return json.RawMessage(v.Raw)
}

// first are the headings of a sheet that has none yet: the fields of the first row.
func (a *sheetsActing) first() (headings []string) {
	for _, m := range values.Members(a.rows()[0]) {
		if m.Key != "row_number" {
			headings = append(headings, m.Key)
		}
	}
	return headings
}

func (a *sheetsActing) appendRows() (out sheetsResult, err error) {
	if payload.IsNull(a.cfg.Rows) {
		return a.addLines(a.cfg.Values, false)
	}
	headings, err := a.headings()
	if err != nil {
		return out, err
	}
	var written [][]any
	if len(headings) == 0 {
		headings = a.first()
		line := []any{}
		for _, name := range headings {
			line = append(line, name)
		}
		written = append(written, line)
	}
	lines, err := a.lines(headings)
	if err != nil {
		return out, err
	}
	return a.addLines(append(written, lines...), false)
}

// addLines puts lines below those that are there.
func (a *sheetsActing) addLines(lines any, repeatable bool) (out sheetsResult, err error) {
	row := strconv.Itoa(a.cfg.HeaderRow)
	answer, err := a.api.Do(a.ctx, rest.Call{
		Method: http.MethodPost, Path: a.cells(a.within("A"+row)) + ":append",
		Query: url.Values{"valueInputOption": {a.cfg.ValueInput}, "insertDataOption": {"INSERT_ROWS"}},
		Body:  map[string]any{"majorDimension": "ROWS", "values": lines}, Repeatable: repeatable, Fields: []string{"updates"},
	})
	if err != nil {
		return out, err
	}
	out = a.made(answer)
	out.Updated = answer.Get("updates.updatedRows").Int()
	return out, nil
}

// upsertRows changes the rows that have the key of one that is given, and adds the others. A repeat finds those that the first has added.
func (a *sheetsActing) upsertRows() (out sheetsResult, err error) {
	length, err := a.length()
	if err != nil {
		return out, err
	}
	headings, err := a.headings()
	if err != nil {
		return out, err
	}
	key := slices.Index(headings, a.cfg.KeyColumn)
	if key < 0 {
		return out, fault.Newf(fault.InvalidInput, "the sheet has no column %q; it has %s", a.cfg.KeyColumn,
			strings.Join(headings, ", ")).With("path", "key_column")
	}
	lines, err := a.lines(headings)
	if err != nil {
		return out, err
	}
	there := map[string]int{}
	for from := a.cfg.HeaderRow + 1; from <= length; from += blockRows {
		rows, err := a.block(from, length)
		if err != nil {
			return out, err
		}
		for i, row := range rows {
			if text := row.Get(strconv.Itoa(key)).String(); text != "" {
				there[text] = from + i
			}
		}
	}
	var data, added []any
	for i, line := range lines {
		text := gjson.ParseBytes(values.Encode(line[key])).String()
		if line[key] == nil || text == "" {
			return out, fault.Newf(fault.InvalidInput, "rows.%d has no %q", i, a.cfg.KeyColumn).With("path", "rows")
		}
		if row, ok := there[text]; ok {
			data = append(data, map[string]any{"range": a.within("A" + strconv.Itoa(row)), "majorDimension": "ROWS", "values": []any{line}})
		} else {
			added = append(added, line)
		}
	}
	if len(data) > 0 {
		answer, err := a.api.Do(a.ctx, rest.Call{
			Method: http.MethodPost, Path: a.document() + "/values:batchUpdate",
			Body: map[string]any{"valueInputOption": a.cfg.ValueInput, "data": data}, Repeatable: true,
			Fields: []string{"spreadsheetId"},
		})
		if err != nil {
			return out, err
		}
		out = a.made(answer)
	}
	if len(added) > 0 {
		if out, err = a.addLines(added, true); err != nil {
			return out, err
		}
	}
	out.Updated = int64(len(lines))
	return out, nil
}
