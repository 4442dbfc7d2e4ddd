package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	paths "path"
	"regexp"
	"strconv"
	"strings"

	"tandem/builtin/early"
	"tandem/builtin/fileref"
	"tandem/builtin/httpcall"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/outbound"
	"tandem/text"
	"tandem/workflow"
)

type downloadConfig struct {
	URL          string      `json:"url" required:"true" doc:"The address of the file." zh:"文件的地址。"`
	Headers      node.Object `json:"headers" doc:"Further headers." zh:"附加的请求头。"`
	SavePath     string      `json:"save_path" doc:"Where the file is kept in the workspace; without it the file is only handed on." zh:"保存到工作区的路径；省略时只传递文件。"`
	Overwrite    bool        `json:"overwrite" doc:"Whether a file that is there may be replaced." zh:"是否允许覆盖已有文件。"`
	MaxBytes     int64       `json:"max_bytes" range:"1.." doc:"The most bytes that are fetched." zh:"最多获取的字节数。"`
	AllowedTypes []string    `json:"allowed_types" doc:"The content types that are accepted; without them all." zh:"允许的内容类型；省略时不限。"`
	SHA256       string      `json:"sha256" doc:"The SHA-256 that the content must have." zh:"内容须符合的 SHA-256。"`
}

func (c *downloadConfig) Defaults() { c.MaxBytes = 100 << 20 }

type downloadOutput struct {
	File       *fileref.Value `json:"file" doc:"The file, which other nodes can take as it is." zh:"文件，可直接交给其他节点。"`
	Path       string         `json:"path,omitempty" doc:"Where it is kept among the files of the workspace, with save_path." zh:"文件的位置：设置 save_path 时在工作区文件中的位置。"`
	StatusCode int            `json:"status_code" doc:"The status of the answer." zh:"响应的状态码。"`
	Filename   string         `json:"filename" doc:"What the service calls the file." zh:"服务给出的文件名。"`
}

// sha256Hex is a SHA-256 as people write it.
var sha256Hex = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// fileDownload fetches a file into the workspace or among the stored values. What a broken attempt has fetched stays for
// the next one, which asks only for the rest; nothing else is kept of a failure.
func fileDownload(client *outbound.Client, store *files.Store) node.Kind {
	tokens := &httpcall.Tokens{Client: client}
	k := node.Define(
		node.About{
			Name: "ACTION.FILE_DOWNLOAD", Title: node.Says("File download", "文件下载"),
			Description: node.Says("Fetches a file from an address.", "从一个地址获取文件。"),
			Effect:      workflow.Idempotent,
			Needs:       node.Needs{Credential: []string{"http_auth", "oauth2"}, Optional: true},
			Keys:        []node.Key{{Name: "result", Meaning: node.Says("The file, where it was kept, and the status.", "文件、保存位置和状态码。")}},
			Inputs:      []node.Value{node.Meaning("*", "Whatever the placeholders name.", "占位符所引用的值。")},
			Examples: []node.Example{
				{
					Shows:   node.Says("Fetches a report and keeps it among the files of the workspace.", "下载报告并保存到工作区文件中。"),
					Config:  `{"url": "https://api.example.com/report.txt", "save_path": "reports/july.txt"}`,
					Replies: []string{`Sales: 1500`},
					Output:  `{"result": {"file": {"name": "july.txt", "content_type": "text/plain", "size": 11, "sha256": "0e9f904b4636c082d4d8660fb616433d8dced95516e7858e20458777515bc977", "path": "reports/july.txt"}, "path": "reports/july.txt", "status_code": 200, "filename": "report.txt"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg downloadConfig, in httpcall.Input) (downloadOutput, error) {
			x := &download{cfg: cfg, Call: httpcall.Call{Client: client, Node: call, Config: httpcall.Config{
				Method: http.MethodGet, URL: cfg.URL, Headers: cfg.Headers, BodyType: "none", FollowRedirects: true, MaxRedirects: 5,
			}}}
			out, err := x.run(ctx, store, in, tokens)
			if err != nil {
				return downloadOutput{}, x.Failed(err)
			}
			return out, nil
		}, func(p *node.Planning, _ *downloadConfig) {
			httpcall.Plan(p)
			early.Text(p, "sha256", checkSum)
		})
	k.Own = map[string]func(json.RawMessage) json.RawMessage{"url": httpcall.UrlNames}
	return k
}

type download struct {
	httpcall.Call
	cfg     downloadConfig
	dir     *files.Dir
	partial *files.Partial
	have    int64 // bytes of the file that earlier attempts have fetched
	note    downloadNote
	place   files.Place
}

// downloadNote is what an attempt leaves to the next one.
type downloadNote struct {
	// Address is a digest of the address and headers: for another one nothing of it is good.
	Address string `json:"address"`
	// ETag and Modified are what the service says the content can be told by; at least one of them.
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
	Type     string `json:"type,omitempty"`
	Name     string `json:"name,omitempty"`
}

func (n *downloadNote) validator() string {
	if n.ETag != "" {
		return n.ETag
	}
	return n.Modified
}

// checkSum says what is wrong with a sum of a file.
func checkSum(sum string) error {
	if !sha256Hex.MatchString(sum) {
		return fault.Say(fault.InvalidConfig, text.Of(`"sha256" must be 64 hexadecimal digits`)).With("path", "configurations.sha256")
	}
	return nil
}

func (x *download) run(ctx context.Context, store *files.Store, in httpcall.Input,
	tokens *httpcall.Tokens) (out downloadOutput, err error) {
	if err := checkSum(x.cfg.SHA256); x.cfg.SHA256 != "" && err != nil {
		return out, err
	}
	if x.dir, err = fileref.Workspace(store, x.Node); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, x.dir.Close()) }()
	if err = x.Begin(ctx, httpcall.Input{URLVariables: in.URLVariables, DynamicHeaders: in.DynamicHeaders,
		DynamicQueryParams: in.DynamicQueryParams}, tokens); err != nil {
		return out, err
	}
	if err = x.reserve(); err != nil {
		return out, err
	}
	if x.partial, err = x.dir.Partial(ctx, x.Node.EffectKey()); err != nil {
		return out, err
	}
	out, err = x.fetch(ctx)
	if err != nil && x.worthKeeping(err) {
		return out, errors.Join(err, x.partial.Close())
	}
	return out, errors.Join(err, x.partial.Discard())
}

// reserve looks at the place before anything is fetched for it.
func (x *download) reserve() error {
	if x.cfg.SavePath == "" {
		return nil
	}
	if _, err := files.Clean(x.cfg.SavePath); err != nil {
		return err
	}
	x.place.Overwrite = x.cfg.Overwrite
	if x.cfg.Overwrite {
		return nil
	}
	var err error
	if x.place.Again, err = x.dir.Begin(x.Node.EffectKey()); err != nil || x.place.Again {
		return err
	}
	i, err := x.dir.Stat(x.cfg.SavePath)
	if err == nil && i.Type != "directory" {
		return fault.Newf(fault.Conflict, "%q exists already; set overwrite to true to replace it", i.Path).With("path", i.Path)
	}
	if fault.CodeOf(err) == fault.NotFound {
		err = nil
	}
	return err
}

// worthKeeping says that a later attempt can go on where this one stopped.
func (x *download) worthKeeping(err error) bool {
	if x.note.validator() == "" || !fault.From(err).Retryable && fault.CodeOf(err) != fault.Canceled {
		return false
	}
	i, serr := x.partial.File().Stat()
	return serr == nil && i.Size() > 0
}

// takeUp reads what an earlier attempt has left.
func (x *download) takeUp() error {
	address := sha256.Sum256(fmt.Appendf(nil, "%s\x00%q", x.Home, httpcall.FlatHeader(x.Header)))
	digest := hex.EncodeToString(address[:])
	raw, err := x.partial.Note()
	if err != nil {
		return err
	}
	i, err := x.partial.File().Stat()
	if err != nil {
		return err
	}
	if raw != nil && json.Unmarshal(raw, &x.note) == nil && x.note.Address == digest && x.note.validator() != "" &&
		i.Size() > 0 && i.Size() <= x.cfg.MaxBytes {
		x.have = i.Size()
		return nil
	}
	x.note = downloadNote{Address: digest}
	return x.restart()
}

func (x *download) restart() error {
	x.have = 0
	x.note = downloadNote{Address: x.note.Address}
	return x.partial.Restart()
}

func (x *download) fetch(ctx context.Context) (downloadOutput, error) {
	if err := x.takeUp(); err != nil {
		return downloadOutput{}, err
	}
	x.Adjust = func(r *outbound.Request) {
		// What is compressed on the way has no places to go on from.
		r.Header.Set("Accept-Encoding", "identity")
		r.MaxResponse = x.cfg.MaxBytes - x.have + 1
		if x.have > 0 {
			r.Header.Set("Range", "bytes="+strconv.FormatInt(x.have, 10)+"-")
			r.Header.Set("If-Range", x.note.validator())
			r.Portable = append(r.Portable, "If-Range")
		}
	}
	response, err := x.Ask(ctx, x.Home)
	if err != nil {
		return downloadOutput{}, err
	}
	if x.have > 0 && !x.goesOn(response) {
		// Either the whole file comes, or it is asked for once more.
		if err := x.restart(); err != nil {
			return downloadOutput{}, errors.Join(err, response.Body.Close())
		}
		if response.Status == http.StatusPartialContent || response.Status == http.StatusRequestedRangeNotSatisfiable {
			if err := response.Body.Close(); err != nil {
				x.Log(node.Debug, "an answer that does not fit was not read to its end", nil)
			}
			if response, err = x.Ask(ctx, x.Home); err != nil {
				return downloadOutput{}, err
			}
		}
	}
	return x.takeContent(ctx, response)
}

// contentRange is "bytes 10-99/100" or "bytes 10-99/*".
var contentRange = regexp.MustCompile(`^bytes (\d+)-(\d+)/(\d+|\*)$`)

// goesOn says that an answer is the rest of what is here: it begins where that ends, and is of the same file.
func (x *download) goesOn(r *outbound.Response) bool {
	if r.Status >= 400 && r.Status != http.StatusRequestedRangeNotSatisfiable {
		return true // a refusal says nothing about what is here
	}
	m := contentRange.FindStringSubmatch(r.Header.Get("Content-Range"))
	if r.Status != http.StatusPartialContent || m == nil || m[1] != strconv.FormatInt(x.have, 10) ||
		r.Header.Get("Content-Encoding") != "" {
		return false
	}
	if x.note.ETag != "" {
		return r.Header.Get("ETag") == x.note.ETag
	}
	return r.Header.Get("Last-Modified") == x.note.Modified
}

// takeContent reads an answer into the file.
func (x *download) takeContent(ctx context.Context, r *outbound.Response) (downloadOutput, error) {
	out := downloadOutput{StatusCode: r.Status, Filename: httpcall.FileName(r)}
	if problem := r.Problem(x.Node.Time()); problem != nil {
		return out, x.Refused(r, problem)
	}
	err := x.head(r)
	if err == nil {
		err = x.copy(ctx, r)
	}
	if cerr := r.Body.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		return out, err
	}
	if x.note.Name != "" && r.Header.Get("Content-Disposition") == "" {
		out.Filename = x.note.Name
	}
	return x.finish(ctx, r, out)
}

// head judges an answer before anything of its body is read, and notes what the next attempt needs to know.
func (x *download) head(r *outbound.Response) error {
	rest := r.Status == http.StatusPartialContent
	switch {
	case r.Status < 200 || r.Status > 299:
		return fault.Newf(fault.RemoteRejected, "host %q answered %d and no file", r.URL.Host, r.Status).With("status_code", r.Status)
	case rest && x.have == 0:
		return fault.Newf(fault.OutputInvalid, "host %q sent a part of the file that nobody asked for", r.URL.Host)
	}
	declared := mediaTypeOf(r.Header.Get("Content-Type"))
	if rest && declared == "" {
		declared = x.note.Type
	}
	if declared != "" && declared != "application/octet-stream" && !allowedType(x.cfg.AllowedTypes, declared) {
		return x.wrongType(declared)
	}
	if n, err := strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64); err == nil && n > x.cfg.MaxBytes-x.have {
		return x.tooLarge()
	}
	if rest {
		return nil
	}
	etag := r.Header.Get("ETag")
	if strings.HasPrefix(etag, "W/") || !strings.HasPrefix(etag, `"`) {
		etag = "" // not of a byte-for-byte copy
	}
	x.note.ETag, x.note.Modified = etag, r.Header.Get("Last-Modified")
	x.note.Type, x.note.Name = declared, httpcall.FileName(r)
	if r.Header.Get("Content-Encoding") != "" || strings.EqualFold(r.Header.Get("Accept-Ranges"), "none") {
		x.note.ETag, x.note.Modified = "", ""
	}
	if x.note.validator() == "" {
		return nil
	}
	raw, err := json.Marshal(x.note)
	if err != nil {
		return fault.New(fault.Internal, "the state of the download cannot be noted").WithCause(err)
	}
	return x.partial.SetNote(raw)
}

func mediaTypeOf(header string) string {
	mediaType, _, err := mime.ParseMediaType(header)
	if err != nil {
		return ""
	}
	return mediaType
}

// allowedType says whether a media type is in a list, which may have image/* in it. An empty list has all.
func allowedType(list []string, mediaType string) bool {
	if len(list) == 0 {
		return true
	}
	for _, allowed := range list {
		allowed = strings.ToLower(strings.TrimSpace(allowed))
		if prefix, ok := strings.CutSuffix(allowed, "*"); allowed == mediaType || ok && strings.HasPrefix(mediaType, prefix) {
			return true
		}
	}
	return false
}

func (x *download) wrongType(found string) error {
	return fault.Newf(fault.OutputInvalid, "the file is of the type %q, which allowed_types does not have", found).With("path", "file.content_type").With("content_type", found)
}

func (x *download) tooLarge() error {
	return fault.Newf(fault.TooLarge, "the file is larger than %d bytes; raise max_bytes", x.cfg.MaxBytes).With("limit", x.cfg.MaxBytes)
}

func (x *download) copy(ctx context.Context, r *outbound.Response) error {
	f := x.partial.File()
	if _, err := f.Seek(x.have, io.SeekStart); err != nil {
		return err
	}
	source := &httpcall.Remembered{From: files.Reader(ctx, r.Body)}
	n, err := io.Copy(f, source)
	switch {
	case fault.CodeOf(source.Err) == fault.TooLarge, x.have+n > x.cfg.MaxBytes:
		return x.tooLarge()
	case source.Err != nil:
		return source.Err
	case err != nil:
		return fault.New(fault.Internal, "the file could not be written; the disk may be full").WithCause(err)
	}
	if m := contentRange.FindStringSubmatch(r.Header.Get("Content-Range")); m != nil && x.have > 0 && m[3] != "*" &&
		m[3] != strconv.FormatInt(x.have+n, 10) {
		return &outbound.Error{Fault: fault.Newf(fault.NetworkError, "host %q sent less than the rest of the file", r.URL.Host),
			Fate: outbound.Unknown}
	}
	return nil
}

// finish judges the whole file and puts it where it belongs.
func (x *download) finish(ctx context.Context, r *outbound.Response, out downloadOutput) (downloadOutput, error) {
	f := x.partial.File()
	size, sum, head, err := measure(ctx, f)
	if err != nil {
		return out, err
	}
	mediaType := mediaTypeOf(r.Header.Get("Content-Type"))
	if mediaType == "" {
		mediaType = x.note.Type
	}
	found := fileref.TypeByContent(head)
	if mediaType == "" || mediaType == "application/octet-stream" {
		if mediaType = found; mediaType == "" {
			mediaType = "application/octet-stream"
		}
		if !allowedType(x.cfg.AllowedTypes, mediaType) {
			return out, x.wrongType(mediaType)
		}
	} else if len(x.cfg.AllowedTypes) > 0 && contradicts(mediaType, found) {
		return out, x.wrongType(found)
	}
	if x.cfg.SHA256 != "" && !strings.EqualFold(x.cfg.SHA256, sum) {
		return out, fault.Newf(fault.OutputInvalid, "the file has the SHA-256 %q, not the one that was expected", sum).With("path", "file.sha256").With("sha256", sum)
	}
	out.File = &fileref.Value{Name: out.Filename, ContentType: mediaType, Size: size, SHA256: sum}
	if x.cfg.SavePath == "" {
		return out, x.keepBlob(ctx, out.File)
	}
	target := x.cfg.SavePath
	if i, err := x.dir.Stat(target); strings.HasSuffix(target, "/") || err == nil && i.Type == "directory" {
		target = paths.Join(target, out.Filename)
	}
	i, err := x.partial.Publish(target, sum, x.place)
	if err != nil {
		return out, err
	}
	out.Path, out.File.Path, out.File.Name = i.Path, i.Path, paths.Base(i.Path)
	return out, nil
}

// contradicts says that content is plainly of another sort than it is said to be: a page that says it is a picture.
func contradicts(declared, found string) bool {
	family, _, _ := strings.Cut(declared, "/")
	switch {
	case found == "" || declared == found || strings.HasSuffix(declared, "+xml"):
		return false
	case family == "image" || family == "audio" || family == "video":
		return !strings.HasPrefix(found, family+"/") && found != "application/ogg"
	}
	return declared == "application/pdf" || declared == "application/zip"
}

func measure(ctx context.Context, f *os.File) (size int64, sum string, head []byte, err error) {
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return 0, "", nil, err
	}
	h := sha256.New()
	if size, err = io.Copy(h, files.Reader(ctx, f)); err != nil {
		return 0, "", nil, err
	}
	head = make([]byte, min(size, 512))
	_, err = f.ReadAt(head, 0)
	if err == io.EOF {
		err = nil
	}
	return size, hex.EncodeToString(h.Sum(nil)), head, err
}

func (x *download) keepBlob(ctx context.Context, v *fileref.Value) error {
	if x.Node.Files == nil {
		return fault.New(fault.Unsupported, "files cannot be kept here; set save_path")
	}
	if _, err := x.partial.File().Seek(0, io.SeekStart); err != nil {
		return err
	}
	hash, _, err := x.Node.Files.Keep(ctx, x.partial.File())
	if err != nil {
		return err
	}
	v.Blob = hash
	return nil
}
