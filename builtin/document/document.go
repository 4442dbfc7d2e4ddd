// Package document finds the text in documents: PDF, Word and Excel files, web pages, and texts in any charset. It opens nothing, and
// everything it does is bounded, since documents come from anywhere.
//
// The families of kinds import it.
package document

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	paths "path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/encoding/unicode"

	"tandem/fault"
	"tandem/files"
)

const (
	// maxOfficeXML is how much the parts of a document may become when they are unpacked, all together.
	maxOfficeXML = 32 << 20
	// maxOfficeText is how much text is taken from a document.
	maxOfficeText = 4 << 20
	maxSheets     = 200
)

// Text returns the text of a file, how many pages or sheets it has, and whether there is more.
func Text(ctx context.Context, format string, data []byte) (text string, pages int, cut bool, err error) {
	if format == "csv" {
		return unicodeText(data), 0, false, nil
	}
	c, err := Read(ctx, format, data)
	return c.Text, c.Pages, c.Cut, err
}

// unicodeText reads text in UTF-8, or in UTF-16 with a mark.
func unicodeText(data []byte) string {
	if len(data) > 1 && (data[0] == 0xff && data[1] == 0xfe || data[0] == 0xfe && data[1] == 0xff) {
		if plain, err := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder().Bytes(data); err == nil {
			data = plain
		}
	}
	return DecodeText(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), "")
}

// office is a document that is a zip file of XML parts.
type office struct {
	ctx  context.Context
	zip  *zip.Reader
	left int64 // of maxOfficeXML
	out  strings.Builder
	outline
}

// errOfficeEnough ends the reading of a document with more text than is wanted.
var errOfficeEnough = errors.New("there is enough text")

func officeText(ctx context.Context, data []byte, read func(*office) (int, error)) (Content, error) {
	z, err := files.Zip(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Content{}, err
	}
	o := &office{ctx: ctx, zip: z, left: maxOfficeXML}
	pages, err := read(o)
	cut := errors.Is(err, errOfficeEnough)
	switch {
	case ctx.Err() != nil:
		return Content{}, fault.New(fault.Timeout, "the document could not be read in time").WithCause(context.Cause(ctx))
	case err != nil && !cut:
		if f, ok := errors.AsType[*fault.Error](err); ok {
			return Content{}, f
		}
		return Content{}, fault.New(fault.InvalidInput, "the document is damaged, or not what its name says").WithCause(err)
	}
	return trimmed(Content{Text: o.out.String(), Parts: o.parts, Pages: pages, Cut: cut}), nil
}

// officePart is one part; what all of them become is bounded.
type officePart struct {
	of   *office
	from io.Reader
}

func (p *officePart) Read(b []byte) (int, error) {
	if err := p.of.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.from.Read(b)
	if p.of.left -= int64(n); p.of.left < 0 {
		return n, p.of.tooLarge()
	}
	return n, err
}

func (o *office) tooLarge() error {
	return fault.Newf(fault.TooLarge, "the document becomes larger than %d bytes when it is unpacked", maxOfficeXML).With("limit", maxOfficeXML)
}

// part visits the tokens of a part. A part that is not there has none.
func (o *office) part(name string, visit func(xml.Token) error) error {
	for _, f := range o.zip.File {
		if !strings.EqualFold(strings.TrimPrefix(f.Name, "/"), name) {
			continue
		}
		if f.UncompressedSize64 > uint64(max(o.left, 0)) { // no more than this comes out of it, whatever is in it
			return o.tooLarge()
		}
		content, err := f.Open()
		if err != nil {
			return err
		}
		d := xml.NewDecoder(&officePart{o, content})
		for {
			t, err := d.RawToken()
			if err == io.EOF {
				return content.Close()
			}
			if err == nil {
				err = visit(t)
			}
			if err == nil && o.out.Len() > maxOfficeText {
				err = errOfficeEnough
			}
			if err != nil {
				return errors.Join(err, content.Close())
			}
		}
	}
	return nil
}

func (o *office) has(name string) bool {
	for _, f := range o.zip.File {
		if strings.EqualFold(strings.TrimPrefix(f.Name, "/"), name) {
			return true
		}
	}
	return false
}

func docxText(o *office) (int, error) {
	const document = "word/document.xml"
	if !o.has(document) {
		return 0, fault.New(fault.InvalidInput, "the file is not a Word document, although its name says so")
	}
	headings, err := o.headingStyles()
	if err != nil {
		return 0, err
	}
	inText, begun, level := false, 0, 0
	return 0, o.part(document, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "p":
				begun, level = o.out.Len(), 0
			case "pStyle":
				level = headings[attribute(t, "val")]
			case "t":
				inText = true
			case "tab":
				o.out.WriteByte('\t')
			case "br", "cr":
				o.out.WriteByte('\n')
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "t":
				inText = false
			case "p":
				if level > 0 {
					o.heading(level, o.out.String()[begun:], begun)
					level = 0
				}
				o.out.WriteByte('\n')
			case "tc":
				o.out.WriteByte('\t')
			}
		case xml.CharData:
			if inText {
				o.out.Write(t)
			}
		}
		return nil
	})
}

// headingStyles are the styles of headings with their level, by id; their names are the same in every language.
func (o *office) headingStyles() (map[string]int, error) {
	levels, id := map[string]int{}, ""
	err := o.part("word/styles.xml", func(t xml.Token) error {
		e, ok := t.(xml.StartElement)
		switch {
		case !ok:
		case e.Name.Local == "style":
			id = attribute(e, "styleId")
		case e.Name.Local == "name" && id != "":
			name := strings.ToLower(attribute(e, "val"))
			if n, err := strconv.Atoi(strings.TrimPrefix(name, "heading ")); name != "" && err == nil && n > 0 && n <= maxLevel {
				levels[id] = n
			} else if name == "title" {
				levels[id] = 1
			}
		}
		return nil
	})
	return levels, err
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// xlsxText writes every sheet as its name and lines of cells with tabs between them.
func xlsxText(o *office) (int, error) {
	if !o.has("xl/workbook.xml") {
		return 0, fault.New(fault.InvalidInput, "the file is not an Excel workbook, although its name says so")
	}
	shared, err := o.sharedStrings()
	if err != nil {
		return 0, err
	}
	targets := map[string]string{}
	if err := o.part("xl/_rels/workbook.xml.rels", func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "Relationship" {
			targets[attribute(e, "Id")] = attribute(e, "Target")
		}
		return nil
	}); err != nil {
		return 0, err
	}
	type sheet struct{ name, part string }
	var sheets []sheet
	if err := o.part("xl/workbook.xml", func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "sheet" && len(sheets) < maxSheets {
			part := targets[attribute(e, "id")]
			if !strings.HasPrefix(part, "/") {
				part = paths.Join("xl", part)
			}
			sheets = append(sheets, sheet{attribute(e, "name"), strings.TrimPrefix(part, "/")})
		}
		return nil
	}); err != nil {
		return 0, err
	}
	for _, s := range sheets {
		o.heading(1, s.name, o.out.Len())
		o.out.WriteString("# " + s.name + "\n")
		if err := o.sheet(s.part, shared); err != nil {
			return len(sheets), err
		}
		o.out.WriteByte('\n')
	}
	return len(sheets), nil
}

func (o *office) sharedStrings() ([]string, error) {
	var list []string
	var one strings.Builder
	inText, total := false, 0
	err := o.part("xl/sharedStrings.xml", func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			inText = t.Name.Local == "t"
		case xml.EndElement:
			inText = false
			if t.Name.Local == "si" {
				list = append(list, one.String())
				if total += one.Len() + 16; total > maxOfficeXML/2 {
					return fault.New(fault.TooLarge, "the workbook has too much text")
				}
				one.Reset()
			}
		case xml.CharData:
			if inText {
				one.Write(t)
			}
		}
		return nil
	})
	return list, err
}

func (o *office) sheet(part string, shared []string) error {
	var value strings.Builder
	kind, column, at, inValue := "", 0, 0, false
	return o.part(part, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "row":
				at = 0
			case "c":
				kind = attribute(t, "t")
				column = columnOf(attribute(t, "r"), at)
				value.Reset()
			case "v", "t":
				inValue = true
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "v", "t":
				inValue = false
			case "c":
				text := value.String()
				if i, err := strconv.Atoi(text); kind == "s" && err == nil && i >= 0 && i < len(shared) {
					text = shared[i]
				}
				if text == "" {
					break
				}
				for ; at < column; at++ {
					o.out.WriteByte('\t')
				}
				o.out.WriteString(text)
			case "row":
				o.out.WriteByte('\n')
			}
		case xml.CharData:
			if inValue {
				value.Write(t)
			}
		}
		return nil
	})
}

// columnOf reads the column of "BC12", from 0; a cell that does not say stands where the last one ended.
func columnOf(cell string, last int) int {
	n := 0
	for i := 0; i < len(cell) && cell[i] >= 'A' && cell[i] <= 'Z' && n < 16384; i++ {
		n = n*26 + int(cell[i]-'A') + 1
	}
	if n == 0 {
		return last + 1
	}
	return min(n, 16384) - 1
}

// FormatOf tells the format by the extension.
func FormatOf(name string) string {
	ext := strings.ToLower(strings.TrimPrefix(paths.Ext(name), "."))
	switch ext {
	case "yml":
		return "yaml"
	case "htm":
		return "html"
	case "markdown":
		return "md"
	case "log", "text":
		return "txt"
	}
	return ext
}

// TextTime bounds the extraction of text from one file.
const TextTime = 20 * time.Second
