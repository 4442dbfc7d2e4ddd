package data

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

type formattingConfig struct {
	Format    string        `json:"format_type" required:"true" enum:"template|json|csv|xml|yaml|markdown|html|date|number|text|base64|url" doc:"The format." zh:"格式。"`
	Direction string        `json:"direction" enum:"format|parse" doc:"Whether values become text, or text becomes values." zh:"由值生成文本，还是由文本解析值。"`
	Template  any           `json:"template" takes:"text" with:"format_type=template" doc:"The text with placeholders, for template." zh:"模板：template 格式的带占位符文本。"`
	Options   formatOptions `json:"options" doc:"What the format can be told besides." zh:"该格式的其他选项。"`
}

func (c *formattingConfig) Defaults() { c.Direction = "format" }

// formatOptions are the options of all formats; each reads its own.
type formatOptions struct {
	// json
	Indent int64 `json:"indent" range:"0..16" doc:"How many spaces each level is indented by, in JSON." zh:"JSON 每级缩进的空格数。"`
	// csv
	Delimiter string   `json:"delimiter" doc:"What separates the columns of CSV." zh:"CSV 的列分隔符。"`
	Header    *bool    `json:"header" doc:"Whether CSV has a line of names." zh:"CSV 是否有标题行。"`
	Columns   []string `json:"columns" doc:"The columns of CSV and their order." zh:"CSV 的列及其顺序。"`
	// xml
	Root string `json:"root" doc:"The name of the outermost element of XML." zh:"XML 根元素名。"`
	Item string `json:"item" doc:"The name of the elements of a list in XML." zh:"XML 列表元素名。"`
	// date
	DateFormat string `json:"date_format" doc:"The layout of a date, such as YYYY-MM-DD." zh:"日期格式，如 YYYY-MM-DD。"`
	Timezone   string `json:"timezone" doc:"The time zone of a date." zh:"日期的时区。"`
	// number
	Decimals           *int64 `json:"decimals" range:"0..100" doc:"How many digits a number has behind the separator." zh:"数字的小数位数。"`
	ThousandsSeparator string `json:"thousands_separator" doc:"What separates the thousands of a number." zh:"千位分隔符。"`
	DecimalSeparator   string `json:"decimal_separator" doc:"What separates the fraction of a number." zh:"小数分隔符。"`
	// text
	Case string `json:"case" enum:"upper|lower" doc:"The letter case of a text." zh:"文本的大小写。"`
	Trim bool   `json:"trim" doc:"Whether blanks around a text are removed." zh:"是否去除首尾空白。"`
	// base64
	URLSafe bool `json:"url_safe" doc:"Whether base64 is written in the alphabet for addresses." zh:"URL 安全：base64 是否使用 URL 安全字符。"`
	// url
	Query bool `json:"query" doc:"Whether parse reads the query of an address, names with values." zh:"parse 时是否按查询参数（名称与值）解析。"`
}

// dataFormatting turns values into text and back.
func dataFormatting() node.Kind {
	return node.Define(
		node.About{
			Name: "ACTION.DATA_FORMATTING", Title: node.Says("Data formatting", "数据格式化"),
			Description: node.Says("Turns values into text and back.", "在值与文本之间相互转换。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The text, or the value that was read from it.", "生成的文本，或解析得到的值。"),
				Fields: []node.Value{
					node.Meaning("formatted", "The text, with direction format.", "direction 为 format 时的文本。"),
					node.Meaning("data", "The value, with direction parse.", "direction 为 parse 时的值。"),
				}}},
			Inputs: []node.Value{
				node.Meaning("data", "The value or the text; without it the whole input.", "值或文本；省略时为整个输入。"),
				node.Meaning("*", "Whatever else the input has.", "输入的其余内容。"),
			},
			Examples: []node.Example{
				{
					Shows:  node.Says("Writes a list as CSV.", "将列表写成 CSV。"),
					Config: `{"format_type": "csv"}`,
					Input:  `{"data": [{"id": 1, "total": 80}, {"id": 2, "total": 120}]}`,
					Output: `{"result": {"formatted": "id,total\n1,80\n2,120\n"}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg formattingConfig, in json.RawMessage) (json.RawMessage, error) {
			data := in
			if own, ok := (values.Path{"data"}).Walk(in); ok {
				data = own
			}
			if cfg.Direction == "parse" {
				v, err := cfg.parse(call, data)
				if err != nil {
					return nil, err
				}
				return values.Object([]values.Member{{Key: "data", Value: v}}), nil
			}
			text, err := cfg.format(call, data)
			if err != nil {
				return nil, err
			}
			return values.Object([]values.Member{values.Field("formatted", text)}), nil
		}, planFormatting)
}

func (c *formattingConfig) format(call *node.Call, data json.RawMessage) (string, error) {
	o := c.Options
	switch c.Format {
	case "template":
		if c.Template == nil || c.Template == "" {
			return "", fault.Newf(fault.InvalidConfig, "%q is required when format_type is %q", "template", "template")
		}
		return values.TextOf(c.Template), nil
	case "json":
		return formatJSON(data, o)
	case "csv":
		return formatCSV(data, o)
	case "xml":
		return formatXML(data, o), nil
	case "yaml":
		return formatYAML(data)
	case "markdown":
		return formatMarkdown(data), nil
	case "html":
		return formatHTML(data), nil
	case "date":
		return formatDate(call, values.Decode(data), o)
	case "number":
		return formatNumber(values.Decode(data), o)
	case "base64":
		if o.URLSafe {
			return base64.URLEncoding.EncodeToString([]byte(values.Text(data))), nil
		}
		return base64.StdEncoding.EncodeToString([]byte(values.Text(data))), nil
	case "url":
		return formatURL(data), nil
	}
	return o.text(values.Text(data)), nil
}

func (o formatOptions) text(text string) string {
	if o.Trim {
		text = strings.TrimSpace(text)
	}
	switch o.Case {
	case "upper":
		return strings.ToUpper(text)
	case "lower":
		return strings.ToLower(text)
	}
	return text
}

func (c *formattingConfig) parse(call *node.Call, data json.RawMessage) (json.RawMessage, error) {
	switch c.Format {
	case "template", "markdown", "html":
		return nil, fault.Newf(fault.Unsupported, "%s can be written and not read; set direction to %q", c.Format, "format")
	}
	text, ok := values.Decode(data).(string)
	if !ok {
		return nil, fault.Newf(fault.InvalidInput, "%q must be a text to be parsed, not %s", "data", values.TypeOf(values.Decode(data)))
	}
	o := c.Options
	switch c.Format {
	case "json":
		return parseJSON(text)
	case "csv":
		return parseCSV(text, o)
	case "xml":
		return parseXML(text)
	case "yaml":
		return parseYAML(text)
	case "date":
		return parseDate(call, text, o)
	case "number":
		return parseNumber(text, o)
	case "base64":
		return parseBase64(text)
	case "url":
		return parseURL(text, o)
	}
	return values.Encode(o.text(text)), nil
}

// badText is the error of a text that cannot be read, with the place in it.
func badText(what string, line, column int, reason string) error {
	return fault.Newf(fault.InvalidInput, "the text is no %s: line %d, column %d: %s", what, line, column, reason).
		With("position", map[string]any{"line": line, "column": column})
}

// place counts line and column of an offset from 1, columns in characters.
func place(text string, offset int) (line, column int) {
	before := text[:max(0, min(offset, len(text)))]
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

func formatJSON(data json.RawMessage, o formatOptions) (string, error) {
	if o.Indent == 0 {
		return payload.JSON(data), nil
	}
	var b bytes.Buffer
	err := json.Indent(&b, payload.Readable(data), "", strings.Repeat(" ", int(o.Indent)))
	return b.String(), err
}

func parseJSON(text string) (json.RawMessage, error) {
	var v json.RawMessage
	err := json.Unmarshal([]byte(text), &v)
	if err == nil {
		return v, nil
	}
	offset := len(text)
	if syntax, ok := err.(*json.SyntaxError); ok {
		offset = int(syntax.Offset) - 1
	}
	line, column := place(text, offset)
	return nil, badText("JSON", line, column, err.Error())
}

// formatDate shows a date in a zone and a layout; without a layout as RFC 3339.
func formatDate(call *node.Call, v any, o formatOptions) (string, error) {
	t, err := readDate(call, v, o)
	if err != nil {
		return "", err
	}
	if o.DateFormat == "" {
		return t.Format(time.RFC3339Nano), nil
	}
	text, err := call.Eval("format_date(date_value, date_layout)",
		map[string]any{"date_value": t.Format(time.RFC3339Nano), "date_layout": o.DateFormat})
	if err != nil {
		return "", fault.Newf(fault.InvalidConfig, "%q is not a layout of a date: %s", "options.date_format",
			fault.From(err).Message).WithCause(err)
	}
	return values.TextOf(text), nil
}

// readDate reads what the expression language takes for a date, and shows it in the zone asked for.
func readDate(call *node.Call, v any, o formatOptions) (time.Time, error) {
	location, err := time.LoadLocation(o.Timezone)
	if err != nil {
		return time.Time{}, fault.Newf(fault.InvalidConfig, "%q is not a time zone; write one like %q", o.Timezone,
			"Europe/Berlin").WithCause(err)
	}
	got, err := call.Eval("date(date_value)", map[string]any{"date_value": v})
	text, ok := got.(string)
	if err == nil && ok {
		var t time.Time
		if t, err = time.Parse(time.RFC3339Nano, text); err == nil {
			return t.In(location), nil
		}
	}
	return time.Time{}, badText("date", 1, 1, "write it like 2030-01-31T09:00:00Z, 2030-01-31 or as Unix seconds")
}

func parseDate(call *node.Call, text string, o formatOptions) (json.RawMessage, error) {
	if o.DateFormat == "" {
		t, err := readDate(call, text, formatOptions{Timezone: "UTC"})
		if err != nil {
			return nil, err
		}
		return values.Encode(t.UTC().Format(time.RFC3339Nano)), nil
	}
	location, err := time.LoadLocation(o.Timezone)
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "%q is not a time zone; write one like %q", o.Timezone, "Europe/Berlin").WithCause(err)
	}
	layout, err := expr.ReadDateLayout(o.DateFormat)
	if err != nil {
		return nil, fault.Newf(fault.InvalidConfig, "%q %s", "options.date_format", err.Error()).With("path",
			"configurations.options.date_format")
	}
	t, err := layout.Parse(text, location)
	if err != nil {
		return nil, badText("date", 1, 1, fmt.Sprintf("it does not fit %q", o.DateFormat))
	}
	return values.Encode(t.UTC().Format(time.RFC3339Nano)), nil
}

// formatNumber rounds half away from zero, in decimal, so that 1.005 with two decimals is 1.01.
func formatNumber(v any, o formatOptions) (string, error) {
	n, ok := v.(json.Number)
	if text, isText := v.(string); isText {
		n, ok = json.Number(strings.TrimSpace(text)), true
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if !ok || err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", badText("number", 1, 1, "write it like 1234.5")
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if exact, ok := new(big.Rat).SetString(string(n)); ok && len(n) < 400 {
		text = exactDecimal(exact, o.Decimals, text)
	}
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	whole, fraction, has := strings.Cut(text, ".")
	if o.ThousandsSeparator != "" {
		var b strings.Builder
		for i, digit := range whole {
			if i > 0 && (len(whole)-i)%3 == 0 {
				b.WriteString(o.ThousandsSeparator)
			}
			b.WriteRune(digit)
		}
		whole = b.String()
	}
	if !has {
		return sign + whole, nil
	}
	point := o.DecimalSeparator
	if point == "" {
		point = "."
	}
	return sign + whole + point + fraction, nil
}

func exactDecimal(r *big.Rat, decimals *int64, otherwise string) string {
	switch {
	case decimals != nil:
		if text := r.FloatString(int(*decimals)); strings.Trim(text, "-0.") != "" {
			return text
		}
		return new(big.Rat).FloatString(int(*decimals)) // no minus before a zero
	case r.IsInt():
		return r.Num().String()
	}
	return otherwise
}

func parseNumber(text string, o formatOptions) (json.RawMessage, error) {
	plain := strings.TrimSpace(text)
	thousands := o.ThousandsSeparator
	if thousands != "" {
		plain = strings.ReplaceAll(plain, thousands, "")
	}
	if o.DecimalSeparator != "" {
		plain = strings.Replace(plain, o.DecimalSeparator, ".", 1)
	}
	plain = strings.TrimPrefix(plain, "+")
	if !json.Valid([]byte(plain)) || plain == "" || plain[0] != '-' && (plain[0] < '0' || plain[0] > '9') {
		return nil, badText("number", 1, 1, fmt.Sprintf("%q cannot be read as one", text))
	}
	return json.RawMessage(plain), nil
}

func parseBase64(text string) (json.RawMessage, error) {
	clean := strings.TrimRight(strings.NewReplacer("\n", "", "\r", "", "-", "+", "_", "/").Replace(text), "=")
	raw, err := base64.RawStdEncoding.DecodeString(clean)
	if err != nil {
		offset := 0
		if corrupt, ok := err.(base64.CorruptInputError); ok {
			offset = int(corrupt)
		}
		line, column := place(text, offset)
		return nil, badText("base64", line, column, err.Error())
	}
	if !utf8.Valid(raw) {
		return nil, badText("base64 of a text", 1, 1, "what it holds is not UTF-8")
	}
	return values.Encode(string(raw)), nil
}

// formatURL escapes a text, or makes the query of an object.
func formatURL(data json.RawMessage) string {
	if !values.IsObject(data) {
		return url.QueryEscape(values.Text(data))
	}
	var parts []string
	for _, m := range values.Members(data) {
		each := []json.RawMessage{m.Value}
		if values.IsList(m.Value) {
			each = values.Elements(m.Value)
		}
		for _, v := range each {
			parts = append(parts, url.QueryEscape(m.Key)+"="+url.QueryEscape(values.Text(v)))
		}
	}
	return strings.Join(parts, "&")
}

func parseURL(text string, o formatOptions) (json.RawMessage, error) {
	bad := func(err error) error { return badText("escaped URL part", 1, 1, err.Error()) }
	if !o.Query {
		plain, err := url.QueryUnescape(text)
		if err != nil {
			return nil, bad(err)
		}
		return values.Encode(plain), nil
	}
	var fields gathering
	for _, part := range strings.Split(strings.TrimPrefix(text, "?"), "&") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(key)
		if err != nil {
			return nil, bad(err)
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return nil, bad(err)
		}
		fields.addField(name, values.Encode(value))
	}
	return values.Object(fields.members()), nil
}

// gathering collects fields of which some may come several times: those become lists.
type gathering struct {
	names  []string
	values map[string][]json.RawMessage
}

func (g *gathering) addField(name string, value json.RawMessage) {
	if g.values == nil {
		g.values = map[string][]json.RawMessage{}
	}
	if len(g.values[name]) == 0 {
		g.names = append(g.names, name)
	}
	g.values[name] = append(g.values[name], value)
}

func (g *gathering) members() []values.Member {
	list := make([]values.Member, len(g.names))
	for i, name := range g.names {
		if list[i] = (values.Member{Key: name, Value: g.values[name][0]}); len(g.values[name]) > 1 {
			list[i].Value = values.Array(g.values[name])
		}
	}
	return list
}

// idleOptions are the options that a format does not read.
func idleOptions(format string, options gjson.Result) (names []string) {
	of := map[string][]string{
		"json": {"indent"}, "csv": {"delimiter", "header", "columns"}, "xml": {"root", "item", "indent"},
		"date":   {"date_format", "timezone"},
		"number": {"decimals", "thousands_separator", "decimal_separator"}, "text": {"case", "trim"},
		"base64": {"url_safe"}, "url": {"query"},
	}
	reads, known := of[format]
	options.ForEach(func(key, _ gjson.Result) bool {
		if known && !slices.Contains(reads, key.Str) {
			names = append(names, key.Str)
		}
		return true
	})
	return names
}

func planFormatting(p *node.Planning, c *formattingConfig) {
	if c.Format == "template" {
		p.Require("template", "when %s is %q", "format_type", "template")
	}
	for _, name := range idleOptions(c.Format, p.Value("options")) {
		p.Warn(workflow.ProblemConfig, p.At("options")+"."+name, "%s does nothing here: it is not for the format %q; remove it", name, c.Format)
	}
	if layout := p.Value("options").Get("date_format"); layout.Type == gjson.String && layout.Str != "" && !node.Dynamic(layout) {
		if _, err := expr.ReadDateLayout(layout.Str); err != nil {
			p.Invalid(p.At("options")+".date_format", "is not a layout of a date: it %s", err.Error())
		}
	}
}
