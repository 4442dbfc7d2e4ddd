package google

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tandem/builtin/action"
	"tandem/builtin/fileref"
	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
)

// driveActing is one run of an operation.
type driveActing struct {
	ctx   context.Context
	call  *node.Call
	cfg   driveConfig
	api   *rest.API
	store *files.Store
}

const (
	driveFiles   = "/drive/v3/files"
	driveUploads = "/upload/drive/v3/files"
	// aboutFile is what is asked of a file.
	aboutFile  = "id,name,mimeType,webViewLink,parents,size,modifiedTime,md5Checksum,trashed"
	folderType = "application/vnd.google-apps.folder"
	// markKey is the property of a file that only this application sees, with the marker of the run that made it.
	markKey = "tandem"
)

// query is the parameters of a call about a file; those of shared drives are files like others.
func query(more ...string) url.Values {
	q := url.Values{"supportsAllDrives": {"true"}, "fields": {aboutFile}}
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != "" {
			q.Set(more[i], more[i+1])
		}
	}
	return q
}

func (a *driveActing) path(more ...any) string {
	return driveFiles + rest.Path(append([]any{documentID(a.cfg.FileID)}, more...)...)
}

// described is the result of an answer that is a file.
func described(answer rest.Answer) (out driveResult) {
	out.ResourceID, out.ResourceURL, out.Response, out.RateLimit = answer.Get("id").Str, answer.Get("webViewLink").Str,
		answer.Raw(), answer.Limits()
	return out
}

func (a *driveActing) do(c rest.Call) (driveResult, error) {
	c.Fields = []string{"id"}
	answer, err := a.api.Do(a.ctx, c)
	if err != nil {
		return driveResult{}, err
	}
	return described(answer), nil
}

// made is what is said of a file that is made, with the marker by which it is found again.
func (a *driveActing) made(name string) rest.Fields {
	about := rest.Fields{"appProperties": map[string]string{markKey: action.Marker(a.call, "drive")}}.Text("name", name)
	if a.cfg.FolderID != "" {
		about["parents"] = []string{documentID(a.cfg.FolderID)}
	}
	return about
}

func (a *driveActing) createFolder() (driveResult, error) {
	about := a.made(a.cfg.Name)
	about["mimeType"] = folderType
	return a.do(rest.Call{Method: http.MethodPost, Path: driveFiles, Query: query(), Body: about})
}

func (a *driveActing) copy() (driveResult, error) {
	return a.do(rest.Call{Method: http.MethodPost, Path: a.path("copy"), Query: query(), Body: a.made(a.cfg.Name)})
}

func (a *driveActing) get() (driveResult, error) {
	return a.do(rest.Call{Method: http.MethodGet, Path: a.path(), Query: query()})
}

func (a *driveActing) upload() (out driveResult, err error) {
	source, err := fileref.Given(a.ctx, a.store, a.call, a.cfg.File, a.cfg.Content, a.cfg.MaxBytes)
	if err != nil {
		return out, err
	}
	return a.send(http.MethodPost, driveUploads, a.made(cmp.Or(a.cfg.Name, source.Name)), source)
}

func (a *driveActing) update() (out driveResult, err error) {
	about := rest.Fields{}.Text("name", a.cfg.Name)
	if payload.IsNull(a.cfg.File) && payload.IsNull(a.cfg.Content) {
		return a.do(rest.Call{Method: http.MethodPatch, Path: a.path(), Query: query(), Body: about, Repeatable: true})
	}
	source, err := fileref.Given(a.ctx, a.store, a.call, a.cfg.File, a.cfg.Content, a.cfg.MaxBytes)
	if err != nil {
		return out, err
	}
	return a.send(http.MethodPatch, driveUploads+rest.Path(documentID(a.cfg.FileID)), about, source)
}

// send begins an upload and sends the content to it. The file is there, or changed, when all of it has arrived.
func (a *driveActing) send(method, where string, about rest.Fields, source *fileref.Source) (out driveResult, err error) {
	kind := cmp.Or(a.cfg.ContentType, source.ContentType)
	begun, err := a.api.Do(a.ctx, rest.Call{
		Method: method, Path: where, Query: query("uploadType", "resumable"), Body: about, Repeatable: true, Wants: rest.Value,
		Header: http.Header{"X-Upload-Content-Type": {kind}, "X-Upload-Content-Length": {strconv.FormatInt(source.Size, 10)}},
	})
	if err != nil {
		return out, action.NotTaken(err)
	}
	session, err := url.Parse(begun.Header.Get("Location"))
	if err != nil || session.Query().Get("upload_id") == "" {
		return out, action.NotTaken(fault.New(fault.RemoteError, "Google Drive answers in a way that is not its own: it does not say where the file is to be sent; check the base_url of the credential"))
	}
	return a.do(rest.Call{
		Method: http.MethodPut, Path: where, Query: query("uploadType", "resumable", "upload_id", session.Query().Get("upload_id")),
		Open: source.Open, Size: source.Size, ContentType: kind, Patience: rest.Patience(a.call),
	})
}

// move puts a file into a folder, and out of those where it was.
func (a *driveActing) move() (out driveResult, err error) {
	answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodGet, Path: a.path(), Query: query(), Fields: []string{"id"}})
	if err != nil {
		return out, err
	}
	to := documentID(a.cfg.FolderID)
	var from []string
	for _, p := range answer.Get("parents").Array() {
		from = append(from, p.Str)
	}
	if slices.Equal(from, []string{to}) {
		return described(answer), nil
	}
	from = slices.DeleteFunc(from, func(id string) bool { return id == to })
	return a.do(rest.Call{Method: http.MethodPatch, Path: a.path(),
		Query: query("addParents", to, "removeParents", strings.Join(from, ",")), Body: map[string]any{}, Repeatable: true})
}

// delete puts a file into the trash, or removes it. One that is gone when it is tried again was removed before.
func (a *driveActing) delete() (out driveResult, err error) {
	if !a.cfg.Permanent {
		return a.do(rest.Call{Method: http.MethodPatch, Path: a.path(), Query: query(),
			Body: map[string]bool{"trashed": true}, Repeatable: true})
	}
	answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodDelete, Path: a.path(),
		Query: url.Values{"supportsAllDrives": {"true"}}, Wants: rest.Value})
	if a.call.Attempt > 1 && rest.Status(err) == http.StatusNotFound {
		err = nil
	}
	out.ResourceID, out.Response = documentID(a.cfg.FileID), answer.Raw()
	return out, err
}

// share lets somebody in, without a mail to them. Letting the same person in twice does nothing more.
func (a *driveActing) share() (out driveResult, err error) {
	answer, err := a.api.Do(a.ctx, rest.Call{
		Method: http.MethodPost, Path: a.path("permissions"),
		Query: url.Values{"supportsAllDrives": {"true"}, "sendNotificationEmail": {"false"}}, Repeatable: true, Fields: []string{"id"},
		Body: map[string]string{"type": "user", "role": a.cfg.Role, "emailAddress": a.cfg.Email},
	})
	if err != nil {
		return out, err
	}
	out.ResourceID, out.Response, out.RateLimit = documentID(a.cfg.FileID), answer.Raw(), answer.Limits()
	return out, nil
}

// quoted is a text in a query of Drive.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// search reads one page of the files that a query finds.
func (a *driveActing) search(q, token string, size int) (rest.Answer, error) {
	values := url.Values{
		"q": {q}, "pageSize": {strconv.Itoa(size)}, "fields": {"nextPageToken,files(" + aboutFile + ")"}, "supportsAllDrives": {"true"},
		"includeItemsFromAllDrives": {"true"},
	}
	if token != "" {
		values.Set("pageToken", token)
	}
	return a.api.Do(a.ctx, rest.Call{Method: http.MethodGet, Path: driveFiles, Query: values, Fields: []string{"files"}})
}

func (a *driveActing) list() (out driveResult, err error) {
	parts := []string{"trashed = false"}
	if a.cfg.FolderID != "" {
		parts = append(parts, quoted(documentID(a.cfg.FolderID))+" in parents")
	}
	if a.cfg.Search != "" {
		parts = append(parts, "("+a.cfg.Search+")")
	}
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor, func(cursor string) ([]json.RawMessage, string, error) {
		token, err := url.QueryUnescape(cursor)
		if err != nil {
			return nil, "", fault.Newf(fault.InvalidInput, "%q is not a cursor; give next_cursor of an earlier run", cursor).With("path", "cursor")
		}
		answer, err := a.search(strings.Join(parts, " and "), token, min(a.cfg.Limit, 1000))
		if err != nil {
			return nil, "", err
		}
		out.RateLimit = answer.Limits()
		return rest.Items(answer.Get("files")), url.QueryEscape(answer.Get("nextPageToken").Str), nil
	})
	return out, err
}

// find looks for a file with the marker. Drive may not show at once what was made just now, so that finding none says nothing.
func (a *driveActing) find() (out driveResult, found bool, err error) {
	answer, err := a.search("appProperties has { key="+quoted(markKey)+" and value="+quoted(action.Marker(a.call, "drive"))+" }", "", 10)
	if err != nil {
		return out, false, err
	}
	for _, file := range answer.Get("files").Array() {
		return described(rest.Answer{Header: answer.Header, Body: json.RawMessage(file.Raw)}), true, nil
	}
	return out, false, fault.New(fault.RemoteError, "Google Drive does not show the file; what was made just now may be shown later")
}

// exports is what a document of Google is read as, and how the name of such a file ends.
func exports(kind, wish string) (as, ending string) {
	switch {
	case wish != "":
		return wish, ""
	case kind == "application/vnd.google-apps.spreadsheet":
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xlsx"
	}
	return "application/pdf", ".pdf"
}

func (a *driveActing) download() (out driveResult, err error) {
	about, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodGet, Path: a.path(), Query: query(), Fields: []string{"id", "name"}})
	if err != nil {
		return out, err
	}
	name, kind := about.Get("name").Str, about.Get("mimeType").Str
	c := rest.Call{
		Method: http.MethodGet, Path: a.path(), Query: url.Values{"alt": {"media"}, "supportsAllDrives": {"true"}},
		Header:    http.Header{"Accept": {"*/*"}},
		MostBytes: a.cfg.MaxBytes, Patience: rest.Patience(a.call),
	}
	if strings.HasPrefix(kind, "application/vnd.google-apps.") {
		as, ending := exports(kind, a.cfg.ExportType)
		kind, name = as, name+ending
		c.Path, c.Query = a.path("export"), url.Values{"mimeType": {as}}
	}
	response, err := a.api.Send(a.ctx, c)
	if err != nil {
		return out, err
	}
	defer func() { err = finished(response, err) }()
	if out.File, err = fileref.Keep(a.ctx, a.call, response.Body, name, kind); err != nil {
		return out, err
	}
	file := out.File
	out = described(about)
	out.File = file
	if told := about.Get("md5Checksum").Str; told != "" && c.Query.Get("alt") == "media" && about.Get("size").Int() != file.Size {
		return driveResult{}, &outbound.Error{Fate: outbound.Unknown, Fault: fault.New(fault.RemoteError, "Google Drive sends another number of bytes than the file has")}
	}
	return out, nil
}

// finished closes an answer that was read.
func finished(response *outbound.Response, err error) error {
	if failed := response.Body.Close(); failed != nil && err == nil {
		return fault.New(fault.NetworkError, "the answer could not be read to its end").WithCause(failed)
	}
	return err
}

func (a *driveActing) request() (driveResult, error) {
	answer, err := a.api.Request(a.ctx, rest.Raw{Method: a.cfg.Method, Path: a.cfg.Path, Query: a.cfg.Query, Body: a.cfg.Body})
	if err != nil {
		return driveResult{}, err
	}
	return described(answer), nil
}
