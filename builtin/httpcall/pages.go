package httpcall

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/outbound"
)

// Pages says how a list that comes in pages is read.
type Pages struct {
	Mode      string `json:"mode" required:"true" enum:"link|cursor|page|offset" doc:"How the next page is found." zh:"如何找到下一页。"`
	ItemsPath string `json:"items_path" doc:"Where a page has its items." zh:"每页元素所在的路径。"`
	MaxPages  int64  `json:"max_pages" range:"1.." doc:"The most pages that are fetched." zh:"最多获取的页数。"`
	// NextPath is where a page of mode link has the address of the next, if it is not in the Link header.
	NextPath    string `json:"next_path" doc:"Where a page has the address of the next, for link, if it is not in a header." zh:"下一页的路径：link 模式下一页地址所在的路径。"`
	CursorPath  string `json:"cursor_path" doc:"Where a page has the cursor of the next." zh:"下一页游标所在的路径。"`
	CursorParam string `json:"cursor_param" doc:"The parameter that the cursor is sent in." zh:"发送游标的参数。"`
	PageParam   string `json:"page_param" doc:"The parameter that the number of the page is sent in." zh:"发送页码的参数。"`
	StartPage   int64  `json:"start_page" range:"0.." doc:"The number of the first page." zh:"第一页的页码。"`
	OffsetParam string `json:"offset_param" doc:"The parameter that the offset is sent in." zh:"发送偏移量的参数。"`
	// LimitParam is sent with PageSize, if there is one. A page with fewer items is the last.
	LimitParam string `json:"limit_param" doc:"The parameter that page_size is sent in." zh:"页长参数：发送 page_size 的参数。"`
	PageSize   int64  `json:"page_size" range:"0.." doc:"How many items a page has; 0 leaves it to the service." zh:"每页元素数；0 由服务决定。"`
}

func (p *Pages) Defaults() {
	p.MaxPages, p.CursorParam, p.PageParam, p.StartPage, p.OffsetParam, p.LimitParam = 10, "cursor", "page", 1, "offset", "limit"
}

func (p *Pages) check(responseType string) error {
	invalid := func(name, text string) error {
		return fault.Newf(fault.InvalidConfig, "%q %s", name, text).With("path", "configurations."+name)
	}
	if responseType == "file" || responseType == "text" {
		return invalid("response_type", "must be auto or json when there is pagination: pages are joined as JSON")
	}
	if p.Mode == "cursor" && p.CursorPath == "" {
		return invalid("pagination.cursor_path", `is required when mode is "cursor"`)
	}
	for name, text := range map[string]string{"items_path": p.ItemsPath, "next_path": p.NextPath, "cursor_path": p.CursorPath} {
		if text == "" {
			continue
		}
		if _, err := values.ParsePath(text); err != nil {
			return invalid("pagination."+name, "cannot be read as a path")
		}
	}
	return nil
}

// pages reads page after page. The output is that of the last one, with the items of all of them as its JSON.
func (x *Call) pages(ctx context.Context) (Output, error) {
	p := x.Config.Pagination
	if err := p.check(x.Config.ResponseType); err != nil {
		return Output{}, err
	}
	x.Config.ResponseType = "json"
	target := p.first(x.Home)
	items, size := []json.RawMessage{}, 0
	var seen int64
	for page := int64(1); ; page++ {
		response, err := x.Ask(ctx, target)
		if err != nil {
			return Output{}, err
		}
		out, err := x.answer(ctx, response)
		if err != nil {
			return Output{}, err
		}
		if !out.Success { // only without fail_on_status: then any answer is a result
			out.Pages, out.JSON, out.Truncated = int(page), merged(items, out.JSON), true
			return out, nil
		}
		x.Answered++
		found, err := p.items(out.JSON)
		if err != nil {
			return Output{}, err
		}
		for _, item := range found {
			size += len(item) + 1
		}
		if size > maxPages {
			return Output{}, &outbound.Error{Fault: fault.Newf(fault.TooLarge, "the pages have more than %d bytes; lower max_pages or ask for less", maxPages), Fate: outbound.Answered}
		}
		items = append(items, found...)
		seen += int64(len(found))
		next := p.next(target, response.URL, out.JSON, response.Header, int64(len(found)), seen, page)
		if next == nil || page == p.MaxPages {
			out.Pages, out.Truncated, out.JSON, out.Body = int(page), next != nil, values.Array(items), ""
			return out, nil
		}
		target = next
	}
}

// merged is what a refused page gives: its own answer if it is the first, else the items so far.
func merged(items []json.RawMessage, own json.RawMessage) json.RawMessage {
	if len(items) == 0 {
		return own
	}
	return values.Array(items)
}

// first is the address of the first page.
func (p *Pages) first(u *url.URL) *url.URL {
	if p.PageSize > 0 && p.LimitParam != "" {
		u = setQuery(u, p.LimitParam, strconv.FormatInt(p.PageSize, 10))
	}
	switch p.Mode {
	case "page":
		u = setQuery(u, p.PageParam, strconv.FormatInt(p.StartPage, 10))
	case "offset":
		u = setQuery(u, p.OffsetParam, "0")
	}
	return u
}

// items are those of one page.
func (p *Pages) items(document json.RawMessage) ([]json.RawMessage, error) {
	if p.ItemsPath == "" && values.IsList(document) {
		return values.Elements(document), nil
	}
	if p.ItemsPath == "" && !values.IsObject(document) {
		return nil, fault.New(fault.OutputInvalid, "the page is neither a list nor an object; set pagination.items_path").With("path", "json")
	}
	list, err := values.ListInput(document, p.ItemsPath)
	if err != nil {
		return nil, fault.Newf(fault.OutputInvalid, "the page has no list: %s; set pagination.items_path", fault.From(err).Message).With("path", "json")
	}
	return list.Items, nil
}

// next is the address of the page after this one, nil when this is the last. Current is what was asked for, answered what
// gave the answer, which redirects may have made another.
func (p *Pages) next(current, answered *url.URL, document json.RawMessage, header http.Header, found, seen, page int64) *url.URL {
	switch p.Mode {
	case "link":
		link := outbound.NextLink(header)
		if p.NextPath != "" {
			link, _ = textAt(p.NextPath, document)
		}
		if link == "" {
			return nil
		}
		next, err := answered.Parse(link)
		if err != nil || next.String() == current.String() {
			return nil
		}
		return next
	case "cursor":
		cursor, ok := textAt(p.CursorPath, document)
		if !ok || cursor == "" || cursor == "false" {
			return nil
		}
		next := setQuery(current, p.CursorParam, cursor)
		if next.RawQuery == current.RawQuery { // the same page again
			return nil
		}
		return next
	}
	if found == 0 || p.PageSize > 0 && found < p.PageSize {
		return nil
	}
	if p.Mode == "page" {
		return setQuery(current, p.PageParam, strconv.FormatInt(p.StartPage+page, 10))
	}
	return setQuery(current, p.OffsetParam, strconv.FormatInt(seen, 10))
}

func textAt(at string, document json.RawMessage) (string, bool) {
	steps, err := values.ParsePath(at)
	if err != nil {
		return "", false // it was checked before the first page
	}
	raw, ok := steps.At(document)
	if !ok {
		return "", false
	}
	return values.Scalar(raw)
}
