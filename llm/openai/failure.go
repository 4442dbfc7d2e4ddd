package openai

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tandem/fault"
	"tandem/llm"
	"tandem/outbound"
	"tandem/text"
)

// failure says why there is no answer. The response is there if the service answered with an error.
func (p *provider) failure(ctx context.Context, response *http.Response, err error) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if response != nil && response.StatusCode >= 400 {
		// The library has put the body back after it had read it. One that it could not read says nothing.
		body, rerr := io.ReadAll(response.Body)
		if rerr != nil {
			body = nil
		}
		var envelope struct {
			Error json.RawMessage `json:"error"`
		}
		var said serviceProblem
		if json.Unmarshal(body, &envelope) == nil && len(envelope.Error) > 0 {
			said = problemOf(envelope.Error)
		} else {
			said = problemOf(body) // some services do without the envelope
		}
		return p.redacted(problem(response.StatusCode, response.Header, said.each(p.without)))
	}
	_, is := errors.AsType[*fault.Error](err)
	switch {
	case is:
		return p.redacted(err)
	case errors.Is(err, errCut):
		return p.cut(err)
	case errors.Is(err, bufio.ErrTooLong):
		return tooLong()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return p.cut(err)
	}
	return p.redacted(fault.Newf(fault.NetworkError, "host %q could not be reached, or its answer could not be read", p.host).WithDetail(err.Error()))
}

// ended is the error of a call whose context has ended.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if f, ok := errors.AsType[*fault.Error](cause); ok {
		return f
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(fault.Timeout, "the model did not answer completely in time").WithCause(ctx.Err())
	}
	return fault.New(fault.Canceled, "the call of the model was stopped").WithCause(ctx.Err())
}

func (p *provider) cut(err error) error {
	return fault.Newf(fault.NetworkError, "host %q ended its answer before it was complete", p.host).WithDetail(err.Error())
}

func tooLong() error {
	return fault.New(fault.TooLarge, "the answer of the model is larger than any answer should be; set max_tokens")
}

// unreadable is an answer that cannot be read: mostly something between the service and us has answered instead.
func unreadable(err error) error {
	return fault.New(fault.RemoteError, "what the service answered is not a completion; check the base_url").WithDetail(err.Error())
}

func refused(text string) error { return fault.New(fault.ModelRefused, text) }

// serviceProblem is what a service says of an error.
type serviceProblem struct {
	Message loose `json:"message"`
	Type    loose `json:"type"`
	// Code is a word, and with some services a status.
	Code  loose `json:"code"`
	Param loose `json:"param"`
}

// problemOf reads an error, which may also be a bare text. What cannot be read says nothing.
func problemOf(data []byte) serviceProblem {
	var s serviceProblem
	if json.Unmarshal(data, &s) == nil {
		return s
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		return serviceProblem{Message: loose(text)}
	}
	return serviceProblem{}
}

// each returns the error with something done to its texts.
func (s serviceProblem) each(do func(string) string) serviceProblem {
	for _, text := range []*loose{&s.Message, &s.Type, &s.Code, &s.Param} {
		*text = loose(do(string(*text)))
	}
	return s
}

// problem turns an error of the service into a fault. The status is zero for an error within a stream.
func problem(status int, header http.Header, s serviceProblem) error {
	where := "the service answered " + strconv.Itoa(status)
	if name := http.StatusText(status); name != "" {
		where += " " + name
	}
	if status == 0 {
		where = "the service failed in the middle of its answer"
		if n, err := strconv.Atoi(string(s.Code)); err == nil && n >= 400 && n < 600 {
			status = n
		}
	}
	code, remedy := meaning(status, s)
	text := where
	if s.Message != "" {
		text += fmt.Sprintf(": %q", clip(string(s.Message)))
	}
	f := fault.New(code, text+remedy).With("status_code", status)
	if s.Code != "" {
		f = f.With("service_code", clip(string(s.Code)))
	}
	if s.Param != "" {
		f = f.With("parameter", clip(string(s.Param)))
	}
	if code != fault.RateLimited && code != fault.RemoteError {
		return f
	}
	if after := outbound.RetryAfter(header, time.Now()); after > 0 {
		return &llm.Unavailable{Err: f.With("retry_after_ms", after.Milliseconds()), RetryAfter: after}
	}
	return f
}

// meaning says what the service means by an error.
func meaning(status int, s serviceProblem) (code fault.Code, remedy string) {
	word := strings.ToLower(string(s.Code) + " " + string(s.Type))
	text := strings.ToLower(string(s.Message))
	mistake := status == 0 || status >= 400 && status < 500
	switch {
	case mistake && exceedsContext(status, word, text), status == http.StatusRequestEntityTooLarge:
		return fault.ContextTooLong, "; shorten the conversation or choose a model that takes more"
	case mistake && says(word, "content_filter", "content_policy"):
		return fault.ModelRefused, ""
	case says(word, "insufficient_quota", "billing") || status == http.StatusPaymentRequired:
		return fault.RemoteRejected, "; the account has no credit left"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.CredentialInvalid, "; check the credential and what it may do"
	case status == http.StatusNotFound || status == http.StatusGone:
		return fault.NotFound, "; check the model and the base_url"
	case status == http.StatusTooManyRequests || status == 0 && says(word, "rate_limit"):
		return fault.RateLimited, ""
	case status == http.StatusRequestTimeout:
		return fault.Timeout, ""
	case mistake && status != 0 || status == 0 && says(word, "invalid_request"):
		return fault.RemoteRejected, ""
	}
	return fault.RemoteError, ""
}

// exceedsContext tells whether a service that found a mistake means that the conversation is too long.
func exceedsContext(status int, word, text string) bool {
	if says(word, "context_length", "context_window") {
		return true
	}
	return (status == 0 || status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) &&
		says(text, "maximum context length", "context length", "context window", "context size", "prompt is too long", "too many tokens")
}

// says tells whether one of the words is in a text.
func says(in string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(in, word) })
}

// redacted takes the key out of an error: services tell which key was wrong. Their words were cleaned before they were
// cut; this is for what others say.
func (p *provider) redacted(err error) error {
	clean := *fault.From(err)
	clean.Message, clean.Detail = p.without(clean.Message), p.without(clean.Detail)
	f := &clean
	if u, ok := errors.AsType[*llm.Unavailable](err); ok {
		return &llm.Unavailable{Err: f, RetryAfter: u.RetryAfter}
	}
	return f
}

// without takes the key out of a text. Keys of three letters and less are not secrets but fillers.
func (p *provider) without(text string) string {
	if len(p.key) < 4 {
		return text
	}
	return strings.ReplaceAll(text, p.key, "[secret]")
}

// clip keeps the words of a service short enough to be read.
func clip(said string) string { return text.ClipBytes(said, 1000) }
