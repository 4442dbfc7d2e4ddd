package mail

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/mailbox"
	"tandem/payload"
)

// emailCriteria is what a mail must have. A text must be part of the field, in any letter case; of a list, one of its texts.
type emailCriteria struct {
	From           json.RawMessage `json:"from" takes:"text|list" fixed:"true" doc:"A text, or one of several, that the address or the name of the sender must have." zh:"发件人地址或名称须包含的文本（或其中之一）。"`
	To             json.RawMessage `json:"to" takes:"text|list" fixed:"true" doc:"A text, or one of several, that To or Cc must have." zh:"收件人或抄送须包含的文本（或其中之一）。"`
	Subject        json.RawMessage `json:"subject" takes:"text|list" fixed:"true" doc:"A text, or one of several, that the subject must have." zh:"主题须包含的文本（或其中之一）。"`
	Body           json.RawMessage `json:"body" takes:"text|list" fixed:"true" doc:"A text, or one of several, that the text must have." zh:"正文须包含的文本（或其中之一）。"`
	Headers        json.RawMessage `json:"headers" takes:"object" fixed:"true" doc:"Headers by their names, each with a text, or several of which one counts, that it must have." zh:"邮件头：名称及其须包含的文本（或其中之一）。"`
	HasAttachments *bool           `json:"has_attachments" fixed:"true" doc:"Whether it must have attachments, or must not." zh:"是否须有（或须无）附件。"`
}

// criteriaProblem is what is wrong with a field.
type criteriaProblem struct{ field, reason string }

func (c emailCriteria) problems() (list []criteriaProblem) {
	check := func(field string, raw json.RawMessage) {
		if texts, ok := textsOf(raw); !ok {
			list = append(list, criteriaProblem{field, "must be a text or a list of texts, none of them empty"})
		} else if len(texts) == 0 && !payload.IsNull(raw) {
			list = append(list, criteriaProblem{field, "has no text; leave it out"})
		}
	}
	check("from", c.From)
	check("to", c.To)
	check("subject", c.Subject)
	check("body", c.Body)
	for _, m := range payload.Members(c.Headers) {
		check("headers."+m.Key, m.Value)
	}
	return list
}

// textsOf reads a text or a list of texts; nothing is not text.
func textsOf(raw json.RawMessage) (texts []string, ok bool) {
	if payload.IsNull(raw) {
		return nil, true
	}
	value := gjson.ParseBytes(raw)
	items := []gjson.Result{value}
	if value.IsArray() {
		items = value.Array()
	}
	for _, item := range items {
		if item.Type != gjson.String || item.Str == "" {
			return nil, false
		}
		texts = append(texts, item.Str)
	}
	return texts, true
}

// has says whether one of the places has one of the texts. Without texts everything does.
func has(raw json.RawMessage, places ...string) bool {
	texts, _ := textsOf(raw)
	return len(texts) == 0 || hasOne(texts, places...)
}

func hasOne(texts []string, places ...string) bool {
	for _, place := range places {
		place = strings.ToLower(place)
		for _, text := range texts {
			if strings.Contains(place, strings.ToLower(text)) {
				return true
			}
		}
	}
	return false
}

// unwanted says why a mail starts nothing; empty: it does. What it says names no content of the mail: who reads the history may not be
// meant to read the mailbox.
func (c *emailConfig) unwanted(l *incoming) string {
	switch {
	case l.mail.Own:
		return "it is a message of Tandem itself"
	case l.answersQuestion():
		return "it answers a question of Tandem; the mail channel takes it"
	case l.automaticReply():
		return "it is an automatic reply"
	case len(c.Senders) > 0 && !mailbox.Listed(c.Senders, l.mail.From):
		return "its sender is not in sender_whitelist"
	case c.VerifiedOnly && !l.mail.Verified:
		return "the receiving server does not vouch for its sender, and verified_senders_only is set"
	case len(c.Keywords) > 0 && !hasOne(c.Keywords, l.mail.Subject):
		return "its subject has none of subject_keywords"
	}
	if field := c.Criteria.misses(l); field != "" {
		return fmt.Sprintf("it does not fit filter_criteria.%s", field)
	}
	return ""
}

// misses is the first field that a mail does not fit; empty: it fits. What only the whole mail shows is not looked at in a beginning.
func (c emailCriteria) misses(l *incoming) string {
	switch {
	case !has(c.From, l.mail.From, l.mail.Name):
		return "from"
	case !has(c.To, append(l.addresses("To"), l.addresses("Cc")...)...):
		return "to"
	case !has(c.Subject, l.mail.Subject):
		return "subject"
	}
	for _, m := range payload.Members(c.Headers) {
		var written []string
		for _, value := range l.header.all(m.Key) {
			written = append(written, decodeHeader(value))
		}
		if !has(m.Value, written...) {
			return "headers." + m.Key
		}
	}
	switch {
	case !l.whole:
		return ""
	case !has(c.Body, l.mail.Text):
		return "body"
	case c.HasAttachments != nil && *c.HasAttachments != (len(l.files) > 0):
		return "has_attachments"
	}
	return ""
}
