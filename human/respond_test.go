package human

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// bureau is a desk over records in memory, with some users of the workspace ws.
type bureau struct {
	*Desk
	shelf *shelf
	staff *staff
	mu    sync.Mutex // of the log
	log   strings.Builder
	woken atomic.Int64
	asks  int
}

func (b *bureau) logged() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

func openBureau(change ...func(*Options)) *bureau {
	b := &bureau{shelf: newShelf(), staff: &staff{}}
	for _, u := range []identity.User{
		{ID: "ann", Email: "Ann@x.org", Roles: []identity.Role{identity.Operator}}, {ID: "bob", Email: "bob@x.org", Roles: []identity.Role{identity.Approver}, Settings: []byte(`{"addresses":["slack:U1","bob@home.org"]}`)},
		{ID: "cid", Email: "cid@x.org", Roles: []identity.Role{identity.Approver}}, {ID: "dot", Email: "dot@x.org", Roles: []identity.Role{identity.Viewer}},
		{ID: "adm", Roles: []identity.Role{identity.Admin}},
	} {
		u.Workspace = "ws"
		b.staff.set(u)
	}
	o := Options{
		Interactions: b.shelf, Users: b.staff, Wake: func(store.Ref) { b.woken.Add(1) }, PublicURL: "https://tandem.example",
		Log: slog.New(slog.NewTextHandler(&guarded{mu: &b.mu, to: &b.log}, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	b.Desk = withChats(New(o))
	return b
}

// as is a user who acts.
func (b *bureau) as(id string) identity.Principal {
	u, err := b.staff.Get(context.Background(), identity.System("ws"), id)
	if err != nil {
		return identity.Principal{Workspace: "ws", User: id}
	}
	return u.Principal()
}

// put asks a question that ann's execution asks.
func (b *bureau) put(t testing.TB, r Request, change ...func(*Question)) store.Interaction {
	t.Helper()
	b.asks++
	q := asked(t, r)
	q.Ask, q.Time = engine.AskID(fmt.Sprint("n#ask.", b.asks)), now()
	for _, f := range change {
		f(&q)
	}
	i, err := Media(nil).Open(q)
	if err != nil {
		t.Fatal(err)
	}
	b.shelf.put(i)
	return i
}

// say answers a question and says what went wrong.
func (b *bureau) say(who, id, data string) (store.Interaction, error) {
	return b.Respond(context.Background(), b.as(who), id, Submission{Data: json.RawMessage(data)})
}

// answered is what the execution was told; nothing while the question is open.
func (b *bureau) answered(t testing.TB, i store.Interaction) gjson.Result {
	t.Helper()
	for _, item := range b.shelf.items(i.Execution) {
		if item.Dedup == "interaction:"+i.ID {
			if item.Kind != "answer" {
				t.Errorf("the item is of kind %q", item.Kind)
			}
			return gjson.ParseBytes(item.Body)
		}
	}
	return gjson.Result{}
}

// must is an answer that is taken.
func (b *bureau) must(t testing.TB, who, id, data string) store.Interaction {
	t.Helper()
	i, err := b.say(who, id, data)
	if err != nil {
		t.Fatalf("%s says %s: %v", who, data, err)
	}
	return i
}

func wantCode(t testing.TB, err error, code fault.Code) *fault.Error {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("error %v, want %q", err, code)
	}
	return fault.From(err)
}

const (
	yes = `{"action":"approve","notes":"fine"}`
	nay = `{"action":"reject"}`
)

func TestDesk_Respond(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Approvers: []string{"bob"}, Arguments: json.RawMessage(`{"sum":5}`)})
	after := b.must(t, "bob", i.ID, yes)
	if after.Status != store.InteractionCompleted || after.NextAt != 0 || after.Version != 2 {
		t.Errorf("after: %+v", after)
	}
	stored := b.shelf.read(t, "ws", i.ID)
	if stored.Status != after.Status || string(stored.Response) != string(after.Response) || gjson.GetBytes(stored.Response, "user_id").Str != "bob" {
		t.Errorf("stored: %+v", stored)
	}
	told := b.answered(t, i)
	value := told.Get("value")
	if told.Get("ask").Str != i.Ask || told.Get("outcome").Str != string(engine.AskDone) || told.Get("by").Str != "bob" || value.Get("ai_classification").Str != Confirmed ||
		value.Get("options.0").Str != "approve" || value.Get("response_data.notes").Str != "fine" || value.Get("approvals.0.person").Str != "bob" ||
		value.Get("arguments_hash").Str != i.ArgumentsHash || value.Get("interaction_id").Str != i.ID || value.Get("status").Str != "completed" {
		t.Errorf("the execution was told %s", told.Raw)
	}
	pauses, err := b.shelf.Pauses(t.Context(), identity.System("ws"), "e1")
	if err != nil || len(pauses) != 1 || pauses[0].Status != store.PauseResumed || pauses[0].ResumeReason != "human_response" {
		t.Errorf("pauses %+v (%v)", pauses, err)
	}
	if b.woken.Load() != 1 {
		t.Errorf("woken %d times", b.woken.Load())
	}
	// Twice is harmless.
	_, err = b.say("bob", i.ID, nay)
	late := wantCode(t, err, fault.Conflict)
	if late.Details["status"] != "completed" || late.Details["responder"] != "bob" || gjson.Get(fmt.Sprintf("%s", late.Details["response_data"]), "action").Str != "approve" {
		t.Errorf("too late: %+v", late.Details)
	}
	if got := b.shelf.read(t, "ws", i.ID); got.Version != 2 || b.woken.Load() != 1 {
		t.Errorf("the second answer changed something: %+v", got)
	}
}

func TestDesk_Respond_Refuses(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Approvers: []string{"bob", "role:approver", "ann"}, ExcludeRequester: true, Arguments: json.RawMessage(`{"sum":5}`)})
	for name, c := range map[string]struct {
		who  identity.Principal
		id   string
		in   Submission
		code fault.Code
	}{
		"somebody else":         {b.as("dot"), i.ID, Submission{Data: json.RawMessage(yes)}, fault.Forbidden},
		"an admin who is not":   {b.as("adm"), i.ID, Submission{Data: json.RawMessage(yes)}, fault.Forbidden},
		"the requester":         {b.as("ann"), i.ID, Submission{Data: json.RawMessage(yes)}, fault.Forbidden},
		"the system":            {identity.System("ws"), i.ID, Submission{Data: json.RawMessage(yes)}, fault.Forbidden},
		"another workspace":     {identity.Principal{Workspace: "other", User: "bob"}, i.ID, Submission{Data: json.RawMessage(yes)}, fault.NotFound},
		"an unknown question":   {b.as("bob"), "x", Submission{Data: json.RawMessage(yes)}, fault.NotFound},
		"other arguments":       {b.as("bob"), i.ID, Submission{Data: json.RawMessage(yes), ArgumentsHash: strings.Repeat("0", 64)}, fault.Conflict},
		"an answer that is not": {b.as("bob"), i.ID, Submission{Data: json.RawMessage(`{"action":"dance"}`)}, fault.InvalidInput},
		"a role of the token":   {identity.Principal{Workspace: "ws", User: "dot", Roles: []identity.Role{identity.Approver}}, i.ID, Submission{Data: json.RawMessage(yes)}, fault.Forbidden},
	} {
		_, err := b.Respond(t.Context(), c.who, c.id, c.in)
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if got := b.shelf.read(t, "ws", i.ID); got.Version != 1 || len(b.shelf.responses) != 0 || b.woken.Load() != 0 {
		t.Errorf("a refusal changed something: %+v", got)
	}
	logged := b.logged()
	if n := strings.Count(logged, "an answer was refused"); n != 9 || !strings.Contains(logged, i.ID) || !strings.Contains(logged, "who=dot") {
		t.Errorf("%d refusals are logged:\n%s", n, logged)
	}
	if may, why := b.May(t.Context(), b.as("dot"), i); may || why == nil {
		t.Error("dot may answer")
	}
	if may, why := b.May(t.Context(), b.as("bob"), i); !may || why != nil {
		t.Errorf("bob may not answer: %s", why)
	}
	if _, err := b.Respond(t.Context(), b.as("bob"), i.ID, Submission{Data: json.RawMessage(yes), ArgumentsHash: i.ArgumentsHash}); err != nil {
		t.Errorf("with the right arguments: %v", err)
	}
}

// What counts is what is true when somebody answers.
func TestDesk_Respond_RevokedMeanwhile(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Approvers: []string{"role:approver", "dot"}})
	cid, bob, dot := b.as("cid"), b.as("bob"), b.as("dot")
	b.staff.set(identity.User{Workspace: "ws", ID: "bob", Roles: []identity.Role{identity.Viewer}})
	b.staff.set(identity.User{Workspace: "ws", ID: "dot", Disabled: true})
	for _, p := range []identity.Principal{bob, dot} {
		_, err := b.Respond(t.Context(), p, i.ID, Submission{Data: json.RawMessage(yes)})
		wantCode(t, err, fault.Forbidden)
	}
	if _, err := b.Respond(t.Context(), cid, i.ID, Submission{Data: json.RawMessage(yes)}); err != nil {
		t.Error(err)
	}
}

// A question that nobody is left to answer is an admin's; as long as somebody is, it is theirs.
func TestDesk_Respond_Orphaned(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Approvers: []string{"dot", "bob"}})
	b.staff.set(identity.User{Workspace: "ws", ID: "dot", Disabled: true})
	_, err := b.say("adm", i.ID, yes)
	wantCode(t, err, fault.Forbidden)
	b.staff.set(identity.User{Workspace: "ws", ID: "bob", Disabled: true})
	_, err = b.say("ann", i.ID, yes)
	wantCode(t, err, fault.Forbidden)
	if i = b.must(t, "adm", i.ID, yes); i.Status != store.InteractionCompleted || b.answered(t, i).Get("value.ai_classification").String() != Confirmed {
		t.Errorf("after an admin's answer: %+v, %s", i, b.answered(t, i))
	}
}

func TestDesk_Respond_Quorum(t *testing.T) {
	t.Parallel()
	t.Run("EnoughApprovals", func(t *testing.T) {
		t.Parallel()
		b := openBureau()
		i := b.put(t, Request{Approvers: []string{"bob", "cid", "dot"}, MinApprovals: 2})
		if after := b.must(t, "bob", i.ID, yes); after.Status != store.InteractionPending {
			t.Fatalf("after one: %s", after.Status)
		}
		_, err := b.say("bob", i.ID, yes)
		if again := wantCode(t, err, fault.Conflict); again.Details["status"] != "pending" || again.Details["responder"] != "bob" {
			t.Errorf("again: %+v", again.Details)
		}
		if after := b.must(t, "dot", i.ID, yes); after.Status != store.InteractionCompleted || len(b.answered(t, i).Get("value.approvals").Array()) != 2 {
			t.Errorf("after two: %s, %s", after.Status, b.answered(t, i).Raw)
		}
	})
	t.Run("FirstRejection", func(t *testing.T) {
		t.Parallel()
		b := openBureau()
		i := b.put(t, Request{Approvers: []string{"bob", "cid", "dot"}, MinApprovals: 2})
		b.must(t, "bob", i.ID, yes)
		b.must(t, "cid", i.ID, nay)
		if v := b.answered(t, i).Get("value"); v.Get("ai_classification").Str != Rejected || v.Get("options.0").Str != "reject" || v.Get("responder").Str != "cid" {
			t.Errorf("%s", v.Raw)
		}
	})
	t.Run("Unreachable", func(t *testing.T) {
		t.Parallel()
		b := openBureau()
		i := b.put(t, Request{Approvers: []string{"role:approver"}, MinApprovals: 2, MinRejections: 2})
		b.must(t, "cid", i.ID, nay) // bob alone is not enough
		if v := b.answered(t, i).Get("value"); v.Get("ai_classification").Str != Rejected {
			t.Errorf("%s", v.Raw)
		}
	})
	t.Run("UnreachableSinceSomebodyLeft", func(t *testing.T) {
		t.Parallel()
		b := openBureau()
		i := b.put(t, Request{Approvers: []string{"role:approver"}, MinApprovals: 2})
		b.staff.set(identity.User{Workspace: "ws", ID: "cid", Roles: []identity.Role{identity.Approver}, Disabled: true})
		b.must(t, "bob", i.ID, yes)
		if v := b.answered(t, i).Get("value"); v.Get("ai_classification").Str != Rejected || v.Get("options").Exists() {
			t.Errorf("an approval that is not enough: %s", v.Raw)
		}
	})
	t.Run("EscalationMayBringMore", func(t *testing.T) {
		t.Parallel()
		b := openBureau()
		i := b.put(t, Request{Approvers: []string{"bob"}, MinApprovals: 2, Escalation: &Escalation{60, []string{"dot"}}})
		if after := b.must(t, "bob", i.ID, yes); after.Status != store.InteractionPending {
			t.Errorf("it ended with %s before the others were asked", after.Status)
		}
	})
	t.Run("ToolIsNotAllowedWithoutIt", func(t *testing.T) {
		t.Parallel()
		b := openBureau()
		i := b.put(t, Request{Approvers: []string{"role:approver"}, MinApprovals: 2}, func(q *Question) { q.Purpose = PurposeToolApproval })
		b.staff.set(identity.User{Workspace: "ws", ID: "cid", Disabled: true})
		b.must(t, "bob", i.ID, `{"approved":true}`)
		if got := b.answered(t, i).Get("value").Raw; got != `{"approved":false}` {
			t.Errorf("the tool was told %s", got)
		}
	})
	t.Run("NeitherOption", func(t *testing.T) {
		t.Parallel()
		b := openBureau()
		i := b.put(t, Request{Options: []Option{{Value: "approve"}, {Value: "需要修改"}}})
		b.must(t, "ann", i.ID, `{"action":"需要修改"}`)
		if v := b.answered(t, i).Get("value"); v.Get("ai_classification").Exists() || v.Get("options.0").Str != "需要修改" {
			t.Errorf("%s", v.Raw)
		}
	})
	t.Run("Reviews", func(t *testing.T) {
		t.Parallel()
		b := openBureau()
		i := b.put(t, Request{Type: Review, Approvers: []string{"bob", "cid"}, Review: &ReviewRules{Criteria: []string{"q"}, Scoring: "numeric_scale", Threshold: 3, Consensus: true}})
		if after := b.must(t, "bob", i.ID, `{"scores":{"q":5}}`); after.Status != store.InteractionPending {
			t.Fatal("one of two is not a consensus")
		}
		b.must(t, "cid", i.ID, `{"scores":{"q":2}}`)
		if v := b.answered(t, i).Get("value"); v.Get("average").Num != 3.5 || v.Get("passed").Bool() || !v.Get("disagreement").Bool() || v.Get("ai_classification").Str != Rejected || len(v.Get("reviews").Array()) != 2 {
			t.Errorf("%s", v.Raw)
		}
	})
}

// One person has one vote, whatever address they use.
func TestDesk_Respond_OnePersonOneVote(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Channel: Slack, Approvers: []string{"slack:U1", "mail:bob@home.org", "bob", "role:approver"}, MinApprovals: 2})
	b.must(t, "bob", i.ID, yes)
	got, err := b.Receive(t.Context(), Reply{Account: store.Account{Workspace: "ws", Channel: Slack}, Interaction: i.ID, From: "U1", Verified: true, Answer: &Answer{Action: "approve"}, Dedup: "1"})
	if err != nil || got.Accepted || got.Err == nil || got.Err.Code != fault.Conflict {
		t.Errorf("by slack: %+v (%v)", got, err)
	}
	if after := b.must(t, "cid", i.ID, yes); after.Status != store.InteractionCompleted {
		t.Errorf("two people: %s", after.Status)
	}
}

// Two addresses that turn out to be one person's are one vote from then on.
func TestDesk_Respond_OnePersonLater(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Channel: Slack, Approvers: []string{"slack:U7", "slack:U8", "cid", "dot"}, MinApprovals: 3})
	for _, from := range []string{"U7", "U8"} {
		got, err := b.Receive(t.Context(), Reply{Account: store.Account{Workspace: "ws", Channel: Slack}, Interaction: i.ID, From: from, Verified: true, Answer: &Answer{Action: "approve"}, Dedup: from})
		if err != nil || !got.Accepted {
			t.Fatalf("%+v (%v)", got, err)
		}
	}
	b.staff.set(identity.User{Workspace: "ws", ID: "eve", Settings: []byte(`{"addresses":["slack:U7","slack:U8"]}`)})
	if after := b.must(t, "cid", i.ID, yes); after.Status != store.InteractionPending {
		t.Fatalf("two people are three votes: %s", after.Status)
	}
	if after := b.must(t, "dot", i.ID, yes); after.Status != store.InteractionCompleted || len(b.answered(t, i).Get("value.approvals").Array()) != 3 {
		t.Errorf("three people: %s", after.Status)
	}
}

func TestDesk_Respond_AtTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openBureau()
		in, out := b.put(t, Request{TimeoutSeconds: 60}), b.put(t, Request{TimeoutSeconds: 60})
		time.Sleep(60*time.Second - time.Millisecond)
		b.must(t, "ann", in.ID, yes)
		time.Sleep(time.Millisecond)
		_, err := b.say("ann", out.ID, yes)
		if e := wantCode(t, err, fault.Conflict); e.Details["status"] != "timeout" {
			t.Errorf("%+v", e.Details)
		}
	})
}

func TestDesk_Respond_ManyAtOnce(t *testing.T) {
	t.Parallel()
	const many = 200
	t.Run("OneWins", func(t *testing.T) {
		t.Parallel()
		b := openBureau()
		i := b.put(t, Request{Access: "public"})
		var won, late atomic.Int64
		var all sync.WaitGroup
		for n := range many {
			all.Go(func() {
				data := yes
				if n%2 == 0 {
					data = nay
				}
				_, err := b.say(fmt.Sprint("guest", n), i.ID, data)
				switch {
				case err == nil:
					won.Add(1)
				case fault.CodeOf(err) == fault.Conflict && fault.From(err).Details["responder"] != "":
					late.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || late.Load() != many-1 || len(b.shelf.items("e1")) != 1 || b.shelf.changes != 1 || b.woken.Load() != 1 {
			t.Errorf("%d won, %d were late, %d items, %d changes", won.Load(), late.Load(), len(b.shelf.items("e1")), b.shelf.changes)
		}
	})
	t.Run("AllCount", func(t *testing.T) {
		t.Parallel()
		b := openBureau()
		for n := range many {
			b.staff.set(identity.User{Workspace: "ws", ID: fmt.Sprint("u", n), Roles: []identity.Role{identity.Editor}})
		}
		i := b.put(t, Request{Approvers: []string{"role:editor"}, MinApprovals: many})
		other := New(b.o) // another process, which only the record's version keeps apart
		var all sync.WaitGroup
		for n := range many {
			all.Go(func() {
				d := b.Desk
				if n%2 == 0 {
					d = other
				}
				if _, err := d.Respond(t.Context(), b.as(fmt.Sprint("u", n)), i.ID, Submission{Data: json.RawMessage(yes)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := len(b.answered(t, i).Get("value.approvals").Array()); got != many {
			t.Errorf("%d votes", got)
		}
	})
}

func TestDesk_Respond_RaisesABudget(t *testing.T) {
	t.Parallel()
	var raised []string
	fail := true
	b := openBureau(func(o *Options) {
		o.Raise = func(_ context.Context, p identity.Principal, id, budget string, by float64) error {
			raised = append(raised, fmt.Sprint(p.Workspace, " ", p.User, " ", id, " ", budget, " ", by))
			if fail {
				return errors.New("no")
			}
			return nil
		}
	})
	i := b.put(t, Request{}, func(q *Question) {
		q.Purpose, q.Request = PurposeBudget, json.RawMessage(`{"budget":"day","interaction_type":"input"}`)
	})
	if _, err := b.say("ann", i.ID, `{"raise_by":5}`); err == nil || b.shelf.read(t, "ws", i.ID).Status != store.InteractionPending {
		t.Errorf("%v: a budget that was not raised is answered", err)
	}
	fail = false
	b.must(t, "ann", i.ID, `{"raise_by":5}`)
	if want := "ws ann e1/" + i.Ask + " day 5"; len(raised) != 2 || raised[1] != want {
		t.Errorf("%q, want %q", raised, want)
	}
	if got := b.answered(t, i).Get("value").Raw; got != `{"raise_by":5}` {
		t.Errorf("told %s", got)
	}
}

func TestDesk_Respond_WithAFile(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Type: Input, Fields: []Field{{Name: "f", Type: "file"}}})
	after := b.must(t, "ann", i.ID, `{"field_values":{"f":{"name":"a","base64":"aGVsbG8="}}}`)
	if bytes.Contains(after.Response, []byte("aGVsbG8=")) || bytes.Contains(b.shelf.responses[0].Data, []byte("aGVsbG8=")) {
		t.Error("the content of a file is in the record")
	}
	if got := b.answered(t, i).Get("value.response_data.field_values.f.base64").Str; got != "aGVsbG8=" {
		t.Errorf("the execution gets %q", got)
	}
}

// Who may not answer does not learn what was answered.
func TestDesk_Respond_TellsOnlyThoseAsked(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Approvers: []string{"bob", "cid"}})
	secret := b.link(t, "cid", i.ID, "cid")
	b.must(t, "bob", i.ID, `{"action":"reject","notes":"the merger fails"}`)
	b.staff.set(identity.User{Workspace: "ws", ID: "cid", Disabled: true})
	_, byForm := b.say("dot", i.ID, yes)
	_, byLink := b.RespondLink(t.Context(), secret, Submission{Data: json.RawMessage(yes)})
	for _, err := range []error{byForm, byLink} {
		if e := wantCode(t, err, fault.Forbidden); len(e.Details) != 0 || strings.Contains(e.Message, "merger") {
			t.Errorf("%+v", e)
		}
	}
	if view := b.state(t, secret); view.State != LinkExpired || view.Interaction.Response != nil || view.Interaction.Request != nil {
		t.Errorf("%+v", view)
	}
}

func TestDesk_Cancel(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Approvers: []string{"bob"}, Channel: Email})
	_, err := b.Cancel(t.Context(), b.as("bob"), i.ID, "")
	wantCode(t, err, fault.Forbidden)
	after, err := b.Cancel(t.Context(), b.as("ann"), i.ID, "not needed")
	if err != nil || after.Status != store.InteractionCancelled || after.NextAt == 0 {
		t.Errorf("%+v (%v)", after, err)
	}
	if told := b.answered(t, i); told.Get("outcome").Str != string(engine.AskCanceled) || told.Get("value.status").Str != "cancelled" {
		t.Errorf("%s", told.Raw)
	}
	_, err = b.say("bob", i.ID, yes)
	if e := wantCode(t, err, fault.Conflict); e.Details["status"] != "cancelled" {
		t.Errorf("%+v", e.Details)
	}
	if pauses, err := b.shelf.Pauses(t.Context(), identity.System("ws"), "e1"); err != nil || pauses[0].Status != store.PauseCanceled || pauses[0].ResumeReason != "canceled" {
		t.Errorf("%+v (%v)", pauses, err)
	}
}

func TestDesk_Remind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openBureau()
		quiet := b.put(t, Request{Approvers: []string{"bob"}})
		_, err := b.Remind(t.Context(), b.as("ann"), quiet.ID)
		wantCode(t, err, fault.Conflict)
		i := b.put(t, Request{Approvers: []string{"bob", "cid"}, MinApprovals: 2, Channel: Email})
		_, err = b.Remind(t.Context(), b.as("dot"), i.ID)
		wantCode(t, err, fault.Forbidden)
		b.must(t, "cid", i.ID, yes)
		if _, err = b.Remind(t.Context(), b.as("ann"), i.ID); err != nil {
			t.Fatal(err)
		}
		sent, err := b.shelf.Deliveries(t.Context(), identity.System("ws"), i.ID)
		if err != nil || len(sent) != 1 || sent[0].Kind != KindReminder || sent[0].Recipient != "bob@x.org" {
			t.Errorf("%+v (%v)", sent, err)
		}
		_, err = b.Remind(t.Context(), b.as("ann"), i.ID)
		wantCode(t, err, fault.RateLimited)
		time.Sleep(time.Minute)
		if _, err = b.Remind(t.Context(), b.as("ann"), i.ID); err != nil {
			t.Error(err)
		}
	})
}

// Whatever people do, in whatever order: nobody counts twice, the end is told once, and it is what the votes say.
func TestDesk_Property(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := openBureau()
		users := []string{"ann", "bob", "cid", "dot", "adm"}
		r := Request{
			Channel: Slack, Approvers: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"ann", "bob", "cid", "slack:U1", "mail:cid@x.org", "role:approver", "slack:U9"}), 1, 5, rapid.ID[string]).Draw(rt, "approvers"),
			MinRejections: rapid.IntRange(1, 2).Draw(rt, "rejections"), AllowDelegation: true, ExcludeRequester: rapid.Bool().Draw(rt, "exclude"),
		}
		r.MinApprovals = rapid.IntRange(1, len(r.Approvers)).Draw(rt, "approvals")
		q := asked(t, r)
		q.Time = now()
		i, err := Media(nil).Open(q)
		if err != nil {
			rt.Skip(err)
		}
		b.shelf.put(i)
		yesBy, noBy := map[string]bool{}, map[string]bool{}
		ended := false
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			who := rapid.SampledFrom(users).Draw(rt, "who")
			data, by := yes, yesBy
			if rapid.Bool().Draw(rt, "no") {
				data, by = nay, noBy
			}
			var took bool
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				_, err := b.Delegate(context.Background(), b.as(who), i.ID, "", rapid.SampledFrom(users).Draw(rt, "to"), "")
				if ended && err == nil {
					rt.Fatal("delegated after the end")
				}
				continue
			case 1:
				from := rapid.SampledFrom([]string{"U1", "U9"}).Draw(rt, "from")
				reaction, err := b.Receive(context.Background(), Reply{Account: store.Account{Workspace: "ws", Channel: Slack}, Interaction: i.ID, From: from, Verified: true, Answer: &Answer{Action: strings.Split(data, `"`)[3]}})
				if err != nil {
					rt.Fatal(err)
				}
				who, took = map[string]string{"U1": "bob", "U9": "slack:U9"}[from], reaction.Accepted
			default:
				_, err := b.say(who, i.ID, data)
				took = err == nil
			}
			if !took {
				continue
			}
			if ended || yesBy[who] || noBy[who] || r.ExcludeRequester && who == "ann" {
				rt.Fatalf("%s was heard: ended %v, yes %v, no %v", who, ended, yesBy, noBy)
			}
			by[who] = true
			ended = b.shelf.interactions["ws/"+i.ID].Status != store.InteractionPending
		}
		items := b.shelf.items("e1")
		if ended != (len(items) == 1) {
			rt.Fatalf("ended: %v, told %d times", ended, len(items))
		}
		if !ended {
			if len(yesBy) >= r.MinApprovals || len(noBy) >= r.MinRejections {
				rt.Fatalf("%d yes, %d no, and it is open", len(yesBy), len(noBy))
			}
			return
		}
		outcome := gjson.GetBytes(items[0].Body, "value.ai_classification").Str
		if (outcome == Confirmed) != (len(yesBy) >= r.MinApprovals) {
			rt.Fatalf("%s with %d yes of %d", outcome, len(yesBy), r.MinApprovals)
		}
	})
}
