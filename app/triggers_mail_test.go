package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/loopback"
	"tandem/store/sqlite/sqlitetest"
)

// watchedBox is an IMAP server with one mailbox that a trigger reads.
type watchedBox struct {
	user *imapmemserver.User
	port int
	// seen tells of each message that is marked as read, refused of each login that is not taken.
	seen    chan imap.UID
	refused chan struct{}

	mu    sync.Mutex
	conns []*imapserver.Conn
}

func startWatchedBox(t *testing.T) *watchedBox {
	t.Helper()
	b := &watchedBox{user: imapmemserver.NewUser(mailUser, mailPassword), seen: make(chan imap.UID, 1024), refused: make(chan struct{}, 1024)}
	works(t, b.user.Create("INBOX", nil))
	memory := imapmemserver.New()
	memory.AddUser(b.user)
	server := imapserver.New(&imapserver.Options{InsecureAuth: true, Logger: log.New(io.Discard, "", 0), NewSession: func(c *imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.conns = append(b.conns, c)
		return &watchedSession{boxSession{memory.NewSession()}, b}, nil, nil
	}})
	b.port = serveMail(t, server.Serve, server.Close)
	return b
}

// drop closes all connections, as a server does that is restarted.
func (b *watchedBox) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		_ = c.NetConn().Close() // it may be closed already
	}
	b.conns = nil
}

func (b *watchedBox) credential(password string) map[string]any {
	return map[string]any{"host": "127.0.0.1", "port": b.port, "security": "none", "username": mailUser, "password": password}
}

// put delivers a mail.
func (b *watchedBox) put(t testing.TB, id, subject, more string) {
	t.Helper()
	raw := "From: Ann <ann@example.org>\nTo: " + mailUser + "\nMessage-ID: <" + id + "@example.org>\nSubject: " + subject + "\n" + more + "\nHello.\n"
	if strings.Contains(more, "Content-Type") {
		raw = strings.TrimSuffix(raw, "\nHello.\n")
	}
	if _, err := b.user.Append("INBOX", strings.NewReader(strings.ReplaceAll(raw, "\n", "\r\n")), &imap.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
}

type watchedSession struct {
	boxSession
	box *watchedBox
}

func (s *watchedSession) Login(user, password string) error {
	err := s.boxSession.Login(user, password)
	if err == nil {
		return nil
	}
	s.box.refused <- struct{}{}
	// Servers exist that repeat what they were sent.
	return &imap.Error{Type: imap.StatusResponseTypeNo, Code: imap.ResponseCodeAuthenticationFailed, Text: "wrong login: " + user + " " + password}
}

func (s *watchedSession) Store(w *imapserver.FetchWriter, set imap.NumSet, flags *imap.StoreFlags, options *imap.StoreOptions) error {
	if err := s.boxSession.Store(w, set, flags, options); err != nil {
		return err
	}
	if uids, ok := set.(imap.UIDSet); ok {
		list, _ := uids.Nums()
		for _, uid := range list {
			s.box.seen <- uid
		}
	}
	return nil
}

// mailFlow is a workflow that mail starts.
func mailFlow(id, config string) string {
	return strings.ReplaceAll(hookFlow(id, `{"credential_id":"box"`+config+`}`, `,{"id":"end","name":"end","description":"d","type":"CALL","subtype":"EMPTY","configurations":{"pass_through":true}}`, `{"from_node":"hook","to_node":"end"}`), `"subtype":"WEBHOOK"`, `"subtype":"EMAIL"`)
}

// await takes from a channel what has to come.
func await[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patient):
		t.Fatalf("waited too long for %s", what)
		panic("unreachable")
	}
}

// TestMail_Starts: a mail starts an execution whose nodes have its text and its attachment, and the trigger tells how it fares.
func TestMail_Starts(t *testing.T) {
	t.Parallel()
	b := startWatchedBox(t)
	x := openSite(t)
	id := want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", map[string]any{"name": "box", "type": "imap", "data": b.credential(mailPassword)}), http.StatusCreated).ID
	x.deploys(t, "letters", mailFlow("letters", ""))
	b.put(t, "1", "First", "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nSee the file.\n--b\nContent-Type: text/csv; name=prices.csv\nContent-Disposition: attachment; filename=prices.csv\n\ntea,12\n--b--\n")
	await(t, "the mark of the first mail", b.seen)
	history := func() []api.Delivery {
		return want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries?workflow_id=letters", nil), http.StatusOK).Deliveries
	}
	first := history()[0]
	x.reaches(t, first.ExecutionID, engine.StatusSuccess)
	e := x.read(t, first.ExecutionID)
	out := gjson.ParseBytes(e.NodeExecutions["end"].OutputData["result"])
	same(t, fmt.Sprint(e.TriggerInfo.TriggerType, " ", out.Get("subject"), " ", out.Get("body_text"), " ", out.Get("attachments.0.name"), " ", out.Get("trigger_message")), "EMAIL First See the file. prices.csv mail from ann@example.org: First")
	content := want[json.RawMessage](t, x.call(t, "viewer", "GET", "/deliveries?workflow_id=letters&key=mid:1@example.org", nil), http.StatusOK)
	same(t, gjson.GetBytes(content, "total_count").Int(), int64(1))

	// The password is changed at the server, and later in the credential: what is wrong is told meanwhile, without the password, and
	// nothing is lost.
	trigger := func() api.Trigger {
		return want[api.Triggers](t, x.call(t, "viewer", "GET", "/workflows/letters/triggers", nil), http.StatusOK).Triggers[0]
	}
	same(t, trigger().Listening.State, "listening")
	want[api.Credential](t, x.call(t, "admin", "PUT", "/credentials/"+id, map[string]any{"name": "box", "type": "imap", "data": b.credential("canary-former-password")}), http.StatusOK)
	b.drop()
	await(t, "a login that is refused", b.refused)
	await(t, "another one", b.refused) // by then the first has been told
	fares := *trigger().Listening
	if fares.State != "failing" || !strings.Contains(fares.Error, "refuses the login") || strings.Contains(fares.Error, "canary") || fares.Failures < 1 {
		t.Errorf("it fares %+v", fares)
	}
	b.put(t, "2", "Second", "")
	want[api.Credential](t, x.call(t, "admin", "PUT", "/credentials/"+id, map[string]any{"name": "box", "type": "imap", "data": b.credential(mailPassword)}), http.StatusOK)
	await(t, "the mark of the second mail", b.seen)
	same(t, trigger().Listening.State, "listening")
	same(t, fmt.Sprint(len(history()), " ", history()[0].Key, " ", history()[0].Decision), "2 mid:2@example.org started")

	// What was undeployed starts nothing, and a deployment begins with what arrives after it.
	want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/letters/undeploy", nil), http.StatusOK)
	b.put(t, "3", "Third", "")
	x.deploys(t, "letters", mailFlow("letters", ""))
	b.put(t, "4", "Fourth", "")
	await(t, "the mark of the fourth mail", b.seen)
	same(t, fmt.Sprint(len(history()), " ", history()[0].Key), "3 mid:4@example.org")
}

// TestMail_KillNine kills the server again and again while mail arrives: each mail has one execution.
func TestMail_KillNine(t *testing.T) {
	t.Parallel()
	const count, kills = 90, 4
	b := startWatchedBox(t)
	dir, addr := sqlitetest.Dir(t), loopback.FreeAddress(t)
	var process *exec.Cmd
	begin := func() {
		process = exec.Command(os.Args[0], "-test.run", "^TestCrash_Process$")
		process.Env = append(os.Environ(), crashDir+"="+dir, crashAddr+"="+addr)
		out, err := process.StdoutPipe()
		works(t, err)
		works(t, process.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "serving ") {
		}
		go io.Copy(io.Discard, out) //nolint:errcheck // it ends with the process
	}
	kill := func() {
		if err := process.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = process.Wait() // it was killed
	}
	begin()
	t.Cleanup(kill)
	c, err := client.New(client.Options{URL: "http://" + addr, Token: crashToken})
	works(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	data, err := json.Marshal(b.credential(mailPassword))
	works(t, err)
	_, err = c.CreateCredential(ctx, api.CredentialRequest{Name: "box", Type: "imap", Data: data})
	works(t, err)
	_, err = c.CreateWorkflow(ctx, []byte(mailFlow("letters", "")), false)
	works(t, err)
	_, err = c.Deploy(ctx, "letters")
	works(t, err)
	marked := map[imap.UID]bool{}
	for n := range count {
		b.put(t, fmt.Sprint("m", n), fmt.Sprint(n), "")
		if (n+1)%(count/(kills+1)) != 0 || n+1 == count {
			continue
		}
		for len(marked) < n-10 { // and it dies with some of them under way
			marked[await(t, "a mark", b.seen)] = true
		}
		kill()
		begin()
	}
	for len(marked) < count {
		marked[await(t, "a mark", b.seen)] = true
	}
	found := map[string]bool{}
	list, err := c.Deliveries(ctx, client.DeliveryQuery{WorkflowID: "letters", PageSize: 500})
	works(t, err)
	for _, d := range list.Deliveries {
		if found[d.Key] || d.Decision != "started" && d.Decision != "accepted" {
			t.Errorf("delivery %+v", d)
		}
		found[d.Key] = true
	}
	executions, err := c.Executions(ctx, client.ExecutionQuery{WorkflowID: "letters", PageSize: 1})
	works(t, err)
	if len(found) != count || len(list.Deliveries) != count || executions.TotalCount != count {
		t.Errorf("%d deliveries with %d ids and %d executions of %d mails", len(list.Deliveries), len(found), executions.TotalCount, count)
	}
}

// TestMail_GitHub_Canary: the secrets of what listens and of what is called by GitHub are nowhere, although the mail server and the payload
// repeat them.
func TestMail_GitHub_Canary(t *testing.T) {
	t.Parallel()
	b := startWatchedBox(t)
	log := &debugLog{}
	x := openSiteAs(t, func(o *Options, url string) {
		o.PublicURL, o.Log = url, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	clean := func(what string, raw []byte) {
		t.Helper()
		if found := spilled(raw); found != "" {
			t.Errorf("a secret is in %s, %s", what, found)
		}
	}
	box := want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", map[string]any{"name": "box", "type": "imap", "data": b.credential(canaryMark + "-password")}), http.StatusCreated).ID
	x.saves(t, "letters", mailFlow("letters", ""))
	a := x.call(t, "editor", "POST", "/workflows/letters/deploy", nil)
	if a.status != http.StatusForbidden || !strings.Contains(string(a.body), "wrong login: "+mailUser) {
		t.Errorf("deployed with a wrong password: %d %s", a.status, a.body)
	}
	clean("the refusal of the deployment", a.body)
	want[api.Credential](t, x.call(t, "admin", "PUT", "/credentials/"+box, map[string]any{"name": "box", "type": "imap", "data": b.credential(mailPassword)}), http.StatusOK)
	await(t, "the login that was refused", b.refused)
	x.deploys(t, "letters", mailFlow("letters", ""))
	b.put(t, "1", "First", "")
	await(t, "the mark of a mail", b.seen)
	want[api.Credential](t, x.call(t, "admin", "PUT", "/credentials/"+box, map[string]any{"name": "box", "type": "imap", "data": b.credential(canaryMark + "-password")}), http.StatusOK)
	b.drop()
	await(t, "a login that is refused", b.refused)
	await(t, "another one", b.refused)

	want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", `{"name":"hub","type":"github_token","data":{"token":"`+canaryMark+`-token","webhook_secret":"`+canaryMark+`-Qx7","base_url":"http://127.0.0.1:1"}}`), http.StatusCreated)
	x.deploys(t, "hub", hubFlow("hub", ""))
	push := strings.ReplaceAll(hubPush("refs/heads/main"), "Correct the price", "Oops: "+canaryMark+"-token and "+canaryMark+"-Qx7")
	started := x.fromGitHub(t, "hub/github", "push", "d1", push, "X-Hub-Signature-256", hubSigned(canaryMark+"-Qx7", push), "Authorization", "Bearer "+canaryMark+"-token", "X-Api-Key", canaryMark+"-Qx7")
	e, out := x.startedBy(t, started)
	same(t, out.Get("github_payload.commits.0.message").Str, "Oops: [redacted] and [redacted]")
	ids := map[string]string{"execution": e.ExecutionID, "workflow": "hub", "letters": "letters", "box": box}
	for _, d := range want[api.Deliveries](t, x.call(t, "viewer", "GET", "/deliveries", nil), http.StatusOK).Deliveries {
		ids[d.ID] = d.ID
	}
	refusal := x.fromGitHub(t, "hub/github", "push", "d2", push, "X-Hub-Signature-256", "sha256="+canaryMark)
	same(t, refusal.status, http.StatusUnauthorized)
	clean("the refusal of a request", refusal.body)
	x.routes(t, ids, clean)
	log.mu.Lock()
	defer log.mu.Unlock()
	clean("the log", log.all.Bytes())
	if !strings.Contains(log.all.String(), "a trigger cannot be listened for") {
		t.Error("the log does not tell of the listener")
	}
	files := 0
	works(t, filepath.WalkDir(x.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		files++
		clean("the file "+d.Name(), raw)
		return err
	}))
	if files < 3 {
		t.Errorf("the data directory has %d files", files)
	}
}
