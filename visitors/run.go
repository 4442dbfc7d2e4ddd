package visitors

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/human/sheet"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/text"
	"tandem/trigger"
)

// RunPath is before the workflow that somebody who is logged in starts on a page.
const RunPath = "/run/"

// runWait is how long the page waits for the execution that was started on it.
const runWait = 10 * time.Second

// Manual is a workflow that people start by hand.
type Manual struct {
	// Name and Description are those of the workflow.
	Name, Description string
	// Node is the trigger, and Schema what it wants the inputs to be; empty: it takes none.
	Node   string
	Schema json.RawMessage
	// Language is that of the workflow's settings; empty: they say none.
	Language string
}

// ByHand is how people start workflows by hand.
type ByHand interface {
	// Manual is the trigger of a workflow that people start by hand. [fault.NotFound]: there is no such workflow, or none that is started
	// so.
	Manual(ctx context.Context, p identity.Principal, workflow string) (Manual, error)
	// Start starts an execution in somebody's name, once for a key, and waits for it so long at most.
	Start(ctx context.Context, p identity.Principal, workflow string, m Manual, key string, inputs json.RawMessage,
		wait time.Duration) (execution string, ending Ending, err error)
}

// runPages serves the page on which people start workflows who are logged in.
func (h *Pages) runPages() {
	h.router.Public("GET "+RunPath+"{workflow}", func(w http.ResponseWriter, r *http.Request) { h.run(w, r, h.showRun) })
	h.router.Public("POST "+RunPath+"{workflow}", func(w http.ResponseWriter, r *http.Request) { h.run(w, r, h.takeRun) })
}

// run lets in who may start executions. A request that changes something must come from a page of this server: who is let in by a session
// sees to that.
func (h *Pages) run(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request, *visit, Manual)) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "same-origin") // so that a browser says where a form comes from
	ctx := r.Context()
	v := &visit{lang: h.language(r, "", ""), address: h.router.AddressOf(ctx), base: r.URL.Path}
	p, err := h.router.Identify(ctx, route.Authorization(r))
	if fault.CodeOf(err) == fault.Unauthorized && r.Method == http.MethodGet && r.Header.Get("Authorization") == "" {
		http.Redirect(w, r, h.o.LoginPath+"?next="+url.QueryEscape(r.URL.Path), http.StatusSeeOther)
		return
	}
	if err == nil {
		if p = p.Narrowed(); !p.Has(route.Operators()...) || !p.MayUse(identity.ScopeExecute) {
			err = fault.Newf(fault.Forbidden, "this needs the role %s", route.RoleList(route.Operators(), "or"))
		}
	}
	var m Manual
	if err == nil {
		v.workspace, v.user = p.Workspace, p
		m, err = h.o.ByHand.Manual(ctx, p, r.PathValue("workflow"))
	}
	if err != nil {
		h.fail(w, r, v, err)
		return
	}
	v.Entrance = &trigger.Entrance{Trigger: store.Trigger{Workspace: p.Workspace, WorkflowID: r.PathValue("workflow"), Node: m.Node},
		Page: trigger.Page{Access: trigger.AccessUsers, Schema: m.Schema}}
	if h.known(w, r, v, p, m.Language) {
		serve(w, r, v, m)
	}
}

// drawRun draws the form of the inputs. What is a file cannot be given here: inputs are JSON.
func drawRun(v *visit) *sheet.Sheet {
	if len(v.Page.Schema) == 0 {
		return sheet.Draw(&form.Form{Purpose: form.PurposeNode, Language: v.lang})
	}
	return v.draw()
}

func (h *Pages) showRun(w http.ResponseWriter, r *http.Request, v *visit, m Manual) {
	h.runForm(w, r, http.StatusOK, v, m, drawRun(v), nil)
}

// runForm shows the form of the inputs.
func (h *Pages) runForm(w http.ResponseWriter, r *http.Request, status int, v *visit, m Manual, f *sheet.Sheet, general []string) {
	ticket, err := h.newTicket(v)
	if err != nil {
		h.fail(w, r, v, err)
		return
	}
	f.Buttons = []sheet.Button{{Label: f.Say(text.Of("Start")), Tone: "good"}}
	page := &sheet.Page{Lang: v.lang, Heading: m.Name, Text: m.Description, Form: f, General: general,
		Hidden: []sheet.Hidden{{Name: ticketName, Value: ticket}}}
	page.AddFact(page.Tell(text.Of("Started by")), v.user.User)
	for _, c := range f.Controls {
		page.Multipart = page.Multipart || c.Kind == sheet.ControlFile
	}
	h.render(w, r, status, sheet.Frame{}, page)
}

// takeRun starts an execution with what was filled in.
func (h *Pages) takeRun(w http.ResponseWriter, r *http.Request, v *visit, m Manual) {
	if r.Header.Get("Content-Type") == "" { // the edge takes it away from what is not for strangers
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	v.Page.MaxFile = sheet.MaxFile
	f := drawRun(v)
	values, closeFiles, err := h.readSheet(r, v, f, ticketName)
	defer closeFiles()
	if err != nil && fault.CodeOf(err) == fault.InvalidInput {
		h.runForm(w, r, http.StatusUnprocessableEntity, v, m, f, []string{human.InLanguage(v.lang, fault.From(err))})
		return
	}
	if err != nil {
		h.fail(w, r, v, err)
		return
	}
	id := h.readTicket(v, values.Get(ticketName))
	if id == "" {
		h.runForm(w, r, http.StatusConflict, v, m, f, []string{text.Of("The page was open for too long, or is not the one that was shown to you. Look at what you have written, and send it again.").In(v.lang)})
		return
	}
	fields := map[string]json.RawMessage{}
	if len(v.Page.Schema) > 0 {
		var general []string
		if fields, general, err = readInputs(v, f); err != nil {
			h.fail(w, r, v, err)
			return
		}
		if fields == nil {
			h.runForm(w, r, http.StatusUnprocessableEntity, v, m, f, general)
			return
		}
	}
	if err := f.StoreFiles(r.Context(), h.o.Blobs, v.workspace); err != nil {
		h.fail(w, r, v, err)
		return
	}
	inputs, err := json.Marshal(fields)
	if err != nil {
		h.fail(w, r, v, fault.Newf(fault.Internal, "the inputs cannot be written: %w", err))
		return
	}
	ctx := store.WithAuditDraft(r.Context(), &store.AuditDraft{AuditEntry: h.router.EntryOf(r.Context(), v.user, "execution.start", "")})
	execution, ending, err := h.o.ByHand.Start(ctx, v.user, v.Trigger.WorkflowID, m, "page:"+id, inputs, runWait)
	if err != nil {
		h.fail(w, r, v, err)
		return
	}
	h.ran(w, r, v, m, execution, ending)
}

// ran tells what has come of a start.
func (h *Pages) ran(w http.ResponseWriter, r *http.Request, v *visit, m Manual, execution string, ending Ending) {
	page := &sheet.Page{Lang: v.lang, Heading: m.Name, Recorded: []sheet.Fact{}}
	page.AddFact(page.Tell(text.Of("Execution")), execution)
	page.AddFact(page.Tell(text.Of("Status")), string(ending.Status))
	switch {
	case ending.Status == engine.StatusSuccess:
		showResult(page, ending)
	case ending.Status.Final():
		page.Lines = []string{page.Tell(text.Of("It has not ended well. This shows why: %s", "tandem executions get "+execution))}
	default:
		page.Lines = []string{page.Tell(text.Of("It goes on by itself. This shows how far it is: %s", "tandem executions get "+execution))}
	}
	h.render(w, r, http.StatusOK, sheet.Frame{}, page)
}
