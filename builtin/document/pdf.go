package document

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/ascii85"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/image/tiff/lzw"

	"tandem/fault"
)

// The text layer of PDF files. Files come from anywhere, so nothing in them is believed: objects are found by scanning
// and not by the file's own table, nesting, work and output are bounded, and whatever cannot be read is passed over.
// There is no drawing here and no recognition of letters in pictures.

const (
	maxPDFDepth   = 48       // of nested values
	maxPDFForms   = 8        // of forms in forms
	maxPDFObjects = 300_000  //
	maxPDFPages   = 5_000    //
	maxPDFInflate = 96 << 20 // of all streams together
	maxPDFStream  = 32 << 20 // of one stream
	maxPDFText    = 4 << 20
	maxPDFHeld    = 2_000_000 // values in lists and dictionaries
	// maxPDFWork is how many bytes are looked at, for every byte of the file and for every byte that streams became.
	maxPDFWork = 10
)

// pdfDoc is a file and what was found in it.
type pdfDoc struct {
	ctx      context.Context
	data     []byte
	where    map[pdfRef]int // of objects that stand in the file itself
	objects  map[pdfRef]any
	work     int
	inflated int
	decoded  map[*byte][]byte // streams that were decoded, by where they begin
	depth    int              // of objects that need another one to be read
	held     int              // values in all objects
}

// errPDFWork ends the reading of a file that costs more than it can be worth.
var errPDFWork = errors.New("the file needs too much work")

func (d *pdfDoc) spend(n int) error {
	if d.work += n; d.work > maxPDFWork*(len(d.data)+d.inflated)+(1<<20) || d.held > maxPDFHeld {
		return errPDFWork
	}
	return d.ctx.Err()
}

// pdfText returns the text layer of a file, page by page. Cut says that there is more.
func pdfText(ctx context.Context, data []byte) (Content, error) {
	unsupported := func(why string) error {
		return fault.Newf(fault.Unsupported, "the PDF file %s", why)
	}
	if head := data[:min(len(data), 1024)]; !bytes.Contains(head, []byte("%PDF-")) {
		return Content{}, fault.New(fault.InvalidInput, "the file is not a PDF, although its name says so")
	}
	d := &pdfDoc{ctx: ctx, data: data, where: map[pdfRef]int{}, objects: map[pdfRef]any{}, decoded: map[*byte][]byte{}}
	root, encrypted, err := d.index()
	var p *pdfPrinter
	pages := 0
	if err == nil && !encrypted {
		p = &pdfPrinter{doc: d, fonts: map[pdfRef]*pdfFont{}}
		pages, err = p.pages(root)
	}
	switch {
	case ctx.Err() != nil:
		return Content{}, fault.New(fault.Timeout, "the PDF file could not be read in time").WithCause(context.Cause(ctx))
	case errors.Is(err, errPDFWork):
		return Content{}, fault.New(fault.TooLarge, "the PDF file takes more work to read than its size allows")
	case err != nil && !errors.Is(err, errPDFEnough):
		return Content{}, err
	case encrypted:
		return Content{}, unsupported("is encrypted; save it without a password")
	}
	c := trimmed(Content{Text: p.out.String(), Parts: p.parts, Pages: pages, Cut: errors.Is(err, errPDFEnough)})
	if c.Text == "" {
		return Content{Pages: pages}, unsupported("has no text layer; it may be a scan, which needs text recognition first")
	}
	return c, nil
}

// index finds all objects, those in streams too, and the catalogue.
func (d *pdfDoc) index() (root any, encrypted bool, err error) {
	if err := d.findObjects(); err != nil {
		return nil, false, err
	}
	var containers []pdfStream
	for _, ref := range slices.Sorted(maps.Keys(d.where)) {
		v, err := d.get(ref)
		if err != nil {
			return nil, false, err
		}
		s, isStream := v.(pdfStream)
		dict, isDict := v.(pdfDict)
		switch {
		case isStream && s.dict["Type"] == pdfName("ObjStm"):
			containers = append(containers, s)
		case isStream && s.dict["Type"] == pdfName("XRef"):
			encrypted = encrypted || s.dict["Encrypt"] != nil
			if r := s.dict["Root"]; r != nil {
				root = r
			}
		case isDict && dict["Type"] == pdfName("Catalog") && root == nil:
			root = ref
		}
	}
	for at := 0; ; {
		i := bytes.Index(d.data[at:], []byte("trailer"))
		if i < 0 {
			break
		}
		at += i + len("trailer")
		l := newPDFLexer(d.data, at, nil)
		if t, ok := l.next(); ok {
			if dict, ok := t.(pdfDict); ok && dict["Root"] != nil {
				root, encrypted = dict["Root"], encrypted || dict["Encrypt"] != nil
			}
		}
		if err := d.spend(l.at - at); err != nil {
			return nil, false, err
		}
	}
	if encrypted {
		return root, true, nil
	}
	for _, s := range containers {
		if err := d.expand(s); err != nil {
			return nil, false, err
		}
	}
	return root, false, nil
}

// findObjects notes where each object begins.
func (d *pdfDoc) findObjects() error {
	mark := []byte("obj")
	for at := 0; ; {
		i := bytes.Index(d.data[at:], mark)
		if i < 0 {
			return nil
		}
		at += i
		if n, ok := objectNumber(d.data[:at]); ok {
			if d.where[n] = at + len(mark); len(d.where) > maxPDFObjects {
				return errPDFWork
			}
		}
		at += len(mark)
	}
}

// objectNumber reads "12 0 " backwards.
func objectNumber(before []byte) (pdfRef, bool) {
	end := len(before)
	number := func() (int, bool) {
		for end > 0 && pdfSpace(before[end-1]) {
			end--
		}
		from := end
		for from > 0 && before[from-1] >= '0' && before[from-1] <= '9' && end-from < 10 {
			from--
		}
		n, err := strconv.Atoi(string(before[from:end]))
		end = from
		return n, err == nil
	}
	if _, ok := number(); !ok {
		return 0, false
	}
	n, ok := number()
	return pdfRef(n), ok && n < maxPDFObjects*10
}

// expand reads the objects that a stream holds. What stands in the file itself counts more.
func (d *pdfDoc) expand(s pdfStream) error {
	content, err := d.decode(s)
	if err != nil {
		return err
	}
	first, _ := s.dict["First"].(float64)
	if first <= 0 || int(first) > len(content) {
		return nil
	}
	l := newPDFLexer(content[:int(first)], 0, nil)
	for len(d.objects) < maxPDFObjects {
		number, ok1 := l.next()
		offset, ok2 := l.next()
		n, ok3 := number.(float64)
		at, ok4 := offset.(float64)
		if !ok1 || !ok2 || !ok3 || !ok4 || at < 0 || first+at > float64(len(content)) {
			return nil
		}
		if _, plain := d.where[pdfRef(n)]; plain {
			continue
		}
		value := newPDFLexer(content, int(first+at), &d.held)
		v, _ := value.next()
		if err := d.spend(value.at - int(first+at) + 1); err != nil {
			return err
		}
		d.objects[pdfRef(n)] = v
	}
	return errPDFWork
}

// get reads an object; one that is not there is nil.
func (d *pdfDoc) get(ref pdfRef) (any, error) {
	if v, ok := d.objects[ref]; ok {
		return v, nil
	}
	at, ok := d.where[ref]
	if !ok || d.depth >= maxPDFDepth {
		return nil, nil
	}
	d.depth++
	defer func() { d.depth-- }()
	d.objects[ref] = nil // what asks for itself gets nothing
	l := newPDFLexer(d.data, at, &d.held)
	v, _ := l.next()
	if dict, isDict := v.(pdfDict); isDict {
		l.skip()
		if bytes.HasPrefix(l.data[l.at:], []byte("stream")) {
			raw, err := d.raw(dict, l.at+len("stream"))
			if err != nil {
				return nil, err
			}
			v = pdfStream{dict, raw}
		}
	}
	d.objects[ref] = v
	return v, d.spend(l.at - at + 1)
}

// raw finds where a stream ends: where its dictionary says, if that is true, else at the next end.
func (d *pdfDoc) raw(dict pdfDict, at int) ([]byte, error) {
	if at < len(d.data) && d.data[at] == '\r' {
		at++
	}
	if at < len(d.data) && d.data[at] == '\n' {
		at++
	}
	at = min(at, len(d.data))
	length, err := d.resolve(dict["Length"])
	if err != nil {
		return nil, err
	}
	end := []byte("endstream")
	if n, ok := length.(float64); ok && n >= 0 && n <= float64(len(d.data)-at) {
		rest := bytes.TrimLeft(d.data[at+int(n):min(len(d.data), at+int(n)+len(end)+4)], "\r\n ")
		if bytes.HasPrefix(rest, end) {
			return d.data[at : at+int(n)], nil
		}
	}
	n := bytes.Index(d.data[at:], end)
	if n < 0 {
		n = len(d.data) - at
	}
	return d.data[at : at+n], d.spend(n)
}

// resolve follows references, not for ever.
func (d *pdfDoc) resolve(v any) (any, error) {
	for range 16 {
		ref, ok := v.(pdfRef)
		if !ok {
			return v, nil
		}
		var err error
		if v, err = d.get(ref); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (d *pdfDoc) dict(v any) (pdfDict, error) {
	v, err := d.resolve(v)
	if s, ok := v.(pdfStream); ok {
		return s.dict, err
	}
	dict, _ := v.(pdfDict)
	return dict, err
}

// decode undoes the filters of a stream. What cannot be decoded is empty, and what breaks off is what came until then.
func (d *pdfDoc) decode(s pdfStream) ([]byte, error) {
	if len(s.raw) == 0 {
		return nil, nil
	}
	if known, ok := d.decoded[&s.raw[0]]; ok {
		return known, nil
	}
	filters, err := d.resolve(s.dict["Filter"])
	if err != nil {
		return nil, err
	}
	list, ok := filters.([]any)
	if !ok && filters != nil {
		list = []any{filters}
	}
	data := s.raw
	for _, f := range list[:min(len(list), 4)] {
		if f, err = d.resolve(f); err != nil {
			return nil, err
		}
		name, _ := f.(pdfName)
		if data, err = d.filter(name, data); err != nil {
			return nil, err
		}
	}
	d.decoded[&s.raw[0]] = data
	return data, d.ctx.Err()
}

func (d *pdfDoc) filter(name pdfName, data []byte) ([]byte, error) {
	var from io.Reader
	switch name {
	case "FlateDecode", "Fl":
		z, err := zlib.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, nil // not what it says it is
		}
		from = z
	case "LZWDecode", "LZW":
		from = lzw.NewReader(bytes.NewReader(data), lzw.MSB, 8)
	case "ASCII85Decode", "A85":
		data, _, _ = bytes.Cut(bytes.TrimPrefix(bytes.TrimSpace(data), []byte("<~")), []byte("~>"))
		from = ascii85.NewDecoder(bytes.NewReader(data))
	case "ASCIIHexDecode", "AHx":
		data, _, _ = bytes.Cut(data, []byte(">"))
		return unhex(data), nil
	default:
		return nil, nil // a picture, or something newer
	}
	out, _ := io.ReadAll(io.LimitReader(from, maxPDFStream)) // what is damaged at its end is still good before it
	if d.inflated += len(out); d.inflated > maxPDFInflate {
		return nil, errPDFWork
	}
	return out, nil
}
