// Package start holds the kinds that an execution begins at, each with the source that starts it by itself: by hand, by a request, by the
// clock, by a visitor of a page. One file is one kind and its source.
//
// The package that puts a program together imports it, and vendors that bring triggers of their own; nothing else does.
package start

import (
	"time"

	"tandem/builtin/values"
	"tandem/node"
	"tandem/trigger"
)

// Kinds lists every kind of this package.
func Kinds() []node.Kind {
	list := []node.Kind{triggerManual(), triggerWebhook(), triggerCron(), triggerForm(), triggerChat()}
	for i := range list {
		list[i].Brief = true // they are over at once
	}
	return list
}

// Sources lists the source of each.
func Sources() []trigger.Source {
	return []trigger.Source{manualSource{}, webhookSource{}, cronSource{}, pageSource[formConfig, *formConfig]{formKind},
		pageSource[chatConfig, *chatConfig]{chatKind}}
}

// startedFields are what every trigger says of the start besides what it has brought.
func startedFields(call *node.Call, message string) []values.Member {
	return []values.Member{
		values.Field("trigger_time", call.Now.UTC().Format(time.RFC3339Nano)),
		values.Field("execution_id", call.ExecutionID),
		values.Field("trigger_message", message),
	}
}

// startedMeanings describes them.
func startedMeanings() []node.Value {
	return []node.Value{
		node.Meaning("trigger_time", "When it was started.", "启动时间。"),
		node.Meaning("execution_id", "The execution.", "执行编号。"),
		node.Meaning("trigger_message", "What has started it, in words.", "启动原因的文字说明。"),
	}
}
