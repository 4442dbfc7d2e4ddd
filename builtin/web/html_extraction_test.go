package web_test

import (
	"strings"
	"testing"

	"tandem/fault"
	"tandem/node/nodetest"
)

func TestHTMLExtraction(t *testing.T) {
	t.Parallel()
	const page = `{"html": "<h1>A &amp; <i>b</i></h1><ul><li class=x>1</li><li>2<script>no()</script></li></ul><a href=/l>go</a><a>none</a>"}`
	fields := func(list string) string { return `{"fields": [` + list + `]}` }
	kinds().Check(t, "ACTION.HTML_EXTRACTION", []nodetest.Case{
		{Name: "Text", Config: fields(`{"name": "t", "selector": "h1"}`), Input: page, Exactly: `{"t": "A & b"}`},
		{Name: "ScriptsSayNothing", Config: fields(`{"name": "t", "selector": "li", "all": true}`), Input: page, Exactly: `{"t": ["1", "2"]}`},
		{Name: "HTML", Config: fields(`{"name": "o", "selector": "h1", "value": "html"}, {"name": "i", "selector": "h1", "value": "inner_html"}`), Input: page,
			Exactly: `{"o": "<h1>A &amp; <i>b</i></h1>", "i": "A &amp; <i>b</i>"}`},
		{Name: "Attribute", Config: fields(`{"name": "a", "selector": "a", "value": "attribute", "attribute": "HREF", "all": true}`), Input: page, Exactly: `{"a": ["/l", null]}`},
		{Name: "NotThere", Config: fields(`{"name": "a", "selector": "h2"}, {"name": "b", "selector": "h2", "all": true}`), Input: page, Exactly: `{"a": null, "b": []}`},
		{Name: "Selectors", Config: fields(`{"name": "a", "selector": "ul > li.x, li:not(.x)", "all": true}`), Input: page, Exactly: `{"a": ["1", "2"]}`},
		{Name: "Configured", Config: `{"html": "<p>c</p>", "fields": [{"name": "p", "selector": "p"}]}`, Input: page, Exactly: `{"p": "c"}`},
		{Name: "BodyOfAResponse", Config: fields(`{"name": "p", "selector": "p"}`), Input: `{"body": "<p>b"}`, Exactly: `{"p": "b"}`},
		{Name: "NoPage", Config: fields(`{"name": "p", "selector": "p"}`), Input: `{"x": 1}`, Code: fault.ParameterMissing, Part: "html"},
		{Name: "NotASelector", Config: fields(`{"name": "p", "selector": "p["}`), Input: page, Code: fault.InvalidConfig, Part: `"p["`},
		{Name: "TooCostly", Config: fields(`{"name": "p", "selector": "a ~ b ~ c ~ d"}`), Input: page, Code: fault.InvalidConfig, Part: "more than 2"},
		{Name: "TooManyElements", Config: fields(`{"name": "p", "selector": "p"}`), Input: `{"html": "` + strings.Repeat("<p>", 50_001) + `"}`, Code: fault.TooLarge, Part: "50000"},
	})
}
