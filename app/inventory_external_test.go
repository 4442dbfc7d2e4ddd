package app

import (
	"maps"
	"testing"
)

// externalProofs show what the fields of kinds do that act in services, vendor by vendor. What they send is seen where the service is
// played.
func externalProofs() []map[string]map[string]proof {
	return []map[string]map[string]proof{
		slackProofs(),
		messageProofs(),
		gitHubProofs(),
		gitLabProofs(),
		jiraProofs(),
		trelloProofs(),
		cloudProofs(),
		tableProofs(),
		googleCalendarProofs(),
		serviceProofs(),
		notionProofs(),
	}
}

// sentTo are proofs by a test that sees what is sent to the service.
func sentTo(test string, fields ...string) map[string]proof {
	proofs := map[string]proof{}
	for _, name := range fields {
		proofs[name] = proof{shown: test, why: "what is sent to the service shows it"}
	}
	return proofs
}

func slackProofs() map[string]map[string]proof {
	slack := sentTo("integration/slack.TestAction_Operations",
		"action_type", "data", "channel", "message", "message_format", "blocks", "attachments", "user_mentions", "thread_ts", "unfurl_links", "unfurl_media",
		"message_ts", "file", "title", "emoji", "name", "is_private", "users", "topic", "user", "email", "method", "body", "channel_override", "oldest", "latest")
	maps.Copy(slack, sentTo("integration/slack.TestAction_Failures", "limit", "cursor"))
	return map[string]map[string]proof{"EXTERNAL_ACTION.SLACK": slack}
}

func TestInventory_External(t *testing.T) {
	t.Parallel()
	all := map[string]map[string]proof{}
	for _, vendor := range externalProofs() {
		maps.Copy(all, vendor)
	}
	fieldInventory{family: "EXTERNAL_ACTION", kinds: all}.check(t)
}
