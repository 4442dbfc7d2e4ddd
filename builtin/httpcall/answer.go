package httpcall

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"strings"
	"time"
	"unicode/utf8"

	"tandem/builtin/document"
	"tandem/builtin/fileref"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
)

// What becomes of the answer to an HTTP call.

func (x *Call) single(ctx context.Context) (Output, error) {
	response, err := x.Ask(ctx, x.Home)
	if err != nil {
		return Output{}, err
	}
	out, err := x.answer(ctx, response)
	if err != nil {
		return Output{}, err
	}
	return out, nil
}

// answer reads a response and closes it.
func (x *Call) answer(ctx context.Context, r *outbound.Response) (Output, error) {
	out := Output{
		StatusCode: r.Status, Headers: FlatHeader(r.Header), JSON: json.RawMessage("null"), Success: r.Status >= 200 && r.Status < 300,
		URL: r.URL.String(), Redirects: hops(r),
	}
	begun := time.Now()
	err := x.content(ctx, r, &out)
	x.elapsed += time.Since(begun)
	out.ResponseTime = x.elapsed.Milliseconds()
	return out, err
}

func (x *Call) content(ctx context.Context, r *outbound.Response, out *Output) error {
	if problem := r.Problem(x.Node.Time()); problem != nil && x.Config.FailOnStatus {
		return x.Refused(r, problem)
	}
	mediaType, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		mediaType = ""
	}
	// Whether there is a body at all is known when its first byte is here.
	buffered := bufio.NewReader(r.Body)
	_, first := buffered.Peek(1)
	empty := first == io.EOF
	if first != nil && !empty {
		return errors.Join(first, r.Body.Close())
	}
	if !empty && (x.Config.ResponseType == "file" || x.Config.ResponseType == "auto" && document.BinaryType(mediaType)) {
		out.File, err = x.keep(ctx, buffered, r, mediaType)
		if cerr := r.Body.Close(); err == nil && cerr != nil {
			err = cerr
		}
		return err
	}
	data, err := io.ReadAll(buffered)
	if cerr := r.Body.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if x.Config.ResponseType == "auto" && mediaType == "" && !utf8.Valid(data) {
		out.File, err = x.keep(ctx, bytes.NewReader(data), r, "application/octet-stream")
		return err
	}
	text := document.DecodeText(data, parameters["charset"])
	return x.text(text, mediaType, empty, out)
}

// Refused adds to a refusal what its body says, and closes it.
func (x *Call) Refused(r *outbound.Response, problem *outbound.Error) error {
	excerpt, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if cerr := r.Body.Close(); err != nil || cerr != nil {
		x.Log(node.Debug, "the body of the refusal could not be read to its end", nil) // its status says enough
	}
	if text := values.Readable(excerpt, MaxExcerpt); text != "" {
		problem.Fault = problem.Fault.With("body", text)
	}
	if problem.Fault.Code == fault.CredentialInvalid && x.Auth == nil {
		problem.Fault.Message += "; no credential is configured, choose one with credential_id"
	}
	return problem
}

// text hands an answer on as text and, if it is meant to be, as JSON.
func (x *Call) text(text, mediaType string, empty bool, out *Output) error {
	out.Body = text
	wanted := x.Config.ResponseType == "json"
	if x.Config.ResponseType == "text" || !wanted && !document.JSONType(mediaType) && mediaType != "" {
		return nil
	}
	trimmed := strings.TrimSpace(strings.TrimPrefix(text, "\uFEFF"))
	switch {
	case empty || trimmed == "":
		return nil // 204, HEAD: there is no document, and that is an answer too
	case json.Valid([]byte(trimmed)) && (wanted || mediaType != "" || trimmed[0] == '{' || trimmed[0] == '['):
		out.JSON = json.RawMessage(trimmed)
		if len(text) > maxText {
			out.Body = ""
		}
	case wanted:
		return fault.Newf(fault.OutputInvalid, "the answer is not JSON; it begins with %q",
			values.Readable([]byte(trimmed), 60)).With("path", "json")
	case mediaType != "":
		x.Log(node.Warn, "the answer says that it is JSON and is not; it is handed on as text", nil)
	}
	return nil
}

// Remembered keeps the error that reading ended with: the code that stores the content may wrap it in words of its own.
type Remembered struct {
	From io.Reader
	Err  error
}

func (r *Remembered) Read(p []byte) (int, error) {
	n, err := r.From.Read(p)
	if err != nil && err != io.EOF {
		r.Err = err
	}
	return n, err
}

// keep stores a body as a file.
func (x *Call) keep(ctx context.Context, from io.Reader, r *outbound.Response, mediaType string) (*fileref.Value, error) {
	if x.Node.Files == nil {
		return nil, fault.New(fault.Unsupported, `the answer is a file, and files cannot be kept here; set response_type to "text" if it is text`)
	}
	source := &Remembered{From: from}
	content := io.Reader(source)
	if x.Auth != nil {
		content = x.Auth.file(source)
	}
	hash, size, err := x.Node.Files.Keep(ctx, content)
	if source.Err != nil {
		return nil, source.Err
	}
	if err != nil {
		return nil, err
	}
	if mediaType == "" {
		mediaType = "application/octet-stream"
	}
	return &fileref.Value{Blob: hash, Name: FileName(r), ContentType: mediaType, Size: size, SHA256: hash}, nil
}

// FileName is what the service calls a file, or the end of its address, without anything that could be a path.
func FileName(r *outbound.Response) string {
	name := ""
	if _, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Disposition")); err == nil {
		name = parameters["filename"]
	}
	if name == "" {
		name = r.URL.Path
	}
	if name = fileref.CleanName(name); name == "" {
		return "download"
	}
	return name
}
