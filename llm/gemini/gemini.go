// Package gemini speaks with Google's Gemini models: it is the [llm.Provider] and [llm.Embedder] of the Gemini API, with a
// key.
//
// It translates one request and one answer, nothing more. It does not try again, choose models or check what a model
// wrote; that is for the caller. The vendor's library knows addresses and requests; nothing of it can be seen from
// outside. Answers are read here, see exchange.go for why. Only app imports the package.
package gemini

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/genai"

	"tandem/fault"
	"tandem/llm"
)

// Name is what profiles and messages call the provider.
const Name = "gemini"

const (
	publicURL  = "https://generativelanguage.googleapis.com"
	apiVersion = "v1beta"
	// maxEmbedded is how many texts the service turns into vectors in one call.
	maxEmbedded = 100
)

// Provider speaks with one service. It is safe for concurrent use.
type Provider struct {
	models *genai.Models
	key    string
}

// New makes a provider. A base URL may end with /v1beta or not.
func New(s llm.Settings) (llm.Provider, error) {
	if s.HTTP == nil {
		return nil, fault.New(fault.Internal, "the gemini provider was made without an HTTP client")
	}
	base := strings.TrimSuffix(strings.TrimRight(s.BaseURL, "/"), "/"+apiVersion)
	if base == "" {
		base = publicURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fault.New(fault.InvalidConfig, "the base URL of the gemini service is not an address; write it like "+publicURL)
	}
	client := *s.HTTP
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client.Transport = &transport{next: next, keyless: s.Key == ""}
	key := s.Key
	if key == "" {
		key = "none" // the library wants one, and would look for one in the environment; transport takes it off again
	}
	c, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: &client,
		HTTPOptions: genai.HTTPOptions{BaseURL: base, APIVersion: apiVersion},
	})
	if err != nil {
		// The library's error shows the whole configuration, key included.
		return nil, fault.New(fault.InvalidConfig, "the library of the gemini service does not take its settings; check the base URL")
	}
	return &Provider{models: c.Models, key: s.Key}, nil
}

// Complete does one completion.
func (p *Provider) Complete(ctx context.Context, r llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
	if err := checkModel(r.Model); err != nil {
		return llm.Completion{}, err
	}
	t, err := translate(r)
	if err != nil {
		return llm.Completion{}, err
	}
	if ctx.Err() != nil {
		return llm.Completion{}, ended(ctx)
	}
	response, err := call(ctx, func(ctx context.Context) error {
		var err error
		if r.Stream {
			for _, err = range p.models.GenerateContentStream(ctx, r.Model, nil, &t.config) {
			}
		} else {
			_, err = p.models.GenerateContent(ctx, r.Model, nil, &t.config)
		}
		return err
	})
	if err != nil {
		return llm.Completion{}, p.explain(ctx, err)
	}
	defer closeBody(response)
	a := &answer{request: r}
	if r.Stream {
		a.sink = sink
		err = events(response.Body, a.takeReply)
	} else {
		err = whole(response.Body, a.takeReply)
	}
	if err == nil && ctx.Err() == nil && r.Stream && !a.complete() {
		err = errCut
	}
	if err != nil || ctx.Err() != nil {
		return llm.Completion{}, p.explain(ctx, err)
	}
	c, err := a.completion(p.key)
	if err != nil {
		return llm.Completion{}, err
	}
	c.Warnings = t.warnings
	return c, nil
}

// Embed turns texts into vectors. The service does not tell what that used.
func (p *Provider) Embed(ctx context.Context, model string, texts []string) ([][]float32, llm.Usage, error) {
	if err := checkModel(model); err != nil {
		return nil, llm.Usage{}, err
	}
	usage := llm.Usage{Estimated: true}
	vectors := make([][]float32, 0, len(texts))
	for rest := texts; len(rest) > 0; {
		part := rest[:min(len(rest), maxEmbedded)]
		rest = rest[len(part):]
		got, err := p.embed(ctx, model, part)
		if err != nil {
			return nil, llm.Usage{}, p.explain(ctx, err)
		}
		vectors = append(vectors, got...)
		for _, text := range part {
			usage.InputTokens += llm.Tokens(text)
		}
	}
	return vectors, usage, nil
}

func (p *Provider) embed(ctx context.Context, model string, texts []string) (vectors [][]float32, err error) {
	contents := make([]*genai.Content, len(texts))
	for i, text := range texts {
		contents[i] = &genai.Content{Parts: []*genai.Part{{Text: text}}}
	}
	response, err := call(ctx, func(ctx context.Context) error {
		_, err := p.models.EmbedContent(ctx, model, contents, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer closeBody(response)
	err = whole(response.Body, func(r *reply) error {
		if len(r.Embeddings) != len(texts) {
			return fmt.Errorf("%w: %d vectors for %d texts", errShape, len(r.Embeddings), len(texts))
		}
		for _, e := range r.Embeddings {
			if len(e.Values) == 0 {
				return fmt.Errorf("%w: a vector is empty", errShape)
			}
			vectors = append(vectors, e.Values)
		}
		return nil
	})
	return vectors, err
}

// closeBody ends a call. What closing says does not matter: everything that is wanted was read.
func closeBody(r *http.Response) { _ = r.Body.Close() }

// checkModel refuses names that would become another address.
func checkModel(name string) error {
	if name == "" || strings.ContainsAny(name, "?&#%\\ ") || strings.Contains(name, "..") {
		return fault.Newf(fault.InvalidConfig, "%q is not the name of a gemini model; write one like \"gemini-2.5-flash\"", name)
	}
	return nil
}
