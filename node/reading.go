package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tandem/engine"
	"tandem/expr"
	"tandem/fault"
	"tandem/node/rundata"
)

// reading is a field that the configuration of a node names, and whether a run has found it.
type reading struct {
	at, name string
	found    bool
	// says is the warning if it was never there.
	says string
}

// maxReadings is how many fields a run keeps track of.
const maxReadings = 200

// Look notes that a field which the configuration names at a path was looked for. One that was looked for and never there in the whole run,
// in no item of a list, is a warning; missing makes its words and is asked only for a field that is not there.
func (c *Call) Look(at, name string, found bool, missing func() string) {
	if c.look != nil {
		c.look(at, name, found, missing)
	}
}

// Beside names the large fields of the input that are not in [Call.Input], since the kind does not read them.
func (c *Call) Beside() []string {
	if c.beside == nil {
		return nil
	}
	return c.beside()
}

func (x *run) besides() []string {
	var names []string
	for _, a := range x.beside {
		names = append(names, a.Path[0])
	}
	return names
}

func (x *run) lookedFor(at, name string, found bool, missing func() string) {
	x.warning.Lock()
	defer x.warning.Unlock()
	i := slices.IndexFunc(x.readings, func(r reading) bool { return r.at == at && r.name == name })
	if i < 0 {
		if len(x.readings) >= maxReadings {
			return
		}
		i, x.readings = len(x.readings), append(x.readings, reading{at: at, name: name})
	}
	r := &x.readings[i]
	if r.found = r.found || found; !r.found && r.says == "" {
		r.says = missing()
	}
}

// Nearest is the end of a message about a step of a path that is not there: the path with the name that is nearest to it.
func Nearest(before []string, step string, names []string) string {
	near := fault.Nearest(step, names)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", strings.Join(append(slices.Clone(before), near), "."))
}

// reads notes which fields an expression has read. Unless its author handles that, a field that is not there counts as null, which a
// condition takes for false. Value is the result of the expression.
func (x *run) reads(at string, program *expr.Program, lookup func(name string) (any, bool), value any) {
	if rundata.AsksForAbsence(program.Source()) {
		return
	}
	for _, path := range program.Paths() {
		if len(path) < 2 {
			continue
		}
		from, ok := lookup(path[0])
		if !ok {
			continue
		}
		step, fields, found := walked(from, path)
		name := strings.Join(path[:step+1], ".")
		var hint string
		if !found {
			hint = Nearest(path[:step], path[step], slices.Sorted(maps.Keys(fields)))
			if hint == "" && x.yetToCome(value) {
				continue
			}
		}
		x.lookedFor(at, strings.Join(path, "."), found, func() string {
			return fmt.Sprintf("the expression reads %q, which is not there and counts as null%s", name, hint)
		})
	}
}

// walked follows a path as far as there are objects. If a step is not there it says which, and what there is in its place.
func walked(value any, path []string) (step int, fields map[string]any, found bool) {
	for i := 1; i < len(path); i++ {
		object, ok := value.(map[string]any)
		if !ok {
			break
		}
		if value, ok = object[path[i]]; !ok {
			return i, object, false
		}
	}
	return len(path) - 1, nil, true
}

// yetToCome says whether a field that is not there may still come: the body of a loop that is about to begin can make it.
func (x *run) yetToCome(value any) bool {
	cause := &x.job.Run.Cause
	return cause.Kind == engine.CauseTurn && cause.Index == 0 && expr.Truth(value)
}

// absent are the readings to warn of. A node that waits for a field looks for it before it is there, so that only the end of the wait
// counts.
func (x *run) absent() (list []reading) {
	if x.node.kind.Fresh && (x.waiting || x.held) {
		return nil
	}
	for _, r := range x.readings {
		if !r.found {
			list = append(list, r)
		}
	}
	return list
}
