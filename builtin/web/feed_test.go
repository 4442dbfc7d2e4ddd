package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/node"
)

const (
	rssFeed = `<?xml version="1.0" encoding="ISO-8859-1"?><rss version="2.0"><channel><title>Caf` + "\xe9" + `</title><link>https://e.example/</link><description>d</description>
		<item><title>A</title><link>https://e.example/a</link><pubDate>Wed, 02 Jan 2030 00:00:00 GMT</pubDate><category>x</category><enclosure url="https://e.example/a.mp3" type="audio/mpeg" length="1"/></item>
		<item><title>B</title><link>https://e.example/b</link><guid isPermaLink="false">id-b</guid><pubDate>Tue, 01 Jan 2030 00:00:00 GMT</pubDate></item>
		<item><title>C</title><link>https://e.example/c</link></item></channel></rss>`
	atomFeed = `<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom</title><link href="https://e.example/"/><entry><id>urn:1</id><title>One</title><link href="https://e.example/1"/>
		<updated>2030-01-02T03:04:05+01:00</updated><author><name>Ann</name></author><content type="html">&lt;p&gt;Hello&lt;/p&gt;</content></entry></feed>`
	jsonFeed = `{"version":"https://jsonfeed.org/version/1.1","title":"JSON","home_page_url":"https://e.example/","items":[{"id":"1","url":"https://e.example/1","title":"One","content_text":"t"}]}`
)

func TestFeed(t *testing.T) {
	t.Parallel()
	served := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		config  string
		want    map[string]string
		code    fault.Code
		after   time.Duration
	}{
		"RSS": {served(rssFeed), `{"url": "$URL/"}`, map[string]string{
			"title": "Café", "count": "3", "truncated": "false", "items.0.id": "https://e.example/a", "items.1.id": "id-b", "items.0.published": "2030-01-02T00:00:00Z",
			"items.2.published": "", "items.0.categories.0": "x", "items.0.enclosures.0": "https://e.example/a.mp3",
		}, "", 0},
		"Most":  {served(rssFeed), `{"url": "$URL/", "max_items": 2}`, map[string]string{"count": "2", "truncated": "true"}, "", 0},
		"Since": {served(rssFeed), `{"url": "$URL/", "since": "2030-01-01T12:00:00Z"}`, map[string]string{"count": "2", "items.0.title": "A", "items.1.title": "C"}, "", 0},
		"Atom": {served(atomFeed), `{"url": "$URL/"}`, map[string]string{
			"title": "Atom", "items.0.id": "urn:1", "items.0.author": "Ann", "items.0.content": "Hello", "items.0.updated": "2030-01-02T02:04:05Z",
		}, "", 0},
		"JSON":       {served(jsonFeed), `{"url": "$URL/"}`, map[string]string{"title": "JSON", "url": "https://e.example/", "items.0.title": "One"}, "", 0},
		"NotAFeed":   {served(`<html><body>hello`), `{"url": "$URL/"}`, nil, fault.OutputInvalid, 0},
		"TooLarge":   {served(strings.Repeat("x", 10<<20+1)), `{"url": "$URL/"}`, nil, fault.TooLarge, 0},
		"NotFound":   {http.NotFound, `{"url": "$URL/"}`, nil, fault.NotFound, 0},
		"Slow":       {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "7"); w.WriteHeader(429) }, `{"url": "$URL/"}`, nil, fault.RateLimited, 7 * time.Second},
		"NoAddress":  {served(""), `{"url": "nowhere"}`, nil, fault.InvalidConfig, 0},
		"WrongSince": {served(""), `{"url": "$URL/", "since": "yesterday"}`, nil, fault.InvalidConfig, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newServiceRig(t, "ACTION.RSS_READ", nil, c.handler)
			out, err := r.kind.Run(t.Context(), r.newCall(c.config, `{}`))
			if fault.CodeOf(err) != c.code {
				t.Fatalf("%v, want code %q", err, c.code)
			}
			if later, ok := err.(*node.Failure); c.after > 0 && (!ok || later.RetryAfter != c.after) {
				t.Errorf("it is to be asked again after %+v", later)
			}
			if err != nil {
				return
			}
			result := gjson.ParseBytes(out.(node.Done)["result"])
			for path, want := range c.want {
				if got := result.Get(path).String(); got != want {
					t.Errorf("%s is %q, want %q", path, got, want)
				}
			}
		})
	}
}
