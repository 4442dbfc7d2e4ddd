package app

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
)

// canaryOf is a secret that nothing else has.
func canaryOf(what string) string { return canaryMark + "-" + what }

// What triggers are sent, and what they are registered with, is nowhere but in the sealed column: headers that senders prove themselves by,
// the secret wherever a sender puts it, the tokens that services send along, the credentials of bots. Looked at are the files of the data
// directory while it is open, the log, deliveries, replays, executions, every route that can be read, and metrics.
func TestTriggers_CanaryOfSenders(t *testing.T) {
	t.Parallel()
	log := &debugLog{}
	x := channelSite{openSiteAs(t, func(o *Options, url string) {
		o.PublicURL, o.Log = url, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})}
	clean := func(what string, raw []byte) {
		t.Helper()
		if found := spilled(raw); found != "" {
			t.Errorf("a secret is in %s, %s", what, found)
		}
	}
	deploy := func(id, text string, status int) {
		t.Helper()
		x.saves(t, id, text)
		a := x.call(t, "editor", "POST", "/workflows/"+id+"/deploy", nil)
		clean("the deployment of "+id, a.body)
		same(t, fmt.Sprint(id, a.status), fmt.Sprint(id, status))
	}
	keep := func(name, kind string, data map[string]any) string {
		t.Helper()
		body := map[string]any{"name": name, "type": kind, "data": data}
		return want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", body), http.StatusCreated).ID
	}

	// Webhooks, with everything that senders are known by, right and wrong.
	headers := func(more ...string) (list []string) {
		for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "X-Auth-Token", "X-Access-Token", "X-Csrf-Token", "X-Tandem-Token"} {
			list = append(list, name, "Bearer "+canaryOf("header-"+name))
		}
		return append(list, more...)
	}
	const own = "X-Shop-Secret"
	secret := canaryOf("webhook")
	keep("hook", "webhook_secret", map[string]any{"secret": secret, "header": own, "parameter": "key"})
	echo := `,{"id":"end","name":"end","description":"d","type":"CALL","subtype":"EMPTY","configurations":{"pass_through":true}}`
	signed := func(body, with string) []string {
		stamp := strconv.FormatInt(time.Now().Unix(), 10)
		mac := hmac.New(sha256.New, []byte(with))
		fmt.Fprintf(mac, "%s.%s", stamp, body)
		return []string{"X-Tandem-Timestamp", stamp, "X-Tandem-Signature", "v1=" + hex.EncodeToString(mac.Sum(nil))}
	}
	body := `{"repeated":"` + secret + `","in_key":{"` + secret + `":1}}`
	for mode, send := range map[string]func(secret string) (query string, headers []string){
		"none":         func(string) (string, []string) { return "", headers() },
		"header_token": func(s string) (string, []string) { return "", headers(own, s) },
		"query_param":  func(s string) (string, []string) { return "?key=" + s, headers() },
		"signature":    func(s string) (string, []string) { return "", headers(signed(body, s)...) },
	} {
		id, config, sent := "hook_"+mode, `{"webhook_path":"/in","authentication":"`+mode+`","credential_id":"hook"}`, body
		if mode == "none" {
			config, sent = `{"webhook_path":"/in"}`, `{}`
		}
		deploy(id, hookFlow(id, config, echo, `{"from_node":"hook","to_node":"end"}`), http.StatusOK)
		query, list := send(secret)
		a := x.hooked(t, "POST", id+"/in"+query, sent, list...)
		clean("the answer to "+mode, a.body)
		x.startedBy(t, a)
		if mode == "none" {
			continue
		}
		query, list = send(canaryOf("wrong"))
		a = x.hooked(t, "POST", id+"/in"+query, body, list...)
		clean("the refusal of "+mode, a.body)
		same(t, a.status, http.StatusUnauthorized)
	}

	// The bots: services that take the credential, and services that refuse it and repeat all that they were sent.
	repeat := newWire(t, nil)
	repeat.serve = func(w http.ResponseWriter, c wireCall) {
		w.Header().Set("X-Repeated", c.header.Get("Authorization"))
		repeat.says(w, http.StatusBadRequest, map[string]any{"ok": false, "error": fmt.Sprint(c.name, c.header, c.body), "description": fmt.Sprint(c.name, c.header, c.body), "error_code": 400, "message": fmt.Sprint(c.name, c.header), "code": 1})
	}
	public, private, err := ed25519.GenerateKey(nil)
	works(t, err)
	bots := newWire(t, nil)
	bots.serve = func(w http.ResponseWriter, c wireCall) {
		switch {
		case strings.HasSuffix(c.name, "/getUpdates"):
			<-c.gone
		case strings.HasSuffix(c.name, "/getMe"):
			bots.says(w, http.StatusOK, map[string]any{"ok": true, "result": map[string]any{"id": 7, "username": "b"}})
		case strings.HasSuffix(c.name, "/getWebhookInfo"):
			bots.says(w, http.StatusOK, map[string]any{"ok": true, "result": map[string]any{"url": ""}})
		case strings.HasSuffix(c.name, "/messages"):
			bots.says(w, http.StatusOK, []any{})
		case strings.HasSuffix(c.name, "/auth.test"):
			bots.says(w, http.StatusOK, map[string]any{"ok": true, "team_id": "T1", "user": "bot"})
		default:
			bots.says(w, http.StatusOK, map[string]any{"ok": true, "team_id": "T1", "id": "8", "channel": map[string]any{"id": "C0PS", "name": "ops"}, "user": map[string]any{"id": "U1", "name": "ann"}})
		}
	}
	ids := map[string]string{}
	for where, base := range map[string]string{"well": bots.URL, "badly": repeat.URL} {
		status := map[string]int{"well": http.StatusOK, "badly": http.StatusUnprocessableEntity}[where]
		ids["slack "+where] = keep("slack "+where, "slack_bot", map[string]any{"token": canaryOf("slack-token-" + where), "signing_secret": canaryOf("slack-signing-" + where), "base_url": base + "/api"})
		ids["telegram "+where] = keep("telegram "+where, "telegram_bot", map[string]any{"token": "7:" + canaryOf("telegram-token-"+where), "webhook_secret": canaryOf("telegram-secret-" + where), "base_url": base})
		ids["discord "+where] = keep("discord "+where, "discord_bot", map[string]any{"token": canaryOf("discord-token-" + where), "public_key": hex.EncodeToString(public), "base_url": base + "/api/v9"})
		for vendor, config := range map[string]string{"slack": `"workspace_id":"T1"`, "telegram": `"keywords":[]`, "discord": `"events":["message","command"],"channels":["55"]`} {
			deploy(vendor+"_"+where, chatFlow(vendor+"_"+where, strings.ToUpper(vendor), `{`+config+`,"credential_id":"`+vendor+` `+where+`"}`), status)
		}
	}
	posted := func(vendor, body string, headers ...string) {
		t.Helper()
		a := x.post(t, x.callback(vendor, ids[vendor+" well"]), body, append(headers, "Content-Type", "application/json", "Authorization", canaryOf("header"), "Cookie", canaryOf("cookie"))...)
		clean("the answer to "+vendor, a.body)
		same(t, fmt.Sprint(vendor, a.status), fmt.Sprint(vendor, http.StatusOK))
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	said := strings.Replace(slackSaid(t, "Ev1", "1.1", "hello"), "verification-token", canaryOf("verification"), 1)
	mac := hmac.New(sha256.New, []byte(canaryOf("slack-signing-well")))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, said)
	posted("slack", said, "X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	posted("telegram", fmt.Sprintf(`{"update_id":5,"message":{"message_id":1,"date":%s,"text":"hello","from":{"id":42,"first_name":"Ann"},"chat":{"id":42,"type":"private"}}}`, stamp),
		"X-Telegram-Bot-Api-Secret-Token", canaryOf("telegram-secret-well"))
	used := fmt.Sprintf(`{"id":"%d","application_id":"8","type":2,"token":"%s","channel_id":"55","member":{"user":{"id":"42","username":"ann"}},"data":{"name":"go"}}`, (time.Now().UnixMilli()-1_420_070_400_000)<<22, canaryOf("interaction"))
	posted("discord", used, "X-Signature-Timestamp", stamp, "X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(private, []byte(stamp+used))))

	// What is known of all of it, and once more by replaying each.
	list := want[api.Deliveries](t, x.call(t, "operator", "GET", "/deliveries?page_size=100", nil), http.StatusOK).Deliveries
	started := 0
	for _, d := range list {
		clean("a delivery", x.call(t, "operator", "GET", "/deliveries/"+d.ID, nil).body)
		if d.Decision != "started" {
			continue
		}
		started++
		a := x.call(t, "operator", "POST", "/deliveries/"+d.ID+"/replay", nil)
		clean("a replay", a.body)
		again := want[api.Delivery](t, a, http.StatusAccepted)
		for _, execution := range []string{d.ExecutionID, again.ExecutionID} {
			x.reaches(t, execution, engine.StatusSuccess)
			for _, path := range []string{"", "?include=workflow", "/context", "/history", "/logs", "/events"} {
				clean("the execution of "+d.Kind+path, x.call(t, "admin", "GET", "/executions/"+execution+path, nil, "Accept", "application/json").body)
			}
			ids["execution"] = execution
		}
		ids["delivery"] = d.ID
	}
	same(t, started, 7)
	for vendor := range map[string]bool{"slack": true, "telegram": true, "discord": true} {
		ids[vendor] = vendor + "_badly"
	}
	x.routes(t, ids, clean)
	root := &site{Instance: x.Instance, url: strings.TrimSuffix(x.url, "/api/v1"), tokens: x.tokens}
	clean("the metrics", root.call(t, "admin", "GET", "/metrics", nil).body)
	log.mu.Lock()
	defer log.mu.Unlock()
	clean("the log", log.all.Bytes())
	wal := false
	works(t, filepath.WalkDir(x.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		wal = wal || strings.HasSuffix(path, "-wal") && len(raw) > 0
		clean("the file "+d.Name(), raw)
		return err
	}))
	if !wal {
		t.Error("there is no write-ahead log to look at")
	}
}
