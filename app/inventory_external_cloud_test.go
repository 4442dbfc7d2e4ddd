package app

import "maps"

func cloudProofs() map[string]map[string]proof {
	aws := sentTo("integration/aws.TestAction_Operations",
		"action_type", "data", "bucket", "key", "prefix", "file", "content", "content_type", "queue_url", "body", "attributes", "message_group_id", "topic_arn", "message", "subject",
		"function", "payload", "table", "item", "condition", "key_condition", "values", "names", "index", "filter")
	maps.Copy(aws, sentTo("integration/aws.TestAction_Failures", "limit", "cursor", "max_bytes"))
	maps.Copy(aws, sentTo("integration/aws.TestAction_Region", "region"))
	return map[string]map[string]proof{"EXTERNAL_ACTION.AWS_ACTION": aws}
}
