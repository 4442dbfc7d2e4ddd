package lists

import (
	"encoding/json"
	"fmt"
	"strings"

	"tandem/builtin/values"
	"tandem/node"
	"tandem/payload"
)

// Input is the list that a kind works on (see [values.ListInput]). If there is nothing at the path that the configuration field
// names, which counts as an empty list, the node has a warning.
func Input(call *node.Call, input json.RawMessage, field, path string) (values.List, error) {
	list, err := values.ListInput(input, path)
	if err != nil || !list.Absent {
		return list, err
	}
	p, err := values.ParsePath(path)
	if err != nil {
		return list, err
	}
	step, names := p.Missing(input)
	if step == 0 {
		names = append(names, call.Beside()...)
	}
	call.Look("configurations."+field, path, false, func() string {
		return fmt.Sprintf("%s is %q, which the input does not have: the list counts as empty%s", field, path, node.Nearest(p[:step], p[step], names))
	})
	return list, nil
}

// look notes whether an item has the field that a configuration names.
func look(call *node.Call, at, field string, p values.Path, item json.RawMessage, found bool) {
	call.Look(at, field, found, func() string {
		if len(p) > 1 && p[0] == "item" {
			p = p[1:]
		}
		step, names := p.Missing(item)
		if step == len(p) {
			step = 0
		}
		return fmt.Sprintf("%q is in no item and counts as null%s", strings.TrimSpace(field), node.Nearest(p[:step], p[step], names))
	})
}

// Needs is what a kind looks at that works on lists at paths: whatever these name. It looks at all of its input where it is told
// so, where a path is empty, since it looks for a list then, and where one cannot be read or is only known when it runs.
func Needs[C any](paths func(cfg C) (list []string, ok bool)) func(config json.RawMessage) *payload.Reads {
	return func(config json.RawMessage) *payload.Reads {
		cfg, err := node.Configuration[C](config)
		if err != nil {
			return nil
		}
		list, ok := paths(cfg)
		if !ok {
			return nil
		}
		var names []string
		for _, path := range list {
			p, err := values.ParsePath(path)
			if err != nil || strings.Contains(path, "{{") || strings.Contains(path, "${") {
				return nil
			}
			names = append(names, p.Roots()...)
		}
		return payload.ReadsNamed(names...)
	}
}
