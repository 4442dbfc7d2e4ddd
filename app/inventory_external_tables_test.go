package app

import "maps"

func tableProofs() map[string]map[string]proof {
	airtable := sentTo("integration/airtable.TestAction_Operations",
		"action_type", "data", "base_id", "table", "record_id", "record_ids", "records", "merge_on", "typecast", "view", "formula", "fields", "sort", "sort.field", "sort.direction",
		"method", "path", "query", "body")
	maps.Copy(airtable, sentTo("integration/airtable.TestAction_Failures", "limit", "cursor"))
	sheets := sentTo("integration/google.TestSheets_Operations",
		"action_type", "data", "spreadsheet_id", "sheet", "range", "values", "rows", "where", "key_column", "header_row", "title", "value_input", "value_render", "method", "path", "query", "body")
	maps.Copy(sheets, sentTo("integration/google.TestSheets_Failures", "limit", "cursor"))
	drive := sentTo("integration/google.TestDrive_Operations",
		"action_type", "data", "file_id", "name", "folder_id", "file", "content", "content_type", "search", "email", "role", "permanent", "export_type", "method", "path", "query", "body")
	maps.Copy(drive, sentTo("integration/google.TestDrive_Failures", "limit", "cursor", "max_bytes"))
	return map[string]map[string]proof{"EXTERNAL_ACTION.AIRTABLE": airtable, "EXTERNAL_ACTION.GOOGLE_SHEETS": sheets, "EXTERNAL_ACTION.GOOGLE_DRIVE": drive}
}
