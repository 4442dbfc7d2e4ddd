package app

import "testing"

// TestInventory_External shows what the fields of kinds do that act in services. What they send is seen where the service is played.
func TestInventory_External(t *testing.T) {
	t.Parallel()
	sent := func(test string, fields ...string) map[string]proof {
		proofs := map[string]proof{}
		for _, name := range fields {
			proofs[name] = proof{shown: test, why: "what is sent to the service shows it"}
		}
		return proofs
	}
	slack := sent("integration/slack.TestAction_Operations",
		"action_type", "data", "channel", "message", "message_format", "blocks", "attachments", "user_mentions", "thread_ts", "unfurl_links", "unfurl_media",
		"message_ts", "file", "title", "emoji", "name", "is_private", "users", "topic", "user", "email", "method", "body", "channel_override")
	for name, p := range sent("integration/slack.TestAction_History", "oldest", "latest", "limit", "cursor") {
		slack[name] = p
	}
	fieldInventory{
		family: "EXTERNAL_ACTION",
		kinds:  map[string]map[string]proof{"EXTERNAL_ACTION.SLACK": slack},
	}.check(t)
}
