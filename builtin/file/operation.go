package file

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	paths "path"
	"time"
	"unicode/utf8"

	"tandem/builtin/fileref"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

type fileConfig struct {
	Operation   string          `json:"operation" enum:"read|write|append|copy|move|delete|list|exists|stat|mkdir|hash|archive|extract" required:"true" doc:"What is done with the file." zh:"对文件进行的操作。"`
	Path        string          `json:"path" required:"true" doc:"The file or directory, inside the files of the workspace." zh:"工作区内的文件或目录。"`
	Destination string          `json:"destination" with:"operation=copy|move|archive|extract" doc:"Where it goes, for copy, move, archive and extract." zh:"目标：copy、move、archive、extract 的目标。"`
	Content     json.RawMessage `json:"content" takes:"text" with:"operation=write|append" doc:"What is written." zh:"写入的内容。"`
	Encoding    string          `json:"encoding" enum:"utf8|base64" doc:"How content is written in the configuration or the result." zh:"内容的编码。"`
	Overwrite   bool            `json:"overwrite" doc:"Whether a file that is there may be replaced." zh:"是否允许覆盖已有文件。"`
	Recursive   bool            `json:"recursive" doc:"Whether directories are taken with everything in them." zh:"是否包含目录中的全部内容。"`
	Pattern     string          `json:"pattern" with:"operation=list|archive|extract" doc:"Which files are listed or packed, such as *.csv." zh:"列出或打包哪些文件，如 *.csv。"`
	MaxBytes    int64           `json:"max_bytes" range:"1.." doc:"The most bytes that are read." zh:"最多读取的字节数。"`
}

func (c *fileConfig) Defaults() { c.Encoding, c.MaxBytes = "utf8", 10<<20 }

// fileOutput has what the operation can tell; the rest is left out.
type fileOutput struct {
	Path     string         `json:"path" doc:"The file or directory." zh:"文件或目录。"`
	Type     string         `json:"type,omitempty" doc:"Whether it is a file or a directory." zh:"是文件还是目录。"`
	Content  *string        `json:"content,omitempty" doc:"What was read, if it is text or small." zh:"读到的内容（文本或较小时）。"`
	File     *fileref.Value `json:"file,omitempty" doc:"The file, which other nodes can take as it is." zh:"文件，可直接交给其他节点。"`
	Files    *[]fileEntry   `json:"files,omitempty" doc:"The files that were listed, packed or unpacked." zh:"列出、打包或解包的文件。"`
	Exists   *bool          `json:"exists,omitempty" doc:"Whether it is there." zh:"是否存在。"`
	Size     *int64         `json:"size,omitempty" doc:"Its size in bytes." zh:"大小（字节）。"`
	Modified string         `json:"modified,omitempty" doc:"When it was changed last." zh:"最后修改时间。"`
	SHA256   string         `json:"sha256,omitempty" doc:"The SHA-256 of its content." zh:"内容的 SHA-256。"`
}

type fileEntry struct {
	Path     string `json:"path"`
	Name     string `json:"name"`
	Type     string `json:"type"`
	Size     int64  `json:"size"`
	Modified string `json:"modified"`
}

// fileOperation works on the files of the workspace. What it changes is complete or not there, so that all but append can
// be repeated; what a crashed attempt has done already is found to be done.
func fileOperation(store *files.Store) node.Kind {
	return node.Define(
		node.About{
			Name: "ACTION.FILE_OPERATION", Title: node.Says("File operation", "文件操作"),
			Description: node.Says("Reads, writes, moves, lists, packs and unpacks files of the workspace.", "读取、写入、移动、列出、打包和解包工作区的文件。"),
			Effect:      workflow.Idempotent, // a write is a temporary file and a rename
			Keys:        []node.Key{{Name: "result", Meaning: node.Says("The file or the list of files, with what the operation has found out.", "文件或文件列表，以及操作得到的信息。")}},
			Inputs:      []node.Value{node.Meaning("*", "Whatever the placeholders name.", "占位符所引用的值。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Writes a file.", "写入文件。"),
					Config: `{"operation": "write", "path": "reports/august.txt", "content": "Sales: 900"}`,
					Output: `{"result": {"path": "reports/august.txt", "type": "file", "exists": true, "size": 10, "modified": "…", "sha256": "5fbd26eb795f49574b93d17bd9b14e9d2c7ddac8edfea61b6b59e8fdd7d5b207"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg fileConfig, _ struct{}) (fileOutput, error) {
			if err := cfg.check(); err != nil {
				return fileOutput{}, err
			}
			dir, err := fileref.Workspace(store, call)
			if err != nil {
				return fileOutput{}, err
			}
			x := &fileWork{dir: dir, store: store, call: call, cfg: cfg}
			out, err := x.run(ctx)
			if cerr := dir.Close(); err == nil && cerr != nil {
				err = cerr
			}
			if err != nil && cfg.Operation == "append" {
				err = fault.From(err).Final() // what could not be added was taken back: a known outcome
			}
			return out, err
		}, planFileOperation)
}

// check is about fields that an operation needs, or that would be passed over in silence.
func (c *fileConfig) check() error {
	invalid := func(name, text string) error {
		return fault.Newf(fault.InvalidConfig, "%q %s when operation is %q", name, text, c.Operation).With("path", "configurations."+name)
	}
	switch c.Operation {
	case "copy", "move", "archive", "extract":
		if c.Destination == "" {
			return invalid("destination", "is required")
		}
	case "write", "append":
		if values.IsNull(c.Content) {
			return invalid("content", "is required")
		}
	}
	switch c.Operation {
	case "list", "archive", "extract":
		return files.CheckPattern(c.Pattern)
	}
	if c.Pattern != "" {
		return invalid("pattern", "has no meaning")
	}
	return nil
}

type fileWork struct {
	dir   *files.Dir
	store *files.Store
	call  *node.Call
	cfg   fileConfig
}

// place says what may happen to what is there. Operations that a finished attempt would make fail note that they begin.
func (x *fileWork) place() (files.Place, error) {
	p := files.Place{Overwrite: x.cfg.Overwrite}
	var err error
	switch x.cfg.Operation {
	case "write", "copy", "archive", "extract":
		if !p.Overwrite {
			p.Again, err = x.dir.Begin(x.call.EffectKey())
		}
	case "move", "delete", "mkdir":
		p.Again, err = x.dir.Begin(x.call.EffectKey())
	}
	return p, err
}

func (x *fileWork) run(ctx context.Context) (fileOutput, error) {
	cfg := x.cfg
	if _, err := files.Clean(cfg.Path); err != nil { // before anything is noted
		return fileOutput{}, err
	}
	p, err := x.place()
	if err != nil {
		return fileOutput{}, err
	}
	var i files.Info
	var sum string
	switch cfg.Operation {
	case "read":
		return x.readFile(ctx)
	case "list":
		return x.list(x.dir.List(ctx, cfg.Path, cfg.Recursive, cfg.Pattern))
	case "exists", "stat":
		return x.stat()
	case "delete":
		err = x.dir.Remove(cfg.Path, cfg.Recursive, p)
		exists := false
		return fileOutput{Path: paths.Clean(cfg.Path), Exists: &exists}, err
	case "extract":
		out, err := x.list(x.dir.Extract(ctx, cfg.Path, cfg.Destination, cfg.Pattern, p))
		out.Path = paths.Clean(cfg.Destination)
		return out, err
	case "write":
		i, sum, err = x.write(ctx, p)
	case "append":
		i, err = x.append(ctx)
	case "copy":
		i, err = x.dir.Copy(ctx, cfg.Path, cfg.Destination, cfg.Recursive, p)
	case "move":
		i, err = x.dir.Move(cfg.Path, cfg.Destination, p)
	case "mkdir":
		i, err = x.dir.Mkdir(cfg.Path, cfg.Recursive, p)
	case "hash":
		sum, i, err = x.dir.Hash(ctx, cfg.Path)
	case "archive":
		i, sum, err = x.dir.Archive(ctx, cfg.Path, cfg.Destination, cfg.Pattern, p)
	}
	if err != nil {
		return fileOutput{}, err
	}
	return tellFile(i, sum), nil
}

func tellFile(i files.Info, sum string) fileOutput {
	exists := true
	out := fileOutput{Path: i.Path, Type: i.Type, Exists: &exists, Modified: i.Modified.Format(time.RFC3339Nano), SHA256: sum}
	if i.Type == "file" {
		out.Size = &i.Size
	}
	return out
}

func tellFiles(list []files.Info) []fileEntry {
	entries := make([]fileEntry, 0, len(list))
	for _, i := range list {
		entries = append(entries, fileEntry{i.Path, paths.Base(i.Path), i.Type, i.Size, i.Modified.Format(time.RFC3339Nano)})
	}
	return entries
}

func (x *fileWork) list(list []files.Info, err error) (fileOutput, error) {
	if err != nil {
		return fileOutput{}, err
	}
	entries := tellFiles(list)
	return fileOutput{Path: paths.Clean(x.cfg.Path), Files: &entries}, nil
}

func (x *fileWork) stat() (fileOutput, error) {
	i, err := x.dir.Stat(x.cfg.Path)
	if fault.CodeOf(err) == fault.NotFound && x.cfg.Operation == "exists" {
		exists := false
		return fileOutput{Path: paths.Clean(x.cfg.Path), Exists: &exists}, nil
	}
	if err != nil {
		return fileOutput{}, err
	}
	return tellFile(i, ""), nil
}

func (x *fileWork) readFile(ctx context.Context) (fileOutput, error) {
	f, err := x.dir.Open(x.cfg.Path)
	if err != nil {
		return fileOutput{}, err
	}
	large := fault.Newf(fault.TooLarge, "%q has more than %d bytes; raise max_bytes, or hand its path on", f.Info.Path, x.cfg.MaxBytes).With("limit", x.cfg.MaxBytes)
	if f.Info.Size > x.cfg.MaxBytes {
		return fileOutput{}, errors.Join(large, f.Close())
	}
	data, err := io.ReadAll(io.LimitReader(files.Reader(ctx, f), x.cfg.MaxBytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return fileOutput{}, fault.From(err)
	}
	if int64(len(data)) > x.cfg.MaxBytes { // it has grown
		return fileOutput{}, large
	}
	var content string
	switch {
	case x.cfg.Encoding == "base64":
		content = base64.StdEncoding.EncodeToString(data)
	case !utf8.Valid(data):
		return fileOutput{}, fault.Newf(fault.InvalidInput, `%q is not UTF-8 text; set encoding to "base64" to read it`, f.Info.Path).With("path", f.Info.Path)
	default:
		content = string(data)
	}
	out := tellFile(f.Info, "")
	size := int64(len(data))
	out.Content, out.Size = &content, &size
	if x.call.Files != nil {
		hash, _, err := x.call.Files.Keep(ctx, bytes.NewReader(data))
		if err != nil {
			return fileOutput{}, err
		}
		name := paths.Base(f.Info.Path)
		out.SHA256, out.File = hash, &fileref.Value{Blob: hash, Name: name, ContentType: fileref.TypeByName(name), Size: size, SHA256: hash}
	}
	return out, nil
}

// content is what is written: a text, what a file holds, or any other value as JSON.
func (x *fileWork) content(ctx context.Context) (io.ReadCloser, error) {
	text, isText := values.Scalar(x.cfg.Content)
	var probe struct {
		Blob   string  `json:"blob"`
		Base64 *string `json:"base64"`
	}
	switch {
	case isText && x.cfg.Encoding == "base64":
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fault.New(fault.InvalidInput, `"content" is not base64, which encoding says it is`).With("path", "configurations.content").WithCause(err)
		}
		text = string(data)
	case isText:
	case values.IsObject(x.cfg.Content) && json.Unmarshal(x.cfg.Content, &probe) == nil && (probe.Blob != "" || probe.Base64 != nil):
		source, err := fileref.Open(ctx, x.store, x.call, x.cfg.Content, "content", x.cfg.MaxBytes)
		if err != nil {
			return nil, err
		}
		return source.Open()
	default:
		text = string(payload.Readable(x.cfg.Content))
	}
	if int64(len(text)) > x.cfg.MaxBytes {
		return nil, fault.Newf(fault.TooLarge, `"content" has %d bytes, more than the %d that max_bytes allows`, len(text), x.cfg.MaxBytes).With("limit", x.cfg.MaxBytes)
	}
	return io.NopCloser(bytes.NewReader([]byte(text))), nil
}

func (x *fileWork) write(ctx context.Context, p files.Place) (files.Info, string, error) {
	content, err := x.content(ctx)
	if err != nil {
		return files.Info{}, "", err
	}
	i, sum, err := x.dir.Write(ctx, x.cfg.Path, content, x.cfg.MaxBytes, p)
	if cerr := content.Close(); err == nil && cerr != nil {
		err = cerr
	}
	return i, sum, err
}

func (x *fileWork) append(ctx context.Context) (files.Info, error) {
	content, err := x.content(ctx)
	if err != nil {
		return files.Info{}, err
	}
	data, err := io.ReadAll(io.LimitReader(content, x.cfg.MaxBytes))
	if err = errors.Join(err, content.Close()); err != nil {
		return files.Info{}, err
	}
	return x.dir.Append(x.cfg.Path, data)
}

func planFileOperation(p *node.Planning, c *fileConfig) {
	if operation := p.Choice("operation", c.Operation); operation == "append" || operation == "" {
		p.Effect = workflow.Once
	}
	switch c.Operation {
	case "copy", "move", "archive", "extract":
		p.Require("destination", "when %s is %q", "operation", c.Operation)
	}
}
