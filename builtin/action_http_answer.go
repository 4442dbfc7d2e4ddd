package builtin

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

	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
)

// What becomes of the answer to an HTTP call.

func (x *httpCall) single(ctx context.Context) (httpOutput, error) {
	response, err := x.ask(ctx, x.home)
	if err != nil {
		return httpOutput{}, err
	}
	out, err := x.answer(ctx, response)
	if err != nil {
		return httpOutput{}, err
	}
	return out, nil
}

// answer reads a response and closes it.
func (x *httpCall) answer(ctx context.Context, r *outbound.Response) (httpOutput, error) {
	out := httpOutput{
		StatusCode: r.Status, Headers: flatHeader(r.Header), JSON: json.RawMessage("null"), Success: r.Status >= 200 && r.Status < 300,
		URL: r.URL.String(), Redirects: hops(r),
	}
	begun := time.Now()
	err := x.content(ctx, r, &out)
	x.elapsed += time.Since(begun)
	out.ResponseTime = x.elapsed.Milliseconds()
	return out, err
}

func (x *httpCall) content(ctx context.Context, r *outbound.Response, out *httpOutput) error {
	if problem := r.Problem(x.call.Time()); problem != nil && x.cfg.FailOnStatus {
		return x.refused(r, problem)
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
	if !empty && (x.cfg.ResponseType == "file" || x.cfg.ResponseType == "auto" && binaryType(mediaType)) {
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
	if x.cfg.ResponseType == "auto" && mediaType == "" && !utf8.Valid(data) {
		out.File, err = x.keep(ctx, bytes.NewReader(data), r, "application/octet-stream")
		return err
	}
	text := decodeText(data, parameters["charset"])
	return x.text(text, mediaType, empty, out)
}

// refused adds to a refusal what its body says, and closes it.
func (x *httpCall) refused(r *outbound.Response, problem *outbound.Error) error {
	excerpt, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if cerr := r.Body.Close(); err != nil || cerr != nil {
		x.log(node.Debug, "the body of the refusal could not be read to its end", nil) // its status says enough
	}
	if text := readable(excerpt, maxHTTPExcerpt); text != "" {
		problem.Fault = problem.Fault.With("body", text)
	}
	if problem.Fault.Code == fault.CredentialInvalid && x.auth == nil {
		problem.Fault.Message += "; no credential is configured, choose one with credential_id"
	}
	return problem
}

// text hands an answer on as text and, if it is meant to be, as JSON.
func (x *httpCall) text(text, mediaType string, empty bool, out *httpOutput) error {
	out.Body = text
	wanted := x.cfg.ResponseType == "json"
	if x.cfg.ResponseType == "text" || !wanted && !jsonType(mediaType) && mediaType != "" {
		return nil
	}
	trimmed := strings.TrimSpace(strings.TrimPrefix(text, "\uFEFF"))
	switch {
	case empty || trimmed == "":
		return nil // 204, HEAD: there is no document, and that is an answer too
	case json.Valid([]byte(trimmed)) && (wanted || mediaType != "" || trimmed[0] == '{' || trimmed[0] == '['):
		out.JSON = json.RawMessage(trimmed)
		if len(text) > maxHTTPText {
			out.Body = ""
		}
	case wanted:
		return fault.Newf(fault.OutputInvalid, "the answer is not JSON; it begins with %q", readable([]byte(trimmed), 60)).With("path", "json")
	case mediaType != "":
		x.log(node.Warn, "the answer says that it is JSON and is not; it is handed on as text", nil)
	}
	return nil
}

// remembered keeps the error that reading ended with: whoever stores the content may wrap it in words of its own.
type remembered struct {
	from io.Reader
	err  error
}

func (r *remembered) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// keep stores a body as a file.
func (x *httpCall) keep(ctx context.Context, from io.Reader, r *outbound.Response, mediaType string) (*fileValue, error) {
	if x.call.Files == nil {
		return nil, fault.New(fault.Unsupported, `the answer is a file, and files cannot be kept here; set response_type to "text" if it is text`)
	}
	source := &remembered{from: from}
	content := io.Reader(source)
	if x.auth != nil {
		content = x.auth.file(source)
	}
	hash, size, err := x.call.Files.Keep(ctx, content)
	if source.err != nil {
		return nil, source.err
	}
	if err != nil {
		return nil, err
	}
	if mediaType == "" {
		mediaType = "application/octet-stream"
	}
	return &fileValue{Blob: hash, Name: fileName(r), ContentType: mediaType, Size: size, SHA256: hash}, nil
}

// fileName is what the service calls a file, or the end of its address, without anything that could be a path.
func fileName(r *outbound.Response) string {
	name := ""
	if _, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Disposition")); err == nil {
		name = parameters["filename"]
	}
	if name == "" {
		name = r.URL.Path
	}
	if name = cleanName(name); name == "" {
		return "download"
	}
	return name
}
