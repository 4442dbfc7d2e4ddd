package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
)

// Pages reads a list page by page until it has as many items as are wanted, and returns where to go on; empty: there is no more. A cursor
// is empty for the first page, or one that Pages or page has returned. When the wanted items end inside of a page, the cursor says how many
// of it were read.
func Pages(limit int, cursor string, page func(cursor string) (items []json.RawMessage, next string, err error)) (list []json.RawMessage,
	next string, err error) {
	list = []json.RawMessage{}
	skip := 0
	if count, rest, ok := strings.Cut(cursor, readMark); ok {
		if skip, err = strconv.Atoi(count); err != nil || skip < 0 {
			return nil, "", fault.Newf(fault.InvalidInput, "%q is not a cursor; give next_cursor of an earlier run", cursor).With("path", "cursor")
		}
		cursor = rest
	}
	for {
		items, following, err := page(cursor)
		if err != nil {
			return nil, "", err
		}
		from := min(skip, len(items))
		if left := limit - len(list); len(items)-from > left {
			return append(list, items[from:from+left]...), strconv.Itoa(from+left) + readMark + cursor, nil
		}
		list = append(list, items[from:]...)
		if following == "" || len(list) >= limit {
			return list, following, nil
		}
		if following == cursor {
			return nil, "", fault.New(fault.RemoteError, "the service says that a page follows itself").Final()
		}
		cursor, skip = following, 0
	}
}

// readMark parts how many items of a page were read from the cursor of the page.
const readMark = "@"

// Items are the items of a list.
func Items(list gjson.Result) []json.RawMessage { return payload.Items([]byte(list.Raw)) }

// NextQuery is the query of the page that follows by the Link header, empty: there is none. It is a cursor that leads nowhere but to the
// service, since a caller who gives it back changes the query alone.
func NextQuery(header http.Header) string {
	link, err := url.Parse(outbound.NextLink(header))
	if err != nil {
		return ""
	}
	return link.RawQuery
}

// CursorQuery reads a cursor that is a query. First is that of the first page.
func CursorQuery(cursor string, first url.Values) (url.Values, error) {
	if cursor == "" {
		return first, nil
	}
	query, err := url.ParseQuery(cursor)
	if err != nil {
		return nil, fault.Newf(fault.InvalidInput, "%q is not a cursor; give next_cursor of an earlier run", cursor).With("path", "cursor")
	}
	return query, nil
}

// Limits are what the headers of an answer say of the limits of calls, null when they say nothing.
func (a Answer) Limits() json.RawMessage {
	told := map[string]json.RawMessage{}
	for name, suffixes := range map[string][]string{"limit": {"Limit", "Max"}, "remaining": {"Remaining"}, "reset": {"Reset"}} { // order does not matter: each is a field of its own
		for _, prefix := range []string{"X-Ratelimit-", "Ratelimit-", "X-Rate-Limit-Api-Token-"} {
			for _, suffix := range suffixes {
				if text := a.Header.Get(prefix + suffix); text != "" && told[name] == nil {
					told[name] = scalar(text)
				}
			}
		}
	}
	if len(told) == 0 {
		return json.RawMessage("null")
	}
	return values.Encode(told)
}

// scalar is a number where a text is one.
func scalar(text string) json.RawMessage {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return json.RawMessage(text)
	}
	return values.Encode(text)
}

// Raw is a call that a node writes itself.
type Raw struct {
	Method, Path string
	Query        node.Object
	Body         json.RawMessage
}

// Request makes a call that a node writes itself. Whatever the service answers is the answer.
func (a *API) Request(ctx context.Context, raw Raw) (Answer, error) {
	method := strings.ToUpper(raw.Method)
	if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, method) {
		return Answer{}, fault.Newf(fault.InvalidInput, "%q is not a method; write GET, HEAD, POST, PUT, PATCH or DELETE", raw.Method).
			With("path", "method")
	}
	path, query, _ := strings.Cut(raw.Path, "?")
	if !strings.HasPrefix(path, "/") && !strings.Contains(path, "://") {
		path = "/" + path
	}
	if strings.Contains(path, "://") || strings.HasPrefix(path, "//") {
		return Answer{}, fault.Newf(fault.InvalidInput, "path %q must be one below the address of %s, without a host", raw.Path, a.service.Name).
			With("path", "path")
	}
	if below, ok := strings.CutPrefix(path, a.service.Below+"/"); ok && a.service.Below != "" {
		path = "/" + below
	}
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return Answer{}, fault.Newf(fault.InvalidInput, "path %q has a query that cannot be read", raw.Path).With("path", "path")
	}
	err = raw.Query.Each(func(name string, value json.RawMessage) error {
		list := []json.RawMessage{value}
		if values.IsList(value) {
			list = values.Elements(value)
		}
		for _, one := range list {
			text, ok := values.Scalar(one)
			if !ok {
				return fault.Newf(fault.InvalidInput, "query: %q must be a text, a number, yes or no, or a list of them", name).With("path", "query")
			}
			parameters.Add(name, text)
		}
		return nil
	})
	if err != nil {
		return Answer{}, err
	}
	c := Call{Method: method, Path: path, Query: parameters, Wants: Anything}
	if !payload.IsNull(raw.Body) && method != http.MethodGet && method != http.MethodHead {
		c.Body = raw.Body
	}
	return a.Do(ctx, c)
}

// Listed reads a list whose cursors are queries, see [Pages]. Next finds that of the page after an answer; wanted, when it is set, leaves
// entries out.
func (a *API) Listed(ctx context.Context, c Call, limit int, cursor string, next func(query url.Values, answer Answer) string,
	wanted func(item gjson.Result) bool) (
	items []json.RawMessage, following string, last Answer, err error,
) {
	c.Wants = List
	items, following, err = Pages(limit, cursor, func(cursor string) (page []json.RawMessage, after string, err error) {
		one := c
		if one.Query, err = CursorQuery(cursor, c.Query); err != nil {
			return nil, "", err
		}
		if last, err = a.Do(ctx, one); err != nil {
			return nil, "", err
		}
		for _, item := range gjson.ParseBytes(last.Body).Array() {
			if wanted == nil || wanted(item) {
				page = append(page, json.RawMessage(item.Raw))
			}
		}
		return page, next(one.Query, last), nil
	})
	return items, following, last, err
}

// ClockSkew is how far the clock of a service may be behind that of this machine. What a node has made there is looked for among what
// is that much older than the node.
const ClockSkew = 5 * time.Minute

// Seek looks for an entry of a list, page by page; the answer has the entry alone. In a list with the newest first, entries that were
// made before a time end the search; with a zero time only the end of the list does. Next is as for [API.Listed].
func (a *API) Seek(ctx context.Context, c Call, since time.Time, next func(query url.Values, answer Answer) string,
	wanted func(item gjson.Result) bool) (Answer, bool, error) {
	c.Wants = List
	for {
		answer, err := a.Do(ctx, c)
		if err != nil {
			return Answer{}, false, err
		}
		over := false
		for _, item := range gjson.ParseBytes(answer.Body).Array() {
			if wanted(item) {
				return Answer{Header: answer.Header, Body: json.RawMessage(item.Raw)}, true, nil
			}
			made, err := time.Parse(time.RFC3339, item.Get("created_at").Str)
			over = over || err == nil && made.Before(since)
		}
		following := next(c.Query, answer)
		if following == "" || over {
			return Answer{}, false, nil
		}
		if c.Query, err = CursorQuery(following, nil); err != nil {
			return Answer{}, false, err
		}
	}
}

// Fields are what is sent as an object: those that are said.
type Fields map[string]any

// Text adds a text that is not empty.
func (f Fields) Text(name, value string) Fields {
	if value != "" {
		f[name] = value
	}
	return f
}

// Texts adds a list that is not empty.
func (f Fields) Texts(name string, list []string) Fields {
	if len(list) > 0 {
		f[name] = list
	}
	return f
}

// JSON adds a value that is not null.
func (f Fields) JSON(name string, value json.RawMessage) Fields {
	if !payload.IsNull(value) {
		f[name] = value
	}
	return f
}

// Text is a field that may be anything as a text: empty when it is not there.
func Text(name string, raw json.RawMessage) (string, error) {
	if payload.IsNull(raw) {
		return "", nil
	}
	text, ok := values.Scalar(raw)
	if !ok {
		return "", fault.Newf(fault.InvalidInput, "%s must be a text", name).With("path", name)
	}
	return text, nil
}
