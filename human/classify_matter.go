package human

import (
	"strings"
	"time"
)

// matter is what a question is about, as far as a reply may mention it.
type matter struct {
	words  map[string]bool
	han    string
	groups map[int]bool
	names  map[string]bool
	// any says that the question is called something.
	any bool
}

func (w *wording) matter(t Text) matter {
	m := matter{words: map[string]bool{}, groups: map[int]bool{}, names: map[string]bool{}}
	var hans strings.Builder
	for n, part := range []string{t.Request.Title, t.Request.Description, string(t.Request.Content), string(t.Request.Arguments)} {
		// What it is called may be repeated; of what it contains only numbers may, and what kind of thing it is.
		called := n < 2
		if len(part) > 64<<10 {
			part = strings.ToValidUTF8(part[:64<<10], "")
		}
		normal, _ := w.normalise(part)
		ts := w.tokens(normal)
		for i, one := range ts {
			switch one.kind {
			case tokenNumber:
				m.words[one.text] = true
			case tokenWord:
				if called {
					m.words[one.text] = true
					m.any = true
				}
			case tokenHan:
				if called {
					hans.WriteString(one.text)
					m.any = true
				}
			default:
				hans.WriteByte(' ')
			}
			// Every phrase that begins here counts, since words of a title run into each other.
			at := w.root
			for j := i; j < len(ts); j++ {
				if at = at.next[ts[j].text]; at == nil {
					break
				}
				if at.is == saysDomain {
					m.groups[w.domains[w.keyOf(ts[i:j+1])]] = true
				}
			}
		}
		hans.WriteByte('\n')
	}
	m.han = hans.String()
	local, _, _ := strings.Cut(t.Reply.From, "@")
	for _, part := range []string{t.Reply.Name, local, t.Request.UserMention} {
		normal, _ := w.normalise(part)
		normal = strings.NewReplacer(".", " ", "_", " ").Replace(normal)
		for _, one := range w.tokens(normal) {
			if one.kind == tokenWord {
				m.names[one.text] = true
			}
		}
		if h := strings.ReplaceAll(normal, " ", ""); h != "" {
			m.names[h] = true
		}
	}
	return m
}

// subject looks whether a mail has become one about something else.
func (w *wording) subject(r *reading, about matter, t Text) {
	if t.Reply.Subject == "" || !about.any {
		return
	}
	normal, _ := w.normalise(t.Reply.Subject)
	for {
		rest := w.patterns.rePrefix.ReplaceAllString(normal, "")
		if rest == normal {
			break
		}
		normal = rest
	}
	ts := w.tokens(normal)
	shared, others := false, 0
	for i, one := range ts {
		switch one.kind {
		case tokenWord, tokenNumber:
			if about.words[one.text] {
				shared = true
			} else {
				others++
			}
		case tokenHan:
			if i+1 < len(ts) && ts[i+1].kind == tokenHan {
				if strings.Contains(about.han, one.text+ts[i+1].text) {
					shared = true
				} else {
					others++
				}
			}
		}
	}
	generic := strings.Contains(normal, "approv") || strings.Contains(normal, "request") || strings.Contains(normal, "审批") || strings.Contains(normal, "批准") || strings.Contains(normal, "请求") || strings.Contains(normal, "tandem")
	if others > 0 && !shared && !generic {
		r.veto(vetoSubject, normal)
	}
	for _, it := range w.items(ts) {
		if (it.is == saysRefusal || it.is == saysNo) && !about.words[it.text] && !strings.Contains(about.han, it.text) {
			r.veto(saysNegation.vetoName(), it.text)
		}
	}
}

// automatic says whether no person wrote a reply. Sure is false when a person may have written it about being away.
func (w *wording) automatic(t Text, c cleaned) (found, sure bool) {
	if t.Reply.Automatic {
		return true, true
	}
	subject, _ := w.normalise(t.Reply.Subject)
	if w.patterns.autoSubject.MatchString(subject) {
		return true, true
	}
	body := strings.Join(c.lines, " ")
	if len(body) > 4<<10 {
		body = strings.ToValidUTF8(body[:4<<10], "")
	}
	if w.patterns.autoSure.MatchString(body) {
		return true, true
	}
	return w.patterns.autoText.MatchString(body), false
}

// onTime says how plausible the time of a reply is, and whether it is possible at all.
func onTime(t Text) (score float64, possible bool) {
	if t.Asked.IsZero() || t.Received.IsZero() {
		return 0.8, true
	}
	took := t.Received.Sub(t.Asked)
	switch {
	case took < -5*time.Minute: // clocks differ, but not by so much
		return 0, false
	case t.Request.TimeoutSeconds > 0 && took > time.Duration(t.Request.TimeoutSeconds)*time.Second:
		return 0.3, true
	}
	return 1, true
}
