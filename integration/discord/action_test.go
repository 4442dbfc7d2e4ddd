package discord

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/builtin/action/actiontest"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/outbound"
)

// guild is a fake of the part of Discord that nodes act in. It refuses what the real one refuses.
type guild struct {
	t  testing.TB
	mu sync.Mutex
	// nonces are the messages that were posted, by nonce; messages all of them, the oldest first.
	nonces   map[string]map[string]any
	messages []map[string]any
	audit    []map[string]any
	next     int64
	// forgets says that nonces are not known any more.
	forgets bool
}

func newGuild(t testing.TB) *guild {
	return &guild{t: t, nonces: map[string]map[string]any{}, next: 1000}
}

func (g *guild) id() string {
	g.next++
	return strconv.FormatInt(g.next, 10)
}

func (g *guild) handler() http.Handler {
	m := http.NewServeMux()
	handle := func(pattern string, do func(r *http.Request, body map[string]any) (any, int)) {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if r.Header.Get("Authorization") != "Bot "+actiontest.Token {
				g.answer(w, map[string]any{"code": 0, "message": "401: Unauthorized"}, 401)
				return
			}
			body, err := bodyOf(r)
			if err != nil {
				g.t.Errorf("%s: %v", r.URL.Path, err)
			}
			out, status := do(r, body)
			g.answer(w, out, status)
		})
	}
	none := func(*http.Request, map[string]any) (any, int) { return nil, 204 }
	handle("POST /channels/{channel}/messages", g.post)
	handle("GET /channels/{channel}/messages", g.list)
	handle("POST /users/@me/channels", func(_ *http.Request, body map[string]any) (any, int) {
		return map[string]any{"id": "9" + body["recipient_id"].(string)}, 200
	})
	handle("GET /users/@me", func(*http.Request, map[string]any) (any, int) { return map[string]any{"id": "1"}, 200 })
	handle("POST /guilds/{guild}/channels", func(r *http.Request, body map[string]any) (any, int) { return g.make(r, body, 10), 201 })
	handle("POST /channels/{channel}/threads", func(r *http.Request, body map[string]any) (any, int) { return g.make(r, body, 110), 201 })
	handle("POST /channels/{channel}/messages/{message}/threads", func(r *http.Request, body map[string]any) (any, int) { return g.make(r, body, 110), 201 })
	handle("GET /guilds/{guild}/audit-logs", func(r *http.Request, _ map[string]any) (any, int) {
		list := slices.DeleteFunc(slices.Clone(g.audit), func(e map[string]any) bool { return fmt.Sprint(e["action_type"]) != r.URL.Query().Get("action_type") })
		slices.Reverse(list)
		return map[string]any{"audit_log_entries": append([]map[string]any{}, list...)}, 200
	})
	handle("PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me", none)
	handle("PUT /channels/{channel}/pins/{message}", none)
	handle("PUT /guilds/{guild}/members/{user}/roles/{role}", none)
	handle("DELETE /guilds/{guild}/members/{user}/roles/{role}", none)
	handle("DELETE /guilds/{guild}/members/{user}", none)
	handle("PUT /guilds/{guild}/bans/{user}", none)
	handle("GET /guilds/{guild}/members", g.members)
	handle("GET /guilds/{guild}", func(r *http.Request, _ map[string]any) (any, int) {
		return map[string]any{"id": r.PathValue("guild"), "name": "shop"}, 200
	})
	return m
}

func (g *guild) answer(w http.ResponseWriter, out any, status int) {
	if status == 204 {
		w.WriteHeader(204)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(out); err != nil {
		g.t.Error(err)
	}
}

// bodyOf reads a body in JSON, or the message of a form, with the file in it.
func bodyOf(r *http.Request) (body map[string]any, err error) {
	kind, with, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		raw, err := io.ReadAll(r.Body)
		if err != nil || len(raw) == 0 {
			return nil, err
		}
		return body, json.Unmarshal(raw, &body)
	}
	form := multipart.NewReader(r.Body, with["boundary"])
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		switch part.FormName() {
		case "payload_json":
			if err := json.Unmarshal(raw, &body); err != nil {
				return nil, err
			}
		case "files[0]":
			body["attachments"] = []map[string]any{{"filename": part.FileName(), "content_type": part.Header.Get("Content-Type"), "size": len(raw), "content": string(raw)}}
		}
	}
}

func (g *guild) post(r *http.Request, body map[string]any) (any, int) {
	raw, err := json.Marshal(body)
	if err != nil {
		g.t.Error(err)
	}
	if _, file := body["attachments"]; !file {
		if problem := checkMessage(raw); problem != "" {
			return map[string]any{"code": 50035, "message": "Invalid Form Body", "errors": map[string]any{"content": problem}}, 400
		}
	}
	nonce, _ := body["nonce"].(string)
	if nonce == "" || len(nonce) > 25 || body["enforce_nonce"] != true {
		g.t.Errorf("nonce %q", nonce)
	}
	if old := g.nonces[nonce]; old != nil && !g.forgets {
		return old, 200
	}
	m := map[string]any{"id": g.id(), "channel_id": r.PathValue("channel"), "content": body["content"], "author": map[string]any{"id": "1"}}
	if files, ok := body["attachments"]; ok {
		m["attachments"] = files
	}
	g.nonces[nonce] = m
	g.messages = append(g.messages, m)
	return m, 200
}

// list lists messages, the newest first: those before one, or the oldest after one.
func (g *guild) list(r *http.Request, _ map[string]any) (any, int) {
	q := r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > 100 {
		return map[string]any{"code": 50035, "message": "Invalid Form Body"}, 400
	}
	list := []map[string]any{}
	for _, m := range g.messages {
		id := m["id"].(string)
		if m["channel_id"] == r.PathValue("channel") && (q.Get("before") == "" || later(q.Get("before"), id)) && (q.Get("after") == "" || later(id, q.Get("after"))) {
			list = append(list, m)
		}
	}
	if q.Get("after") != "" {
		list = list[:min(limit, len(list))]
	} else {
		list = list[max(0, len(list)-limit):]
	}
	list = slices.Clone(list)
	slices.Reverse(list)
	return list, 200
}

func (g *guild) make(r *http.Request, body map[string]any, entry int) any {
	id := g.id()
	why, err := url.PathUnescape(r.Header.Get("X-Audit-Log-Reason"))
	if err != nil {
		g.t.Error(err)
	}
	g.audit = append(g.audit, map[string]any{"id": g.id(), "action_type": entry, "reason": why, "target_id": id})
	return map[string]any{"id": id, "name": body["name"], "type": body["type"]}
}

func (g *guild) members(r *http.Request, _ map[string]any) (any, int) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > 1000 {
		return map[string]any{"code": 50035, "message": "Invalid Form Body"}, 400
	}
	list := []map[string]any{}
	for n := range 450 {
		if id := strconv.Itoa(2000 + n); len(list) < limit && later(id, r.URL.Query().Get("after")) {
			list = append(list, map[string]any{"user": map[string]any{"id": id}})
		}
	}
	return list, 200
}

// filled is a server whose channel 55 has 250 messages.
func filled(t testing.TB) *guild {
	g := newGuild(t)
	for n := range 250 {
		g.messages = append(g.messages, map[string]any{"id": g.id(), "channel_id": "55", "content": strconv.Itoa(n), "author": map[string]any{"id": "2"}})
	}
	return g
}

func discordVendor() actiontest.Vendor {
	made := actiontest.Sample{Config: `{"action_type":"create_channel","server_id":"1","name":"new"}`, Call: "POST /guilds/1/channels"}
	thread := actiontest.Sample{Config: `{"action_type":"create_thread","server_id":"1","channel_id":"55","name":"new"}`, Call: "POST /channels/55/threads"}
	read := actiontest.Sample{Config: `{"action_type":"read_messages","channel_id":"55"}`, Call: "GET /channels/55/messages"}
	send := func(more string) actiontest.Sample {
		return actiontest.Sample{Config: `{"action_type":"send_message","channel_id":"55",` + more + `}`, Call: "POST /channels/55/messages"}
	}
	return actiontest.Vendor{
		Kind: func(client *outbound.Client) node.Kind { return act(client, nil) }, Serve: func(t testing.TB) http.Handler { return filled(t).handler() }, Prefix: "/api/v9",
		Once: made, Read: read, Settled: []actiontest.Sample{made, thread}, SettledBy: map[string]string{"send_message": "TestAction_InquirePost", "send_dm": "TestAction_InquirePost"},
		Pages: read, Total: 250,
		Refusals: []actiontest.Refusal{
			{Name: "Fractional", Sample: send(`"message_content":"m"`), Reply: actiontest.Reply{Status: 429, Body: `{"message":"You are being rate limited.","retry_after":30.4,"global":false}`}, Code: fault.RateLimited, Retryable: true, AfterSeconds: 31},
			{Name: "TooLong", Sample: actiontest.Sample{Config: send(`"message_content":"` + strings.Repeat("x", 2001) + `"`).Config}, Code: fault.InvalidInput, Part: "2000"},
			{Name: "LongEmbeds", Sample: actiontest.Sample{Config: send(`"embed_config":[{"title":"t","description":"` + strings.Repeat("x", 4000) + `"},{"title":"t","fields":[{"name":"n","value":"` + strings.Repeat("x", 2000) + `"}]}]`).Config}, Code: fault.InvalidInput, Part: "6000"},
			{Name: "ManyEmbeds", Sample: actiontest.Sample{Config: send(`"embed_config":[` + strings.Repeat(`{},`, 10) + `{}]`).Config}, Code: fault.InvalidInput, Part: "10"},
			{Name: "NoEmbed", Sample: actiontest.Sample{Config: send(`"embed_config":[1]`).Config}, Code: fault.InvalidInput},
			{Name: "NothingToSay", Sample: actiontest.Sample{Config: `{"action_type":"send_message","channel_id":"55"}`}, Code: fault.InvalidInput},
			{Name: "NoChannel", Sample: actiontest.Sample{Config: `{"action_type":"send_message","message_content":"m"}`}, Code: fault.InvalidInput},
			{Name: "Form", Sample: send(`"message_content":"m"`), Reply: actiontest.Reply{Status: 400, Body: `{"code":50035,"message":"Invalid Form Body","errors":{"content":{"_errors":[{"code":"BASE_TYPE_MAX_LENGTH"}]}}}`}, Code: fault.InvalidInput, Part: "BASE_TYPE_MAX_LENGTH"},
			{Name: "TooLarge", Sample: send(`"message_content":"m"`), Reply: actiontest.Reply{Status: 413, Body: `{"code":40005,"message":"Request entity too large"}`}, Code: fault.TooLarge},
			{Name: "NoPermission", Sample: send(`"message_content":"m"`), Reply: actiontest.Reply{Status: 403, Body: `{"code":50013,"message":"Missing Permissions"}`}, Code: fault.CredentialInvalid, Part: "Missing Permissions"},
			{Name: "UnknownChannel", Sample: send(`"message_content":"m"`), Reply: actiontest.Reply{Status: 404, Body: `{"code":10003,"message":"Unknown Channel"}`}, Code: fault.NotFound, Part: "Unknown Channel"},
			{Name: "UnknownRole", Sample: actiontest.Sample{Config: `{"action_type":"manage_roles","server_id":"1","target_user_id":"2","role_id":"3"}`, Call: "PUT /guilds/1/members/2/roles/3"}, Reply: actiontest.Reply{Status: 404, Body: `{"code":10011,"message":"Unknown Role"}`}, Code: fault.NotFound},
		},
	}
}

func TestAction_Operations(t *testing.T) {
	t.Parallel()
	bot := map[string]string{"Authorization": "Bot " + actiontest.Token}
	discordVendor().Operations(t, []actiontest.Operation{
		{
			Name: "Send", Config: `{"action_type":"send_message","server_id":"1","channel_id":"55","message_content":"<@2> 你好","embed_config":{"title":"t"},"allowed_mentions":["users"]}`, Call: "POST /channels/55/messages", Header: bot,
			Body:   `{"content":"<@2> 你好","embeds":[{"title":"t"}],"allowed_mentions":{"parse":["users"]},"enforce_nonce":true}`,
			Result: `{"message_id":"1251","channel_id":"55","resource_id":"1251","resource_url":"https://discord.com/channels/1/55/1251","discord_response":{"id":"1251"}}`,
		},
		{Name: "Filled", Config: `{"action_type":"send_message","channel_id":"55","message_content":""}`, Input: `{"channel_id":"66","data":{"message_content":"from its data"}}`, Call: "POST /channels/55/messages", Body: `{"content":"from its data"}`},
		{
			Name: "File", Config: `{"action_type":"send_file","channel_id":"55","message_content":"see","file":{"base64":"aGVsbG8=","name":"报告.txt"}}`, Call: "POST /channels/55/messages",
			Text: "hello", Result: `{"message_id":"1251","discord_response":{"content":"see","attachments":[{"filename":"报告.txt","size":5,"content":"hello"}]}}`,
		},
		{Name: "DM", Config: `{"action_type":"send_dm","server_id":"1","target_user_id":"42","message_content":"hi"}`, Call: "POST /channels/942/messages", Body: `{"content":"hi"}`, Result: `{"channel_id":"942","resource_url":"https://discord.com/channels/@me/942/1251"}`},
		{Name: "Channel", Config: `{"action_type":"create_channel","server_id":"1","name":"new","type":"forum"}`, Call: "POST /guilds/1/channels", Body: `{"name":"new","type":15}`, Result: `{"resource_id":"1251","channel_id":"1251"}`},
		{Name: "Thread", Config: `{"action_type":"create_thread","channel_id":"55","name":"new"}`, Call: "POST /channels/55/threads", Body: `{"name":"new","type":11}`, Result: `{"resource_id":"1251"}`},
		{Name: "ThreadOfAMessage", Config: `{"action_type":"create_thread","channel_id":"55","message_id":"7","name":"new"}`, Call: "POST /channels/55/messages/7/threads", Body: `{"name":"new"}`},
		{Name: "React", Config: `{"action_type":"react_to_message","server_id":"1","channel_id":"55","message_id":"7"}`, Call: "PUT /channels/55/messages/7/reactions/%F0%9F%91%8D/@me", Result: `{"message_id":"7","resource_url":"https://discord.com/channels/1/55/7"}`},
		{Name: "ReactWithTheirs", Config: `{"action_type":"react_to_message","channel_id":"55","message_id":"7","reaction_emoji":"<ok:12>"}`, Call: "PUT /channels/55/messages/7/reactions/ok:12/@me"},
		{Name: "Pin", Config: `{"action_type":"pin_message","channel_id":"55","message_id":"7"}`, Call: "PUT /channels/55/pins/7", Result: `{"message_id":"7"}`},
		{Name: "Role", Config: `{"action_type":"manage_roles","server_id":"1","target_user_id":"2","role_id":"3","reason":"new 成员"}`, Call: "PUT /guilds/1/members/2/roles/3", Header: map[string]string{"X-Audit-Log-Reason": "new%20%E6%88%90%E5%91%98"}, Result: `{"resource_id":"2"}`},
		{Name: "RoleAway", Config: `{"action_type":"manage_roles","server_id":"1","target_user_id":"2","role_id":"3","action":"remove"}`, Call: "DELETE /guilds/1/members/2/roles/3"},
		{Name: "Kick", Config: `{"action_type":"kick_member","server_id":"1","target_user_id":"2","reason":"spam"}`, Call: "DELETE /guilds/1/members/2", Header: map[string]string{"X-Audit-Log-Reason": "spam"}, Result: `{"resource_id":"2"}`},
		{Name: "Ban", Config: `{"action_type":"ban_member","server_id":"1","target_user_id":"2"}`, Call: "PUT /guilds/1/bans/2", Body: `{"delete_message_seconds":0}`},
		{Name: "Read", Config: `{"action_type":"read_messages","channel_id":"55","before":"1003","limit":2}`, Call: "GET /channels/55/messages", Query: map[string]string{"before": "1003", "limit": "100"}, Result: `{"items":[{"content":"1"},{"content":"0"}],"truncated":false,"channel_id":"55"}`},
		{Name: "ReadOn", Config: `{"action_type":"read_messages","channel_id":"55","after":"1001","limit":1}`, Call: "GET /channels/55/messages", Query: map[string]string{"after": "1001"}, Result: `{"items":[{"content":"1"}],"truncated":true}`},
		{Name: "ReadBetween", Config: `{"action_type":"read_messages","channel_id":"55","after":"1001","before":"1004"}`, Call: "GET /channels/55/messages", Result: `{"items":[{"content":"2"},{"content":"1"}],"truncated":false}`},
		{Name: "ReadFrom", Config: `{"action_type":"read_messages","channel_id":"55","cursor":"1003"}`, Call: "GET /channels/55/messages", Query: map[string]string{"before": "1003"}},
		{Name: "Members", Config: `{"action_type":"list_members","server_id":"1","limit":3}`, Call: "GET /guilds/1/members", Result: `{"items":[{"user":{"id":"2000"}},{"user":{"id":"2001"}},{"user":{"id":"2002"}}],"truncated":true}`},
		{Name: "Request", Config: `{"action_type":"request","method":"get","path":"/guilds/1","query":{"with_counts":true},"body":{"never":"sent"}}`, Call: "GET /guilds/1", Query: map[string]string{"with_counts": "true"}, Result: `{"resource_id":"1","discord_response":{"name":"shop"}}`},
		{Name: "RequestBody", Config: `{"action_type":"request","method":"PUT","path":"guilds/1/bans/2","body":{"delete_message_seconds":60}}`, Call: "PUT /guilds/1/bans/2", Body: `{"delete_message_seconds":60}`},
	})
}

func TestAction_Failures(t *testing.T) {
	t.Parallel()
	discordVendor().Failures(t)
}

func TestAction_MembersOverPages(t *testing.T) {
	t.Parallel()
	b := discordVendor().New(t)
	result, err := b.Run(`{"action_type":"list_members","server_id":"1","limit":1000}`, ``)
	if n := len(b.Calls("GET /guilds/1/members")); err != nil || result.Get("items.#").Int() != 450 || result.Get("truncated").Bool() || n != 3 {
		t.Errorf("%d over %d pages: %v", result.Get("items.#").Int(), n, err)
	}
}

// TestAction_Gone: a member who is not there any more was kicked already.
func TestAction_Gone(t *testing.T) {
	t.Parallel()
	b := discordVendor().New(t)
	b.Answers("DELETE /guilds/1/members/2", actiontest.Reply{Status: 404, Body: `{"code":10007,"message":"Unknown Member"}`})
	if _, err := b.Run(`{"action_type":"kick_member","server_id":"1","target_user_id":"2"}`, ``); err != nil {
		t.Error(err)
	}
}

// TestAction_Nonce: a message whose answer is lost is sent again at once, and Discord takes it once. When that is lost as well, nobody knows.
func TestAction_Nonce(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"Message": `{"action_type":"send_message","channel_id":"77","message_content":"once"}`,
		"File":    `{"action_type":"send_file","channel_id":"77","file":{"base64":"aGVsbG8=","name":"a.txt"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuild(t)
			v := discordVendor()
			v.Serve = func(testing.TB) http.Handler { return g.handler() }
			b := v.New(t)
			b.Loses("POST /channels/77/messages")
			result, err := b.Run(config, ``)
			if err != nil || result.Get("message_id").Str != "1001" || len(g.messages) != 1 || len(b.Calls("POST /channels/77/messages")) != 2 {
				t.Fatalf("%s: %v; %d messages", result.Raw, err, len(g.messages))
			}
			b.Loses("POST /channels/77/messages")
			b.Loses("POST /channels/77/messages")
			if _, err := b.Run(config, ``); fault.CodeOf(err) != fault.OutcomeUnknown || len(g.messages) != 1 {
				t.Errorf("%v; %d messages", err, len(g.messages))
			}
		})
	}
}

// TestAction_InquirePost: while Discord knows the nonce, sending again settles it. Later a channel without the text says that it did not arrive, and one
// with it says nothing for sure.
func TestAction_InquirePost(t *testing.T) {
	t.Parallel()
	g := newGuild(t)
	v := discordVendor()
	v.Serve = func(testing.TB) http.Handler { return g.handler() }
	b := v.New(t)
	const config = `{"action_type":"send_message","channel_id":"77","message_content":"once "}`
	inquire := func(config string, after time.Duration) error {
		t.Helper()
		call := b.Call(config, ``)
		call.Clock = func() time.Time { return call.Now.Add(after) }
		out, err := b.Kind.Inquire(t.Context(), call)
		if out != nil {
			t.Errorf("it claims to have found %v", out)
		}
		return err
	}
	if err := inquire(config, 10*time.Second); err != nil || len(b.Calls("GET ")) != 0 {
		t.Errorf("the nonce is known still: %v", err)
	}
	for _, config := range []string{config, `{"action_type":"send_dm","target_user_id":"42","message_content":"once"}`} {
		if err := inquire(config, time.Hour); err != nil {
			t.Errorf("it is not there: %v", err)
		}
	}
	id := func() string { return idAt(nodetest.Start().UnixMilli()) }
	g.messages = append(g.messages,
		map[string]any{"id": "5", "channel_id": "77", "content": "once", "author": map[string]any{"id": "1"}},  // before the node
		map[string]any{"id": id(), "channel_id": "77", "content": "once", "author": map[string]any{"id": "2"}}) // of somebody else
	if err := inquire(config, time.Hour); err != nil {
		t.Errorf("what others have written, and what is older: %v", err)
	}
	g.messages = append(g.messages, map[string]any{"id": id(), "channel_id": "77", "content": "once", "author": map[string]any{"id": "1"}})
	if err := inquire(config, time.Hour); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("the same text of the bot may be it: %v", err)
	}
	if err := inquire(`{"action_type":"create_channel","server_id":"1","name":"x"}`, 0); err != nil {
		t.Error(err)
	}
	if err := inquire(`{"action_type":"create_thread","channel_id":"77","name":"x"}`, 0); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("without a server: %v", err)
	}
	b.Answers("GET /guilds/1/audit-logs", actiontest.Reply{Status: 403, Body: `{"code":50013,"message":"Missing Permissions"}`})
	if err := inquire(`{"action_type":"create_channel","server_id":"1","name":"x"}`, 0); fault.CodeOf(err) != fault.CredentialInvalid {
		t.Errorf("a bot that may not read the audit log: %v", err)
	}
}
