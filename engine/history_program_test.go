package engine_test

import (
	"encoding/json"

	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// programStories are those of the programs that come with the engine.
func programStories() map[string]story {
	result := func(s *sim, id engine.ActivationID, reply string) {
		s.t.Helper()
		s.do(engine.NodeCompleted{
			Attempt: s.run(id).Attempt, Outputs: []engine.Output{{Key: workflow.DefaultKey, Ref: engine.Ref("of " + id)}}, Reply: json.RawMessage(reply),
		})
	}
	return map[string]story{
		"tool_loop": {"a turn with a model: a memory that fails, a call that fails, one that is asked about, one whose outcome is unknown, another model", "agent -> after", func(s *sim) *sim {
			s.start(engine.ExecutionCreated{Input: "in"})
			s.open("agent", engine.ScopeOpened{
				Program: engine.ProgramToolLoop, Count: 1, State: "request",
				Config: json.RawMessage(`{"loads":2,"stores":1,"profiles":2,"rounds":3,"tries":2,"max_retries":1,"timeout_ms":1000,"tool_timeout_ms":2000}`),
			})
			s.fail("agent[0]/load_1", fault.Internal)
			result(s, "agent[0]/load_2", `null`)
			s.fail("agent[0]/complete_1", fault.RateLimited)
			s.fire(engine.TimerRetry)
			result(s, "agent[0]/complete_1", `{"calls":[{"effect":"idempotent"},{"effect":"once","approve":true},{"effect":"once"}]}`)
			s.started("agent[0]/call_1_3")
			s.suspend("agent[0]/approve_1_2", engine.NodeSuspended{Ask: &engine.Question{Purpose: "tool_approval", Ref: "arguments"}})
			s.do(engine.ExecutionRecovered{})
			for _, id := range sortedIDs(s.asks) {
				s.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Choice: engine.ChoiceDone, Ref: "yes"})
			}
			result(s, "agent[0]/approve_1_2", `{"approved":true}`)
			s.started("agent[0]/call_1_2")
			s.fail("agent[0]/call_1_1", fault.ToolError)
			result(s, "agent[0]/call_1_2", `null`)
			result(s, "agent[0]/call_1_3", `null`)
			s.fail("agent[0]/complete_2", fault.CredentialInvalid)
			result(s, "agent[0]/complete_3", `{"unfit":true}`)
			result(s, "agent[0]/complete_4", `{}`)
			result(s, "agent[0]/store_1", `null`)
			s.complete("agent")
			s.complete("after")
			s.status(engine.StatusSuccess)
			return s
		}},
		"filling": {"what an input lacks is looked for, then asked for, and a payment begins only then", `send {"effect":"once"}
			send -> after`, func(s *sim) *sim {
			s.start(engine.ExecutionCreated{Input: "in"})
			s.open("send", engine.ScopeOpened{Program: engine.ProgramFilling, Count: 1, State: "lacks"})
			s.fail("send[0]/filling", fault.ModelRefused)
			s.suspend("send[0]/asking", engine.NodeSuspended{Ask: &engine.Question{Purpose: "param", Ref: "form"}})
			s.do(engine.ExecutionRecovered{})
			s.do(engine.AskAnswered{Ask: onlyAsk(s), Outcome: engine.AskDone, Ref: "answer"})
			result(s, "send[0]/asking", `null`)
			s.started("send")
			s.complete("send")
			s.complete("after")
			s.status(engine.StatusSuccess)
			return s
		}},
	}
}
