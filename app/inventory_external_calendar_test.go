package app

import "maps"

func googleCalendarProofs() map[string]map[string]proof {
	proofs := sentTo("integration/google.TestCalendarAction_Operations",
		"action_type", "data", "summary", "start", "start_datetime", "date", "end", "timezone", "description", "location", "attendees", "recurrence", "send_updates", "event_id", "text",
		"time_min", "time_max", "q", "max_results", "single_events", "order_by", "sync_token", "method", "path", "query", "body")
	maps.Copy(proofs, sentTo("integration/google.TestCalendarAction_Failures", "limit", "cursor", "calendar_id"))
	return map[string]map[string]proof{"EXTERNAL_ACTION.GOOGLE_CALENDAR": proofs}
}

// vendorToolProofs are those of a set of tools of a vendor: first and second are two of its tools, test sees what its own fields do.
func vendorToolProofs(first, second, test string, fields ...string) map[string]proof {
	proofs := sentTo(test, fields...)
	maps.Copy(proofs, sentTo("builtin/toolset.TestDefine_Alone", "tool_name", "function_args", "context", "call_id", "approval"))
	proofs["available_tools"] = proof{one: `["` + first + `"]`, other: `["` + second + `"]`, scene: "attached"}
	proofs["tool_prefix"] = proof{one: `"a_"`, other: `"b_"`, scene: "attached"}
	return proofs
}

// vendorTools are the sets of tools that vendors bring.
func vendorTools() map[string]map[string]proof {
	google := vendorToolProofs("google_calendar_search", "google_calendar_events", "integration/google.TestCalendarTool", "timezone", "max_results")
	maps.Copy(google, sentTo("integration/google.TestCalendarTool_Failures", "default_calendar_id"))
	return map[string]map[string]proof{
		"TOOL.EMAIL_TOOL":            vendorToolProofs("email_read", "email_search", "integration/mail.TestEmailTool", "mailbox", "from", "imap_credential_id", "allowed_recipients"),
		"TOOL.GOOGLE_CALENDAR_TOOL":  google,
		"TOOL.OUTLOOK_CALENDAR_TOOL": vendorToolProofs("outlook_calendar_events", "outlook_calendar_respond", "integration/microsoft.TestCalendarTool", "calendar_id", "timezone", "max_results"),
		"TOOL.CALENDAR_GENERIC_TOOL": caldavProofs(),
		"TOOL.GMAIL_TOOL":            vendorToolProofs("gmail_read", "gmail_search", "integration/google.TestGmailTool_Failures", "allowed_recipients"),
	}
}

func caldavProofs() map[string]proof {
	proofs := vendorToolProofs("calendar_events", "calendar_free_busy", "integration/caldav.TestCalendarTool", "calendar_url", "timezone")
	maps.Copy(proofs, sentTo("integration/caldav.TestCalendarTool_Failures", "read_only"))
	return proofs
}
