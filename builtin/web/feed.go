package web

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/mmcdole/gofeed"

	"tandem/builtin/early"
	"tandem/fault"
	"tandem/hypertext"
	"tandem/node"
	"tandem/outbound"
	"tandem/text"
	"tandem/workflow"
)

type feedConfig struct {
	URL      node.Template `json:"url" required:"true" doc:"The address of the feed: RSS, Atom or JSON Feed." zh:"订阅源地址：RSS、Atom 或 JSON Feed。"`
	MaxItems int           `json:"max_items" range:"1..1000" doc:"The most items." zh:"最多条目：最多返回的条目数。"`
	Since    node.Template `json:"since" doc:"A time: items that say that they are older are left out." zh:"起始时间：早于该时间的条目会被略去。"`
}

func (c *feedConfig) Defaults() { c.MaxItems = 50 }

type feedItem struct {
	ID         string   `json:"id" doc:"What tells the item from others: its own id, else its address." zh:"条目编号：自带编号，否则为其地址。"`
	Title      string   `json:"title" doc:"Its title." zh:"标题。"`
	URL        string   `json:"url" doc:"Its address." zh:"地址。"`
	Summary    string   `json:"summary" doc:"What the feed says about it, as text." zh:"摘要文本。"`
	Content    string   `json:"content" doc:"Its text, if the feed has it." zh:"正文（若有）。"`
	Author     string   `json:"author" doc:"Who has written it." zh:"作者。"`
	Published  *string  `json:"published" doc:"When it was published, if the feed says." zh:"发布时间（若有）。"`
	Updated    *string  `json:"updated" doc:"When it was last changed, if the feed says." zh:"更新时间（若有）。"`
	Categories []string `json:"categories" doc:"Its categories." zh:"分类。"`
	Enclosures []string `json:"enclosures" doc:"The addresses of files that belong to it." zh:"附件地址。"`
}

type feedOutput struct {
	Title       string     `json:"title" doc:"The title of the feed." zh:"订阅源标题。"`
	URL         string     `json:"url" doc:"The page that the feed is about." zh:"对应网页地址。"`
	Description string     `json:"description" doc:"What the feed says about itself." zh:"订阅源说明。"`
	Items       []feedItem `json:"items" doc:"The items, in the order of the feed." zh:"条目，按订阅源顺序。"`
	Count       int        `json:"count" doc:"How many items there are here." zh:"条目数。"`
	Truncated   bool       `json:"truncated" doc:"Whether the feed has more items than max_items." zh:"订阅源条目是否多于 max_items。"`
}

const (
	maxFeed     = 10 << 20
	maxFeedText = 64 << 10
)

// feedRead fetches a feed.
func feedRead(client *outbound.Client) node.Kind {
	return node.Define(
		node.About{
			Name: "ACTION.RSS_READ", Title: node.Says("Read a feed", "读取订阅源"),
			Description: node.Says("Reads an RSS, Atom or JSON feed.", "读取 RSS、Atom 或 JSON 订阅源。"),
			Effect:      workflow.Idempotent,
			Keys:        []node.Key{{Name: "result", Meaning: node.Says("The feed and its items.", "订阅源及其条目。")}},
			Inputs:      []node.Value{node.Meaning("*", "Whatever the placeholders of the configurations name.", "配置中占位符所引用的内容。")},
			Examples: []node.Example{{
				Shows:   node.Says("Reads the newest item of a feed.", "读取订阅源的最新条目。"),
				Config:  `{"url": "https://api.example.com/feed.xml", "max_items": 1}`,
				Replies: []string{`<rss version="2.0"><channel><title>News</title><link>https://example.com/</link><description>All of it</description><item><title>One</title><link>https://example.com/1</link><guid>1</guid><pubDate>Mon, 02 Jan 2023 15:04:05 +0100</pubDate><description>&lt;b&gt;First&lt;/b&gt; thing</description></item></channel></rss>`},
				Output:  `{"result": {"title": "News", "url": "https://example.com/", "description": "All of it", "items": [{"id": "1", "title": "One", "url": "https://example.com/1", "summary": "First thing", "content": "", "author": "", "published": "2023-01-02T14:04:05Z", "updated": null, "categories": [], "enclosures": []}], "count": 1, "truncated": false}}`,
			}},
		},
		func(ctx context.Context, call *node.Call, cfg feedConfig, _ struct{}) (feedOutput, error) {
			var since time.Time
			if cfg.Since != "" {
				at, err := feedSince(string(cfg.Since))
				if err != nil {
					return feedOutput{}, err
				}
				since = at
			}
			body, err := fetchFeed(ctx, client, string(cfg.URL), call.Time())
			if err != nil {
				if e, ok := errors.AsType[*outbound.Error](err); ok {
					return feedOutput{}, &node.Failure{Err: e.Fault, RetryAfter: e.RetryAfter}
				}
				return feedOutput{}, err
			}
			feed, err := gofeed.NewParser().Parse(bytes.NewReader(body))
			if err != nil {
				return feedOutput{}, fault.Newf(fault.OutputInvalid, "what %q answers with cannot be read as a feed (RSS, Atom or JSON Feed)", string(cfg.URL)).WithDetail(err.Error())
			}
			return readFeed(feed, cfg.MaxItems, since), nil
		}, func(p *node.Planning, _ *feedConfig) {
			early.Text(p, "since", func(at string) error {
				_, err := feedSince(at)
				return err
			})
			early.Text(p, "url", func(address string) error {
				_, err := feedAddress(address)
				return err
			})
		})
}

func feedSince(since string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return at, fault.Say(fault.InvalidConfig, text.Of("since is %q; write a time like 2030-01-31T09:00:00Z", since)).With("path", "configurations.since")
	}
	return at, nil
}

func feedAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, fault.Say(fault.InvalidConfig, text.Of("url is %q, which is not the address of a feed", address)).With("path",
			"configurations.url")
	}
	return u, nil
}

func fetchFeed(ctx context.Context, client *outbound.Client, address string, now time.Time) ([]byte, error) {
	u, err := feedAddress(address)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(ctx, outbound.Request{
		Method: http.MethodGet, URL: u, Redirects: 5, Repeatable: true, MaxResponse: maxFeed,
		Header: http.Header{"Accept": {"application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.1"}},
	})
	if err != nil {
		return nil, err
	}
	if problem := response.Problem(now); problem != nil {
		return nil, errors.Join(problem, response.Body.Close())
	}
	return response.ReadAll()
}

// readFeed is a feed in the shape of the result.
func readFeed(feed *gofeed.Feed, most int, since time.Time) feedOutput {
	out := feedOutput{Title: feed.Title, URL: feed.Link,
		Description: hypertext.OfPage([]byte(feed.Description), maxFeedText), Items: []feedItem{}}
	for _, item := range feed.Items {
		if newest := newer(item.PublishedParsed, item.UpdatedParsed); !newest.IsZero() && newest.Before(since) {
			continue
		}
		if len(out.Items) == most {
			out.Truncated = true
			break
		}
		read := feedItem{
			ID: item.GUID, Title: item.Title, URL: item.Link, Published: stamp(item.PublishedParsed), Updated: stamp(item.UpdatedParsed),
			Summary: hypertext.OfPage([]byte(item.Description), maxFeedText), Content: hypertext.OfPage([]byte(item.Content), maxFeedText),
			Categories: append([]string{}, item.Categories...), Enclosures: []string{},
		}
		if read.ID == "" {
			read.ID = item.Link
		}
		if len(item.Authors) > 0 && item.Authors[0] != nil {
			read.Author = item.Authors[0].Name
		}
		for _, e := range item.Enclosures {
			read.Enclosures = append(read.Enclosures, e.URL)
		}
		out.Items = append(out.Items, read)
	}
	out.Count = len(out.Items)
	return out
}

// newer is the later of two times, zero if there is none.
func newer(a, b *time.Time) (at time.Time) {
	for _, t := range []*time.Time{a, b} {
		if t != nil && t.After(at) {
			at = *t
		}
	}
	return at
}

// stamp is a time as kinds write times, nil when there is none.
func stamp(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := t.UTC().Format(time.RFC3339)
	return &text
}
