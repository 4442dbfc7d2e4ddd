package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/integration/google/googletest"
	"tandem/integration/microsoft/microsofttest"
	"tandem/mailbox/mailboxtest"
)

// TestMail_Services: mailboxes that are read by the API of their service start workflows as those do that are read by IMAP, and their
// credentials are tried there.
func TestMail_Services(t *testing.T) {
	t.Parallel()
	for provider, c := range map[string]struct {
		credential, scope string
		start             func(testing.TB) (string, *mailboxtest.Inbox)
	}{
		"gmail_api":   {"google_oauth", "https://www.googleapis.com/auth/gmail.modify", googletest.Gmail},
		"outlook_api": {"microsoft_oauth", "https://graph.microsoft.com/Mail.ReadWrite", microsofttest.Graph},
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			x := openSite(t)
			address, inbox := c.start(t)
			id := want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", map[string]any{"name": "box", "type": c.credential,
				"data": map[string]any{"token": "first", "scopes": []string{c.scope}, "base_url": address}}), http.StatusCreated).ID
			tried := want[api.CredentialTest](t, x.call(t, "editor", "POST", "/credentials/"+id+"/test", nil), http.StatusOK)
			if !tried.OK || !strings.Contains(tried.Detail, provider) {
				t.Errorf("the credential is tried with %+v", tried)
			}
			letter := func(id string) string {
				return "From: Ann <ann@example.org>\nTo: box@example.com\nMessage-ID: <" + id + "@example.org>\nSubject: Mail " + id + "\nContent-Type: multipart/mixed; boundary=b\n\n" +
					"--b\n\nSee the file.\n--b\nContent-Type: text/csv; name=prices.csv\nContent-Disposition: attachment; filename=prices.csv\n\ntea,12\n--b--\n"
			}
			inbox.Deliver(letter("0")) // it was there before
			flow := mailFlow("letters", `,"email_provider":"`+provider+`"`)
			x.deploys(t, "letters", flow)
			marked := map[string]bool{} // one that two deployments have read is marked twice
			for n := range 3 {
				inbox.Deliver(letter(fmt.Sprint(n + 1)))
				// A deployment goes on where the one before it was, and looks at once.
				want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/letters/deploy", nil), http.StatusOK)
				for len(marked) <= n {
					marked[await(t, "the mark of a mail", inbox.Marked())] = true
				}
			}
			history := want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries?workflow_id=letters", nil), http.StatusOK).Deliveries
			same(t, len(history), 3)
			same(t, history[2].Key, "mid:1@example.org")
			x.reaches(t, history[2].ExecutionID, engine.StatusSuccess)
			out := gjson.ParseBytes(x.read(t, history[2].ExecutionID).NodeExecutions["end"].OutputData["result"])
			same(t, fmt.Sprint(out.Get("subject"), " ", out.Get("body_text"), " ", out.Get("attachments.0.name"), " ", out.Get("sender_verified")), "Mail 1 See the file. prices.csv false")

			// A token that is not taken any more is told, and not shown.
			inbox.Expire("canary-other")
			a := x.call(t, "editor", "POST", "/workflows/letters/deploy", nil)
			if a.status < 400 || strings.Contains(string(a.body), "first") {
				t.Errorf("%d %s", a.status, a.body)
			}
			if tried := want[api.CredentialTest](t, x.call(t, "editor", "POST", "/credentials/"+id+"/test", nil), http.StatusOK); tried.OK || tried.ErrorCode != "credential_invalid" {
				t.Errorf("the credential is tried with %+v", tried)
			}
		})
	}
}
