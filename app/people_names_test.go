package app

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// madeFor has an admin make a token for a user, and returns under which name it can be used here.
func (x *site) madeFor(t *testing.T, by, user string) (name, id string) {
	t.Helper()
	made := want[api.NewToken](t, x.call(t, by, "POST", "/users/"+user+"/tokens", api.TokenRequest{Name: "for " + user}), http.StatusCreated)
	name = user + " by " + by
	x.tokens[name] = made.Secret
	return name, made.Token.ID
}

// detail is a question with its replies.
func (x *site) detail(t *testing.T, id string) api.InteractionDetail {
	t.Helper()
	return want[api.InteractionDetail](t, x.call(t, "viewer", "GET", "/interactions/"+id, nil), http.StatusOK)
}

// seen is an execution as everybody sees it, and the payload of its question.
func (x *site) seen(t *testing.T, i api.Interaction) (api.Execution, gjson.Result) {
	t.Helper()
	x.reaches(t, i.ExecutionID, engine.StatusSuccess)
	e := want[api.GetExecution](t, x.call(t, "viewer", "GET", "/executions/"+i.ExecutionID, nil), http.StatusOK).Execution
	return e, gjson.ParseBytes(e.NodeExecutions["ask"].OutputData["result"])
}

// A personal link answers in somebody's name: nobody else is shown it, whatever their role.
func TestNames_Link(t *testing.T) {
	t.Parallel()
	g := openGuarded(t)
	i := g.question(t, `, approvers: ["user:approver"]`)
	ask := func(who string) func() answer {
		return func() answer {
			return g.call(t, who, "POST", "/interactions/"+i.ID+"/link", api.LinkRequest{Recipient: "user:approver"})
		}
	}
	for who, status := range map[string]int{"admin": http.StatusConflict, "operator": http.StatusForbidden, "editor": http.StatusForbidden, "viewer": http.StatusForbidden} {
		if got := g.unmoved(t, i.ID, status, ask(who)); strings.Contains(string(got.body), "/respond/") {
			t.Errorf("%s is shown %s", who, got.body)
		}
	}
	// Through a token that an admin has made the admin is shown it all the same; an answer by it says so.
	name, token := g.madeFor(t, "admin", "approver")
	link := want[api.Link](t, ask(name)(), http.StatusOK)
	if got := form(t, link.URL)(); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	e, payload := g.seen(t, i)
	want := identity.Means{Kind: identity.ByLink, Token: token, TokenMadeBy: "admin"}
	if one := g.detail(t, i.ID).Responses[0]; one.Means != want || one.UserID != "approver" || one.Ground != "" {
		t.Errorf("recorded as %+v", one)
	}
	if len(e.Acts) != 1 || e.Acts[0].Means != want || e.Acts[0].TokenMadeBy != "admin" || e.Acts[0].By != "approver" || e.Acts[0].InteractionID != i.ID {
		t.Errorf("acts %+v", e.Acts)
	}
	for _, path := range []string{"approvals.0.means.token_made_by", "response_data.means.token_made_by"} {
		if payload.Get(path).Str != "admin" {
			t.Errorf("%s of %s", path, payload.Raw)
		}
	}
}

// An admin who makes a token for somebody and answers with it, starts executions, saves workflows and acts on executions leaves a trace
// everywhere, and making another token with it changes nothing.
func TestNames_Token(t *testing.T) {
	t.Parallel()
	g := openGuarded(t)
	first, _ := g.madeFor(t, "admin", "approver")
	again := want[api.NewToken](t, g.call(t, first, "POST", "/users/me/tokens", api.TokenRequest{Name: "washed"}), http.StatusCreated)
	g.tokens["washed"] = again.Secret
	own := want[api.NewToken](t, g.call(t, "approver", "POST", "/users/me/tokens", api.TokenRequest{Name: "own"}), http.StatusCreated)
	g.tokens["own"] = own.Secret
	if again.Token.MadeBy != "admin" || own.Token.MadeBy != "approver" {
		t.Errorf("made by %q and %q", again.Token.MadeBy, own.Token.MadeBy)
	}
	for name, c := range map[string]struct{ who, maker, flagged string }{
		"made": {first, "admin", "admin"}, "washed": {"washed", "admin", "admin"}, "own": {"own", "approver", ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := g.question(t, `, approvers: ["user:approver"]`)
			if name == "washed" { // by the other door
				want[api.ActionResponse](t, g.call(t, c.who, "POST", "/executions/"+i.ExecutionID+"/input", api.InputRequest{NodeID: "ask", InputData: json.RawMessage(approved)}), http.StatusOK)
			} else {
				want[api.Interaction](t, g.respond(t, c.who, i.ID, approved), http.StatusOK)
			}
			e, payload := g.seen(t, i)
			one := g.detail(t, i.ID).Responses[0]
			if one.UserID != "approver" || one.Means.Kind != identity.ByToken || one.Means.TokenMadeBy != c.maker || one.Means.Token == "" {
				t.Errorf("recorded as %+v", one)
			}
			if len(e.Acts) != 1 || e.Acts[0].TokenMadeBy != c.flagged || e.Acts[0].Means != one.Means || payload.Get("approvals.0.means.token_made_by").Str != c.maker {
				t.Errorf("acts %+v, payload %s", e.Acts, payload.Raw)
			}
		})
	}

	// Who makes it is named also when their own token was made by somebody else.
	g.addUser(t, "default", "admin2", identity.Admin)
	second, _ := g.madeFor(t, "admin", "admin2")
	if chained := want[api.NewToken](t, g.call(t, second, "POST", "/users/approver/tokens", api.TokenRequest{Name: "chained"}), http.StatusCreated); chained.Token.MadeBy != "admin, admin2" {
		t.Errorf("made by %q; want both who may have made it", chained.Token.MadeBy)
	}

	// Wherever else it says by whom.
	operator, _ := g.madeFor(t, "admin", "operator")
	editor, _ := g.madeFor(t, "admin", "editor")
	saved := want[api.Saved](t, g.call(t, editor, "POST", "/workflows", askFlow("mine", asks("ask", ``))), http.StatusCreated)
	if saved.Workflow.UpdatedBy != "editor" || saved.Workflow.TokenMadeBy != "admin" {
		t.Errorf("saved %+v", saved.Workflow)
	}
	if r := want[api.Revisions](t, g.call(t, "viewer", "GET", "/workflows/mine/revisions", nil), http.StatusOK).Revisions; len(r) != 1 || r[0].CreatedBy != "editor" || r[0].TokenMadeBy != "admin" {
		t.Errorf("revisions %+v", r)
	}
	id := want[api.ExecuteResponse](t, g.call(t, operator, "POST", "/workflows/mine/execute", api.ExecuteRequest{}), http.StatusAccepted).ExecutionID
	g.opens(t, id, 1)
	for _, action := range []string{"pause", "resume", "cancel"} {
		want[api.ActionResponse](t, g.call(t, operator, "POST", "/executions/"+id+"/actions", api.ActionRequest{Action: action}), http.StatusOK)
	}
	e := want[api.GetExecution](t, g.call(t, "viewer", "GET", "/executions/"+id, nil), http.StatusOK).Execution
	if e.TriggerInfo.UserID != "operator" || e.TriggerInfo.TokenMadeBy != "admin" || len(e.Acts) != 3 {
		t.Errorf("started %+v, acts %+v", e.TriggerInfo, e.Acts)
	}
	for n, a := range e.Acts {
		if a.By != "operator" || a.TokenMadeBy != "admin" || a.Action != []string{"pause", "resume", "cancel"}[n] {
			t.Errorf("act %+v", a)
		}
	}
	pauses := string(g.call(t, "viewer", "GET", "/executions/"+id+"/pauses", nil).body)
	if strings.Count(pauses, `"token_made_by":"admin"`) != 2 {
		t.Errorf("pauses %s", pauses)
	}
	list := want[api.Executions](t, g.call(t, "viewer", "GET", "/executions?workflow_id=mine", nil), http.StatusOK).Executions
	if len(list) != 1 || list[0].UserID != "operator" || list[0].TokenMadeBy != "admin" {
		t.Errorf("listed %+v", list)
	}
	users := want[api.Users](t, g.call(t, "admin", "GET", "/users", nil), http.StatusOK).Users
	at := slices.IndexFunc(users, func(u api.User) bool { return u.ID == "approver" })
	if made := users[at].TokensMadeByOthers; len(made) != 3 || made[0].MadeBy != "admin" || made[1].MadeBy != "admin" || made[2].MadeBy != "admin, admin2" {
		t.Errorf("tokens made by others: %+v", made)
	}
}

// An admin decides in the place of others by an override, which needs a reason and is shown as that.
func TestNames_Override(t *testing.T) {
	t.Parallel()
	g := openGuarded(t)
	override := func(t *testing.T, who, id, reason string) func() answer {
		return func() answer {
			return g.call(t, who, "POST", "/interactions/"+id+"/override", map[string]any{"response_data": json.RawMessage(approved), "reason": reason})
		}
	}
	t.Run("Decides", func(t *testing.T) {
		service := newHook(t)
		credential := want[api.Credential](t, g.call(t, "admin", "POST", "/credentials", `{"name":"told","type":"webhook_secret","data":{"secret":"7b1f0c9e-4d-hook-of-names"}}`), http.StatusCreated).ID
		i := g.question(t, `, approvers: ["user:approver", "user:viewer"], min_approvals: 2, channel_type: webhook, webhook_url: "`+service.URL+`", credential_id: `+credential)
		service.next(t)
		refused(t, override(t, "operator", i.ID, "I may not")(), http.StatusForbidden, "forbidden")
		refused(t, override(t, "admin", i.ID, "")(), http.StatusUnprocessableEntity, "invalid_input")
		g.unmoved(t, i.ID, http.StatusUnprocessableEntity, override(t, "admin", i.ID, "  "))
		want[api.Interaction](t, g.respond(t, "viewer", i.ID, `{"action":"approve"}`), http.StatusOK)
		want[api.Interaction](t, override(t, "admin", i.ID, "both are ill")(), http.StatusOK)
		e, payload := g.seen(t, i)
		d := g.detail(t, i.ID)
		if d.Override == nil || d.Override.By != "admin" || d.Override.Reason != "both are ill" || d.Override.Means.Token != "tok_admin" || d.Override.At == 0 {
			t.Errorf("override %+v", d.Override)
		}
		if one := d.Responses[1]; one.UserID != "admin" || one.Ground != store.GroundOverride || one.Reason != "both are ill" || !one.Accepted {
			t.Errorf("recorded as %+v", one)
		}
		if len(e.Acts) != 1 || e.Acts[0].By != "admin" || e.Acts[0].Ground != store.GroundOverride || e.Acts[0].Reason != "both are ill" {
			t.Errorf("acts %+v", e.Acts)
		}
		if payload.Get("responder").Str != "admin" || payload.Get("response_data.ground").Str != "override" || payload.Get("approvals.1.reason").Str != "both are ill" || payload.Get("approvals.0.ground").Exists() {
			t.Errorf("payload %s", payload.Raw)
		}
		if told := service.next(t).Get("lines").Raw; !strings.Contains(told, "admin, an admin, has decided it in the place of those who were asked.") || !strings.Contains(told, "both are ill") {
			t.Errorf("who was asked is told %s", told)
		}
		refused(t, override(t, "admin", i.ID, "again")(), http.StatusConflict, "conflict")
	})
	t.Run("NotByWhoStartedIt", func(t *testing.T) {
		g.save(t, askFlow("self", asks("ask", `, approvers: ["user:approver"], exclude_requester: true`)))
		id := want[api.ExecuteResponse](t, g.call(t, "admin", "POST", "/workflows/self/execute", api.ExecuteRequest{}), http.StatusAccepted).ExecutionID
		i := g.opens(t, id, 1)[0]
		g.unmoved(t, i.ID, http.StatusForbidden, override(t, "admin", i.ID, "I want it"))
	})
	t.Run("NobodyLeft", func(t *testing.T) {
		g.addUser(t, "default", "gone", identity.Viewer)
		i := g.question(t, `, approvers: ["user:gone"]`)
		if f := refused(t, g.respond(t, "admin", i.ID, approved), http.StatusForbidden, "forbidden"); !strings.Contains(f.Detail, "override") {
			t.Errorf("the refusal does not say what an admin can do: %s", f.Detail)
		}
		want[any](t, g.call(t, "admin", "DELETE", "/users/gone", nil), http.StatusNoContent)
		want[api.Interaction](t, g.respond(t, "admin", i.ID, approved), http.StatusOK)
		_, payload := g.seen(t, i)
		if one := g.detail(t, i.ID).Responses[0]; one.Ground != store.GroundNobodyLeft || payload.Get("approvals.0.ground").Str != "nobody_left" {
			t.Errorf("recorded as %+v, payload %s", one, payload.Raw)
		}
	})
}

// An admin who hands on the answer of another says why, and the record has both.
func TestNames_Delegation(t *testing.T) {
	t.Parallel()
	g := openGuarded(t)
	i := g.question(t, `, approvers: ["user:approver"], allow_delegation: true`)
	hand := func(who string, r api.DelegateRequest) func() answer {
		return func() answer { return g.call(t, who, "POST", "/interactions/"+i.ID+"/delegate", r) }
	}
	r := api.DelegateRequest{From: "user:approver", To: "user:viewer", Note: "she is on leave"}
	g.unmoved(t, i.ID, http.StatusForbidden, hand("operator", r))
	g.unmoved(t, i.ID, http.StatusUnprocessableEntity, hand("admin", api.DelegateRequest{From: "user:approver", To: "user:viewer"}))
	g.unmoved(t, i.ID, http.StatusForbidden, hand("admin", api.DelegateRequest{From: "user:editor", To: "user:viewer", Note: "she is not asked"}))
	want[api.Interaction](t, hand("admin", r)(), http.StatusOK)
	g.unmoved(t, i.ID, http.StatusForbidden, func() answer { return g.respond(t, "approver", i.ID, approved) })
	want[api.Interaction](t, g.respond(t, "viewer", i.ID, approved), http.StatusOK)
	_, payload := g.seen(t, i)
	if d := g.detail(t, i.ID).Delegations; len(d) != 1 || d[0].From != "user:approver" || d[0].To != "user:viewer" || d[0].By != "admin" || d[0].Note != "she is on leave" || d[0].Means.Token != "tok_admin" {
		t.Errorf("delegations %+v", d)
	}
	if v := payload.Get("approvals.0"); v.Get("person").Str != "viewer" || v.Get("for").Str != "approver" || v.Get("delegated_by").Str != "admin" {
		t.Errorf("payload %s", payload.Raw)
	}
}

// An admin who enters an address of their own in a user's record gets the user's link, or answers from there; both say who entered it.
func TestNames_Addresses(t *testing.T) {
	t.Parallel()
	t.Run("Link", func(t *testing.T) {
		t.Parallel()
		s := openMail(t)
		execution, q, _ := s.ask(t, `, approvers: ["user:approver", "ann@example.org"]`)
		link := func() answer {
			return s.call(t, "admin", "POST", "/interactions/"+q.ID+"/link", api.LinkRequest{Recipient: "user:approver"})
		}
		refused(t, link(), http.StatusConflict, "conflict") // there is no address of theirs
		user := want[api.User](t, s.call(t, "admin", "PUT", "/users/approver", api.UserRequest{Name: "approver", Email: "mine@admin.example", Roles: []string{"approver"}}), http.StatusOK)
		if o := user.AddressOrigins["mail:mine@admin.example"]; o.SetBy != "admin" || o.SetTime == 0 {
			t.Errorf("origins %+v", user.AddressOrigins)
		}
		if got := want[api.Link](t, link(), http.StatusOK); got.URL != "" || got.SentTo != "mail:mine@admin.example" {
			t.Errorf("the admin is told %+v", got)
		}
		refused(t, link(), http.StatusTooManyRequests, "rate_limited")
		letter := s.gets(t, "mine@admin.example", "Pay Müller?")
		// Setting it right afterwards covers nothing.
		want[api.User](t, s.call(t, "admin", "PUT", "/users/approver", api.UserRequest{Name: "approver", Email: "hers@example.org", Roles: []string{"approver"}}), http.StatusOK)
		payload := s.byLink(t, execution, q.ID, letter.link(t), "Pay Müller?")
		one := s.detail(t, q.ID).Responses[0]
		if m := one.Means; one.UserID != "approver" || m.Kind != identity.ByLink || m.Address != "mail:mine@admin.example" || m.AddressSetBy != "admin" || m.AddressSetAt == 0 {
			t.Errorf("recorded as %+v", one)
		}
		if payload.Get("approvals.0.means.address_set_by").Str != "admin" {
			t.Errorf("payload %s", payload.Raw)
		}
	})
	t.Run("Account", func(t *testing.T) {
		t.Parallel()
		s := openSlack(t)
		_, q, asked := s.ask(t, "#ops", `approvers: ["user:approver"]`)
		want[api.User](t, s.call(t, "admin", "PUT", "/users/approver", api.UserRequest{Name: "approver", Addresses: []string{"slack:U2"}, Roles: []string{"approver"}}), http.StatusOK)
		action, value := slackButton(t, asked, "Approve")
		want[any](t, s.form(t, slackSigning, s.click("U2", action, value, "1.1")), http.StatusOK)
		_, payload := s.seen(t, q)
		m := s.detail(t, q.ID).Responses[0].Means
		if m.Kind != identity.ByChannel || m.Address != "slack:U2" || m.AddressSetBy != "admin" || m.Credential != s.credential || payload.Get("approvals.0.means.address").Str != "slack:U2" {
			t.Errorf("recorded as %+v, payload %s", m, payload.Raw)
		}
	})
	// Who enters the address that is asked in their own record is asked from then on; the answer says by what.
	t.Run("Seat", func(t *testing.T) {
		t.Parallel()
		g := openGuarded(t)
		i := g.question(t, `, approvers: ["ann@example.org"]`)
		want[api.User](t, g.call(t, "admin", "PUT", "/users/viewer", api.UserRequest{Name: "viewer", Email: "ann@example.org", Roles: []string{"viewer"}}), http.StatusOK)
		want[api.Interaction](t, g.respond(t, "viewer", i.ID, approved), http.StatusOK)
		g.reaches(t, i.ExecutionID, engine.StatusSuccess)
		if m := g.detail(t, i.ID).Responses[0].Means; m.Kind != identity.ByToken || m.KnownBy != "mail:ann@example.org" || m.AddressSetBy != "admin" {
			t.Errorf("recorded as %+v", m)
		}
	})
}

// What one approver makes of the unclear reply of another is recorded as that, with the reason.
func TestNames_Reading(t *testing.T) {
	t.Parallel()
	s := openHooks(t)
	execution, q, _ := s.ask(t, `approvers: [ann@example.org, "user:approver"], min_approvals: 1`)
	want[map[string]any](t, s.bring(t, hookSecret, map[string]any{"interaction_id": q.ID, "responder": "ann@example.org", "text": "Maybe, who knows."}), http.StatusOK)
	unclear := s.detail(t, q.ID).Responses[0]
	want[api.Interaction](t, s.call(t, "approver", "POST", "/interactions/"+q.ID+"/responses/"+unclear.ID+"/overrule", api.OverruleRequest{ResponseData: json.RawMessage(approved), Reason: "she told me so"}), http.StatusOK)
	payload := s.goesOn(t, execution, q.ID, "approve confirmed result")
	d := s.detail(t, q.ID).Responses
	if d[0].OverruledBy != "approver" || d[0].OverruleReason != "she told me so" || d[0].OverruleMeans.Token != "tok_approver" {
		t.Errorf("the reply is %+v", d[0])
	}
	if one := d[1]; one.Address != "mail:ann@example.org" || one.Ground != store.GroundReading || one.ReadBy != "approver" || one.ReadMeans.Token != "tok_approver" || one.Means.Kind != identity.ByWebhook {
		t.Errorf("the answer is %+v", one)
	}
	if v := payload.Get("approvals.0"); v.Get("ground").Str != "reading" || v.Get("read_by").Str != "approver" || v.Get("reason").Str != "she told me so" {
		t.Errorf("payload %s", payload.Raw)
	}
}

// Each user has idempotency keys of their own, whichever token they use.
func TestNames_IdempotencyKeys(t *testing.T) {
	t.Parallel()
	x, _ := openForPeople(t)
	x.save(t, askFlow("ask", asks("ask", ``)))
	start := func(who, inputs string) api.ExecuteResponse {
		t.Helper()
		return want[api.ExecuteResponse](t, x.call(t, who, "POST", "/workflows/ask/execute", `{"inputs":`+inputs+`}`, "Idempotency-Key", "k"), http.StatusAccepted)
	}
	mine := start("operator", `{"a":1}`)
	other := start("editor", `{"b":2}`) // neither a conflict nor an answer about somebody else's
	if other.Repeated || other.ExecutionID == mine.ExecutionID {
		t.Errorf("%+v of %+v", other, mine)
	}
	second, _ := x.madeFor(t, "admin", "operator")
	for _, who := range []string{"operator", second} {
		if again := start(who, `{"a":1}`); !again.Repeated || again.ExecutionID != mine.ExecutionID {
			t.Errorf("%s: %+v", who, again)
		}
	}
	refused(t, x.call(t, "operator", "POST", "/workflows/ask/execute", `{"inputs":{"c":3}}`, "Idempotency-Key", "k"), http.StatusConflict, "conflict")
}

// A user who is excluded from answering cannot answer through a token that they made for somebody else; and wherever a question says who
// did something, it says who made the token.
func TestNames_TokenOfARequester(t *testing.T) {
	t.Parallel()
	g := openGuarded(t)
	g.save(t, askFlow("own", asks("ask", `, approvers: ["user:approver"], exclude_requester: true`)))
	byAdmin, _ := g.madeFor(t, "admin", "approver")
	washed := want[api.NewToken](t, g.call(t, byAdmin, "POST", "/users/me/tokens", api.TokenRequest{Name: "washed"}), http.StatusCreated)
	g.tokens["washed"] = washed.Secret
	start := func(who string) api.Interaction {
		id := want[api.ExecuteResponse](t, g.call(t, who, "POST", "/workflows/own/execute", api.ExecuteRequest{Inputs: json.RawMessage(`{"amount":7}`)}), http.StatusAccepted).ExecutionID
		return g.opens(t, id, 1)[0]
	}
	mine := start("admin")
	for _, who := range []string{byAdmin, "washed"} {
		refused(t, g.respond(t, who, mine.ID, approved), http.StatusForbidden, "forbidden")
		if d := want[api.InteractionDetail](t, g.call(t, who, "GET", "/interactions/"+mine.ID, nil), http.StatusOK); d.MayRespond {
			t.Errorf("%s may answer", who)
		}
	}
	want[api.Interaction](t, g.respond(t, "approver", mine.ID, approved), http.StatusOK)
	others := start("operator")
	want[api.Interaction](t, g.respond(t, byAdmin, others.ID, approved), http.StatusOK)

	operator, _ := g.madeFor(t, "admin", "operator")
	q := start(operator)
	if d := g.detail(t, q.ID); d.UserID != "operator" || d.TokenMadeBy != "admin" {
		t.Errorf("started by %q with a token of %q", d.UserID, d.TokenMadeBy)
	}
	forked := g.opens(t, g.forks(t, operator, q.ExecutionID, api.ActionRequest{NodeID: "ask", Input: json.RawMessage(`{"amount":8}`)}), 1)[0]
	if fork := gjson.GetBytes(forked.RequestData, "fork"); fork.Get("by").Str != "operator" || fork.Get("token_made_by").Str != "admin" {
		t.Errorf("the fork is %s", fork)
	}
	// What the trigger has added for itself is not what people are asked about, in a fork either.
	if content := gjson.GetBytes(forked.RequestData, "content"); content.Raw != `{"amount":8}` {
		t.Errorf("the question is about %s", content.Raw)
	}
	want[api.Interaction](t, g.call(t, "operator", "POST", "/interactions/"+q.ID+"/cancel", api.CancelInteractionRequest{Reason: "wrong"}), http.StatusOK)
	g.reaches(t, q.ExecutionID, engine.StatusError)
	g.save(t, paidFlow("again", "http://127.0.0.1:1", ""))
	id := want[api.ExecuteResponse](t, g.call(t, "operator", "POST", "/workflows/again/execute", api.ExecuteRequest{Inputs: json.RawMessage(`{"amount":7}`)}), http.StatusAccepted).ExecutionID
	want[api.Interaction](t, g.respond(t, "approver", g.opens(t, id, 1)[0].ID, `{"action":"approve"}`), http.StatusOK)
	g.reaches(t, id, engine.StatusError)
	want[api.ActionResponse](t, g.call(t, operator, "POST", "/executions/"+id+"/actions", api.ActionRequest{Action: "retry_node", NodeID: "pay"}), http.StatusOK)
	if again := gjson.GetBytes(g.opens(t, id, 1)[0].RequestData, "again.0"); again.Get("by").Str != "operator" || again.Get("token_made_by").Str != "admin" {
		t.Errorf("asked again for %s", again)
	}
}
