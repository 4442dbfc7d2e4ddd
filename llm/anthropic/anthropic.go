// Package anthropic speaks with Claude models: it is the [llm.Provider] of Anthropic's messages API and of services that
// copy it.
//
// It translates one request and one answer, nothing more. It does not try again, choose models or check what a model
// wrote; that is for the caller. The vendor's library does the transport; nothing of it can be seen from outside, and it
// reads neither the environment nor files. Only app imports the package.
package anthropic

import (
	"context"
	"net/url"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"tandem/fault"
	"tandem/llm"
)

// Name is what profiles and messages call the provider.
const Name = "anthropic"

const (
	publicURL = "https://api.anthropic.com"
	// maxTokens is sent when a request says none: the service wants a number.
	maxTokens = 8192
	// noLimit keeps the library from setting a limit of its own, or from refusing answers that may take long: the context
	// has one.
	noLimit = 24 * time.Hour
)

// Provider speaks with one service. It is safe for concurrent use.
type Provider struct {
	messages sdk.MessageService
	key      string
}

// New makes a provider. A base URL may end with /v1 or not.
func New(s llm.Settings) (llm.Provider, error) {
	if s.HTTP == nil {
		return nil, fault.New(fault.Internal, "the anthropic provider was made without an HTTP client")
	}
	base := strings.TrimSuffix(strings.TrimRight(s.BaseURL, "/"), "/v1")
	if base == "" {
		base = publicURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fault.New(fault.InvalidConfig, "the base URL of the anthropic service is not an address; write it like "+publicURL)
	}
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithHTTPClient(llm.HangUp(s.HTTP)),
		option.WithBaseURL(base + "/"),
		option.WithMaxRetries(0),
	}
	if s.Key != "" {
		options = append(options, option.WithAPIKey(s.Key))
	}
	return &Provider{messages: sdk.NewMessageService(options...), key: s.Key}, nil
}

// Complete does one completion.
func (p *Provider) Complete(ctx context.Context, r llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
	params, warnings, err := translate(r)
	if err != nil {
		return llm.Completion{}, err
	}
	heard, hangUp := llm.Hear(ctx)
	defer hangUp()
	var a answer
	if r.Stream {
		a, err = p.stream(heard, params, sink)
	} else {
		a, err = p.whole(heard, params)
	}
	if err != nil {
		return llm.Completion{}, err
	}
	c, err := a.completion(r, p.key)
	c.Warnings = warnings
	return c, err
}

// whole asks for the answer in one piece.
func (p *Provider) whole(ctx context.Context, params request) (answer, error) {
	m, err := p.messages.New(ctx, params.body, append(params.options, option.WithRequestTimeout(noLimit))...)
	if err != nil {
		return answer{}, p.explain(ctx, err)
	}
	if m == nil || m.ID == "" && m.StopReason == "" && len(m.Content) == 0 {
		return answer{}, fault.New(fault.RemoteError, "the anthropic service answered with something that is not a message; check the base URL")
	}
	var a answer
	for _, b := range m.Content {
		a.takeBlock(b)
	}
	a.id, a.model = m.ID, string(m.Model)
	a.stop, a.refusal = string(m.StopReason), m.StopDetails
	a.usage = usage{told: m.JSON.Usage.Valid()}
	a.usage.input, a.usage.output = m.Usage.InputTokens, m.Usage.OutputTokens
	a.usage.read, a.usage.written = m.Usage.CacheReadInputTokens, m.Usage.CacheCreationInputTokens
	a.usage.thinking = m.Usage.OutputTokensDetails.ThinkingTokens
	return a, nil
}

// stream asks for the answer in pieces. When it returns the connection is closed.
func (p *Provider) stream(ctx context.Context, params request, sink func(llm.Delta)) (answer, error) {
	s := p.messages.NewStreaming(ctx, params.body, params.options...)
	a := answer{sink: sink}
	for s.Next() {
		if err := a.event(s.Current()); err != nil {
			closeStream(s)
			return answer{}, err
		}
		if a.done {
			closeStream(s)
			return a, nil
		}
	}
	err := s.Err()
	closeStream(s)
	if err != nil {
		return answer{}, p.explain(ctx, err)
	}
	if ctx.Err() != nil {
		return answer{}, ended(ctx, nil)
	}
	return answer{}, fault.New(fault.NetworkError, "the anthropic service ended its answer before it was complete")
}

// closeStream ends a call. What closing says does not matter: everything that is wanted was read.
func closeStream(s interface{ Close() error }) { _ = s.Close() }
