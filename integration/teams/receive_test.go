package teams

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/human"
	"tandem/store"
)

func pressed(option string, more map[string]any) map[string]any {
	value := map[string]any{"tandem": map[string]any{"interaction": questionA, "option": option, "arguments_hash": "hash-1"}}
	for k, v := range more {
		value[k] = v
	}
	return value
}

func TestChannel_Receive_Submit(t *testing.T) {
	t.Parallel()
	s, o := newService(t), newOffice(approval(`{}`))
	w, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, s.submit(pressed("approve", map[string]any{"notes": " fine "})), "")
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("error %v, answer %d", err, w.Code)
	}
	want := []human.Reply{{
		Account: store.Account{Workspace: "w", Channel: "teams", Credential: "bot"}, Interaction: questionA, Threads: []string{"a:conv-1|200"},
		From: "aad-ann", Aliases: []string{"29:ann"}, Mail: "ann@example.com", Name: "Ann", Verified: true,
		Answer: &human.Answer{Given: json.RawMessage(`{"action":"approve","notes":"fine"}`)}, ArgumentsHash: "hash-1", Dedup: "a:conv-1|1700",
	}}
	if diff := cmp.Diff(want, o.replies); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	told := s.of(http.MethodPost, "/v3/conversations/a:conv-1/activities/1700")
	if len(told) != 1 || told[0].body["text"] != "Thank you" || told[0].body["textFormat"] != "plain" || told[0].body["replyToId"] != "1700" {
		t.Errorf("told %v", told)
	}
}

// What the directory of another tenant says about somebody is not believed.
func TestChannel_Receive_StrangersMail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ home, member string }{"AnotherTenant": {tenantID, "tenant-2"}, "BotOfManyTenants": {anyTenant, "tenant-2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := newService(t), newOffice(approval(`{}`))
			s.members["29:ann"]["tenantId"] = c.member
			a := o.account(map[string]string{"app_id": appID, "app_secret": appSecret, "tenant_id": c.home, "base_url": s.URL})
			if _, err := s.bring(t, New(s.Client()), a, o.handle, s.submit(pressed("approve", nil)), ""); err != nil || len(o.replies) != 1 {
				t.Fatalf("error %v, replies %+v", err, o.replies)
			}
			if got := o.replies[0]; got.Mail != "" || got.From != "aad-ann" {
				t.Errorf("believed: %+v", got)
			}
		})
	}
}

func TestChannel_Receive_Invoke(t *testing.T) {
	t.Parallel()
	s, o := newService(t), newOffice(approval(`{}`))
	a := s.submit(nil)
	a["type"], a["name"], a["value"] = "invoke", "adaptiveCard/action", map[string]any{"action": map[string]any{"type": "Action.Execute", "data": pressed("reject", nil)}}
	w, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, a, "")
	if err != nil || len(o.replies) != 1 || string(o.replies[0].Answer.Given) != `{"action":"reject"}` {
		t.Fatalf("error %v, replies %+v", err, o.replies)
	}
	if got := strings.TrimSpace(w.Body.String()); got != `{"statusCode":200,"type":"application/vnd.microsoft.activity.message","value":"Thank you"}` {
		t.Errorf("answer %s", got)
	}
	if told := s.of(http.MethodPost, "/activities/1700"); len(told) != 0 {
		t.Errorf("told besides: %v", told)
	}
	a["name"] = "composeExtension/query"
	if w, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, a, ""); err != nil || w.Code != http.StatusNotImplemented {
		t.Errorf("another invoke: error %v, answer %d", err, w.Code)
	}
}

func TestChannel_Receive_Tokens(t *testing.T) {
	t.Parallel()
	s := newService(t)
	with := func(change func(c map[string]any)) map[string]any {
		c := s.claims()
		change(c)
		return c
	}
	rs := func(c map[string]any) string { return sign(t, jose.RS256, s.key, "k1", c) }
	good := rs(s.claims())
	parts := strings.Split(good, ".")
	public, err := json.Marshal(s.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"nothing":        "",
		"no token":       "x.y.z",
		"other key":      sign(t, jose.RS256, s.foreign, "k1", s.claims()),
		"unknown key":    sign(t, jose.RS256, s.foreign, "k9", s.claims()),
		"changed":        parts[0] + "." + parts[1][:len(parts[1])-4] + "AAAA." + parts[2],
		"no algorithm":   "eyJhbGciOiJub25lIiwia2lkIjoiazEifQ." + parts[1] + ".",
		"symmetric":      sign(t, jose.HS256, public, "k1", s.claims()),
		"other issuer":   rs(with(func(c map[string]any) { c["iss"] = "https://evil.example" })),
		"no issuer":      rs(with(func(c map[string]any) { delete(c, "iss") })),
		"other audience": rs(with(func(c map[string]any) { c["aud"] = "app-2" })),
		"no audience":    rs(with(func(c map[string]any) { delete(c, "aud") })),
		"expired":        rs(with(func(c map[string]any) { c["exp"] = time.Now().Add(-6 * time.Minute).Unix() })),
		"never ends":     rs(with(func(c map[string]any) { delete(c, "exp") })),
		"to come":        rs(with(func(c map[string]any) { c["nbf"] = time.Now().Add(6 * time.Minute).Unix() })),
		"other service":  rs(with(func(c map[string]any) { c["serviceurl"] = "https://evil.example/" })),
		"no service":     rs(with(func(c map[string]any) { delete(c, "serviceurl") })),
		"other channel":  sign(t, jose.RS256, s.key, "webchat-only", s.claims()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(approval(`{}`))
			if token == "" {
				token = " "
			}
			if _, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, s.submit(pressed("approve", nil)), token); fault.CodeOf(err) != fault.Unauthorized || len(o.replies) != 0 {
				t.Errorf("error %v, replies %v; want unauthorized", err, o.replies)
			}
		})
	}
	t.Run("a little late", func(t *testing.T) {
		t.Parallel()
		o := newOffice(approval(`{}`))
		late := rs(with(func(c map[string]any) { c["exp"] = time.Now().Add(-time.Minute).Unix() }))
		if _, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, s.submit(pressed("approve", nil)), late); err != nil || len(o.replies) != 1 {
			t.Errorf("error %v, replies %v; clocks may be apart", err, o.replies)
		}
	})
	for name, change := range map[string]func(a map[string]any){
		"other address": func(a map[string]any) { a["serviceUrl"] = "https://evil.example/" },
		"other medium":  func(a map[string]any) { a["channelId"] = "webchat" },
		"other tenant":  func(a map[string]any) { a["channelData"] = map[string]any{"tenant": map[string]any{"id": "t2"}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, a := newOffice(approval(`{}`)), s.submit(pressed("approve", nil))
			change(a)
			if _, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, a, good); fault.CodeOf(err) != fault.Unauthorized || len(o.replies) != 0 {
				t.Errorf("error %v, replies %v; want unauthorized", err, o.replies)
			}
		})
	}
}

func TestChannel_Receive_Keys(t *testing.T) {
	t.Parallel()
	s, o := newService(t), newOffice(approval(`{}`))
	c := New(s.Client())
	now := time.Now()
	c.now = func() time.Time { return now }
	try := func(token string) fault.Code {
		t.Helper()
		_, err := s.bring(t, c, o.bot(s), o.handle, s.submit(pressed("approve", nil)), token)
		return fault.CodeOf(err)
	}
	asked := func() int { return len(s.of(http.MethodGet, "/v1/.well-known/keys")) }

	s.refuse["GET /openidconfiguration"] = []http.HandlerFunc{refusing(503, "")}
	if code := try(""); code != fault.RemoteError {
		t.Errorf("without keys: %q, want that it can come again", code)
	}
	for range 5 {
		if code := try(""); code != "" {
			t.Fatalf("genuine: %q", code)
		}
		if code := try(sign(t, jose.RS256, s.foreign, "k9", s.claims())); code != fault.Unauthorized {
			t.Fatalf("forged: %q", code)
		}
	}
	if n := asked(); n != 1 {
		t.Errorf("forged tokens made it ask %d times", n)
	}
	s.mu.Lock()
	s.keyID = "k2"
	s.mu.Unlock()
	now = now.Add(2 * time.Minute)
	if code := try(sign(t, jose.RS256, s.key, "k2", s.claims())); code != "" || asked() != 2 {
		t.Errorf("new key: %q after asking %d times", code, asked())
	}
	if code := try(""); code != fault.Unauthorized {
		t.Errorf("key that was given up: %q", code)
	}
	now = now.Add(25 * time.Hour)
	claims := s.claims()
	claims["exp"] = now.Add(time.Hour).Unix()
	if code := try(sign(t, jose.RS256, s.key, "k2", claims)); code != "" || asked() != 3 {
		t.Errorf("a day later: %q after asking %d times", code, asked())
	}
}

func TestChannel_Receive_BareWebhooks(t *testing.T) {
	t.Parallel()
	s, o := newService(t), newOffice(approval(`{}`))
	for _, a := range []human.Account{o.account(map[string]string{"webhook_url": s.URL + "/hook/x"}), {Account: store.Account{Credential: "none"}, Open: o.bot(s).Open}} {
		if _, err := s.bring(t, New(s.Client()), a, o.handle, s.submit(pressed("approve", nil)), ""); fault.CodeOf(err) != fault.Unauthorized {
			t.Errorf("error %v, want unauthorized", err)
		}
	}
}

func TestChannel_Receive_WhoMayNot(t *testing.T) {
	t.Parallel()
	s, o := newService(t), newOffice(approval(`{}`))
	o.forbid = true
	if _, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, s.submit(pressed("approve", nil)), ""); err != nil || len(o.replies) != 0 {
		t.Errorf("error %v, replies %+v", err, o.replies)
	}
	if told := s.of(http.MethodPost, "/activities/1700"); len(told) != 1 || told[0].body["text"] != "Not you" {
		t.Errorf("told %v", told)
	}
}

func TestChannel_Receive_Text(t *testing.T) {
	t.Parallel()
	const root = "19:chan@thread.tacv2;messageid=100"
	inThread := func(a map[string]any) {
		delete(a, "replyToId")
		a["conversation"] = map[string]any{"id": root, "tenantId": tenantID, "conversationType": "channel"}
	}
	for name, c := range map[string]struct {
		thread string
		change func(a map[string]any)
		taken  bool
		told   bool
	}{
		"ToTheCard":     {"a:conv-1|200", func(map[string]any) {}, true, true},
		"InTheThread":   {root, inThread, true, true},
		"OtherThread":   {"19:chan@thread.tacv2;messageid=99", inThread, false, false},
		"NotAReply":     {"a:conv-1|200", func(a map[string]any) { delete(a, "replyToId") }, false, true},
		"OtherMessage":  {"a:conv-1|200", func(a map[string]any) { a["replyToId"] = "201" }, false, true},
		"OfABot":        {"a:conv-1|200", func(a map[string]any) { a["from"] = map[string]any{"id": "28:x"} }, false, false},
		"SomethingElse": {"a:conv-1|200", func(a map[string]any) { a["type"] = "messageReaction" }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := newService(t), newOffice(approval(`{}`))
			o.threads = []string{c.thread}
			a := s.write("<blockquote>yes, approve<blockquote>no</blockquote>it</blockquote><at>Tandem</at>&nbsp;looks <b>good</b> &amp; fine")
			c.change(a)
			w, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, a, "")
			if err != nil || w.Code != http.StatusOK {
				t.Fatalf("error %v, answer %d", err, w.Code)
			}
			if (len(o.replies) == 1) != c.taken || (len(s.of(http.MethodPost, "/activities/1700")) == 1) != c.told {
				t.Fatalf("replies %+v, told %v", o.replies, s.of(http.MethodPost, "/activities/1700"))
			}
			if c.taken && (o.replies[0].Text != "looks good & fine" || o.replies[0].Answer != nil) {
				t.Errorf("reply %+v", o.replies[0])
			}
		})
	}
}

func TestChannel_Receive_Mail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		member map[string]any
		mail   string
	}{
		"Address":  {map[string]any{"aadObjectId": "aad-ann", "email": "a@x.example", "userPrincipalName": "b@x.example"}, "a@x.example"},
		"Login":    {map[string]any{"aadObjectId": "aad-ann", "userPrincipalName": "b@x.example"}, "b@x.example"},
		"Guest":    {map[string]any{"aadObjectId": "aad-ann", "userPrincipalName": "b_y.example#EXT#@x.example"}, ""},
		"Somebody": {map[string]any{"aadObjectId": "aad-bob", "email": "bob@x.example"}, ""},
		"Unknown":  {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := newService(t), newOffice(approval(`{}`))
			delete(s.members, "29:ann")
			if c.member != nil {
				s.members["29:ann"] = c.member
			}
			if _, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, s.submit(pressed("approve", nil)), ""); err != nil || len(o.replies) != 1 || o.replies[0].Mail != c.mail {
				t.Errorf("error %v, replies %+v; want mail %q", err, o.replies, c.mail)
			}
		})
	}
	s, o := newService(t), newOffice(approval(`{}`))
	s.refuse["GET /members/29:ann"] = []http.HandlerFunc{refusing(503, "")}
	if _, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, s.submit(pressed("approve", nil)), ""); fault.CodeOf(err) != fault.RemoteError || len(o.replies) != 0 {
		t.Errorf("while the directory is down: %v, replies %v", err, o.replies)
	}
}

func TestChannel_Receive_Errors(t *testing.T) {
	t.Parallel()
	s, o := newService(t), newOffice(approval(`{}`))
	o.err = errors.New("disk full")
	if _, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, s.submit(pressed("approve", nil)), ""); !errors.Is(err, o.err) {
		t.Errorf("error %v", err)
	}
	o.err = nil
	s.refuse["POST /activities/1700"] = []http.HandlerFunc{refusing(403, "")}
	if w, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, s.submit(pressed("approve", nil)), ""); err != nil || w.Code != http.StatusOK {
		t.Errorf("who cannot be told: error %v, answer %d", err, w.Code)
	}
	for _, value := range []any{map[string]any{"tandem": map[string]any{"interaction": "0"}}, map[string]any{"tandem": 3}} {
		if _, err := s.bring(t, New(s.Client()), o.bot(s), o.handle, s.submit(value.(map[string]any)), ""); err != nil {
			t.Errorf("value %v: %v", value, err)
		}
	}
	if len(o.replies) != 1 {
		t.Errorf("replies %+v", o.replies)
	}
}

func TestSubmitted(t *testing.T) {
	t.Parallel()
	options := []human.Option{{Value: "a,b"}, {Value: "c"}, {Value: "d"}}
	for name, c := range map[string]struct {
		purpose     string
		request     human.Request
		option      string
		values      string
		want, wrong string
	}{
		"Several": {"", human.Request{Type: human.Selection, AllowMultiple: true, Options: options}, "", `{"choice":"0,2"}`, `{"selected_values":["a,b","d"]}`, ""},
		"One":     {"", human.Request{Type: human.Selection, Options: options}, "", `{"choice":"1"}`, `{"selected_values":["c"]}`, ""},
		"None":    {"", human.Request{Type: human.Selection, Options: options}, "", `{}`, `{}`, ""},
		"Beyond":  {"", human.Request{Type: human.Selection, Options: options}, "", `{"choice":"7"}`, `{}`, `selected_values: "7" is none of a,b, c, d`},
		"Confirm": {human.PurposeConfirm, human.Request{}, "confirm", `{}`, `{"confirm":true}`, ""},
		// As cards send it that were made before: a switch, fields with their prefix.
		"Form": {"", human.Request{Type: human.Input, Fields: []human.Field{
			{Name: "sum", Type: "number"}, {Name: "odd", Type: "number"}, {Name: "sure", Type: "boolean"}, {Name: "size", Type: "select", Options: options}, {Name: "why"}, {Name: "empty"},
		}}, "", `{"field.sum":"3.5","field.odd":"three","field.sure":"true","field.size":"0","field.why":"\"x\"","field.empty":" ","field.other":"y"}`,
			`{"field_values":{"size":"a,b","sum":3.5,"sure":true,"why":"\"x\""}}`, "field_values.odd: a number was expected"},
		"Budget": {human.PurposeBudget, human.Request{Type: human.Input}, "", `{"field.raise_by":"5"}`, `{"raise_by":5}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var values map[string]json.RawMessage
			if err := json.Unmarshal([]byte(c.values), &values); err != nil {
				t.Fatal(err)
			}
			i := store.Interaction{Type: c.request.Type, Purpose: c.purpose}
			if i.Purpose == "" {
				i.Purpose = human.PurposeNode
			}
			f := human.FormOf(i, c.request)
			filled, wrong := submitted(values, c.option)(f)
			if got := string(f.Answer(filled)); got != c.want || wrong.Error() != c.wrong {
				t.Errorf("answer %s, want %s; wrong %q, want %q", got, c.want, wrong, c.wrong)
			}
		})
	}
}

func FuzzChannel_Receive(f *testing.F) {
	f.Add([]byte(`{"type":"message","serviceUrl":"x","value":{"tandem":{}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		o := newOffice(approval(`{}`))
		var a map[string]any
		if json.Unmarshal(body, &a) != nil {
			return
		}
		// Nothing is asked of anybody for a token that cannot be one.
		c := New(&http.Client{Transport: nowhere{}})
		if _, err := (&service{}).bring(t, c, o.account(map[string]string{"app_id": appID, "app_secret": appSecret, "tenant_id": tenantID}), o.handle, a, "no.token.here"); err == nil || len(o.replies) != 0 {
			t.Errorf("error %v, replies %v", err, o.replies)
		}
	})
}

type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nothing is to be called")
}
