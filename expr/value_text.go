package expr

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"tandem/payload"
)

// text gives the text of a value: texts as they are, dates in RFC 3339, everything else as compact JSON.
func (r *run) text(v any) (string, error) {
	switch x := v.(type) {
	case string:
		return x, nil
	case bool:
		return strconv.FormatBool(x), nil
	case int64:
		return strconv.FormatInt(x, 10), r.alloc(20)
	case time.Time:
		return plain(x).(string), r.alloc(36)
	}
	w := writer{r: r}
	err := w.value(v)
	return string(w.out), err
}

// plain turns a date or a duration into what JSON has: RFC 3339 text, a number of seconds.
func plain(v any) any {
	switch x := v.(type) {
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case time.Duration:
		if x%time.Second == 0 {
			return int64(x / time.Second)
		}
		return x.Seconds()
	}
	return v
}

// writer writes compact JSON with sorted keys and pays for every byte before it is written.
type writer struct {
	r   *run
	out []byte
}

func (w *writer) add(s string) error {
	// Twice: the buffer grows by doubling, and becomes a string at the end.
	if err := w.r.alloc(2 * len(s)); err != nil {
		return err
	}
	w.out = append(w.out, s...)
	return nil
}

func (w *writer) value(v any) error {
	v, err := w.r.norm(v)
	if err != nil {
		return err
	}
	switch x := plain(v).(type) {
	case nil:
		return w.add("null")
	case bool:
		return w.add(strconv.FormatBool(x))
	case int64:
		return w.add(strconv.FormatInt(x, 10))
	case float64:
		if !finite(x) {
			return w.r.fail("a number that is not finite has no text")
		}
		return w.add(formatFloat(x))
	case json.Number:
		return w.add(string(x))
	case string:
		return w.quote(x)
	case []any:
		if err := w.add("["); err != nil {
			return err
		}
		for i, item := range x {
			if i > 0 {
				if err := w.add(","); err != nil {
					return err
				}
			}
			if err := w.value(item); err != nil {
				return err
			}
		}
		return w.add("]")
	case map[string]any:
		return w.object(x)
	}
	return w.r.fail("a value of type %T has no text", v)
}

func (w *writer) object(x map[string]any) error {
	keys, err := w.r.keys(x)
	if err != nil {
		return err
	}
	if err := w.add("{"); err != nil {
		return err
	}
	for i, key := range keys {
		if i > 0 {
			if err := w.add(","); err != nil {
				return err
			}
		}
		if err := w.quote(key); err != nil {
			return err
		}
		if err := w.add(":"); err != nil {
			return err
		}
		if err := w.value(x[key]); err != nil {
			return err
		}
	}
	return w.add("}")
}

// quote writes a JSON text.
func (w *writer) quote(s string) error {
	if err := w.r.scan(len(s)); err != nil {
		return err
	}
	return w.add(string(payload.Quote(s)))
}

// formatFloat writes a finite float as JavaScript and encoding/json do.
func formatFloat(f float64) string {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	s := strconv.FormatFloat(f, format, -1, 64)
	if n := len(s); format == 'e' && n >= 4 && s[n-4] == 'e' && s[n-3] == '-' && s[n-2] == '0' {
		s = s[:n-2] + s[n-1:]
	}
	return s
}
