package app

import "maps"

func gitLabProofs() map[string]map[string]proof {
	proofs := sentTo("integration/gitlab.TestAction_Operations",
		"action_type", "data", "project", "title", "description", "labels", "issue_iid", "mr_iid", "body", "source_branch", "target_branch", "state", "ref", "variables", "path", "content", "branch",
		"commit_message", "method", "query")
	maps.Copy(proofs, sentTo("integration/gitlab.TestAction_Failures", "limit", "cursor"))
	return map[string]map[string]proof{"EXTERNAL_ACTION.GITLAB_ACTION": proofs}
}
