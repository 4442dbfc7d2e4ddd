package start

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/url"
	paths "path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tandem/builtin/fileref"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/payload"
	"tandem/trigger"
)

const (
	// maxRequestFiles is how many files and fields a form may have.
	maxRequestFiles = 100
	maxFileName     = 200
)

// requestFile is a file of a request. Field is the field of the form that it came in; empty: it is the body itself.
type requestFile struct {
	fileref.Value
	Field string `json:"field,omitempty"`
}

// requestPayload is a request as the trigger hands it on, without secrets.
func requestPayload(ctx context.Context, r *trigger.Request, hide *redaction) (json.RawMessage, error) {
	body, files, err := requestBody(ctx, r)
	if err != nil {
		return nil, err
	}
	query, err := formObject(r.Query, "query")
	if err != nil {
		return nil, err
	}
	if hide.param != "" {
		if _, there := query[hide.param]; there {
			query[hide.param] = redacted
		}
	}
	headers := make(map[string]string, len(r.Header))
	for name, list := range r.Header { // order does not matter: one entry per name
		headers[strings.ToLower(name)] = strings.ToValidUTF8(hide.header(name, list), "\uFFFD")
	}
	params := r.PathParams
	if params == nil {
		params = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if !utf8.ValidString(params[name]) {
			return nil, fault.Newf(fault.InvalidInput, "path: the part %q is not valid UTF-8", name)
		}
	}
	out := values.Object([]values.Member{
		values.Field("method", r.Method), values.Field("path", strings.ToValidUTF8(r.Path, "\uFFFD")), values.Field("path_params", params),
		values.Field("query_params", query),
		values.Field("headers", headers), {Key: "body", Value: body}, values.Field("files", files),
		values.Field("client_ip", r.RemoteAddr), values.Field("timestamp", r.Received.UTC().Format(time.RFC3339Nano)),
	})
	return hide.object(out), nil
}

// object is JSON without the secret, wherever in it that stands.
func (h *redaction) object(raw json.RawMessage) json.RawMessage {
	if h.secret == "" {
		return raw
	}
	quoted := values.Encode(h.secret)
	return bytes.ReplaceAll(raw, quoted[1:len(quoted)-1], []byte(redacted))
}

// requestBody reads a body by its content type.
func requestBody(ctx context.Context, r *trigger.Request) (json.RawMessage, []requestFile, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		mediaType = ""
	}
	body := bytes.TrimPrefix(r.Body, []byte("\uFEFF"))
	none := []requestFile{}
	switch {
	case strings.HasPrefix(mediaType, "multipart/"):
		return multipartBody(ctx, r, params["boundary"])
	case len(bytes.TrimSpace(body)) == 0:
		return json.RawMessage("null"), none, nil
	case mediaType == "application/json", mediaType == "text/json", strings.HasSuffix(mediaType, "+json"):
		read, err := payload.Normalize(body, payload.Door())
		if wrong, bad := errors.AsType[*payload.Error](err); bad {
			err := fault.Newf(fault.InvalidInput, "%s: the body says that it is JSON and cannot be read: %s", cmp.Or(wrong.Path, "body"), wrong.Reason)
			return nil, nil, trigger.Recorded(err, "body: it says that it is JSON and cannot be read")
		}
		return read, none, err
	case mediaType == "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, nil, trigger.Recorded(fault.New(fault.InvalidInput, "body: the form cannot be read; escape its names and values").WithCause(err), "body: the form cannot be read")
		}
		fields, err := formObject(form, "body")
		if err != nil {
			return nil, nil, err
		}
		return values.Encode(fields), none, nil
	case !utf8.Valid(body):
		file, err := keepFile(ctx, r, "body", mediaType, bytes.NewReader(r.Body))
		return json.RawMessage("null"), []requestFile{{Value: file}}, err
	}
	return values.Encode(string(body)), none, nil
}

// formObject makes an object of a form: a text for each name, a list of them for one that is there several times.
func formObject(form url.Values, where string) (map[string]any, error) {
	out := make(map[string]any, len(form))
	for _, name := range slices.Sorted(maps.Keys(form)) {
		list := form[name]
		if !utf8.ValidString(name) || slices.ContainsFunc(list, func(v string) bool { return !utf8.ValidString(v) }) {
			return nil, trigger.Recorded(fault.Newf(fault.InvalidInput, "%s: %q is not valid UTF-8", where,
				strings.ToValidUTF8(name, "\uFFFD")), where+": it is not valid UTF-8")
		}
		if len(list) == 1 {
			out[name] = list[0]
		} else {
			out[name] = list
		}
	}
	return out, nil
}

// multipartBody reads a form with files: the fields are the body, the files are kept.
func multipartBody(ctx context.Context, r *trigger.Request, boundary string) (json.RawMessage, []requestFile, error) {
	wrong := func(err error) error {
		return trigger.Recorded(fault.New(fault.InvalidInput, "body: the multipart form cannot be read").WithCause(err),
			"body: the multipart form cannot be read")
	}
	if boundary == "" {
		return nil, nil, wrong(errors.New("it has no boundary"))
	}
	if !bytes.Contains(r.Body, []byte("--"+boundary+"--")) { // one that is cut inside the headers of a part looks complete to the reader
		return nil, nil, wrong(io.ErrUnexpectedEOF)
	}
	form, files := url.Values{}, []requestFile{}
	reader := multipart.NewReader(bytes.NewReader(r.Body), boundary)
	for parts := 0; ; parts++ {
		part, err := reader.NextPart()
		if err == io.EOF { //nolint:errorlint // the end as it should be; one that comes too early is wrapped
			break
		}
		if err != nil {
			return nil, nil, wrong(err)
		}
		if parts == maxRequestFiles {
			return nil, nil, fault.Newf(fault.TooLarge, "body: the form has more than %d parts", maxRequestFiles)
		}
		if part.FileName() == "" {
			text, err := io.ReadAll(part)
			if err != nil {
				return nil, nil, wrong(err)
			}
			form.Add(part.FormName(), string(text))
			continue
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, nil, wrong(err)
		}
		if !utf8.ValidString(part.FormName()) {
			return nil, nil, fault.New(fault.InvalidInput, "body: the name of the field that a file came in is not valid UTF-8")
		}
		file, err := keepFile(ctx, r, part.FileName(), part.Header.Get("Content-Type"), bytes.NewReader(content))
		if err != nil {
			return nil, nil, err
		}
		files = append(files, requestFile{file, part.FormName()})
	}
	fields, err := formObject(form, "body")
	if err != nil {
		return nil, nil, err
	}
	return values.Encode(fields), files, nil
}

// keepFile stores a file of a request. Its name and type are what the sender says, so they are made harmless.
func keepFile(ctx context.Context, r *trigger.Request, name, contentType string, content io.Reader) (fileref.Value, error) {
	blob, err := r.KeepFile(ctx, content)
	if err != nil {
		return fileref.Value{}, err
	}
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil {
		contentType = mediaType
	} else {
		contentType = "application/octet-stream"
	}
	return fileref.Value{Blob: blob.Hash, Name: safeName(name), ContentType: contentType, Size: blob.Size, SHA256: blob.Hash}, nil
}

// safeName is the last part of a name that somebody sent, without what has a meaning in paths, terminals or headers.
func safeName(name string) string {
	name = paths.Base(strings.ReplaceAll(strings.ToValidUTF8(name, ""), `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) || strings.ContainsRune(`<>:"|?*`, r) {
			return -1
		}
		return r
	}, name)
	name = strings.Trim(name, ". ")
	for len(name) > maxFileName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return cmp.Or(name, "file")
}
