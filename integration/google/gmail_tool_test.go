package google

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/workflow"
)

// gmailFake is the Gmail API for mail that is written. It refuses what the real one refuses.
type gmailFake struct {
	t        testing.TB
	mu       sync.Mutex
	messages []map[string]any
}

func newGmailFake(t testing.TB) http.Handler {
	f := &gmailFake{t: t}
	page := base64.URLEncoding.EncodeToString([]byte("<p>Please <b>pay</b></p>"))
	head := func(from, subject string) []any {
		return []any{
			map[string]any{"name": "From", "value": from}, map[string]any{"name": "To", "value": "box@example.com"}, map[string]any{"name": "Subject", "value": subject},
			map[string]any{"name": "Message-Id", "value": "<one@example.org>"}, map[string]any{"name": "References", "value": "<zero@example.org>\r\n <half@example.org>"},
		}
	}
	f.messages = []map[string]any{
		{"id": "m1", "threadId": "t1", "labelIds": []any{"INBOX", "UNREAD"}, "snippet": "Please pay", "internalDate": "1795161600000", "payload": map[string]any{"mimeType": "multipart/mixed", "headers": head("Ann <ann@example.org>", "Rechnung über 7"), "parts": []any{
			map[string]any{"mimeType": "multipart/alternative", "filename": "", "parts": []any{
				map[string]any{"mimeType": "text/plain", "filename": "", "body": map[string]any{"data": base64.URLEncoding.EncodeToString([]byte("Please pay 120 €\n"))}},
				map[string]any{"mimeType": "text/html", "filename": "", "body": map[string]any{"data": page}},
			}},
			map[string]any{"mimeType": "application/pdf", "filename": "invoice.pdf", "body": map[string]any{"attachmentId": "a1", "size": 7}},
		}}},
		{"id": "m2", "threadId": "t2", "labelIds": []any{"INBOX"}, "payload": map[string]any{"mimeType": "text/html", "headers": head("bob@example.org", "Re: Lunch"), "body": map[string]any{"data": page}}},
	}
	m := http.NewServeMux()
	for pattern, serve := range map[string]http.HandlerFunc{
		"GET /messages": f.list, "GET /messages/{id}": f.get, "POST /messages/{id}/modify": f.modify, "POST /messages/send": func(w http.ResponseWriter, r *http.Request) { f.take(w, r, "SENT") },
		"POST /drafts": func(w http.ResponseWriter, r *http.Request) { f.take(w, r, "DRAFT") },
		"GET /labels": func(w http.ResponseWriter, _ *http.Request) {
			actiontest.Write(t, w, 200, map[string]any{"labels": []any{map[string]any{"id": "INBOX", "name": "INBOX"}, map[string]any{"id": "UNREAD", "name": "UNREAD"}, map[string]any{"id": "Label_7", "name": "Invoices"}}})
		},
	} {
		method, path, _ := strings.Cut(pattern, " ")
		m.HandleFunc(method+" /gmail/v1/users/me"+path, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "+actiontest.Token) {
				refuse(t, w, 401, "authError", "Invalid Credentials")
				return
			}
			serve(w, r)
		})
	}
	return m
}

func (f *gmailFake) find(w http.ResponseWriter, r *http.Request) map[string]any {
	i := slices.IndexFunc(f.messages, func(m map[string]any) bool { return m["id"] == r.PathValue("id") })
	if i < 0 {
		refuse(f.t, w, 404, "notFound", "Requested entity was not found.")
		return nil
	}
	return f.messages[i]
}

// list knows words of subjects, and where mail is; the times of these searches are not looked at.
func (f *gmailFake) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query().Get("q")
	found := []any{}
	for _, m := range slices.Backward(f.messages) {
		labels := fmt.Sprint(m["labelIds"])
		box, _, inBox := strings.Cut(strings.TrimPrefix(query, "in:"), " after:")
		if inBox && strings.Contains(labels, map[string]string{"sent": "SENT", "drafts": "DRAFT"}[box]) || !inBox && strings.Contains(fmt.Sprint(m["payload"]), query) {
			found = append(found, map[string]any{"id": m["id"], "threadId": m["threadId"]})
		}
	}
	page, more := actiontest.Part(found, 0, actiontest.Number(r, "maxResults", 100))
	answer := map[string]any{"resultSizeEstimate": len(found), "messages": page}
	if more {
		answer["nextPageToken"] = "more"
	}
	actiontest.Write(f.t, w, 200, answer)
}

func (f *gmailFake) get(w http.ResponseWriter, r *http.Request) {
	m := f.find(w, r)
	if m == nil {
		return
	}
	if r.URL.Query().Get("format") == "metadata" {
		m = maps.Clone(m)
		head := []any{}
		for _, h := range m["payload"].(map[string]any)["headers"].([]any) {
			name := h.(map[string]any)["name"].(string)
			if slices.ContainsFunc(r.URL.Query()["metadataHeaders"], func(wanted string) bool { return strings.EqualFold(wanted, name) }) {
				head = append(head, h)
			}
		}
		m["payload"] = map[string]any{"mimeType": "text/plain", "headers": head}
	}
	actiontest.Write(f.t, w, 200, m)
}

func (f *gmailFake) modify(w http.ResponseWriter, r *http.Request) {
	m := f.find(w, r)
	if m == nil {
		return
	}
	body := actiontest.Read(f.t, r)
	labels, _ := m["labelIds"].([]any)
	add, _ := body["addLabelIds"].([]any)
	remove, _ := body["removeLabelIds"].([]any)
	labels = slices.DeleteFunc(append(slices.Clone(labels), add...), func(l any) bool { return slices.Contains(remove, l) })
	m["labelIds"] = labels
	actiontest.Write(f.t, w, 200, map[string]any{"id": m["id"], "threadId": m["threadId"], "labelIds": labels})
}

// take takes a mail, and gives it a Message-ID of its own.
func (f *gmailFake) take(w http.ResponseWriter, r *http.Request, label string) {
	body := actiontest.Read(f.t, r)
	if label == "DRAFT" {
		body, _ = body["message"].(map[string]any)
	}
	text, _ := body["raw"].(string)
	raw, err := base64.URLEncoding.DecodeString(text)
	if err != nil {
		refuse(f.t, w, 400, "invalidArgument", "Invalid value for ByteString")
		return
	}
	letter, err := mail.ReadMessage(strings.NewReader(string(raw)))
	if err != nil {
		refuse(f.t, w, 400, "invalidArgument", "Recipient address required")
		return
	}
	to, err := letter.Header.AddressList("To")
	if err != nil || len(to) == 0 {
		refuse(f.t, w, 400, "invalidArgument", "Recipient address required")
		return
	}
	content, err := io.ReadAll(letter.Body)
	if err != nil {
		f.t.Error(err)
	}
	head := []any{map[string]any{"name": "Message-Id", "value": "<given@mail.example.com>"}}
	for name, list := range letter.Header { // order does not matter: they are named
		head = append(head, map[string]any{"name": name, "value": list[0]})
	}
	thread := "t9"
	if named, ok := body["threadId"].(string); ok {
		thread = named
	}
	m := map[string]any{"id": fmt.Sprint("m", len(f.messages)+1), "threadId": thread, "labelIds": []any{label}, "payload": map[string]any{"headers": head}, "raw": string(content)}
	f.messages = append(f.messages, m)
	if label == "DRAFT" {
		actiontest.Write(f.t, w, 200, map[string]any{"id": "r1", "message": m})
		return
	}
	actiontest.Write(f.t, w, 200, m)
}

func gmailToolVendor() actiontest.Vendor {
	return actiontest.Vendor{Kind: gmailTool, Serve: newGmailFake, Prefix: "/google", Renews: true}
}

const gmailPath = "/gmail/v1/users/me"

func sending() actiontest.ToolUse {
	return actiontest.ToolUse{Config: `{"allowed_recipients":["example.org"]}`, Tool: "gmail_send", Args: `{"to":["Ann <ann@example.org>"],"subject":"Grüße","body":"Schön!"}`, Operation: actiontest.Operation{Call: "POST " + gmailPath + "/messages/send"}}
}

func TestGmailTool(t *testing.T) {
	t.Parallel()
	type op = actiontest.Operation
	send := sending()
	send.Name, send.Result = "Send", `{"message_id":"m3","thread_id":"t9"}`
	gmailToolVendor().Uses(t, []actiontest.ToolUse{
		{Name: "Search", Tool: "gmail_search", Args: `{"query":"Lunch"}`, Operation: op{Result: `{"emails":[{"message_id":"m2"}],"truncated":false}`}},
		{Name: "Read", Tool: "gmail_read", Args: `{"message_id":"m1"}`, Operation: op{Call: "GET " + gmailPath + "/messages/m1", Query: map[string]string{"format": "full"},
			Result: `{"message_id":"m1","thread_id":"t1","sender":"Ann <ann@example.org>","subject":"Rechnung über 7","text":"Please pay 120 €","attachments":["invoice.pdf"],"labels":["INBOX","UNREAD"],"received_date":"2026-11-20T08:00:00Z"}`}},
		{Name: "ReadPage", Tool: "gmail_read", Args: `{"message_id":"m2"}`, Operation: op{Result: `{"text":"Please pay"}`}},
		{Name: "Label", Tool: "gmail_label", Args: `{"message_id":"m1","add":["invoices"],"remove":["UNREAD"]}`, Operation: op{Call: "POST " + gmailPath + "/messages/m1/modify", Body: `{"addLabelIds":["Label_7"],"removeLabelIds":["UNREAD"]}`, Result: `{"labels":["INBOX","Label_7"]}`}},
		{Name: "Archive", Tool: "gmail_archive", Args: `{"message_id":"m2"}`, Operation: op{Call: "POST " + gmailPath + "/messages/m2/modify", Body: `{"removeLabelIds":["INBOX"]}`, Result: `{"message_id":"m2","labels":[]}`}},
		{Name: "Draft", Tool: "gmail_draft", Args: `{"to":["anybody@example.net"],"subject":"s","body":"b"}`, Operation: op{Call: "POST " + gmailPath + "/drafts", Result: `{"message_id":"m3"}`}},
		send,
		{Name: "Reply", Tool: "gmail_reply", Args: `{"message_id":"m1","body":"Paid."}`, Operation: op{Call: "POST " + gmailPath + "/messages/send", Body: `{"threadId":"t1"}`, Result: `{"thread_id":"t1"}`}},
	})
}

// TestGmailTool_Letters: what is sent is a mail that everybody can read, in the conversation that it belongs to.
func TestGmailTool_Letters(t *testing.T) {
	t.Parallel()
	b := gmailToolVendor().New(t)
	found, err := b.Use(``, "gmail_search", `{"query":"Lunch"}`)
	if err != nil || found.Get("emails.#").Int() != 1 || found.Get("emails.0.message_id").Str != "m2" || found.Get("emails.0.subject").Str != "Re: Lunch" || found.Get("truncated").Bool() {
		t.Errorf("found %s: %v", found.Raw, err)
	}
	u := sending()
	if _, err := b.Use(u.Config, u.Tool, u.Args); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Use(``, "gmail_reply", `{"message_id":"m1","body":"Paid."}`); err != nil {
		t.Fatal(err)
	}
	calls := b.Calls(u.Call)
	var letters []*mail.Message
	for _, c := range calls {
		raw, err := base64.URLEncoding.DecodeString(strings.Split(string(c.Body), `"raw":"`)[1][:strings.IndexByte(strings.Split(string(c.Body), `"raw":"`)[1], '"')])
		if err != nil {
			t.Fatal(err)
		}
		letter, err := mail.ReadMessage(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		letters = append(letters, letter)
	}
	if subject := letters[0].Header.Get("Subject"); !strings.HasPrefix(subject, "=?UTF-8?") {
		t.Errorf("the subject goes out as %q", subject)
	}
	if letters[0].Header.Get(sentHeader) == "" || strings.Contains(letters[0].Header.Get("Message-Id"), "localhost") {
		t.Errorf("the header is %v", letters[0].Header)
	}
	h := letters[1].Header
	if h.Get("In-Reply-To") != "<one@example.org>" || h.Get("References") != "<zero@example.org> <half@example.org> <one@example.org>" || !strings.Contains(h.Get("To"), "ann@example.org") || !strings.HasPrefix(h.Get("Subject"), "=?UTF-8?q?Re:_") {
		t.Errorf("the reply has %v", h)
	}
}

func TestGmailTool_Failures(t *testing.T) {
	t.Parallel()
	gmailToolVendor().ToolFailures(t, actiontest.ToolUse{Tool: "gmail_read", Args: `{"message_id":"m1"}`, Operation: actiontest.Operation{Call: "GET " + gmailPath + "/messages/m1"}}, sending(), []actiontest.ToolRefusal{
		{Name: "NobodyAllowed", Tool: "gmail_send", Args: `{"to":["ann@example.org"],"subject":"a","body":"b"}`, Code: fault.ToolError, Part: "gmail_reply"},
		{Name: "OtherRecipient", Config: `{"allowed_recipients":["example.org"]}`, Tool: "gmail_send", Args: `{"to":["ann@example.org","eve@evil.example"],"subject":"a","body":"b"}`, Code: fault.ToolError, Part: "eve@evil.example may not"},
		{Name: "OtherReply", Config: `{"allowed_recipients":["example.net"]}`, Tool: "gmail_reply", Args: `{"message_id":"m1","body":"b"}`, Code: fault.ToolError, Part: "may not be written to"},
		{Name: "NoAddress", Config: `{"allowed_recipients":["example.org"]}`, Tool: "gmail_send", Args: `{"to":["nobody"],"subject":"a","body":"b"}`, Code: fault.ToolError, Part: "not a list of mail addresses"},
		{Name: "LineBreak", Config: `{"allowed_recipients":["example.org"]}`, Tool: "gmail_send", Args: `{"to":["ann@example.org"],"subject":"a\r\nBcc: eve@evil.example","body":"b"}`, Code: fault.ToolError, Part: "line break"},
		{Name: "NoLabel", Tool: "gmail_label", Args: `{"message_id":"m1","add":["none"]}`, Code: fault.ToolError, Part: "INBOX, Invoices, UNREAD"},
		{Name: "NoLabels", Tool: "gmail_label", Args: `{"message_id":"m1"}`, Code: fault.ToolError, Part: "no label is named"},
		{Name: "NoMail", Tool: "gmail_read", Args: `{"message_id":"none"}`, Code: fault.ToolError},
	})
}

func TestGmailTool_Settles(t *testing.T) {
	t.Parallel()
	reply := actiontest.ToolUse{Tool: "gmail_reply", Args: `{"message_id":"m1","body":"Paid."}`, Operation: actiontest.Operation{Call: "POST " + gmailPath + "/messages/send"}}
	draft := actiontest.ToolUse{Tool: "gmail_draft", Args: `{"to":["a@example.net"],"subject":"s","body":"b"}`, Operation: actiontest.Operation{Call: "POST " + gmailPath + "/drafts"}}
	for _, u := range []actiontest.ToolUse{sending(), reply, draft} {
		t.Run(u.Tool, func(t *testing.T) { t.Parallel(); gmailToolVendor().ToolSettles(t, u, "message_id", "thread_id") })
	}
}

func TestGmailTool_Effects(t *testing.T) {
	t.Parallel()
	want := map[string]workflow.Effect{
		"gmail_search": workflow.Idempotent, "gmail_read": workflow.Idempotent, "gmail_label": workflow.Idempotent, "gmail_archive": workflow.Idempotent,
		"gmail_draft": workflow.Once, "gmail_send": workflow.Once, "gmail_reply": workflow.Once,
	}
	if got := gmailToolVendor().Tools(t); !maps.Equal(got, want) {
		t.Errorf("the tools are %v", got)
	}
}
