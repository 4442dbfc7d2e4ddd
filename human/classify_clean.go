package human

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxReply is how much of a reply is read, in bytes. A longer one is never understood.
const maxReply = 256 << 10

// cleaned is what is left of a reply when what its sender did not write now has been taken away. Taking away is the dangerous part: a
// line goes only if it looks like nothing that could change the meaning; what is doubtful stays and is read.
type cleaned struct {
	// text is in the sender's own spelling, lines are normalised.
	text  string
	lines []string
	// quoted says that something was taken away as quoted, struck that something was crossed out, hidden that there are
	// characters that only serve to deceive readers, cut that the reply was too long to read.
	quoted, struck, hidden, cut bool
	// quote are the lines of the nearest message that was quoted, normalised.
	quote []string
}

// patterns are the compiled expressions of the cleaner. Go's run in linear time, whatever the text.
type patterns struct {
	htmlTag, htmlDrop, htmlQuote, htmlBreak, htmlStrike, htmlAny                                                 *regexp.Regexp
	strike, separator, from, header, rule, sentFrom, notice                                                      *regexp.Regexp
	signOff, emphasis, shortcode, dashes, office, noticeHead                                                     *regexp.Regexp
	legalMessage, legalReader, legalDuty, legalSelf                                                              *regexp.Regexp
	mention, box, dated, quotation, rePrefix, autoSubject, autoSure, autoText                                    *regexp.Regexp
	list, sentence, amount, money, becomes, number, either, yesNo, asksFor, shallI, titleList, array, objections *regexp.Regexp
}

func compilePatterns() patterns {
	p := patterns{
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
		sentFrom:  regexp.MustCompile(`^[\s(]*(?:sent (?:from|via|with) (?:my |the )?[\w .+&-]{2,40}|get outlook for [\w ]{2,20}(?:<[^>]*>)?|发自我的[\p{Han}\w .+-]{1,30}|发自[\p{Han}\w .+-]{1,20}|从我的[\p{Han}\w .+-]{1,20}发送|来自[\p{Han}\w .+-]{1,20}(?:邮箱|客户端)|从[\p{Han}\w .+-]{1,20}发送|寄自我的[\p{Han}\w .+-]{1,20}|由[\p{Han}\w .+-]{1,20}(?:发送|发出)|sent from (?:mobile|phone|iphone|ipad))[).。]*$`),
		notice:    regexp.MustCompile(`^\W*(?:confidential(?:ity)?\b.{0,40}|disclaimer\b|legal notice\b|this (?:e-?mail|message|communication|transmission)\b.{0,120}\b(?:confidential|intended|privileged)|the (?:information|contents?)\b.{0,80}\b(?:confidential|privileged|intended)|please consider the environment\b|think before you print|save paper\b|免责声明|保密声明|保密提示|法律声明|(?:本|此)(?:电子)?邮件.{0,40}(?:保密|机密|仅供|仅限|收件人))`),
		// A line that begins a signature says nothing else, but for a name.
		signOff:   regexp.MustCompile(`^(?:(?:with )?(?:best|kind|kindest|warm|warmest|many|my best)? ?(?:regards|wishes)|best|all the best|cheers|sincerely|yours|yours (?:truly|sincerely|faithfully)|sincerely yours|respectfully|cordially|br|b r|rgds|thx|tks|ty|thanks|thank you|many thanks|thanks a lot|thanks so much|thank you so much|thank you very much|thanks again|thanks (?:&|and) (?:best )?regards|thanks and have a (?:good|great|nice) (?:day|one|weekend)|have a (?:good|great|nice) (?:day|one|weekend|evening)|talk soon|take care|此致|敬礼|此致 ?敬礼|顺颂商祺|顺祝商祺|顺颂时祺|顺祝时祺|商祺|祝商祺|祝好|祝 ?好|祝顺利|祝工作顺利|祝您工作顺利|祝 ?工作顺利|祝生活愉快|祝周末愉快|敬上|谨上|拜上|谢谢|多谢|感谢|非常感谢|以上)[,.!~。! ]*$`),
		emphasis:  regexp.MustCompile("[*_`]+"),
		shortcode: regexp.MustCompile(`:[a-z0-9_+-]{1,40}:(?::skin-tone-[2-6]:)?|\[(?:ok|强|赞|弱|微笑|呲牙|玫瑰|抱拳|握手|鼓掌|偷笑|捂脸|笑哭|撇嘴|白眼|鄙视|no|差劲|胜利|愉快|憨笑|thumbsup|thumbsdown)\]`),
	}
	// What chats put below a quotation, and lines of a visiting card that have words of sentences in them.
	p.dashes = regexp.MustCompile(`^(?:- ?){5,}$|^[—–─]{3,}$`)
	p.office = regexp.MustCompile(`(?:有限公司|股份公司|集团|事务所|分公司|研究院|医院|银行)$|(?:电话|手机|传真|分机|邮编|tel|phone|mobile|fax|ext)\W{0,3}[\d+(]|^(?:地址|address)\s*:|^no\. ?\d+[a-z]? [\w ]{2,30}\b(?:road|rd|street|st|lane|avenue|ave|square|park|way)\b`)
	// A notice speaks of the message, of who may read it and of what they must not do, and never of its sender.
	p.legalMessage = regexp.MustCompile(`\b(?:this|the) (?:e-?mail|message|communication|transmission)\b|(?:本|此)(?:电子)?(?:邮件|电邮|信息)`)
	p.legalReader = regexp.MustCompile(`if you are not the (?:intended|named|addressee)|intended (?:only|solely|exclusively) for|received (?:this|it)\b.{0,40}(?:in error|by mistake)|(?:仅供|仅限|非)指定|误收`)
	p.legalDuty = regexp.MustCompile(`confidential|privileged|unauthori[sz]ed|disclos|保密|机密|未经|请勿|不得`)
	p.legalSelf = regexp.MustCompile(`\b(?:i|i'm|i've|i'd|my|me|please (?:remove|change|add|fix|revise|update|reject|approve))\b|我(?:$|[^司方们])`)
	p.noticeHead = regexp.MustCompile(`^\W*(?:confidential(?:ity)?(?: notice)?|disclaimer|legal notice|please consider the environment.{0,60}|think before you print.{0,30}|save paper.{0,40}|免责声明|保密声明|保密提示|法律声明)\W*$`)
	p.compileMore()
	return p
}

// cleanReply takes away quoted mail, signatures and mark-up.
func (w *wording) cleanReply(raw string) cleaned {
	var c cleaned
	if len(raw) > maxReply {
		c.cut = true
		raw = raw[:maxReply]
	}
	raw = strings.ToValidUTF8(raw, "\uFFFD")
	raw = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\v", "\n", "\f", "\n").Replace(raw)
	p := &w.patterns
	if p.htmlTag.MatchString(raw) {
		c.struck = p.htmlStrike.MatchString(raw)
		raw = p.htmlDrop.ReplaceAllString(raw, " ")
		if at := p.htmlQuote.FindStringIndex(raw); at != nil {
			// What follows the end of the quotation was written now; without an end it is all quoted.
			c.quoted = true
			rest := ""
			if end := strings.LastIndex(strings.ToLower(raw), "</blockquote>"); end > at[0] && end+len("</blockquote>") <= len(raw) {
				rest = raw[end+len("</blockquote>"):]
			}
			html := p.htmlAny.ReplaceAllString(p.htmlBreak.ReplaceAllString(raw[at[0]:len(raw)-len(rest)], "\n"), " ")
			for line := range strings.Lines(html) {
				normal, _ := w.normalise(line)
				c.quote = append(c.quote, normal)
			}
			raw = raw[:at[0]] + "\n" + rest
		}
		raw = p.htmlBreak.ReplaceAllString(raw, "\n")
		raw = p.htmlAny.ReplaceAllString(raw, " ")
	}
	raw = html.UnescapeString(raw)

	own := strings.Split(raw, "\n")
	lines := make([]string, len(own))
	for i, line := range own {
		var hidden bool
		lines[i], hidden = w.normalise(line)
		c.hidden = c.hidden || hidden
		c.struck = c.struck || strings.Contains(lines[i], "~") && p.strike.MatchString(lines[i])
	}
	keep := w.unquoted(lines)
	c.quote = append(c.quote, w.nearest(lines, keep)...)
	c.quoted = c.quoted || len(c.quote) > 0
	w.unsigned(lines, keep)
	var text []string
	for i, k := range keep {
		if k {
			c.lines = append(c.lines, lines[i])
			text = append(text, strings.TrimRightFunc(own[i], unicode.IsSpace))
		}
	}
	c.text = strings.TrimSpace(strings.Join(text, "\n"))
	return c
}

// unquoted marks the lines that were written now.
func (w *wording) unquoted(lines []string) []bool {
	p := &w.patterns
	keep := make([]bool, len(lines))
	// after is the next line from i that says something.
	after := func(i int) int {
		for i < len(lines) && lines[i] == "" {
			i++
		}
		return i
	}
	marked := func(i int) bool { return i < len(lines) && strings.HasPrefix(lines[i], ">") }
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" {
			keep[i] = true
			continue
		}
		if marked(i) {
			continue
		}
		if p.separator.MatchString(line) {
			break
		}
		if end := w.chatQuote(lines, i); end > i {
			i = end
			continue
		}
		// An attribution may be broken into up to three lines.
		end := -1
		joined := line
		for n := 0; n < 3 && i+n < len(lines); n++ {
			if n > 0 {
				if lines[i+n] == "" || marked(i+n) {
					break
				}
				joined += " " + lines[i+n]
			}
			if len(joined) > 600 {
				break
			}
			if attribution(joined) && (n == 0 || strings.HasPrefix(joined, "on ") || strings.HasPrefix(joined, "在") || p.dated.MatchString(joined)) {
				end = i + n
				break
			}
		}
		if end >= 0 {
			if marked(after(end + 1)) {
				i = end // the quotation is marked line by line; what follows it was written now
				continue
			}
			break
		}
		if p.from.MatchString(line) || p.header.MatchString(line) {
			headers := 0
			for j := i; j < len(lines) && j < i+8; j++ {
				if p.header.MatchString(lines[j]) {
					headers++
				}
			}
			if headers >= 3 || headers == 2 && p.from.MatchString(line) {
				break
			}
		}
		if p.rule.MatchString(line) && len(line) > 8 {
			// A rule before a header block.
			if n := after(i + 1); n < len(lines) && p.from.MatchString(lines[n]) {
				break
			}
		}
		keep[i] = true
	}
	return keep
}

// nearest are the quoted lines of the outermost message: those that are marked least, up to where another one begins.
func (w *wording) nearest(lines []string, keep []bool) []string {
	depth := func(line string) (n int) {
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
	least := -1
	for i, line := range lines {
		if !keep[i] && line != "" && (least < 0 || depth(line) > 0 && (least == 0 || depth(line) < least)) {
			least = depth(line)
		}
	}
	var out []string
	heads := 0
	for i, line := range lines {
		if keep[i] || line == "" || depth(line) > least && least > 0 {
			continue
		}
		line = strings.TrimLeft(line, "> ")
		if w.patterns.from.MatchString(line) || w.patterns.separator.MatchString(line) || attribution(line) {
			if heads++; heads > 2 && len(out) > 0 {
				break
			}
			continue
		}
		if !w.patterns.header.MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

// chatQuote finds the end of a quotation as chats write it: in corner brackets, with a dashed line below.
func (w *wording) chatQuote(lines []string, i int) int {
	if !strings.HasPrefix(lines[i], "「") {
		return i
	}
	for j := i; j+1 < len(lines) && j < i+40; j++ {
		if strings.HasSuffix(lines[j], "」") && w.patterns.dashes.MatchString(lines[j+1]) {
			return j + 1
		}
	}
	return i
}

// legal finds the end of a paragraph of legal boilerplate.
func (w *wording) legal(lines []string, i int) int {
	end := i
	for end < len(lines) && lines[end] != "" && end < i+30 {
		end++
	}
	p, text := &w.patterns, strings.Join(lines[i:end], " ")
	if len(text) >= 70 && p.legalMessage.MatchString(text) && p.legalReader.MatchString(text) && p.legalDuty.MatchString(text) && !p.legalSelf.MatchString(text) {
		return end
	}
	return i
}

// attribution says whether a line tells who wrote what follows. It has a date or an address, so that "on second thought I wrote: no" is none.
func attribution(line string) bool {
	line = strings.TrimRight(line, ": ")
	for _, end := range []string{" wrote", " writes", "写道", "写到", "来信", "说道"} {
		if strings.HasSuffix(line, end) {
			return len(line) <= 600 && strings.ContainsAny(line, "0123456789@")
		}
	}
	return false
}

// unsigned takes signatures and legal notices away. Below a signature's beginning only such lines go as could stand on a visiting card: what has
// words of a sentence in it may be a postscript.
func (w *wording) unsigned(lines []string, keep []bool) {
	p := &w.patterns
	signed, said := false, false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if !keep[i] || line == "" {
			continue
		}
		switch {
		case p.rule.MatchString(line):
			keep[i] = false
			signed = signed || said
		case p.sentFrom.MatchString(line) && !w.answering(line):
			keep[i] = false
			signed = true
		case said && lines[i-1] == "" && w.legal(lines, i) > i:
			for end := w.legal(lines, i); i < end; i++ {
				keep[i] = false
			}
			i--
		case said && p.notice.MatchString(line) && (p.noticeHead.MatchString(line) || len(line) >= 70 && !p.legalSelf.MatchString(line)):
			for ; i < len(lines) && lines[i] != ""; i++ {
				if keep[i] && !w.answering(lines[i]) {
					keep[i] = false
				}
			}
		case p.signOff.MatchString(line):
			keep[i] = false
			signed = signed || said
		case signed && (w.card(line) || utf8.RuneCountInString(line) <= 60 && p.office.MatchString(line)):
			keep[i] = false
		case said && lines[i-1] == "" && w.nameLine(line):
			keep[i] = false
			signed = true
		default:
			said = true
		}
	}
}

// nameLine says whether a line is somebody's name and nothing else.
func (w *wording) nameLine(line string) bool {
	ts := w.tokens(line)
	if len(ts) == 0 || len(ts) > 3 || w.telling(line) {
		return false
	}
	return clausePlace{line: true, later: true}.name(w, matter{}, ts, w.items(ts)) && !(len(ts) == 1 && !w.names[ts[0].text])
}

// card says whether a line could stand on a visiting card.
func (w *wording) card(line string) bool {
	return utf8.RuneCountInString(line) <= 90 && len(strings.Fields(line)) <= 12 && !w.telling(line)
}

// normalise brings a line into the form that rules are written in: lower case, plain width, simplified, without what cannot
// be seen. Hidden says that it had characters that serve to deceive.
func (w *wording) normalise(line string) (normal string, hidden bool) {
	line = norm.NFKC.String(line)
	var b strings.Builder
	b.Grow(len(line))
	for _, r := range line {
		switch {
		case r >= 0xE0000 && r <= 0xE007F, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			hidden = true // tags, and marks that turn the direction around
			continue
		case r == 0x200D || r == 0xFE0F || r == 0xFE0E || r == 0x20E3 || r >= 0x1F3FB && r <= 0x1F3FF || r == 0x2642 || r == 0x2640:
			continue // parts of emoji: joiners, variants, skin tones, sexes
		case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) || r == 0x115F || r == 0x1160 || r == 0x3164:
			if unicode.Is(unicode.Mn, r) {
				hidden = true // decomposed strokes through letters
			}
			continue
		case unicode.IsSpace(r) || unicode.IsControl(r):
			r = ' '
		case r == '’' || r == '‘' || r == '`' || r == '´' || r == 'ʼ':
			r = '\''
		case r == '…' || r == '⋯':
			b.WriteString("...")
			continue
		}
		if to, ok := w.lookalike[r]; ok {
			hidden = true
			r = to
		} else if to, ok := w.simplified[r]; ok {
			r = to
		}
		b.WriteRune(unicode.ToLower(r))
	}
	s := b.String()
	if !strings.ContainsAny(s, ":[;(^*_") {
		return strings.Join(strings.Fields(s), " "), hidden
	}
	s = w.patterns.shortcode.ReplaceAllStringFunc(s, func(code string) string {
		if e, ok := w.shortcodes[code]; ok {
			return e
		}
		return code
	})
	for _, f := range w.faces {
		s = strings.ReplaceAll(s, f[0], f[1])
	}
	s = w.patterns.emphasis.ReplaceAllStringFunc(s, func(m string) string {
		if len(m) > 3 {
			return m // a rule
		}
		return " "
	})
	return strings.Join(strings.Fields(s), " "), hidden
}
