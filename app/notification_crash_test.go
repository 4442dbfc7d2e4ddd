package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"tandem/api"
)

// slackHistory is a Slack that remembers what was posted. It takes the first message and never says so.
type slackHistory struct {
	*httptest.Server
	mu       sync.Mutex
	messages []string
	// taken is closed when the first message was taken.
	taken chan struct{}
}

func newSlackHistory(t *testing.T) *slackHistory {
	t.Helper()
	s := &slackHistory{taken: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *slackHistory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch strings.TrimPrefix(r.URL.Path, "/api/") {
	case "chat.postMessage":
		s.mu.Lock()
		ts := fmt.Sprintf("1700000000.%06d", len(s.messages)+1)
		s.messages = append(s.messages, fmt.Sprintf(`{"ts":%q,"text":%q,"metadata":%s}`, ts, r.Form.Get("text"), r.Form.Get("metadata")))
		first := len(s.messages) == 1
		s.mu.Unlock()
		if first {
			close(s.taken)
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, `{"ok":true,"channel":"C0PS","ts":%q}`, ts)
	case "conversations.history":
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(w, `{"ok":true,"messages":[%s]}`, strings.Join(s.messages, ","))
	default:
		fmt.Fprint(w, `{"ok":true,"channel":{"id":"C0PS","name":"ops"}}`)
	}
}

// A notification whose process is killed after Slack took the message, and before it said so: Slack is asked, has it, and nobody else is.
// What went to the inbox is there once.
func TestNotification_KilledInTheMiddle(t *testing.T) {
	t.Parallel()
	slack := newSlackHistory(t)
	c := newCrash(t)
	kill := c.serve()
	id := c.startOne("NOTIFICATION",
		`{require: all, message: an order, channels: [{type: in_app}, {type: slack, to: C0PS, credential_id: CREDENTIAL}]}`,
		api.CredentialRequest{Name: "slack", Type: "slack_bot",
			Data: json.RawMessage(`{"token":"` + slackToken + `","signing_secret":"` + slackSigning + `","base_url":"` + slack.URL + `/api"}`)})
	<-slack.taken
	kill()
	kill = c.serve()
	defer func() { kill() }()
	if out := c.succeeds(id); out.Get("delivered").Int() != 2 || out.Get("deliveries.1.id").Str != "1700000000.000001" {
		t.Errorf("it puts out %s", out.Raw)
	}
	slack.mu.Lock()
	defer slack.mu.Unlock()
	if len(slack.messages) != 1 {
		t.Errorf("Slack was sent %q", slack.messages)
	}
}

// Who watches the inbox is told of a notice when it comes.
func TestNotification_WatchersAreTold(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	events, _, stop := x.desk.Watch("default")
	defer stop()
	x.save(t, `
metadata: {id: tells, name: tells, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: tell, description: d, type: EXTERNAL_ACTION, subtype: NOTIFICATION, configurations: {message: an order has come in, channels: [{type: in_app}]}}
connections:
  - {from_node: start, to_node: tell}
`)
	id := x.execute(t, "tells", api.ExecuteRequest{})
	if e := <-events; e.Interaction.Execution != id {
		t.Errorf("told of %+v, want a notice of %s", e.Interaction, id)
	}
}
