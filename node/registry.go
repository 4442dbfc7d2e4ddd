package node

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// Registry holds the kinds of one program by name. It is filled when the program is put together and only read after
// that, so readers need no lock. The zero Registry is empty.
type Registry struct{ kinds map[string]Kind }

// kindName is TYPE.SUBTYPE.
var kindName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*\.[A-Z][A-Z0-9_]*$`)

// Register adds kinds. A kind that is wrong is a defect of the program, so it panics: on a name that is taken or no
// name of a kind, a text missing in either language, both or neither of Run and Scope, and a scope that cannot run.
func (r *Registry) Register(kinds ...Kind) {
	for _, k := range kinds {
		if problem := r.problem(k); problem != "" {
			panic(fmt.Sprintf("node: kind %q %s", k.About.Name, problem))
		}
		if r.kinds == nil {
			r.kinds = map[string]Kind{}
		}
		r.kinds[k.About.Name] = k
	}
}

func (r *Registry) problem(k Kind) string {
	if !kindName.MatchString(k.About.Name) {
		return "has no name of the form TYPE.SUBTYPE"
	}
	if _, taken := r.kinds[k.About.Name]; taken {
		return "is registered twice"
	}
	for _, text := range []struct{ what, value string }{
		{"title in zh", k.About.Title.Zh}, {"title in en", k.About.Title.En},
		{"description in zh", k.About.Description.Zh}, {"description in en", k.About.Description.En},
	} {
		if text.value == "" {
			return "has no " + text.what
		}
	}
	ways := 0
	for _, set := range []bool{k.Run != nil, k.Scope != nil, k.Steps != nil} {
		if set {
			ways++
		}
	}
	switch {
	case ways == 0:
		return "has neither Run nor Scope nor Steps"
	case ways > 1:
		return "has more than one of Run, Scope and Steps; keep one"
	case k.Steps != nil && (k.Steps.Program == "" || k.Steps.Open == nil || k.Steps.Step == nil || k.Steps.Close == nil):
		return "has steps that lack Program, Open, Step or Close"
	case k.Scope != nil && (k.Scope.Open == nil || k.Scope.Iteration == nil || k.Scope.Close == nil):
		return "has a scope that lacks Open, Iteration or Close"
	}
	return ""
}

// Get returns a kind by name.
func (r *Registry) Get(name string) (Kind, bool) {
	k, ok := r.kinds[name]
	return k, ok
}

// Names lists the kinds, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.kinds)) }

// List returns the kinds in the order of their names.
func (r *Registry) List() []Kind {
	list := make([]Kind, 0, len(r.kinds))
	for _, name := range r.Names() {
		list = append(list, r.kinds[name])
	}
	return list
}
