package data

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/sandbox"
	"tandem/workflow"
)

type jinjaConfig struct {
	Template    node.Source `json:"template" required:"true" doc:"The template, in the language of Jinja2: {{ }} for values, {% %} for loops and conditions." zh:"模板：Jinja2 语言；{{ }} 输出值，{% %} 用于循环和条件。"`
	Variables   node.Object `json:"variables" doc:"Variables of the template, beside the fields of the input. These win." zh:"变量：输入字段之外的模板变量，优先于输入字段。"`
	Strip       bool        `json:"strip" doc:"Whether white space around the text is taken away." zh:"去除空白：是否去除文本首尾空白。"`
	TimeLimitMS int64       `json:"time_limit_ms" range:"10..120000" doc:"How long it may take, in milliseconds." zh:"最长运行时间（毫秒）。"`
}

func (c *jinjaConfig) Defaults() { c.TimeLimitMS = 10_000 }

type jinjaOutput struct {
	Text string `json:"text" doc:"The filled-in template." zh:"填充后的文本。"`
}

// jinjaTemplate fills in templates of Jinja2.
func jinjaTemplate() node.Kind {
	return node.Define(
		node.About{
			Name: "ACTION.JINJA_TEMPLATE", Title: node.Says("Jinja2 template", "Jinja2 模板"),
			Description: node.Says(
				"Fills in a Jinja2 template, with loops, conditions and filters. It runs in the sandbox, cannot load other templates, and walks through the fields of objects in alphabetical order.",
				"填充 Jinja2 模板，支持循环、条件和过滤器。在沙箱中运行，不能加载其他模板；遍历对象字段时按字母顺序。"),
			Effect: workflow.Pure,
			Keys:   []node.Key{{Name: "result", Meaning: node.Says("The text.", "文本。")}},
			Inputs: []node.Value{node.Meaning("*", "The variables of the template.", "模板的变量。")},
			Examples: []node.Example{{
				Shows:  node.Says("Lists the lines of an order.", "列出订单的各行。"),
				Config: `{"template": "Dear {{ name|title }},\n{% for l in lines %}{{ loop.index }}. {{ l.what }}: {{ '%.2f'|format(l.price) }}\n{% endfor %}", "strip": true}`,
				Input:  `{"name": "ann", "lines": [{"what": "Tea", "price": 2.5}, {"what": "Cup", "price": 4}]}`,
				Output: `{"result": {"text": "Dear Ann,\n1. Tea: 2.50\n2. Cup: 4.00"}}`,
			}},
		},
		func(ctx context.Context, call *node.Call, cfg jinjaConfig, in json.RawMessage) (jinjaOutput, error) {
			fields := values.Members(objectOnly(in))
			err := cfg.Variables.Each(func(name string, value json.RawMessage) error {
				fields = values.Overlay(fields, values.Member{Key: name, Value: value})
				return nil
			})
			if err != nil {
				return jinjaOutput{}, err
			}
			result, err := call.Code(ctx, node.Code{
				Language: string(sandbox.Jinja), Source: string(cfg.Template), Input: values.Object(fields),
				TimeLimit: time.Duration(cfg.TimeLimitMS) * time.Millisecond,
			})
			if err != nil {
				return jinjaOutput{}, err
			}
			text, ok := values.Decode(result.Value).(string)
			if !ok {
				return jinjaOutput{}, fault.New(fault.Internal, "a template has given something that is not a text")
			}
			if cfg.Strip {
				text = strings.TrimSpace(text)
			}
			return jinjaOutput{text}, nil
		}, func(p *node.Planning, c *jinjaConfig) {
			if err := sandbox.CheckJinja(string(c.Template)); err != nil {
				p.Invalid(p.At("template"), "the template cannot be read: %s", err.Error())
			}
		})
}
