package values

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"

	"tandem/fault"
)

// FromYAML is the JSON that a text in YAML stands for. What is wrong with the text is the library's error, which names the line; what
// becomes too large is a fault.
func FromYAML(text string) (json.RawMessage, error) {
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return nil, err
	}
	left := maxYAML
	plain, err := jsonOf(v, &left)
	if err != nil {
		return nil, err
	}
	return Encode(plain), nil
}

// maxYAML is how many bytes a document may become: an alias of few characters stands for a text of any length, again and
// again.
const maxYAML = 64 << 20

// jsonOf turns what YAML can hold into what JSON can, as long as there is room left for it.
func jsonOf(v any, left *int) (any, error) {
	*left -= 8
	if text, ok := v.(string); ok {
		*left -= len(text)
	}
	if *left < 0 {
		return nil, fault.Newf(fault.TooLarge, "the YAML becomes more than %d bytes when its aliases are filled in", maxYAML).With("limit", maxYAML)
	}
	switch x := v.(type) {
	case map[string]any:
		for _, key := range SortedKeys(x) {
			*left -= len(key)
			value, err := jsonOf(x[key], left)
			if err != nil {
				return nil, err
			}
			x[key] = value
		}
	case map[any]any:
		plain := make(map[string]any, len(x))
		for key, value := range x {
			value, err := jsonOf(value, left)
			if err != nil {
				return nil, err
			}
			plain[fmt.Sprint(key)] = value
		}
		return plain, nil
	case []any:
		for i := range x {
			value, err := jsonOf(x[i], left)
			if err != nil {
				return nil, err
			}
			x[i] = value
		}
	case float64:
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return nil, errors.New("a number that is not finite has no JSON")
		}
	}
	return v, nil
}
