package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// A mail whose answer is lost is looked for where the server keeps what it has sent. If it is there, the node has done its work: nobody is asked, and nothing is sent
// again. If nobody can look, a person decides.
func TestMailAction_LostAnswer(t *testing.T) {
	t.Parallel()
	s := openMail(t)
	if err := s.box.Create("Sent", nil); err != nil {
		t.Fatal(err)
	}
	flow := func(id, more string) {
		s.save(t, fmt.Sprintf(`
metadata: {id: %s, name: %s, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: send, description: d, type: EXTERNAL_ACTION, subtype: EMAIL, configurations: {credential_id: %s%s, to: ann@example.org, subject: "Order {{order}}", body_text: "%s"}}
connections:
  - {from_node: start, to_node: send}
`, id, id, s.smtp, more, id))
	}
	flow("looks", ", imap_credential_id: "+s.imap)
	flow("asks", "")
	lost := func(id string, wait float64) string {
		s.mu.Lock()
		s.loses = true
		s.mu.Unlock()
		execution := s.execute(t, id, api.ExecuteRequest{Inputs: []byte(`{"order":7}`), WaitSeconds: wait})
		s.gets(t, "ann@example.org", id)
		return execution
	}
	if e := s.read(t, lost("looks", 60)); e.Status != string(engine.StatusSuccess) || e.NodeExecutions["send"].OutputData == nil {
		t.Errorf("the execution is %s: %+v", e.Status, e.Error)
	}
	list := s.opens(t, lost("asks", 0), 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := s.mails[len(s.mails)-1].id; list[0].Purpose != engine.PurposeOutcomeUnknown || strings.Count(said(t, list[0]), id) != 2 {
		t.Errorf("it does not ask about the mail %s: %+v", id, list)
	}
	if len(s.mails) != 2 {
		t.Errorf("%d mails went out, want 2", len(s.mails))
	}
}

// said is what a question says besides its title.
func said(t *testing.T, q api.Interaction) string {
	t.Helper()
	var request struct {
		Description string `json:"description"`
	}
	if err := json.Unmarshal(q.RequestData, &request); err != nil {
		t.Fatal(err)
	}
	return request.Description
}
