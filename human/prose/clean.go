package prose

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxReply is how much of a reply is read, in bytes. A longer one is never understood.
const maxReply = 256 << 10

// Cleaned is what is left of a reply when what its sender did not write now has been taken away. Taking away is the dangerous part: a line
// goes only if it looks like nothing that could change the meaning; what is doubtful stays and is read.
type Cleaned struct {
	// Text is in the sender's own spelling, Lines are normalised.
	Text  string
	Lines []string
	// Struck says that something was crossed out, Hidden that there are characters that only serve to deceive readers, Cut that the reply
	// was too long to read.
	Struck, Hidden, Cut bool
	// Quote are the lines of the nearest message that was quoted, normalised.
	Quote []string
}

// cleaner takes away quoted mail, signatures and mark-up. Go's expressions run in linear time, whatever the text.
type cleaner struct {
	normal  *normalizer
	phrases *phrases

	htmlTag, htmlDrop, htmlQuote, htmlBreak, htmlStrike, htmlAny *regexp.Regexp
	// htmlEnd ends a quotation of a page.
	htmlEnd                                              string
	attributionBegins, attributionEnds                   *regexp.Regexp
	strike, separator, from, header, rule, dashes, dated *regexp.Regexp
	sentFrom, signOff, office                            *regexp.Regexp
	notice, noticeHead                                   *regexp.Regexp
	// A legal notice speaks of the message, of who may read it and of what they must not do, and never of its sender.
	legalMessage, legalReader, legalDuty, legalSelf *regexp.Regexp
}

func newCleaner(w *wordFile, n *normalizer, p *phrases) *cleaner {
	return &cleaner{
		normal: n, phrases: p,

		htmlTag:    w.expression("page tag"),
		htmlDrop:   w.expression("page drop"),
		htmlQuote:  w.expression("page quote"),
		htmlBreak:  w.expression("page break"),
		htmlStrike: w.expression("page strike"),
		htmlAny:    w.expression("page any"),
		htmlEnd:    w.list("page quote end").list[0],

		attributionBegins: w.expression("attribution"),
		attributionEnds:   w.expression("attributes"),

		strike:    w.expression("struck"),
		separator: w.expression("separator"),
		from:      w.expression("from"),
		header:    w.expression("header"),
		rule:      w.expression("rule"),

		sentFrom: w.expression("sent from"),

		notice:       w.expression("notice"),
		signOff:      w.expression("sign off"),
		dashes:       w.expression("dashes"),
		office:       w.expression("office"),
		noticeHead:   w.expression("notice head"),
		legalMessage: w.expression("legal message"),
		legalReader:  w.expression("legal reader"),
		legalDuty:    w.expression("legal duty"),
		legalSelf:    w.expression("legal self"),
		dated:        w.expression("dated"),
	}
}

// clean takes away quoted mail, signatures and mark-up.
func (c *cleaner) clean(raw string) Cleaned {
	var out Cleaned
	if len(raw) > maxReply {
		out.Cut = true
		raw = raw[:maxReply]
	}
	raw = strings.ToValidUTF8(raw, "\uFFFD")
	raw = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\v", "\n", "\f", "\n").Replace(raw)
	if c.htmlTag.MatchString(raw) {
		raw = c.withoutTags(&out, raw)
	}
	own := strings.Split(html.UnescapeString(raw), "\n")
	lines := make([]string, len(own))
	for i, line := range own {
		var hidden bool
		lines[i], hidden = c.normal.line(line)
		out.Hidden = out.Hidden || hidden
		out.Struck = out.Struck || strings.Contains(lines[i], "~") && c.strike.MatchString(lines[i])
	}
	keep := c.unquoted(lines)
	out.Quote = append(out.Quote, c.nearest(lines, keep)...)
	c.unsigned(lines, keep)
	var text []string
	for i, k := range keep {
		if k {
			out.Lines = append(out.Lines, lines[i])
			text = append(text, strings.TrimRightFunc(own[i], unicode.IsSpace))
		}
	}
	out.Text = strings.TrimSpace(strings.Join(text, "\n"))
	return out
}

// withoutTags is the text of a page. What follows the end of a quotation was written now; without an end it is all quoted.
func (c *cleaner) withoutTags(out *Cleaned, raw string) string {
	out.Struck = c.htmlStrike.MatchString(raw)
	raw = c.htmlDrop.ReplaceAllString(raw, " ")
	text := func(raw string) string {
		return c.htmlAny.ReplaceAllString(c.htmlBreak.ReplaceAllString(raw, "\n"), " ")
	}
	if at := c.htmlQuote.FindStringIndex(raw); at != nil {
		rest := ""
		if end := strings.LastIndex(strings.ToLower(raw), c.htmlEnd); end > at[0] && end+len(c.htmlEnd) <= len(raw) {
			rest = raw[end+len(c.htmlEnd):]
		}
		for line := range strings.Lines(text(raw[at[0] : len(raw)-len(rest)])) {
			normal, _ := c.normal.line(line)
			out.Quote = append(out.Quote, normal)
		}
		raw = raw[:at[0]] + "\n" + rest
	}
	return text(raw)
}

// marksQuote says whether a line is marked as quoted.
func marksQuote(lines []string, i int) bool {
	return i < len(lines) && strings.HasPrefix(lines[i], ">")
}

// nextLine is the next line from i that says something.
func nextLine(lines []string, i int) int {
	for i < len(lines) && lines[i] == "" {
		i++
	}
	return i
}

// unquoted marks the lines that were written now.
func (c *cleaner) unquoted(lines []string) []bool {
	keep := make([]bool, len(lines))
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" {
			keep[i] = true
			continue
		}
		if marksQuote(lines, i) {
			continue
		}
		if end := c.chatQuote(lines, i); end > i {
			i = end
			continue
		}
		if end := c.attributed(lines, i); end >= 0 {
			if !marksQuote(lines, nextLine(lines, end+1)) {
				break
			}
			i = end // the quotation is marked line by line; what follows it was written now
			continue
		}
		if c.separator.MatchString(line) || c.headers(lines, i) {
			break
		}
		keep[i] = true
	}
	return keep
}

// attributed is the line in which an attribution ends that begins at i, or -1. It may be broken into up to three lines.
func (c *cleaner) attributed(lines []string, i int) int {
	text := lines[i]
	for n := 0; n < 3 && i+n < len(lines); n++ {
		if n > 0 {
			if lines[i+n] == "" || marksQuote(lines, i+n) {
				return -1
			}
			text += " " + lines[i+n]
		}
		if len(text) > 600 {
			return -1
		}
		if c.attribution(text) && (n == 0 || c.attributionBegins.MatchString(text) || c.dated.MatchString(text)) {
			return i + n
		}
	}
	return -1
}

// attribution says whether a line tells who wrote what follows. It has a date or an address, so that "on second thought I wrote: no" is
// none.
func (c *cleaner) attribution(line string) bool {
	line = strings.TrimRight(line, ": ")
	return len(line) <= 600 && c.attributionEnds.MatchString(line) && strings.ContainsAny(line, "0123456789@")
}

// headers says whether the headers of a quoted mail begin in a line, or a rule above them.
func (c *cleaner) headers(lines []string, i int) bool {
	line := lines[i]
	if c.rule.MatchString(line) && len(line) > 8 {
		next := nextLine(lines, i+1)
		return next < len(lines) && c.from.MatchString(lines[next])
	}
	first := c.from.MatchString(line)
	if !first && !c.header.MatchString(line) {
		return false
	}
	n := 0
	for j := i; j < len(lines) && j < i+8; j++ {
		if c.header.MatchString(lines[j]) {
			n++
		}
	}
	return n >= 3 || n == 2 && first
}

// quoteDepth is how often a line is marked as quoted.
func quoteDepth(line string) (n int) {
	for _, r := range line {
		switch r {
		case '>':
			n++
		case ' ':
		default:
			return n
		}
	}
	return n
}

// nearest are the quoted lines of the outermost message: those that are marked least, up to where another one begins.
func (c *cleaner) nearest(lines []string, keep []bool) []string {
	least := -1
	for i, line := range lines {
		if keep[i] || line == "" {
			continue
		}
		if depth := quoteDepth(line); least < 0 || depth > 0 && (least == 0 || depth < least) {
			least = depth
		}
	}
	var out []string
	heads := 0
	for i, line := range lines {
		if keep[i] || line == "" || quoteDepth(line) > least && least > 0 {
			continue
		}
		line = strings.TrimLeft(line, "> ")
		if c.from.MatchString(line) || c.separator.MatchString(line) || c.attribution(line) {
			if heads++; heads > 2 && len(out) > 0 {
				break
			}
			continue
		}
		if !c.header.MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

// chatQuote finds the end of a quotation as chats write it: in corner brackets, with a dashed line below.
func (c *cleaner) chatQuote(lines []string, i int) int {
	if !strings.HasPrefix(lines[i], "「") {
		return i
	}
	for j := i; j+1 < len(lines) && j < i+40; j++ {
		if strings.HasSuffix(lines[j], "」") && c.dashes.MatchString(lines[j+1]) {
			return j + 1
		}
	}
	return i
}

// unsigned takes signatures and legal notices away. Below a signature's beginning only such lines go as could stand on a visiting card:
// what has words of a sentence in it may be a postscript.
func (c *cleaner) unsigned(lines []string, keep []bool) {
	signed, said := false, false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if !keep[i] || line == "" {
			continue
		}
		if end, whole := c.boilerplate(lines, i, said); end > i {
			for ; i < end; i++ {
				keep[i] = keep[i] && !whole && c.phrases.answering(lines[i])
			}
			i--
			continue
		}
		switch {
		case c.rule.MatchString(line), c.signOff.MatchString(line):
			keep[i] = false
			signed = signed || said
		case c.sentFrom.MatchString(line) && !c.phrases.answering(line), said && lines[i-1] == "" && c.phrases.nameLine(line):
			keep[i] = false
			signed = true
		case signed && c.card(line):
			keep[i] = false
		default:
			said = true
		}
	}
}

// card says whether a line could stand on a visiting card.
func (c *cleaner) card(line string) bool {
	n := utf8.RuneCountInString(line)
	return n <= 60 && c.office.MatchString(line) || n <= 90 && len(strings.Fields(line)) <= 12 && !c.phrases.telling(line)
}

// boilerplate finds the end of a legal notice that begins in a line below what was said. Whole says that nothing else is in it.
func (c *cleaner) boilerplate(lines []string, i int, said bool) (end int, whole bool) {
	if !said {
		return i, false
	}
	if lines[i-1] == "" {
		if end := c.legal(lines, i); end > i {
			return end, true
		}
	}
	line := lines[i]
	if !c.notice.MatchString(line) || !c.noticeHead.MatchString(line) && (len(line) < 70 || c.legalSelf.MatchString(line)) {
		return i, false
	}
	for i < len(lines) && lines[i] != "" {
		i++
	}
	return i, false
}

// legal finds the end of a paragraph of legal boilerplate.
func (c *cleaner) legal(lines []string, i int) int {
	end := i
	for end < len(lines) && lines[end] != "" && end < i+30 {
		end++
	}
	text := strings.Join(lines[i:end], " ")
	if len(text) >= 70 && c.legalMessage.MatchString(text) && c.legalReader.MatchString(text) && c.legalDuty.MatchString(text) &&
		!c.legalSelf.MatchString(text) {
		return end
	}
	return i
}
