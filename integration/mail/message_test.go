package mail

import (
	"bytes"
	"encoding/json"
	"net/mail"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"tandem/human"
	"tandem/human/form/formtest"
	"tandem/store"
)

func composed(t *testing.T, change func(*letter)) (header, Mail, string) {
	t.Helper()
	l := letter{
		from: &mail.Address{Name: "Bot", Address: "bot@example.com"}, to: []*mail.Address{{Address: "ann@example.com"}}, read: true,
		now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), message: request(human.Account{Account: store.Account{Workspace: "w1"}}),
	}
	change(&l)
	raw, n, err := l.compose()
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.SplitSeq(raw, []byte("\r\n")) {
		if len(line) > 998 || bytes.ContainsAny(line, "\r\n") {
			t.Errorf("a line of %d bytes: %.80q", len(line), line)
		}
	}
	h, body := splitMail(raw)
	if got := messageIDs(h.get("Message-ID")); len(got) != 1 || got[0] != n.ID {
		t.Errorf("Message-ID %q, noted %q", h.get("Message-ID"), n.ID)
	}
	m, err := ParseMail(raw, Trust{})
	if err != nil {
		t.Fatal(err)
	}
	_, parameters := contentType(h)
	var page string
	for _, part := range splitParts(body, parameters["boundary"]) {
		inner, content := splitMail(part)
		if kind, _ := contentType(inner); kind == "text/html" {
			page = string(decodeBody(inner, content))
		}
	}
	if page == "" {
		t.Fatal("there is no rich form")
	}
	return h, m, page
}

func TestCompose_NothingBreaksOut(t *testing.T) {
	t.Parallel()
	evil := "Pay?\r\nBcc: eve@example.com\r\n\r\n<script>alert(1)</script>\u2028X: y\x00"
	h, m, page := composed(t, func(l *letter) {
		r := &l.message.Request
		r.Title, r.Description, r.UserMention = evil, "<img src=x onerror=alert(1)>", evil
		r.Options = []human.Option{{Value: "a", Label: `"><script>alert(2)</script>`}}
		r.Content = json.RawMessage(`{"x":"</pre><script>alert(3)</script>"}`)
		r.Fields = []human.Field{{Name: "<b>"}}
		l.message.Lines, l.message.Link = []string{evil}, `javascript:alert(1)//"><script>`
		l.message.Interaction.ID, l.message.Interaction.WorkflowName = "i1\r\nX-Evil: 1", evil
		l.from.Name, l.to[0].Name = oneLine(evil), oneLine(evil)
		l.message.ReplyToken = "a]\r\nX-Evil: 1"
		l.message.Earlier = []json.RawMessage{json.RawMessage(`{"message_id":"x\r\nX-Evil: 1","subject":"s\r\nX-Evil: 1"}`), json.RawMessage(`{"message_id":"tandem.59d52a26ad93d9e697eb5aba@example.com\r\nX-Evil: 1"}`)}
	})
	for _, name := range []string{"Bcc", "X", "X-Evil"} {
		if values := h.all(name); len(values) > 0 {
			t.Errorf("%s is %q", name, values)
		}
	}
	if subject := decodeHeader(h.get("Subject")); subject != "Pay? Bcc: eve@example.com <script>alert(1)</script> X: y" {
		t.Errorf("the subject is %q", subject)
	}
	if h.get("References") != "" || strings.Contains(m.Text, "[ref:") {
		t.Errorf("references %q in\n%s", h.get("References"), m.Text)
	}
	z := html.NewTokenizer(strings.NewReader(page))
	for z.Next() != html.ErrorToken {
		token := z.Token()
		if token.Data == "script" || token.Data == "img" || token.Data == "style" || token.Data == "b" {
			t.Errorf("the page has an element %q", token)
		}
		for _, a := range token.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "href" && strings.HasPrefix(a.Val, "javascript") {
				t.Errorf("the page has an attribute %s=%q", a.Key, a.Val)
			}
		}
	}
}

func TestCompose_Languages(t *testing.T) {
	t.Parallel()
	for language, wants := range map[string][]string{
		"zh": {"打开", "请在此时间前处理：2030-01-02 03:04 UTC", "也可以直接回复此邮件"}, "en": {"A button opens the page", "Please answer by 2030-01-02 03:04 UTC", "You can also reply"},
	} {
		_, m, page := composed(t, func(l *letter) {
			l.message.Request.Language, l.message.Request.Title = language, "付款审批 Pay?"
		})
		if m.Subject != "付款审批 Pay? [ref:Tok_en-123]" || !strings.Contains(page, `lang="`+language+`"`) {
			t.Errorf("%s: subject %q", language, m.Subject)
		}
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page lacks %q:\n%s", language, want, page)
			}
		}
		if !strings.Contains(m.Text, wants[1]) || !strings.Contains(m.Text, wants[2]) {
			t.Errorf("%s: the text is\n%s", language, m.Text)
		}
		if strings.Count(page, `href="https://tandem.example.com/respond/abc"`) != 2 || !strings.Contains(page, `content="light dark"`) || strings.Contains(page, "<style") {
			t.Errorf("%s: the page is\n%s", language, page)
		}
	}
}

func TestCompose_Variants(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change       func(*letter)
		want, absent []string
	}{
		"NoLink":      {func(l *letter) { l.message.Link = "" }, []string{"Please reply to this mail", "- Approve", "[ref:Tok_en-123]"}, []string{"Link:"}},
		"NobodyReads": {func(l *letter) { l.read = false }, []string{"replies are not read", "Link:"}, []string{"[ref:"}},
		"HighRisk":    {func(l *letter) { l.message.Request.Risk = "high" }, []string{"a reply by mail does not decide it", "[ref:Tok_en-123]"}, []string{"You can also reply"}},
		"Arguments":   {func(l *letter) { l.message.Request.Arguments = json.RawMessage(`{"iban":"X"}`) }, []string{"What is to be approved:", `"iban": "X"`}, nil},
		"TextContent": {func(l *letter) { l.message.Request.Content = json.RawMessage(`"line 1\nline 2"`) }, []string{"Content:\nline 1\nline 2"}, nil},
		"LongContent": {func(l *letter) { l.message.Request.Content, _ = json.Marshal(strings.Repeat("付", maxShown)) }, []string{"付\n(cut off here"}, nil},
		"Form": {func(l *letter) {
			l.message.Request.Options, l.message.Request.Fields = nil, []human.Field{{Name: "sum", Label: "Sum"}}
		}, []string{"To be filled in:\n- Sum"}, []string{"Options"}},
		"Untitled":     {func(l *letter) { l.message.Request.Title, l.message.Request.Description = "", "" }, []string{"A question is waiting for you"}, nil},
		"Notice":       {func(l *letter) { l.message.Kind, l.message.Lines = human.KindTimeout, []string{"Nobody answered."} }, []string{"Nobody answered."}, []string{"Link:", "Approve"}},
		"ManyOptions":  {func(l *letter) { l.message.Request.Options = make([]human.Option, 50) }, []string{"Link:"}, nil},
		"OddCharacter": {func(l *letter) { l.message.Request.Description = "a\u202eb\x1b[31m" }, []string{"[31m"}, []string{"\x1b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, m, _ := composed(t, test.change)
			for _, want := range test.want {
				if !strings.Contains(m.Text, want) {
					t.Errorf("the text lacks %q:\n%s", want, m.Text)
				}
			}
			for _, absent := range test.absent {
				if strings.Contains(m.Text, absent) {
					t.Errorf("the text has %q:\n%s", absent, m.Text)
				}
			}
		})
	}
}

func TestCompose_Priority(t *testing.T) {
	t.Parallel()
	for priority, want := range map[string]string{"high": "high", "low": "low", "normal": "", "": ""} {
		h, _, _ := composed(t, func(l *letter) { l.priority = priority })
		if got := h.get("Importance"); got != want {
			t.Errorf("%q: importance %q", priority, got)
		}
	}
}

func TestMessageID(t *testing.T) {
	t.Parallel()
	id := messageID("w1", "m1", "tok", "example.com")
	if !isOurs(id) || findToken([]string{id}, "", "") != "tok" {
		t.Errorf("%q is not read again", id)
	}
	if messageID("w2", "m1", "tok", "example.com") == id || messageID("w1", "m1", "", "example.com") == id {
		t.Error("different messages have the same id")
	}
	for _, id := range []string{"", "tandem.", "tandem.abc@x", "tandem.59d52a26ad93d9e697eb5ab@x", "x" + id, "tandem.59d52a26ad93d9e697eb5abz@x"} {
		if isOurs(id) {
			t.Errorf("%q is taken for one of ours", id)
		}
	}
}

func TestCompose_ReadableValues(t *testing.T) {
	t.Parallel()
	_, m, page := composed(t, func(l *letter) {
		l.message.Request.Content, l.message.Request.Arguments = formtest.Value(), formtest.Value()
	})
	formtest.Readable(t, m.Text)
	formtest.Readable(t, page)
}
