package app

import "maps"

func gitHubProofs() map[string]map[string]proof {
	proofs := sentTo("integration/github.TestAction_Operations",
		"action_type", "data", "repository_config", "repository_config.owner", "repository_config.repo", "repository_config.full_name", "owner", "repo", "title", "body", "labels", "assignees", "issue_number",
		"pr_number", "comment", "state", "head", "base", "tag_name", "workflow_file", "inputs", "ref", "path", "content", "commit_message", "branch", "method", "query")
	maps.Copy(proofs, sentTo("integration/github.TestAction_Failures", "limit", "cursor"))
	return map[string]map[string]proof{"EXTERNAL_ACTION.GITHUB": proofs}
}
