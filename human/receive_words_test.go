package human

import (
	"strings"
	"testing"

	"tandem/identity"
)

func TestWithoutLinks(t *testing.T) {
	t.Parallel()
	secret := identity.NewSecret()
	link := linkURL("https://tandem.example.org", secret)
	half := len(link) - 20
	for name, text := range map[string]string{
		"Plain":     "> Link: " + link + " \n> bye",
		"Brackets":  "Form<" + link + ">",
		"Markdown":  "[Form](" + link + ")",
		"Broken":    "> " + link[:half] + "\n> > " + link[half:] + "\n> bye",
		"Soft":      link[:half] + "=\r\n" + link[half:],
		"Wrapped":   "https://safe.example/?url=https%3A%2F%2Ftandem.example.org%2Frespond%2F" + secret + "&data=x",
		"Rewritten": "https://defense.example/v2/url?u=https-3A__tandem.example.org_respond_" + strings.NewReplacer("_", "-5F", "-", "-2D").Replace(secret) + "&d=D",
		"Alone":     secret,
	} { // order does not matter: each is for itself
		got := withoutLinks("Fine with me.\n" + text)
		if !strings.HasPrefix(got, "Fine with me.\n") || !strings.Contains(got, "[link]") {
			t.Errorf("%s: %q", name, got)
		}
		tail := secret[len(secret)-12:]
		if strings.Contains(got, tail) || strings.Contains(got, secret[4:16]) {
			t.Errorf("%s: the link can be put together again: %q", name, got)
		}
	}
	if got := withoutLinks("Re: Pay? [ref:" + newReplyToken() + "]"); got != "Re: Pay? [ref]" {
		t.Errorf("%q", got)
	}
	for _, text := range []string{"I respond to this at once, approved.", "Correspondingly: https://example.org/respond yes", "tdm is fine; see [ref: page 3]"} {
		if got := withoutLinks(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// What a reply quotes is read by everybody who reads the question; the link in it would let them answer for who was asked.
func TestDesk_Receive_QuotedLink(t *testing.T) {
	t.Parallel()
	b := openBureau(judged)
	i := b.put(t, byMail(Request{}))
	secret := identity.NewSecret()
	quote := "\n\nOn Monday, Tandem <bot@side.org> wrote:\n> Link: " + linkURL("https://tandem.example.org", secret) + "\n> [ref:" + newReplyToken() + "]\n"
	b.hears(t, mailFrom(i, "out@side.org", "hm"+quote))
	b.hears(t, mailFrom(i, "out@side.org", "yes of course"+quote))
	if len(b.shelf.responses) != 2 || len(b.shelf.deliveries) != 1 {
		t.Fatalf("%d replies, %d messages", len(b.shelf.responses), len(b.shelf.deliveries))
	}
	for _, one := range b.shelf.responses {
		if strings.Contains(one.Raw, secret) || !strings.Contains(one.Raw, "> Link: https://tandem.example.org/respond/[link]\n> [ref]") || strings.Contains(string(one.Data), secret) {
			t.Errorf("kept %q, %s", one.Raw, one.Data)
		}
	}
	if said := string(b.shelf.deliveries[0].Body); !strings.Contains(said, `"said":"hm"`) {
		t.Errorf("asked back about %s", said)
	}
	if v := b.answered(t, i).Get("value"); v.Get("user_response").Str != "yes of course" || v.Get("response_data.notes").Str != "yes of course" {
		t.Errorf("told %s", v.Raw)
	}
}
