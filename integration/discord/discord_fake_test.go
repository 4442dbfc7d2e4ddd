package discord

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/human"
	"tandem/human/channeltest"
	"tandem/text"
)

const testToken = "canary-token"

// fake is Discord: its REST interface and what it posts. It refuses what the real one refuses.
type fake struct {
	t       *testing.T
	url     string
	client  *http.Client
	public  ed25519.PublicKey
	private ed25519.PrivateKey

	// Calls are what came, by method and path.
	*channeltest.Calls[call]

	mu     sync.Mutex
	nonces map[string]string
	// messages are what is in channels besides what the bot posted.
	messages map[string][]map[string]any
	next     int
}

type call struct {
	name string // method and path
	body map[string]any
	raw  []byte
}

func newFake(t *testing.T) *fake {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, public: public, private: private, Calls: channeltest.New[call](t), nonces: map[string]string{},
		messages: map[string][]map[string]any{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url, f.client = server.URL, channeltest.Client(t).HTTPClient()
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v9")
	c := call{name: r.Method + " " + path}
	var err error
	if c.raw, err = io.ReadAll(r.Body); err != nil {
		f.t.Error(err)
	}
	if len(c.raw) > 0 {
		if err := json.Unmarshal(c.raw, &c.body); err != nil {
			f.t.Errorf("%s: %v", c.name, err)
		}
	}
	answer, answered := f.Take(c.name, c)
	defer answered()
	switch {
	case answer != nil:
		answer(w)
	case r.Header.Get("Authorization") != "Bot "+testToken:
		w.WriteHeader(401)
		fmt.Fprint(w, `{"code":0,"message":"401: Unauthorized"}`)
	default:
		out, status := f.answer(c, r)
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(out); err != nil {
			f.t.Error(err)
		}
	}
}

func (f *fake) answer(c call, r *http.Request) (any, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v9/"), "/")
	wrong := func(status, code int) (any, int) { return map[string]any{"code": code, "message": "no"}, status }
	switch {
	case c.name == "POST /users/@me/channels":
		return map[string]any{"id": "9" + c.body["recipient_id"].(string)}, 200
	case r.Method == "GET" && len(parts) == 2 && parts[0] == "channels":
		if parts[1] == "404" {
			return wrong(404, 10003)
		}
		return map[string]any{"id": parts[1], "guild_id": "1", "name": "ops"}, 200
	case c.name == "GET /users/@me":
		return map[string]any{"id": "1", "username": "bot", "bot": true}, 200
	case c.name == "GET /oauth2/applications/@me":
		return map[string]any{"id": "888", "name": "app"}, 200
	case c.name == "GET /applications/888/commands":
		return []map[string]any{{"id": "5", "name": "status", "description": "mine"}}, 200
	case c.name == "POST /applications/888/commands":
		return map[string]any{"id": "6", "name": c.body["name"]}, 201
	case r.Method == "POST" && len(parts) == 3 && parts[0] == "channels" && parts[2] == "messages":
		if problem := checkMessage(c.raw); problem != "" {
			f.t.Errorf("%s: %s\n%s", c.name, problem, c.raw)
			return wrong(400, 50035)
		}
		nonce, _ := c.body["nonce"].(string)
		if nonce == "" || len(nonce) > 25 || c.body["enforce_nonce"] != true {
			f.t.Errorf("nonce %q", nonce)
		}
		if f.nonces[nonce] == "" {
			f.next++
			f.nonces[nonce] = strconv.Itoa(1000 + f.next)
		}
		return map[string]any{"id": f.nonces[nonce], "channel_id": parts[1]}, 200
	case r.Method == "PATCH" && len(parts) == 4 && parts[0] == "channels":
		if problem := checkMessage(c.raw); problem != "" {
			f.t.Errorf("%s: %s\n%s", c.name, problem, c.raw)
			return wrong(400, 50035)
		}
		return map[string]any{"id": parts[3], "channel_id": parts[1]}, 200
	case r.Method == "GET" && len(parts) == 3 && parts[2] == "messages":
		list := []map[string]any{}
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil || limit < 1 || limit > 100 {
			return wrong(400, 50035)
		}
		for _, m := range f.messages[parts[1]] {
			if older(r.URL.Query().Get("after"), m["id"].(string)) && len(list) < limit {
				list = append(list, m)
			}
		}
		slices.Reverse(list) // the newest first, of the oldest that there are
		return list, 200
	case r.Method == "PATCH" && parts[0] == "webhooks" && len(parts) == 5 && parts[4] == "@original":
		return map[string]any{"id": "1"}, 200
	}
	f.t.Errorf("Discord has no %s", c.name)
	return wrong(404, 0)
}

// say puts a message into a channel.
func (f *fake) say(channel string, m map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages[channel] = append(f.messages[channel], m)
}

func (f *fake) account() human.Account {
	return channeltest.Account(Name, "discord_bot",
		map[string]string{"token": testToken, "public_key": hex.EncodeToString(f.public), "base_url": f.url + "/api/v9/"})
}

// message is a question to channel 55.
func (f *fake) message(change func(*human.Message)) human.Message {
	return channeltest.Question(f.account(), `{"server_id":"1","channel_id":"55"}`, change)
}

// request signs a body as Discord does.
func (f *fake) request(body string, at time.Time) *http.Request {
	r := httptest.NewRequest("POST", "/channels/discord/w1/cred", strings.NewReader(body))
	f.sign(r.Header, body, at)
	r.Header.Set("Content-Type", "application/json")
	return r
}

func (f *fake) sign(h http.Header, body string, at time.Time) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	h.Set("X-Signature-Timestamp", stamp)
	h.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(f.private, []byte(stamp+body))))
}

// press is what Discord posts when somebody uses a component.
func press(t *testing.T, kind int, customID string, data map[string]any) string {
	t.Helper()
	if data == nil {
		data = map[string]any{}
	}
	data["custom_id"] = customID
	raw, err := json.Marshal(map[string]any{
		"id": "777", "application_id": "888", "type": kind, "token": "interaction-token", "channel_id": "55", "message": map[string]any{"id": "1001"}, "version": 1,
		"member": map[string]any{"user": map[string]any{"id": "42", "username": "ann", "global_name": "Ann Lee"}}, "data": data,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// checkMessage checks a message as far as Discord's documents say what it takes.
func checkMessage(raw []byte) string {
	var m struct {
		Content  string `json:"content"`
		Mentions *struct {
			Parse []string `json:"parse"`
		} `json:"allowed_mentions"`
		Embeds []struct {
			Title, Description string
			Footer             struct{ Text string }
			Fields             []struct{ Name, Value string }
		} `json:"embeds"`
		Components json.RawMessage `json:"components"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err.Error()
	}
	if text.UTF16(m.Content) > 2000 || m.Content == "" && len(m.Embeds) == 0 || m.Mentions == nil || m.Mentions.Parse == nil || len(m.Embeds) > 10 {
		return "content, embeds or allowed_mentions"
	}
	for _, e := range m.Embeds {
		total := text.UTF16(e.Title) + text.UTF16(e.Description) + text.UTF16(e.Footer.Text)
		if e.Title == "" || text.UTF16(e.Title) > 256 || text.UTF16(e.Description) > 4096 || len(e.Fields) > 25 || text.UTF16(e.Footer.Text) > 2048 {
			return "embed"
		}
		for _, f := range e.Fields {
			total += text.UTF16(f.Name) + text.UTF16(f.Value)
			if f.Name == "" || f.Value == "" || text.UTF16(f.Name) > 256 || text.UTF16(f.Value) > 1024 {
				return fmt.Sprintf("field %q of %d", f.Name, text.UTF16(f.Value))
			}
		}
		if total > 6000 {
			return fmt.Sprintf("an embed of %d characters", total)
		}
	}
	return checkRows(m.Components, 2, 3)
}

// checkRows checks components of some types in rows.
func checkRows(raw json.RawMessage, kinds ...int) string {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return ""
	}
	var rows []struct {
		Type       int
		Components []struct {
			Type        int    `json:"type"`
			Label       string `json:"label"`
			Style       int    `json:"style"`
			CustomID    string `json:"custom_id"`
			URL         string `json:"url"`
			Placeholder string `json:"placeholder"`
			Min         *int   `json:"min_values"`
			Max         int    `json:"max_values"`
			MaxLength   int    `json:"max_length"`
			Options     []struct{ Label, Value, Description string }
		}
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		return err.Error()
	}
	if len(rows) > 5 {
		return fmt.Sprintf("%d rows", len(rows))
	}
	ids := map[string]bool{}
	for _, row := range rows {
		if row.Type != 1 || len(row.Components) == 0 || len(row.Components) > 5 {
			return "row"
		}
		for _, c := range row.Components {
			if !slices.Contains(kinds, c.Type) || len(c.CustomID) > 100 || c.CustomID != "" && ids[c.CustomID] {
				return fmt.Sprintf("component of type %d called %q", c.Type, c.CustomID)
			}
			ids[c.CustomID] = true
			link := c.Style == 5
			switch {
			case c.Type == 2 && (c.Label == "" || text.UTF16(c.Label) > 80 || c.Style < 1 || c.Style > 5 || link != (c.URL != "") || link == (c.CustomID != "") || text.UTF16(c.URL) > 512):
				return "button " + c.Label
			case c.Type == 3 && (len(row.Components) != 1 || c.CustomID == "" || len(c.Options) == 0 || len(c.Options) > 25 || c.Max < 1 || c.Max > len(c.Options) || c.Min == nil || text.UTF16(c.Placeholder) > 150):
				return "menu"
			case c.Type == 4 && (len(row.Components) != 1 || c.CustomID == "" || c.Label == "" || text.UTF16(c.Label) > 45 || text.UTF16(c.Placeholder) > 100 || c.MaxLength > 4000):
				return "input " + c.Label
			}
			values := map[string]bool{}
			for _, o := range c.Options {
				if o.Label == "" || o.Value == "" || text.UTF16(o.Label) > 100 || text.UTF16(o.Value) > 100 || text.UTF16(o.Description) > 100 || values[o.Value] {
					return "option " + o.Label
				}
				values[o.Value] = true
			}
		}
	}
	return ""
}
