package google

import (
	"testing"

	"tandem/integration/google/googletest"
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

// TestGmail: mailboxes of Gmail are read as every mailbox is.
func TestGmail(t *testing.T) {
	t.Parallel()
	mailboxtest.Run(t, gmail(newClient(t)), func(t *testing.T) (string, *mailboxtest.Inbox) { return googletest.Gmail(t) })
}

// TestGmail_Labels: a folder is a label, by its name.
func TestGmail_Labels(t *testing.T) {
	t.Parallel()
	address, _ := googletest.Gmail(t)
	box, err := gmail(newClient(t)).Open(mailboxtest.Opened(credentialType, address, "first"))
	if err != nil {
		t.Fatal(err)
	}
	if id, err := box.Locate(t.Context(), "invoices"); id != "box@example.com Label_7" || err != nil {
		t.Errorf("the label is %q, %v", id, err)
	}
}
