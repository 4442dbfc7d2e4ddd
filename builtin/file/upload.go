package file

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync"

	"tandem/builtin/document"
	"tandem/builtin/fileref"
	"tandem/builtin/httpcall"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/node/slot"
	"tandem/objectstore"
	"tandem/outbound"
	"tandem/workflow"
)

type uploadConfig struct {
	Target    string          `json:"target" enum:"http" doc:"Where the file goes." zh:"上传目标。"`
	URL       string          `json:"url" with:"target=http" doc:"The address, for http." zh:"http 时的地址。"`
	Method    string          `json:"method" enum:"POST|PUT" with:"target=http" doc:"The method of the call." zh:"调用方法。"`
	FieldName string          `json:"field_name" with:"target=http" doc:"The name of the file in the form that is sent." zh:"表单中文件字段的名称。"`
	Headers   node.Object     `json:"headers" doc:"Further headers." zh:"附加的请求头。"`
	Bucket    string          `json:"bucket" doc:"The bucket or container of an object store." zh:"对象存储的桶或容器。"`
	Key       string          `json:"key" doc:"The name of the object; without one that of the file." zh:"对象名；省略时用文件名。"`
	File      json.RawMessage `json:"file" takes:"file" doc:"The file: a path, or a file that another node has produced." zh:"文件：路径，或其他节点产生的文件。"`
	MaxBytes  int64           `json:"max_bytes" range:"1.." doc:"The most bytes that are sent." zh:"最多发送的字节数。"`
}

func (c *uploadConfig) Defaults() {
	c.Target, c.Method, c.FieldName, c.MaxBytes = "http", http.MethodPost, "file", 100<<20
}

type uploadInput struct {
	File               json.RawMessage `json:"file,omitempty" doc:"The file, if the configuration names none." zh:"未配置时所用的文件。"`
	URLVariables       json.RawMessage `json:"url_variables,omitempty" doc:"Values for the names in braces in the address." zh:"地址中花括号名称的值。"`
	DynamicHeaders     json.RawMessage `json:"dynamic_headers,omitempty" doc:"Further headers." zh:"附加的请求头。"`
	DynamicQueryParams json.RawMessage `json:"dynamic_query_params,omitempty" doc:"Further parameters of the query." zh:"附加的查询参数。"`
}

type uploadOutput struct {
	URL        string `json:"url" doc:"Where the file is now." zh:"文件的新地址。"`
	StatusCode int    `json:"status_code" doc:"The status of the answer." zh:"响应的状态码。"`
	Size       int64  `json:"size" doc:"Its size in bytes." zh:"大小（字节）。"`
	SHA256     string `json:"sha256" doc:"The SHA-256 of its content." zh:"内容的 SHA-256。"`
	ETag       string `json:"etag" doc:"What the service calls this content, if it says so." zh:"服务给出的内容标识（若有）。"`
	// Response is what the service said: a value if it is JSON, else a text.
	Response json.RawMessage `json:"response" doc:"The answer, as a value if it is JSON." zh:"响应内容；为 JSON 时是其值。"`
}

// httpTarget is the target that is not an object store: an address. The others are those that are registered, by their names.
const httpTarget = "http"

// maxUploadAnswer bounds what a service may say about an upload.
const maxUploadAnswer = 1 << 20

// fileUpload sends a file to an address: POST as a part of a form, PUT as it is; or it puts it into an object store. It is
// read while it is sent.
func fileUpload(client *outbound.Client, store *files.Store, stores map[string]objectstore.Store) node.Kind {
	tokens := &httpcall.Tokens{Client: client}
	targets := slices.Sorted(maps.Keys(stores))
	inStore := []node.Condition{{Field: "target", Values: targets}}
	k := node.Define(
		node.About{
			Name: "ACTION.FILE_UPLOAD", Title: node.Says("File upload", "文件上传"),
			Description: node.Says("Sends a file to an address or into an object store.", "把文件发送到一个地址或对象存储。"),
			Effect:      workflow.Once,
			Values:      map[string][]string{"target": append([]string{httpTarget}, targets...)},
			Beside:      map[string][]node.Condition{"bucket": inStore, "key": inStore},
			Needs: node.Needs{Credential: []string{"http_auth", "oauth2", "aws_keys", "gcp_service_account", "azure"},
				Optional: true},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("Where the file is now, its size and hash, and what the service has said.", "文件的位置、大小、哈希和服务的响应。")}},
			Examples: []node.Example{
				{
					Shows:   node.Says("Sends a file of the workspace to a service.", "将工作区中的文件发送到服务。"),
					Config:  `{"url": "https://api.example.com/reports", "file": "reports/june.txt"}`,
					Replies: []string{`{"id": "r-1"}`},
					Output:  `{"result": {"url": "https://api.example.com/reports", "status_code": 200, "size": 12, "sha256": "397d1e17d05255b783d969b6cbfa70f8b69a3fccfa131f57cce1b6901b1f82a2", "etag": "", "response": {"id": "r-1"}}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg uploadConfig, in uploadInput) (uploadOutput, error) {
			if cfg.Target != httpTarget {
				return putObject(ctx, store, stores[cfg.Target], call, cfg, in)
			}
			x := &upload{cfg: cfg, Call: httpcall.Call{Client: client, Node: call,
				Once: httpcall.OnceMethod(cfg.Method), Config: httpcall.Config{
					Method: cfg.Method, URL: cfg.URL, Headers: cfg.Headers, BodyType: "none", FollowRedirects: true, MaxRedirects: 5,
				}}}
			out, err := x.run(ctx, store, in, tokens)
			if err != nil {
				return uploadOutput{}, x.Failed(err)
			}
			return out, nil
		}, planUpload)
	k.Own = map[string]func(json.RawMessage) json.RawMessage{"url": httpcall.UrlNames}
	return k
}

type upload struct {
	httpcall.Call
	cfg    uploadConfig
	source *fileref.Source

	mu  sync.Mutex // the transport may still be writing when the answer is here
	sum string     // of the file, once all of it was sent
}

func (x *upload) run(ctx context.Context, store *files.Store, in uploadInput, tokens *httpcall.Tokens) (out uploadOutput, err error) {
	switch {
	case strings.TrimSpace(x.cfg.URL) == "":
		return out, fault.New(fault.InvalidConfig, `"url" is required when target is "http"`).With("path", "configurations.url")
	case x.cfg.FieldName == "":
		return out, fault.New(fault.InvalidConfig, `"field_name" is empty; name the field of the form or leave it out`).With("path", "configurations.field_name")
	}
	if x.source, err = uploadSource(ctx, store, x.Node, x.cfg, in); err != nil {
		return out, err
	}
	if err = x.Begin(ctx, httpcall.Input{URLVariables: in.URLVariables, DynamicHeaders: in.DynamicHeaders,
		DynamicQueryParams: in.DynamicQueryParams}, tokens); err != nil {
		return out, err
	}
	before, after, contentType, err := x.envelope()
	if err != nil {
		return out, err
	}
	if x.cfg.Method == http.MethodPost || x.Header.Get("Content-Type") == "" { // a form is what its boundary says
		x.Header.Set("Content-Type", contentType)
	}
	x.Adjust = func(r *outbound.Request) {
		r.MaxResponse, r.Size = maxUploadAnswer, int64(len(before))+x.source.Size+int64(len(after))
		r.Open = func() (io.ReadCloser, error) { return x.open(ctx, before, after) }
	}
	response, err := x.Ask(ctx, x.Home)
	if err != nil {
		return out, err
	}
	if problem := response.Problem(x.Node.Time()); problem != nil {
		return out, x.Refused(response, problem)
	}
	return x.answer(ctx, response)
}

// uploadSource opens the file that is to be sent: that of the configurations, else that of the input.
func uploadSource(ctx context.Context, store *files.Store, call *node.Call, cfg uploadConfig, in uploadInput) (*fileref.Source, error) {
	raw, at := cfg.File, "configurations.file"
	if values.IsNull(raw) {
		raw, at = in.File, "file"
	}
	if values.IsNull(raw) {
		return nil, slot.Missing([]string{"file"}, `the input has no "file"; connect what makes one, or set file in the configurations`).With("path", "file")
	}
	return fileref.Open(ctx, store, call, raw, at, cfg.MaxBytes)
}

// envelope is what stands around the file.
func (x *upload) envelope() (before, after []byte, contentType string, err error) {
	if x.cfg.Method == http.MethodPut {
		return nil, nil, x.source.ContentType, nil
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err = w.SetBoundary("tandem" + rand.Text()); err != nil {
		return nil, nil, "", err
	}
	quote := strings.NewReplacer("\\", "\\\\", `"`, "%22", "\r", "%0D", "\n", "%0A")
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", `form-data; name="`+quote.Replace(x.cfg.FieldName)+`"; filename="`+quote.Replace(x.source.Name)+`"`)
	header.Set("Content-Type", x.source.ContentType)
	if _, err = w.CreatePart(header); err != nil {
		return nil, nil, "", err
	}
	before = bytes.Clone(b.Bytes())
	if err = w.Close(); err != nil {
		return nil, nil, "", err
	}
	return before, bytes.Clone(b.Bytes()[len(before):]), w.FormDataContentType(), nil
}

// open opens the body from its start.
func (x *upload) open(ctx context.Context, before, after []byte) (io.ReadCloser, error) {
	content, err := x.source.Open()
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	exact := &exactly{from: io.TeeReader(files.Reader(ctx, content), sum), left: x.source.Size, done: func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.sum = hex.EncodeToString(sum.Sum(nil))
	}}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(before), exact, bytes.NewReader(after)), content}, nil
}

// exactly reads as much as was announced; a file that has changed meanwhile is an error and no other upload.
type exactly struct {
	from io.Reader
	left int64
	done func()
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.from.Read(p)
	if e.left -= int64(n); e.left == 0 {
		e.done()
	}
	if err == io.EOF && e.left > 0 {
		err = fault.New(fault.Conflict, "the file became shorter while it was sent")
	}
	return n, err
}

// digest is that of the file. A service that answers before it has read everything leaves it to be computed.
func (x *upload) digest(ctx context.Context) (string, error) {
	x.mu.Lock()
	sum := x.sum
	x.mu.Unlock()
	if sum != "" {
		return sum, nil
	}
	content, err := x.source.Open()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, files.Reader(ctx, content))
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, content.Close())
}

// answer reads what the service says.
func (x *upload) answer(ctx context.Context, r *outbound.Response) (uploadOutput, error) {
	data, err := r.ReadAll()
	if err != nil {
		return uploadOutput{}, err
	}
	x.Answered++
	sum, err := x.digest(ctx)
	if err != nil {
		return uploadOutput{}, err
	}
	out := uploadOutput{
		URL: r.URL.String(), StatusCode: r.Status, Size: x.source.Size, SHA256: sum,
		ETag: strings.ToValidUTF8(r.Header.Get("ETag"), "\uFFFD"), Response: values.Encode(document.DecodeText(data, "")),
	}
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 &&
		document.JSONType(mediaTypeOf(r.Header.Get("Content-Type"))) && json.Valid(trimmed) {
		out.Response = trimmed
	}
	if x.Auth == nil || !x.Auth.Held {
		return out, nil
	}
	clean := x.Auth.Redact.JSON(values.Encode(out))
	out = uploadOutput{}
	return out, json.Unmarshal(clean, &out)
}

func planUpload(p *node.Planning, c *uploadConfig) {
	httpcall.Plan(p)
	switch p.Choice("target", c.Target) {
	case "", httpTarget:
		p.Effect = httpcall.EffectOf(p.Choice("method", c.Method))
	default: // an object store: the same content is put under the same name again
		p.Effect = workflow.Idempotent
	}
	switch c.Target {
	case "": // only the run knows
	case httpTarget:
		p.Require("url", "when %s is %q", "target", httpTarget)
	default:
		p.Require("bucket", "when %s is %q", "target", c.Target)
	}
}
