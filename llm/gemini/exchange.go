package gemini

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

var (
	// errShape is an answer that is not of the service's shape.
	errShape = errors.New("the answer has a shape that is not known")
	// errCut is an answer that ended before it was complete.
	errCut = errors.New("the answer ended before it was complete")
)

// maxFailure is how many bytes of an error are read.
const maxFailure = 1 << 20

// exchange is one call. It travels with the call's context to the transport and brings the answer back, past the library:
// that reads numbers as floating point, which changes long ids, keeps no headers, stumbles over comments in streams, panics
// on answers of a wrong shape, writes to the standard log, and takes several times as long. The goroutine of the call owns
// it.
type exchange struct {
	response *http.Response
}

type exchangeKey struct{}

// call lets the library send a request and returns the answer, which the caller closes. An answer with an error is
// a *failure.
func call(ctx context.Context, send func(context.Context) error) (*http.Response, error) {
	x := &exchange{}
	err := send(context.WithValue(ctx, exchangeKey{}, x))
	if x.response == nil {
		if err == nil {
			err = errShape
		}
		return nil, err
	}
	if status := x.response.StatusCode; status < 200 || status > 299 {
		defer closeBody(x.response)
		f := &failure{httpStatus: status, header: x.response.Header}
		var body struct {
			Error json.RawMessage `json:"error"`
		}
		data, err := io.ReadAll(io.LimitReader(x.response.Body, maxFailure))
		if err == nil && json.Unmarshal(data, &body) == nil {
			_ = json.Unmarshal(body.Error, f) // a body that is something else says nothing; the status does
		}
		return nil, f
	}
	return x.response, nil
}

// transport stands between the library and the guarded client.
type transport struct {
	next    http.RoundTripper
	keyless bool
}

// RoundTrip makes one round trip. The library gets an answer with status 200 and nothing to read.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errors.New("a call of the library that nobody asked for")
	}
	if t.keyless {
		r = r.Clone(r.Context())
		r.Header.Del("X-Goog-Api-Key")
	}
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode >= 300 && response.StatusCode <= 399 {
		return response, err // a redirect is for the client to follow
	}
	x.response = response
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: response.Proto, ProtoMajor: response.ProtoMajor,
		ProtoMinor: response.ProtoMinor,
		Header:     http.Header{}, Body: http.NoBody, Request: r,
	}, nil
}

// failure is an error of the service.
type failure struct {
	Code    int              `json:"code"`
	Message string           `json:"message"`
	Status  string           `json:"status"`
	Details []map[string]any `json:"details"`

	httpStatus int         // 0 inside a stream
	header     http.Header // nil inside a stream
}

// Error names the error; explain says what the service says, without secrets.
func (f *failure) Error() string {
	return fmt.Sprintf("error %d of the service", max(f.httpStatus, f.Code))
}

// The shapes of answers, as far as they are wanted.
type (
	reply struct {
		Candidates []struct {
			Content struct {
				Parts []replyPart `json:"parts"`
			} `json:"content"`
			FinishReason  string   `json:"finishReason"`
			FinishMessage string   `json:"finishMessage"`
			SafetyRatings []rating `json:"safetyRatings"`
		} `json:"candidates"`
		PromptFeedback *feedback    `json:"promptFeedback"`
		UsageMetadata  *tokenCounts `json:"usageMetadata"`
		ModelVersion   string       `json:"modelVersion"`
		ResponseID     string       `json:"responseId"`
		Embeddings     []struct {
			Values []float32 `json:"values"`
		} `json:"embeddings"`
		Error *failure `json:"error"`
	}
	replyPart struct {
		Text             string `json:"text"`
		Thought          bool   `json:"thought"`
		ThoughtSignature string `json:"thoughtSignature"`
		FunctionCall     *struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"functionCall"`
	}
	rating struct {
		Category    string `json:"category"`
		Probability string `json:"probability"`
		Blocked     bool   `json:"blocked"`
	}
	feedback struct {
		BlockReason        string   `json:"blockReason"`
		BlockReasonMessage string   `json:"blockReasonMessage"`
		SafetyRatings      []rating `json:"safetyRatings"`
	}
	tokenCounts struct {
		PromptTokenCount        int64 `json:"promptTokenCount"`
		ToolUsePromptTokenCount int64 `json:"toolUsePromptTokenCount"`
		CandidatesTokenCount    int64 `json:"candidatesTokenCount"`
		ThoughtsTokenCount      int64 `json:"thoughtsTokenCount"`
		CachedContentTokenCount int64 `json:"cachedContentTokenCount"`
		TotalTokenCount         int64 `json:"totalTokenCount"`
	}
)

// whole reads an answer in one piece.
func whole(body io.Reader, take func(*reply) error) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return decode(data, take)
}

func decode(data []byte, take func(*reply) error) error {
	var r reply
	if err := json.Unmarshal(data, &r); err != nil {
		return errors.Join(errShape, err)
	}
	if r.Error != nil {
		return r.Error
	}
	return take(&r)
}

// events reads an answer in events. One that has not ended with a blank line does not count. Lines that belong to no event are
// kept together: an error of the service can come so.
func events(body io.Reader, take func(*reply) error) error {
	lines := bufio.NewReader(body)
	var data, stray []byte
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			if stray = append(stray, line...); json.Valid(stray) {
				return decode(stray, take)
			}
			return nil
		}
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0:
			if len(data) > 0 {
				if err := decode(data, take); err != nil {
					return err
				}
				data = data[:0]
			}
			if json.Valid(stray) {
				if err := decode(stray, take); err != nil {
					return err
				}
				stray = stray[:0]
			}
		case string(name) == "data":
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		case len(name) == 0, string(name) == "event", string(name) == "id", string(name) == "retry":
		default:
			stray = append(append(stray, line...), '\n')
		}
	}
}
