package file_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tandem/fault"
)

const loader = "ACTION.DOCUMENT_LOADER"

// Documents are told with their parts: pages, sections, sheets and rows, by characters of the text.
func TestLoader_Parts(t *testing.T) {
	t.Parallel()
	r := newFileRig(t, http.NotFound)
	r.put("two.pdf", makePDF("<</Root 1 0 R>>", "<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [3 0 R 4 0 R] /Resources <</Font <</F1 7 0 R>>>>>>",
		"<</Type /Page /Contents 5 0 R>>", "<</Type /Page /Contents 6 0 R>>", pdfStream("", "BT /F1 9 Tf (caf\\351) Tj ET"), pdfStream("", "BT /F1 9 Tf (second) Tj ET"), winFont))
	r.put("doc.docx", makeOffice(t, map[string]string{
		"word/styles.xml": `<w:styles><w:style w:styleId="1"><w:name w:val="heading 1"/></w:style><w:style w:styleId="2"><w:name w:val="heading 2"/></w:style><w:style w:styleId="a"><w:name w:val="Normal"/></w:style></w:styles>`,
		"word/document.xml": `<w:document><w:body><w:p><w:r><w:t>Before</w:t></w:r></w:p>` +
			`<w:p><w:pPr><w:pStyle w:val="1"/></w:pPr><w:r><w:t>假期</w:t></w:r></w:p><w:p><w:pPr><w:pStyle w:val="a"/></w:pPr><w:r><w:t>25 days</w:t></w:r></w:p>` +
			`<w:p><w:pPr><w:pStyle w:val="2"/></w:pPr><w:r><w:t>Part time</w:t></w:r></w:p><w:p><w:r><w:t>10 days</w:t></w:r></w:p></w:body></w:document>`,
	}))
	r.put("book.xlsx", makeOffice(t, map[string]string{
		"xl/workbook.xml":            `<workbook xmlns:r="r"><sheets><sheet name="Prices" r:id="r1"/><sheet name="Stock" r:id="r2"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="r1" Target="worksheets/1.xml"/><Relationship Id="r2" Target="worksheets/2.xml"/></Relationships>`,
		"xl/worksheets/1.xml":        `<worksheet><row><c r="A1"><v>1</v></c></row></worksheet>`,
		"xl/worksheets/2.xml":        `<worksheet><row><c r="A1"><v>2</v></c></row></worksheet>`,
	}))
	r.put("notes.md", "# A\nx\n```\n# not one\n```\n### C ###\ny\n## B\nz\n#tag\n")
	r.put("page.html", "<title>t</title><body>top<h1>One</h1><p>a</p><h2><b>Two</b> more</h2><script>x</script><p>b")
	r.put("list.csv", "name;city\nAnn;Bern\n\"Bo;b\";\n")
	r.put("plain", "just text")
	for name, want := range map[string]string{
		"two.pdf":   `{"format": "pdf", "text": "café\n\nsecond", "pages": 2, "characters": 12, "parts": [{"start": 0, "end": 6, "page": 1}, {"start": 6, "end": 12, "page": 2}]}`,
		"doc.docx":  `{"text": "Before\n假期\n25 days\nPart time\n10 days", "parts": [{"start": 7, "end": 18, "section": "假期"}, {"start": 18, "end": 35, "section": "假期 > Part time"}]}`,
		"book.xlsx": `{"text": "# Prices\n1\n\n# Stock\n2", "pages": 2, "parts": [{"start": 0, "end": 12, "section": "Prices"}, {"start": 12, "end": 21, "section": "Stock"}]}`,
		"notes.md":  `{"format": "md", "characters": 48, "parts": [{"start": 0, "section": "A"}, {"start": 24, "end": 36, "section": "A > C"}, {"start": 36, "end": 48, "section": "A > B"}]}`,
		"page.html": `{"text": "t\ntop\nOne\na\nTwo more\nb", "parts": [{"start": 6, "end": 12, "section": "One"}, {"start": 12, "section": "One > Two more"}]}`,
		"list.csv":  `{"text": "name: Ann; city: Bern\nname: Bo;b", "parts": [{"start": 0, "end": 22, "row": 1}, {"start": 22, "row": 2}]}`,
		"plain":     `{"format": "txt", "document": "plain", "title": "plain", "text": "just text", "parts": [], "truncated": false}`,
	} {
		r.good(loader, `{}`, `{"file": "`+name+`"}`, want)
	}
	r.good(loader, `{"document": "d", "title": "T", "format": "md"}`, `{"file": {"name": "x.bin", "base64": "IyBI"}}`, `{"document": "d", "title": "T", "format": "md", "parts": [{"section": "H"}]}`)
	r.good(loader, `{}`, `{"file": {"name": "x", "content_type": "text/html; charset=utf-8", "base64": "PHA+aGk="}}`, `{"format": "html", "text": "hi"}`)
}

// Hostile and unreadable files are refused, each with what is wrong with it, and large ones are cut.
func TestLoader_Refuses(t *testing.T) {
	t.Parallel()
	r := newFileRig(t, http.NotFound)
	r.put("bomb.docx", makeOffice(t, map[string]string{"word/document.xml": "<w:t>" + strings.Repeat(" ", 40<<20) + "</w:t>"}))
	r.put("scan.pdf", onePage(pdfStream("", "q Q"), winFont))
	r.put("nested.pdf", makePDF("<</Root 1 0 R>>", strings.Repeat("[", 200_000)))
	r.put("fake.docx", "PK\x03\x04")
	r.put("old.doc", "\xd0\xcf\x11\xe0\x00\x00")
	r.put("binary.txt", "a\x00b")
	r.put("long.txt", strings.Repeat("é", 3<<20))
	r.put("rows.csv", "a,b\n"+strings.Repeat("1,2\n", 30_000))
	for name, code := range map[string]fault.Code{
		"bomb.docx": fault.TooLarge, "scan.pdf": fault.Unsupported, "nested.pdf": fault.Unsupported, "fake.docx": fault.InvalidInput, "old.doc": fault.Unsupported,
		"binary.txt": fault.Unsupported, "../up.txt": fault.ForbiddenPath, "none.txt": fault.NotFound,
	} {
		r.bad(loader, `{}`, `{"file": "`+name+`"}`, code, "")
	}
	r.bad(loader, `{"max_bytes": 2}`, `{"file": "binary.txt"}`, fault.TooLarge, "max_bytes")
	r.bad(loader, `{}`, `{}`, fault.ParameterMissing, "file")
	r.good(loader, `{}`, `{"file": "long.txt"}`, fmt.Sprintf(`{"characters": %d, "truncated": true}`, 2<<20))
	got := r.good(loader, `{}`, `{"file": "rows.csv"}`, `{"truncated": false}`)
	if parts := got["parts"].([]any); len(parts) != 20_000 {
		t.Errorf("%d parts", len(parts))
	}
}
