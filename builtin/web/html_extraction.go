package web

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/hypertext"
	"tandem/node"
	"tandem/node/slot"
	"tandem/payload"
	"tandem/workflow"
)

type extractConfig struct {
	HTML   node.Template  `json:"html" doc:"The page; without it the field html, body, content or data of the input." zh:"页面：省略时取输入的 html、body、content 或 data。"`
	Fields []extractField `json:"fields" required:"true" doc:"What is taken from the page." zh:"提取字段：从页面提取的内容。"`
}

type extractField struct {
	Name      string `json:"name" required:"true" doc:"The name of the field in the result." zh:"字段名：结果中的字段名称。"`
	Selector  string `json:"selector" required:"true" doc:"A CSS selector that names the elements." zh:"选择器：指定元素的 CSS 选择器。"`
	Value     string `json:"value" enum:"text|html|inner_html|attribute" doc:"What is taken of an element: its text as readers see it, its HTML, the HTML inside of it, or an attribute." zh:"取值：元素的可读文本、HTML、内部 HTML 或属性。"`
	Attribute string `json:"attribute" doc:"The name of the attribute." zh:"属性名：属性的名称。"`
	All       bool   `json:"all" doc:"Whether all elements are taken, as a list, instead of the first." zh:"全部：是否取全部元素（列表）而不是第一个。"`
}

func (f *extractField) Defaults() { f.Value = "text" }

// maxExtracted is how many elements a field takes at most.
const maxExtracted = 10_000

// htmlExtraction takes parts of a page by CSS selectors.
func htmlExtraction() node.Kind {
	return node.Define(
		node.About{
			Name: "ACTION.HTML_EXTRACTION", Title: node.Says("HTML extraction", "HTML 提取"),
			Description: node.Says("Takes texts, links and other parts of a page by CSS selectors.", "用 CSS 选择器提取页面中的文本、链接等内容。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The fields by their names.", "按名称给出的字段。"), Fields: []node.Value{
				node.Meaning("*", "What a field has taken: a text, null if the page has no such element, or a list with all.", "字段提取的内容：文本；没有该元素时为 null；设置 all 时为列表。"),
			}}},
			Inputs: []node.Value{node.Meaning("html", "The page, if the configuration does not have it. It may be called body, content or data, too.", "未配置时的页面；也可命名为 body、content 或 data。")},
			Examples: []node.Example{{
				Shows:  node.Says("Takes the title and the links of a page.", "提取页面的标题和链接。"),
				Config: `{"fields": [{"name": "title", "selector": "h1"}, {"name": "links", "selector": "a[href]", "value": "attribute", "attribute": "href", "all": true}]}`,
				Input:  `{"html": "<h1>News <b>today</b></h1><a href='/a'>A</a><a href='/b'>B</a>"}`,
				Output: `{"result": {"title": "News today", "links": ["/a", "/b"]}}`,
			}},
		},
		func(ctx context.Context, _ *node.Call, cfg extractConfig, in json.RawMessage) (json.RawMessage, error) {
			page, err := pageToRead(cfg, in)
			if err != nil {
				return nil, err
			}
			d, err := hypertext.Parse([]byte(page))
			if err != nil {
				return nil, fault.New(fault.TooLarge, err.Error()).With("path", "html")
			}
			out := make([]values.Member, 0, len(cfg.Fields))
			for i, f := range cfg.Fields {
				value, err := f.extractFrom(ctx, d)
				if err != nil {
					return nil, fault.From(err).With("path", "configurations.fields"+fieldPath(i, "selector"))
				}
				out = values.Overlay(out, values.Field(f.Name, value))
			}
			return values.Object(out), nil
		}, planExtraction)
}

// pageToRead is the page of a node: its own, or that of its input.
func pageToRead(cfg extractConfig, in json.RawMessage) (string, error) {
	if cfg.HTML != "" {
		return string(cfg.HTML), nil
	}
	given := gjson.ParseBytes(in)
	for _, name := range []string{"html", "body", "content", "data"} {
		if text := given.Get(name); text.Type == gjson.String {
			return text.Str, nil
		}
	}
	return "", slot.Missing([]string{"html"}, `"html" is required; set it in the input or the configurations`).With("path", "html")
}

// extractFrom is what a field takes of a page.
func (f extractField) extractFrom(ctx context.Context, d *hypertext.Document) (any, error) {
	s, err := hypertext.ParseSelector(f.Selector)
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "the selector %q of the field %q cannot be used: %s", f.Selector, f.Name, err)
	}
	most := 1
	if f.All {
		most = maxExtracted
	}
	found, err := d.Find(s, most, ctx.Err)
	if err != nil {
		return nil, err
	}
	list := make([]any, 0, len(found))
	for _, e := range found {
		v, err := f.readElement(e)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	switch {
	case f.All:
		return list, nil
	case len(list) == 0:
		return nil, nil
	}
	return list[0], nil
}

// readElement is what is wanted of one element. An attribute that it does not have is null.
func (f extractField) readElement(e hypertext.Element) (any, error) {
	switch f.Value {
	case "html":
		return e.Outer()
	case "inner_html":
		return e.Inner()
	case "attribute":
		if v, ok := e.Attribute(f.Attribute); ok {
			return v, nil
		}
		return nil, nil
	}
	return e.Text(maxSearchPage)
}

func planExtraction(p *node.Planning, _ *extractConfig) {
	for i, item := range p.Items("fields") {
		selector := item.Get("selector")
		if selector.Str != "" && !node.Dynamic(selector) {
			if _, err := hypertext.ParseSelector(selector.Str); err != nil {
				p.Invalid(p.At("fields")+fieldPath(i, "selector"), "%q is not a CSS selector that can be used: %s", selector.Str,
					err.Error())
			}
		}
		if item.Get("value").Str == "attribute" && item.Get("attribute").Str == "" {
			p.Invalid(p.At("fields")+fieldPath(i, "attribute"), "name the attribute that is taken")
		}
		if item.Get("value").Str != "attribute" && item.Get("attribute").Str != "" {
			p.Warn(workflow.ProblemConfig, p.At("fields")+fieldPath(i, "attribute"), "attribute does nothing here: set value to attribute, or remove it")
		}
	}
}

// fieldPath is the place of something that one of the fields says, inside of the list of fields.
func fieldPath(i int, name string) string { return payload.JoinIndex("", i) + "." + name }
