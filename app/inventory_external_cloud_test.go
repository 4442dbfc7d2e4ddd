package app

import "maps"

func cloudProofs() map[string]map[string]proof {
	aws := sentTo("integration/aws.TestAction_Operations",
		"action_type", "data", "bucket", "key", "prefix", "file", "content", "content_type", "queue_url", "body", "attributes", "message_group_id", "topic_arn", "message", "subject",
		"function", "payload", "table", "item", "condition", "key_condition", "values", "names", "index", "filter")
	maps.Copy(aws, sentTo("integration/aws.TestAction_Failures", "limit", "cursor", "max_bytes"))
	maps.Copy(aws, sentTo("integration/aws.TestAction_Region", "region"))
	gcp := sentTo("integration/gcp.TestAction_Operations",
		"action_type", "data", "project_id", "bucket", "object", "prefix", "file", "content", "content_type", "if_generation_match", "query", "parameters", "max_rows", "location",
		"topic", "messages", "url", "method", "body", "audience")
	maps.Copy(gcp, sentTo("integration/gcp.TestAction_Failures", "limit", "cursor", "max_bytes"))
	azure := sentTo("integration/azure.TestAction_Operations",
		"action_type", "data", "container", "name", "prefix", "file", "content", "content_type", "if_match", "queue", "topic", "body", "properties", "url", "method")
	maps.Copy(azure, sentTo("integration/azure.TestAction_Failures", "limit", "cursor", "max_bytes"))
	maps.Copy(azure, sentTo("integration/azure.TestAction_Bus", "namespace"))
	maps.Copy(azure, sentTo("integration/azure.TestAction_MessageID", "session_id"))
	maps.Copy(azure, sentTo("integration/azure.TestAction_Client", "scope"))
	return map[string]map[string]proof{"EXTERNAL_ACTION.AWS_ACTION": aws, "EXTERNAL_ACTION.GCP_ACTION": gcp, "EXTERNAL_ACTION.AZURE_ACTION": azure}
}
