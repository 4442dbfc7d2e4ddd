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
	strike, separator, from, header, rule, dashes, dated         *regexp.Regexp
	sentFrom, signOff, office                                    *regexp.Regexp
	notice, noticeHead                                           *regexp.Regexp
	// A legal notice speaks of the message, of who may read it and of what they must not do, and never of its sender.
	legalMessage, legalReader, legalDuty, legalSelf *regexp.Regexp
}

func newCleaner(n *normalizer, p *phrases) *cleaner {
	return &cleaner{
		normal: n, phrases: p,

		htmlTag:    regexp.MustCompile(`(?i)<\s*/?\s*(?:html|body|div|p|br|span|blockquote|table|tr|td|a|font|b|i|u|s|strike|del|strong|em|ul|li|style|h[1-6])\b[^<>]*>`),
		htmlDrop:   regexp.MustCompile(`(?is)<(?:style|head|title)\b[^>]*>.*?</(?:style|head|title)\s*>|<!--.*?-->`),
		htmlQuote:  regexp.MustCompile(`(?is)<(?:blockquote\b|div[^>]*\b(?:gmail_quote|yahoo_quoted|moz-cite-prefix|divRplyFwdMsg|appendonsend|isForwardContent)\b)`),
		htmlBreak:  regexp.MustCompile(`(?i)<\s*(?:br\s*/?|/\s*(?:p|div|li|tr|h[1-6]|blockquote))\s*>`),
		htmlStrike: regexp.MustCompile(`(?i)<\s*(?:s|strike|del)\s*>|line-through|display\s*:\s*none|font-size\s*:\s*0`),
		htmlAny:    regexp.MustCompile(`(?s)<\s*/?\s*[a-zA-Z!][^<>]*>`),

		strike:    regexp.MustCompile(`~~[^\s~][^~]*[^\s~]~~|~[a-z][a-z' ]*~`),
		separator: regexp.MustCompile(`^[-=_*\s]{2,}(?:original message|original appointment|original email|forwarded message|forwarded by|reply message|原始邮件|原邮件|原始信件|转发邮件|转发的邮件|回复的原邮件|回复邮件|邮件原件|original)[^\n]{0,60}[-=_*]{2,}\s*$|^begin forwarded message:?$`),
		from:      regexp.MustCompile(`^[*>\s]*(?:from|发件人|寄件者|寄件人|发信人|von|de)\s*[*]*\s*:`),
		header:    regexp.MustCompile(`^[*>\s]*(?:from|sent|date|to|cc|subject|发件人|寄件者|寄件人|发送时间|发送日期|发件时间|日期|时间|收件人|收件者|抄送|主题|主旨|importance|重要性)\s*[*]*\s*:`),
		rule:      regexp.MustCompile(`^(?:[-_=*~]{2,}|[—–─━]{1,})$`),

		sentFrom: regexp.MustCompile(`^[\s(]*(?:sent (?:from|via|with) (?:my |the )?[\w .+&-]{2,40}|get outlook for [\w ]{2,20}(?:<[^>]*>)?|发自我的[\p{Han}\w .+-]{1,30}|发自[\p{Han}\w .+-]{1,20}|从我的[\p{Han}\w .+-]{1,20}发送|来自[\p{Han}\w .+-]{1,20}(?:邮箱|客户端)|从[\p{Han}\w .+-]{1,20}发送|寄自我的[\p{Han}\w .+-]{1,20}|由[\p{Han}\w .+-]{1,20}(?:发送|发出)|sent from (?:mobile|phone|iphone|ipad))[).。]*$`),

		notice:       regexp.MustCompile(`^\W*(?:confidential(?:ity)?\b.{0,40}|disclaimer\b|legal notice\b|this (?:e-?mail|message|communication|transmission)\b.{0,120}\b(?:confidential|intended|privileged)|the (?:information|contents?)\b.{0,80}\b(?:confidential|privileged|intended)|please consider the environment\b|think before you print|save paper\b|免责声明|保密声明|保密提示|法律声明|(?:本|此)(?:电子)?邮件.{0,40}(?:保密|机密|仅供|仅限|收件人))`),
		signOff:      regexp.MustCompile(`^(?:(?:with )?(?:best|kind|kindest|warm|warmest|many|my best)? ?(?:regards|wishes)|best|all the best|cheers|sincerely|yours|yours (?:truly|sincerely|faithfully)|sincerely yours|respectfully|cordially|br|b r|rgds|thx|tks|ty|thanks|thank you|many thanks|thanks a lot|thanks so much|thank you so much|thank you very much|thanks again|thanks (?:&|and) (?:best )?regards|thanks and have a (?:good|great|nice) (?:day|one|weekend)|have a (?:good|great|nice) (?:day|one|weekend|evening)|talk soon|take care|此致|敬礼|此致 ?敬礼|顺颂商祺|顺祝商祺|顺颂时祺|顺祝时祺|商祺|祝商祺|祝好|祝 ?好|祝顺利|祝工作顺利|祝您工作顺利|祝 ?工作顺利|祝生活愉快|祝周末愉快|敬上|谨上|拜上|谢谢|多谢|感谢|非常感谢|以上)[,.!~。! ]*$`),
		dashes:       regexp.MustCompile(`^(?:- ?){5,}$|^[—–─]{3,}$`),
		office:       regexp.MustCompile(`(?:有限公司|股份公司|集团|事务所|分公司|研究院|医院|银行)$|(?:电话|手机|传真|分机|邮编|tel|phone|mobile|fax|ext)\W{0,3}[\d+(]|^(?:地址|address)\s*:|^no\. ?\d+[a-z]? [\w ]{2,30}\b(?:road|rd|street|st|lane|avenue|ave|square|park|way)\b`),
		noticeHead:   regexp.MustCompile(`^\W*(?:confidential(?:ity)?(?: notice)?|disclaimer|legal notice|please consider the environment.{0,60}|think before you print.{0,30}|save paper.{0,40}|免责声明|保密声明|保密提示|法律声明)\W*$`),
		legalMessage: regexp.MustCompile(`\b(?:this|the) (?:e-?mail|message|communication|transmission)\b|(?:本|此)(?:电子)?(?:邮件|电邮|信息)`),
		legalReader:  regexp.MustCompile(`if you are not the (?:intended|named|addressee)|intended (?:only|solely|exclusively) for|received (?:this|it)\b.{0,40}(?:in error|by mistake)|(?:仅供|仅限|非)指定|误收`),
		legalDuty:    regexp.MustCompile(`confidential|privileged|unauthori[sz]ed|disclos|保密|机密|未经|请勿|不得`),
		legalSelf:    regexp.MustCompile(`\b(?:i|i'm|i've|i'd|my|me|please (?:remove|change|add|fix|revise|update|reject|approve))\b|我(?:$|[^司方们])`),
		dated:        regexp.MustCompile(`^(?:于|於)?\s*\d{4}\s*[-/.年]\s*\d{1,2}`),
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
		if end := strings.LastIndex(strings.ToLower(raw), "</blockquote>"); end > at[0] && end+len("</blockquote>") <= len(raw) {
			rest = raw[end+len("</blockquote>"):]
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
		if attribution(text) && (n == 0 || strings.HasPrefix(text, "on ") || strings.HasPrefix(text, "在") || c.dated.MatchString(text)) {
			return i + n
		}
	}
	return -1
}

// attribution says whether a line tells who wrote what follows. It has a date or an address, so that "on second thought I wrote: no" is
// none.
func attribution(line string) bool {
	line = strings.TrimRight(line, ": ")
	for _, end := range []string{" wrote", " writes", "写道", "写到", "来信", "说道"} {
		if strings.HasSuffix(line, end) {
			return len(line) <= 600 && strings.ContainsAny(line, "0123456789@")
		}
	}
	return false
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
		if c.from.MatchString(line) || c.separator.MatchString(line) || attribution(line) {
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
