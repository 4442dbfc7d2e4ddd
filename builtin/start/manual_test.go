package start_test

import (
	"testing"

	"tandem/builtin/start"
	"tandem/fault"
	"tandem/node/nodetest"
)

func kinds() nodetest.Kinds { return nodetest.Of(start.Kinds()...) }

func TestManual(t *testing.T) {
	t.Parallel()
	kinds().Check(t, "TRIGGER.MANUAL", []nodetest.Case{
		{Name: "HandsInputsOn", Config: `{"trigger_name": "Go"}`, Input: `{"n": 1, "user_id": "eve"}`,
			Want: map[string]string{"result": `{"n": 1, "user_id": "ada", "execution_id": "exec_1", "trigger_time": "2030-01-31T09:00:00Z", "trigger_message": "Go"}`}},
		{Name: "InputsFit", Config: `{"input_schema": {"required": ["n"]}}`, Input: `{"n": 1}`, Want: map[string]string{"result": `{"n": 1}`}},
		{Name: "InputsDoNotFit", Config: `{"input_schema": {"required": ["n"]}}`, Input: `{}`, Code: fault.InvalidInput, Part: "n"},
	})
}
