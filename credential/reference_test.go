package credential

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestReferences(t *testing.T) {
	t.Parallel()
	const document = `{"nodes": [
		{"id": "a", "configurations": {"credential_id": "cred_1", "imap_credential_id": "post", "n": 1.50}},
		{"id": "b", "configurations": {"channels": [{"type": "email", "credentialId": "cred_2"}], "credential_id": "{{which}}"}},
		{"id": "c", "configurations": {"credential_id": "", "text": "credential_id cred_1", "credential_ids": "cred_1", "token": {"credential_id": 7}}}]}`
	want := []Reference{{"nodes[0].configurations.credential_id", "cred_1"}, {"nodes[0].configurations.imap_credential_id", "post"}, {"nodes[1].configurations.channels[0].credentialId", "cred_2"}}
	if got := References(json.RawMessage(document)); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	for _, none := range []string{``, `{`, `null`, `"credential_id"`, `[]`} {
		if got := References(json.RawMessage(none)); got != nil {
			t.Errorf("%s: got %v", none, got)
		}
	}
	named := Named(json.RawMessage(document), map[string]string{"cred_1": `a "name"`, "cred_2": "机器人", "n": "x"})
	const wantNamed = `{"nodes":[{"id":"a","configurations":{"credential_id":"a \"name\"","imap_credential_id":"post","n":1.50}},` +
		`{"id":"b","configurations":{"channels":[{"type":"email","credentialId":"机器人"}],"credential_id":"{{which}}"}},` +
		`{"id":"c","configurations":{"credential_id":"","text":"credential_id cred_1","credential_ids":"cred_1","token":{"credential_id":7}}}]}`
	if string(named) != wantNamed {
		t.Errorf("got %s", named)
	}
	if same := Named(json.RawMessage(document), map[string]string{"cred_9": "x"}); string(same) != document {
		t.Errorf("a document without these ids has changed: %s", same)
	}
}
