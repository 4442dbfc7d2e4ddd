package file

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"tandem/builtin/document"
	"tandem/builtin/fileref"
	"tandem/builtin/toolset"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/workflow"
)

type fileToolConfig struct {
	toolset.Fields
	Root     string   `json:"root" doc:"The directory of the workspace below which files are offered." zh:"提供文件的工作区目录。"`
	ReadOnly bool     `json:"read_only" doc:"Whether files can only be read." zh:"是否只读。"`
	MaxBytes int64    `json:"max_bytes" range:"1.." doc:"The most bytes of a file that is read or written." zh:"读写文件的最多字节数。"`
	Formats  []string `json:"formats" doc:"The formats of files that are offered." zh:"提供的文件格式。"`
}

func (c *fileToolConfig) Defaults() {
	c.Approval, c.Root, c.ReadOnly, c.MaxBytes = "inherit", ".", true, 1<<20
	c.Formats = []string{"txt", "md", "csv", "json", "yaml", "xml", "html", "docx", "xlsx", "pdf"}
}

const (
	// maxToolText leaves room in a result for what stands around its text.
	maxToolText = toolset.MaxResult - 4<<10
	// maxToolFiles is how many files a list or a search tells.
	maxToolFiles, maxToolMatches = 200, 100
	// What one search looks at.
	maxSearchFiles, maxSearchBytes = 2_000, 64 << 20
	// maxTextFile is how large a file may be whose text is extracted, whatever max_bytes says.
	maxTextFile = 32 << 20
)

// fileProcessor gives a model files of the workspace: those below root, of the formats named, and no more.
func fileProcessor(store *files.Store) node.Kind {
	k := node.Define(
		node.About{
			Name: "TOOL.FILE_PROCESSOR", Title: node.Says("File tools", "文件工具"),
			Description: node.Says("Lists, reads, searches and writes files of the workspace for a model.", "为模型列出、读取、搜索和写入工作区文件。"),
			Effect:      workflow.Idempotent,
			Keys:        toolset.Keys(),
			Examples: []node.Example{
				{
					Shows:  node.Says("Reads a file of the workspace.", "读取工作区中的文件。"),
					Config: `{"root": "reports"}`,
					Input:  `{"tool_name": "file_read", "function_args": {"path": "june.txt"}}`,
					Output: `{"result": {"result": {"path": "june.txt", "content": "Sales: 1200\n", "offset": 0, "next_offset": 12, "size": 12, "eof": true}, "success": true, "error_message": "", "execution_time": "…", "cached": false, "path": "june.txt", "content": "Sales: 1200\n", "offset": 0, "next_offset": 12, "size": 12, "eof": true}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg fileToolConfig, in toolset.Input) (out toolset.Output, err error) {
			whole, err := fileref.Workspace(store, call)
			if err != nil {
				return out, err
			}
			defer func() { err = errors.Join(err, whole.Close()) }()
			dir, err := whole.Sub(cfg.Root)
			if err != nil {
				return out, err
			}
			defer func() { err = errors.Join(err, dir.Close()) }()
			x := &fileTools{dir: dir, cfg: cfg}
			return toolset.Run(ctx, call, cfg.Fields, in, x.tools())
		}, planFileTools)
	k.Tools = func(_ context.Context, call *node.Call) ([]node.Tool, error) {
		cfg, err := node.Configuration[fileToolConfig](call.Config)
		if err != nil {
			return nil, err
		}
		return toolset.Offered(cfg.Fields, (&fileTools{cfg: cfg}).tools()), nil
	}
	return k
}

type fileTools struct {
	dir *files.Dir
	cfg fileToolConfig
}

func (x *fileTools) tools() []toolset.Tool {
	list := []toolset.Tool{
		toolset.New("file_list", toolset.Reads, "Lists the files below a path. A pattern such as *.csv narrows it.", x.list),
		toolset.New("file_read", toolset.Reads, "Reads a text file, from an offset and up to a limit in bytes. next_offset says where to go on.", x.readPiece),
		toolset.New("file_search", toolset.Reads, "Finds a text in the files below a path and returns the lines that have it.", x.search),
		toolset.New("file_extract_text", toolset.Reads, "Returns the text of a document: pdf, docx, xlsx, html or plain text.", x.extract),
	}
	if !x.cfg.ReadOnly {
		list = append(list, toolset.New("file_write", toolset.Repeats, "Writes a text file, in place of one that is there.", x.write))
	}
	return list
}

// textFormats are those that are text as they are.
func textFormats() []string { return []string{"txt", "md", "csv", "json", "yaml", "xml", "html"} }

// format refuses what the node does not offer.
func (x *fileTools) format(name string) (string, error) {
	format := document.FormatOf(name)
	if !slices.ContainsFunc(x.cfg.Formats, func(f string) bool { return strings.EqualFold(strings.TrimPrefix(f, "."), format) }) {
		return "", fault.Newf(fault.Unsupported, "%q has none of the formats %s", name,
			strings.Join(x.cfg.Formats, ", ")).With("path", name)
	}
	return format, nil
}

type fileListArgs struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
	Pattern   string `json:"pattern"`
}

func (a *fileListArgs) Defaults() { a.Path = "." }

type fileListResult struct {
	Files     []fileEntry `json:"files"`
	Truncated bool        `json:"truncated"`
}

func (x *fileTools) list(ctx context.Context, a fileListArgs) (any, error) {
	list, err := x.dir.List(ctx, a.Path, a.Recursive, a.Pattern)
	if err != nil {
		return nil, err
	}
	r := fileListResult{Files: tellFiles(list[:min(len(list), maxToolFiles)])}
	for len(r.Files) > 0 && len(values.Encode(r)) > maxToolText { // long names
		r.Files = r.Files[:len(r.Files)/2]
	}
	r.Truncated = len(r.Files) < len(list)
	return r, nil
}

type fileReadArgs struct {
	Path   string `json:"path" required:"true"`
	Offset int64  `json:"offset" range:"0.."`
	Limit  int64  `json:"limit" range:"1.."`
}

func (a *fileReadArgs) Defaults() { a.Limit = maxToolText }

type fileReadResult struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Offset  int64  `json:"offset"`
	// NextOffset is where the next call goes on; it is the size at the end.
	NextOffset int64 `json:"next_offset"`
	Size       int64 `json:"size"`
	EOF        bool  `json:"eof"`
}

// readPiece returns a piece of a text file. Offset and limit are in bytes; a piece ends between characters.
func (x *fileTools) readPiece(_ context.Context, a fileReadArgs) (any, error) {
	format, err := x.format(a.Path)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(textFormats(), format) {
		return nil, fault.Newf(fault.Unsupported, "%q is not a text file; use file_extract_text", a.Path).With("path", a.Path)
	}
	f, err := x.dir.Open(a.Path)
	if err != nil {
		return nil, err
	}
	buffer := make([]byte, min(a.Limit, maxToolText, x.cfg.MaxBytes)+utf8.UTFMax)
	n, err := f.ReadAt(buffer, a.Offset)
	if err == io.EOF {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fault.From(err)
	}
	r := fileReadResult{Path: f.Info.Path, Offset: a.Offset, Size: f.Info.Size}
	piece := buffer[:n]
	skipped := 0
	for skipped < len(piece) && a.Offset > 0 && skipped < utf8.UTFMax-1 && !utf8.RuneStart(piece[skipped]) {
		skipped++ // the rest of a character that the piece before had no room for
	}
	end := len(piece)
	if int64(end) > min(a.Limit, maxToolText, x.cfg.MaxBytes) {
		end = int(min(a.Limit, maxToolText, x.cfg.MaxBytes))
		for end > skipped && !utf8.RuneStart(piece[end]) {
			end--
		}
		if end == skipped { // a limit that is smaller than one character
			_, size := utf8.DecodeRune(piece[skipped:])
			end = skipped + size
		}
	}
	raw := string(piece[skipped:end])
	text, cut := toolset.FitJSON(raw, maxToolText)
	if cut {
		end = skipped + len(text)
	}
	r.Content = strings.ToValidUTF8(text, "\uFFFD")
	if len(values.Encode(r)) > toolset.MaxResult { // bytes that are not text take three each
		return nil, fault.Newf(fault.Unsupported, "%q is not UTF-8 text", a.Path).With("path", a.Path)
	}
	r.NextOffset = a.Offset + int64(end)
	r.EOF = r.NextOffset >= f.Info.Size
	return r, nil
}

type fileSearchArgs struct {
	Text    string `json:"text" required:"true"`
	Path    string `json:"path"`
	Pattern string `json:"pattern"`
}

func (a *fileSearchArgs) Defaults() { a.Path = "." }

type fileMatch struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

type fileSearchResult struct {
	Matches []fileMatch `json:"matches"`
	Files   int         `json:"files_searched"`
	// Truncated says that there may be more: too many matches, files or bytes.
	Truncated bool `json:"truncated"`
}

// search finds lines of text files that have a text in them, in any letter case.
func (x *fileTools) search(ctx context.Context, a fileSearchArgs) (any, error) {
	if strings.TrimSpace(a.Text) == "" {
		return nil, fault.New(fault.ToolError, `"text" is empty; say what to look for`).With("path", "function_args.text")
	}
	list, err := x.dir.List(ctx, a.Path, true, a.Pattern)
	if err != nil {
		return nil, err
	}
	r := fileSearchResult{Matches: []fileMatch{}}
	var read int64
	room := maxToolText - 8<<10
	for _, i := range list {
		format, err := x.format(i.Path)
		if i.Type != "file" || err != nil || !slices.Contains(textFormats(), format) {
			continue
		}
		if r.Files == maxSearchFiles || read > maxSearchBytes || i.Size > x.cfg.MaxBytes {
			r.Truncated = true
			continue
		}
		r.Files++
		read += i.Size
		if err := x.searchFile(ctx, i.Path, a.Text, &r, &room); err != nil {
			return nil, err
		}
		if r.Truncated {
			break
		}
	}
	return r, nil
}

func (x *fileTools) searchFile(ctx context.Context, name, text string, r *fileSearchResult, room *int) error {
	f, err := x.dir.Open(name)
	if fault.CodeOf(err) == fault.NotFound {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	text = strings.ToLower(text)
	lines := bufio.NewReader(io.LimitReader(files.Reader(ctx, f), x.cfg.MaxBytes))
	for number := 1; err == nil && !r.Truncated; number++ {
		var line string
		line, err = lines.ReadString('\n')
		at := strings.Index(strings.ToLower(line), text)
		if at < 0 {
			continue
		}
		excerpt := line[min(len(line), max(0, at-200)):] // lower case can be longer, so at is only about right
		excerpt, _ = toolset.FitJSON(strings.ToValidUTF8(strings.TrimSpace(excerpt), ""), 400)
		if *room -= len(excerpt)*2 + len(name) + 64; *room < 0 || len(r.Matches) == maxToolMatches {
			r.Truncated = true
			break
		}
		r.Matches = append(r.Matches, fileMatch{name, number, excerpt})
	}
	if err == io.EOF {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fault.From(err)
	}
	return nil
}

type fileTextArgs struct {
	Path string `json:"path" required:"true"`
}

type fileTextResult struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Text   string `json:"text"`
	// Pages is how many pages or sheets there are, for formats that have them.
	Pages     int  `json:"pages,omitempty"`
	Truncated bool `json:"truncated"`
}

// extract returns the text of a file of any format that the node offers.
func (x *fileTools) extract(ctx context.Context, a fileTextArgs) (any, error) {
	format, err := x.format(a.Path)
	if err != nil {
		return nil, err
	}
	f, err := x.dir.Open(a.Path)
	if err != nil {
		return nil, err
	}
	limit := min(x.cfg.MaxBytes, maxTextFile)
	data, err := io.ReadAll(io.LimitReader(files.Reader(ctx, f), limit+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fault.From(err)
	}
	if int64(len(data)) > limit {
		return nil, fault.Newf(fault.TooLarge, "%q has more than %d bytes; raise max_bytes, or read a part with file_read", f.Info.Path, limit).With("limit", limit)
	}
	ctx, cancel := context.WithTimeout(ctx, document.TextTime)
	defer cancel()
	r := fileTextResult{Path: f.Info.Path, Format: format}
	text, pages, cut, err := document.Text(ctx, format, data)
	if err != nil {
		return nil, err
	}
	r.Pages = pages
	if r.Text, r.Truncated = toolset.FitJSON(strings.ToValidUTF8(text, "\uFFFD"), maxToolText); cut {
		r.Truncated = true
	}
	return r, nil
}

type fileWriteArgs struct {
	Path    string `json:"path" required:"true"`
	Content string `json:"content"`
}

type fileWriteResult struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func (x *fileTools) write(ctx context.Context, a fileWriteArgs) (any, error) {
	format, err := x.format(a.Path)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(textFormats(), format) {
		return nil, fault.Newf(fault.Unsupported, "%q is not a text file; write one of %s", a.Path,
			strings.Join(textFormats(), ", ")).With("path", a.Path)
	}
	i, sum, err := x.dir.Write(ctx, a.Path, strings.NewReader(a.Content), x.cfg.MaxBytes, files.Place{Overwrite: true})
	if err != nil {
		return nil, err
	}
	return fileWriteResult{i.Path, i.Size, sum}, nil
}

func planFileTools(p *node.Planning, _ *fileToolConfig) { toolset.Plan(p, (&fileTools{}).tools()) }
