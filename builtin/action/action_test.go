package action

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/outbound"
	"tandem/workflow"
)

type lampConfig struct {
	Fields
	Room  string `json:"room" doc:"The room." zh:"房间。"`
	Level int    `json:"level" range:"0..100" with:"action_type=dim" doc:"How bright." zh:"亮度。"`
	Why   string `json:"why" with:"action_type=dim|off" doc:"The reason." zh:"原因。"`
}

func (c *lampConfig) Defaults() { c.Level = 50 }

type lampResult struct {
	Room  string `json:"room" doc:"The room." zh:"房间。"`
	Level int    `json:"level" doc:"How bright it is." zh:"亮度。"`
}

func lamp(fail error) node.Kind {
	do := func(_ context.Context, _ *node.Call, cfg lampConfig) (lampResult, error) {
		return lampResult{cfg.Room, cfg.Level}, fail
	}
	return Define(node.About{
		Name: "EXTERNAL_ACTION.LAMP", Title: node.Says("Lamp", "灯"), Description: node.Says("Lights rooms.", "照明。"),
		Examples: []node.Example{{Shows: node.Says("Dims.", "调暗。"), Config: `{"action_type":"dim","room":"a"}`, Output: `{"result":{"room":"a","level":50}}`}},
	}, []Operation[lampConfig, lampResult]{
		{Name: "dim", Also: []string{"fade"}, Effect: workflow.Idempotent, Needs: []string{"room"}, Do: do},
		{Name: "off", Effect: workflow.Once, Needs: []string{"room|why"}, Do: do, Inquire: func(_ context.Context, _ *node.Call, cfg lampConfig) (lampResult, bool, error) {
			return lampResult{Room: cfg.Room}, cfg.Room == "known", nil
		}},
	})
}

func TestDefine(t *testing.T) {
	t.Parallel()
	k := nodetest.Of(lamp(nil))
	nodetest.Conform(t, k)
	k.Check(t, "EXTERNAL_ACTION.LAMP", []nodetest.Case{
		{Name: "Configured", Config: `{"action_type":"dim","room":"a","level":7}`, Input: `{"room":"b","level":9}`, Want: map[string]string{"result": `{"room":"a","level":7}`}},
		{Name: "Filled", Config: `{"action_type":"dim","room":""}`, Input: `{"room":"b","level":9}`, Want: map[string]string{"result": `{"room":"b","level":9}`}},
		{Name: "FilledFromData", Config: `{"action_type":"dim","data":{"level":3}}`, Input: `{"data":{"room":"b","level":9}}`, Want: map[string]string{"result": `{"room":"b","level":3}`}},
		{Name: "CamelCase", Config: `{"actionType":"dim","Room":"a","level":null,"Level":7,"data":{"Why":"x"}}`, Input: `{"Level":9,"room":"b"}`, Want: map[string]string{"result": `{"room":"a","level":7}`}},
		{Name: "CamelCaseInData", Config: `{"action_type":"dim","data":{"Room":"c","room":"a"}}`, Want: map[string]string{"result": `{"room":"a","level":50}`}},
		{Name: "OlderName", Config: `{"action_type":"fade","room":"a"}`, Want: map[string]string{"result": `{"room":"a","level":50}`}},
		{Name: "TheInputDoesNotChoose", Config: `{"action_type":"dim","room":"a"}`, Input: `{"action_type":"off"}`, Want: map[string]string{"result": `{"room":"a","level":50}`}},
		{Name: "Missing", Config: `{"action_type":"dim"}`, Code: fault.InvalidInput, Part: "dim needs room"},
		{Name: "MissingEither", Config: `{"action_type":"off"}`, Code: fault.InvalidInput, Part: "room or why"},
		{Name: "WrongInput", Config: `{"action_type":"dim","room":"a"}`, Input: `{"level":1000}`, Code: fault.InvalidInput, Part: "the input brings"},
		{Name: "OfAnotherOperation", Config: `{"action_type":"off","room":"a"}`, Input: `{"level":"high"}`, Want: map[string]string{"result": `{"room":"a","level":50}`}},
		{Name: "WrongConfig", Config: `{"action_type":"dim","room":"a","level":1000}`, Code: fault.InvalidConfig, Part: "level"},
		{Name: "Unknown", Config: `{"action_type":"dance","room":"a"}`, Code: fault.InvalidConfig, Part: "action_type"},
	})
	problems := func(config string) (workflow.Plan, []workflow.Problem) {
		r := &node.Registry{}
		r.Register(lamp(nil))
		known, _ := r.Kind("EXTERNAL_ACTION.LAMP")
		return known.Plan(&workflow.Node{ID: "n", Name: "n", Type: "EXTERNAL_ACTION", Subtype: "LAMP", Configurations: json.RawMessage(config)})
	}
	if _, told := problems(`{"action_type":"dim","data":{"Room":"a","leval":1}}`); len(told) != 1 || told[0].Path != "configurations.data.leval" || !strings.Contains(told[0].Message, `"level"`) {
		t.Errorf("data with a field that nobody knows: %+v", told)
	}
	plan := func(config string) workflow.Plan { p, _ := problems(config); return p }
	if p := plan(`{"action_type":"dim","room":"a"}`); p.Effect != workflow.Idempotent {
		t.Errorf("dim is %s", p.Effect)
	}
	if p := plan(`{"action_type":"off","room":"a"}`); p.Effect != workflow.Once {
		t.Errorf("off is %s", p.Effect)
	}
}

func TestDefine_Inquire(t *testing.T) {
	t.Parallel()
	kind := lamp(nil)
	for config, want := range map[string]string{
		`{"action_type":"off","room":"known"}`: `{"room":"known","level":0}`,
		`{"actionType":"off","Room":"known"}`:  `{"room":"known","level":0}`,
		`{"action_type":"off","room":"other"}`: "",
	} {
		out, err := kind.Inquire(context.Background(), nodetest.NewCall(t, config, ""))
		if err != nil || (out == nil) != (want == "") {
			t.Errorf("%s: %v, %v", config, out, err)
			continue
		}
		if want != "" {
			nodetest.CheckDone(t, out.(node.Done), map[string]string{"result": want})
		}
	}
	if _, err := kind.Inquire(context.Background(), nodetest.NewCall(t, `{"action_type":"dim","room":"a"}`, "")); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("what cannot be asked about: %v", err)
	}
}

func TestFailed(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.NetworkError, "cut off")
	for name, c := range map[string]struct {
		err       error
		once      bool
		code      fault.Code
		retryable bool
		unknown   bool
		after     time.Duration
	}{
		"Unknown":         {&outbound.Error{Fault: lost, Fate: outbound.Unknown}, true, fault.OutcomeUnknown, false, true, 0},
		"UnknownRead":     {&outbound.Error{Fault: lost, Fate: outbound.Unknown}, false, fault.NetworkError, true, false, 0},
		"NotTaken":        {&outbound.Error{Fault: lost, Fate: outbound.NotTaken, RetryAfter: time.Minute}, true, fault.NetworkError, true, false, time.Minute},
		"Answered":        {&outbound.Error{Fault: fault.New(fault.RemoteError, "500"), Fate: outbound.Answered}, true, fault.RemoteError, false, false, 0},
		"AnsweredRead":    {&outbound.Error{Fault: fault.New(fault.RemoteError, "500"), Fate: outbound.Answered}, false, fault.RemoteError, true, false, 0},
		"Refused":         {fault.New(fault.RemoteError, "not now"), true, fault.RemoteError, false, false, 0},
		"SlowDown":        {fault.New(fault.RateLimited, "slow down").With("retry_after_ms", int64(3000)), true, fault.RateLimited, true, false, 3 * time.Second},
		"AlreadyExplains": {&node.Failure{Err: lost, NotDone: true}, true, fault.NetworkError, true, false, 0},
	} {
		err := Failed(c.err, c.once)
		f := fault.From(err)
		told, _ := errors.AsType[*node.Failure](err)
		if f.Code != c.code || f.Retryable != c.retryable || c.unknown != (told != nil && told.Unknown) || c.after > 0 && (told == nil || told.RetryAfter != c.after) {
			t.Errorf("%s: %v, %+v", name, err, told)
		}
	}
}
