package prose

import (
	"strings"
	"unicode"
)

// clause is a part of a reply that says one thing.
type clause struct {
	text string
	// asked ends with a question mark, trails with dots; contrast begins with "but", reason with "because".
	asked, trails, contrast, reason bool
	// labels ends with a colon: what follows may be somebody's words, or about one of several.
	labels bool
	// sentence, line and paragraph count from the beginning.
	sentence, line, paragraph int
}

// clauses splits a reply. Lines are written out; an empty one ends a paragraph.
func (r *Reader) clauses(lines []string) []clause {
	var out []clause
	sentence, paragraph := 0, 0
	for n, line := range lines {
		if strings.TrimSpace(line) == "" {
			paragraph++
			continue
		}
		first := len(out)
		for _, part := range r.lex.splitMarks(line) {
			for turn, text := range r.splitTurns(part.text) {
				c := clause{text: text, sentence: sentence, line: n, paragraph: paragraph, asked: part.asked,
					trails: part.trails, labels: part.labels}
				c.opening(r.lex)
				if c.text != "" || c.asked || c.trails && (turn == 0 || c.contrast) {
					out = append(out, c)
				}
			}
			if part.ends {
				sentence++
			}
		}
		sentence++
		if len(out) == first+1 {
			out[first].labels = out[first].labels || r.stamped.MatchString(line) // who said it when
		}
	}
	return out
}

// writtenOut is a line without short forms and slips, and with a mark for words that are mentioned, not said.
func (r *Reader) writtenOut(line string) string {
	return r.inFull(r.quotations.ReplaceAllString(line, " 〃 "))
}

// inFull is a line without short forms and slips.
func (r *Reader) inFull(line string) string {
	for _, c := range r.contractions {
		line = c.short.ReplaceAllString(line, c.long)
	}
	return r.spelled(line)
}

// spelled corrects slips in words that decide.
func (r *Reader) spelled(line string) string {
	return r.words.ReplaceAllStringFunc(line, func(word string) string {
		if right, ok := r.slips[word]; ok {
			return right
		}
		return word
	})
}

// opening notes how a clause begins.
func (c *clause) opening(x *lexicon) {
	for _, word := range x.contrasts.list {
		if c.text == strings.TrimSpace(word) {
			c.contrast, c.trails, c.text = true, true, "" // what was to follow is not said
			return
		}
		if rest, ok := strings.CutPrefix(c.text, word); ok {
			c.contrast = true
			c.text = strings.TrimSpace(rest)
			return
		}
	}
	c.reason = x.reasons.starts(c.text)
}

// marked is a part of a line and the mark that ends it.
type marked struct {
	text                        string
	asked, trails, ends, labels bool
}

func (x *lexicon) splitMarks(line string) []marked {
	rs := []rune(line)
	var out []marked
	from := 0
	for i := 0; i <= len(rs); i++ {
		if i < len(rs) && !x.breaks(rs, i) {
			continue
		}
		part := marked{text: x.plain(string(rs[from:i]))}
		j := i
		for ; j < len(rs) && x.breaks(rs, j); j++ {
			part.asked = part.asked || rs[j] == '?' || rs[j] == '？'
			part.labels = part.labels || (rs[j] == ':' || rs[j] == '：') && j+1 < len(rs)
			part.ends = part.ends || strings.ContainsRune(".!?。！？;；", rs[j])
		}
		part.trails = strings.Contains(string(rs[i:j]), "..") || strings.Contains(string(rs[i:j]), "。。")
		if part.text != "" || part.asked || part.trails {
			out = append(out, part)
		}
		from = j
		i = max(i, j-1)
	}
	return out
}

// breaks says whether a clause ends at a character. Points in numbers and dashes in words do not end one.
func (x *lexicon) breaks(rs []rune, i int) bool {
	if unicode.Is(unicode.So, rs[i]) && !strings.ContainsRune(x.telling, rs[i]) {
		return true
	}
	switch r := rs[i]; r {
	case ',', ';', ':', '!', '?', '(', ')', '。', '、', '，', '；', '：', '！', '？', '（', '）', '–', '—', '【', '】', '"', '“', '”', '|', '•':
		return true
	case '.', '-':
		if r == '-' && i+1 < len(rs) && rs[i+1] == '1' && (i+2 == len(rs) || !unicode.IsDigit(rs[i+2])) && (i == 0 || rs[i-1] == ' ') {
			return false // a vote
		}
		return i+1 == len(rs) || i == 0 || !wordRune(rs[i+1]) || !wordRune(rs[i-1])
	}
	return false
}

func wordRune(r rune) bool { return unicode.IsLetter(r) && r < 0x2E80 || unicode.IsDigit(r) }

// plain is a text without signs that only decorate it.
func (x *lexicon) plain(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '+' || r == '/' || strings.ContainsRune(x.deciding, r):
			return r
		case r == '~' || r == '～' || r == '\'' || r == '*' || r == '#' ||
			strings.ContainsRune(x.decorating, r) || unicode.Is(unicode.Sk, r):
			return ' '
		}
		return r
	}, s)
	for _, sign := range x.deciding {
		s = strings.ReplaceAll(s, string(sign), " "+string(sign)+" ")
	}
	fields := strings.Fields(s)
	var b strings.Builder
	for i, f := range fields {
		// Beside Chinese characters a space says nothing.
		if i > 0 && !isHan(lastRune(fields[i-1])) && !isHan(firstRune(f)) {
			b.WriteByte(' ')
		}
		b.WriteString(f)
	}
	return b.String()
}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return 0
}

func lastRune(s string) (last rune) {
	for _, r := range s {
		last = r
	}
	return last
}

// splitTurns splits before words that turn.
func (r *Reader) splitTurns(text string) []string {
	var out []string
	from := 0
	for _, at := range r.turning.FindAllStringIndex(text, -1) {
		if at[0] == 0 || r.lex.unturned.ends(text[:at[0]]) {
			continue
		}
		out = append(out, strings.TrimSpace(text[from:at[0]]))
		from = at[0]
	}
	return append(out, strings.TrimSpace(text[from:]))
}
