package toolset_test

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/engine"
	"tandem/fault"
	"tandem/human/form"
	"tandem/mcp"
	"tandem/node"
	"tandem/store"
)

// A node that stands alone does what its author wrote, and asks where somebody wants to be asked. What is never done is not done.
func TestMCPTool_AloneWithPolicies(t *testing.T) {
	t.Parallel()
	w := newToolWorld(t)
	w.activate(t)
	set := func(everybodys bool, policy string) {
		t.Helper()
		who := w.who()
		if err := w.pool.SetPolicies(t.Context(), who, "s", everybodys, map[string]store.MCPPolicy{"put": {Policy: policy}}); err != nil {
			t.Fatal(err)
		}
	}
	const node, author = `{"server_id":"s","tool_name":"put","function_args":{"a":1}}`, `{"server_id":"s","tool_name":"put","function_args":{"a":1},"approval":"never"}`
	const always = `{"server_id":"s","tool_name":"put","function_args":{"a":1},"approval":"always"}`
	w.result(t, w.call(t, node, ""), `{"success":true}`) // of which its server says nothing: its author has chosen it
	w.asks(t, w.call(t, always, ""), form.PurposeToolApproval, `"arguments":{"a":1}`)
	set(false, store.MCPAsk)
	calls := w.calls.Load()
	c := w.call(t, node, `{"approved":true}`) // no data says that a person has agreed
	wait := w.asks(t, c, form.PurposeToolApproval, "ada wants calls of this tool confirmed")
	for _, no := range []string{`{"approved":false}`, `{}`, `{"accept":true}`, `{"approved":true,"action":"reject"}`} {
		w.fails(t, w.after(t, c, wait, engine.AskDone, no), fault.Forbidden, "refused")
	}
	w.fails(t, w.after(t, c, wait, engine.AskTimeout, `{"approved":true}`), fault.Forbidden, "refused")
	// What was agreed to is this call and no other.
	other := w.after(t, w.call(t, `{"server_id":"s","tool_name":"put","function_args":{"a":2}}`, ""), wait, engine.AskDone, `{"approved":true}`)
	w.asks(t, other, form.PurposeToolApproval, `"arguments":{"a":2}`)
	if w.calls.Load() != calls {
		t.Error("a call was made that nobody has agreed to")
	}
	w.result(t, w.after(t, c, wait, engine.AskDone, `{"approved":true}`), `{"success":true}`)
	// The author's word lifts a user's own wish, and not that of an admin.
	w.result(t, w.call(t, author, ""), `{"success":true}`)
	set(true, store.MCPAsk)
	w.asks(t, w.call(t, author, ""), form.PurposeToolApproval, "s/put")
	calls = w.calls.Load()
	set(true, store.MCPNever)
	w.fails(t, w.call(t, author, ""), fault.Forbidden, "not allowed")
	w.fails(t, w.after(t, c, wait, engine.AskDone, `{"approved":true}`), fault.Forbidden, "not allowed")
	if w.calls.Load() != calls {
		t.Error("a call was made that is never made")
	}
}

// A model is not offered what is never called, and is told with each tool what people have decided.
func TestMCPTool_OfferedWithPolicies(t *testing.T) {
	t.Parallel()
	w := newToolWorld(t)
	w.activate(t)
	offered := func() string {
		t.Helper()
		list, err := w.kind.Tools(t.Context(), w.call(t, `{"server_id":"s"}`, ""))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range list {
			if o.Withheld {
				names = append(names, o.Name+" withheld")
				continue
			}
			var p struct{ Decision string }
			if err := json.Unmarshal(o.Policy, &p); err != nil {
				t.Fatal(err)
			}
			names = append(names, o.Name+" "+p.Decision)
		}
		return strings.Join(names, ", ")
	}
	if got := offered(); got != "s__echo judged, s__put destructive" {
		t.Errorf("offered %s", got)
	}
	if err := w.pool.SetPolicies(t.Context(), w.who(), "s", false, map[string]store.MCPPolicy{"put": {Policy: store.MCPNever}, "echo": {Policy: store.MCPAsk}}); err != nil {
		t.Fatal(err)
	}
	if got := offered(); got != "s__echo ask, put withheld" {
		t.Errorf("offered %s", got)
	}
}

// Arguments that were written for a tool as it was are held against the tool as it is when its change is accepted.
func TestMCPTool_ArgumentsForAChangedTool(t *testing.T) {
	t.Parallel()
	w := newToolWorld(t)
	w.activate(t)
	w.server.AddTool(&sdk.Tool{Name: "put", Description: "changes something", InputSchema: json.RawMessage(`{"type":"object","required":["place"],"properties":{"place":{"type":"string"}}}`)}, nil)
	w.forget()
	c := w.call(t, `{"server_id":"s","tool_name":"put","function_args":{"city":"Turin"}}`, "")
	wait := w.asks(t, c, form.PurposeDrift, "place")
	by := func(person string) *node.Call {
		next := w.after(t, c, wait, engine.AskDone, `{"accept":true}`)
		next.Wake.Person = person
		return next
	}
	w.fails(t, by("bob"), fault.Forbidden, `"bob" cannot accept for "ada"`)
	w.asks(t, c, form.PurposeDrift, "place")
	w.fails(t, by("ada"), fault.InvalidInput, "function_args")
	if w.calls.Load() != 0 {
		t.Error("the tool was called")
	}
	a, err := w.pool.PinnedTool(t.Context(), w.who(), "s", "put")
	if err != nil || !strings.Contains(string(a.Definition), "place") || mcp.ClassOf(a) != mcp.Unclassed {
		t.Errorf("pinned %s, %v", a.Definition, err)
	}
}
