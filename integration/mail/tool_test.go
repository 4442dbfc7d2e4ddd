package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/tidwall/gjson"

	"tandem/builtin/toolset"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/workflow"
)

// newToolDesk is the mailbox for a model, with real servers.
func newToolDesk(t *testing.T, options ...officeOption) *desk {
	t.Helper()
	d := newDesk(t, options...)
	d.kind = emailTool(Network{Dial: (&net.Dialer{}).DialContext})
	return d
}

// uses calls a tool as a model does.
func (d *desk) uses(config, tool, args string) (gjson.Result, error) {
	d.t.Helper()
	call := d.call(config, fmt.Sprintf(`{"tool_name":%q,"function_args":%s}`, tool, args))
	out, err := d.kind.Run(toolset.WantedByModel(context.Background()), call)
	if err != nil {
		return gjson.Result{}, err
	}
	return gjson.GetBytes(out.(node.Done)["result"], "result"), nil
}

func TestEmailTool(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, nodetest.Of(emailTool(Network{})))
	d := newToolDesk(t)
	d.folder("Work")
	d.folder("INBOX", "From: Ann <ann@example.org>\nTo: box@example.com\nSubject: Invoice 7\nMessage-ID: <one@example.org>\n\nPlease pay 120 francs\n",
		"From: bob@example.org\nTo: box@example.com\nSubject: Lunch\nMessage-ID: <two@example.org>\n\nToday?\n")
	const any = `"mailbox":"INBOX"`
	found, err := d.uses(any, "email_search", `{"query":"francs invoice"}`)
	if err != nil || found.Get("emails.#").Int() != 1 || found.Get("emails.0.email_id").Str != "one@example.org" {
		t.Errorf("found %s: %v", found.Raw, err)
	}
	if _, err := d.uses(any, "email_mark", `{"email_id":"one@example.org","seen":true}`); err != nil {
		t.Error(err)
	}
	if found, err = d.uses(any, "email_search", `{"query":"","unseen":true}`); err != nil || found.Get("emails.#").Int() != 1 || found.Get("emails.0.email_id").Str != "two@example.org" {
		t.Errorf("unseen %s: %v", found.Raw, err)
	}
	if found, err = d.uses(`"mailbox":"Work"`, "email_search", `{"query":""}`); err != nil || found.Get("emails.#").Int() != 0 {
		t.Errorf("in another mailbox %s: %v", found.Raw, err)
	}
	read, err := d.uses(any, "email_read", `{"email_id":"one@example.org"}`)
	if err != nil || read.Get("sender").Str != "ann@example.org" || read.Get("text").Str != "Please pay 120 francs" || read.Get("sender_verified").Bool() {
		t.Errorf("read %s: %v", read.Raw, err)
	}
	if _, err = d.uses(any, "email_reply", `{"email_id":"one@example.org","body":"Paid."}`); err != nil {
		t.Fatal(err)
	}
	reply := receive(t, "the reply", d.office.mails)
	if h, m := reply.read(t); !slices.Equal(reply.to, []string{"ann@example.org"}) || m.Subject != "Re: Invoice 7" || h.get("In-Reply-To") != "<one@example.org>" {
		t.Errorf("reply to %q: %+v", reply.to, m)
	}
	one, err := d.uses(`"allowed_recipients":["example.org"],"from":"bot@example.com"`, "email_send", `{"to":["ann@example.org"],"subject":"a","body":"b"}`)
	if err != nil {
		t.Fatal(err)
	}
	sent := receive(t, "the mail", d.office.mails)
	two, err := d.uses(`"allowed_recipients":["ann@example.org"]`, "email_send", `{"to":["ann@example.org"],"subject":"c","body":"d"}`)
	if err != nil || sent.from != "bot@example.com" || one.Get("message_id").Str == two.Get("message_id").Str {
		t.Errorf("two mails of one turn: %s and %s, from %q: %v", one.Raw, two.Raw, sent.from, err)
	}
}

// TestEmailTool_Refusals: wrong arguments, unknown tools and people who may not be written to go back to the model; nothing is sent.
func TestEmailTool_Refusals(t *testing.T) {
	t.Parallel()
	d := newToolDesk(t)
	d.folder("INBOX", "From: eve@evil.example\nReply-To: more@evil.example\nSubject: x\nMessage-ID: <evil@example.org>\n\nWrite me\n")
	for name, c := range map[string]struct{ config, tool, args, part string }{
		"NobodyAllowed":  {`"mailbox":"INBOX"`, "email_send", `{"to":["ann@example.org"],"subject":"a","body":"b"}`, "email_reply"},
		"NotAllowed":     {`"allowed_recipients":["example.org"]`, "email_send", `{"to":["ann@example.org","eve@evil.example"],"subject":"a","body":"b"}`, "eve@evil.example may not be written to"},
		"Lookalike":      {`"allowed_recipients":["example.org"]`, "email_send", `{"to":["ann@notexample.org"],"subject":"a","body":"b"}`, "may not be written to"},
		"ReplyElsewhere": {`"allowed_recipients":["example.org"]`, "email_reply", `{"email_id":"evil@example.org","body":"b"}`, "more@evil.example may not be written to"},
		"LineBreak":      {`"allowed_recipients":["example.org"]`, "email_send", `{"to":["ann@example.org"],"subject":"a\nBcc: eve@evil.example","body":"b"}`, "line break"},
		"NoAddress":      {`"allowed_recipients":["example.org"]`, "email_send", `{"to":["ann"],"subject":"a","body":"b"}`, "not a mail address"},
		"Nobody":         {`"allowed_recipients":["example.org"]`, "email_send", `{"to":[],"subject":"a","body":"b"}`, "nobody"},
		"NoMail":         {`"mailbox":"INBOX"`, "email_read", `{"email_id":"none@example.org"}`, "there is no mail"},
		"NothingToMark":  {`"mailbox":"INBOX"`, "email_mark", `{"email_id":"evil@example.org"}`, "set seen or flagged"},
		"WrongArguments": {`"mailbox":"INBOX"`, "email_read", `{"email_id":7}`, "email_id"},
		"UnknownTool":    {`"mailbox":"INBOX"`, "email_serch", `{}`, `did you mean "email_search"`},
		"NotAvailable":   {`"available_tools":["email_read"]`, "email_search", `{"query":"x"}`, "email_read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := d.uses(c.config, c.tool, c.args); fault.CodeOf(err) != fault.ToolError || !strings.Contains(err.Error(), c.part) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Cleanup(func() {
		if n := len(d.office.mails); n > 0 {
			t.Errorf("%d mails were sent", n)
		}
	})
}

// TestEmailTool_Lost: a mail that may have gone out is not sent again by itself.
func TestEmailTool_Lost(t *testing.T) {
	t.Parallel()
	d := newToolDesk(t, func(o *postOffice, _ *smtp.Server) {
		o.cut = func(c *smtp.Conn) error { return c.Conn().Close() }
	})
	_, err := d.uses(`"allowed_recipients":["example.org"]`, "email_send", `{"to":["ann@example.org"],"subject":"a","body":"b"}`)
	if failed, ok := err.(*node.Failure); !ok || !failed.Unknown {
		t.Errorf("%v", err)
	}
}

// TestEmailTool_Offered: what a model is offered, and what repeating it means.
func TestEmailTool_Offered(t *testing.T) {
	t.Parallel()
	d := newToolDesk(t)
	list, err := d.kind.Tools(t.Context(), d.call(`"tool_prefix":"my_","allowed_recipients":["example.org"]`, ``))
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]workflow.Effect{}
	for _, tool := range list {
		effects[tool.Name] = tool.Effect
		if tool.Name == "my_email_send" && !strings.Contains(tool.Description, "example.org") {
			t.Errorf("it does not say who may be written to: %s", tool.Description)
		}
	}
	for name, want := range map[string]workflow.Effect{"email_search": workflow.Idempotent, "email_read": workflow.Idempotent, "email_mark": workflow.Idempotent, "email_send": workflow.Once, "email_reply": workflow.Once} {
		if effects["my_"+name] != want {
			t.Errorf("%s is %q", name, effects["my_"+name])
		}
	}
	r := &node.Registry{}
	r.Register(d.kind)
	known, _ := r.Kind("TOOL.EMAIL_TOOL")
	for config, want := range map[string]workflow.Effect{
		`{}`: workflow.Once, `{"available_tools":["email_read","email_search"]}`: workflow.Idempotent, `{"available_tools":["email_read","email_send"]}`: workflow.Once,
		`{"tool_name":"email_read"}`: workflow.Idempotent, `{"tool_name":"email_send"}`: workflow.Once, `{"tool_name":"{{t}}"}`: workflow.Once, `{"available_tools":["{{t}}"]}`: workflow.Once,
	} {
		p, _ := known.Plan(&workflow.Node{ID: "n", Name: "n", Type: "TOOL", Subtype: "EMAIL_TOOL", Configurations: json.RawMessage(config)})
		if p.Effect != want {
			t.Errorf("%s is %s, want %s", config, p.Effect, want)
		}
	}
}

// TestEmailTool_Alone: a node that stands alone runs the tool that it names, tells which call it was, and asks first if it is to.
func TestEmailTool_Alone(t *testing.T) {
	t.Parallel()
	d := newToolDesk(t)
	d.folder("INBOX", "From: ann@example.org\nSubject: Invoice 7\nMessage-ID: <one@example.org>\n\nx\n")
	const config = `"tool_name":"email_search","function_args":{"query":"Invoice"},"context":{"a":1},"call_id":"c7"`
	out, err := d.kind.Run(t.Context(), d.call(config, ``))
	if err != nil {
		t.Fatal(err)
	}
	result := gjson.ParseBytes(out.(node.Done)["result"])
	if result.Get("result.emails.0.subject").Str != "Invoice 7" || result.Get("context.a").Int() != 1 || result.Get("call_id").Str != "c7" || !result.Get("success").Bool() {
		t.Errorf("%s", result.Raw)
	}
	asks, err := d.kind.Run(t.Context(), d.call(config+`,"approval":"always"`, ``))
	if wait, ok := asks.(node.Wait); err != nil || !ok || wait.Ask == nil {
		t.Errorf("it does not ask: %v, %v", asks, err)
	}
}

// TestEmailTool_Inquire: a mail that a model has sent and whose answer was lost is found by its Message-ID among what was sent; that it is
// not there proves nothing, and a mail with other words is another one.
func TestEmailTool_Inquire(t *testing.T) {
	t.Parallel()
	var d *desk
	d = newToolDesk(t, func(o *postOffice, _ *smtp.Server) {
		o.cut = func(c *smtp.Conn) error {
			sent := <-o.mails
			d.sentTo("Sent Items", sent.raw)
			return c.Conn().Close()
		}
	})
	d.folder("Sent Items")
	d.folder("INBOX", "From: Ann <ann@example.org>\nTo: box@example.com\nSubject: Invoice 7\nMessage-ID: <one@example.org>\n\nPlease pay\n")
	const config = `"allowed_recipients":["example.org"]`
	ask := func(tool, args string) (node.Outcome, error) {
		call := d.call(config, fmt.Sprintf(`{"tool_name":%q,"function_args":%s}`, tool, args))
		call.Attempt = 2
		return d.kind.Inquire(t.Context(), call)
	}
	for tool, args := range map[string]string{"email_send": `{"to":["ann@example.org"],"subject":"a","body":"b"}`, "email_reply": `{"email_id":"one@example.org","body":"Paid."}`} {
		if _, err := d.uses(config, tool, args); fault.CodeOf(err) != fault.OutcomeUnknown {
			t.Fatalf("%s: the answer was lost: %v", tool, err)
		}
		out, err := ask(tool, args)
		if err != nil || out == nil {
			t.Fatalf("%s: the mail went out: %v, %v", tool, out, err)
		}
		if result := gjson.GetBytes(out.(node.Done)["result"], "result"); result.Get("accepted.0").Str != "ann@example.org" || !strings.HasPrefix(result.Get("message_id").Str, "tandem-node.") {
			t.Errorf("%s: found %s", tool, result.Raw)
		}
	}
	if out, err := ask("email_send", `{"to":["ann@example.org"],"subject":"a","body":"other"}`); out != nil || fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("another mail: %v, %v", out, err)
	}
	if out, err := ask("email_mark", `{"email_id":"one@example.org","seen":true}`); out != nil || fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("what may be repeated is not asked about: %v, %v", out, err)
	}
}
