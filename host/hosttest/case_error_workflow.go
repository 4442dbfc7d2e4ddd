package hosttest

import (
	"encoding/json"
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

// withErrorWorkflow names the error workflow of a flow.
func withErrorWorkflow(flow, name string) string {
	return strings.Replace(flow, "description: d}", "description: d, settings: {error_workflow: "+name+"}}", 1)
}

func errorWorkflowCases() []Case {
	const mend = "mend"
	breaks := func(id, errorWorkflow string) string {
		return withErrorWorkflow(flow(id, []string{"a WORK", "b WORK {fail: -1, final: true}"}, []string{"a -> b"}), errorWorkflow)
	}
	handler := func(of string) string { return engine.ChildID(of, "#error_workflow", 0) }
	return []Case{
		{Name: "ErrorWorkflow/IsStartedOnceWithWhatFailed", Crashes: true, run: func(b *bench) {
			b.save(breaks("f", mend), flow(mend, []string{"t MANUAL", "m WORK {effect: once}"}, []string{"t -> m"}))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.ends(handler("x"), engine.StatusSuccess)
			if n := len(b.all()); n != 2 {
				b.t.Errorf("%d executions", n)
			}
			e := b.summary(handler("x"))
			_, start := b.view(handler("x"))
			var told struct {
				Failed struct {
					Execution string        `json:"execution_id"`
					Workflow  string        `json:"workflow_id"`
					Status    engine.Status `json:"status"`
					At        string        `json:"failed_at"`
				} `json:"failed_execution"`
				Error struct {
					Code string `json:"error_code"`
					Node string `json:"error_node_id"`
				} `json:"error"`
			}
			if err := json.Unmarshal(start.Initial, &told); err != nil {
				b.t.Fatal(err)
			}
			if told.Failed.Execution != "x" || told.Failed.Workflow != "f" || told.Failed.Status != engine.StatusError ||
				told.Error.Code != string(fault.RemoteRejected) || told.Error.Node != "b" || told.Failed.At == "" ||
				e.TriggerType != "ERROR" || e.Parent != "" || start.ErrorOf != "x" {
				b.t.Errorf("the error workflow was told %s; it is %+v", start.Initial, e)
			}
		}},
		{Name: "ErrorWorkflow/OfWhatFailsAtOnce", Crashes: true, run: func(b *bench) { // a host that runs ahead writes it with its end
			b.save(withErrorWorkflow(flow("f", []string{"a BRIEF", "b BRIEF {pad: much, max_retries: 0}"}, []string{"a -> b"}), mend), flow(mend, []string{"m WORK"}, nil))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.ends(handler("x"), engine.StatusSuccess)
			if n := len(b.all()); n != 2 {
				b.t.Errorf("%d executions", n)
			}
		}},
		{Name: "ErrorWorkflow/OfATimeout", Crashes: true, run: func(b *bench) {
			b.save(withErrorWorkflow(flow("f", []string{"w WAIT {signal: never}"}, nil), mend), flow(mend, []string{"m WORK"}, nil))
			b.start("x", "f", func(r *host.StartRequest) { r.TimeoutMS = 50 })
			b.ends("x", engine.StatusTimeout)
			b.ends(handler("x"), engine.StatusSuccess)
		}},
		{Name: "ErrorWorkflow/OfAChildAndOfItsParent", Crashes: true, run: func(b *bench) {
			kid := engine.ChildID("x", "k", 0)
			b.save(withErrorWorkflow(flow("f", []string{"k CHILD {workflow: kid}"}, nil), mend), breaks("kid", "patch"), flow(mend, []string{"m WORK"}, nil), flow("patch", []string{"m WORK"}, nil))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			for _, failed := range []string{"x", kid} { // each has its own, with its own record
				b.ends(handler(failed), engine.StatusSuccess)
				if _, start := b.view(handler(failed)); start.ErrorOf != failed || !strings.Contains(string(start.Initial), `"failed_execution":{"execution_id":"`+failed+`"`) {
					b.t.Errorf("the error workflow of %q was told %s", failed, start.Initial)
				}
			}
			if n := len(b.all()); n != 4 {
				b.t.Errorf("%d executions", n)
			}
		}},
		{Name: "ErrorWorkflow/DoesNotGoOnForEver", Crashes: true, run: func(b *bench) {
			// The error workflow fails, and so does the child it starts; both name an error workflow.
			kid := engine.ChildID(handler("x"), "k", 0)
			b.save(breaks("f", mend), withErrorWorkflow(flow(mend, []string{"k CHILD {workflow: kid}"}, nil), mend), breaks("kid", mend))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.ends(kid, engine.StatusError)
			b.ends(handler("x"), engine.StatusError)
			if n := len(b.all()); n != 3 {
				b.t.Errorf("%d executions", n)
			}
		}},
		{Name: "ErrorWorkflow/OnlyOfFailures", Crashes: true, run: func(b *bench) {
			b.save(withErrorWorkflow(flow("f", []string{"h WORK {hold: true, effect: idempotent}"}, nil), mend),
				withErrorWorkflow(flow("g", []string{"a WORK"}, nil), mend), flow(mend, []string{"m WORK"}, nil))
			b.start("x", "f")
			b.start("y", "g")
			b.held("h")
			b.act("x", host.ActionCancel)
			b.ends("x", engine.StatusCanceled)
			b.ends("y", engine.StatusSuccess)
			if n := len(b.all()); n != 2 {
				b.t.Errorf("%d executions", n)
			}
		}},
		{Name: "ErrorWorkflow/OnceHoweverOftenItIsRetried", Crashes: true, run: func(b *bench) {
			b.save(breaks("f", mend), flow(mend, []string{"m WORK"}, nil))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.ends(handler("x"), engine.StatusSuccess)
			b.act("x", host.ActionRetry, onNode("b"))
			b.ends("x", engine.StatusError)
			if n := len(b.all()); n != 2 {
				b.t.Errorf("%d executions", n)
			}
		}},
		{Name: "ErrorWorkflow/OfWhatCannotBeRead", Crashes: true, run: func(b *bench) {
			b.save(withErrorWorkflow(flow("f", []string{"w WAIT {signal: never}"}, nil), mend), flow(mend, []string{"t MANUAL", "m WORK {effect: once}"}, []string{"t -> m"}))
			b.start("x", "f")
			b.reaches("x", engine.StatusWaiting)
			b.damage("x")
			b.ends("x", engine.StatusError)
			b.ends(handler("x"), engine.StatusSuccess)
			_, _ = b.host.Act(b.ctx, b.who, host.Request{Execution: "x", Action: host.ActionLook}) // it is refused, and starts nothing more
			if n := len(b.all()); n != 2 {
				b.t.Errorf("%d executions", n)
			}
			_, start := b.view(handler("x"))
			if told := string(start.Initial); start.ErrorOf != "x" || !strings.Contains(told, `"execution_id":"x"`) || !strings.Contains(told, `"error_code":"unreadable"`) {
				b.t.Errorf("the error workflow was told %s", told)
			}
		}},
		{Name: "ErrorWorkflow/OfWhatCannotBeReadAndNamesNone", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"w WAIT {signal: never}"}, nil))
			b.start("x", "f")
			b.reaches("x", engine.StatusWaiting)
			b.damage("x")
			b.ends("x", engine.StatusError)
			if n := len(b.all()); n != 1 {
				b.t.Errorf("%d executions", n)
			}
		}},
		{Name: "ErrorWorkflow/ThatIsNotThere", Crashes: true, run: func(b *bench) {
			b.save(breaks("f", "nothing"))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
		}},
	}
}
