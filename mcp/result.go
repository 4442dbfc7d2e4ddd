package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"tandem/payload"
	"tandem/text"
)

// Output is the result of a tool.
type Output struct {
	// Structured is what the tool gave as data: its structured content, else its text when that is a JSON object. It may be
	// empty, and, where a tool says so, something else than an object.
	Structured json.RawMessage `json:"structured,omitempty"`
	// Text is all its text.
	Text  string `json:"text"`
	Files []File `json:"files,omitempty"`
	// IsError says that the tool itself failed.
	IsError bool `json:"is_error"`
	// Message is never empty: the text, or what there is instead.
	Message string `json:"message"`
}

// File is a picture, a sound or a resource of a result.
type File struct {
	// Sort is image, audio, resource or link.
	Sort      string `json:"sort"`
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	// Data is what is inside; a link has only the URI.
	Data []byte `json:"data,omitempty"`
	URI  string `json:"uri,omitempty"`
}

// Bounds of results.
const (
	MaxText  = 4 << 20
	MaxFiles = 100
	MaxData  = 16 << 20
)

// Object returns the result as the output of a step: the structured content, with the message where no such field exists. What is not an
// object stands under result.
func (o Output) Object() (json.RawMessage, error) {
	object := json.RawMessage("{}")
	if len(o.Structured) > 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, o.Structured); err != nil {
			return nil, err
		}
		if object = compact.Bytes(); object[0] != '{' {
			object = payload.WithField(nil, "result", object)
		}
	}
	if _, ok := payload.Field(object, "message"); !ok {
		object = payload.WithField(object, "message", payload.Quote(o.Message))
	}
	return object, nil
}

type wireResult struct {
	Content       []wireContent   `json:"content"`
	Structured    json.RawMessage `json:"structuredContent"`
	IsError       bool            `json:"isError"`
	InputRequests json.RawMessage `json:"inputRequests"`
}

type wireContent struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource *struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	} `json:"resource"`
}

// Read understands the result of a tools/call request. Its errors are *Error of kind Protocol or TooLarge without the names of server and
// tool.
func Read(result json.RawMessage) (Output, error) {
	var w wireResult
	result = valid(result)
	if err := json.Unmarshal(result, &w); err != nil {
		return Output{}, &Error{Kind: Protocol, Message: text.Of("the result is not what the protocol says"), Sent: true, cause: err}
	}
	if len(w.InputRequests) > 0 && string(w.InputRequests) != "null" {
		return Output{}, &Error{Kind: Protocol, Message: text.Of("the tool asks for more input, which it was told is not possible"), Sent: true}
	}
	o := Output{IsError: w.IsError}
	var texts []string
	size, data := 0, 0
	for i, c := range w.Content {
		var f File
		var err error
		switch {
		case c.Type == "text":
			texts, size = append(texts, c.Text), size+len(c.Text)+1
		case c.Type == "image" || c.Type == "audio":
			f = File{Sort: c.Type, MediaType: c.MIMEType, Name: fmt.Sprintf("%s_%d%s", c.Type, i+1, extension(c.MIMEType))}
			f.Data, err = decode(c.Data)
		case c.Type == "resource" && c.Resource != nil:
			f = File{Sort: "resource", MediaType: c.Resource.MIMEType, URI: c.Resource.URI, Name: fileName(c.Resource.URI, i)}
			if c.Resource.Text != nil {
				f.Data = []byte(*c.Resource.Text)
			} else {
				f.Data, err = decode(c.Resource.Blob)
			}
		case c.Type == "resource_link":
			f = File{Sort: "link", MediaType: c.MIMEType, URI: c.URI, Name: c.Name}
			if f.Name == "" {
				f.Name = fileName(c.URI, i)
			}
		default:
			return Output{}, &Error{Kind: Protocol, Message: text.Of("the result has content of the unknown type %q", c.Type),
				Sent: true}
		}
		if err != nil {
			return Output{}, &Error{Kind: Protocol, Message: text.Of("the data of %q is not base64", f.Name), Sent: true, cause: err}
		}
		if f.Sort != "" {
			if f.MediaType == "" {
				f.MediaType = "application/octet-stream"
			}
			o.Files, data = append(o.Files, f), data+len(f.Data)
		}
	}
	if size > MaxText || len(w.Structured) > MaxText || data > MaxData || len(o.Files) > MaxFiles {
		return Output{}, &Error{Kind: TooLarge, Sent: true,
			Message: text.Of("the tool ran, but its result is larger than %d bytes of text, %d bytes of files or %d files; ask it for less", MaxText, MaxData, MaxFiles)}
	}
	o.Text = strings.Join(texts, "\n")
	if len(w.Structured) > 0 && string(w.Structured) != "null" {
		o.Structured = w.Structured
	} else if text := []byte(strings.TrimSpace(o.Text)); len(text) > 0 && text[0] == '{' && json.Valid(text) {
		o.Structured = text
	}
	o.Message = message(o)
	return o, nil
}

// valid replaces what is not UTF-8. Decoders do so with texts; what is kept as it came would go on as it is, up to readers that close
// their stream over it.
func valid(document json.RawMessage) json.RawMessage {
	if utf8.Valid(document) {
		return document
	}
	return bytes.ToValidUTF8(document, []byte("\uFFFD"))
}

func message(o Output) string {
	switch {
	case strings.TrimSpace(o.Text) != "":
		return o.Text
	case len(o.Structured) > 0:
		return payload.JSON(o.Structured)
	case len(o.Files) > 0:
		names := make([]string, len(o.Files))
		for i, f := range o.Files {
			names[i] = f.Name
		}
		return strings.Join(names, ", ")
	case o.IsError:
		return "the tool failed and did not say why"
	}
	return "the tool returned nothing"
}

// decode reads base64 as tools write it: some leave the padding away, some break lines.
func decode(text string) ([]byte, error) {
	text = strings.TrimRight(strings.NewReplacer("\n", "", "\r", "").Replace(text), "=")
	return base64.RawStdEncoding.DecodeString(text)
}

// extension is the usual one of a few types; a name without one does as well.
func extension(mediaType string) string {
	base, _, _ := strings.Cut(mediaType, ";")
	switch strings.ToLower(strings.TrimSpace(base)) {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	case "image/svg+xml":
		return ".svg"
	case "audio/wav", "audio/x-wav":
		return ".wav"
	case "audio/mpeg":
		return ".mp3"
	case "audio/ogg":
		return ".ogg"
	}
	return ""
}

// fileName is the last part of an address, without what could lead elsewhere.
func fileName(uri string, i int) string {
	uri, _, _ = strings.Cut(uri, "?")
	uri, _, _ = strings.Cut(uri, "#")
	if name := path.Base(uri); name != "." && name != "/" && name != ".." && !strings.ContainsAny(name, "\\\x00:") {
		return name
	}
	return fmt.Sprintf("resource_%d", i+1)
}
