package expr

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// export makes the result JSON data: dates and durations become text and numbers. A result that was built, and not just
// read, is also measured, since a list may hold the same large value many times.
func (r *run) export(v any, budget int) (any, error) {
	switch v.(type) {
	case nil, bool, string, int64:
		return v, nil
	case []any, map[string]any:
		if !r.built {
			return v, nil
		}
	}
	e := exporter{r: r, budget: budget}
	if err := e.measure(v); err != nil || !e.foreign {
		return v, err
	}
	got, _, err := e.convert(v)
	return got, err
}

// exporter walks over a result, twice if something in it has to change. Neither walk depends on the order of keys: the
// first fails only by the sum, the second with the same words wherever it fails.
type exporter struct {
	r       *run
	budget  int
	seen    int
	foreign bool // something is not JSON data yet
}

// pay counts what the result will take. Reading what is already there costs no steps: the budget bounds it, and the
// caller's clock is still asked.
func (e *exporter) pay(n int) error {
	if e.budget -= n; e.budget < 0 {
		return e.r.limit("result", "gives a larger result than its limit")
	}
	return e.poll()
}

// poll asks the caller's clock now and then.
func (e *exporter) poll() error {
	if e.seen++; e.seen%pollEvery == 0 && e.r.expired != nil && e.r.expired() {
		return e.r.limit("time", "takes longer than its time limit")
	}
	return nil
}

func (e *exporter) measure(v any) error {
	switch x := v.(type) {
	case nil, bool, int64:
		return e.pay(8)
	case float64:
		e.foreign = e.foreign || !finite(x)
		return e.pay(8)
	case json.Number:
		return e.pay(len(x))
	case string:
		return e.pay(len(x) + 2)
	case []any:
		if err := e.pay(8 + len(x)); err != nil {
			return err
		}
		for _, item := range x {
			if err := e.measure(item); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if err := e.pay(8 + 24*len(x)); err != nil {
			return err
		}
		for key, item := range x { // order does not matter: only the sum can fail
			if err := e.pay(len(key)); err != nil {
				return err
			}
			if err := e.measure(item); err != nil {
				return err
			}
		}
		return nil
	}
	e.foreign = true
	return e.pay(24)
}

// convert replaces what is not JSON data yet. Only the lists and objects on the way to it are copied, and paid for like any
// other value that is made: a value shown a million times would be copied as often.
func (e *exporter) convert(v any) (got any, changed bool, err error) {
	if err := e.poll(); err != nil {
		return nil, false, err
	}
	switch x := v.(type) {
	case nil, bool, string, int64, json.Number:
		return v, false, nil
	case float64:
		if !finite(x) {
			return nil, false, e.notJSON()
		}
		return v, false, nil
	case []any:
		return e.convertList(x)
	case map[string]any:
		return e.convertObject(x)
	case time.Time, time.Duration:
		return plain(v), true, nil
	}
	got, ok := normalize(v)
	if f, float := got.(float64); !ok || float && !finite(f) {
		return nil, false, e.notJSON()
	}
	return got, true, nil
}

// copied pays for a list or object that convert makes. It costs no steps, so that only the sum can fail.
func (e *exporter) copied(n int) error {
	if e.r.bytes -= n; e.r.bytes < 0 {
		return e.r.limit("bytes", "makes more data than its limit")
	}
	return nil
}

func (e *exporter) notJSON() error {
	return e.r.fail("the result has a value that JSON cannot hold, such as a number that is not finite")
}

func (e *exporter) convertList(x []any) (any, bool, error) {
	var out []any // nil until something has changed
	for i, item := range x {
		got, changed, err := e.convert(item)
		if err != nil {
			return nil, false, err
		}
		if changed && out == nil {
			if err := e.copied(24 + 16*len(x)); err != nil {
				return nil, false, err
			}
			out = slices.Clone(x)
		}
		if changed {
			out[i] = got
		}
	}
	if out == nil {
		return x, false, nil
	}
	return out, true, nil
}

func (e *exporter) convertObject(x map[string]any) (any, bool, error) {
	var out map[string]any     // nil until something has changed
	for key, item := range x { // order does not matter: see exporter
		got, changed, err := e.convert(item)
		if err != nil {
			return nil, false, err
		}
		if changed && out == nil {
			if err := e.copied(48 + 48*len(x)); err != nil {
				return nil, false, err
			}
			out = maps.Clone(x)
		}
		if changed {
			out[key] = got
		}
	}
	if out == nil {
		return x, false, nil
	}
	return out, true, nil
}
