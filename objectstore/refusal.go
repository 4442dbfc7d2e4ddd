package objectstore

import (
	"maps"
	"strings"
	"time"

	"tandem/fault"
	"tandem/outbound"
)

// Said is what a service says of a refusal, and what its vendor's package makes of it.
type Said struct {
	// Code and Message are the service's own.
	Code, Message string
	// As is what it means; empty: what the status means.
	As fault.Code
	// Remedy is what to do about it.
	Remedy string
}

// maxSaid is how much of a service's words an error shows.
const maxSaid = 300

// Refusal makes an error of an answer that is not a success. A redirect is one: nothing that is signed is sent elsewhere.
func Refusal(r *outbound.Response, s Said, now time.Time) *outbound.Error {
	e := r.Problem(now)
	if e == nil {
		e = &outbound.Error{Fate: outbound.Answered, Fault: fault.Newf(fault.RemoteRejected, "host %q answered %d, which it should not",
			r.URL.Host, r.Status).With("status_code", r.Status)}
	}
	if s.Code == "" && s.Remedy == "" && s.As == "" {
		return e
	}
	code := e.Fault.Code
	if s.As != "" {
		code = s.As
	}
	f := fault.Newf(code, "host %q answered %d", r.URL.Host, r.Status)
	if s.Code != "" {
		f.Message += " " + Plain(s.Code, 80)
	}
	if text := Plain(s.Message, maxSaid); text != "" {
		f.Message += ": " + strings.TrimRight(text, ".")
	}
	switch {
	case s.Remedy != "":
		f.Message += "; " + s.Remedy
	case code == fault.CredentialInvalid:
		f.Message += "; check the credential and what it may do"
	}
	f.Details = maps.Clone(e.Fault.Details)
	if s.Code != "" {
		f = f.With("service_code", Plain(s.Code, 80))
	}
	if code == fault.RateLimited && e.RetryAfter == 0 {
		e.RetryAfter = outbound.RetryAfter(r.Header, now)
	}
	e.Fault = f
	return e
}

// Damaged says that what arrived is not what was measured.
func Damaged() Said {
	return Said{As: fault.NetworkError, Remedy: "what arrived is not what was read before: the file was changed meanwhile, or damaged on its way"}
}

// Plain is the first line or so of what a service said, without control characters.
func Plain(text string, limit int) string {
	if line, _, ok := strings.Cut(strings.TrimSpace(text), "\n"); ok {
		text = line // ids and times of the request follow, which say nothing to a reader
	}
	text = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSpace(text), ""))
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
