package dataflow

import (
	"slices"
	"strconv"
	"strings"

	"tandem/fault"
	"tandem/payload"
	"tandem/text"
)

// maxAvailable is how many names an error lists, maxCompared how many are compared to find the nearest.
const (
	maxAvailable = 30
	maxCompared  = 2000
	maxMissing   = 20
)

// explanation says why nothing was found, in names only, never in values.
type explanation struct {
	message   text.Text
	available []string
	more      int
	nearest   string
}

// explain looks for what the author may have meant.
func (r *reader) explain(p *placeholder) explanation {
	if p.problem != "" {
		return explanation{message: p.complaint()}
	}
	if ok, failed := r.results(p.head); ok == nil && failed != nil && len(failed.keys) == 0 {
		return explanation{message: text.Of("the step %q failed and left no output for the placeholder %q; handle its failure (on_error) or read another step",
			shorten(p.head), shorten(p.raw))}
	}
	var names []string
	var wanted, prefix, suffix string
	var message text.Text
	if at, broken, found := r.deepest(p); found {
		// The beginning of the path is there: what is in it, and what is it that is not?
		wanted = p.path[broken].Key
		prefix = p.path[:broken].String()
		suffix = strings.TrimPrefix(append(payload.Path{{Key: "x", Index: -1}}, p.path[broken+1:]...).String(), "x")
		message = text.Of("nothing is called %q in %q for the placeholder %q", shorten(wanted), prefix, shorten(p.raw))
		names = at
	} else {
		wanted = p.head
		suffix = strings.TrimPrefix(append(payload.Path{{Key: "x", Index: -1}}, p.path[1:]...).String(), "x")
		names = r.names(p.outputs)
		message = text.Of("nothing is called %q for the placeholder %q", shorten(wanted), shorten(p.raw))
		if p.outputs {
			message = text.Of("nothing is called %q among the steps that have a result for the placeholder %q", shorten(wanted), shorten(p.raw))
		}
	}
	e := explanation{available: names}
	near := fault.Nearest(wanted, names[:min(len(names), maxCompared)])
	if near != "" {
		e.nearest = payload.JoinKey(prefix, near) + suffix
	} else if p.joined != "" {
		near = fault.Nearest(p.joined, names[:min(len(names), maxCompared)])
		e.nearest = near
	}
	if len(e.available) > maxAvailable {
		e.more = len(e.available) - maxAvailable
		e.available = slices.Clone(e.available[:maxAvailable])
		if near != "" && !slices.Contains(e.available, near) {
			e.available[maxAvailable-1] = near
		}
	}
	switch {
	case e.nearest != "":
		message = text.Of("%s; the nearest name is %q", message, shorten(e.nearest))
	case len(names) == 0:
		message = text.Of("%s; nothing is available there", message)
	}
	if len(e.available) > 0 {
		short := make([]string, len(e.available))
		for i, name := range e.available {
			short[i] = shorten(name)
		}
		message = text.Of("%s; available: %s", message, strings.Join(short, ", "))
		if e.more > 0 {
			message = text.Of("%s and %d more", message, e.more)
		}
	}
	e.message = message
	return e
}

// deepest follows a placeholder as far as there is data. It returns the names at the place where the path breaks and
// the index of the payload.Step that is missing there.
func (r *reader) deepest(p *placeholder) (names []string, broken int, found bool) {
	try := func(raw []byte, path payload.Path, offset int) {
		for i := range path {
			next, ok := path[i : i+1].In(raw)
			if !ok {
				if !found || offset+i > broken {
					names, broken, found = namesIn(raw), offset+i, true
				}
				return
			}
			raw = next
		}
	}
	ok, failed := r.results(p.head)
	for _, res := range []*result{ok, failed} {
		if res != nil {
			try(res.whole(), p.rest, len(p.path)-len(p.rest))
		}
	}
	if p.outputs {
		return names, broken, found
	}
	for s := r.sc; s != nil; s = s.parent {
		if value, has := s.vars[p.head]; has {
			try(value, p.rest, 1)
			return names, broken, found
		}
	}
	if p.head == "env" && len(p.path) > 1 {
		for name := range r.l.env {
			names = append(names, name)
		}
		slices.Sort(names)
		return names, 1, true
	}
	if p.head == "trigger" {
		try(r.l.triggerWhole(r.asOf), p.rest, 1)
	}
	if value, has := r.l.about[p.head]; has {
		try(value, p.rest, 1)
	}
	if h, has := r.runtime(p.head, nil); has {
		try(h.raw, p.rest, 1)
	}
	if h, has := r.initial(p.head, nil); has {
		try(h.raw, p.rest, 1)
	}
	if r.ownOK && r.own[0] == '{' {
		if value, has := payload.Field(r.own, p.head); has {
			try(value, p.rest, 1)
		}
	}
	return names, broken, found
}

// namesIn lists the keys of an object, sorted; for a list the first and the last index.
func namesIn(raw []byte) []string {
	var names []string
	switch raw[0] {
	case '{':
		for _, m := range payload.Members(raw) {
			names = append(names, m.Key)
		}
		slices.Sort(names)
	case '[':
		n := 0
		payload.EachItem(raw, func([]byte) bool { n++; return true })
		if n > 0 {
			names = append(names, "0")
		}
		if n > 1 {
			names = append(names, strconv.Itoa(n-1))
		}
	}
	return names
}

// names lists what can be the head of a placeholder, sorted.
func (r *reader) names(stepsOnly bool) []string {
	set := map[string]bool{}
	for s := r.sc; s != nil; s = s.parent {
		for _, table := range [...]map[string]*attempts{s.steps, s.named} {
			for name, a := range table { // order does not matter: the names are sorted below
				_, ok := a.ok.at(r.asOf)
				_, failed := a.failed.at(r.asOf)
				if ok || failed {
					set[name] = true
				}
			}
		}
		if stepsOnly {
			continue
		}
		for name := range s.vars {
			set[name] = true
		}
		for name, h := range s.runtime { // order does not matter: the names are sorted below
			if _, ok := h.at(r.asOf); ok {
				set[name] = true
			}
		}
	}
	if !stepsOnly {
		for _, m := range r.l.initial {
			set[m.Key] = true
		}
		if r.ownOK && r.own[0] == '{' {
			payload.EachField(r.own, func(key, _ []byte) bool { set[payload.Unquote(key)] = true; return true })
		}
		for i := range r.apart {
			set[r.apart[i].Path[0]] = true
		}
		set["trigger"], set["execution"], set["workflow"] = true, true, true
		if len(r.l.env) > 0 {
			set["env"] = true
		}
	}
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// unresolved makes the error for placeholders that nothing answers to: the first in words, all of them in the details.
func (r *reader) unresolved(missing []*placeholder) *fault.Error {
	first := missing[0]
	e := r.explain(first)
	message := e.message
	if first.at != "" {
		message = text.Of("%s (at %s)", message, first.at)
	}
	if len(missing) > 1 {
		message = text.Of("%s; %d more placeholders are unresolved", message, len(missing)-1)
	}
	err := fault.Newf(fault.UnresolvedPlaceholder, "%s", message).With("path", first.at).With("placeholder", first.raw)
	if e.available != nil {
		err = err.With("available", e.available)
	}
	if e.nearest != "" {
		err = err.With("nearest", e.nearest)
	}
	if len(missing) > 1 {
		var all []map[string]any
		for _, p := range missing[:min(len(missing), maxMissing)] {
			one := map[string]any{"path": p.at, "placeholder": p.raw}
			if near := r.explain(p).nearest; near != "" {
				one["nearest"] = near
			}
			all = append(all, one)
		}
		err = err.With("unresolved", all)
	}
	return err
}

// shorten keeps messages readable when a name is not.
func shorten(s string) string { return text.ClipBytes(s, 80) }

func quoteShort(s string) string { return strconv.Quote(shorten(s)) }

func where(at string) text.Text {
	if at == "" {
		return text.Text{}
	}
	return text.Of(" at %s", at)
}
