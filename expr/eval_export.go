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
	return e.convert(v)
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
		if err := e.pay(2 + len(x)); err != nil {
			return err
		}
		for _, item := range x {
			if err := e.measure(item); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if err := e.pay(2 + 24*len(x)); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(x)) {
			item := x[key]
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

// convert copies a result that has been measured.
func (e *exporter) convert(v any) (any, error) {
	switch x := v.(type) {
	case []any:
		out := make([]any, len(x))
		for i, item := range x {
			got, err := e.convert(item)
			if err != nil {
				return nil, err
			}
			out[i] = got
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(x))
		for _, key := range slices.Sorted(maps.Keys(x)) {
			got, err := e.convert(x[key])
			if err != nil {
				return nil, err
			}
			out[key] = got
		}
		return out, nil
	case time.Time, time.Duration:
		return plain(v), nil
	case json.Number:
		return v, nil
	}
	got, ok := normalize(v)
	if f, float := got.(float64); !ok || float && !finite(f) {
		return nil, e.r.fail("the result has a value that JSON cannot hold, such as a number that is not finite")
	}
	return got, nil
}
