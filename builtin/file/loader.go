package file

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"tandem/builtin/document"
	"tandem/builtin/fileref"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/workflow"
)

type loaderConfig struct {
	Document string `json:"document" doc:"What the document is called in sources; without it the name of the file." zh:"文档名称：来源中的名称，省略时为文件名。"`
	Title    string `json:"title" doc:"Its title; without it the name of the file." zh:"文档标题，省略时为文件名。"`
	Format   string `json:"format" enum:"auto|txt|md|html|pdf|docx|xlsx|csv|json|yaml|xml" doc:"What the file is; auto goes by its name, its type and its first bytes." zh:"文件格式；auto 按名称、类型和开头字节判断。"`
	MaxBytes int64  `json:"max_bytes" range:"1..33554432" doc:"The most bytes that the file may have." zh:"文件大小上限（字节）。"`
}

func (c *loaderConfig) Defaults() { c.Format, c.MaxBytes = "auto", maxTextFile }

type loaderInput struct {
	File json.RawMessage `json:"file" doc:"The file: a path in the workspace, a stored file, or one with base64 and name." zh:"文件：工作区路径、已保存的文件，或带 base64 和 name 的文件。"`
}

// loadedPart is where a part of the text stands, in characters.
type loadedPart struct {
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Page    int    `json:"page,omitempty"`
	Section string `json:"section,omitempty"`
	Row     int    `json:"row,omitempty"`
}

type loaderOutput struct {
	Document   string       `json:"document" doc:"What the document is called in sources." zh:"来源中的文档名称。"`
	Title      string       `json:"title" doc:"Its title." zh:"文档标题。"`
	Format     string       `json:"format" doc:"What the file was read as." zh:"所识别的格式。"`
	Text       string       `json:"text" doc:"The text of the document, at most 4 MiB of it." zh:"文档文本，最多 4 MiB。"`
	Parts      []loadedPart `json:"parts" doc:"The pages, sections, sheets or rows: where each begins and ends in the text, in characters, with page, section or row." zh:"文档的页、章节、工作表或行：在文本中的起止字符位置，以及 page、section 或 row。"`
	Pages      int          `json:"pages" doc:"How many pages or sheets there are, for formats that have them." zh:"页数或工作表数（若有）。"`
	Characters int          `json:"characters" doc:"How many characters the text has." zh:"文本的字符数。"`
	SHA256     string       `json:"sha256" doc:"The checksum of the file." zh:"文件的校验和。"`
	Truncated  bool         `json:"truncated" doc:"Whether the document has more text than is read." zh:"是否截断：文档文本多于所读取的部分时为真。"`
}

// documentLoader reads the text of a document, with the parts that it has.
func documentLoader(store *files.Store) node.Kind {
	return node.Define(
		node.About{
			Name: "ACTION.DOCUMENT_LOADER", Title: node.Says("Document loader", "文档加载"),
			Description: node.Says("Reads the text of a document with its pages, sections or rows: text, Markdown, HTML, PDF, Word, Excel and CSV.",
				"读取文档的文本及其页、章节或行：支持文本、Markdown、HTML、PDF、Word、Excel 和 CSV。"),
			Effect: workflow.Idempotent,
			Keys:   []node.Key{{Name: "result", Meaning: node.Says("The text and its parts, as ACTION.TEXT_SPLITTER takes them.", "文本及其各部分，可交给 ACTION.TEXT_SPLITTER。")}},
			Examples: []node.Example{{
				Shows:  node.Says("Reads a Markdown file that came with the input.", "读取随输入提供的 Markdown 文件。"),
				Config: `{}`,
				Input:  `{"file": {"name": "leave.md", "base64": "IyBMZWF2ZQpFdmVyeWJvZHkgaGFzIDI1IGRheXMuCg=="}}`,
				Output: `{"result": {"document": "leave.md", "title": "leave.md", "format": "md", "text": "# Leave\nEverybody has 25 days.\n", "parts": [{"start": 0, "end": 31, "section": "Leave"}], "pages": 0, "characters": 31, "sha256": "…", "truncated": false}}`,
			}},
		},
		func(ctx context.Context, call *node.Call, cfg loaderConfig, in loaderInput) (loaderOutput, error) {
			if len(in.File) == 0 || string(in.File) == "null" {
				return loaderOutput{}, fault.New(fault.ParameterMissing, `"file" is missing; let the input bring a file`).With("path", "file").With("missing_fields", []string{"file"})
			}
			source, err := fileref.Open(ctx, store, call, in.File, "file", cfg.MaxBytes)
			if err != nil {
				return loaderOutput{}, err
			}
			data, err := source.ReadAll(ctx, cfg.MaxBytes)
			if err != nil {
				return loaderOutput{}, err
			}
			return cfg.load(ctx, source, data)
		})
}

func (c *loaderConfig) load(ctx context.Context, source *fileref.Source, data []byte) (loaderOutput, error) {
	format, err := c.format(source, data)
	if err != nil {
		return loaderOutput{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, document.TextTime)
	defer cancel()
	content, err := document.Read(ctx, format, data)
	if err != nil {
		return loaderOutput{}, err
	}
	sum := sha256.Sum256(data)
	out := loaderOutput{
		Document: cmp.Or(c.Document, source.Name), Title: cmp.Or(c.Title, source.Name), Format: format, Pages: content.Pages,
		Truncated: content.Cut, SHA256: hex.EncodeToString(sum[:]),
	}
	text := content.Text
	if format != "pdf" && strings.ContainsRune(text[:min(len(text), 8<<10)], 0) {
		return loaderOutput{}, fault.Newf(fault.Unsupported, "%q is not a text", source.Name).With("path", "file")
	}
	if len(text) > maxDocumentText {
		text, out.Truncated = strings.ToValidUTF8(text[:maxDocumentText], ""), true
	}
	out.Text, out.Parts = text, []loadedPart{}
	at, characters := 0, 0 // a place in the text, in bytes and in characters
	for _, p := range content.Parts {
		if p.Start > len(text) {
			break
		}
		characters += utf8.RuneCountInString(text[at:p.Start])
		at = p.Start
		if n := len(out.Parts); n > 0 {
			out.Parts[n-1].End = characters
		}
		out.Parts = append(out.Parts, loadedPart{Start: characters, Page: p.Page, Section: p.Section, Row: p.Row})
	}
	out.Characters = characters + utf8.RuneCountInString(text[at:])
	if n := len(out.Parts); n > 0 {
		out.Parts[n-1].End = out.Characters
	}
	return out, nil
}

// maxDocumentText is how many bytes of text a document gives.
const maxDocumentText = 4 << 20

// loadedFormats are what can be read, with the types of contents that mean the same.
func loadedFormats() map[string][]string {
	return map[string][]string{
		"txt": {"text/plain"}, "md": {"text/markdown", "text/x-markdown"},
		"html": {"text/html", "application/xhtml+xml"}, "pdf": {"application/pdf"},
		"docx": {"application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		"xlsx": {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
		"csv":  {"text/csv", "application/csv"}, "json": {"application/json"}, "yaml": {"application/yaml", "application/x-yaml"},
		"xml": {"application/xml", "text/xml"},
	}
}

// format tells what a file is: what the node says, else by its name, its type or what it begins with.
func (c *loaderConfig) format(source *fileref.Source, data []byte) (string, error) {
	if c.Format != "auto" {
		return c.Format, nil
	}
	known := loadedFormats()
	if format := document.FormatOf(source.Name); known[format] != nil {
		return format, nil
	}
	mediaType, _, err := mime.ParseMediaType(source.ContentType)
	if err == nil && mediaType != "text/plain" {
		for format, types := range known { // order does not matter: a type is in one list
			if slices.Contains(types, mediaType) {
				return format, nil
			}
		}
	}
	switch {
	case bytes.HasPrefix(data, []byte("%PDF-")):
		return "pdf", nil
	case utf8.Valid(data) && !bytes.ContainsRune(data, 0):
		return "txt", nil
	}
	return "", fault.Newf(fault.Unsupported, "what %q is cannot be told, or it cannot be read; give a text, Markdown, HTML, PDF, Word (docx), Excel (xlsx) or CSV file, or set format", source.Name).With("path", "file")
}
