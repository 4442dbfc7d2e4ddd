package file_test

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"tandem/builtin/file"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/node/nodetest"
)

const (
	fileTool  = "TOOL.FILE_PROCESSOR"
	imageTool = "TOOL.IMAGE_PROCESSOR"
)

func flate(t testing.TB, content string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// makePDF joins objects to a file; no table, since nobody believes it.
func makePDF(trailer string, objects ...string) string {
	var b strings.Builder
	b.WriteString("%PDF-1.7\n")
	for i, o := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	return b.String() + "trailer\n" + trailer + "\nstartxref\n0\n%%EOF\n"
}

func pdfStream(dict, content string) string {
	return fmt.Sprintf("<<%s /Length %d>>\nstream\n%s\nendstream", dict, len(content), content)
}

// onePage is a page with a content stream and a font.
func onePage(content, font string) string {
	return makePDF("<</Root 1 0 R>>", "<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [3 0 R] /Count 1 /Resources <</Font <</F1 5 0 R>>>>>>",
		"<</Type /Page /Parent 2 0 R /Contents 4 0 R>>", content, font)
}

const winFont = "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>"

func makeOffice(t testing.TB, parts map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range parts {
		f, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(f, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func toolCall(name, args string) string {
	return `{"tool_name": "` + name + `", "function_args": ` + args + `}`
}

func TestFileProcessor(t *testing.T) {
	t.Parallel()
	r := newFileRig(t, nil)
	r.put("docs/a.txt", "first line\nthe Needle is here\n")
	r.put("docs/b.md", "# 标题\n世界你好\n")
	r.put("docs/page.html", "<html><head><title>T</title><script>x()</script></head><body><p>one</p><p>two &amp; three</p></body></html>")
	r.put("docs/deep/c.csv", "a,b\n1,needle\n")
	r.put("docs/prog.exe", "MZ needle")
	r.put("private.txt", "needle")
	if err := os.Symlink("../private.txt", filepath.Join(r.dir, "docs", "link.txt")); err != nil {
		t.Fatal(err)
	}
	const config = `{"root": "docs"}`
	r.good(fileTool, config, toolCall("file_list", `{}`), `{"success": true, "cached": false, "error_message": "",
		"result": {"truncated": false, "files": [{"path": "a.txt"}, {"path": "b.md"}, {"path": "deep"}, {"path": "link.txt", "type": "link"}, {"path": "page.html"}, {"path": "prog.exe"}]}}`)
	r.good(fileTool, config, toolCall("file_read", `{"path": "a.txt"}`), `{"result": {"content": "first line\nthe Needle is here\n", "eof": true, "size": 30, "next_offset": 30}}`)
	r.good(fileTool, config, toolCall("file_read", `{"path": "b.md", "offset": 2, "limit": 4}`), `{"result": {"content": "标", "next_offset": 5, "eof": false}}`)
	r.good(fileTool, config, toolCall("file_read", `{"path": "b.md", "offset": 5, "limit": 1}`), `{"result": {"content": "题", "next_offset": 8}}`)
	r.good(fileTool, config, toolCall("file_search", `{"text": "NEEDLE"}`), `{"result": {"truncated": false, "files_searched": 4,
		"matches": [{"path": "a.txt", "line": 2, "text": "the Needle is here"}, {"path": "deep/c.csv", "line": 2, "text": "1,needle"}]}}`)
	r.good(fileTool, config, toolCall("file_extract_text", `{"path": "page.html"}`), `{"result": {"text": "T\none\ntwo & three", "format": "html"}}`)
	// The configuration may name the tool, and has the last word.
	r.good(fileTool, `{"root": "docs", "tool_prefix": "docs_", "tool_name": "docs_file_read", "function_args": {"path": "a.txt", "limit": 5}}`,
		toolCall("file_list", `{}`), `{"result": {"content": "first"}}`)
	for _, c := range []struct {
		config, input string
		code          fault.Code
		part          string
	}{
		{config, toolCall("file_read", `{"path": "../private.txt"}`), fault.ForbiddenPath, ""},
		{config, toolCall("file_read", `{"path": "link.txt"}`), fault.ForbiddenPath, ""},
		{config, toolCall("file_read", `{"path": "prog.exe"}`), fault.Unsupported, "formats"},
		{config, toolCall("file_read", `{"path": "gone.txt"}`), fault.NotFound, ""},
		{config, toolCall("file_read", `{"pth": "a.txt"}`), fault.ParameterMissing, `did you mean "path"?`},
		{config, toolCall("file_read", `{"path": "a.txt", "offset": -1}`), fault.ToolError, "offset"},
		{config, toolCall("file_raed", `{}`), fault.ToolError, `"file_read"`},
		{config, toolCall("file_write", `{"path": "x.txt", "content": "x"}`), fault.ToolError, "no tool"},
		{`{"root": "docs", "available_tools": ["file_list"]}`, toolCall("file_read", `{"path": "a.txt"}`), fault.ToolError, "file_list"},
		{config, `{}`, fault.ParameterMissing, "tool_name"},
		{config, `{"tool_name": "file_list", "function_args": 7}`, fault.ToolError, "object"},
		{`{"root": "../x"}`, toolCall("file_list", `{}`), fault.ForbiddenPath, ""},
		{`{"root": "nowhere"}`, toolCall("file_list", `{}`), fault.NotFound, ""},
		{`{"root": "docs/a.txt"}`, toolCall("file_list", `{}`), fault.InvalidInput, "name a directory"},
		{`{"root": "docs", "max_bytes": 10}`, toolCall("file_extract_text", `{"path": "a.txt"}`), fault.TooLarge, "max_bytes"},
		{`{"root": "docs", "formats": ["md"]}`, toolCall("file_extract_text", `{"path": "a.txt"}`), fault.Unsupported, ""},
	} {
		r.bad(fileTool, c.config, c.input, c.code, c.part)
	}
	const writable = `{"root": "docs", "read_only": false, "max_bytes": 100}`
	for range 2 {
		r.good(fileTool, writable, toolCall("file_write", `{"path": "new/n.txt", "content": "hello"}`), `{"result": {"path": "new/n.txt", "size": 5, "sha256": "`+hello+`"}}`)
	}
	r.bad(fileTool, writable, toolCall("file_write", `{"path": "big.txt", "content": "`+strings.Repeat("x", 101)+`"}`), fault.TooLarge, "")
	r.bad(fileTool, writable, toolCall("file_write", `{"path": "x.pdf", "content": "x"}`), fault.Unsupported, "")
	r.bad(fileTool, writable, toolCall("file_write", `{"path": "link.txt", "content": "x"}`), fault.Conflict, "link")
	if r.content("private.txt") != "needle" {
		t.Error("a link was written through")
	}
	t.Run("Cut", func(t *testing.T) {
		r.put("docs/quotes.txt", strings.Repeat(`"`, 300_000))
		got := r.good(fileTool, config, toolCall("file_extract_text", `{"path": "quotes.txt"}`), `{"result": {"truncated": true}}`)
		if n := len(nodetest.Text(got["result"])); n > 64<<10 || n < 50<<10 {
			t.Errorf("%d bytes", n)
		}
		r.good(fileTool, config, toolCall("file_read", `{"path": "quotes.txt"}`), `{"result": {"eof": false, "next_offset": 30720}}`)
	})
}

func TestFileProcessor_Documents(t *testing.T) {
	t.Parallel()
	r := newFileRig(t, nil)
	table := "begincmap\n1 begincodespacerange <0000> <FFFF> endcodespacerange\n2 beginbfchar <0001> <4F60> <0002> <597D> endbfchar\n" +
		"1 beginbfrange <0010> <0012> <0041> endbfrange\nendcmap"
	wide := makePDF("<</Root 1 0 R>>", "<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [3 0 R] /Count 1>>",
		"<</Type /Page /Contents [4 0 R] /Resources <</Font <</F1 5 0 R>>>>>>", pdfStream("", "BT /F1 12 Tf <0001000200100012> Tj ET"),
		"<</Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R>>", pdfStream("/Filter /FlateDecode", flate(t, table)))
	inner := "<</Type /Catalog /Pages 2 0 R>> <</Type /Pages /Kids [3 0 R]>> <</Type /Page /Contents 4 0 R /Resources <</Font <</F1 5 0 R>>>>>> "
	header := fmt.Sprintf("1 0 2 %d 3 %d ", strings.Index(inner, "<</Type /Pages"), strings.Index(inner, "<</Type /Page /"))
	packed := "%PDF-1.7\n4 0 obj\n" + pdfStream("/Filter /FlateDecode", flate(t, "BT /F1 9 Tf (packed) Tj ET")) + "\nendobj\n5 0 obj\n" + winFont + "\nendobj\n7 0 obj\n" +
		pdfStream(fmt.Sprintf("/Type /ObjStm /N 3 /First %d /Filter /FlateDecode", len(header)), flate(t, header+inner)) + "\nendobj\n8 0 obj\n" +
		pdfStream("/Type /XRef /Root 1 0 R /Size 9", "x") + "\nendobj\nstartxref\n0\n%%EOF\n"
	docx := makeOffice(t, map[string]string{"word/document.xml": `<w:document xmlns:w="w"><w:body><w:p><w:r><w:t>Hello </w:t></w:r><w:r><w:t>世界</w:t></w:r></w:p><w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t></w:r></w:p></w:body></w:document>`})
	xlsx := makeOffice(t, map[string]string{
		"xl/workbook.xml":            `<workbook xmlns:r="r"><sheets><sheet name="Prices" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>`,
		"xl/sharedStrings.xml":       `<sst><si><t>part</t></si><si><r><t>bo</t></r><r><t>lt</t></r></si></sst>`,
		"xl/worksheets/sheet1.xml":   `<worksheet><sheetData><row><c r="A1" t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>price</t></is></c></row><row><c r="A2" t="s"><v>1</v></c><c r="C2"><v>1.50</v></c></row></sheetData></worksheet>`,
	})
	for name, c := range map[string]struct{ content, want string }{
		"plain.pdf":  {onePage(pdfStream("", "BT /F1 12 Tf 72 700 Td (Hello \\(PDF\\)) Tj 0 -14 Td [(Wor) -20 (ld) -300 (caf\\351)] TJ ET"), winFont), `{"text": "Hello (PDF)\nWorld café", "pages": 1, "truncated": false}`},
		"flate.pdf":  {onePage(pdfStream("/Filter /FlateDecode", flate(t, "BT /F1 12 Tf (squeezed) ' ET")), winFont), `{"text": "squeezed"}`},
		"wide.pdf":   {wide, `{"text": "你好AC"}`},
		"packed.pdf": {packed, `{"text": "packed", "pages": 1}`},
		"length.pdf": {onePage("<</Length 99999>>\nstream\nBT /F1 1 Tf (lied) Tj ET\nendstream", winFont), `{"text": "lied"}`},
		"glyphs.pdf": {onePage(pdfStream("", "BT /F1 1 Tf (ab) Tj ET"), "<</Type /Font /Subtype /Type1 /Encoding <</Differences [97 /Euro /uni4E16]>>>>"), `{"text": "€世"}`},
		"doc.docx":   {docx, `{"text": "Hello 世界\na\tb"}`},
		"book.xlsx":  {xlsx, `{"text": "# Prices\npart\t\tprice\nbolt\t\t1.50", "pages": 1}`},
		"utf16.txt":  {"\xff\xfeh\x00i\x00", `{"text": "hi"}`},
	} {
		r.put(name, c.content)
		r.good(fileTool, `{}`, toolCall("file_extract_text", `{"path": "`+name+`"}`), `{"result": `+c.want+`}`)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if _, err := w.CreateRaw(&zip.FileHeader{Name: "word/document.xml", Method: zip.Deflate, UncompressedSize64: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	bomb := b.String()
	for name, c := range map[string]struct {
		content string
		code    fault.Code
	}{
		"scan.pdf":      {onePage(pdfStream("", "q 1 0 0 1 0 0 cm /Im0 Do Q"), winFont), fault.Unsupported},
		"encrypted.pdf": {makePDF("<</Root 1 0 R /Encrypt 9 0 R>>", "<</Type /Catalog>>"), fault.Unsupported},
		"fake.pdf":      {"hello", fault.InvalidInput},
		"cycle.pdf":     {makePDF("<</Root 1 0 R>>", "<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [2 0 R 2 0 R] /Parent 2 0 R>>"), fault.Unsupported},
		"itself.pdf":    {onePage("<</Length 4 0 R /Filter 4 0 R>>\nstream\nBT\nendstream", "5 0 R"), fault.Unsupported},
		"nested.pdf":    {makePDF("<</Root 1 0 R>>", strings.Repeat("[", 200_000), strings.Repeat("<</A", 100_000)), fault.Unsupported},
		"open.pdf":      {"%PDF-1.4\n" + strings.Repeat("1 0 obj (", 40_000), fault.Unsupported},
		"endless.pdf":   {"%PDF-1.4\n" + numbered(20_000, "%d 0 obj <</A 1>> stream\n"), fault.TooLarge},
		"forms.pdf": {makePDF("<</Root 1 0 R>>", "<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [3 0 R]>>",
			"<</Type /Page /Contents 4 0 R /Resources <</XObject <</F 4 0 R>>>>>>", pdfStream("/Subtype /Form", strings.Repeat("/F Do ", 2000))), fault.TooLarge},
		"bomb.pdf": {onePage(pdfStream("/Filter [/FlateDecode /FlateDecode]", flate(t, flate(t, strings.Repeat("\x00", 33<<20)))), winFont), fault.TooLarge},
		"values.pdf": {"%PDF-1.7\n" + "7 0 obj\n" + pdfStream("/Type /ObjStm /N 1 /First 4 /Filter /FlateDecode", flate(t, "9 0 ["+strings.Repeat("1 ", 3<<20))) + "\nendobj\n" +
			"startxref\n0\n%%EOF\n", fault.TooLarge},
		"meaning.pdf": {makePDF("<</Root 1 0 R>>", "<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [3 0 R] /Count 1>>",
			"<</Type /Page /Contents [4 0 R] /Resources <</Font <</F1 5 0 R>>>>>>", pdfStream("", "BT /F1 12 Tf <0001> Tj ET"),
			"<</Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R>>",
			pdfStream("/Filter /FlateDecode", flate(t, "1 beginbfrange <0000> <FFFF> <"+strings.Repeat("0041", 8<<10)+"> endbfrange"))), fault.Unsupported},
		"bomb.docx":   {bomb, fault.TooLarge},
		"fake.docx":   {"PK\x03\x04", fault.InvalidInput},
		"other.docx":  {xlsx, fault.InvalidInput},
		"broken.xlsx": {makeOffice(t, map[string]string{"xl/workbook.xml": "<workbook><sheets"}), fault.InvalidInput},
	} {
		r.put(name, c.content)
		_, err := r.try(t.Context(), fileTool, `{"max_bytes": 20000000}`, toolCall("file_extract_text", `{"path": "`+name+`"}`))
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
	}
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

// FuzzPDF holds that no file stops the process or takes for ever.
func FuzzPDF(f *testing.F) {
	f.Add(onePage(pdfStream("", "BT /F1 12 Tf 72 700 Td (Hello) Tj [(a) -300 (b)] TJ ET"), winFont))
	f.Add(onePage(pdfStream("/Filter /FlateDecode", flate(f, "BT (x) ' ET")), "<</Subtype /Type0 /ToUnicode 4 0 R>>"))
	f.Add(makePDF("<</Root 1 0 R>>", "<</Type /Catalog /Pages 2 0 R>>", "<</Kids [1 0 R 2 0 R]>>"))
	base := f.TempDir()
	name := filepath.Join(base, "acme", "x.pdf")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		f.Fatal(err)
	}
	var tool node.Kind
	for _, k := range file.Kinds(file.Deps{Files: files.New(base)}) {
		if k.About.Name == fileTool {
			tool = k
		}
	}
	f.Fuzz(func(t *testing.T, content string) {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		call := nodetest.NewCall(t, ``, toolCall("file_extract_text", `{"path": "x.pdf"}`))
		call.Workspace = "acme"
		_, err := tool.Run(t.Context(), call)
		if code := fault.CodeOf(err); err != nil && (code == fault.Internal || code == fault.Timeout) {
			t.Fatalf("%v: %s", err, fault.From(err).Detail)
		}
	})
}

// corners is a picture whose four corners differ: red, green, blue, white, clockwise from the upper left.
func corners(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{A: 255}
			switch {
			case y < h/2 && x < w/2:
				c.R = 255
			case y < h/2:
				c.G = 255
			case x >= w/2:
				c.B = 255
			default:
				c.R, c.G, c.B = 255, 255, 255
			}
			m.SetNRGBA(x, y, c)
		}
	}
	return m
}

// cornerText reads the corners of a picture, clockwise from the upper left.
func cornerText(m image.Image) string {
	b := m.Bounds()
	var out string
	for _, p := range []image.Point{{b.Min.X, b.Min.Y}, {b.Max.X - 1, b.Min.Y}, {b.Max.X - 1, b.Max.Y - 1}, {b.Min.X, b.Max.Y - 1}} {
		red, green, blue, _ := m.At(p.X, p.Y).RGBA()
		switch {
		case red > 0xc000 && green > 0xc000 && blue > 0xc000:
			out += "w"
		case red > 0xc000:
			out += "r"
		case green > 0xc000:
			out += "g"
		case blue > 0xc000:
			out += "b"
		default:
			out += "?"
		}
	}
	return out
}

func TestImageProcessor(t *testing.T) {
	t.Parallel()
	r := newFileRig(t, nil)
	picture := corners(40, 20)
	save := func(name string, encode func(w io.Writer) error) {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		r.put(name, b.String())
	}
	save("p.png", func(w io.Writer) error { return png.Encode(w, picture) })
	save("p.jpg", func(w io.Writer) error { return jpeg.Encode(w, picture, nil) })
	save("p.bmp", func(w io.Writer) error { return bmp.Encode(w, picture) })
	save("p.tiff", func(w io.Writer) error { return tiff.Encode(w, picture, nil) })
	save("p.gif", func(w io.Writer) error {
		frame := image.NewPaletted(picture.Rect, color.Palette{color.White, color.NRGBA{R: 255, A: 255}})
		return gif.EncodeAll(w, &gif.GIF{Image: []*image.Paletted{frame, frame, frame}, Delay: []int{1, 1, 1}})
	})
	// A lossless picture of one green pixel, as small as they get.
	r.put("p.webp", "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")
	// The same picture as a camera that was held upright writes it: turn it by 90 degrees to see it.
	jpg := r.content("p.jpg")
	exif := "Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	r.put("turned.jpg", jpg[:2]+"\xff\xe1"+string([]byte{0, byte(len(exif) + 2)})+exif+jpg[2:])

	for name, want := range map[string]string{
		"p.png": `"format": "png", "content_type": "image/png", "width": 40, "height": 20, "frames": 1, "orientation": 1`, "p.jpg": `"format": "jpeg", "color_model": "ycbcr"`,
		"p.gif": `"format": "gif", "frames": 3, "color_model": "palette"`, "p.bmp": `"format": "bmp", "width": 40`,
		"p.webp": `"format": "webp", "width": 1, "height": 1`, "turned.jpg": `"orientation": 6`,
	} {
		r.good(imageTool, `{}`, toolCall("image_info", `{"file": "`+name+`"}`), `{"result": {`+want+`}}`)
	}
	result := func(config, tool, args, want string) image.Image {
		t.Helper()
		got := r.good(imageTool, config, toolCall(tool, args), `{"result": `+want+`}`)
		file := got["result"].(map[string]any)["file"].(map[string]any)
		r.mu.Lock()
		data, _ := r.files.Content(file["blob"].(string))
		r.mu.Unlock()
		m, _, err := image.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct{ config, tool, args, want, corners string }{
		{`{}`, "image_resize", `{"file": "p.png", "width": 20}`, `{"width": 20, "height": 10, "file": {"name": "p.png", "content_type": "image/png"}}`, "rgbw"},
		{`{}`, "image_resize", `{"file": "p.png", "width": 10, "height": 10}`, `{"width": 10, "height": 5}`, "rgbw"},
		{`{}`, "image_resize", `{"file": "p.png", "width": 10, "height": 10, "fit": "cover"}`, `{"width": 10, "height": 10}`, "rgbw"},
		{`{}`, "image_resize", `{"file": "p.png", "width": 10, "height": 10, "fit": "fill"}`, `{"width": 10, "height": 10}`, "rgbw"},
		{`{"output_format": "jpeg"}`, "image_crop", `{"file": "p.png", "x": 0, "y": 0, "width": 16, "height": 8}`, `{"width": 16, "height": 8, "file": {"name": "p.jpeg", "content_type": "image/jpeg"}}`, "rrrr"},
		{`{}`, "image_rotate", `{"file": "p.png", "degrees": 90}`, `{"width": 20, "height": 40}`, "wrgb"},
		{`{}`, "image_rotate", `{"file": "p.png", "degrees": -90}`, `{"width": 20, "height": 40}`, "gbwr"},
		{`{}`, "image_rotate", `{"file": "p.png", "degrees": 180}`, `{"width": 40}`, "bwrg"},
		{`{}`, "image_rotate", `{"file": "turned.jpg", "degrees": 0}`, `{"width": 20, "height": 40}`, "wrgb"},
		{`{}`, "image_convert", `{"file": "p.png", "format": "bmp"}`, `{"file": {"content_type": "image/bmp"}}`, "rgbw"},
		{`{}`, "image_convert", `{"file": "p.bmp", "format": "tiff"}`, `{"file": {"content_type": "image/tiff"}}`, "rgbw"},
		{`{}`, "image_convert", `{"file": "p.gif", "format": "png"}`, `{"width": 40}`, "wwww"},
		{`{}`, "image_convert", `{"file": "p.jpg", "format": "gif"}`, `{"width": 40}`, "rgbw"},
	} {
		if got := cornerText(result(c.config, c.tool, c.args, c.want)); got != c.corners {
			t.Errorf("%s %s: corners %s, want %s", c.tool, c.args, got, c.corners)
		}
	}
	for _, c := range []struct {
		config, tool, args string
		code               fault.Code
		part               string
	}{
		{`{}`, "image_resize", `{"file": "p.png"}`, fault.ToolError, "width"},
		{`{}`, "image_resize", `{"file": "p.png", "width": 99999}`, fault.ToolError, "width"},
		{`{"max_pixels": 1000}`, "image_resize", `{"file": "p.png", "width": 40, "height": 40, "fit": "fill"}`, fault.TooLarge, "max_pixels"},
		{`{"max_pixels": 799}`, "image_info", `{"file": "p.png"}`, fault.TooLarge, "max_pixels"},
		{`{}`, "image_crop", `{"file": "p.png", "x": 30, "y": 0, "width": 11, "height": 5}`, fault.ToolError, "inside"},
		{`{}`, "image_rotate", `{"file": "p.png", "degrees": 45}`, fault.ToolError, "90"},
		{`{}`, "image_convert", `{"file": "p.png", "format": "heic"}`, fault.ToolError, "format"},
		{`{}`, "image_info", `{"file": "../p.png"}`, fault.ForbiddenPath, ""},
		{`{}`, "image_info", `{"file": {"base64": "aGVsbG8=", "name": "x.png"}}`, fault.Unsupported, "format"},
		{`{}`, "image_describe", `{"file": "p.png"}`, fault.ToolError, "image_info"},
		{`{"vision_profile": "eyes"}`, "image_describe", `{"file": "p.png", "question": "what?"}`, fault.Unsupported, "profiles"},
	} {
		r.bad(imageTool, c.config, toolCall(c.tool, c.args), c.code, c.part)
	}
	t.Run("Bombs", func(t *testing.T) {
		whole := r.content("p.png")
		// A header that claims four billion pixels; nothing of that size follows.
		r.put("bomb.png", whole[:16]+"\x00\x00\xff\xff\x00\x00\xff\xff"+whole[24:])
		r.put("bomb.gif", "GIF89a\xff\xff\xff\xff\x00\x00\x00;")
		r.put("bomb.bmp", "BM"+strings.Repeat("\x00", 8)+"\x36\x00\x00\x00\x28\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x01\x00\x18\x00"+strings.Repeat("\x00", 24))
		// A canvas of one pixel around a frame of 16383 x 16383.
		r.put("bomb.webp", "RIFF\x2a\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00VP8 \x0a\x00\x00\x00\x10\x00\x00\x9d\x01\x2a\xff\x3f\xff\x3f")
		for _, name := range []string{"bomb.gif", "bomb.bmp", "bomb.webp"} {
			r.bad(imageTool, `{}`, toolCall("image_convert", `{"file": "`+name+`", "format": "png"}`), fault.TooLarge, "pixels")
		}
		if _, err := r.try(t.Context(), imageTool, `{}`, toolCall("image_info", `{"file": "bomb.png"}`)); fault.CodeOf(err) != fault.TooLarge && fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("got %v", err)
		}
		// A tiff file may have one pixel in a part of 65535 x 65535, of which its decoder makes gigabytes: none is read.
		r.bad(imageTool, `{}`, toolCall("image_convert", `{"file": "p.tiff", "format": "bmp"}`), fault.Unsupported, "format")
		// The pixels of a jpeg file again and again.
		scan := jpg[strings.LastIndex(jpg, "\xff\xda") : len(jpg)-2]
		r.put("scans.jpg", jpg[:len(jpg)-2]+strings.Repeat(scan, 100)+jpg[len(jpg)-2:])
		r.bad(imageTool, `{}`, toolCall("image_convert", `{"file": "scans.jpg", "format": "png"}`), fault.TooLarge, "times")
		r.put("cut.png", whole[:len(whole)-20])
		r.bad(imageTool, `{}`, toolCall("image_convert", `{"file": "cut.png", "format": "jpeg"}`), fault.InvalidInput, "damaged")
	})
}
