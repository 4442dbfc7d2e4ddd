package app

import "maps"

func trelloProofs() map[string]map[string]proof {
	proofs := sentTo("integration/trello.TestAction_Operations",
		"action_type", "data", "board_id", "list_id", "card_id", "name", "desc", "due", "labels", "members", "label_id", "text", "method", "path", "query", "body")
	maps.Copy(proofs, sentTo("integration/trello.TestAction_Failures", "limit", "cursor"))
	return map[string]map[string]proof{"EXTERNAL_ACTION.TRELLO": proofs}
}
