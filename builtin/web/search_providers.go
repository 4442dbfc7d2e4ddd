package web

import (
	"encoding/json"
	"html"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/httpcall"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/text"
)

// searchProvider is one search service: how it is asked and how its answer is read. A new one is one line in
// searchProviders and a choice of the credential type.
type searchProvider struct {
	name string
	// base is where the service is, unless the credential says otherwise.
	base string
	// needs is the field without which a credential for the service is of no use; empty: there is none.
	needs string
	// paged services have more pages; one with fewer than atLeast results is the last.
	paged   bool
	atLeast int
	// takesLanguage tells whether the service can be asked for results of a language. Nil: it can.
	takesLanguage func(*search) bool
	// check refuses what the service cannot do at all. May be nil.
	check func(*search) error
	ask   func(*search) (outbound.Request, error)
	read  func(s *search, answer json.RawMessage) (found []searchResult, total int64, err error)
}

func searchProviders() []searchProvider {
	return []searchProvider{
		{name: "searxng", needs: "base_url", paged: true, atLeast: 1, ask: askSearxng, read: readFixed("results", "number_of_results", "title", "url", "content", "publishedDate", "score")},
		{name: "brave", base: "https://api.search.brave.com", needs: "api_key", paged: true, atLeast: 1, ask: askBrave, read: readFixed("web.results", "", "title", "url", "description", "page_age", "")},
		{name: "tavily", base: "https://api.tavily.com", needs: "api_key", takesLanguage: func(*search) bool { return false }, ask: askTavily, read: readFixed("results", "", "title", "url", "content", "published_date", "score")},
		{name: "bing", base: "https://api.bing.microsoft.com", needs: "api_key", paged: true, atLeast: 1, ask: askBing, read: readFixed("webPages.value", "webPages.totalEstimatedMatches", "name", "url", "snippet", "datePublished", "")},
		{name: "json", takesLanguage: func(s *search) bool { return strings.Contains(s.mapping.URL, "{language}") },
			check: checkMapping, ask: askMapped, read: readMapped},
	}
}

func askSearxng(s *search) (outbound.Request, error) {
	q := url.Values{"q": {s.query}, "format": {"json"}, "pageno": {strconv.Itoa(s.page + 1)}}
	addParam(q, "language", s.language)
	if s.timeRange != "any" {
		q.Set("time_range", s.timeRange)
	}
	return outbound.Request{Method: http.MethodGet, URL: s.address("/search", q), Secret: s.secret("Authorization", "Bearer "+s.key)}, nil
}

func askBrave(s *search) (outbound.Request, error) {
	q := url.Values{"q": {s.sites()}, "count": {strconv.Itoa(min(20, max(s.max, 1)))}, "offset": {strconv.Itoa(s.page)}}
	addParam(q, "search_lang", mainLanguage(s.language))
	addParam(q, "freshness", map[string]string{"day": "pd", "week": "pw", "month": "pm", "year": "py"}[s.timeRange])
	return outbound.Request{Method: http.MethodGet, URL: s.address("/res/v1/web/search", q),
		Secret: s.secret("X-Subscription-Token", s.key)}, nil
}

// askTavily posts; the service has no pages and gives up to twenty results. It applies the filters of domains itself.
func askTavily(s *search) (outbound.Request, error) {
	body := map[string]any{"query": s.query, "max_results": min(20, s.max)}
	if s.timeRange != "any" {
		body["time_range"] = s.timeRange
	}
	if len(s.include) > 0 {
		body["include_domains"] = s.include
	}
	if len(s.exclude) > 0 {
		body["exclude_domains"] = s.exclude
	}
	return outbound.Request{
		Method: http.MethodPost, URL: s.address("/search", nil), Header: http.Header{"Content-Type": {"application/json"}},
		Body: values.Encode(body), Secret: s.secret("Authorization", "Bearer "+s.key),
	}, nil
}

func askBing(s *search) (outbound.Request, error) {
	q := url.Values{"q": {s.sites()}, "count": {strconv.Itoa(s.max)}, "offset": {strconv.Itoa(s.page * s.max)},
		"responseFilter": {"Webpages"}}
	addParam(q, "setLang", s.language)
	switch s.timeRange {
	case "day", "week", "month":
		q.Set("freshness", strings.ToUpper(s.timeRange[:1])+s.timeRange[1:])
	case "year":
		q.Set("freshness", s.since.UTC().Format(time.DateOnly)+".."+s.now.UTC().Format(time.DateOnly))
	}
	return outbound.Request{Method: http.MethodGet, URL: s.address("/v7.0/search", q),
		Secret: s.secret("Ocp-Apim-Subscription-Key", s.key)}, nil
}

// sites is the query with the domains in the words that these services know. The filters here are applied all the same;
// without the words most of what comes back would be thrown away.
func (s *search) sites() string {
	query := s.query
	if len(s.include) > 0 {
		query += " (site:" + strings.Join(s.include, " OR site:") + ")"
	}
	for _, d := range s.exclude {
		query += " -site:" + d
	}
	return query
}

func addParam(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

// mainLanguage is the first part of a tag such as en-US.
func mainLanguage(tag string) string {
	short, _, _ := strings.Cut(tag, "-")
	return strings.ToLower(short)
}

// readFixed reads an answer whose results and fields are always in the same place.
func readFixed(results, total, title, address, snippet, published, score string) func(*search,
	json.RawMessage) ([]searchResult, int64, error) {
	return func(_ *search, answer json.RawMessage) ([]searchResult, int64, error) {
		root := gjson.ParseBytes(answer)
		var found []searchResult
		at := func(r gjson.Result, name string) gjson.Result {
			if name == "" {
				return gjson.Result{}
			}
			return r.Get(name)
		}
		for _, r := range root.Get(results).Array() {
			found = append(found, resultOf(at(r, title), at(r, address), at(r, snippet), at(r, published), at(r, score)))
		}
		return found, countOf(at(root, total)), nil
	}
}

func countOf(v gjson.Result) int64 {
	if v.Type != gjson.Number || v.Num < 0 || v.Num > 1<<53 {
		return 0
	}
	return int64(v.Num)
}

// unmarked is a text without the marks that services put around what they have found. Other angle brackets are the text's own.
func unmarked(said string, limit int) string {
	said = strings.NewReplacer("<strong>", "", "</strong>", "", "<b>", "", "</b>", "", "<em>", "", "</em>", "").Replace(said)
	return strings.TrimSpace(text.Head(strings.ToValidUTF8(html.UnescapeString(said), "\uFFFD"), limit))
}

// resultOf reads one result.
func resultOf(title, address, snippet, published, score gjson.Result) searchResult {
	r := searchResult{Title: unmarked(title.String(), 1<<10), URL: strings.TrimSpace(address.String()),
		Snippet: unmarked(snippet.String(), 8<<10)}
	if text := strings.TrimSpace(published.String()); text != "" && published.Type != gjson.Null {
		r.Published = &text
		if at, ok := publishedAt(published, text); ok {
			told := at.UTC().Format(time.RFC3339)
			r.at, r.Published = at, &told
		}
	}
	if score.Type == gjson.Number && !math.IsInf(score.Num, 0) {
		r.Score = &score.Num
	}
	return r
}

func publishedAt(v gjson.Result, text string) (time.Time, bool) {
	if v.Type == gjson.Number && v.Num > 1e8 && v.Num < 1e14 {
		if v.Num > 1e11 {
			return time.UnixMilli(int64(v.Num)), true
		}
		return time.Unix(int64(v.Num), 0), true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.0000000", time.DateTime, time.DateOnly, time.RFC1123, time.RFC1123Z, "January 2, 2006", "Jan 2, 2006"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// searchMapping says how a service that nobody has written for is asked and read.
type searchMapping struct {
	// URL has {query}, {max_results}, {page}, {offset}, {language} and {time_range} in it; relative to the credential's base_url.
	URL string `json:"url" required:"true" doc:"The address, with {query} and other names in braces." zh:"地址，可含 {query} 等名称。"`
	// ResultsPath is where the list is; empty: found as in any input. TotalPath is where their number is.
	ResultsPath string `json:"results_path" doc:"Where the list of results is." zh:"结果列表所在的路径。"`
	TotalPath   string `json:"total_path" doc:"Where their number is." zh:"结果总数所在的路径。"`
	// Fields are the paths of title, url, snippet, published and score in a result; by default their own names.
	Fields node.Object `json:"fields" doc:"Where a result has title, url, snippet, published and score." zh:"结果的路径：结果中 title、url、snippet、published、score 的路径。"`
	// KeyHeader or KeyParam is where the key goes; by default it is a bearer token.
	KeyHeader string `json:"key_header" doc:"The header that the key is sent in." zh:"发送密钥的请求头。"`
	KeyParam  string `json:"key_param" doc:"The parameter that the key is sent in." zh:"发送密钥的参数。"`
}

func invalidMapping(field, format string, args ...any) error {
	return fault.Newf(fault.InvalidConfig, "\"mapping."+field+"\" "+format, args...).With("path", "configurations.mapping."+field)
}

// checkMapping refuses filters that could not be applied, and addresses that would be given a key that is not theirs.
func checkMapping(s *search) error {
	if s.mapping == nil {
		return fault.New(fault.InvalidConfig, `"mapping" is required when the provider is "json"`).With("path", "configurations.mapping")
	}
	fields, err := s.mapping.fields()
	if err != nil {
		return err
	}
	if s.timeRange != "any" && !strings.Contains(s.mapping.URL, "{time_range}") &&
		!gjson.ParseBytes(s.mapping.Fields).Get("published").Exists() {
		return fault.New(fault.Unsupported, `"time_range" cannot be applied: the mapping neither sends {time_range} nor says which field is "published"`).With("path", "configurations.time_range")
	}
	for _, text := range append(fields, s.mapping.ResultsPath, s.mapping.TotalPath) {
		if _, err := values.ParsePath(text); text != "" && err != nil {
			return err
		}
	}
	u, err := s.mapped()
	switch {
	case err != nil:
		return err
	case s.key != "" && s.base == nil:
		return fault.New(fault.CredentialInvalid, "the credential has a key and no base_url, so nobody knows whom the key is for; add base_url to it")
	case s.key != "" && (u.Scheme != s.base.Scheme || u.Host != s.base.Host):
		return invalidMapping("url", "is on host %q and the credential is for %q; its key is not sent elsewhere", u.Host, s.base.Host)
	}
	return nil
}

// fields are the paths of title, url, snippet, published and score.
func (m *searchMapping) fields() ([]string, error) {
	names := []string{"title", "url", "snippet", "published", "score"}
	paths := append([]string{}, names...)
	err := m.Fields.Each(func(key string, value json.RawMessage) error {
		for i, name := range names {
			if name == key {
				text, ok := values.Scalar(value)
				if !ok {
					return invalidMapping("fields."+key, "must be a path")
				}
				paths[i] = text
				return nil
			}
		}
		return invalidMapping("fields", "has %q, which is none of %s", key, strings.Join(names, ", "))
	})
	return paths, err
}

// mapped is the address with the values filled in, each escaped.
func (s *search) mapped() (*url.URL, error) {
	timeRange := s.timeRange
	if timeRange == "any" {
		timeRange = ""
	}
	text := s.mapping.URL
	for name, value := range map[string]string{
		"query": s.query, "max_results": strconv.Itoa(s.max), "page": strconv.Itoa(s.page + 1), "offset": strconv.Itoa(s.page * s.max),
		"language": s.language, "time_range": timeRange,
	} { // order does not matter: no value can hold a brace once it is escaped
		text = strings.ReplaceAll(text, "{"+name+"}", httpcall.EscapeAll(value))
	}
	before, _, _ := strings.Cut(text, "?")
	if s.base != nil && !strings.Contains(before, "://") {
		text = s.base.String() + "/" + strings.TrimLeft(text, "/")
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, invalidMapping("url", "must be an address such as https://host/search?q={query}, or one relative to the credential's base_url")
	}
	return u, nil
}

func askMapped(s *search) (outbound.Request, error) {
	u, err := s.mapped()
	if err != nil {
		return outbound.Request{}, err
	}
	r := outbound.Request{Method: http.MethodGet, URL: u}
	switch {
	case s.key == "":
	case s.mapping.KeyParam != "":
		r.Secret = &outbound.Secret{Query: url.Values{s.mapping.KeyParam: {s.key}}}
	case s.mapping.KeyHeader != "":
		r.Secret = s.secret(http.CanonicalHeaderKey(s.mapping.KeyHeader), s.key)
	default:
		r.Secret = s.secret("Authorization", "Bearer "+s.key)
	}
	return r, nil
}

func readMapped(s *search, answer json.RawMessage) ([]searchResult, int64, error) {
	items, err := s.mapping.items(answer)
	if err != nil {
		return nil, 0, err
	}
	paths, err := s.mapping.fields()
	if err != nil {
		return nil, 0, err
	}
	var found []searchResult
	for _, item := range items {
		var v [5]gjson.Result
		for i, text := range paths {
			if v[i], err = valueAt(item, text); err != nil {
				return nil, 0, err
			}
		}
		r := resultOf(v[0], v[1], v[2], v[3], v[4])
		// The service was not asked for a time, so what does not say when it was published may be of any.
		if r.at.IsZero() && !s.since.IsZero() && !strings.Contains(s.mapping.URL, "{time_range}") {
			continue
		}
		found = append(found, r)
	}
	var total gjson.Result
	if s.mapping.TotalPath != "" {
		if total, err = valueAt(answer, s.mapping.TotalPath); err != nil {
			return nil, 0, err
		}
	}
	return found, countOf(total), nil
}

func (m *searchMapping) items(answer json.RawMessage) ([]json.RawMessage, error) {
	if m.ResultsPath == "" && values.IsList(answer) {
		return values.Elements(answer), nil
	}
	if m.ResultsPath == "" {
		list, err := values.ListInput(answer, "")
		if err != nil {
			return nil, fault.Newf(fault.OutputInvalid, "the results cannot be found in the answer; set mapping.results_path: %s", fault.From(err).Message)
		}
		return list.Items, nil
	}
	at, err := values.ParsePath(m.ResultsPath)
	if err != nil {
		return nil, err
	}
	raw, ok := at.Walk(answer)
	switch {
	case !ok || values.IsNull(raw):
		return nil, nil
	case !values.IsList(raw):
		return nil, fault.Newf(fault.OutputInvalid, "mapping.results_path %q is not a list in the answer but %s", m.ResultsPath, values.Short(raw))
	}
	return values.Elements(raw), nil
}

func valueAt(raw json.RawMessage, text string) (gjson.Result, error) {
	at, err := values.ParsePath(text)
	if err != nil {
		return gjson.Result{}, err
	}
	found, ok := at.Walk(raw)
	if !ok {
		return gjson.Result{}, nil
	}
	return gjson.ParseBytes(found), nil
}
