package cluster

import (
	"tandem/engine"
	"tandem/host"
)

// Commands are what a row tells those who look at it from outside: the questions that it asks and takes back, and the end. What else is
// to be done is the concern of whoever has recorded it.
func Commands(row host.Row) (list []engine.Command) {
	for _, t := range row.Told {
		switch {
		case t.What == host.ToldNode && t.Node == engine.NodeWaitingInput && t.Ask != "":
			list = append(list, engine.Ask{Ask: t.Ask, Activation: t.Activation, Purpose: t.Purpose, Ref: t.Ref})
		case t.What == host.ToldWithdrawn:
			list = append(list, engine.Withdraw{Ask: t.Ask})
		case t.What == host.ToldExecution && t.Status.Final():
			list = append(list, engine.Finish{Status: t.Status, Error: t.Error, Node: t.Activation})
		}
	}
	return list
}

// Status is the status that an execution has from a row on; false: it is as before.
func Status(row host.Row) (status engine.Status, changed bool) {
	for _, t := range row.Told {
		if t.What == host.ToldExecution {
			status, changed = t.Status, true
		}
	}
	if !changed && row.Seq == 1 {
		return engine.StatusPending, true // nothing is told of what has not begun
	}
	return status, changed
}
