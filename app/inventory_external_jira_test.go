package app

import "maps"

func jiraProofs() map[string]map[string]proof {
	proofs := sentTo("integration/jira.TestAction_Operations",
		"action_type", "data", "project_key", "summary", "issue_type", "description", "fields", "issue_key", "body", "transition", "file", "account_id", "jql", "jql_params", "method", "path", "query")
	maps.Copy(proofs, sentTo("integration/jira.TestAction_OwnServer", "api_version"))
	maps.Copy(proofs, sentTo("integration/jira.TestAction_Failures", "limit", "cursor"))
	return map[string]map[string]proof{"EXTERNAL_ACTION.JIRA_ACTION": proofs}
}
