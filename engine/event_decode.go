package engine

import (
	"encoding/json"
	"fmt"
	"strings"

	"tandem/fault"
)

// splitFact splits a fact that is written as [AppendFact] writes it, so that it need not be read twice.
func splitFact(text string) (name, fact string, ok bool) {
	rest, ok := strings.CutPrefix(text, `{"type":"`)
	if !ok || !strings.HasSuffix(rest, "}") {
		return "", "", false
	}
	name, fact, ok = strings.Cut(rest[:len(rest)-1], `","fact":`)
	return name, fact, ok && !strings.ContainsAny(name, `"\\`)
}

// decodeFact reads a fact by its name. The most common ones are first tried with readers of their own.
func decodeFact(name, data string) (Fact, error) {
	switch name {
	case NodeCompleted{}.factName():
		if fact, ok := readWhole(data, readCompleted); ok {
			return fact, nil
		}
		return decode[NodeCompleted](data)
	case ExecutionCreated{}.factName():
		if fact, ok := readWhole(data, readCreated); ok {
			return fact, nil
		}
		return decode[ExecutionCreated](data)
	case ExecutionStarted{}.factName():
		return decode[ExecutionStarted](data)
	case ExecutionForked{}.factName():
		return decode[ExecutionForked](data)
	case ExecutionPaused{}.factName():
		return decode[ExecutionPaused](data)
	case ExecutionResumed{}.factName():
		return decode[ExecutionResumed](data)
	case CancelRequested{}.factName():
		return decode[CancelRequested](data)
	case ExecutionRecovered{}.factName():
		return decode[ExecutionRecovered](data)
	case RequestRefused{}.factName():
		return decode[RequestRefused](data)
	}
	return decodeStepFact(name, data)
}

// decodeStepFact reads a fact about something inside an execution: a node, a scope, a timer, a question, a child.
func decodeStepFact(name, data string) (Fact, error) {
	switch name {
	case NodeStarted{}.factName():
		return decode[NodeStarted](data)
	case NodeNotBegun{}.factName():
		return decode[NodeNotBegun](data)
	case NodeFailed{}.factName():
		return decode[NodeFailed](data)
	case NodeSuspended{}.factName():
		return decode[NodeSuspended](data)
	case AttemptTimedOut{}.factName():
		return decode[AttemptTimedOut](data)
	case ScopeOpened{}.factName():
		return decode[ScopeOpened](data)
	case ScopeAdvanced{}.factName():
		return decode[ScopeAdvanced](data)
	case NodeRetried{}.factName():
		return decode[NodeRetried](data)
	case NodeSkipped{}.factName():
		return decode[NodeSkipped](data)
	case TimerFired{}.factName():
		return decode[TimerFired](data)
	case AskAnswered{}.factName():
		return decode[AskAnswered](data)
	case SignalReceived{}.factName():
		return decode[SignalReceived](data)
	case ChildWaiting{}.factName():
		return decode[ChildWaiting](data)
	case ChildFinished{}.factName():
		return decode[ChildFinished](data)
	}
	return nil, fault.Newf(fault.Unsupported, "decode event: unknown type %q; it was written by a newer version of Tandem", name)
}

func decode[F Fact](data string) (Fact, error) {
	var fact F
	if data == "{}" {
		return fact, nil
	}
	if err := json.Unmarshal([]byte(data), &fact); err != nil {
		return nil, fmt.Errorf("decode event %q: %w", fact.factName(), err)
	}
	return fact, nil
}
