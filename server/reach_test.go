package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
)

// code has a code sent to an address at the door and returns it.
func (w *world) code(token, address string) string {
	w.t.Helper()
	w.admin("PUT", route.Prefix+"/contact-channels/door", `{"channel_type":"knock"}`).want(w.t, 200)
	w.call(token, "POST", route.Prefix+"/users/me/addresses", fmt.Sprintf(`{"channel":"door","address":%q}`, address)).want(w.t, 202)
	code, ok := w.codes.Load(address)
	if !ok {
		w.t.Fatalf("no code came to %q", address)
	}
	return code.(string)
}

// An address is somebody's when they have read the code that was sent there, within some tries and some time; then questions reach them
// there.
func TestReach_AddressesAreProved(t *testing.T) {
	t.Parallel()
	w := setup(t)
	me, other := w.tokens[identity.Approver], w.tokens[identity.Operator]
	put := func(token, id, body string) answer {
		return w.call(token, "PUT", route.Prefix+"/users/"+id+"/reach", body)
	}
	w.admin("PUT", route.Prefix+"/contact-channels/door", `{"channel_type":"knock"}`).want(t, 200)
	if p := put(me, "me", `{"contacts":[{"channel":"door","address":"U1"}]}`).problem(t, 422, fault.InvalidInput); !strings.Contains(p.Detail, "have a code sent there first") {
		t.Errorf("an address that is not proved: %q", p.Detail)
	}
	code := w.code(me, "u1")
	if wait := w.call(me, "POST", route.Prefix+"/users/me/addresses", `{"channel":"door","address":"U1"}`).want(t, 429); wait.header.Get("Retry-After") == "" {
		t.Error("it does not say how long to wait")
	}
	confirm := func(token, code string) answer {
		return w.call(token, "POST", route.Prefix+"/users/me/addresses/confirm", fmt.Sprintf(`{"address":"U1","code":%q}`, code))
	}
	confirm(other, code).problem(t, 422, fault.InvalidInput) // it was sent for another user
	if p := confirm(me, "12345").problem(t, 422, fault.InvalidInput); !strings.Contains(p.Detail, "4 tries are left") {
		t.Errorf("a wrong code: %q", p.Detail)
	}
	got := read[api.Reach](t, confirm(me, code[:4]+" "+code[4:]).want(t, 200))
	if len(got.Contacts) != 1 || got.Contacts[0] != (api.Contact{Channel: "door", Address: "knock:u1"}) || !slices.Contains(got.Addresses, "knock:u1") || len(got.Proofs) != 0 {
		t.Errorf("proved: %+v", got)
	}
	confirm(me, code).problem(t, 422, fault.InvalidInput) // once
	// Another user cannot have it, however they come to read the code.
	again := w.code(other, "u1")
	confirm(other, again).problem(t, 409, fault.Conflict)
	// It may be chosen again, for later, and given up.
	got = read[api.Reach](t, put(me, "me", `{"contacts":[{"channel":"door","address":"U1","after_seconds":60}],"language":"zh"}`).want(t, 200))
	if got.Contacts[0].AfterSeconds != 60 || got.Language != "zh" {
		t.Errorf("chosen: %+v", got)
	}
	w.admin("DELETE", route.Prefix+"/contact-channels/door", "").problem(t, 409, fault.Conflict)
	w.admin("DELETE", route.Prefix+"/contact-channels/door?force=true", "").want(t, 204)
	if got = read[api.Reach](t, w.call(me, "GET", route.Prefix+"/users/me/reach", "").want(t, 200)); got.Contacts[0].Problem == "" {
		t.Errorf("nothing is said of a channel that is gone: %+v", got)
	}
	got = read[api.Reach](t, w.call(me, "DELETE", route.Prefix+"/users/me/addresses/knock:u1", "").want(t, 200))
	if len(got.Contacts) != 0 || slices.Contains(got.Addresses, "knock:u1") {
		t.Errorf("given up: %+v", got)
	}
}

// Too many tries and too many addresses end in a refusal, and so does an address that nobody is at.
func TestReach_CodesAreBounded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	me := w.tokens[identity.Approver]
	code := w.code(me, "u1")
	wrong := "00000000"
	if code == wrong {
		wrong = "00000001"
	}
	for range 5 {
		w.call(me, "POST", route.Prefix+"/users/me/addresses/confirm", fmt.Sprintf(`{"address":"u1","code":%q}`, wrong)).problem(t, 422, fault.InvalidInput)
	}
	if p := w.call(me, "POST", route.Prefix+"/users/me/addresses/confirm", fmt.Sprintf(`{"address":"u1","code":%q}`, code)).problem(t, 422, fault.InvalidInput); !strings.Contains(p.Detail, "too many tries") {
		t.Errorf("the sixth try: %q", p.Detail)
	}
	if p := w.call(me, "POST", route.Prefix+"/users/me/addresses", `{"channel":"door","address":"wall"}`).want(t, 503); !strings.Contains(p.body, "nobody is there") {
		t.Errorf("a code that cannot be sent: %s", p.body)
	}
	for n := range 3 {
		w.code(me, fmt.Sprint("more", n))
	}
	w.call(me, "POST", route.Prefix+"/users/me/addresses", `{"channel":"door","address":"sixth"}`).want(t, 429)
	// After half an hour a code is worth nothing.
	w.code(w.tokens[identity.Editor], "late")
	stale, _ := w.codes.Load("late")
	w.pass(31 * time.Minute)
	if p := w.call(w.tokens[identity.Editor], "POST", route.Prefix+"/users/me/addresses/confirm", fmt.Sprintf(`{"address":"late","code":%q}`, stale)).problem(t, 422, fault.InvalidInput); !strings.Contains(p.Detail, "expired") {
		t.Errorf("a stale code: %q", p.Detail)
	}
}

// An admin says where others are reached; what they enter is theirs, with who entered it. Nobody else reads or changes it.
func TestReach_OfOthers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.admin("PUT", route.Prefix+"/contact-channels/door", `{"channel_type":"knock"}`).want(t, 200)
	path := route.Prefix + "/users/approver-user/reach"
	got := read[api.Reach](t, w.admin("PUT", path, `{"contacts":[{"channel":"door","address":"U1"}]}`).want(t, 200))
	if len(got.Contacts) != 1 || got.Contacts[0].Problem != "" || !slices.Contains(got.Addresses, "knock:u1") {
		t.Errorf("an admin's choice: %+v", got)
	}
	u := read[api.User](t, w.admin("GET", route.Prefix+"/users/approver-user", "").want(t, 200))
	if o := u.AddressOrigins["knock:u1"]; o.SetBy != "admin-user" || o.SetTime == 0 {
		t.Errorf("who entered it: %+v", u.AddressOrigins)
	}
	e := w.log()[0]
	if e.Action != "user.update" || e.User != "admin-user" || e.ObjectID != "approver-user" || !strings.Contains(string(e.Detail), "knock:u1") {
		t.Errorf("the log says %+v %s", e, e.Detail)
	}
	w.call(w.tokens[identity.Editor], "GET", path, "").problem(t, 403, fault.Forbidden)
	w.call(w.tokens[identity.Editor], "PUT", path, `{"contacts":[]}`).problem(t, 403, fault.Forbidden)
	// What an admin has entered is not the user's to give up.
	w.call(w.tokens[identity.Approver], "DELETE", route.Prefix+"/users/me/addresses/knock:u1", "").problem(t, 403, fault.Forbidden)
	for body, field := range map[string]string{
		`{"contacts":[{"channel":"dor","address":"U1"}]}`:                                            `did you mean`,
		`{"contacts":[{"channel":"door"}]}`:                                                          "say which address",
		`{"contacts":[{"channel":"door","address":"U1"},{"channel":"door","address":"u1"}]}`:         "twice",
		`{"contacts":[{"channel":"door","address":"U1","after_seconds":-1}]}`:                        "after_seconds",
		`{"contacts":[{"channel":"door","address":"U1","problem":"x","after_seconds":99999999999}]}`: "after_seconds",
	} {
		if p := w.admin("PUT", path, body); p.status != 422 || !strings.Contains(p.body, field) {
			t.Errorf("%s: %d %s", body, p.status, p.body)
		}
	}
}

// A contact channel is checked when it is made: people can be reached by it.
func TestReach_ContactChannels(t *testing.T) {
	t.Parallel()
	w := setup(t)
	bot := read[api.Credential](t, w.admin("POST", route.Prefix+"/credentials", `{"name":"bot","type":"slack_bot","data":{"token":"canary"}}`).want(t, 201))
	for body, want := range map[string]string{
		`{}`:                       "credential_id",
		`{"channel_type":"nock"}`:  `did you mean`,
		`{"credential_id":"boot"}`: `did you mean`,
		`{"credential_id":"bot"}`:  "people cannot be reached",
		`{"channel_type":"knock","webhook_url":"https://a.example"}`: "webhook_url",
		`{"channel_type":"knock","in_credential_id":"bot"}`:          "in_credential_id",
	} {
		if p := w.admin("PUT", route.Prefix+"/contact-channels/x", body); p.status != 422 || !strings.Contains(p.body, want) {
			t.Errorf("%s: %d %s", body, p.status, p.body)
		}
	}
	w.admin("PUT", route.Prefix+"/contact-channels/a%20b", `{"channel_type":"knock"}`).problem(t, 422, fault.InvalidInput)
	made := read[api.ContactChannel](t, w.admin("PUT", route.Prefix+"/contact-channels/door", `{"channel_type":"knock","credential_id":"bot"}`).want(t, 200))
	if made.CredentialID != bot.ID || !made.NeedsAddress || made.CreatedBy != "admin-user" {
		t.Errorf("made %+v", made)
	}
	w.call(w.tokens[identity.Editor], "PUT", route.Prefix+"/contact-channels/door", `{"channel_type":"knock"}`).problem(t, 403, fault.Forbidden)
	list := read[api.ContactChannels](t, w.call(w.tokens[identity.Viewer], "GET", route.Prefix+"/contact-channels", "").want(t, 200))
	if len(list.Channels) != 1 || list.Channels[0].Name != "door" {
		t.Errorf("listed %+v", list)
	}
	// What it sends with is used.
	if p := w.admin("DELETE", route.Prefix+"/credentials/bot", "").problem(t, 409, fault.Conflict); !strings.Contains(p.Detail, `contact channel "door"`) {
		t.Errorf("a credential that is used: %q", p.Detail)
	}
}
