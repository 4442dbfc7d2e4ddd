package app

import "maps"

func notionProofs() map[string]map[string]proof {
	proofs := sentTo("integration/notion.TestAction_Operations",
		"action_type", "data", "operation_type", "database_id", "page_id", "parent", "properties", "children", "markdown", "text", "filter", "sorts", "query", "method", "path", "body")
	maps.Copy(proofs, sentTo("integration/notion.TestAction_Failures", "limit", "cursor"))
	maps.Copy(proofs, sentTo("integration/notion.TestPlanned", "instruction", "context", "llm_profile"))
	return map[string]map[string]proof{"EXTERNAL_ACTION.NOTION": proofs}
}
