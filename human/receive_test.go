package human

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/human/replies"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
)

// judged lets replies be judged by what they begin with.
func judged(o *Options) {
	o.Judge = func(_ context.Context, _ string, t replies.Text) (replies.Judgement, error) {
		factors := map[string]float64{"content": 1}
		kind, rest, _ := strings.Cut(t.Reply.Text, " ")
		switch kind {
		case "yes":
			return replies.Judgement{Relevance: replies.Relevant, Score: 0.9, Factors: factors, Classification: Confirmed, Reasoning: "it says yes"}, nil
		case "no":
			return replies.Judgement{Relevance: replies.Relevant, Score: 0.9, Factors: factors, Classification: Rejected, Reasoning: "it says no"}, nil
		case "option":
			return replies.Judgement{Relevance: replies.Relevant, Score: 0.9, Factors: factors, Classification: rest, Option: rest}, nil
		case "value":
			return replies.Judgement{Relevance: replies.Relevant, Score: 0.9, Factors: factors, Classification: Confirmed, Value: rest}, nil
		case "spam":
			return replies.Judgement{Relevance: replies.Filtered, Score: 0.1, Factors: factors, Reasoning: "it is about something else"}, nil
		case "fail":
			return replies.Judgement{}, errors.New("the model is not there")
		}
		return replies.Judgement{Relevance: replies.Uncertain, Score: 0.5, Factors: factors, Reasoning: "who knows"}, nil
	}
}

// mailFrom is a genuine mail in the thread of a question.
func mailFrom(i store.Interaction, from, text string) Reply {
	return Reply{
		Account: store.Account{Workspace: "ws", Channel: Email, Credential: "box"}, Interaction: i.ID, From: from, Verified: true, Text: text, Dedup: "<" + from + text + ">",
	}
}

// byMail is a question that was put by mail.
func byMail(r Request) Request {
	r.Channel, r.Credential, r.AnalysisModel = Email, "box", "judge"
	if len(r.Approvers) == 0 {
		r.Approvers = []string{"bob", "cid", "mail:out@side.org"}
	}
	return r
}

func (b *bureau) hears(t testing.TB, r Reply) Reaction {
	t.Helper()
	got, err := b.Receive(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got.Text == "" && got.Interaction.ID != "" && !(r.Look && got.Err == nil) {
		t.Errorf("nothing is said about %+v", r)
	}
	return got
}

func TestReceive_Prose(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r        Request
		text     string
		accepted bool
		status   store.InteractionStatus
		class    string
		askBack  string
	}{
		"a yes":               {text: "yes go ahead", accepted: true, status: store.InteractionCompleted, class: Confirmed},
		"a no":                {text: "no", accepted: true, status: store.InteractionCompleted, class: Rejected},
		"an option":           {r: Request{Options: []Option{{Value: "approve"}, {Value: "later"}}}, text: "option later", accepted: true, status: store.InteractionCompleted},
		"no such option":      {r: Request{Options: []Option{{Value: "approve"}, {Value: "later"}}}, text: "option never", status: store.InteractionPending, askBack: reasonInvalid},
		"an option of others": {r: Request{Options: []Option{{Value: "later"}, {Value: "never", Outcome: Rejected}}}, text: "yes", status: store.InteractionPending, askBack: reasonInvalid},
		"unclear":             {text: "hm", status: store.InteractionPending, askBack: reasonUnclear},
		"high risk":           {r: Request{Risk: "high"}, text: "yes", status: store.InteractionPending, askBack: reasonHighRisk},
		"unrelated":           {text: "spam", status: store.InteractionPending},
		"unrelated and risky": {r: Request{Risk: "high"}, text: "spam", status: store.InteractionPending},
		"unrelated goes on":   {r: Request{UnrelatedAction: "route"}, text: "spam", status: store.InteractionCompleted, class: Unrelated},
		"a field":             {r: Request{Type: Input, Fields: []Field{{Name: "n", Type: "number"}}}, text: "value 7", accepted: true, status: store.InteractionCompleted, class: Confirmed},
		"a wrong field":       {r: Request{Type: Input, Fields: []Field{{Name: "n", Type: "number"}}}, text: "value x", status: store.InteractionPending, askBack: reasonInvalid},
		"two fields":          {r: Request{Type: Input, Fields: []Field{{Name: "n"}, {Name: "m"}}}, text: "value x", status: store.InteractionPending, askBack: reasonInvalid},
		"a selection":         {r: Request{Type: Selection, Options: []Option{{Value: "a"}, {Value: "b"}}}, text: "option b", accepted: true, status: store.InteractionCompleted, class: Confirmed},
		"a review":            {r: Request{Type: Review, Review: &ReviewRules{Criteria: []string{"q"}}}, text: "yes", status: store.InteractionPending, askBack: reasonInvalid},
		"no model":            {text: "fail or not", status: store.InteractionPending, askBack: reasonUnclear},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openBureau(judged)
			i := b.put(t, byMail(c.r))
			got := b.hears(t, mailFrom(i, "Out@side.org", c.text))
			if got.Accepted != c.accepted || got.Interaction.Status != c.status || got.Ended != (c.status != store.InteractionPending) || got.Err != nil {
				t.Errorf("%+v", got)
			}
			if len(b.shelf.responses) != 1 {
				t.Fatalf("%d replies are recorded", len(b.shelf.responses))
			}
			one := b.shelf.responses[0]
			if one.Accepted != c.accepted || one.Raw != c.text || one.Relevance == "" || payload.IsNull(one.Factors) || one.Address != "mail:out@side.org" || one.Channel != Email {
				t.Errorf("recorded %+v", one)
			}
			v := b.answered(t, i).Get("value")
			if v.Get("ai_classification").Str != c.class || c.status == store.InteractionCompleted && v.Get("user_response").Str != c.text {
				t.Errorf("told %s", v.Raw)
			}
			sent, err := b.shelf.Deliveries(t.Context(), identity.System("ws"), i.ID)
			if err != nil || (c.askBack == "") != (len(sent) == 0) {
				t.Fatalf("%d messages (%v)", len(sent), err)
			}
			for _, d := range sent {
				var about note
				if err := json.Unmarshal(d.Body, &about); err != nil || d.Kind != KindAskBack || d.Recipient != "out@side.org" || about.Reason != c.askBack || about.For != "mail:out@side.org" || about.Said != c.text {
					t.Errorf("%+v, %s (%v)", d, d.Body, err)
				}
			}
			before := b.shelf.read(t, "ws", i.ID)
			again := b.hears(t, mailFrom(i, "Out@side.org", c.text))
			got.Interaction, again.Interaction = store.Interaction{}, store.Interaction{}
			if diff := cmp.Diff(got, again); diff != "" || b.shelf.read(t, "ws", i.ID).Version != before.Version {
				t.Errorf("the same message again (-first +again):\n%s", diff)
			}
		})
	}
}

func TestReceive_NeverAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Reply)
		code   fault.Code
	}{
		"automatic":          {func(r *Reply) { r.Automatic = true }, fault.Forbidden},
		"unverified":         {func(r *Reply) { r.Verified = false }, fault.Forbidden},
		"somebody else":      {func(r *Reply) { r.From = "dot@x.org" }, fault.Forbidden},
		"nobody":             {func(r *Reply) { r.From = "" }, fault.Forbidden},
		"another account":    {func(r *Reply) { r.Credential = "other" }, fault.Forbidden},
		"another channel":    {func(r *Reply) { r.Channel = Slack }, fault.Forbidden},
		"other arguments":    {func(r *Reply) { r.ArgumentsHash = strings.Repeat("0", 64) }, fault.Conflict},
		"a shared address":   {func(r *Reply) { r.From = "team@x.org" }, fault.Forbidden},
		"two people at once": {func(r *Reply) { r.From, r.Mail = "bob@x.org", "cid@x.org" }, fault.Forbidden},
		"a disabled user":    {func(r *Reply) { r.From = "gone@x.org" }, fault.Forbidden},
	} {
		for _, click := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/", click), func(t *testing.T) {
				t.Parallel()
				b := openBureau(judged)
				b.staff.set(identity.User{Workspace: "ws", ID: "t1", Settings: []byte(`{"addresses":["team@x.org"]}`)})
				b.staff.set(identity.User{Workspace: "ws", ID: "t2", Settings: []byte(`{"addresses":["mail:team@x.org"]}`)})
				b.staff.set(identity.User{Workspace: "ws", ID: "gone", Email: "gone@x.org", Disabled: true})
				i := b.put(t, byMail(Request{Approvers: []string{"bob", "cid", "mail:team@x.org", "mail:gone@x.org"}}))
				r := mailFrom(i, "bob@x.org", "yes")
				if click {
					r.Answer = &Answer{Action: "approve"}
				}
				c.change(&r)
				got := b.hears(t, r)
				if got.Accepted || got.Err == nil || got.Err.Code != c.code || got.Interaction.Status != store.InteractionPending {
					t.Errorf("%+v", got)
				}
				if recorded := !click || c.code == fault.Forbidden; recorded != (len(b.shelf.responses) == 1) {
					t.Fatalf("%d replies are recorded", len(b.shelf.responses))
				}
				for _, one := range b.shelf.responses {
					refused := one.Origin.Refused
					if one.Accepted || !strings.HasPrefix(one.Reasoning, string(c.code)) || refused == nil || refused.Error() != one.Reasoning || InLanguage("zh", refused) == refused.Message {
						t.Errorf("recorded %+v", one)
					}
				}
				again := b.hears(t, r)
				got.Interaction, again.Interaction = store.Interaction{}, store.Interaction{}
				if diff := cmp.Diff(got, again, cmp.AllowUnexported(fault.Error{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Details" }, cmp.Ignore())); diff != "" {
					t.Errorf("the same message again (-first +again):\n%s", diff)
				}
				if sent, err := b.shelf.Deliveries(t.Context(), identity.System("ws"), i.ID); err != nil || len(sent) != 0 {
					t.Errorf("%d messages (%v)", len(sent), err)
				}
				if logged := b.logged(); !strings.Contains(logged, "refused") || !strings.Contains(logged, i.ID) {
					t.Errorf("the log:\n%s", logged)
				}
				// Who is asked may still answer.
				b.must(t, "bob", i.ID, yes)
				if late := b.hears(t, mailFrom(i, "cid@x.org", "no")); late.Accepted || !late.Ended || late.Err == nil || late.Err.Code != fault.Conflict {
					t.Errorf("too late: %+v", late)
				}
			})
		}
	}
}

func TestReceive_Matches(t *testing.T) {
	t.Parallel()
	b := openBureau(judged)
	i := b.put(t, byMail(Request{MinApprovals: 2}))
	token := newReplyToken()
	b.shelf.threads["ws/email/<m1>"], b.shelf.threads["ws/email/"+tokenThread(token)] = i.ID, i.ID
	r := mailFrom(i, "bob@x.org", "yes")
	r.Interaction, r.Threads = "", []string{"<m0>", "<m1>"}
	if got := b.hears(t, r); !got.Accepted || got.Interaction.ID != i.ID {
		t.Errorf("by thread: %+v", got)
	}
	r = mailFrom(i, "cid@x.org", "yes")
	r.Interaction, r.Token = "", strings.ToUpper(token)
	if got := b.hears(t, r); !got.Accepted || !got.Ended {
		t.Errorf("by token: %+v", got)
	}
	for _, odd := range []Reply{{Threads: []string{"<m9>"}}, {Token: "x"}, {}, {Interaction: "x"}} {
		odd.Account, odd.Text = r.Account, "yes"
		if got := b.hears(t, odd); got.Err == nil || got.Err.Code != fault.NotFound {
			t.Errorf("%+v: %+v", odd, got)
		}
	}
	b.shelf.fail = func(string) error { return errors.New("the disk is away") }
	if _, err := b.Receive(t.Context(), r); err == nil {
		t.Error("a reply that could not be recorded is not done with")
	}
}

func TestReceive_Clicks(t *testing.T) {
	t.Parallel()
	b := openBureau()
	i := b.put(t, Request{Channel: Slack, Approvers: []string{"slack:U1", "slack:@eve"}, MinApprovals: 2, Risk: "high"})
	click := Reply{Account: store.Account{Workspace: "ws", Channel: Slack}, Interaction: i.ID, From: "U1", Verified: true, Answer: &Answer{Action: "approve"}, Dedup: "1", Look: true}
	if got := b.hears(t, click); got.Err != nil || got.Request.Risk != "high" || len(b.shelf.responses) != 0 {
		t.Errorf("a look: %+v", got)
	}
	click.From = "U7"
	if got := b.hears(t, click); got.Err == nil || got.Request.Risk != "" || got.Interaction.Request != nil || got.Text == "" {
		t.Errorf("a look of somebody else: %+v", got)
	}
	click.From, click.Look = "U1", false
	if got := b.hears(t, click); !got.Accepted || got.Ended || b.shelf.responses[0].User != "bob" {
		t.Errorf("a click is not prose: %+v", got)
	}
	if got := b.hears(t, click); !got.Accepted || len(b.shelf.responses) != 1 {
		t.Errorf("the same click: %+v", got)
	}
	click.From, click.Aliases, click.Dedup = "U5", []string{"@eve"}, "2"
	if got := b.hears(t, click); !got.Accepted || !got.Ended || got.Interaction.Status != store.InteractionCompleted {
		t.Errorf("by another name: %+v", got)
	}
	if got := b.shelf.responses[1]; got.Address != "slack:@eve" || got.Reasoning != "from slack:U5" {
		t.Errorf("the vote is that of %q (%s)", got.Address, got.Reasoning)
	}
}

// A name that moves from one account to another has one vote, and who has voted by a name is not waited for.
func TestReceive_NamesVoteOnce(t *testing.T) {
	t.Parallel()
	b := openBureau()
	click := func(i store.Interaction, from, name, action string) Reaction {
		t.Helper()
		return b.hears(t, Reply{
			Account: store.Account{Workspace: "ws", Channel: Telegram}, Interaction: i.ID, From: from, Aliases: []string{name}, Verified: true,
			Answer: &Answer{Action: action}, Dedup: from + name + i.ID,
		})
	}
	names := []string{"telegram:@eve", "telegram:@fay"}
	i := b.put(t, Request{Channel: Telegram, Approvers: names, MinApprovals: 2})
	if got := click(i, "41", "@eve", "approve"); !got.Accepted || got.Ended {
		t.Fatalf("the first vote: %+v", got)
	}
	if got := click(i, "42", "@eve", "approve"); got.Accepted || got.Err == nil || got.Err.Code != fault.Conflict {
		t.Errorf("the same name by another account: %+v", got)
	}
	if got := click(i, "43", "@fay", "approve"); !got.Accepted || !got.Ended {
		t.Errorf("the other name: %+v", got)
	}
	i = b.put(t, Request{Channel: Telegram, Approvers: names, MinApprovals: 2, MinRejections: 2})
	if got := click(i, "41", "@eve", "reject"); !got.Accepted || !got.Ended || b.answered(t, i).Get("value.ai_classification").String() != Rejected {
		t.Errorf("two approvals cannot be reached any more: %+v", got)
	}
	i = b.put(t, Request{Channel: Telegram, Approvers: names, ExcludeRequester: true})
	b.staff.set(identity.User{Workspace: "ws", ID: "ann", Settings: []byte(`{"addresses":["telegram:41"]}`)})
	if got := click(i, "41", "@eve", "approve"); got.Accepted || got.Err == nil || got.Err.Code != fault.Forbidden {
		t.Errorf("the requester by a name: %+v", got)
	}
}

// A message that was a reply to one question cannot be one to another.
func TestReceive_KnownElsewhere(t *testing.T) {
	t.Parallel()
	b := openBureau(judged)
	one, two := b.put(t, byMail(Request{})), b.put(t, byMail(Request{}))
	r := mailFrom(one, "bob@x.org", "yes")
	b.hears(t, r)
	r.Interaction = two.ID
	if got := b.hears(t, r); got.Accepted || got.Err == nil || got.Err.Code != fault.Conflict || got.Interaction.Status != store.InteractionPending {
		t.Errorf("%+v", got)
	}
}

// Two programs that answer each other come to an end.
func TestReceive_IsBounded(t *testing.T) {
	t.Parallel()
	b := openBureau(judged)
	i := b.put(t, byMail(Request{}))
	for n := range maxReplies + 10 {
		b.hears(t, mailFrom(i, "bob@x.org", fmt.Sprint("hm ", n)))
	}
	sent, err := b.shelf.Deliveries(t.Context(), identity.System("ws"), i.ID)
	if err != nil || len(sent) != maxAskBacks || len(b.shelf.responses) != maxReplies {
		t.Errorf("%d messages, %d replies (%v)", len(sent), len(b.shelf.responses), err)
	}
	if got := b.hears(t, mailFrom(i, "bob@x.org", "yes")); !got.Accepted {
		t.Errorf("an answer after that: %+v", got)
	}
}

// What is sent where others read it has no link in somebody's name.
func TestReceive_AsksBackInTheChannel(t *testing.T) {
	t.Parallel()
	b := openBureau(judged)
	i := b.put(t, Request{Channel: Slack, Approvers: []string{"bob"}, AnalysisModel: "judge", Settings: json.RawMessage(`{"channel":"#pay"}`)})
	b.shelf.deliveries = append(b.shelf.deliveries, newDelivery(i, KindRequest, "", "", note{}, now()))
	b.hears(t, Reply{Account: store.Account{Workspace: "ws", Channel: Slack}, Interaction: i.ID, From: "U1", Verified: true, Text: "hm", Dedup: "1"})
	sent := b.shelf.deliveries[len(b.shelf.deliveries)-1]
	var about note
	if err := json.Unmarshal(sent.Body, &about); err != nil || sent.Kind != KindAskBack || sent.Recipient != "" || about.For != "" {
		t.Errorf("%+v %s (%v)", sent, sent.Body, err)
	}
}

func TestDesk_Overrule(t *testing.T) {
	t.Parallel()
	b := openBureau(judged)
	ctx := t.Context()
	i := b.put(t, byMail(Request{MinApprovals: 2, MinRejections: 2}))
	b.hears(t, mailFrom(i, "out@side.org", "yes I guess"))
	mail := b.shelf.responses[0].ID
	approve := Submission{Data: json.RawMessage(yes)}
	for _, c := range []struct {
		who, response, reason string
		code                  fault.Code
	}{{"dot", mail, "r", fault.Forbidden}, {"ann", mail, "r", fault.Forbidden}, {"bob", "x", "r", fault.NotFound}, {"bob", mail, " ", fault.InvalidInput}} {
		_, err := b.Overrule(ctx, b.as(c.who), i.ID, c.response, Submission{}, c.reason)
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", c.who, err, c.code)
		}
	}
	if _, err := b.Overrule(ctx, b.as("bob"), i.ID, mail, Submission{}, "it was a joke"); err != nil {
		t.Fatal(err)
	}
	if one := b.shelf.responses[0]; one.OverruledBy != "bob" {
		t.Errorf("%+v", one)
	}
	_, err := b.Overrule(ctx, b.as("cid"), i.ID, mail, approve, "no joke")
	wantCode(t, err, fault.Conflict) // once
	if after := b.must(t, "bob", i.ID, yes); after.Status != store.InteractionPending {
		t.Fatal("what was overruled counts")
	}
	b.hears(t, mailFrom(i, "out@side.org", "hm, that looks like a yes"))
	_, err = b.Overrule(ctx, b.as("cid"), i.ID, b.shelf.responses[2].ID, Submission{}, "r")
	wantCode(t, err, fault.InvalidInput) // it does not count anyway
	_, err = b.Overrule(ctx, b.as("cid"), i.ID, b.shelf.responses[1].ID, approve, "r")
	wantCode(t, err, fault.Conflict) // a form says what it says
	after, err := b.Overrule(ctx, b.as("cid"), i.ID, b.shelf.responses[2].ID, approve, "they told me")
	if err != nil || after.Status != store.InteractionCompleted {
		t.Fatalf("%+v (%v)", after, err)
	}
	votes := b.answered(t, i).Get("value.approvals")
	if votes.Get("0.person").Str != "bob" || votes.Get("1.person").Str != "mail:out@side.org" || len(votes.Array()) != 2 {
		t.Errorf("%s", votes.Raw)
	}
	t.Run("OneWordEach", func(t *testing.T) {
		t.Parallel()
		for name, first := range map[string]bool{"answers first": true, "reads first": false} {
			b := openBureau(judged)
			i := b.put(t, byMail(Request{MinApprovals: 2}))
			b.hears(t, mailFrom(i, "out@side.org", "hm, that looks like a yes"))
			mail := b.shelf.responses[0].ID
			reads := func() error {
				_, err := b.Overrule(ctx, b.as("bob"), i.ID, mail, approve, "they told me")
				return err
			}
			answers := func() error {
				_, err := b.say("bob", i.ID, yes)
				return err
			}
			one, other := reads, answers
			if first {
				one, other = answers, reads
			}
			if err := one(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := other(); fault.CodeOf(err) != fault.Forbidden {
				t.Errorf("%s: one person has been two of those who agree: %v", name, err)
			}
			if after := b.must(t, "cid", i.ID, yes); after.Status != store.InteractionCompleted {
				t.Errorf("%s: somebody else's answer does not count", name)
			}
		}
	})
	t.Run("NotOnesOwn", func(t *testing.T) {
		t.Parallel()
		b := openBureau(judged)
		i := b.put(t, byMail(Request{}))
		b.hears(t, mailFrom(i, "bob@x.org", "hm"))
		_, err := b.Overrule(ctx, b.as("bob"), i.ID, b.shelf.responses[0].ID, approve, "I meant yes")
		wantCode(t, err, fault.Forbidden)
	})
	t.Run("NotWhatNobodyWrote", func(t *testing.T) {
		t.Parallel()
		b := openBureau(judged)
		i := b.put(t, byMail(Request{}))
		away := mailFrom(i, "out@side.org", "yes, I am away")
		away.Automatic = true
		b.hears(t, away)
		_, err := b.Overrule(ctx, b.as("bob"), i.ID, b.shelf.responses[0].ID, approve, "they said yes")
		wantCode(t, err, fault.Forbidden)
	})
	t.Run("NotAtHighRisk", func(t *testing.T) {
		t.Parallel()
		b := openBureau(judged)
		i := b.put(t, byMail(Request{Risk: "high"}))
		b.hears(t, mailFrom(i, "out@side.org", "yes"))
		_, err := b.Overrule(ctx, b.as("bob"), i.ID, b.shelf.responses[0].ID, approve, "they said yes")
		wantCode(t, err, fault.Forbidden)
		if len(b.shelf.responses) != 1 || b.shelf.responses[0].OverruledBy != "" {
			t.Error("a refusal changed something")
		}
	})
}
