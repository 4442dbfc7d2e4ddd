package microsoft

import (
	"strings"
	"testing"

	"tandem/integration/microsoft/microsofttest"
	"tandem/mailbox/mailboxtest"
	"tandem/outbound"
)

func newClient(t *testing.T) *outbound.Client {
	t.Helper()
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	client := outbound.New(outbound.Options{Allow: allow})
	t.Cleanup(client.Close)
	return client
}

// TestOutlook: mailboxes of Outlook are read as every mailbox is.
func TestOutlook(t *testing.T) {
	t.Parallel()
	mailboxtest.Run(t, outlook(newClient(t)), func(t *testing.T) (string, *mailboxtest.Inbox) { return microsofttest.Graph(t) })
}

// TestOutlook_Folders: a folder in another one is named by its path, and an address that is not that of the service is not called.
func TestOutlook_Folders(t *testing.T) {
	t.Parallel()
	address, _ := microsofttest.Graph(t)
	box, err := outlook(newClient(t)).Open(mailboxtest.Opened(credentialType, address, "first"))
	if err != nil {
		t.Fatal(err)
	}
	if id, err := box.Locate(t.Context(), "Ann's mail/Invoices"); id != "AAMk/Invoices" || err != nil {
		t.Errorf("the folder is %q, %v", id, err)
	}
	for _, elsewhere := range []string{"http://127.0.0.1:1/v1.0/me", "https" + strings.TrimPrefix(address, "http") + "/v1.0/me"} {
		if _, err := box.News(t.Context(), "x", elsewhere); err == nil || !strings.Contains(err.Error(), "not its own") {
			t.Errorf("%s: %v", elsewhere, err)
		}
	}
}
