package engine

import "tandem/payload"

// ReadFact reads the next fact, if it is one of the most common ones and is written as [AppendFact] writes it. If not, it reads nothing.
func ReadFact(from *payload.Exact) (Fact, bool) {
	r := *from
	var fact Fact
	switch {
	case r.May(`{"type":"node_completed","fact":`):
		fact = readCompleted(&r)
	case r.May(`{"type":"execution_created","fact":`):
		fact = readCreated(&r)
	case r.May(`{"type":"execution_started","fact":{}`):
		fact = ExecutionStarted{}
	default:
		return nil, false
	}
	if r.Must("}"); !r.OK {
		return nil, false
	}
	*from = r
	return fact, true
}

// readWhole reads a fact that is all of a text.
func readWhole[F Fact](text string, read func(*payload.Exact) F) (F, bool) {
	r := payload.ReadExact(text)
	fact := read(&r)
	return fact, r.OK && r.Left == ""
}

// readCompleted reads what [NodeCompleted.append] has written, if no text in it has an escape and no connection has failed. It is the
// reading of json.Unmarshal without looking at types; everything else is left to that.
func readCompleted(r *payload.Exact) (f NodeCompleted) {
	r.Must(`{"activation":`)
	f.Activation = ActivationID(r.Text())
	if r.May(`,"generation":`) {
		f.Generation = uint32(r.Number(32))
	}
	r.Must(`,"attempt":`)
	f.Attempt.Attempt = uint32(r.Number(32))
	if r.May(`,"outputs":[`) {
		f.Outputs = make([]Output, 0, 1)
		for more := true; more && r.OK; more = r.May(",") {
			var o Output
			r.Must(`{"key":`)
			o.Key = r.Text()
			if r.May(`,"ref":`) {
				o.Ref = Ref(r.Text())
			}
			r.Must("}")
			f.Outputs = append(f.Outputs, o)
		}
		r.Must("]")
	}
	if r.May(`,"settled":[`) {
		for more := true; more && r.OK; more = r.May(",") {
			var v Verdict
			r.Must(`{"edge":`)
			v.Edge = int(r.Number(31))
			v.Live = r.May(`,"live":true`)
			if r.May(`,"ref":`) {
				v.Ref = Ref(r.Text())
			}
			r.Must("}")
			f.Settled = append(f.Settled, v)
		}
		r.Must("]")
	}
	r.Must("}")
	return f
}

// readCreated reads the first fact of a journal as json.Marshal writes it, if no text in it has an escape and it has neither a program
// nor questions of its own. Everything else is left to json.Unmarshal.
func readCreated(r *payload.Exact) (f ExecutionCreated) {
	r.Must(`{"semantics":`)
	f.Semantics = int(r.Number(31))
	r.Must(`,"execution":`)
	f.Execution = r.Text()
	if r.May(`,"revision":`) {
		f.Revision = r.Text()
	}
	if r.May(`,"trigger":`) {
		f.Trigger = r.Text()
	}
	if r.May(`,"start_from":`) {
		f.StartFrom = r.Text()
	}
	if r.May(`,"timeout_ms":`) {
		f.TimeoutMS = int64(r.Number(63))
	}
	if r.May(`,"depth":`) {
		f.Depth = int(r.Number(31))
	}
	if r.May(`,"input":`) {
		f.Input = Ref(r.Text())
	}
	r.Must("}")
	return f
}
