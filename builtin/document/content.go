package document

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"unicode"

	"tandem/hypertext"
	"tandem/text"
)

// Content is the text of a document with the parts that it has.
type Content struct {
	Text string
	// Parts are in the order of the text, and each ends where the next one begins; none: the document says nothing about its parts.
	Parts []Part
	// Pages is how many pages or sheets there are, for formats that have them.
	Pages int
	// Cut says that there is more.
	Cut bool
}

// Part is a page, a section below a heading, a sheet or a row.
type Part struct {
	// Start is where it begins in the text, in bytes.
	Start int
	Page  int
	// Section is its heading with those above it.
	Section string
	// Row is the number of a row of a table, the first below its head being 1.
	Row int
}

const (
	// maxParts is how many parts of a document are listed; the last one has the rest.
	maxParts = 20_000
	maxLevel = 9
	// maxTitle is how many bytes of a heading are kept.
	maxTitle = 200
)

// Read returns the text of a file with its parts.
func Read(ctx context.Context, format string, data []byte) (Content, error) {
	switch format {
	case "html":
		said, headings := hypertext.Outlined([]byte(unicodeText(data)), maxOfficeText)
		var o outline
		for _, h := range headings {
			o.heading(h.Level, h.Title, h.At)
		}
		return trimmed(Content{Text: said, Parts: o.parts}), nil
	case "pdf":
		return pdfText(ctx, data)
	case "docx":
		return officeText(ctx, data, docxText)
	case "xlsx":
		return officeText(ctx, data, xlsxText)
	case "md":
		return markdown(unicodeText(data)), nil
	case "csv":
		return table(unicodeText(data)), nil
	}
	return Content{Text: unicodeText(data)}, nil
}

// outline collects the sections of a document.
type outline struct {
	parts []Part
	above [maxLevel + 1]string // the headings that hold, by level
}

// heading begins a section.
func (o *outline) heading(level int, title string, at int) {
	title = text.Head(strings.Join(strings.Fields(title), " "), maxTitle)
	if title == "" || len(o.parts) >= maxParts {
		return
	}
	o.above[level] = title
	clear(o.above[level+1:])
	var path []string
	for _, t := range o.above[:level+1] {
		if t != "" {
			path = append(path, t)
		}
	}
	o.parts = append(o.parts, Part{Start: at, Section: strings.Join(path, " > ")})
}

// trimmed is a content without white space around it.
func trimmed(c Content) Content {
	lead := len(c.Text) - len(strings.TrimLeftFunc(c.Text, unicode.IsSpace))
	c.Text = strings.TrimSpace(c.Text)
	for i := range c.Parts {
		c.Parts[i].Start = min(max(0, c.Parts[i].Start-lead), len(c.Text))
	}
	return c
}

// markdown finds the headings of a text that are marked with #, outside of code.
func markdown(said string) Content {
	var o outline
	fence := ""
	at := 0
	for line := range strings.Lines(said) {
		plain := strings.TrimLeft(line, " ")
		switch {
		case fence != "":
			if strings.HasPrefix(plain, fence) {
				fence = ""
			}
		case strings.HasPrefix(plain, "```"), strings.HasPrefix(plain, "~~~"):
			fence = plain[:3]
		case strings.HasPrefix(plain, "#") && len(line)-len(plain) < 4:
			title := strings.TrimLeft(plain, "#")
			if level := len(plain) - len(title); level <= 6 && strings.HasPrefix(title, " ") {
				o.heading(level, strings.TrimRight(title, " #\r\n"), at)
			}
		}
		at += len(line)
	}
	return Content{Text: said, Parts: o.parts}
}

// table tells the rows of a file of comma-separated values one by one, each with the names of its columns, so that a row means
// something by itself. What cannot be read as a table is a text.
func table(said string) Content {
	head, _, _ := strings.Cut(said, "\n")
	r := csv.NewReader(strings.NewReader(said))
	r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = -1, true, true
	for _, other := range []rune{';', '\t'} {
		if strings.Count(head, string(other)) > strings.Count(head, string(r.Comma)) {
			r.Comma = other
		}
	}
	var names []string
	var out bytes.Buffer
	c := Content{}
	for row := 0; ; row++ {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Content{Text: said}
		}
		if row == 0 {
			names = append(names, fields...)
			continue
		}
		if out.Len() > maxOfficeText {
			c.Cut = true
			break
		}
		if len(c.Parts) < maxParts {
			c.Parts = append(c.Parts, Part{Start: out.Len(), Row: row})
		}
		writeRow(&out, names, fields)
	}
	if len(c.Parts) == 0 {
		return Content{Text: said}
	}
	c.Text = out.String()
	return trimmed(c)
}

func writeRow(out *bytes.Buffer, names, fields []string) {
	first := true
	for i, field := range fields {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		if !first {
			out.WriteString("; ")
		}
		first = false
		if i < len(names) && strings.TrimSpace(names[i]) != "" {
			out.WriteString(strings.TrimSpace(names[i]) + ": ")
		}
		out.WriteString(field)
	}
	out.WriteByte('\n')
}
