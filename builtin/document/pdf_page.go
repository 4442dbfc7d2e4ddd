package document

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// errPDFEnough ends the printing of a file with more text than is wanted.
var errPDFEnough = errors.New("there is enough text")

// pdfPrinter turns pages into text, line by line as they are drawn.
type pdfPrinter struct {
	doc   *pdfDoc
	fonts map[pdfRef]*pdfFont
	out   strings.Builder
	parts []Part // where each page begins
	forms int
	// x and y are where the text is, lineX where its line began; size is that of the font, for what counts as a gap.
	x, y, lineX, leading, size float64
	lastY                      float64
	fresh                      bool // nothing on this page yet
	moved                      bool // since the last text
}

// pages prints all pages below the catalogue in order and says how many there are.
func (p *pdfPrinter) pages(root any) (int, error) {
	catalogue, err := p.doc.dict(root)
	if err != nil {
		return 0, err
	}
	count := 0
	seen := map[pdfRef]bool{}
	var walk func(v any, resources any, depth int) error
	walk = func(v, resources any, depth int) error {
		if ref, ok := v.(pdfRef); ok {
			if seen[ref] {
				return nil
			}
			seen[ref] = true
		}
		n, err := p.doc.dict(v)
		if err != nil || n == nil || depth > maxPDFDepth {
			return err
		}
		if own := n["Resources"]; own != nil {
			resources = own
		}
		kids, err := p.doc.resolve(n["Kids"])
		if err != nil {
			return err
		}
		if list, ok := kids.([]any); ok {
			for _, kid := range list {
				if err := walk(kid, resources, depth+1); err != nil {
					return err
				}
			}
			return nil
		}
		if count++; count > maxPDFPages {
			return errPDFEnough
		}
		return p.page(n, resources, count)
	}
	err = walk(catalogue["Pages"], nil, 0)
	if count > 0 || err != nil {
		return count, err
	}
	// The tree is damaged: take the pages as they come.
	for _, ref := range slices.Sorted(maps.Keys(p.doc.objects)) {
		if n, ok := p.doc.objects[ref].(pdfDict); ok && n["Type"] == pdfName("Page") {
			if err := walk(ref, nil, 0); err != nil {
				return count, err
			}
		}
	}
	return count, nil
}

func (p *pdfPrinter) page(n pdfDict, resources any, number int) error {
	contents, err := p.doc.resolve(n["Contents"])
	if err != nil {
		return err
	}
	parts, ok := contents.([]any)
	if !ok {
		parts = []any{contents}
	}
	var content []byte
	for _, part := range parts {
		v, err := p.doc.resolve(part)
		if err != nil {
			return err
		}
		s, ok := v.(pdfStream)
		if !ok {
			continue
		}
		data, err := p.doc.decode(s)
		if err != nil {
			return err
		}
		if content = append(append(content, data...), '\n'); len(content) > maxPDFStream {
			return errPDFWork
		}
	}
	if p.out.Len() > 0 {
		p.out.WriteString("\n\n")
	}
	p.fresh = true
	p.parts = append(p.parts, Part{Start: p.out.Len(), Page: number})
	return p.print(content, resources, 0)
}

// print carries the text operators of a content stream out.
func (p *pdfPrinter) print(content []byte, resources any, depth int) error {
	res, err := p.doc.dict(resources)
	if err != nil {
		return err
	}
	fonts, err := p.doc.dict(res["Font"])
	if err != nil {
		return err
	}
	font := &pdfFont{}
	l := newPDFLexer(content, 0, nil)
	var args []any
	from := 0
	for {
		v, ok := l.next()
		if err := p.doc.spend(l.at - from); err != nil {
			return err
		}
		from = l.at
		if !ok {
			return nil
		}
		op, isWord := v.(pdfWord)
		if !isWord {
			if args = append(args, v); len(args) > 256 {
				args = args[1:]
			}
			continue
		}
		switch op {
		case "Tf":
			if name, ok := arg(args, 0).(pdfName); ok {
				if font, err = p.font(fonts[name]); err != nil {
					return err
				}
			}
			p.size = math.Abs(numberArg(args, 1))
		case "Do":
			if err := p.form(res, arg(args, 0), depth); err != nil {
				return err
			}
		case "BI": // a picture in the stream itself
			picture := content[l.at:min(len(content), l.at+1<<20)]
			i := bytes.Index(picture, []byte("EI"))
			if i < 0 { // it has no end; what was looked through counts all the same
				if err := p.doc.spend(len(picture)); err != nil {
					return err
				}
			} else {
				l.at += i + 2
			}
		default:
			p.operator(op, args, font)
		}
		args, *l.held = args[:0], 0
		if p.out.Len() > maxPDFText {
			return errPDFEnough
		}
	}
}

func arg(args []any, i int) any {
	if i < len(args) {
		return args[i]
	}
	return nil
}

func numberArg(args []any, i int) float64 {
	n, _ := arg(args, i).(float64)
	return n
}

func (p *pdfPrinter) operator(op pdfWord, args []any, font *pdfFont) {
	switch op {
	case "BT":
		p.x, p.y, p.lineX, p.moved = 0, 0, 0, true
	case "TL":
		p.leading = numberArg(args, 0)
	case "Td", "TD":
		p.lineX += numberArg(args, 0)
		p.x, p.y, p.moved = p.lineX, p.y+numberArg(args, 1), true
		if op == "TD" {
			p.leading = -numberArg(args, 1)
		}
	case "Tm":
		p.x, p.y, p.moved = numberArg(args, 4), numberArg(args, 5), true
		p.lineX = p.x
		if scale := math.Hypot(numberArg(args, 2), numberArg(args, 3)); scale > 1 {
			p.size = scale
		}
	case "T*":
		p.newLine()
	case "'":
		p.newLine()
		p.show(font, arg(args, 0))
	case "\"":
		p.newLine()
		p.show(font, arg(args, 2))
	case "Tj":
		p.show(font, arg(args, 0))
	case "TJ":
		list, _ := arg(args, 0).([]any)
		for _, item := range list {
			if gap, ok := item.(float64); ok && gap < -180 {
				p.space()
			}
			p.show(font, item)
		}
	}
}

func (p *pdfPrinter) newLine() {
	p.x, p.y, p.moved = p.lineX, p.y-max(p.leading, 1), true
}

func (p *pdfPrinter) space() {
	if text := p.out.String(); text != "" && !strings.HasSuffix(text, " ") && !strings.HasSuffix(text, "\n") {
		p.out.WriteByte(' ')
	}
}

// show writes a string. Text that has moved down begins a line; text that was placed anew on the same line is a word.
func (p *pdfPrinter) show(font *pdfFont, v any) {
	s, ok := v.(pdfString)
	if !ok {
		return
	}
	text := font.text(string(s))
	if text == "" {
		return
	}
	switch {
	case p.fresh:
	case p.moved && math.Abs(p.y-p.lastY) > max(0.3*p.size, 0.5):
		p.out.WriteByte('\n')
	case p.moved:
		p.space()
	}
	p.out.WriteString(text)
	p.fresh, p.moved, p.lastY = false, false, p.y
}

// form prints a form, which is content that pages share.
func (p *pdfPrinter) form(res pdfDict, name any, depth int) error {
	n, ok := name.(pdfName)
	objects, err := p.doc.dict(res["XObject"])
	if !ok || err != nil || depth >= maxPDFForms {
		return err
	}
	v, err := p.doc.resolve(objects[n])
	if err != nil {
		return err
	}
	s, ok := v.(pdfStream)
	if !ok || s.dict["Subtype"] != pdfName("Form") {
		return nil
	}
	if p.forms++; p.forms > 20*maxPDFPages {
		return errPDFWork
	}
	data, err := p.doc.decode(s)
	if err != nil {
		return err
	}
	resources := s.dict["Resources"]
	if resources == nil {
		resources = res
	}
	return p.print(data, resources, depth+1)
}

// pdfFont knows what the codes of a font mean.
type pdfFont struct {
	// unicode is the font's own table, by code; widths are how many bytes a code may have.
	unicode map[string]string
	widths  []int
	// glyphs are the codes of a simple font that mean something else than usual.
	glyphs map[byte]string
	wide   bool // codes of two bytes
	decode encoding.Encoding
}

func (p *pdfPrinter) font(v any) (*pdfFont, error) {
	ref, isRef := v.(pdfRef)
	if isRef && p.fonts[ref] != nil {
		return p.fonts[ref], nil
	}
	f := &pdfFont{}
	if isRef {
		p.fonts[ref] = f
	}
	dict, err := p.doc.dict(v)
	if err != nil || dict == nil {
		return f, err
	}
	f.wide = dict["Subtype"] == pdfName("Type0")
	encoding, err := p.doc.resolve(dict["Encoding"])
	if err != nil {
		return f, err
	}
	switch e := encoding.(type) {
	case pdfName:
		f.decode = pdfEncoding(string(e))
	case pdfDict:
		base, _ := e["BaseEncoding"].(pdfName)
		f.decode = pdfEncoding(string(base))
		if f.glyphs, err = p.differences(e["Differences"]); err != nil {
			return f, err
		}
	}
	table, err := p.doc.resolve(dict["ToUnicode"])
	if s, ok := table.(pdfStream); ok && err == nil {
		err = p.table(f, s)
	}
	return f, err
}

// pdfEncoding is what the name of an encoding means, nil for those that need a table.
func pdfEncoding(name string) encoding.Encoding {
	find := func(label string) encoding.Encoding {
		e, err := htmlindex.Get(label)
		if err != nil {
			return nil
		}
		return e
	}
	switch {
	case name == "MacRomanEncoding":
		return charmap.Macintosh
	case strings.Contains(name, "UCS2"), strings.Contains(name, "UTF16"):
		return find("utf-16be")
	case strings.HasPrefix(name, "GBK"), strings.HasPrefix(name, "GB-"):
		return find("gb18030")
	case strings.Contains(name, "RKSJ"):
		return find("shift_jis")
	case strings.HasPrefix(name, "ETen-B5"), strings.HasPrefix(name, "B5"):
		return find("big5")
	case strings.HasPrefix(name, "KSC"):
		return find("euc-kr")
	}
	return nil
}

func (p *pdfPrinter) differences(v any) (map[byte]string, error) {
	v, err := p.doc.resolve(v)
	list, _ := v.([]any)
	glyphs := map[byte]string{}
	code := 0
	for _, item := range list {
		switch item := item.(type) {
		case float64:
			code = int(item)
		case pdfName:
			if text := glyphText(string(item)); text != "" && code >= 0 && code < 256 {
				glyphs[byte(code)] = text
			}
			code++
		}
	}
	return glyphs, err
}

// glyphText is what the name of a glyph stands for, "" when that is not known.
func glyphText(name string) string {
	name, _, _ = strings.Cut(name, ".")
	if len(name) == 1 {
		return name
	}
	for _, prefix := range []string{"uni", "u"} {
		if digits, ok := strings.CutPrefix(name, prefix); ok && len(digits) >= 4 {
			if n, err := strconv.ParseUint(digits, 16, 21); err == nil {
				return string(rune(n))
			}
		}
	}
	const named = ` space:\x20 exclam:! quotedbl:" numbersign:# dollar:$ percent:% ampersand:& quotesingle:' parenleft:( parenright:) asterisk:* plus:+ ` +
		`comma:, hyphen:- period:. slash:/ zero:0 one:1 two:2 three:3 four:4 five:5 six:6 seven:7 eight:8 nine:9 colon:: semicolon:; less:< equal:= ` +
		`greater:> question:? at:@ bracketleft:[ backslash:\ bracketright:] underscore:_ braceleft:{ bar:| braceright:} asciitilde:~ quoteleft:‘ ` +
		`quoteright:’ quotedblleft:“ quotedblright:” endash:– emdash:— bullet:• ellipsis:… fi:fi fl:fl ff:ff ffi:ffi ffl:ffl adieresis:ä odieresis:ö ` +
		`udieresis:ü Adieresis:Ä Odieresis:Ö Udieresis:Ü germandbls:ß eacute:é egrave:è agrave:à ccedilla:ç Euro:€ section:§ degree:° copyright:© `
	if _, rest, ok := strings.Cut(named, " "+name+":"); ok {
		text, _, _ := strings.Cut(rest, " ")
		return strings.ReplaceAll(text, `\x20`, " ")
	}
	return ""
}

// maxPDFCodes is how many codes a table may have, maxPDFLetters how many bytes one of them may mean: a few letters.
const (
	maxPDFCodes   = 70_000
	maxPDFLetters = 64
)

// table reads what codes mean from a font's own table.
func (p *pdfPrinter) table(f *pdfFont, s pdfStream) error {
	data, err := p.doc.decode(s)
	if err != nil {
		return err
	}
	f.unicode = map[string]string{}
	widths := map[int]bool{}
	add := func(code string, text string) {
		if len(code) > 0 && len(code) <= 4 && len(text) <= maxPDFLetters && len(f.unicode) < maxPDFCodes {
			f.unicode[code] = text
			widths[len(code)] = true
		}
	}
	l := newPDFLexer(data, 0, nil)
	var args []any
	for {
		v, ok := l.next()
		if !ok {
			break
		}
		op, isWord := v.(pdfWord)
		if !isWord {
			if len(args) < 3*maxPDFCodes {
				args = append(args, v)
			}
			continue
		}
		switch op {
		case "endbfchar":
			for i := 0; i+1 < len(args); i += 2 {
				code, ok1 := args[i].(pdfString)
				text, ok2 := args[i+1].(pdfString)
				if ok1 && ok2 {
					add(string(code), utf16Text(string(text)))
				}
			}
		case "endbfrange":
			for i := 0; i+2 < len(args) && len(f.unicode) < maxPDFCodes; i += 3 {
				if err := p.doc.spend(bfRange(args[i], args[i+1], args[i+2], add)); err != nil {
					return err
				}
			}
		}
		args, *l.held = args[:0], 0
	}
	f.widths = slices.Sorted(maps.Keys(widths))
	slices.Reverse(f.widths)
	return p.doc.spend(len(data))
}

// bfRange adds a range of codes and says how much work that was.
func bfRange(first, last, to any, add func(code, text string)) int {
	lo, ok1 := first.(pdfString)
	hi, ok2 := last.(pdfString)
	if text, ok := to.(pdfString); ok && len(text) > maxPDFLetters || !ok1 || !ok2 || len(lo) != len(hi) || len(lo) == 0 || len(lo) > 4 {
		return 1
	}
	value := func(s pdfString) (n uint32) {
		for i := range len(s) {
			n = n<<8 | uint32(s[i])
		}
		return n
	}
	from, count := value(lo), min(int64(value(hi))-int64(value(lo))+1, 1<<16)
	for i := range max(count, 0) {
		code := make([]byte, len(lo))
		for at, n := len(code)-1, from+uint32(i); at >= 0; at, n = at-1, n>>8 {
			code[at] = byte(n)
		}
		switch to := to.(type) {
		case []any:
			if text, ok := arg(to, int(i)).(pdfString); ok {
				add(string(code), utf16Text(string(text)))
			}
		case pdfString:
			runes := []rune(utf16Text(string(to)))
			if len(runes) == 0 {
				return 1
			}
			runes[len(runes)-1] += rune(i)
			add(string(code), string(runes))
		}
	}
	return int(max(count, 1))
}

func utf16Text(s string) string {
	units := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return string(utf16.Decode(units))
}

// text is what a string of codes says; codes that mean nothing known are left out.
func (f *pdfFont) text(s string) string {
	var b strings.Builder
	switch {
	case len(f.unicode) > 0:
		for len(s) > 0 && b.Len() <= maxPDFText {
			n := 1
			if f.wide {
				n = min(2, len(s))
			}
			for _, width := range f.widths {
				if width > len(s) {
					continue
				}
				if text, ok := f.unicode[s[:width]]; ok {
					b.WriteString(text)
					n = width
					break
				}
			}
			s = s[n:]
		}
	case f.wide && f.decode == nil:
		return ""
	case f.wide:
		text, err := f.decode.NewDecoder().String(s)
		if err != nil {
			return ""
		}
		b.WriteString(text)
	default:
		decoder := charmap.Windows1252
		if c, ok := f.decode.(*charmap.Charmap); ok {
			decoder = c
		}
		for i := range len(s) {
			if b.Len() > maxPDFText {
				break
			}
			if text, ok := f.glyphs[s[i]]; ok {
				b.WriteString(text)
			} else {
				b.WriteRune(decoder.DecodeByte(s[i]))
			}
		}
	}
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(b.String(), ""))
}
