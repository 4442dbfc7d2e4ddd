package google

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
)

// fakeDrive is the Drive API. It refuses what the real one refuses.
type fakeDrive struct {
	t        testing.TB
	mu       sync.Mutex
	files    []map[string]any
	content  map[string]string
	sessions map[string]map[string]any
	made     int
}

const driveCount = 7

func newDrive(t testing.TB) http.Handler {
	f := &fakeDrive{t: t, content: map[string]string{}, sessions: map[string]map[string]any{}}
	for n := range driveCount {
		f.files = append(f.files, map[string]any{"id": fmt.Sprintf("list%d", n), "name": "x", "parents": []any{"box"}})
	}
	f.files = append(f.files,
		map[string]any{"id": "a1", "name": "a b.txt", "mimeType": "text/plain", "parents": []any{"root"}, "size": "5", "md5Checksum": "5d41402abc4b2a76b9719d911017c592", "webViewLink": "https://drive.google.com/file/d/a1/view"},
		map[string]any{"id": "g1", "name": "Plan", "mimeType": "application/vnd.google-apps.document", "parents": []any{"root"}},
		map[string]any{"id": "g2", "name": "List", "mimeType": "application/vnd.google-apps.spreadsheet", "parents": []any{"root"}})
	f.content["a1"] = "hello"
	m := http.NewServeMux()
	for pattern, serve := range map[string]func(w http.ResponseWriter, r *http.Request){
		"POST /drive/v3/files": f.create, "POST /drive/v3/files/{id}/copy": f.create, "GET /drive/v3/files": f.list, "GET /drive/v3/files/{id}": f.get, "PATCH /drive/v3/files/{id}": f.change,
		"DELETE /drive/v3/files/{id}": f.remove, "POST /drive/v3/files/{id}/permissions": f.share, "GET /drive/v3/files/{id}/export": f.export,
		"POST /upload/drive/v3/files": f.begin, "PATCH /upload/drive/v3/files/{id}": f.begin, "PUT /upload/drive/v3/files": f.finish, "PUT /upload/drive/v3/files/{id}": f.finish,
		"GET /drive/v3/about": func(w http.ResponseWriter, _ *http.Request) { actiontest.Write(t, w, 200, map[string]any{"user": "u"}) },
	} {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "+actiontest.Token) {
				f.refuse(w, 401, "Invalid Credentials")
				return
			}
			if id := r.PathValue("id"); id != "" && f.find(id) == nil {
				f.refuse(w, 404, "File not found: "+id+".")
				return
			}
			serve(w, r)
		})
	}
	return m
}

func (f *fakeDrive) refuse(w http.ResponseWriter, status int, message string) {
	actiontest.Write(f.t, w, status, map[string]any{"error": map[string]any{"code": status, "message": message}})
}

func (f *fakeDrive) find(id string) map[string]any {
	if i := slices.IndexFunc(f.files, func(file map[string]any) bool { return file["id"] == id }); i >= 0 {
		return f.files[i]
	}
	return nil
}

func (f *fakeDrive) put(about map[string]any) map[string]any {
	f.made++
	file := maps.Clone(about)
	file["id"] = fmt.Sprintf("new%d", f.made)
	file["webViewLink"] = fmt.Sprintf("https://drive.google.com/file/d/new%d/view", f.made)
	f.files = append(f.files, file)
	return file
}

func (f *fakeDrive) create(w http.ResponseWriter, r *http.Request) {
	actiontest.Write(f.t, w, 200, f.put(actiontest.Read(f.t, r)))
}

// marked is a query for a property.
var marked = regexp.MustCompile(`^appProperties has \{ key='tandem' and value='([0-9a-f]+)' \}$`)

// list hands out at most three files at once.
func (f *fakeDrive) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query().Get("q")
	var found []map[string]any
	for _, file := range f.files {
		properties, _ := file["appProperties"].(map[string]any)
		parents, _ := file["parents"].([]any)
		switch mark := marked.FindStringSubmatch(q); {
		case mark != nil && properties["tandem"] == mark[1], mark == nil && (!strings.Contains(q, "in parents") || slices.Contains(parents, any("box"))):
			found = append(found, file)
		}
	}
	from := 0
	if token := r.URL.Query().Get("pageToken"); token != "" {
		from = slices.IndexFunc(found, func(file map[string]any) bool { return "~!@"+file["id"].(string) == token })
	}
	page, more := actiontest.Part(found, max(from, 0), min(3, actiontest.Number(r, "pageSize", 100)))
	answer := map[string]any{"files": page}
	if more {
		answer["nextPageToken"] = "~!@" + found[from+len(page)]["id"].(string)
	}
	actiontest.Write(f.t, w, 200, answer)
}

func (f *fakeDrive) get(w http.ResponseWriter, r *http.Request) {
	file := f.find(r.PathValue("id"))
	kind, _ := file["mimeType"].(string)
	switch {
	case r.URL.Query().Get("alt") != "media":
		actiontest.Write(f.t, w, 200, file)
	case strings.HasPrefix(kind, "application/vnd.google-apps."):
		f.refuse(w, 403, "Only files with binary content can be downloaded. Use Export with Docs Editors files.")
	default:
		_, _ = io.WriteString(w, f.content[file["id"].(string)]) // the client may have left
	}
}

func (f *fakeDrive) export(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "as "+r.URL.Query().Get("mimeType")) // the client may have left
}

func (f *fakeDrive) change(w http.ResponseWriter, r *http.Request) {
	file := f.find(r.PathValue("id"))
	maps.Copy(file, actiontest.Read(f.t, r))
	if to := r.URL.Query().Get("addParents"); to != "" {
		if slices.Contains(file["parents"].([]any), any(to)) {
			f.refuse(w, 403, "The file is in that folder already.")
			return
		}
		file["parents"] = []any{to}
	}
	actiontest.Write(f.t, w, 200, file)
}

func (f *fakeDrive) remove(w http.ResponseWriter, r *http.Request) {
	f.files = slices.DeleteFunc(f.files, func(file map[string]any) bool { return file["id"] == r.PathValue("id") })
	w.WriteHeader(http.StatusNoContent)
}

func (f *fakeDrive) share(w http.ResponseWriter, r *http.Request) {
	body := actiontest.Read(f.t, r)
	if !strings.Contains(fmt.Sprint(body["emailAddress"]), "@") {
		f.refuse(w, 400, "The specified emailAddress is invalid or not applicable for the given permission type.")
		return
	}
	body["id"] = "p1"
	actiontest.Write(f.t, w, 200, body)
}

func (f *fakeDrive) begin(w http.ResponseWriter, r *http.Request) {
	about := actiontest.Read(f.t, r)
	if r.URL.Query().Get("uploadType") != "resumable" || r.Header.Get("X-Upload-Content-Type") == "" {
		f.refuse(w, 400, "Bad Request")
		return
	}
	about["mimeType"] = r.Header.Get("X-Upload-Content-Type")
	id := fmt.Sprintf("session+%d", len(f.sessions))
	f.sessions[id] = about
	w.Header().Set("Location", "https://www.googleapis.com"+r.URL.Path+"?uploadType=resumable&upload_id="+url.QueryEscape(id))
}

func (f *fakeDrive) finish(w http.ResponseWriter, r *http.Request) {
	about, ok := f.sessions[r.URL.Query().Get("upload_id")]
	data, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	if !ok {
		f.refuse(w, 404, "Not Found")
		return
	}
	file := f.find(r.PathValue("id"))
	if file == nil {
		file = f.put(about)
	} else {
		maps.Copy(file, about)
	}
	f.content[file["id"].(string)] = string(data)
	actiontest.Write(f.t, w, 200, file)
}

func driveVendor() actiontest.Vendor {
	folder := actiontest.Sample{Config: `{"action_type":"create_folder","name":"n"}`, Call: "POST /drive/v3/files"}
	upload := actiontest.Sample{Config: `{"action_type":"upload_file","name":"n","content":"c"}`, Call: "PUT /upload/drive/v3/files"}
	copied := actiontest.Sample{Config: `{"action_type":"copy_file","file_id":"a1"}`, Call: "POST /drive/v3/files/a1/copy"}
	list := actiontest.Sample{Config: `{"action_type":"list_files","folder_id":"box"}`, Call: "GET /drive/v3/files"}
	only := func(config string) actiontest.Sample { return actiontest.Sample{Config: config} }
	return actiontest.Vendor{
		Kind: func(client *outbound.Client) node.Kind { return driveAction(client, nil) }, Serve: newDrive, Prefix: "/proxy", Renews: true,
		Once: folder, Read: list, Unsure: []actiontest.Sample{folder, upload, copied}, Pages: list, Total: driveCount,
		Refusals: []actiontest.Refusal{
			{Name: "NoName", Sample: only(`{"action_type":"create_folder"}`), Code: fault.InvalidInput, Part: "name"},
			{Name: "NoContent", Sample: only(`{"action_type":"upload_file","name":"n"}`), Code: fault.InvalidInput, Part: "file or content"},
			{Name: "OtherFile", Sample: only(`{"action_type":"get_file","file_id":"none"}`), Code: fault.NotFound, Part: "File not found"},
			{Name: "DeleteOther", Sample: only(`{"action_type":"delete_file","file_id":"none","permanent":true}`), Code: fault.NotFound},
			{Name: "NoAddress", Sample: only(`{"action_type":"share_file","file_id":"a1","email":"x"}`), Code: fault.RemoteRejected, Part: "emailAddress"},
			{Name: "TooLarge", Sample: only(`{"action_type":"download_file","file_id":"a1","max_bytes":4}`), Code: fault.TooLarge},
			{Name: "TooLargeToSend", Sample: only(`{"action_type":"upload_file","content":"hello","max_bytes":4}`), Code: fault.TooLarge},
			{Name: "NotBegun", Sample: actiontest.Sample{Config: upload.Config, Call: "POST /upload/drive/v3/files"}, Reply: actiontest.Reply{Status: 500}, Code: fault.RemoteError, Retryable: true},
			{Name: "BegunNowhere", Sample: actiontest.Sample{Config: upload.Config, Call: "POST /upload/drive/v3/files"}, Reply: actiontest.Reply{Status: 200}, Code: fault.RemoteError, Retryable: true},
			{Name: "SentAndLost", Sample: upload, Reply: actiontest.Reply{Status: 502}, Code: fault.OutcomeUnknown},
			{Name: "Quota", Sample: folder, Reply: actiontest.Reply{Status: 403, Header: map[string]string{"Retry-After": "9"}, Body: `{"error":{"message":"slow","errors":[{"reason":"userRateLimitExceeded"}]}}`}, Code: fault.RateLimited, Retryable: true, AfterSeconds: 9},
		},
	}
}

func TestDrive_Operations(t *testing.T) {
	t.Parallel()
	driveVendor().Operations(t, []actiontest.Operation{
		{Name: "Upload", Config: `{"action_type":"upload_file","file":{"base64":"aGVsbG8=","name":"a.pdf"},"folder_id":"https://drive.google.com/drive/folders/box1234567890"}`, Call: "PUT /upload/drive/v3/files", Text: "hello", Header: map[string]string{"Content-Type": "application/pdf"}, Result: `{"success":true,"resource_id":"new1","resource_url":"https://drive.google.com/file/d/new1/view","drive_response":{"name":"a.pdf","parents":["box1234567890"],"mimeType":"application/pdf"}}`},
		{Name: "UploadText", Config: `{"action_type":"upload_file"}`, Input: `{"name":"n.csv","content":"a,b","content_type":"text/csv"}`, Call: "POST /upload/drive/v3/files", Query: map[string]string{"uploadType": "resumable", "supportsAllDrives": "true"}, Header: map[string]string{"X-Upload-Content-Type": "text/csv", "X-Upload-Content-Length": "3"}, Body: `{"name":"n.csv"}`, Text: `"appProperties":{"tandem":"`},
		{Name: "Folder", Config: `{"action_type":"create_folder","name":"n","folder_id":"box"}`, Call: "POST /drive/v3/files", Body: `{"name":"n","mimeType":"application/vnd.google-apps.folder","parents":["box"]}`, Result: `{"resource_id":"new1"}`},
		{Name: "Copy", Config: `{"action_type":"copy_file","file_id":"a1","name":"n"}`, Call: "POST /drive/v3/files/a1/copy", Body: `{"name":"n"}`},
		{Name: "Rename", Config: `{"action_type":"update_file","file_id":"a1","name":"n"}`, Call: "PATCH /drive/v3/files/a1", Body: `{"name":"n"}`, Result: `{"resource_id":"a1"}`},
		{Name: "Replace", Config: `{"action_type":"update_file","file_id":"a1","content":{"x":1}}`, Call: "PUT /upload/drive/v3/files/a1", Body: `{"x":1}`, Header: map[string]string{"Content-Type": "application/json"}, Result: `{"resource_id":"a1"}`},
		{Name: "Move", Config: `{"action_type":"move_file","file_id":"a1","folder_id":"box"}`, Call: "PATCH /drive/v3/files/a1", Query: map[string]string{"addParents": "box", "removeParents": "root"}},
		{Name: "Trash", Config: `{"action_type":"delete_file","file_id":"a1"}`, Call: "PATCH /drive/v3/files/a1", Body: `{"trashed":true}`},
		{Name: "Delete", Config: `{"action_type":"delete_file","file_id":"a1","permanent":true}`, Call: "DELETE /drive/v3/files/a1", Result: `{"resource_id":"a1"}`},
		{Name: "Share", Config: `{"action_type":"share_file","file_id":"a1","email":"ann@example.com","role":"writer"}`, Call: "POST /drive/v3/files/a1/permissions", Query: map[string]string{"sendNotificationEmail": "false"}, Body: `{"type":"user","role":"writer","emailAddress":"ann@example.com"}`, Result: `{"resource_id":"a1"}`},
		{Name: "List", Config: `{"action_type":"list_files","folder_id":"bo'x","search":"name contains 'x' or name contains 'y'","limit":1}`, Call: "GET /drive/v3/files", Query: map[string]string{"q": `trashed = false and 'bo\'x' in parents and (name contains 'x' or name contains 'y')`, "pageSize": "1"}, Result: `{"items":[{"id":"list0"}],"truncated":true}`},
		{Name: "Get", Config: `{"action_type":"get_file","file_id":"a1"}`, Call: "GET /drive/v3/files/a1", Query: map[string]string{"fields": aboutFile}, Result: `{"resource_id":"a1","drive_response":{"name":"a b.txt"}}`},
		{Name: "Request", Config: `{"action_type":"request","method":"GET","path":"/drive/v3/about","query":{"fields":"user"}}`, Call: "GET /drive/v3/about", Query: map[string]string{"fields": "user"}, Result: `{"drive_response":{"user":"u"}}`},
		{Name: "Export", Config: `{"action_type":"download_file","file_id":"g1"}`, Call: "GET /drive/v3/files/g1/export", Query: map[string]string{"mimeType": "application/pdf"}, Result: `{"file":{"name":"Plan.pdf","content_type":"application/pdf"}}`},
		{Name: "ExportTable", Config: `{"action_type":"download_file","file_id":"g2"}`, Call: "GET /drive/v3/files/g2/export", Result: `{"file":{"name":"List.xlsx"}}`},
		{Name: "ExportAs", Config: `{"action_type":"download_file","file_id":"g1","export_type":"text/plain"}`, Call: "GET /drive/v3/files/g1/export", Query: map[string]string{"mimeType": "text/plain"}, Result: `{"file":{"name":"Plan","content_type":"text/plain"}}`},
	})
}

func TestDrive_Failures(t *testing.T) {
	t.Parallel()
	driveVendor().Failures(t)
}

// TestDrive_Content: what is read is what was stored; a file that is another than Drive says is not taken.
func TestDrive_Content(t *testing.T) {
	t.Parallel()
	b := driveVendor().New(t)
	out, err := b.Run(`{"action_type":"download_file","file_id":"a1"}`, ``)
	if err != nil {
		t.Fatal(err)
	}
	if data, ok := b.Files.Content(out.Get("file.blob").Str); !ok || string(data) != "hello" || out.Get("file.name").Str != "a b.txt" || out.Get("resource_id").Str != "a1" {
		t.Errorf("%q, %s", data, out.Raw)
	}
	b.Answers("GET /drive/v3/files/a1", actiontest.Reply{Status: 200, Body: `{"id":"a1","name":"n","size":"9","md5Checksum":"x"}`})
	if _, err := b.Run(`{"action_type":"download_file","file_id":"a1"}`, ``); fault.CodeOf(err) != fault.RemoteError {
		t.Errorf("it is shorter than it should be: %v", err)
	}
}

// TestDrive_Again: what is so already is a success.
func TestDrive_Again(t *testing.T) {
	t.Parallel()
	b := driveVendor().New(t)
	for _, config := range []string{
		`{"action_type":"move_file","file_id":"a1","folder_id":"box"}`, `{"action_type":"share_file","file_id":"a1","email":"a@b"}`, `{"action_type":"delete_file","file_id":"a1","permanent":true}`,
	} {
		call := b.Call(config, ``)
		for call.Attempt = 1; call.Attempt <= 2; call.Attempt++ {
			if _, err := b.Kind.Run(context.Background(), call); err != nil {
				t.Errorf("%s: %v", config, err)
			}
		}
	}
}
