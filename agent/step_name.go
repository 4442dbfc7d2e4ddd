package agent

import (
	"strconv"
	"strings"

	"tandem/engine"
)

// Names are all that the record of a task says about what its steps were for, and people see them: plan_3_2 is the second planning in
// the third place, step_3_2 the second step that was tried there, step_3_2_try_2 that one's second call. So they are made and read here
// only, and a name that was given once keeps its meaning.

// PlanID is the id of the nth plan.
func PlanID(n int) string { return "plan-" + strconv.Itoa(n) }

// StepID is the id of the nth step that is tried in a place.
func StepID(place, n int) string { return numbered(namePrefix(KindCall), place, n) }

// numbered is the nth name in a place that begins with prefix; the first has no number of its own.
func numbered(prefix string, place, n int) string {
	name := prefix + "_" + strconv.Itoa(place)
	if n > 1 {
		name += "_" + strconv.Itoa(n)
	}
	return name
}

// namePrefix is what the names of steps of a kind begin with.
func namePrefix(kind string) string {
	switch kind {
	case KindToolRisk:
		return "risk"
	case KindAskParams:
		return "ask"
	case KindCall:
		return "step"
	}
	return kind
}

// Part is what the name of a step of the program says.
type Part struct {
	// Kind is one of the Kind constants.
	Kind string
	// Place is the number of the place that it is about, 0 for what happens once in a task.
	Place int
	// Step is the id of the step that a call is of.
	Step string
}

// PartOf reads a name.
func PartOf(name string) Part {
	switch name {
	case KindFlowName, KindFlowRisk, KindConfirmFlow, KindSummary:
		return Part{Kind: name}
	}
	prefix, rest, _ := strings.Cut(name, "_")
	number, _, _ := strings.Cut(rest, "_")
	part := Part{Kind: prefix}
	if n, err := strconv.Atoi(number); err == nil {
		part.Place = n
	}
	for _, kind := range []string{KindToolRisk, KindAskParams, KindCall} {
		if prefix == namePrefix(kind) {
			part.Kind = kind
		}
	}
	if part.Kind == KindCall {
		part.Step = engine.TriedStep(name)
	}
	return part
}
