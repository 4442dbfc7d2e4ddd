package n8n

import (
	"maps"
	"strings"

	"tandem/importer"
)

// handlers are all types that are known, without services.
func handlers() map[string]handler {
	all := flowHandlers()
	for _, more := range []map[string]handler{webHandlers(), triggerHandlers(), aiHandlers()} {
		maps.Copy(all, more)
	}
	return all
}

// handlerOf is how a node is imported.
func (f *flow) handlerOf(n *node) handler {
	if n.handler != nil {
		return *n.handler
	}
	h := f.findHandler(n)
	if short(n.typ) == "switch" || short(n.typ) == "textClassifier" {
		h.outputs = max(len(n.out), len(n.params.At("rules", "values").List()), len(n.params.At("rules", "rules").List()),
			len(n.params.At("categories", "categories").List()), 1)
	}
	n.handler = &h
	return h
}

func (f *flow) findHandler(n *node) handler {
	t := short(n.typ)
	if v, ok := vendors()[t]; ok {
		if f.Has(v.kind) && f.writes(n, v) {
			h := handler{per: true, make: vendorMake(v)}
			if op := n.text("operation"); op == "getAll" || op == "getIssues" || op == "getCards" || op == "history" || op == "search" {
				h.per, h.many, h.path = false, true, []string{"items"}
			}
			return h
		}
		if _, _, ok := callOf(n); !ok {
			return handler{per: true, make: func(m *making) { m.otherwise(v.kind) }}
		}
		return restHandler(n)
	}
	if h, ok := f.known[t]; ok {
		if t == "openAi" && !strings.Contains(n.typ, "langchain") && n.text("resource") == "image" {
			return restHandler(n)
		}
		return h
	}
	if strings.HasPrefix(t, "vectorStore") {
		return handler{per: true, path: []string{"results"}, make: vectorStore}
	}
	if _, ok := services()[t]; ok {
		return restHandler(n)
	}
	if strings.HasSuffix(t, "Trigger") {
		return handler{root: true, make: noTrigger}
	}
	return handler{per: true, make: unknown}
}

// writes says that a vendor's kind has a counterpart of the operation of a node.
func (f *flow) writes(n *node, v vendor) bool {
	trial := &making{reading: reading{f: f, n: n, json: shape{unknown: true}, values: "trial"}, line: &importer.Line{},
		cfg: map[string]any{}, in: map[string]any{}}
	return v.write(trial)
}

// partID is the id of the node that is made of a part. One that also stands in the flow is two nodes here.
func (m *making) partID(part *node) string {
	if len(part.arriving()) == 0 {
		return part.id
	}
	if part.second == "" {
		part.second = m.f.ID(part.id + "_part")
	}
	return part.second
}
