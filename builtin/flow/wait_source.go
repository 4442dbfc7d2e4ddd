package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/builtin/fileref"
	"tandem/builtin/httpcall"
	"tandem/builtin/values"
	"tandem/database"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/outbound"
)

// What the sources outside are asked.
type (
	waitAPI struct {
		URL      node.Template   `json:"url" required:"true" doc:"The address that is asked." zh:"查询的地址。"`
		Method   string          `json:"method" enum:"GET|HEAD|POST" doc:"The method of the call. It is made again at every check, so it must change nothing." zh:"调用方法；每次检查都会调用，因此不应产生改动。"`
		Headers  node.Object     `json:"headers" doc:"The headers of the call." zh:"调用的请求头。"`
		Response json.RawMessage `json:"expected_response" doc:"What the answer must have: fields with their values, or a part of its text." zh:"响应须包含的内容：字段及其值，或一段文本。"`
	}
	waitFile struct {
		Path    node.Template   `json:"file_path" required:"true" doc:"The file that is looked for, in the files of the workspace." zh:"在工作区文件中查找的文件。"`
		Content json.RawMessage `json:"expected_content" doc:"What it must have: a part of its text, or fields with their values if it is JSON." zh:"文件须包含的内容：一段文本；为 JSON 文件时可以是字段及其值。"`
	}
	waitDatabase struct {
		Query node.SQL `json:"query" required:"true" doc:"The query whose rows are compared with those of the first check. It may only read, and should say the order of its rows." zh:"查询：将其结果与首次检查时相比较；只能读取，且应指定行的顺序。"`
	}
)

func (c *waitAPI) Defaults() { c.Method = http.MethodGet }

const (
	// maxSearched is how much of a file is searched for what it must have.
	maxSearched = 10 << 20
	// maxShown is up to which size the text of a file is part of the answer.
	maxShown = 256 << 10
	// maxCompared is how many rows of a query are compared.
	maxCompared = 10_000
)

// waitSources are what waits ask.
type waitSources struct {
	http      *outbound.Client
	tokens    *httpcall.Tokens
	files     *files.Store
	databases *database.Pools
}

// ask makes one check.
func (s *waitSources) ask(ctx context.Context, w *waiting, memo *waitMemo) (checked, error) {
	missing := func(name string) error {
		return fault.Newf(fault.InvalidConfig, "%q is required when wait_type is %q", name, w.cfg.Type).With("path", "configurations."+name)
	}
	switch w.cfg.Type {
	case "api_response":
		if w.cfg.API == nil {
			return checked{}, missing("api_config")
		}
		return s.service(ctx, w.call, w.cfg.API)
	case "file":
		if w.cfg.File == nil {
			return checked{}, missing("file_config")
		}
		return s.file(ctx, w.call, w.cfg.File)
	}
	if w.cfg.Database == nil {
		return checked{}, missing("database_config")
	}
	return s.database(ctx, w.call, w.cfg.Database, memo)
}

// service asks a service. Met is an answer of success that has what is expected.
func (s *waitSources) service(ctx context.Context, call *node.Call, cfg *waitAPI) (checked, error) {
	x := &httpcall.Call{Client: s.http, Node: call, Config: httpcall.Config{
		Method: cfg.Method, URL: string(cfg.URL), Headers: cfg.Headers, BodyType: "none", ResponseType: "text",
		FollowRedirects: true, MaxRedirects: 5,
	}}
	out, err := x.Run(ctx, httpcall.Input{}, s.tokens)
	if err != nil {
		return checked{}, fault.From(x.Failed(err))
	}
	text := strings.TrimSpace(strings.TrimPrefix(out.Body, "\uFEFF"))
	if text != "" && json.Valid([]byte(text)) {
		out.JSON = json.RawMessage(text)
	}
	poll := values.Encode(out)
	return checked{met: out.Success && values.Expects(cfg.Response, out.Body, out.JSON), poll: poll}, nil
}

// fileAnswer is what a wait for a file finds.
type fileAnswer struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	// Type is "file", "directory" or "other"; empty when there is nothing.
	Type       string `json:"type"`
	Size       int64  `json:"size"`
	ModifiedAt string `json:"modified_at"`
	// Content is the text of the file, null if it is not a text or is too large to be handed on.
	Content *string `json:"content"`
}

// file looks for a file. Met is one that is there and has what is expected.
func (s *waitSources) file(ctx context.Context, call *node.Call, cfg *waitFile) (_ checked, err error) {
	name, err := files.Clean(string(cfg.Path))
	if err != nil {
		if f := fault.From(err); f.Code != fault.ForbiddenPath {
			err = fault.Newf(fault.InvalidConfig, "%s", f.Message).With("path", "configurations.file_config.file_path")
		}
		return checked{}, err
	}
	dir, err := fileref.Workspace(s.files, call)
	if err != nil {
		return checked{}, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	info, err := dir.Stat(name)
	if fault.CodeOf(err) == fault.NotFound {
		return checked{poll: values.Encode(fileAnswer{Path: name})}, nil
	}
	if err != nil {
		return checked{}, err
	}
	found := fileAnswer{Path: name, Exists: true, Type: info.Type, Size: info.Size, ModifiedAt: stamp(info.Modified)}
	if info.Type != "file" {
		return checked{poll: values.Encode(found)}, nil
	}
	wants := !values.IsNull(cfg.Content)
	if info.Size > maxSearched && wants {
		return checked{}, fault.Newf(fault.TooLarge, "%q has %d bytes; at most %d are searched for expected_content", name, info.Size, maxSearched)
	}
	met := true
	if wants || info.Size <= maxShown {
		content, err := readText(ctx, dir, name)
		if err != nil {
			return checked{}, err
		}
		if utf8.ValidString(content) && len(content) <= maxShown {
			found.Content = &content
		}
		document := json.RawMessage(nil)
		if text := strings.TrimSpace(strings.TrimPrefix(content, "\uFEFF")); json.Valid([]byte(text)) {
			document = json.RawMessage(text)
		}
		met = values.Expects(cfg.Content, content, document)
	}
	return checked{met: met, poll: values.Encode(found)}, nil
}

func readText(ctx context.Context, dir *files.Dir, name string) (_ string, err error) {
	f, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := io.ReadAll(io.LimitReader(files.Reader(ctx, f), maxSearched))
	return string(data), err
}

// rowsAnswer is what a wait for a change reads.
type rowsAnswer struct {
	Rows      json.RawMessage `json:"rows"`
	RowCount  int             `json:"row_count"`
	Truncated bool            `json:"truncated"`
}

// database asks a database. Met are rows that differ from the first that were seen.
func (s *waitSources) database(ctx context.Context, call *node.Call, cfg *waitDatabase, memo *waitMemo) (checked, error) {
	if s.databases == nil {
		return checked{}, fault.New(fault.Unsupported, "databases cannot be reached by this installation")
	}
	id := gjson.GetBytes(call.Config, "credential_id").Str
	if id == "" || call.Credential == nil {
		return checked{}, fault.New(fault.CredentialMissing, "configurations.credential_id: a wait for a change in a database needs a credential of the type sql; choose one")
	}
	opened, err := call.Credential(ctx, id, "sql")
	if err != nil {
		return checked{}, err
	}
	text := database.Text{Words: []string{string(cfg.Query)}}
	if call.Bind != nil {
		bound, err := call.Bind(string(cfg.Query))
		if err != nil {
			return checked{}, err
		}
		text.Words, text.Values = bound.Text, bound.Values
	}
	rows, err := s.databases.Query(ctx, database.Target{Workspace: call.Workspace, Credential: opened.ID, Data: opened.Data},
		database.Query{Text: text, MaxRows: maxCompared})
	if err != nil {
		if f := fault.From(err); f.Code == fault.InvalidInput { // a statement that writes, or whose values do not fit
			err = fault.Newf(fault.InvalidConfig, "%s", f.Message).With("path", "configurations.database_config.query")
		}
		return checked{}, err
	}
	sum := sha256.Sum256(values.Encode(rowsAnswer{rows.Rows, rows.Count, rows.Truncated}))
	seen := hex.EncodeToString(sum[:])
	met := memo.Seen != "" && memo.Seen != seen
	if memo.Seen == "" {
		memo.Seen = seen
	}
	return checked{met: met, poll: values.Encode(rowsAnswer{rows.Rows, rows.Count, rows.Truncated})}, nil
}
