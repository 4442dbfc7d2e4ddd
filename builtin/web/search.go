package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/builtin/document"
	"tandem/builtin/httpcall"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/node/slot"
	"tandem/outbound"
	"tandem/workflow"
)

type searchConfig struct {
	Provider       string         `json:"provider" enum:"searxng|brave|tavily|bing|json" doc:"The search service; without one that of the credential." zh:"搜索服务；省略时由凭据决定。"`
	Query          node.Template  `json:"query" doc:"What is searched for; without it the query of the input." zh:"搜索内容；省略时取输入的 query。"`
	MaxResults     int            `json:"max_results" range:"1..50" doc:"The most results." zh:"最多返回的结果数。"`
	Language       string         `json:"language" doc:"The language of the results. Not for tavily." zh:"结果的语言。tavily 不支持。"`
	TimeRange      string         `json:"time_range" enum:"any|day|week|month|year" doc:"How old results may be." zh:"结果的时间范围。"`
	IncludeDomains []string       `json:"include_domains" doc:"Only results of these domains." zh:"只包含这些域名的结果。"`
	ExcludeDomains []string       `json:"exclude_domains" doc:"No results of these domains." zh:"排除这些域名的结果。"`
	FetchContent   bool           `json:"fetch_content" doc:"Whether the pages are fetched and their text added." zh:"是否获取页面并附上正文。"`
	Mapping        *searchMapping `json:"mapping" with:"provider=json" doc:"How a service is asked and read that is not known here, for json." zh:"对应关系：json 时如何调用并读取其他服务。"`
}

func (c *searchConfig) Defaults() { c.MaxResults, c.TimeRange = 10, "any" }

type searchInput struct {
	Query json.RawMessage `json:"query,omitempty" doc:"What is searched for, if the configuration does not say." zh:"未配置时的搜索内容。"`
}

type searchResult struct {
	Title     string   `json:"title" doc:"The title of the page." zh:"页面标题。"`
	URL       string   `json:"url" doc:"Its address." zh:"页面地址。"`
	Snippet   string   `json:"snippet" doc:"A part of it that fits the query." zh:"与搜索相关的摘录。"`
	Published *string  `json:"published" doc:"When it was published, if anybody says." zh:"发布时间（若有）。"`
	Score     *float64 `json:"score" doc:"How well it fits, if the service says." zh:"相关度（若有）。"`
	Content   *string  `json:"content" doc:"Its text, with fetch_content." zh:"正文：设置 fetch_content 时的正文。"`

	at time.Time // when it was published, zero when nobody says
}

type searchOutput struct {
	Results  []searchResult `json:"results" doc:"The pages that were found, the best first." zh:"搜索到的页面，最相关的在前。"`
	Total    int64          `json:"total" doc:"How many there are, as far as the service says." zh:"服务给出的结果总数。"`
	Provider string         `json:"provider" doc:"The service that was asked." zh:"所用的搜索服务。"`
}

const (
	maxSearchQuery   = 400
	maxSearchContent = 20 << 10
	maxSearchPage    = 2 << 20
	// searchPages is how many pages of results are asked for when filters leave too few of them.
	searchPages        = 5
	searchFetchers     = 4
	searchFetchTimeout = 15 * time.Second
)

// search is one run as its provider sees it.
type search struct {
	query     string
	max       int
	language  string
	timeRange string
	since     time.Time // what was published before is not wanted; zero: everything is
	include   []string
	exclude   []string
	page      int // from 0
	now       time.Time
	mapping   *searchMapping
	key       string
	base      *url.URL
}

// searchCredential are the fields of a credential of the type search.
type searchCredential struct {
	Provider string `json:"provider"`
	APIKey   string `json:"api_key"`
	BaseURL  string `json:"base_url"`
}

// webSearch asks a search service.
func webSearch(client *outbound.Client) node.Kind {
	providers := searchProviders()
	return node.Define(
		node.About{
			Name: "ACTION.WEB_SEARCH", Title: node.Says("Web search", "网页搜索"),
			Description: node.Says("Searches the web through a search service.", "通过搜索服务检索网页。"),
			Effect:      workflow.Idempotent,
			Needs:       node.Needs{Credential: []string{"search"}},
			Keys:        []node.Key{{Name: "result", Meaning: node.Says("The results, their number, and who has found them.", "搜索结果、总数和服务名称。")}},
			Examples: []node.Example{
				{
					Shows:   node.Says("Searches the web.", "搜索网页。"),
					Config:  `{"credential_id": "web_search", "query": "workflow engine", "max_results": 1}`,
					Replies: []string{`{"results": [{"title": "Tandem", "url": "https://example.com/tandem", "content": "A workflow engine.", "score": 1}]}`},
					Output:  `{"result": {"results": [{"title": "Tandem", "url": "https://example.com/tandem", "snippet": "A workflow engine.", "published": null, "score": 1, "content": null}], "total": 1, "provider": "searxng"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg searchConfig, in searchInput) (searchOutput, error) {
			s, provider, err := openSearch(ctx, call, cfg, in, providers)
			if err != nil {
				return searchOutput{}, err
			}
			out, err := s.run(ctx, client, provider)
			if err != nil {
				if e, ok := errors.AsType[*outbound.Error](err); ok {
					return searchOutput{}, &node.Failure{Err: e.Fault, RetryAfter: e.RetryAfter}
				}
				return searchOutput{}, err
			}
			if cfg.FetchContent {
				fetchPages(ctx, client, call, out.Results)
			}
			return out, nil
		})
}

// openSearch reads what is asked for and whom to ask.
func openSearch(ctx context.Context, call *node.Call, cfg searchConfig, in searchInput,
	providers []searchProvider) (*search, *searchProvider, error) {
	query := strings.TrimSpace(string(cfg.Query))
	if query == "" {
		text, ok := values.Scalar(in.Query)
		if query = strings.TrimSpace(text); !ok || query == "" {
			return nil, nil, slot.Missing([]string{"query"}, `"query" is required; set it in the input or the configurations`).With("path", "query")
		}
	}
	if n := utf8.RuneCountInString(query); n > maxSearchQuery {
		return nil, nil, fault.Newf(fault.InvalidInput, `"query" has %d characters; at most %d are taken`, n, maxSearchQuery).With("path", "query")
	}
	id := gjson.GetBytes(call.Config, "credential_id").Str
	if id == "" || call.Credential == nil {
		return nil, nil, fault.New(fault.CredentialMissing, "a web search needs a credential of the type search; choose one with credential_id")
	}
	opened, err := call.Credential(ctx, id, "search")
	if err != nil {
		return nil, nil, err
	}
	var data searchCredential
	if err := json.Unmarshal(opened.Data, &data); err != nil {
		return nil, nil, fault.Newf(fault.CredentialInvalid, "credential %q cannot be read; save it again", id)
	}
	if cfg.Provider != "" && cfg.Provider != data.Provider {
		return nil, nil, fault.Newf(fault.InvalidConfig, "credential %q is for %q and \"provider\" is %q; leave provider out or choose another credential", id, data.Provider, cfg.Provider).With("path", "configurations.provider")
	}
	i := slices.IndexFunc(providers, func(p searchProvider) bool { return p.name == data.Provider })
	if i < 0 {
		return nil, nil, fault.Newf(fault.CredentialInvalid, "credential %q is for the provider %q, which is not known", id, data.Provider)
	}
	provider := &providers[i]
	s := &search{query: query, max: cfg.MaxResults, language: cfg.Language, timeRange: cfg.TimeRange, mapping: cfg.Mapping,
		key: data.APIKey, now: call.Time()}
	s.since = sinceOf(s.timeRange, s.now)
	if s.include, err = domains("include_domains", cfg.IncludeDomains); err != nil {
		return nil, nil, err
	}
	if s.exclude, err = domains("exclude_domains", cfg.ExcludeDomains); err != nil {
		return nil, nil, err
	}
	base := data.BaseURL
	if base == "" {
		base = provider.base
	}
	if base != "" {
		if s.base, err = url.Parse(strings.TrimRight(base, "/")); err != nil || s.base.Host == "" {
			return nil, nil, fault.Newf(fault.CredentialInvalid, "the base_url of credential %q is not an address", id)
		}
	}
	if provider.check != nil {
		err = provider.check(s)
	}
	if err == nil && s.language != "" && provider.takesLanguage != nil && !provider.takesLanguage(s) {
		err = fault.Newf(fault.Unsupported, `"language" cannot be applied: %s is not asked for one; leave it out and name the language in the query`, provider.name).With("path", "configurations.language")
	}
	return s, provider, err
}

func sinceOf(span string, now time.Time) time.Time {
	switch span {
	case "day":
		return now.AddDate(0, 0, -1)
	case "week":
		return now.AddDate(0, 0, -7)
	case "month":
		return now.AddDate(0, -1, 0)
	case "year":
		return now.AddDate(-1, 0, 0)
	}
	return time.Time{}
}

// domains reads names of hosts as people write them.
func domains(field string, list []string) ([]string, error) {
	var out []string
	for _, text := range list {
		name := strings.ToLower(strings.TrimSpace(text))
		if _, after, ok := strings.Cut(name, "://"); ok {
			name = after
		}
		name, _, _ = strings.Cut(name, "/")
		name = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "*."), "www."), ".")
		if name == "" || strings.ContainsAny(name, " \t\"'()") {
			return nil, fault.Newf(fault.InvalidConfig, "%q in %q is not a domain; write it like %q", text, field,
				"example.com").With("path", "configurations."+field)
		}
		out = append(out, name)
	}
	return out, nil
}

// inDomain says that a host is one of the domains or below it.
func inDomain(host string, list []string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return slices.ContainsFunc(list, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) })
}

// run asks page after page until there are enough results.
func (s *search) run(ctx context.Context, client *outbound.Client, p *searchProvider) (searchOutput, error) {
	out := searchOutput{Results: []searchResult{}, Provider: p.name}
	seen := map[string]bool{}
	for s.page = 0; s.page < searchPages && len(out.Results) < s.max; s.page++ {
		answer, err := s.ask(ctx, client, p)
		if err != nil {
			return out, err
		}
		found, total, err := p.read(s, answer)
		if err != nil {
			return out, err
		}
		out.Total = max(out.Total, total)
		fresh := 0
		for _, r := range found {
			if seen[r.URL] {
				continue
			}
			seen[r.URL] = true
			fresh++
			if s.wanted(&r) && len(out.Results) < s.max {
				out.Results = append(out.Results, r)
			}
		}
		// A page that repeats the one before is how some services say that there are no more.
		if fresh == 0 || !p.paged || len(found) < p.atLeast {
			break
		}
	}
	out.Total = max(out.Total, int64(len(out.Results)))
	return out, nil
}

// wanted applies the filters to a result, also those that the service was asked to apply: not all of them do.
func (s *search) wanted(r *searchResult) bool {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	if len(s.include) > 0 && !inDomain(u.Hostname(), s.include) || inDomain(u.Hostname(), s.exclude) {
		return false
	}
	return s.since.IsZero() || r.at.IsZero() || !r.at.Before(s.since)
}

func (s *search) ask(ctx context.Context, client *outbound.Client, p *searchProvider) (json.RawMessage, error) {
	r, err := p.ask(s)
	if err != nil {
		return nil, err
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Accept", "application/json")
	r.Redirects, r.Repeatable = 3, true // a search changes nothing, whatever its method
	response, err := client.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	body, err := response.ReadAll()
	if err != nil {
		return nil, err
	}
	if problem := response.Problem(s.now); problem != nil {
		if text := values.Readable(body, httpcall.MaxExcerpt); text != "" {
			problem.Fault = problem.Fault.With("body", text)
		}
		return nil, problem
	}
	if !json.Valid(body) {
		return nil, fault.Newf(fault.OutputInvalid, "host %q does not answer with JSON; it begins with %q", response.URL.Host, values.Readable(body, 60))
	}
	return body, nil
}

// address is a place at the service, with a query.
func (s *search) address(path string, query url.Values) *url.URL {
	u := *s.base
	u.Path = strings.TrimRight(u.Path, "/") + path
	u.RawQuery = query.Encode()
	return &u
}

// secret is the key in a header, for nobody but the service.
func (s *search) secret(header, value string) *outbound.Secret {
	if s.key == "" {
		return nil
	}
	return &outbound.Secret{Header: http.Header{header: {value}}}
}

// fetchPages adds the text of each page. One that cannot be had stays without.
func fetchPages(ctx context.Context, client *outbound.Client, call *node.Call, results []searchResult) {
	var group sync.WaitGroup
	turns := make(chan struct{}, searchFetchers)
	for i := range results {
		r := &results[i]
		group.Go(func() { // it ends with its call, which is bounded
			turns <- struct{}{}
			defer func() { <-turns }()
			text, err := fetchPage(ctx, client, r.URL)
			if err == nil {
				r.Content = &text
			} else if call.Log != nil {
				call.Log(node.Debug, "a page could not be fetched", map[string]any{"url": r.URL, "error": fault.From(err).Message})
			}
		})
	}
	group.Wait()
}

func fetchPage(ctx context.Context, client *outbound.Client, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	response, err := client.Do(ctx, outbound.Request{
		Method: http.MethodGet, URL: u, Header: http.Header{"Accept": {"text/html, text/plain;q=0.9, */*;q=0.1"}}, Redirects: 5,
		MaxResponse: maxSearchPage, Timeout: searchFetchTimeout, FirstByte: searchFetchTimeout,
	})
	if err != nil {
		return "", err
	}
	if problem := response.Problem(time.Now()); problem != nil {
		return "", errors.Join(problem, response.Body.Close())
	}
	text, _, ok, err := document.PageText(response.Header.Get("Content-Type"), response.Body, maxSearchContent)
	if err = errors.Join(err, response.Body.Close()); err == nil && !ok {
		err = fault.New(fault.Unsupported, "the page is not text")
	}
	return text, err
}
