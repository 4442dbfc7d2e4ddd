package workflow

import (
	"slices"
	"strings"
)

// checkHandling looks at what comes after a node that has failed and handles that by on_error. What is wrong here does not keep a revision
// that was saved before from running, so these problems are found by validation only.
func (l *linked) checkHandling(b *bodies) {
	for i := range l.plans {
		plan := &l.plans[i]
		if !l.known[i] || l.attached[i] || plan.Disabled {
			continue
		}
		switch plan.OnError {
		case OnErrorContinue:
			l.checkContinue(b, i)
		case OnErrorDefault:
			l.checkDefault(b, i)
		}
	}
}

// checkContinue warns of a failure that nobody hears of: nothing is connected to the key that it goes out under, and what is connected to
// the others is skipped.
func (l *linked) checkContinue(b *bodies, node int) {
	var skipped []string
	for _, n := range b.outLinks.Of(int32(node)) {
		k := &l.links[n]
		switch {
		case k.key == ErrorKey:
			return
		case !k.entry && b.class[n] != linkBack:
			skipped = append(skipped, l.def.Nodes[k.to].ID)
		}
	}
	if len(skipped) > 0 {
		slices.Sort(skipped)
		l.report(warningAt(ProblemErrorUnused, nodePath(node)+".configurations.on_error",
			"when %q fails, it goes on under \"error\", to which nothing is connected: what comes after it (%s) is skipped and the execution succeeds all the same; connect \"error\", or set on_error to \"fail\" or \"default_output\"",
			l.def.Nodes[node].ID, listed(slices.Compact(skipped))))
	}
}

// checkDefault sees that default_output reaches what comes after the node: it goes out under one key, and never answers a question.
func (l *linked) checkDefault(b *bodies, node int) {
	plan, id, at := &l.plans[node], l.def.Nodes[node].ID, nodePath(node)+".configurations."
	if plan.Asks != "" {
		l.report(errorAt(ProblemConfig, at+"on_error",
			"on_error cannot be \"default_output\" here: %q asks people, and nothing stands for their answer when it fails; use \"continue\" and connect \"error\", or say by timeout_action what holds when nobody answers", id))
		return
	}
	if len(plan.StandIn) > 1 {
		l.report(errorAt(ProblemConfig, at+"default_output",
			"default_output has payloads for %s, and %q goes on under one of its keys; keep one of them", strings.Join(plan.StandIn, " and "), id))
	}
	main, ok := plan.MainKey()
	if !ok {
		return
	}
	for _, n := range b.outLinks.Of(int32(node)) {
		k := &l.links[n]
		if k.entry || k.key == main || k.key == ErrorKey || slices.Contains(plan.Instead, k.key) {
			continue
		}
		l.report(warningAt(ProblemDeadKey, connectionPath(k.connection)+".output_key",
			"when %q fails, default_output goes out under %q only and what is connected to %q is skipped; connect %q, or handle the failure with on_error: continue", id, main, k.key, main))
	}
}
