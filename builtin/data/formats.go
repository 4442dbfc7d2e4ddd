package data

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"tandem/builtin/values"
	"tandem/fault"
)

// table is data as rows of cells under columns; columns is nil for rows without names.
type table struct {
	columns []string
	rows    [][]json.RawMessage
}

// tableOf lays records out in the order in which their fields are first seen.
func tableOf(data json.RawMessage, columns []string) table {
	records := values.ListOf(data).Items
	t := table{columns: columns}
	named := slices.ContainsFunc(records, values.IsObject) || columns != nil
	if !named {
		for _, record := range records {
			if values.IsList(record) {
				t.rows = append(t.rows, values.Elements(record))
			} else {
				t.rows = append(t.rows, []json.RawMessage{record})
			}
		}
		return t
	}
	if columns == nil {
		t.columns = []string{}
		seen := map[string]bool{}
		for _, record := range records {
			for _, m := range values.Members(objectOnly(record)) {
				if !seen[m.Key] {
					seen[m.Key] = true
					t.columns = append(t.columns, m.Key)
				}
			}
		}
	}
	for _, record := range records {
		cells := map[string]json.RawMessage{}
		for _, m := range values.Members(objectOnly(record)) {
			cells[m.Key] = m.Value
		}
		row := make([]json.RawMessage, len(t.columns))
		for i, name := range t.columns {
			if row[i] = cells[name]; row[i] == nil {
				row[i] = json.RawMessage("null")
			}
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func delimiter(o formatOptions) (rune, error) {
	if o.Delimiter == "" {
		return ',', nil
	}
	r, size := utf8.DecodeRuneInString(o.Delimiter)
	if size != len(o.Delimiter) || r == '"' || r == '\r' || r == '\n' || r == utf8.RuneError {
		return 0, fault.Newf(fault.InvalidConfig, "%q must be one character, not %q", "options.delimiter", o.Delimiter)
	}
	return r, nil
}

// formula matches texts that a spreadsheet would compute, and those that were kept from it.
var formula = regexp.MustCompile(`^'*[=+\-@]`)

// formatCSV writes records with a header. A text that a spreadsheet would take for a formula gets an apostrophe before
// it, which reading takes off again, and stands in quotes.
func formatCSV(data json.RawMessage, o formatOptions) (string, error) {
	comma, err := delimiter(o)
	if err != nil {
		return "", err
	}
	t := tableOf(data, o.Columns)
	var b strings.Builder
	line := func(cells []string) {
		for i, cell := range cells {
			if i > 0 {
				b.WriteRune(comma)
			}
			if cell == "" && len(cells) == 1 || strings.ContainsAny(cell, "\"\r\n'") || strings.ContainsRune(cell, comma) ||
				strings.TrimSpace(cell) != cell {
				cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
			}
			b.WriteString(cell)
		}
		b.WriteByte('\n')
	}
	if t.columns != nil && (o.Header == nil || *o.Header) && len(t.columns) > 0 {
		names := make([]string, len(t.columns))
		for i, name := range t.columns {
			names[i] = shielded(name)
		}
		line(names)
	}
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if v := values.Decode(cell); values.TypeOf(v) == "number" {
				cells[i] = values.TextOf(v)
			} else {
				cells[i] = shielded(values.TextOf(v))
			}
		}
		line(cells)
	}
	return b.String(), nil
}

func shielded(text string) string {
	if formula.MatchString(text) {
		return "'" + text
	}
	return text
}

func parseCSV(text string, o formatOptions) (json.RawMessage, error) {
	comma, err := delimiter(o)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.Comma, r.FieldsPerRecord = comma, -1
	names := o.Columns
	header := o.Header == nil || *o.Header
	var out []json.RawMessage
	for first := true; ; first = false {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return values.Array(out), nil
		}
		if bad, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, badText("CSV", bad.Line, bad.Column, bad.Err.Error())
		} else if err != nil {
			return nil, badText("CSV", 1, 1, err.Error())
		}
		for i, cell := range cells {
			if strings.HasPrefix(cell, "'") && formula.MatchString(cell) {
				cells[i] = cell[1:]
			}
		}
		if first && header {
			if names == nil {
				names = cells
			}
			continue
		}
		if names == nil {
			out = append(out, values.Encode(cells))
			continue
		}
		if len(cells) != len(names) {
			line, column := r.FieldPos(len(cells) - 1)
			return nil, badText("CSV", line, column, fmt.Sprintf("the row has %d cells, and there are %d columns", len(cells), len(names)))
		}
		fields := make([]values.Member, len(cells))
		for i, cell := range cells {
			fields[i] = values.Field(names[i], cell)
		}
		out = append(out, values.Object(values.Overlay(nil, fields...)))
	}
}

var xmlName = regexp.MustCompile(`^[\p{L}_][\p{L}\d_.-]*$`)

// formatXML writes objects as elements by name and lists as repeated elements. A field that cannot be the name of an
// element is written as <field name="…">.
func formatXML(data json.RawMessage, o formatOptions) string {
	root, item := o.Root, o.Item
	if !xmlName.MatchString(root) {
		root = "root"
	}
	if !xmlName.MatchString(item) {
		item = "item"
	}
	var b strings.Builder
	writeXML(&b, root, item, data)
	return b.String()
}

func writeXML(b *strings.Builder, name, item string, data json.RawMessage) {
	open, end := name, name
	if !xmlName.MatchString(name) || len(name) >= 3 && strings.EqualFold(name[:3], "xml") {
		open, end = `field name="`+escapeXML(name)+`"`, "field"
	}
	b.WriteString("<" + open + ">")
	switch {
	case values.IsObject(data):
		for _, m := range values.Members(data) {
			if values.IsList(m.Value) {
				for _, element := range values.Elements(m.Value) {
					writeXML(b, m.Key, item, element)
				}
				continue
			}
			writeXML(b, m.Key, item, m.Value)
		}
	case values.IsList(data):
		for _, element := range values.Elements(data) {
			writeXML(b, item, item, element)
		}
	default:
		b.WriteString(escapeXML(values.Text(data)))
	}
	b.WriteString("</" + end + ">")
}

func escapeXML(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		panic(fmt.Sprintf("write to a buffer: %v", err))
	}
	return b.String()
}

// maxXMLDepth bounds how deep elements may nest.
const maxXMLDepth = 200

// parseXML reads an element as an object: attributes as @name, elements by name (repeated ones as a list), text as #text,
// or as the value itself when there is nothing else. Document types are refused, so nothing can define an entity.
func parseXML(text string) (json.RawMessage, error) {
	d := xml.NewDecoder(strings.NewReader(text))
	d.CharsetReader = func(charset string, r io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("the encoding %q is not supported; use UTF-8", charset)
	}
	bad := func(reason string) error {
		line, column := d.InputPos()
		return badText("XML", line, column, reason)
	}
	var root json.RawMessage
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, bad(err.Error())
		}
		switch x := token.(type) {
		case xml.Directive:
			return nil, bad("document types are not allowed")
		case xml.CharData:
			if strings.TrimSpace(string(x)) != "" {
				return nil, bad("there is text outside of the root element")
			}
		case xml.StartElement:
			if root != nil {
				return nil, bad("there is a second root element")
			}
			if root, err = readXML(d, x, bad, 1); err != nil {
				return nil, err
			}
		}
	}
	if root == nil {
		return nil, bad("there is no element")
	}
	return root, nil
}

func readXML(d *xml.Decoder, start xml.StartElement, bad func(string) error, depth int) (json.RawMessage, error) {
	if depth > maxXMLDepth {
		return nil, bad(fmt.Sprintf("elements nest more than %d deep", maxXMLDepth))
	}
	var fields gathering
	var text strings.Builder
	named := start.Name.Local == "field"
	for _, a := range start.Attr {
		if !(named && a.Name.Local == "name") {
			fields.addField("@"+a.Name.Local, values.Encode(a.Value))
		}
	}
	for {
		token, err := d.Token()
		if err != nil {
			return nil, bad(err.Error())
		}
		switch x := token.(type) {
		case xml.Directive:
			return nil, bad("document types are not allowed")
		case xml.CharData:
			text.Write(x)
		case xml.StartElement:
			value, err := readXML(d, x, bad, depth+1)
			if err != nil {
				return nil, err
			}
			fields.addField(elementName(x), value)
		case xml.EndElement:
			content := text.String()
			if len(fields.names) == 0 {
				return values.Encode(content), nil
			}
			if content = strings.TrimSpace(content); content != "" {
				fields.addField("#text", values.Encode(content))
			}
			return values.Object(fields.members()), nil
		}
	}
}

// elementName undoes what writing does with names that XML does not allow.
func elementName(e xml.StartElement) string {
	if e.Name.Local == "field" {
		for _, a := range e.Attr {
			if a.Name.Local == "name" {
				return a.Value
			}
		}
	}
	return e.Name.Local
}

func formatYAML(data json.RawMessage) (string, error) {
	out, err := yaml.Marshal(yamlNode(data))
	if err != nil {
		return "", fault.New(fault.InvalidInput, "the data cannot be written as YAML").WithCause(err)
	}
	return string(out), nil
}

// yamlNode keeps the order of fields and the digits of numbers. Texts with line breaks or with space around them are
// quoted, since block texts do not keep every one of them.
func yamlNode(data json.RawMessage) *yaml.Node {
	switch {
	case values.IsObject(data):
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, m := range values.Members(data) {
			n.Content = append(n.Content, yamlText(m.Key), yamlNode(m.Value))
		}
		return n
	case values.IsList(data):
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, element := range values.Elements(data) {
			n.Content = append(n.Content, yamlNode(element))
		}
		return n
	}
	switch v := values.Decode(data).(type) {
	case string:
		return yamlText(v)
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(string(v), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: string(v)}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

func yamlText(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.TrimSpace(text) != text || strings.ContainsFunc(text, unicode.IsControl) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

var yamlLine = regexp.MustCompile(`line (\d+)`)

func parseYAML(text string) (json.RawMessage, error) {
	bad := func(reason string) error {
		line := 1
		if m := yamlLine.FindStringSubmatch(reason); m != nil {
			line, _ = strconv.Atoi(m[1])
		}
		column := 1
		if lines := strings.Split(text, "\n"); line >= 1 && line <= len(lines) {
			column += len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " "))
		}
		return badText("YAML", line, column, strings.TrimPrefix(reason, "yaml: "))
	}
	out, err := values.FromYAML(text)
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return nil, f
	}
	if err != nil {
		return nil, bad(err.Error())
	}
	return out, nil
}

// formatMarkdown writes records as a table, an object as a list of its fields, a list as a list.
func formatMarkdown(data json.RawMessage) string {
	escape := strings.NewReplacer("|", `\|`, "\r\n", "<br>", "\n", "<br>")
	var b strings.Builder
	switch items := values.ListOf(data).Items; {
	case values.IsObject(data):
		for _, m := range values.Members(data) {
			fmt.Fprintf(&b, "- **%s**: %s\n", escape.Replace(m.Key), escape.Replace(values.Text(m.Value)))
		}
	case values.IsList(data) && slices.ContainsFunc(items, values.IsObject):
		t := tableOf(data, nil)
		row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
		head, rule := make([]string, len(t.columns)), make([]string, len(t.columns))
		for i, name := range t.columns {
			head[i], rule[i] = escape.Replace(name), "---"
		}
		row(head)
		row(rule)
		for _, r := range t.rows {
			cells := make([]string, len(r))
			for i, cell := range r {
				cells[i] = escape.Replace(values.Text(cell))
			}
			row(cells)
		}
	case values.IsList(data):
		for _, item := range items {
			fmt.Fprintf(&b, "- %s\n", escape.Replace(values.Text(item)))
		}
	default:
		b.WriteString(values.Text(data))
	}
	return b.String()
}

// formatHTML is formatMarkdown for HTML; everything that comes from data is escaped.
func formatHTML(data json.RawMessage) string {
	text := func(raw json.RawMessage) string { return html.EscapeString(values.Text(raw)) }
	var b strings.Builder
	switch items := values.ListOf(data).Items; {
	case values.IsObject(data):
		b.WriteString("<dl>")
		for _, m := range values.Members(data) {
			fmt.Fprintf(&b, "<dt>%s</dt><dd>%s</dd>", html.EscapeString(m.Key), text(m.Value))
		}
		b.WriteString("</dl>")
	case values.IsList(data) && slices.ContainsFunc(items, values.IsObject):
		t := tableOf(data, nil)
		b.WriteString("<table><thead><tr>")
		for _, name := range t.columns {
			fmt.Fprintf(&b, "<th>%s</th>", html.EscapeString(name))
		}
		b.WriteString("</tr></thead><tbody>")
		for _, row := range t.rows {
			b.WriteString("<tr>")
			for _, cell := range row {
				fmt.Fprintf(&b, "<td>%s</td>", text(cell))
			}
			b.WriteString("</tr>")
		}
		b.WriteString("</tbody></table>")
	case values.IsList(data):
		b.WriteString("<ul>")
		for _, item := range items {
			fmt.Fprintf(&b, "<li>%s</li>", text(item))
		}
		b.WriteString("</ul>")
	default:
		b.WriteString(text(data))
	}
	return b.String()
}
