package app

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/human"
	"tandem/store"
)

// mediaBench is a workbench for questions, with everything that they are asked by: a post office, and the services of Slack, Discord,
// Telegram and Teams. These names stand for credentials besides those of a workbench: $SMTP and $IMAP, $BOT_S, $BOT_D, $BOT_T and $BOT_M
// for the services, $BARE for an incoming webhook of Teams, $HOOK for a program.
type mediaBench struct {
	*workbench
	people   channelSite
	mail     *mailSite
	telegram *telegramSite
	wires    []*wire
	stand    []string
}

func newMediaBench(t *testing.T, change ...func(*Options)) *mediaBench {
	t.Helper()
	m := &mediaBench{}
	m.mail = mailOn(t, func(t *testing.T) channelSite {
		m.workbench = newWorkbench(t, change...)
		return channelSite{m.workbench.site}
	})
	m.people, m.strict = m.mail.channelSite, true
	slack, discord, teams := slackOn(t, m.people), discordOn(t, m.people), teamsOn(t, m.people)
	m.telegram = telegramOn(t, m.people)
	m.wires = []*wire{slack.wire, discord.wire, m.telegram.wire, teams.wire}
	m.stand = []string{
		"$SMTP", m.mail.smtp, "$IMAP", m.mail.imap, "$BOT_S", slack.credential, "$BOT_D", discord.credential, "$BOT_T", m.telegram.credential, "$BOT_M", teams.credential,
		"$HOOK", m.people.keep(t, "webhook_secret", map[string]any{"secret": hookSecret}),
		"$BARE", want[api.Credential](t, m.call(t, "admin", "POST", "/credentials", map[string]any{"name": "bare", "type": "teams_bot", "data": map[string]any{"webhook_url": m.service.URL + "/bare"}}), http.StatusCreated).ID,
	}
	return m
}

// medium is what a kind of question needs to reach somebody, and who that is.
type medium struct {
	config string
	seat   string
	person human.Reply
}

func mediumOf(kind string) medium {
	ann := human.Reply{From: mailAnn, Mail: mailAnn}
	letters := medium{`{"recipient_emails": ["ann@example.org"], "sender_email": "bot@tandem.example", "credential_id": "$SMTP"}`, "mail:" + mailAnn, ann}
	m, ok := map[string]medium{
		"GMAIL_INTERACTION":    letters,
		"OUTLOOK_INTERACTION":  letters,
		"SLACK_INTERACTION":    {`{"channel": "#ops", "credential_id": "$BOT_S"}`, "slack:U1", human.Reply{From: "U1"}},
		"DISCORD_INTERACTION":  {`{"server_id": "1", "channel_id": "55", "credential_id": "$BOT_D"}`, "discord:42", human.Reply{From: "42"}},
		"TELEGRAM_INTERACTION": {`{"chat_id": 42, "credential_id": "$BOT_T"}`, "telegram:42", human.Reply{From: "42"}},
		"TEAMS_INTERACTION":    {`{"user": "29:ann", "credential_id": "$BOT_M"}`, "teams:29:ann", human.Reply{From: "29:ann"}},
		"FORM_SUBMISSION":      {`{"input_fields": [{"name": "a"}]}`, "user:operator", human.Reply{User: "operator"}},
		"MANUAL_REVIEW":        {`{"reviewers": ["user:operator"], "review_criteria": ["good"]}`, "user:operator", human.Reply{User: "operator"}},
	}[strings.TrimPrefix(kind, "HUMAN_IN_THE_LOOP.")]
	if !ok {
		return medium{`{}`, "user:operator", human.Reply{User: "operator"}}
	}
	return m
}

// complete adds to configurations what the kind needs besides, and who is asked if they do not say.
func (m medium) complete(t *testing.T, config, scene string) string {
	t.Helper()
	all, own := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(m.config), &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(config), &own); err != nil {
		t.Fatal(err)
	}
	seat := "user:operator"
	if strings.HasPrefix(scene, "says ") {
		if seat = m.seat; m.person.User != "" { // the inbox hears nothing
			maps.Copy(all, map[string]json.RawMessage{"channel_type": json.RawMessage(`"webhook"`), "webhook_url": json.RawMessage(`"$U/hook"`), "credential_id": json.RawMessage(`"$HOOK"`)})
		}
	}
	if own["target_users"] == nil && own["reviewers"] == nil {
		all["approvers"] = json.RawMessage(`["` + seat + `"]`)
	}
	for instead, other := range map[string]string{"channel_id": "user", "form_schema": "input_fields"} { // order does not matter: each is for itself
		if own[instead] != nil {
			delete(all, other)
		}
	}
	maps.Copy(all, own)
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// run runs a node that asks. What happens then is the scene: "runs out" lets the time of the question be up, "answers" is followed by a
// user and an answer, "says" by the words of who is asked, "writes" by what is written in Telegram, "delegates" hands the answer on,
// "escalates" waits until others are asked, "around" starts behind the question, and "page" only looks at the page of a link, which kinds
// without a medium show in any case.
func (m *mediaBench) run(t *testing.T, kind, config string, p proof) string {
	t.Helper()
	by := mediumOf(kind)
	r := benchRun{provider: "openai", stand: m.stand}
	if p.scene == "around" {
		r.nodes = "  - {id: after, name: after, description: d, type: CALL, subtype: EMPTY}\n"
		r.behind = "  - {from_node: n, to_node: after, output_key: confirmed}\n"
	}
	r.rest = func(key, execution string) string {
		list := m.pending(t, execution)
		if len(list) == 0 {
			return "" // nobody is asked
		}
		q := list[0]
		m.settled(t, q)
		var b strings.Builder
		if p.scene == "page" || by.person.User != "" {
			b.WriteString(m.page(t, q))
		}
		b.WriteString(m.record(t, q))
		b.WriteString(m.messages(t, key)) // before others come that say how it has ended
		b.WriteString(m.happens(t, p.scene, by, key, execution, q))
		return b.String()
	}
	return m.workbench.run(t, kind, by.complete(t, config, p.scene), p, r)
}

// settled waits until the messages of a question are sent or given up.
func (m *mediaBench) settled(t *testing.T, q api.Interaction) {
	t.Helper()
	if q.ChannelType == human.InApp {
		return
	}
	look := time.NewTicker(40 * time.Millisecond) // messages make no events
	defer look.Stop()
	for end := time.After(channelPatience); ; {
		list := m.people.detail(t, q.ID).Deliveries
		if len(list) > 0 && !slices.ContainsFunc(list, func(one api.InteractionDelivery) bool { return one.Status == "pending" }) {
			return
		}
		select {
		case <-look.C:
		case <-end:
			t.Fatalf("messages %+v", list)
		}
	}
}

// record is what is recorded of a question besides what it says: who may answer, until when, when it is looked at again, and what became of
// its messages.
func (m *mediaBench) record(t *testing.T, q api.Interaction) string {
	t.Helper()
	i := m.interaction(t, q.ID)
	var b strings.Builder
	round := func(at int64) int64 { return max(0, (at-i.Created+5000)/10_000*10) }
	fmt.Fprintln(&b, "question", i.Type, i.Channel, i.Priority, i.Approvers, i.MinApprovals, "ends after", round(i.TimeoutAt), "due after", round(i.NextAt))
	for _, d := range m.people.detail(t, q.ID).Deliveries {
		fmt.Fprintln(&b, "delivery", d.Kind, d.Status, d.Error)
	}
	return b.String()
}

// happens lets a scene happen and tells what came of it.
func (m *mediaBench) happens(t *testing.T, scene string, by medium, key, execution string, q api.Interaction) string {
	t.Helper()
	verb, rest, _ := strings.Cut(scene, " ")
	switch verb {
	case "runs":
		m.runOut(t, q.ID)
		m.ended(t, execution)
	case "answers":
		user, answer, _ := strings.Cut(rest, " ")
		a := m.respond(t, user, q.ID, answer)
		if a.status == http.StatusOK && m.people.detail(t, q.ID).Status != "pending" {
			m.ended(t, execution)
		}
		return fmt.Sprintln("answered", a.status, m.people.detail(t, q.ID).Status)
	case "says":
		reply := by.person
		reply.Account = store.Account{Workspace: "default", Channel: q.ChannelType, Credential: m.interaction(t, q.ID).Credential}
		reply.Interaction, reply.Verified, reply.Text, reply.Dedup = q.ID, true, rest, q.ID
		said, err := m.desk.Receive(t.Context(), reply)
		if err != nil {
			t.Fatal(err)
		}
		told := fmt.Sprintln("said", said.Accepted, said.Ended, said.Text)
		if said.Ended {
			m.ended(t, execution)
			return told
		}
		m.settled(t, q)
		return told + m.messages(t, key)
	case "writes":
		a := m.telegram.bring(t, telegramSecret, m.telegram.wrote(t, key, rest))
		status := m.people.detail(t, q.ID).Status
		if status != "pending" {
			m.ended(t, execution)
		}
		return fmt.Sprintln("written", a.status, string(a.body), status)
	case "delegates":
		return fmt.Sprintln("delegated", m.call(t, "operator", "POST", "/interactions/"+q.ID+"/delegate", `{"to": "user:editor"}`).status)
	case "escalates":
		m.people.until(t, q.ID, "others who are asked", func(d api.InteractionDetail) bool { return len(d.Approvers) > 1 })
		return fmt.Sprintln("escalated", m.people.detail(t, q.ID).Approvers)
	case "around":
		id := m.execute(t, key, api.ExecuteRequest{StartFromNode: "after", Inputs: json.RawMessage(`{}`)})
		m.rests(t, key, id, false)
		return fmt.Sprintln("behind it", m.read(t, id).Status)
	}
	return ""
}

// ended waits until an execution has ended.
func (w *workbench) ended(t *testing.T, id string) {
	t.Helper()
	if !w.comes(id, channelPatience, func() bool { return engine.Status(w.read(t, id).Status).Final() }) {
		t.Fatalf("execution %q does not end", id)
	}
}

// comes waits until something is true of an execution, and says whether that was within a time.
func (w *workbench) comes(id string, within time.Duration, is func() bool) bool {
	sub := w.hub.Subscribe(host.Ref{Workspace: "default", Execution: id})
	defer sub.Close()
	for limit := time.After(within); !is(); {
		list, more, behind := sub.Next()
		if len(list) > 0 || behind {
			continue
		}
		select {
		case <-more:
		case <-limit:
			return is()
		}
	}
	return true
}

// unlike is what differs between two pages or two messages of the same question: marks, times, and what signs buttons.
var unlike = regexp.MustCompile(`(?s)<style.*?</style>|nonce="[^"]*"|"(?:nonce|custom_id|action_id|block_id|value|callback_data|ts|t|i)":"[^"]*"|<time[^>]*>[^<]*</time>|\d{4}-\d\d-\d\d \d\d:\d\d[^<"]{0,8}|\d+ \w+ \d{4}, \d\d:\d\d UTC \([^)]*\)|date\^\d+|1700000000\.\d+`)

// page is what somebody who is asked sees under a link.
func (m *mediaBench) page(t *testing.T, q api.Interaction) string {
	t.Helper()
	who := "anyone"
	if i := slices.IndexFunc(q.Approvers, func(a string) bool { return strings.HasPrefix(a, "user:") }); i >= 0 && gjson.GetBytes(q.RequestData, "access").Str == "users" {
		who = q.Approvers[i]
	}
	link := m.linkTo(t, q.ID, who)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode != http.StatusOK {
		t.Fatalf("the page is %d %s (%v)", w.StatusCode, raw, err)
	}
	return "page " + unlike.ReplaceAllString(string(raw), "~") + "\n"
}

// messages are those of a run: what the services were sent, and mail.
func (m *mediaBench) messages(t *testing.T, key string) string {
	t.Helper()
	var b strings.Builder
	for _, w := range m.wires {
		w.mu.Lock()
		for _, c := range w.calls {
			if strings.Contains(c.body.Raw, key) {
				fmt.Fprintln(&b, "message", c.name, c.body.Get("channelData.channel.id"), unlike.ReplaceAllString(c.body.Raw, "~"))
			}
		}
		w.mu.Unlock()
	}
	m.mail.mu.Lock()
	defer m.mail.mu.Unlock()
	for _, l := range m.mail.mails {
		if strings.Contains(l.subject+l.text, key) {
			fmt.Fprintln(&b, "mail", l.to, l.header.Get("From"), l.header.Get("Reply-To"), l.header.Get("X-Priority"), l.subject, unlike.ReplaceAllString(l.text, "~"))
		}
	}
	return b.String()
}

// wrote is the update of a text that answers the message of a run, in the chat with Ann.
func (s *telegramSite) wrote(t *testing.T, key, text string) map[string]any {
	t.Helper()
	s.guard.Lock()
	defer s.guard.Unlock()
	for number, sent := range s.texts { // order does not matter: one is of the run
		if strings.Contains(sent, key) {
			update := telegramWrote(10_000+number, 42, 42, "private", text)
			update["message"].(map[string]any)["reply_to_message"].(map[string]any)["message_id"] = number
			return update
		}
	}
	t.Fatalf("nothing was sent to Telegram by %s", key)
	return nil
}
