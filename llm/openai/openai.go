// Package openai speaks the chat completions protocol of OpenAI and of the many services that have it too: Ollama, vLLM,
// DeepSeek, Qwen, OpenRouter, gateways.
//
// The official library makes requests, authenticates and takes streams apart into events. What an event means is read
// here, since compatible services say more than the library knows (reasoning_content) and say it less strictly (an error
// that is null, tool calls without an index or an id).
//
// It repeats nothing: the engine does. The package knows nothing of profiles, budgets or nodes; the code that wires an
// installation imports it.
package openai

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"tandem/fault"
	"tandem/llm"
)

// DefaultBaseURL is the public address of OpenAI.
const DefaultBaseURL = "https://api.openai.com/v1"

const (
	// maxAnswer bounds what an answer may grow to; no model says that much.
	maxAnswer = 32 << 20
	// maxProblem is how much of an error's body is read.
	maxProblem = 64 << 10
)

// provider speaks with one service. It has no state of its own.
type provider struct {
	chat       openai.ChatCompletionService
	embeddings openai.EmbeddingService
	key        string
	host       string
	limit      int // bytes of an answer
}

// New makes a provider for the service at the base URL. It is an [llm.Factory]; what it returns is an [llm.Embedder] too.
func New(s llm.Settings) (llm.Provider, error) {
	base := strings.TrimSpace(s.BaseURL)
	if base == "" {
		base = DefaultBaseURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fault.New(fault.InvalidConfig, "the base_url is not an address of a service; write it like "+DefaultBaseURL)
	}
	if u.User != nil {
		return nil, fault.New(fault.InvalidConfig, "the base_url has a name or a password in it; put the secret into a credential")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	key := strings.TrimSpace(s.Key)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, fault.New(fault.CredentialInvalid, "the key has a space or a character in it that no key has; copy it again")
	}
	if s.HTTP == nil {
		return nil, fault.New(fault.Internal, "the provider was given no HTTP client")
	}
	client := llm.HangUp(s.HTTP)
	// Conversations go where they were meant to go. A redirect that keeps the method would send them on, whole.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	// The services are made by themselves: a client of the library would look for keys and addresses in the environment.
	options := []option.RequestOption{
		option.WithBaseURL(u.String()), option.WithHTTPClient(client), option.WithMaxRetries(0), option.WithMiddleware(guard),
	}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	return &provider{openai.NewChatCompletionService(options...), openai.NewEmbeddingService(options...), key, u.Host, maxAnswer}, nil
}

// guard refuses redirects and bounds the bodies of errors: the library takes the first for answers and reads all of the
// second.
func guard(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(r)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode >= 400:
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxProblem), response.Body}
	case response.StatusCode >= 300:
		f := fault.Newf(fault.RemoteRejected, "host %q redirects to another address; write that one as base_url", r.URL.Host)
		return nil, f.With("status_code", response.StatusCode).WithCause(response.Body.Close())
	}
	return response, nil
}

// Complete does one completion.
func (p *provider) Complete(ctx context.Context, r llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
	if ctx.Err() != nil {
		return llm.Completion{}, ended(ctx)
	}
	params, warnings := translate(r)
	heard, hangUp := llm.Hear(ctx)
	defer hangUp()
	var response *http.Response
	if _, err := p.chat.New(heard, params, option.WithResponseBodyInto(&response)); err != nil {
		return llm.Completion{}, p.failure(ctx, response, err)
	}
	if !r.Stream {
		sink = nil
	}
	a := &answer{sink: sink, clean: p.without, limit: p.limit}
	err := p.readAnswer(response, r.Stream, a)
	if cerr := response.Body.Close(); err == nil && cerr != nil && ctx.Err() == nil {
		err = cerr
	}
	if ctx.Err() != nil && !a.finished() {
		return llm.Completion{}, ended(ctx)
	}
	if err != nil {
		return llm.Completion{}, p.failure(ctx, nil, err)
	}
	c, err := a.completion(r)
	if err != nil {
		return llm.Completion{}, p.redacted(err)
	}
	c.Warnings = warnings
	return c, nil
}

// readAnswer reads an answer of either form. Some services stream to those who did not ask for it, and some do not although
// they were asked.
func (p *provider) readAnswer(response *http.Response, stream bool, a *answer) error {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	if kind == "text/event-stream" || stream && kind != "application/json" {
		return a.stream(response)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(p.limit)+1))
	if err != nil {
		return err
	}
	return a.whole(body)
}

// Embed turns texts into vectors, in as many calls as the service's limits ask for.
func (p *provider) Embed(ctx context.Context, model string, texts []string) ([][]float32, llm.Usage, error) {
	vectors := make([][]float32, 0, len(texts))
	var usage llm.Usage
	for len(texts) > 0 {
		n := batch(texts)
		some, u, err := p.embed(ctx, model, texts[:n])
		if err != nil {
			return nil, llm.Usage{}, err
		}
		vectors, usage, texts = append(vectors, some...), usage.Add(u), texts[n:]
	}
	return vectors, usage, nil
}

// batch is how many of the texts go into one call. OpenAI takes 2,048 texts and 300,000 tokens; the guess leaves room.
func batch(texts []string) int {
	tokens := int64(0)
	for i, t := range texts {
		if tokens += llm.Tokens(t); i > 0 && (i == 2048 || tokens > 150_000) {
			return i
		}
	}
	return len(texts)
}

func (p *provider) embed(ctx context.Context, model string, texts []string) ([][]float32, llm.Usage, error) {
	if ctx.Err() != nil {
		return nil, llm.Usage{}, ended(ctx)
	}
	input := make([]string, len(texts))
	for i, t := range texts {
		if t == "" {
			t = " " // an empty text is refused, and its vector says nothing either way
		}
		input[i] = t
	}
	params := openai.EmbeddingNewParams{
		Model: model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: input},
		EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat,
	}
	heard, hangUp := llm.Hear(ctx)
	defer hangUp()
	var response *http.Response
	if _, err := p.embeddings.New(heard, params, option.WithResponseBodyInto(&response)); err != nil {
		return nil, llm.Usage{}, p.failure(ctx, response, err)
	}
	var got struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
		Usage *usage `json:"usage"`
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 4*maxAnswer))
	if cerr := response.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, llm.Usage{}, p.failure(ctx, nil, err)
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, llm.Usage{}, p.redacted(unreadable(err))
	}
	vectors := make([][]float32, len(texts))
	for _, d := range got.Data {
		if d.Index < 0 || d.Index >= len(texts) || vectors[d.Index] != nil {
			return nil, llm.Usage{}, fault.Newf(fault.RemoteError, "the service sent a vector for text %d of %d, or sent it twice", d.Index, len(texts))
		}
		vectors[d.Index] = d.Embedding
	}
	for i, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, llm.Usage{}, fault.Newf(fault.RemoteError, "the service sent a vector of %d numbers for text %d and one of %d for the first", len(v), i, len(vectors[0]))
		}
	}
	u, known := got.Usage.tokenUsage()
	if !known {
		for _, t := range texts {
			u.InputTokens += llm.Tokens(t)
		}
		u.Estimated = true
	}
	return vectors, u, nil
}
