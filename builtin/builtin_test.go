package builtin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tandem/builtin"
	"tandem/fault"
	"tandem/node"
)

func TestKinds_AreRegisteredAndDescribed(t *testing.T) {
	t.Parallel()
	var r node.Registry
	r.Register(builtin.Kinds(builtin.Options{})...) // panics on a missing text and on a duplicate
	want := []string{
		"ACTION.DATABASE_OPERATION", "ACTION.DATABASE_QUERY", "ACTION.DATA_FORMATTING", "ACTION.DATA_TRANSFORMATION", "ACTION.DATA_VALIDATION", "ACTION.EXECUTE_SCRIPT",
		"ACTION.FILE_DOWNLOAD", "ACTION.FILE_OPERATION", "ACTION.FILE_UPLOAD", "ACTION.HTTP_REQUEST", "ACTION.RUN_CODE", "ACTION.WEBHOOK_CALL", "ACTION.WEB_SEARCH",
		"CALL.EMPTY", "CALL.FACTS", "CALL.SLOT", "CALL.SUMMARY", "FLOW.DELAY", "FLOW.FILTER", "FLOW.FOR_EACH", "FLOW.IF", "FLOW.LOOP", "FLOW.MERGE", "FLOW.SORT", "FLOW.SPLIT", "FLOW.SUB_WORKFLOW", "FLOW.SWITCH",
		"FLOW.TIMEOUT", "FLOW.WAIT", "FLOW.WHILE", "HUMAN_IN_THE_LOOP.DISCORD_INTERACTION", "HUMAN_IN_THE_LOOP.FORM_SUBMISSION", "HUMAN_IN_THE_LOOP.GMAIL_INTERACTION", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL",
		"HUMAN_IN_THE_LOOP.MANUAL_REVIEW", "HUMAN_IN_THE_LOOP.OUTLOOK_INTERACTION", "HUMAN_IN_THE_LOOP.SLACK_INTERACTION", "HUMAN_IN_THE_LOOP.TEAMS_INTERACTION", "HUMAN_IN_THE_LOOP.TELEGRAM_INTERACTION",
		"TOOL.CODE_TOOL", "TOOL.FILE_PROCESSOR", "TOOL.HTTP_CLIENT", "TOOL.IMAGE_PROCESSOR", "TRIGGER.MANUAL",
	}
	if got := r.Names(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, k := range r.List() {
		var schema struct {
			Type       string         `json:"type"`
			Properties map[string]any `json:"properties"`
		}
		if err := json.Unmarshal(k.ConfigSchema.JSON(), &schema); err != nil || schema.Type != "object" || len(schema.Properties) == 0 {
			t.Errorf("%s: schema %s: %v", k.About.Name, k.ConfigSchema.JSON(), err)
		}
		if !strings.ContainsFunc(k.About.Title.In("zh")+k.About.Description.In("zh"), func(r rune) bool { return r >= 0x4e00 && r <= 0x9fff }) {
			t.Errorf("%s: the Chinese texts have no Chinese in them", k.About.Name)
		}
	}
}

func TestKinds_RefuseUnknownConfiguration(t *testing.T) {
	t.Parallel()
	for _, k := range builtin.Kinds(builtin.Options{}) {
		_, err := run(t, k.About.Name, newCall(t, `{"no_such_field": 1}`, `{"data": []}`))
		wantError(t, err, fault.InvalidConfig, "no_such_field")
	}
}
